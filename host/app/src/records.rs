//! Records: list, get, create, update, delete, several writes at once.
//!
//! A write is validated and rendered before it waits for its turn; in the transaction stand only the statements.

use std::sync::Arc;

use blockbase_query::plan::{Assignment, CreatePlan, ListPlan, RecordPlan, Stamp, UpdatePlan};
use blockbase_query::{Action, ListRequest, Paging, sql};
use blockbase_schema::json::Members;
use blockbase_schema::{Error, Object, Result, system};
use blockbase_store::{Connection, NewEvent, ReadCost, Record};
use uuid::Uuid;

use crate::App;
use crate::caller::Caller;
use crate::feed::Subscriptions;

/// A page of records.
#[derive(Debug)]
pub struct ListAnswer {
    /// The records' JSON, separated by commas.
    pub rows: Vec<u8>,
    /// All that match; `None` where the caller left it out.
    pub total: Option<u64>,
    pub has_next_page: bool,
    pub paging: Paging,
}

impl ListAnswer {
    /// `{ "data": [ … ], "pagination": { … } }`.
    pub fn json(&self) -> Vec<u8> {
        let Paging { limit, offset } = self.paging;
        let number = |number: Option<u64>| number.map_or_else(|| "null".to_owned(), |number| number.to_string());
        let pagination = format!(
            r#"],"pagination":{{"page":{},"pageSize":{limit},"totalCount":{},"totalPages":{},"hasNextPage":{},"hasPreviousPage":{}}}}}"#,
            offset / limit + 1,
            number(self.total),
            number(self.total.map(|total| total.div_ceil(limit))),
            self.has_next_page,
            offset > 0,
        );
        let mut json = Vec::with_capacity(self.rows.len() + pagination.len() + 16);
        json.extend_from_slice(b"{\"data\":[");
        json.extend_from_slice(&self.rows);
        json.extend_from_slice(pagination.as_bytes());
        json
    }
}

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

/// A write that is ready to run.
enum Step {
    Create(CreatePlan),
    Update(UpdatePlan),
    Delete(RecordPlan),
    /// The id has no form that an id can have.
    Missing,
}

impl Step {
    fn object(&self) -> Option<&Object> {
        match self {
            Step::Create(plan) => Some(&plan.object),
            Step::Update(plan) => Some(&plan.record.object),
            Step::Delete(plan) => Some(&plan.object),
            Step::Missing => None,
        }
    }
}

/// What the events of one call have in common.
struct EventContext {
    enabled: bool,
    actor: String,
    depth: i64,
    now: i64,
    subscriptions: Arc<Subscriptions>,
}

impl App {
    pub async fn list(&self, caller: &Caller, object: &str, request: ListRequest) -> Result<ListAnswer> {
        let registry = self.registry();
        let (object, access) = caller.object(&registry, object, Action::Read)?;
        let plan = ListPlan::new(&object, &access, request)?;
        let plan = Arc::new(plan);
        self.store
            .read_of_unknown_cost(move |connection| {
                let plan = Arc::clone(&plan);
                Box::pin(async move { run_list(connection, &plan).await })
            })
            .await
    }

    /// The record's JSON, or `None`.
    pub async fn get(&self, caller: &Caller, object: &str, id: &str) -> Result<Option<Vec<u8>>> {
        let registry = self.registry();
        let (object, access) = caller.object(&registry, object, Action::Read)?;
        let Some(id) = record_id(id) else { return Ok(None) };
        let plan = RecordPlan::new(&object, &access, id);
        self.store
            .read(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let statement = sql::get(connection.dialect(), &plan, false);
                    let record = connection.fetch_record(statement, &plan.object.columns).await;
                    Ok(record.map_err(|error| error.on(&plan.object))?.map(|record| record.json))
                })
            })
            .await
    }

    /// The new record.
    pub async fn create(&self, caller: &Caller, object: &str, values: Members) -> Result<Vec<u8>> {
        match self.write_one(caller, WriteRequest::Create { object: object.to_owned(), values }).await? {
            WriteAnswer::Created { json, .. } => Ok(json),
            _ => Err(Error::internal("a create answered something else")),
        }
    }

    /// The record as it is afterwards; `None` where there is none.
    pub async fn update(&self, caller: &Caller, object: &str, id: &str, changes: Members) -> Result<Option<Vec<u8>>> {
        let request = WriteRequest::Update { object: object.to_owned(), id: id.to_owned(), changes };
        match self.write_one(caller, request).await? {
            WriteAnswer::Updated { json } => Ok(Some(json)),
            _ => Ok(None),
        }
    }

    /// Whether there was one to delete.
    pub async fn delete(&self, caller: &Caller, object: &str, id: &str) -> Result<bool> {
        let request = WriteRequest::Delete { object: object.to_owned(), id: id.to_owned() };
        Ok(matches!(self.write_one(caller, request).await?, WriteAnswer::Deleted { .. }))
    }

    async fn write_one(&self, caller: &Caller, request: WriteRequest) -> Result<WriteAnswer> {
        let step = self.step(caller, request, self.clock.now())?;
        let mut answers = self.run_steps(caller, vec![step]).await?;
        answers.pop().ok_or_else(|| Error::internal("a write gave no answer"))
    }

    /// Several writes, all or none, answered in their order.
    ///
    /// # Errors
    /// The first failure, its message naming the place of the failing write.
    pub async fn write_all(&self, caller: &Caller, requests: Vec<WriteRequest>) -> Result<Vec<WriteAnswer>> {
        self.check_bulk_size(requests.len())?;
        let now = self.clock.now();
        let steps = requests
            .into_iter()
            .enumerate()
            .map(|(index, request)| {
                self.step(caller, request, now).map_err(|error| error.within(format_args!("At index {index}")))
            })
            .collect::<Result<Vec<_>>>()?;
        self.run_steps(caller, steps).await
    }

    /// Refuses more records than one call may write (`SVC_MAX_BULK`).
    pub fn check_bulk_size(&self, records: usize) -> Result<()> {
        let most = self.settings.bulk_records_max;
        match records <= most {
            true => Ok(()),
            false => Err(Error::invalid_request(format!("One call writes {most} records at most; send several calls."))),
        }
    }

    fn step(&self, caller: &Caller, request: WriteRequest, now: i64) -> Result<Step> {
        let registry = self.registry();
        let stamp = Stamp { actor_id: caller.actor_id().map(str::to_owned), now };
        Ok(match request {
            WriteRequest::Create { object, values } => {
                let (object, access) = caller.object(&registry, &object, Action::Create)?;
                Step::Create(CreatePlan::new(&object, &access, &values, self.clock.id(now), &stamp)?)
            }
            WriteRequest::Update { object, id, changes } => {
                let (object, access) = caller.object(&registry, &object, Action::Update)?;
                match record_id(&id) {
                    Some(id) => Step::Update(UpdatePlan::new(&object, &access, &changes, id, stamp)?),
                    None => Step::Missing,
                }
            }
            WriteRequest::Delete { object, id } => {
                let (object, access) = caller.object(&registry, &object, Action::Delete)?;
                record_id(&id).map_or(Step::Missing, |id| Step::Delete(RecordPlan::new(&object, &access, id)))
            }
        })
    }

    async fn run_steps(&self, caller: &Caller, steps: Vec<Step>) -> Result<Vec<WriteAnswer>> {
        let now = self.clock.now();
        let mut context = EventContext {
            enabled: self.settings.events_enabled,
            actor: caller.actor_json(),
            depth: caller.depth,
            now,
            subscriptions: Arc::clone(&self.subscriptions.read()),
        };
        let event_ids: Vec<Uuid> = steps.iter().map(|_| self.clock.id(now)).collect();
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    hold_objects(connection, &steps, &mut context).await?;
                    let several = steps.len() > 1;
                    let mut answers = Vec::with_capacity(steps.len());
                    for (index, (step, event_id)) in steps.into_iter().zip(event_ids).enumerate() {
                        let answer = run_step(connection, step, &context, event_id).await;
                        answers.push(match several {
                            true => answer.map_err(|error| error.within(format_args!("At index {index}")))?,
                            false => answer?,
                        });
                    }
                    Ok(answers)
                })
            })
            .await
    }
}

/// An id in any usual spelling; what is none cannot be the id of a record.
fn record_id(text: &str) -> Option<Uuid> {
    text.parse().ok()
}

async fn run_list(connection: &mut Connection, plan: &ListPlan) -> Result<ListAnswer> {
    let object = &plan.object;
    let paging = plan.paging;
    let columns: Vec<_> = plan.columns.iter().map(|index| &object.columns[*index]).collect();
    let statement = sql::list(connection.dialect(), plan);
    let rows_max = usize::try_from(paging.limit).unwrap_or(usize::MAX);
    let page = connection.fetch_json(statement, &columns, rows_max).await.map_err(|error| error.on(object))?;
    if !plan.with_count {
        return Ok(ListAnswer { rows: page.rows, total: None, has_next_page: page.has_more, paging });
    }
    let total = match plan.selection.is_everything() {
        true => connection.kept_count(object.id).await?,
        false => {
            let statement = sql::count(connection.dialect(), object, &plan.selection);
            connection.fetch_integer(statement).await.map_err(|error| error.on(object))?
        }
    };
    let total = u64::try_from(total).unwrap_or(0);
    Ok(ListAnswer { rows: page.rows, total: Some(total), has_next_page: paging.offset + paging.limit < total, paging })
}

/// Holds the objects of all steps, so that nothing is written into another of the same name, and makes sure that the
/// subscriptions are those of this moment.
async fn hold_objects(connection: &mut Connection, steps: &[Step], context: &mut EventContext) -> Result<()> {
    let mut held: Option<i64> = None;
    for object in steps.iter().filter_map(Step::object) {
        if held == Some(object.id) {
            continue;
        }
        let version = connection.hold_object(object.id).await?.ok_or_else(|| Error::unknown_object(object.name()))?;
        held = Some(object.id);
        if version != context.subscriptions.version {
            context.subscriptions = Arc::new(Subscriptions::new(version, connection.subscriptions().await?));
        }
    }
    Ok(())
}

async fn run_step(connection: &mut Connection, step: Step, context: &EventContext, event_id: Uuid) -> Result<WriteAnswer> {
    match step {
        Step::Create(plan) => create(connection, plan, context, event_id).await,
        Step::Update(plan) => update(connection, plan, context, event_id).await,
        Step::Delete(plan) => delete(connection, plan, context, event_id).await,
        Step::Missing => Ok(WriteAnswer::Missing),
    }
}

async fn create(connection: &mut Connection, plan: CreatePlan, context: &EventContext, event_id: Uuid) -> Result<WriteAnswer> {
    let object = &plan.object;
    let statement = sql::insert(connection.dialect(), &plan);
    connection.execute(statement).await.map_err(|error| error.on(object))?;
    connection.count_rows(object.id, 1);
    let images = Images { before: b"null", after: &plan.json, diff: b"null" };
    let owner = plan.owner().map(str::to_owned);
    emit(connection, context, event_id, object, plan.id, "created", images, owner).await?;
    Ok(WriteAnswer::Created { id: plan.id, json: plan.json })
}

async fn update(connection: &mut Connection, plan: UpdatePlan, context: &EventContext, event_id: Uuid) -> Result<WriteAnswer> {
    let object = &plan.record.object;
    let dialect = connection.dialect();
    let select = sql::get(dialect, &plan.record, true);
    let before = connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?;
    let Some(before) = before else { return Ok(WriteAnswer::Missing) };
    if plan.assignments.is_empty() {
        return Ok(WriteAnswer::Updated { json: before.json });
    }
    let statement = sql::update(dialect, &plan);
    let after = connection.fetch_record(statement, &object.columns).await.map_err(|error| {
        let added = plan.assignments.iter().filter(|(_, assignment)| matches!(assignment, Assignment::Add(_)));
        error.on_update(object, &added.map(|(index, _)| *index).collect::<Vec<_>>())
    })?;
    let Some(after) = after else { return Ok(WriteAnswer::Missing) };
    let diff = diff(object, &before, &after);
    let images = Images { before: &before.json, after: &after.json, diff: &diff };
    let owner = owner(object, &after);
    emit(connection, context, event_id, object, plan.record.id, "updated", images, owner).await?;
    Ok(WriteAnswer::Updated { json: after.json })
}

async fn delete(connection: &mut Connection, plan: RecordPlan, context: &EventContext, event_id: Uuid) -> Result<WriteAnswer> {
    let object = &plan.object;
    let dialect = connection.dialect();
    let select = sql::get(dialect, &plan, true);
    let before = connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?;
    let Some(before) = before else { return Ok(WriteAnswer::Missing) };
    let deleted = connection.execute(sql::delete(dialect, &plan)).await.map_err(|error| error.on(object))?;
    if deleted == 0 {
        return Ok(WriteAnswer::Missing);
    }
    connection.count_rows(object.id, -1);
    let images = Images { before: &before.json, after: b"null", diff: b"null" };
    let owner = owner(object, &before);
    emit(connection, context, event_id, object, plan.id, "deleted", images, owner).await?;
    Ok(WriteAnswer::Deleted { id: plan.id })
}

/// `{ field: { before, after } }` of the business fields whose JSON differs.
fn diff(object: &Object, before: &Record, after: &Record) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (index, column) in object.columns.iter().enumerate().filter(|(_, column)| !column.is_system) {
        if before.cell(index) == after.cell(index) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(column.name.as_bytes());
        out.extend_from_slice(b"\":{\"before\":");
        out.extend_from_slice(before.cell(index));
        out.extend_from_slice(b",\"after\":");
        out.extend_from_slice(after.cell(index));
        out.push(b'}');
    }
    out.push(b'}');
    out
}

fn owner(object: &Object, record: &Record) -> Option<String> {
    let index = object.column_index(system::CREATED_BY)?;
    serde_json::from_slice(record.cell(index)).ok().flatten()
}

/// The JSON of an event's images.
struct Images<'a> {
    before: &'a [u8],
    after: &'a [u8],
    diff: &'a [u8],
}

#[allow(clippy::too_many_arguments, reason = "one call site a verb, and each argument is a different part of one envelope")]
async fn emit(
    connection: &mut Connection,
    context: &EventContext,
    event_id: Uuid,
    object: &Object,
    record_id: Uuid,
    op: &'static str,
    images: Images<'_>,
    owner: Option<String>,
) -> Result<()> {
    if !context.enabled {
        return Ok(());
    }
    let name = object.name();
    let mut payload = Vec::with_capacity(images.before.len() + images.after.len() + images.diff.len() + 256);
    payload.extend_from_slice(format!(r#"{{"object":"{name}","id":"{record_id}","op":"{op}","before":"#).as_bytes());
    payload.extend_from_slice(images.before);
    payload.extend_from_slice(b",\"after\":");
    payload.extend_from_slice(images.after);
    payload.extend_from_slice(b",\"diff\":");
    payload.extend_from_slice(images.diff);
    payload.extend_from_slice(b",\"actor\":");
    payload.extend_from_slice(context.actor.as_bytes());
    payload.push(b'}');
    let topic = format!("data.{name}.{op}");
    connection
        .emit(NewEvent {
            id: event_id,
            deliveries: context.subscriptions.deliveries(&topic),
            topic,
            payload: String::from_utf8(payload).map_err(Error::internal)?,
            object: Some(name.to_owned()),
            record_id: Some(record_id.to_string()),
            owner,
            depth: context.depth,
            occurred_at: context.now,
        })
        .await?;
    Ok(())
}
