//! Writes many records in one transaction: new records, and changes of existing ones.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_query::plan::{Assignment, Change, CreatePlan, RecordPlan};
use blockbase_query::{Access, Dialect, Scope, sql};
use blockbase_schema::{Column, Error, Object, Result};
use blockbase_store::{Connection, DbError, Record, RecordsMax};
use uuid::Uuid;

use super::explain::{check_references, explained_new};
use super::steps::{check_set_references, created_event, explained_change};
use crate::base::at::at;
use crate::outbox::record_events::WriteContext;
use crate::outbox::touched::EVENT_BYTES_AT_ONCE;
use crate::records::change::record_change;

/// The maximum number of rows of one statement on Postgres. The next constant limits the values that it binds.
const INSERT_ROWS_MAX: usize = 100;

const INSERT_PARAMS_MAX: usize = 60_000;

/// The maximum number of rows of an object that one statement on Postgres inserts.
pub(super) fn insert_rows_max(object: &Object) -> usize {
    (INSERT_PARAMS_MAX / object.columns.len()).clamp(1, INSERT_ROWS_MAX)
}

pub(crate) async fn insert_many(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Arc<Object>,
    plans: Vec<CreatePlan>,
) -> Result<Vec<Uuid>> {
    let Some(first) = plans.first() else { return Ok(Vec::new()) };
    let dialect = connection.dialect();
    if object.columns.iter().any(|column| column.reference.is_some()) {
        for (index, plan) in plans.iter().enumerate() {
            let checked = check_references(connection, context, object, plan.values.iter().enumerate()).await;
            checked.map_err(|error| at(index, error))?;
        }
    }
    let one = String::from(sql::insert(dialect, object, &[first]).sql);
    let inserted = match dialect {
        Dialect::Sqlite => connection.insert_each(one, &plans).await,
        Dialect::Postgres => insert_in_chunks(connection, object, &plans, one).await,
    };
    if let Err((index, error)) = inserted {
        let error = explained_new(connection, context, &plans[index], None, error).await;
        return Err(at(index, error));
    }
    connection.count_rows(object.id, i64::try_from(plans.len()).unwrap_or(i64::MAX));
    let mut events = Vec::with_capacity(plans.len());
    for plan in &plans {
        events.extend(created_event(context, plan)?);
    }
    connection.emit_all(events).await?;
    Ok(plans.into_iter().map(|plan| plan.id).collect())
}

/// Inserts many rows with each statement. If a statement fails, its rows are inserted one by one to find the row that fails.
async fn insert_in_chunks(
    connection: &mut Connection,
    object: &Object,
    plans: &[CreatePlan],
    one: String,
) -> Result<(), (usize, DbError)> {
    let rows = insert_rows_max(object);
    let mut savepoint = None;
    for (number, chunk) in plans.chunks(rows).enumerate() {
        let first = number * rows;
        let savepoint = connection.savepoint_here(&mut savepoint).await.map_err(|error| (first, error))?;
        let statement = sql::insert(connection.dialect(), object, &chunk.iter().collect::<Vec<_>>());
        let Err(error) = connection.execute(statement).await else { continue };
        connection.back_to_savepoint(savepoint).await.map_err(|error| (first, error))?;
        let inserted = connection.insert_each(one.clone(), chunk).await;
        inserted.map_err(|(index, error)| (first + index, error))?;
        // The rows failed before and succeed now, so another transaction must have been the cause.
        drop(error);
    }
    Ok(())
}

/// Makes the same change to those of `ids` that exist and are within the scope. Returns their ids, in the caller's order.
/// `change_bytes` is the size of the values that the change sets in each record. The caller of this function has locked the
/// object.
///
/// # Errors
/// `answer_too_large` if the records are too large together; otherwise the error of the change of one of them.
pub(super) async fn change_many(
    connection: &mut Connection,
    context: &mut WriteContext,
    object: &Arc<Object>,
    access: &Access,
    (change, change_bytes): (&Change, usize),
    mut ids: Vec<Uuid>,
) -> Result<Vec<Uuid>> {
    let scope = access.scope();
    let select = sql::get_many(connection.dialect(), object, scope, ids.clone());
    let found = context.take_up(connection, object, (&ids, scope), select).await?;
    context.touched.count(0, found.len() * change_bytes)?;
    let before: HashMap<Uuid, Record> = found.into_iter().filter_map(|record| Some((record.uuid(0)?, record))).collect();
    ids.retain(|id| before.contains_key(id));
    if ids.is_empty() || change.assignments.is_empty() {
        return Ok(ids);
    }
    context.changes(connection, object, access, &ids).await?;
    check_set_references(connection, context, object, change).await?;
    let mut after = match connection.dialect() == Dialect::Postgres && !adds_to_unique(object, change) {
        true => change_together(connection, object, change, &ids).await?,
        false => None,
    };
    let (mut events, mut event_bytes) = (Vec::new(), 0);
    for id in &ids {
        let was = &before[id];
        let is = match &mut after {
            Some(after) => after.remove(id),
            None => {
                // All records are locked, and were within the scope before the first change. The scope is not tested again,
                // because the change of one record may move another one out of it.
                let target = RecordPlan { object: Arc::clone(object), scope: Scope::All, id: *id };
                let update = sql::update(connection.dialect(), &target, change, None);
                match connection.fetch_record(update, &object.columns).await {
                    Ok(is) => is,
                    Err(error) => return Err(explained_change(connection, context, &target, change, was, error).await),
                }
            }
        };
        let is = is.ok_or_else(|| Error::internal("a record that the transaction holds was not changed"))?;
        let event = record_change(connection, context, object, *id, was, &is)?;
        event_bytes += event.as_ref().map_or(0, |event| event.payload.len());
        events.extend(event);
        if event_bytes > EVENT_BYTES_AT_ONCE {
            event_bytes = 0;
            connection.emit_all(std::mem::take(&mut events)).await?;
        }
    }
    connection.emit_all(events).await?;
    Ok(ids)
}

/// Whether the outcome depends on the order of the records. In a unique field, a new sum may be equal to the value of a record
/// that is changed only later.
fn adds_to_unique(object: &Object, change: &Change) -> bool {
    let targets = object.unique_targets();
    let mut added = change.assignments.iter().filter(|(_, assignment)| matches!(assignment, Assignment::Add(_)));
    added.any(|(index, _)| targets.iter().any(|target| target.contains(index)))
}

/// Changes the records with one statement and returns them. `None` if a record cannot be changed. They are then changed one by
/// one to find that record.
async fn change_together(
    connection: &mut Connection,
    object: &Object,
    change: &Change,
    ids: &[Uuid],
) -> Result<Option<HashMap<Uuid, Record>>> {
    let columns: Vec<&Column> = object.columns.iter().collect();
    let savepoint = connection.savepoint().await?;
    let update = sql::update_many(connection.dialect(), object, change, ids.to_vec());
    match connection.fetch_records(update, &columns, 0, RecordsMax::bytes(usize::MAX)).await {
        Ok(changed) => Ok(Some(changed.into_iter().filter_map(|record| Some((record.uuid(0)?, record))).collect())),
        Err(_) => {
            connection.back_to_savepoint(&savepoint).await?;
            Ok(None)
        }
    }
}
