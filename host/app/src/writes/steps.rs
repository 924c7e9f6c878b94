//! The statements of one write, in its transaction.

use std::sync::Arc;

use blockbase_query::plan::{Assignment, CreatePlan, UpdatePlan, UpsertPlan, search_document};
use blockbase_query::{Access, Dialect, sql};
use blockbase_schema::{Code, ColumnType, Error, Object, Result, Retry, Value};
use blockbase_store::{Connection, DbError, NewEvent, Record};
use uuid::Uuid;

use super::explain::{broken_sum, check_references, explained, explained_new, values_after};
use super::{Step, Upserted, WriteAnswer};
use crate::deletion::delete_records;
use crate::record_events::{Images, WriteContext, diff, owner};

pub(super) async fn run_step(connection: &mut Connection, step: Step, context: &mut WriteContext) -> Result<WriteAnswer> {
    match step {
        Step::Create(plan) => {
            let object = Arc::clone(&plan.object);
            context.hold(connection, &object).await?;
            create(connection, plan, context).await
        }
        Step::Update(plan) => {
            let object = Arc::clone(&plan.record.object);
            context.hold(connection, &object).await?;
            update(connection, plan, context).await
        }
        Step::Delete(plan) => {
            let object = Arc::clone(&plan.object);
            context.hold(connection, &object).await?;
            let gone = delete_records(connection, context, &object, &plan.scope, vec![plan.id]).await?;
            Ok(if gone.is_empty() { WriteAnswer::Missing } else { WriteAnswer::Deleted { id: plan.id } })
        }
        Step::Missing => Ok(WriteAnswer::Missing),
    }
}

pub(crate) async fn create(connection: &mut Connection, plan: CreatePlan, context: &WriteContext) -> Result<WriteAnswer> {
    let object = &plan.object;
    check_references(connection, context, object, plan.values.iter().enumerate()).await?;
    let statement = sql::insert(connection.dialect(), object, &[&plan]);
    if let Err(error) = connection.execute(statement).await {
        return Err(explained_new(connection, context, &plan, None, error).await);
    }
    connection.index_new_row(object.id, plan.search_document());
    connection.count_rows(object.id, 1);
    if let Some(event) = created_event(context, &plan)? {
        connection.emit(event).await?;
    }
    Ok(WriteAnswer::Created { id: plan.id, json: plan.json })
}

pub(super) fn created_event(context: &WriteContext, plan: &CreatePlan) -> Result<Option<NewEvent>> {
    let images = Images { before: b"null", after: &plan.json, diff: b"null" };
    context.event(&plan.object, plan.id, "created", &images, plan.owner().map(str::to_owned))
}

async fn update(connection: &mut Connection, plan: UpdatePlan, context: &WriteContext) -> Result<WriteAnswer> {
    let object = &plan.record.object;
    let dialect = connection.dialect();
    let select = sql::get(dialect, &plan.record, true);
    let before = connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?;
    let Some(before) = before else { return Ok(WriteAnswer::Missing) };
    if plan.assignments.is_empty() {
        return Ok(WriteAnswer::Updated { json: before.into_json() });
    }
    let mut set = Vec::new();
    for (index, assignment) in &plan.assignments {
        if let Assignment::Set(value) = assignment {
            set.push((*index, value));
        }
    }
    check_references(connection, context, object, set).await?;
    let after = match connection.fetch_record(sql::update(dialect, &plan), &object.columns).await {
        Ok(after) => after,
        Err(error @ (DbError::OutOfRange | DbError::Check { .. })) => {
            return Err(broken_sum(object, &before, &plan.assignments).unwrap_or_else(|| error.on(object)));
        }
        Err(error) => {
            let values = values_after(object, &before, &plan.assignments);
            let values: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
            return Err(explained(connection, context, object, error, &values, Some(plan.record.id)).await);
        }
    };
    let Some(after) = after else { return Ok(WriteAnswer::Missing) };
    record_change(connection, context, object, plan.record.id, &before, &after).await?;
    Ok(WriteAnswer::Updated { json: after.into_json() })
}

/// The event of an update, and what the search index has to know of it.
pub(crate) async fn record_change(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    id: Uuid,
    before: &Record,
    after: &Record,
) -> Result<()> {
    let mut columns = object.columns.iter().enumerate();
    if columns.any(|(index, column)| column.is_searchable() && before.cell(index) != after.cell(index)) {
        connection.index_row(object.id, after.tail, document_of(object, after));
    }
    let diff = diff(object, before, after);
    let images = Images { before: before.json(), after: after.json(), diff: &diff };
    if let Some(event) = context.event(object, id, "updated", &images, owner(object, after))? {
        connection.emit(event).await?;
    }
    Ok(())
}

/// What the search index holds of a stored record.
fn document_of(object: &Object, record: &Record) -> Option<String> {
    let values: Vec<Value> = object
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| match (column.is_searchable(), column.ty) {
            (true, ColumnType::Text) => serde_json::from_slice(record.cell(index)).map_or(Value::Null, Value::Text),
            (true, _) => serde_json::from_slice(record.cell(index)).map_or(Value::Null, Value::TextList),
            (false, _) => Value::Null,
        })
        .collect();
    search_document(object, values.iter())
}

pub(super) async fn upsert(
    connection: &mut Connection,
    plan: UpsertPlan,
    context: &WriteContext,
    may_update: &Access,
) -> Result<Upserted> {
    let object = &plan.create.object;
    let dialect = connection.dialect();
    let before = match plan.can_conflict() {
        true => {
            let select = sql::conflicting(dialect, &plan);
            connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?
        }
        false => None,
    };
    let hidden = || Error::new(Code::Forbidden, "A record with these values exists, and you may not change it.");
    if before.as_ref().is_some_and(|before| !may_update.reaches(owner(object, before).as_deref())) {
        return Err(hidden());
    }
    let given: Vec<(usize, &Value)> = plan.overwrites.iter().map(|index| (*index, &plan.create.values[*index])).collect();
    check_references(connection, context, object, given).await?;
    let after = match connection.fetch_record(sql::upsert(dialect, &plan), &object.columns).await {
        Ok(after) => after.ok_or_else(hidden)?,
        Err(error) => {
            let besides = before.as_ref().and_then(|before| before.uuid(0));
            return Err(explained_new(connection, context, &plan.create, besides, error).await);
        }
    };
    match before {
        Some(before) => {
            let id = before.uuid(0).ok_or_else(|| Error::internal("a record without an id"))?;
            record_change(connection, context, object, id, &before, &after).await?;
            Ok(Upserted { json: after.into_json(), created: false })
        }
        // Another transaction inserted the record between the two statements; what it was like before is not known.
        None if dialect == Dialect::Postgres && after.tail == Some(1) => {
            Err(Error::retry(Retry::Contended, "two upserts of one record"))
        }
        None => {
            connection.index_new_row(object.id, plan.create.search_document());
            connection.count_rows(object.id, 1);
            if let Some(event) = created_event(context, &plan.create)? {
                connection.emit(event).await?;
            }
            Ok(Upserted { json: after.into_json(), created: true })
        }
    }
}
