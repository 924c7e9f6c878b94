//! Writes records: create, update, upsert and delete, one record or many, all or none.
//!
//! A write is validated and rendered before it waits for its turn. The transaction only runs the statements.

mod answer;
mod bulk;
mod change;
mod chosen;
mod explain;
mod steps;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use blockbase_query::plan::{Change, CreatePlan, RecordPlan, Stamp, UpdatePlan, UpsertPlan};
use blockbase_query::{Access, Action, Decision, GrantContext, Scope, not_readable, sql};
use blockbase_schema::json::{Members, write_string};
use blockbase_schema::{Code, ColumnType, Error, Issue, Object, Registry, Result, system};
use uuid::Uuid;

use crate::App;
use crate::base::offload::run_offloaded;
use crate::caller::Caller;
use crate::outbox::checks::check_fields;
use crate::outbox::record_events::WriteContext;
use crate::records::deletion::delete_records;
use crate::records::read::record_id;
use crate::records::versions::{Condition, RecordAnswer};
pub use answer::{BulkAnswer, Upserted, WriteAnswer, WrittenAnswer};
pub(crate) use bulk::insert_many;
use bulk::{at, change_many};
pub(crate) use change::record_change;
pub use chosen::Chosen;
use chosen::Found;
pub(crate) use steps::create;
use steps::{Step, run_step, upsert};

/// One write, as the caller requests it.
#[derive(Debug)]
pub enum WriteRequest {
    Create { object: String, values: Members },
    Update { object: String, id: String, changes: Members, condition: Option<Condition> },
    Delete { object: String, id: String, condition: Option<Condition> },
}

impl WriteRequest {
    /// The number of bytes of the values in the request.
    fn bytes(&self) -> usize {
        match self {
            WriteRequest::Create { values, .. } => values.bytes(),
            WriteRequest::Update { changes, .. } => changes.bytes(),
            WriteRequest::Delete { .. } => 0,
        }
    }
}

impl App {
    /// The new record.
    pub async fn create(&self, caller: &Caller, object: &str, values: Members) -> Result<RecordAnswer> {
        match self.write_one(caller, &WriteRequest::Create { object: object.to_owned(), values }).await? {
            WriteAnswer::Created(record) => Ok(record),
            _ => Err(Error::internal("a create answered something else")),
        }
    }

    /// Changes a record and returns it as it is afterwards. `None` if no record was written.
    ///
    /// # Errors
    /// `precondition_failed` if the record is not in the state that `condition` requires; otherwise the errors of
    /// [`App::create`].
    pub async fn update(
        &self,
        caller: &Caller,
        object: &str,
        id: &str,
        changes: Members,
        condition: Option<Condition>,
    ) -> Result<Option<RecordAnswer>> {
        let request = WriteRequest::Update { object: object.to_owned(), id: id.to_owned(), changes, condition };
        match self.write_one(caller, &request).await? {
            WriteAnswer::Updated(record) => Ok(Some(record)),
            _ => Ok(None),
        }
    }

    /// Deletes a record. Returns whether there was a record to delete.
    ///
    /// # Errors
    /// `precondition_failed` if the record is not in the state that `condition` requires; `foreign_key_violation` if a record
    /// that stays refers to it; `answer_too_large` if too many records or links would be deleted or changed with it.
    pub async fn delete(&self, caller: &Caller, object: &str, id: &str, condition: Option<Condition>) -> Result<bool> {
        let request = WriteRequest::Delete { object: object.to_owned(), id: id.to_owned(), condition };
        Ok(matches!(self.write_one(caller, &request).await?, WriteAnswer::Deleted))
    }

    async fn write_one(&self, caller: &Caller, request: &WriteRequest) -> Result<WriteAnswer> {
        self.on_schema(caller, move |registry| async move {
            let context = self.write_context(caller, &registry);
            let step = run_offloaded(request.bytes(), || self.step(caller, &context, request))?;
            let mut answers = self.run_steps(context, vec![step]).await?;
            let answer = answers.pop().ok_or_else(|| Error::internal("a write gave no answer"))?;
            self.shown(caller, &registry, request, answer).await
        })
        .await
    }

    /// Runs several writes. Either all or none of them take effect. The answers have the order of the writes.
    ///
    /// # Errors
    /// The first failure, with the place of the failing write in its message; `answer_too_large` if the records that are changed
    /// or deleted are too large together.
    pub async fn write_all(&self, caller: &Caller, requests: Vec<WriteRequest>) -> Result<Vec<WriteAnswer>> {
        self.check_bulk_size(requests.len())?;
        let requests = &requests;
        self.on_schema(caller, move |registry| async move {
            let context = self.write_context(caller, &registry);
            let steps = run_offloaded(requests.iter().map(WriteRequest::bytes).sum(), || {
                let requests = requests.iter().enumerate();
                requests
                    .map(|(index, request)| self.step(caller, &context, request).map_err(|error| at(index, error)))
                    .collect::<Result<Vec<_>>>()
            })?;
            let answers = self.run_steps(context, steps).await?;
            let mut shown = Vec::with_capacity(answers.len());
            for (answer, request) in answers.into_iter().zip(requests) {
                shown.push(self.shown(caller, &registry, request, answer).await?);
            }
            Ok(shown)
        })
        .await
    }

    /// Creates several records of one object. Either all or none of them are created. Returns their ids, in order.
    ///
    /// # Errors
    /// The first failure, with the place of the failing record in its message.
    pub async fn create_many(&self, caller: &Caller, object: &str, records: Vec<Members>) -> Result<BulkAnswer> {
        let records = &records;
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Create)?;
            self.check_bulk_size(records.len())?;
            let mut context = self.write_context(caller, &registry);
            let stamp = stamp(&context);
            let plans = run_offloaded(records.iter().map(Members::bytes).sum(), || {
                let records = records.iter().enumerate();
                let plan = |values: &Members| {
                    let access = access.naming(&object, names(values))?;
                    let plan = CreatePlan::new(&object, &access, values, self.clock.id(context.now), &stamp)
                        .map_err(|error| without_unknown(caller, &context.grant_context(), &object, error))?;
                    Ok((plan, access))
                };
                records.map(|(index, values)| plan(values).map_err(|error| at(index, error))).collect::<Result<Vec<_>>>()
            })?;
            self.store
                .write(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        let (plans, accesses): (Vec<CreatePlan>, Vec<Access>) = plans.into_iter().unzip();
                        let ids = insert_many(connection, &context, &object, plans).await?;
                        // Records that the same grants allow are checked together.
                        let mut made: BTreeMap<Option<&[usize]>, (&Access, Vec<Uuid>)> = BTreeMap::new();
                        for (id, access) in ids.iter().zip(&accesses) {
                            made.entry(access.allowed_by()).or_insert((access, Vec::new())).1.push(*id);
                        }
                        made.into_values().for_each(|(access, ids)| context.made(&object, access, ids));
                        context.check_rows(connection).await?;
                        Ok(BulkAnswer { ids })
                    })
                })
                .await
        })
        .await
    }

    /// Deletes those of the chosen records that exist and that the caller may delete. Returns their ids, in the caller's order.
    ///
    /// # Errors
    /// The errors of [`App::find_chosen`]; `foreign_key_violation` if one is still referenced; `answer_too_large` if the records
    /// are too large, together with the records that are deleted or changed with them. After an error, no record is deleted.
    pub async fn delete_many(&self, caller: &Caller, object: &str, chosen: &Chosen) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Delete)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            let mut context = self.write_context(caller, &registry);
            let scope = access.scope().clone();
            self.store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        let ids = found.narrowed(connection, &mut context, &object).await?;
                        let gone = delete_records(connection, &mut context, &object, &scope, ids.clone(), None).await?;
                        Ok(BulkAnswer { ids: ids.into_iter().filter(|id| gone.contains(id)).collect() })
                    })
                })
                .await
        })
        .await
    }

    /// Makes the same change to those of the chosen records that exist and that the caller may change. Returns their ids, in the
    /// caller's order.
    ///
    /// # Errors
    /// The errors of [`App::find_chosen`]; `answer_too_large` if the records are too large together; otherwise the error of the
    /// change of one of them. After an error, no record is changed.
    pub async fn update_many(&self, caller: &Caller, object: &str, chosen: &Chosen, changes: &Members) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Update)?;
            let access = to_change(caller, &self.grant_context(&registry), &object, access, changes)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            let mut context = self.write_context(caller, &registry);
            let bytes = changes.bytes();
            let change = run_offloaded(bytes, || Change::new(&object, &access, changes, stamp(&context)))?;
            self.store
                .write(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        let ids = found.narrowed(connection, &mut context, &object).await?;
                        let ids = change_many(connection, &mut context, &object, &access, (&change, bytes), ids).await?;
                        context.check_rows(connection).await?;
                        Ok(BulkAnswer { ids })
                    })
                })
                .await
        })
        .await
    }

    /// Returns the ids of the records that [`App::update_many`] would change, without changing them. Values are checked against
    /// their fields, but not against other records.
    ///
    /// # Errors
    /// The errors of [`App::update_many`], except those that only the change itself can find.
    pub async fn update_many_dry(&self, caller: &Caller, object: &str, chosen: &Chosen, changes: &Members) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Update)?;
            let access = to_change(caller, &self.grant_context(&registry), &object, access, changes)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            // This call writes nothing, so it does not count as a write.
            let stamp = stamp(&self.context_of(caller, &registry, false));
            run_offloaded(changes.bytes(), || Change::new(&object, &access, changes, stamp))?;
            self.reached(caller, &registry, object, access, found).await
        })
        .await
    }

    /// Returns the ids of the chosen records that [`App::delete_many`] would delete, without deleting them. Dependent records are
    /// not listed.
    ///
    /// # Errors
    /// The errors of [`App::delete_many`], except those that only the deletion itself can find.
    pub async fn delete_many_dry(&self, caller: &Caller, object: &str, chosen: &Chosen) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Delete)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            self.reached(caller, &registry, object, access, found).await
        })
        .await
    }

    /// Returns those of the found records that exist and are within the access of the caller.
    async fn reached(
        &self,
        caller: &Caller,
        registry: &Registry,
        object: Arc<Object>,
        access: Access,
        Found { ids, .. }: Found,
    ) -> Result<BulkAnswer> {
        self.store
            .read_rows(self.by(caller), Some(registry.version), move |connection| {
                Box::pin(async move {
                    let statement = sql::visible(connection.dialect(), &object, access.scope(), ids.clone());
                    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(&object))?;
                    let found = rows.iter().map(|row| row.uuid(0)).collect::<Result<HashSet<Uuid>, _>>()?;
                    let ids: Vec<Uuid> = ids.into_iter().filter(|id| found.contains(id)).collect();
                    check_fields(connection, &object, &access, &ids).await?;
                    Ok(BulkAnswer { ids })
                })
            })
            .await
    }

    /// Inserts a record, or updates the record with the same values in the unique columns `target`.
    ///
    /// # Errors
    /// `invalid_upsert_target`; `forbidden` if the caller may not change the existing record; otherwise the errors of
    /// [`App::create`].
    pub async fn upsert(&self, caller: &Caller, object: &str, values: Members, target: &[String]) -> Result<Upserted> {
        let values = &values;
        self.on_schema(caller, move |registry| async move {
            let (object, may_create) = caller.object(&self.grant_context(&registry), object, Action::Create)?;
            let (_, may_update) = caller.object(&self.grant_context(&registry), object.name(), Action::Update)?;
            let (may_create, may_update) =
                (may_create.naming(&object, names(values))?, may_update.naming(&object, names(values))?);
            let may_update =
                reading(caller, &self.grant_context(&registry), &object, may_update, target.iter().map(String::as_str))?;
            let mut context = self.write_context(caller, &registry);
            let id = self.clock.id(context.now);
            let stamp = stamp(&context);
            let known = self.known_to(caller, &registry);
            UpsertPlan::check_target(known.object(object.name()).unwrap_or(&object), target)?;
            let plan =
                run_offloaded(values.bytes(), || UpsertPlan::new(&object, &may_create, &may_update, values, target, id, stamp))
                    .map_err(|error| without_unknown(caller, &self.grant_context(&registry), &object, error))?;
            let written = Arc::clone(&object);
            let upserted = self
                .store
                .write(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&may_create, &may_update]).await?;
                        let upserted = upsert(connection, plan, &mut context, (&may_create, &may_update)).await?;
                        context.check_rows(connection).await?;
                        Ok(upserted)
                    })
                })
                .await?;
            let Upserted { record, created } = upserted;
            Ok(Upserted { record: self.readable(caller, &registry, &written, values, record, created).await?, created })
        })
        .await
    }

    fn step(&self, caller: &Caller, context: &WriteContext, request: &WriteRequest) -> Result<Step> {
        let stamp = stamp(context);
        Ok(match request {
            WriteRequest::Create { object, values } => {
                let (object, access) = caller.object(&context.grant_context(), object, Action::Create)?;
                let access = access.naming(&object, names(values))?;
                let plan = CreatePlan::new(&object, &access, values, self.clock.id(context.now), &stamp)
                    .map_err(|error| without_unknown(caller, &context.grant_context(), &object, error))?;
                Step::Create(plan, access)
            }
            WriteRequest::Update { object, id, changes, condition } => {
                let (object, access) = caller.object(&context.grant_context(), object, Action::Update)?;
                let access = to_change(caller, &context.grant_context(), &object, access, changes)?;
                match record_id(id) {
                    Some(id) => Step::Update(UpdatePlan::new(&object, &access, changes, id, stamp)?, condition.clone(), access),
                    None => Step::Missing,
                }
            }
            WriteRequest::Delete { object, id, condition } => {
                let (object, access) = caller.object(&context.grant_context(), object, Action::Delete)?;
                let plan = record_id(id).map(|id| RecordPlan::new(&object, &access, id));
                plan.map_or(Step::Missing, |plan| Step::Delete(plan, condition.clone(), access))
            }
        })
    }

    /// The answer with the parts that the caller may see.
    async fn shown(
        &self,
        caller: &Caller,
        registry: &Registry,
        request: &WriteRequest,
        answer: WriteAnswer,
    ) -> Result<WriteAnswer> {
        let object = |name: &str| registry.object(name).ok_or_else(|| Error::unknown_object(name));
        match (request, answer) {
            (WriteRequest::Create { object: name, values }, WriteAnswer::Created(record)) => {
                Ok(WriteAnswer::Created(self.readable(caller, registry, object(name)?, values, record, true).await?))
            }
            (WriteRequest::Update { object: name, changes, .. }, WriteAnswer::Updated(record)) => {
                Ok(WriteAnswer::Updated(self.readable(caller, registry, object(name)?, changes, record, false).await?))
            }
            (_, answer) => Ok(answer),
        }
    }

    /// The parts of a written record that its writer may see. A writer who may not read it gets only its id and the values that
    /// they sent. A writer sees all fields of a new record, unless a condition or a list of fields limits what they may read.
    async fn readable(
        &self,
        caller: &Caller,
        registry: &Registry,
        object: &Arc<Object>,
        sent: &Members,
        answer: RecordAnswer,
        is_new: bool,
    ) -> Result<RecordAnswer> {
        let reads = caller.access_to(&self.grant_context(registry), object.name(), Action::Read).ok();
        let is_seen = match reads.as_ref().map(Access::scope) {
            Some(Scope::All) => true,
            Some(Scope::Seen(_)) => {
                let id = Uuid::from_bytes(answer.version.id).to_string();
                // The record is written, so the call succeeds even if this read fails.
                return match self.get(caller, object.name(), &id, &[]).await {
                    Ok(Some(read)) => Ok(read),
                    Ok(None) | Err(_) => sent_only(object, sent, answer),
                };
            }
            Some(Scope::Where(_)) => {
                let scope = reads.as_ref().map_or(Scope::Nothing, |reads| reads.scope().clone());
                let seen = self.seen(caller, None, registry, object, &scope, vec![Uuid::from_bytes(answer.version.id)]);
                // The record is written, so the call succeeds even if this read fails.
                seen.await.is_ok_and(|seen| !seen.is_empty())
            }
            // If the caller's grants have conditions and allow no rows, the caller does not see even a new record.
            Some(Scope::Nothing) if matches!(caller.reads(object.name()), Some(Decision::Rules(_))) => false,
            // If the caller may not know every field, they do not see all of a new record either.
            _ if is_new && self.knows_less(caller, registry, object) => false,
            _ if is_new => true,
            Some(Scope::Own(actor)) => owner_of(&answer.json)?.as_ref() == Some(actor),
            Some(Scope::Nothing) | None => false,
        };
        if is_seen { Ok(answer) } else { sent_only(object, sent, answer) }
    }

    /// Whether an object has fields that the caller does not know.
    fn knows_less(&self, caller: &Caller, registry: &Registry, object: &Object) -> bool {
        let grant_context = self.grant_context(registry);
        let known = [caller.known_objects(&grant_context), caller.writable_objects(&grant_context, Action::Create)];
        known.iter().any(|known| known.contains_key(&object.id))
    }

    async fn run_steps(&self, mut context: WriteContext, steps: Vec<Step>) -> Result<Vec<WriteAnswer>> {
        // Deletions continue even if the disk is nearly full.
        if !steps.iter().all(|step| matches!(step, Step::Delete(..) | Step::Missing)) {
            self.store.check_room()?;
        }
        self.store
            .write_in_reserve(self.by(&context.caller), move |connection| {
                Box::pin(async move {
                    let several = steps.len() > 1;
                    let mut answers = Vec::with_capacity(steps.len());
                    for (index, step) in steps.into_iter().enumerate() {
                        let answer = run_step(connection, step, &mut context).await;
                        answers.push(if several { answer.map_err(|error| at(index, error))? } else { answer? });
                    }
                    context.check_rows(connection).await?;
                    Ok(answers)
                })
            })
            .await
    }
}

/// The names in a body.
fn names(values: &Members) -> impl Iterator<Item = &str> {
    values.0.iter().map(|(name, _)| name.as_str())
}

/// The access for a change, which depends on the fields that it names and the fields that it adds to.
///
/// # Errors
/// `forbidden` with `field`.
fn to_change(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    object: &Object,
    access: Access,
    changes: &Members,
) -> Result<Access> {
    let access = access.naming(object, names(changes))?;
    let adds = |name: &str, raw: &str| {
        raw.trim_start().starts_with('{') && object.column(name).is_some_and(|column| column.ty != ColumnType::Json)
    };
    let added = changes.0.iter().filter(|(name, raw)| adds(name, raw.get())).map(|(name, _)| name.as_str());
    reading(caller, grant_context, object, access, added)
}

/// The access for a write that reads the values of columns.
fn reading<'c>(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    object: &Object,
    access: Access,
    columns: impl IntoIterator<Item = &'c str>,
) -> Result<Access> {
    let mut columns = columns.into_iter();
    match (caller.reads(object.name()), caller.access_to(grant_context, object.name(), Action::Read)) {
        (Some(Decision::Rules(_)), Ok(reader)) => access.reading(&reader, columns),
        // If the grants to read have no conditions and list no fields, the right to write is enough.
        (Some(Decision::Rows(_)), _) => Ok(access),
        _ if !caller.known_objects(grant_context).contains_key(&object.id) => Ok(access),
        _ => columns.next().map_or(Ok(access), |name| Err(not_readable(name))),
    }
}

/// The error of a new record. If it names a field that the caller does not know, it is replaced by an error that names no field.
fn without_unknown(caller: &Caller, grant_context: &GrantContext<'_>, object: &Object, error: Error) -> Error {
    let is_unknown = |field: &str| object.column(field).is_some() && !caller.may_name(grant_context, object, field);
    let names_unknown = |issue: &Issue| matches!(issue, Issue::Field { field, .. } if is_unknown(field));
    match error.field.as_deref().is_some_and(is_unknown) || error.issues.iter().any(names_unknown) {
        true => Error::new(Code::NotNullViolation, "The record needs a value of a field that you may not write."),
        false => error,
    }
}

/// Reduces an answer to the id of the record and the values that the caller sent. The result of an atomic operator does not count
/// as sent.
fn sent_only(object: &Object, sent: &Members, answer: RecordAnswer) -> Result<RecordAnswer> {
    let record: Members = serde_json::from_slice(&answer.json).map_err(Error::internal)?;
    let is_sent = |name: &str| {
        sent.0.iter().any(|(known, raw)| {
            let is_plain = object.column(name).is_some_and(|column| column.ty == ColumnType::Json || !raw.get().starts_with('{'));
            known == name && is_plain && !system::NAMES.contains(&name)
        })
    };
    let mut kept = vec![b'{'];
    for (name, raw) in record.0.iter().filter(|(name, _)| name == system::ID || is_sent(name)) {
        if kept.len() > 1 {
            kept.push(b',');
        }
        write_string(&mut kept, name);
        kept.push(b':');
        kept.extend_from_slice(raw.get().as_bytes());
    }
    kept.push(b'}');
    Ok(RecordAnswer { json: kept, version: answer.version })
}

/// The value of `created_by` in a record's JSON.
fn owner_of(json: &[u8]) -> Result<Option<String>> {
    let record: Members = serde_json::from_slice(json).map_err(Error::internal)?;
    let owner = record.0.iter().find(|(name, _)| name == system::CREATED_BY);
    Ok(owner.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok()).flatten())
}

fn stamp(context: &WriteContext) -> Stamp {
    Stamp { actor_id: context.actor_id.clone(), now: context.now, texts: context.texts }
}
