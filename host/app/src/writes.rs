//! Records written: create, update, upsert, delete, one or many, all or none.
//!
//! A write is validated and rendered before it waits for its turn; in the transaction stand only the statements.

use std::sync::Arc;

use blockbase_query::plan::{Assignment, CreatePlan, RecordPlan, Stamp, UpdatePlan, UpsertPlan, search_document};
use blockbase_query::{Action, Scope, sql};
use blockbase_schema::json::Members;
use blockbase_schema::{Code, ColumnType, Error, Object, Registry, Result, Retry, Value};
use blockbase_store::{Connection, DbError, NewEvent, Record};
use uuid::Uuid;

use crate::App;
use crate::caller::Caller;
use crate::deletion::delete_records;
use crate::record_events::{Images, WriteContext, diff, owner};
use crate::records::record_id;

/// One write, as the caller asks for it.
#[derive(Debug)]
pub enum WriteRequest {
    Create { object: String, values: Members },
    Update { object: String, id: String, changes: Members },
    Delete { object: String, id: String },
}

/// What one write did.
#[derive(Debug)]
pub enum WriteAnswer {
    /// The new record's JSON.
    Created {
        id: Uuid,
        json: Vec<u8>,
    },
    /// The record as it is now.
    Updated {
        json: Vec<u8>,
    },
    Deleted {
        id: Uuid,
    },
    /// There is no such record within the caller's reach.
    Missing,
}

/// The ids that a bulk call wrote, in the caller's order.
#[derive(Debug)]
pub struct BulkAnswer {
    pub ids: Vec<Uuid>,
}

impl BulkAnswer {
    /// `{ count, ids }`.
    pub fn json(&self) -> String {
        let mut json = format!("{{\"count\":{},\"ids\":[", self.ids.len());
        for (index, id) in self.ids.iter().enumerate() {
            json.push_str(if index > 0 { ",\"" } else { "\"" });
            json.push_str(id.hyphenated().encode_lower(&mut [0; 36]));
            json.push('"');
        }
        json.push_str("]}");
        json
    }
}

/// What an upsert did: the record's JSON, and whether it is new.
#[derive(Debug)]
pub struct Upserted {
    pub json: Vec<u8>,
    pub created: bool,
}

/// A write that is ready to run.
enum Step {
    Create(CreatePlan),
    Update(UpdatePlan),
    Delete(RecordPlan),
    /// The id has no form that an id can have.
    Missing,
}

impl App {
    /// The new record.
    pub async fn create(&self, caller: &Caller, object: &str, values: Members) -> Result<Vec<u8>> {
        match self.write_one(caller, &WriteRequest::Create { object: object.to_owned(), values }).await? {
            WriteAnswer::Created { json, .. } => Ok(json),
            _ => Err(Error::internal("a create answered something else")),
        }
    }

    /// The record as it is afterwards; `None` where there is none.
    pub async fn update(&self, caller: &Caller, object: &str, id: &str, changes: Members) -> Result<Option<Vec<u8>>> {
        let request = WriteRequest::Update { object: object.to_owned(), id: id.to_owned(), changes };
        match self.write_one(caller, &request).await? {
            WriteAnswer::Updated { json } => Ok(Some(json)),
            _ => Ok(None),
        }
    }

    /// Whether there was one to delete.
    pub async fn delete(&self, caller: &Caller, object: &str, id: &str) -> Result<bool> {
        let request = WriteRequest::Delete { object: object.to_owned(), id: id.to_owned() };
        Ok(matches!(self.write_one(caller, &request).await?, WriteAnswer::Deleted { .. }))
    }

    async fn write_one(&self, caller: &Caller, request: &WriteRequest) -> Result<WriteAnswer> {
        self.on_schema(move |registry| async move {
            let context = self.write_context(caller, &registry);
            let step = self.step(caller, &context, request)?;
            let mut answers = self.run_steps(context, vec![step]).await?;
            answers.pop().ok_or_else(|| Error::internal("a write gave no answer"))
        })
        .await
    }

    /// Several writes, all or none, answered in their order.
    ///
    /// # Errors
    /// The first failure, its message naming the place of the failing write.
    pub async fn write_all(&self, caller: &Caller, requests: Vec<WriteRequest>) -> Result<Vec<WriteAnswer>> {
        self.check_bulk_size(requests.len())?;
        let requests = &requests;
        self.on_schema(move |registry| async move {
            let context = self.write_context(caller, &registry);
            let steps = requests
                .iter()
                .enumerate()
                .map(|(index, request)| self.step(caller, &context, request).map_err(|error| at(index, error)))
                .collect::<Result<Vec<_>>>()?;
            self.run_steps(context, steps).await
        })
        .await
    }

    /// Several new records of one object, all or none: their ids, in order.
    ///
    /// # Errors
    /// The first failure, its message naming the place of the failing record.
    pub async fn create_many(&self, caller: &Caller, object: &str, records: Vec<Members>) -> Result<BulkAnswer> {
        self.check_bulk_size(records.len())?;
        let records = &records;
        self.on_schema(move |registry| async move {
            let (object, access) = caller.object(&registry, object, Action::Create)?;
            let mut context = self.write_context(caller, &registry);
            let stamp = stamp(&context);
            let plans = records
                .iter()
                .enumerate()
                .map(|(index, values)| {
                    let id = self.clock.id(context.now);
                    CreatePlan::new(&object, &access, values, id, &stamp).map_err(|error| at(index, error))
                })
                .collect::<Result<Vec<_>>>()?;
            self.store
                .write(move |connection| {
                    Box::pin(async move {
                        context.hold(connection, &object).await?;
                        Ok(BulkAnswer { ids: insert_many(connection, &context, &object, plans).await? })
                    })
                })
                .await
        })
        .await
    }

    /// Deletes those of `ids` that are there and within the caller's reach: their ids, in the caller's order.
    ///
    /// # Errors
    /// `invalid_value` for an id that is no uuid; `foreign_key_violation` where one is still referenced: then none is deleted.
    pub async fn delete_many(&self, caller: &Caller, object: &str, ids: &[String]) -> Result<BulkAnswer> {
        self.check_bulk_size(ids.len())?;
        let ids = &parse_ids(ids)?;
        self.on_schema(move |registry| async move {
            let (object, access) = caller.object(&registry, object, Action::Delete)?;
            let mut context = self.write_context(caller, &registry);
            let (scope, ids) = (access.scope().clone(), ids.clone());
            self.store
                .write(move |connection| {
                    Box::pin(async move {
                        context.hold(connection, &object).await?;
                        let gone = delete_records(connection, &mut context, &object, &scope, ids.clone()).await?;
                        Ok(BulkAnswer { ids: ids.into_iter().filter(|id| gone.contains(id)).collect() })
                    })
                })
                .await
        })
        .await
    }

    /// Inserts a record, or updates the one that has the same values of the unique target `target`.
    ///
    /// # Errors
    /// `invalid_upsert_target`; `forbidden` where the record that conflicts is out of the caller's reach; else as
    /// [`App::create`].
    pub async fn upsert(&self, caller: &Caller, object: &str, values: Members, target: &[String]) -> Result<Upserted> {
        let values = &values;
        self.on_schema(move |registry| async move {
            let (object, may_create) = caller.object(&registry, object, Action::Create)?;
            let (_, may_update) = caller.object(&registry, object.name(), Action::Update)?;
            let mut context = self.write_context(caller, &registry);
            let id = self.clock.id(context.now);
            let stamp = stamp(&context);
            let plan = UpsertPlan::new(&object, &may_create, &may_update, values, target, id, stamp)?;
            self.store
                .write(move |connection| {
                    Box::pin(async move {
                        context.hold(connection, &object).await?;
                        upsert(connection, plan, &context, &may_update).await
                    })
                })
                .await
        })
        .await
    }

    /// Refuses more records than one call may write (`SVC_MAX_BULK`).
    pub fn check_bulk_size(&self, records: usize) -> Result<()> {
        let most = self.settings.bulk_records_max;
        match records <= most {
            true => Ok(()),
            false => Err(Error::invalid_request(format!("One call writes {most} records at most; send several calls."))),
        }
    }

    fn step(&self, caller: &Caller, context: &WriteContext, request: &WriteRequest) -> Result<Step> {
        let registry: &Registry = &context.registry;
        let stamp = stamp(context);
        Ok(match request {
            WriteRequest::Create { object, values } => {
                let (object, access) = caller.object(registry, object, Action::Create)?;
                Step::Create(CreatePlan::new(&object, &access, values, self.clock.id(context.now), &stamp)?)
            }
            WriteRequest::Update { object, id, changes } => {
                let (object, access) = caller.object(registry, object, Action::Update)?;
                match record_id(id) {
                    Some(id) => Step::Update(UpdatePlan::new(&object, &access, changes, id, stamp)?),
                    None => Step::Missing,
                }
            }
            WriteRequest::Delete { object, id } => {
                let (object, access) = caller.object(registry, object, Action::Delete)?;
                record_id(id).map_or(Step::Missing, |id| Step::Delete(RecordPlan::new(&object, &access, id)))
            }
        })
    }

    async fn run_steps(&self, mut context: WriteContext, steps: Vec<Step>) -> Result<Vec<WriteAnswer>> {
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    let several = steps.len() > 1;
                    let mut answers = Vec::with_capacity(steps.len());
                    for (index, step) in steps.into_iter().enumerate() {
                        let answer = run_step(connection, step, &mut context).await;
                        answers.push(if several { answer.map_err(|error| at(index, error))? } else { answer? });
                    }
                    Ok(answers)
                })
            })
            .await
    }
}

fn at(index: usize, error: Error) -> Error {
    error.within(format_args!("At index {index}"))
}

fn stamp(context: &WriteContext) -> Stamp {
    Stamp { actor_id: context.actor_id.clone(), now: context.now }
}

/// Ids of a body, each once.
///
/// # Errors
/// `invalid_value` for one that is no uuid.
pub(crate) fn parse_ids(texts: &[String]) -> Result<Vec<Uuid>> {
    let mut seen = std::collections::HashSet::with_capacity(texts.len());
    let mut ids = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let id = text.parse().map_err(|_| {
            Error::new(Code::InvalidValue, format!("`ids` at index {index}: {text:?} is no UUID.")).with_field("ids")
        })?;
        if seen.insert(id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

async fn run_step(connection: &mut Connection, step: Step, context: &mut WriteContext) -> Result<WriteAnswer> {
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

async fn create(connection: &mut Connection, plan: CreatePlan, context: &WriteContext) -> Result<WriteAnswer> {
    let object = &plan.object;
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

fn created_event(context: &WriteContext, plan: &CreatePlan) -> Result<Option<NewEvent>> {
    let images = Images { before: b"null", after: &plan.json, diff: b"null" };
    context.event(&plan.object, plan.id, "created", &images, plan.owner().map(str::to_owned))
}

/// Rows of one statement on Postgres, and what it can bind.
const INSERT_ROWS_MAX: usize = 100;
const INSERT_PARAMS_MAX: usize = 60_000;

async fn insert_many(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Arc<Object>,
    plans: Vec<CreatePlan>,
) -> Result<Vec<Uuid>> {
    let Some(first) = plans.first() else { return Ok(Vec::new()) };
    let dialect = connection.dialect();
    let one = sql::insert(dialect, object, &[first]).sql;
    let inserted = match dialect {
        blockbase_query::Dialect::Sqlite => {
            let documents = plans.iter().map(CreatePlan::search_document).collect();
            connection.insert_each(one, sets(&plans), object.id, documents).await
        }
        blockbase_query::Dialect::Postgres => insert_in_chunks(connection, object, &plans, one).await,
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

/// The values of each row.
fn sets(plans: &[CreatePlan]) -> Vec<Vec<blockbase_query::Param>> {
    plans.iter().map(|plan| sql::insert_params(plan).collect()).collect()
}

/// Many rows a statement; where one fails, its rows one by one, to learn which it is.
async fn insert_in_chunks(
    connection: &mut Connection,
    object: &Object,
    plans: &[CreatePlan],
    one: String,
) -> Result<(), (usize, DbError)> {
    let rows = (INSERT_PARAMS_MAX / object.columns.len()).clamp(1, INSERT_ROWS_MAX);
    for (number, chunk) in plans.chunks(rows).enumerate() {
        let first = number * rows;
        connection.savepoint().await.map_err(|error| (first, error))?;
        let statement = sql::insert(connection.dialect(), object, &chunk.iter().collect::<Vec<_>>());
        let Err(error) = connection.execute(statement).await else { continue };
        connection.back_to_savepoint().await.map_err(|error| (first, error))?;
        let documents = vec![None; chunk.len()];
        let inserted = connection.insert_each(one.clone(), sets(chunk), object.id, documents).await;
        inserted.map_err(|(index, error)| (first + index, error))?;
        // What failed before does not fail now: another transaction was in the way.
        drop(error);
    }
    Ok(())
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

async fn upsert(
    connection: &mut Connection,
    plan: UpsertPlan,
    context: &WriteContext,
    may_update: &blockbase_query::Access,
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
        None if dialect == blockbase_query::Dialect::Postgres && after.tail == Some(1) => {
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

/// The domain error of a new row.
async fn explained_new(
    connection: &mut Connection,
    context: &WriteContext,
    plan: &CreatePlan,
    besides: Option<Uuid>,
    error: DbError,
) -> Error {
    let values: Vec<Option<&Value>> = plan.values.iter().map(Some).collect();
    explained(connection, context, &plan.object, error, &values, besides).await
}

/// The domain error of a write; `values` are what the row would have, as far as it is known.
///
/// SQLite does not say which reference leads nowhere, and of several unique targets it names the youngest, where Postgres names
/// the eldest; so it is asked again.
async fn explained(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    error: DbError,
    values: &[Option<&Value>],
    besides: Option<Uuid>,
) -> Error {
    let dialect = connection.dialect();
    match &error {
        DbError::ForeignKey { relationship: None } => {
            for (column, value) in object.columns.iter().zip(values) {
                let (Some(reference), Some(Value::Uuid(id))) = (&column.reference, value) else { continue };
                let Some(target) = context.registry.object(&reference.target) else { continue };
                let statement = sql::visible(dialect, target, &Scope::All, vec![*id]);
                if connection.fetch_rows(statement).await.is_ok_and(|rows| rows.is_empty()) {
                    return DbError::ForeignKey { relationship: Some(reference.relationship_id) }.on(object);
                }
            }
        }
        DbError::Unique { index: None, .. } => {
            for target in object.unique_targets() {
                let known: Option<Vec<(usize, &Value)>> =
                    target.iter().map(|index| Some((*index, values.get(*index).copied().flatten()?))).collect();
                let Some(known) = known.filter(|known| known.iter().all(|(_, value)| **value != Value::Null)) else { continue };
                let statement = sql::duplicate(dialect, object, &known, besides);
                if connection.fetch_rows(statement).await.is_ok_and(|rows| !rows.is_empty()) {
                    let columns = target.iter().map(|index| object.columns[*index].name.clone()).collect();
                    return DbError::Unique { columns, index: None }.on(object);
                }
            }
        }
        _ => {}
    }
    error.on(object)
}

/// What an atomic operator broke, first by the order of the columns. Engines find another first, and Postgres does not say which.
fn broken_sum(object: &Object, before: &Record, assignments: &[(usize, Assignment)]) -> Option<Error> {
    let mut sums: Vec<(usize, &Value)> = assignments
        .iter()
        .filter_map(|(index, assignment)| match assignment {
            Assignment::Add(amount) => Some((*index, amount)),
            Assignment::Set(_) => None,
        })
        .collect();
    sums.sort_unstable_by_key(|(index, _)| *index);
    sums.into_iter().find_map(|(index, amount)| {
        let column = &object.columns[index];
        let value = column.filter_value_of(&String::from_utf8_lossy(before.cell(index))).ok()?;
        column.check_sum(&value, amount).err()
    })
}

/// What a stored record would be after an update, as far as it is known without running it.
fn values_after(object: &Object, before: &Record, assignments: &[(usize, Assignment)]) -> Vec<Option<Value>> {
    let mut values: Vec<Option<Value>> = object
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| column.filter_value_of(&String::from_utf8_lossy(before.cell(index))).ok())
        .collect();
    for (index, assignment) in assignments {
        values[*index] = match assignment {
            Assignment::Set(value) => Some(value.clone()),
            Assignment::Add(_) => None,
        };
    }
    values
}
