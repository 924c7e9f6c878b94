//! The statements of one write, in its transaction.

use std::sync::Arc;

use blockbase_query::plan::{Assignment, Change, CreatePlan, RecordPlan, UpdatePlan, UpsertPlan};
use blockbase_query::{Access, Dialect, Scope, sql};
use blockbase_schema::{Code, Error, Object, Result, Retry, Value};
use blockbase_store::{Connection, DbError, NewEvent, NewRecord, Record};

use super::answer::{Upserted, WriteAnswer};
use super::explain::{broken_sum, check_references, explained, explained_new, is_checked_by_engine, values_after};
use crate::base::topic::RecordOp;
use crate::outbox::checks::within;
use crate::outbox::record_events::{Images, WriteContext, owner};
use crate::records::change::record_change;
use crate::records::deletion::delete_records;
use crate::records::links::LinkStep;
use crate::records::versions::{Condition, RecordAnswer, check_condition, precondition_failed, version_of};

/// A write that is ready to run.
pub(super) enum Step {
    Create(CreatePlan, Access),
    Update(UpdatePlan, Option<Condition>, Access),
    /// The accesses for a new record and for an existing one.
    Upsert(UpsertPlan, Box<(Access, Access)>),
    Delete(RecordPlan, Option<Condition>, Access),
    Links(Box<LinkStep>),
    /// The text is not a valid id.
    Missing,
}

impl Step {
    /// Whether the step also runs if the disk is nearly full, because it frees room.
    pub(super) fn frees_room(&self) -> bool {
        matches!(self, Step::Delete(..) | Step::Missing)
    }

    /// Adds the objects that the step locks first.
    pub(super) fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        match self {
            Step::Create(CreatePlan { object, .. }, access)
            | Step::Update(UpdatePlan { record: RecordPlan { object, .. }, .. }, _, access)
            | Step::Delete(RecordPlan { object, .. }, _, access) => {
                objects.push(Arc::clone(object));
                access.objects_into(objects);
            }
            Step::Upsert(plan, accesses) => {
                objects.push(Arc::clone(&plan.create.object));
                [&accesses.0, &accesses.1].into_iter().for_each(|access| access.objects_into(objects));
            }
            Step::Links(step) => step.objects_into(objects),
            Step::Missing => {}
        }
    }

    /// The record that the step changes or deletes.
    pub(super) fn record(&self) -> Option<&RecordPlan> {
        match self {
            Step::Update(plan, ..) => Some(&plan.record),
            Step::Delete(plan, ..) => Some(plan),
            Step::Create(..) | Step::Upsert(..) | Step::Links(_) | Step::Missing => None,
        }
    }
}

pub(super) async fn run_step(connection: &mut Connection, step: Step, context: &mut WriteContext) -> Result<WriteAnswer> {
    match step {
        Step::Create(plan, access) => {
            let (object, id) = (Arc::clone(&plan.object), plan.id);
            context.hold_with(connection, &object, &[&access]).await?;
            context.touched.count_new(plan.json.len())?;
            let answer = create(connection, plan, context).await?;
            context.made(&object, &access, vec![id]);
            Ok(answer)
        }
        Step::Update(plan, condition, access) => {
            let object = Arc::clone(&plan.record.object);
            context.hold_with(connection, &object, &[&access]).await?;
            context.decides_by(connection, &access, None).await?;
            update(connection, plan, condition.as_ref(), context, &access).await
        }
        Step::Upsert(plan, accesses) => {
            let (may_create, may_update) = &*accesses;
            let object = Arc::clone(&plan.create.object);
            context.hold_with(connection, &object, &[may_create, may_update]).await?;
            context.decides_by(connection, may_update, None).await?;
            upsert(connection, plan, context, (may_create, may_update)).await.map(WriteAnswer::Upserted)
        }
        Step::Delete(plan, condition, access) => {
            let object = Arc::clone(&plan.object);
            context.hold_with(connection, &object, &[&access]).await?;
            context.decides_by(connection, &access, None).await?;
            let gone = delete_records(connection, context, &object, &plan.scope, vec![plan.id], condition.as_ref()).await?;
            Ok(if gone.is_empty() { WriteAnswer::Missing } else { WriteAnswer::Deleted })
        }
        Step::Links(step) => {
            let change = step.change();
            Ok(step.run(connection, context).await?.map_or(WriteAnswer::Missing, |changed| WriteAnswer::Links(change, changed)))
        }
        Step::Missing => Ok(WriteAnswer::Missing),
    }
}

pub(crate) async fn create(connection: &mut Connection, plan: CreatePlan, context: &WriteContext) -> Result<WriteAnswer> {
    let object = &plan.object;
    check_references(connection, context, object, plan.values.iter().enumerate()).await?;
    let dialect = connection.dialect();
    let new = new_record(dialect, context, &plan)?;
    if let Err(error) = connection.insert_record(sql::insert(dialect, object, &[&plan]), new).await {
        return Err(explained_new(connection, context, &plan, None, error).await);
    }
    Ok(WriteAnswer::Created(answer_of(plan)))
}

/// What a new record needs besides its row.
fn new_record(dialect: Dialect, context: &WriteContext, plan: &CreatePlan) -> Result<NewRecord> {
    let document = match dialect {
        Dialect::Sqlite => plan.search_document(),
        Dialect::Postgres => None,
    };
    Ok(NewRecord { object_id: plan.object.id, document, event: created_event(context, plan)? })
}

pub(super) fn answer_of(plan: CreatePlan) -> RecordAnswer {
    RecordAnswer { version: version_of(&plan.object, plan.id, plan.version), json: plan.json }
}

pub(super) fn created_event(context: &WriteContext, plan: &CreatePlan) -> Result<Option<NewEvent>> {
    let images = Images { before: b"null", after: &plan.json, diff: b"null" };
    context.event(&plan.object, plan.id, RecordOp::Created, &images, plan.owner().map(str::to_owned))
}

async fn update(
    connection: &mut Connection,
    plan: UpdatePlan,
    condition: Option<&Condition>,
    context: &mut WriteContext,
    access: &Access,
) -> Result<WriteAnswer> {
    let UpdatePlan { record: target, change } = plan;
    let object = &target.object;
    let dialect = connection.dialect();
    if dialect == Dialect::Postgres && condition.is_none() && !change.assignments.is_empty() {
        let columns = change.assignments.iter().map(|(index, _)| *index);
        if is_changed_at_once(context, object, access, columns) {
            return update_at_once(connection, &target, &change, context).await;
        }
    }
    let select = sql::get(dialect, &target, true);
    let before = connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?;
    let Some(before) = before else { return Ok(WriteAnswer::Missing) };
    // The record counts because each of several writes in one transaction keeps its answer and its event in memory.
    context.touched.count(1, before.bytes())?;
    if !change.assignments.is_empty() {
        context.changes(connection, object, access, &[target.id]).await?;
    }
    let version = check_condition(&context.etags, condition, object, target.id, &before)?;
    if change.assignments.is_empty() {
        return Ok(WriteAnswer::Updated(RecordAnswer::new(object, target.id, before)?));
    }
    check_set_references(connection, context, object, &change).await?;
    let after = match connection.fetch_record(sql::update(dialect, &target, &change, version), &object.columns).await {
        Ok(after) => after,
        Err(error) => return Err(explained_change(connection, context, &target, &change, &before, error).await),
    };
    let Some(after) = after else {
        return if version.is_some() { Err(precondition_failed()) } else { Ok(WriteAnswer::Missing) };
    };
    context.touched.count(0, after.bytes())?;
    updated(connection, context, &target, &before, after).await
}

/// Writes the event of an update, and makes its answer.
async fn updated(
    connection: &mut Connection,
    context: &WriteContext,
    RecordPlan { object, id, .. }: &RecordPlan,
    before: &Record,
    after: Record,
) -> Result<WriteAnswer> {
    if let Some(event) = record_change(connection, context, object, *id, before, &after)? {
        connection.emit(event).await?;
    }
    Ok(WriteAnswer::Updated(RecordAnswer::new(object, *id, after)?))
}

/// Whether the server has nothing to check between the read that locks a record and the change of these columns.
fn is_changed_at_once(
    context: &WriteContext,
    object: &Object,
    access: &Access,
    mut columns: impl Iterator<Item = usize>,
) -> bool {
    // A batch limits the size of its records before it changes them.
    !context.is_batch
        && matches!(access.scope(), Scope::All | Scope::Own(_))
        && access.reads().is_empty()
        && access.checks().is_none()
        && columns.all(|index| object.columns[index].reference.as_ref().is_none_or(|known| is_checked_by_engine(context, known)))
}

/// Locks and changes a record with one statement of Postgres, because each statement is a round trip.
async fn update_at_once(
    connection: &mut Connection,
    target: &RecordPlan,
    change: &Change,
    context: &mut WriteContext,
) -> Result<WriteAnswer> {
    let object = &target.object;
    let (after, before) = match connection.fetch_change(sql::lock_and_update(target, change), &object.columns).await {
        Ok(Some(changed)) => changed,
        Ok(None) => return Ok(WriteAnswer::Missing),
        Err(error @ (DbError::OutOfRange | DbError::Check { .. })) => {
            let broken = broken_rule(connection, target, change).await;
            return Err(broken.unwrap_or_else(|| error.on(object)));
        }
        Err(error) => return Err(explained(connection, context, object, error, &[], Some(target.id)).await),
    };
    context.touched.count(1, before.bytes() + after.bytes())?;
    updated(connection, context, target, &before, after).await
}

/// The rule that a refused change breaks, if an atomic operator breaks it. The record decides about that. So it is read now, when
/// the transaction that has failed is over.
async fn broken_rule(connection: &mut Connection, target: &RecordPlan, change: &Change) -> Option<Error> {
    connection.undo().await.ok()?;
    let select = sql::get(connection.dialect(), target, false);
    let before = connection.fetch_record(select, &target.object.columns).await.ok()??;
    broken_sum(&target.object, &before, &change.assignments)
}

/// Checks that the records to which a change refers exist for the caller.
pub(super) async fn check_set_references(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    change: &Change,
) -> Result<()> {
    let mut set = Vec::new();
    for (index, assignment) in &change.assignments {
        if let Assignment::Set(value) = assignment {
            set.push((*index, value));
        }
    }
    check_references(connection, context, object, set).await
}

/// The domain error of an update.
pub(super) async fn explained_change(
    connection: &mut Connection,
    context: &WriteContext,
    target: &RecordPlan,
    change: &Change,
    before: &Record,
    error: DbError,
) -> Error {
    let (object, assignments) = (&target.object, &change.assignments);
    if let DbError::OutOfRange | DbError::Check { .. } = error {
        return broken_sum(object, before, assignments).unwrap_or_else(|| error.on(object));
    }
    let values = values_after(object, before, assignments);
    let values: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
    explained(connection, context, object, error, &values, Some(target.id)).await
}

async fn upsert(
    connection: &mut Connection,
    plan: UpsertPlan,
    context: &mut WriteContext,
    (may_create, may_update): (&Access, &Access),
) -> Result<Upserted> {
    let object = &plan.create.object;
    let dialect = connection.dialect();
    let before = match plan.can_conflict() {
        true if dialect == Dialect::Postgres
            && is_changed_at_once(context, object, may_update, plan.overwrites.iter().copied()) =>
        {
            if let Some(overwritten) = overwrite_at_once(connection, &plan, context).await? {
                return Ok(overwritten);
            }
            None
        }
        true => {
            let select = sql::conflicting(dialect, &plan);
            connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?
        }
        false => None,
    };
    let bytes = plan.create.json.len() + before.as_ref().map_or(0, Record::bytes);
    context.touched.count_new(bytes)?;
    let hidden = || Error::new(Code::Forbidden, "A record with these values exists, and you may not change it.");
    if let Some(before) = &before {
        let id = before.uuid(0).ok_or_else(|| Error::internal("a record without an id"))?;
        let is_within = match may_update.scope() {
            Scope::All => true,
            Scope::Own(actor) => owner(object, before).as_ref() == Some(actor),
            scope => !within(connection, object, scope, vec![id]).await?.is_empty(),
        };
        if !is_within {
            return Err(hidden());
        }
        context.changes(connection, object, may_update, &[id]).await?;
    }
    let given: Vec<(usize, &Value)> = plan.overwrites.iter().map(|index| (*index, &plan.create.values[*index])).collect();
    check_references(connection, context, object, given).await?;
    let statement = sql::upsert(dialect, &plan);
    let after = match &before {
        Some(_) => connection.fetch_record(statement, &object.columns).await,
        None => connection.upsert_new_record(statement, &object.columns, new_record(dialect, context, &plan.create)?).await,
    };
    let after = match after {
        Ok(after) => after.ok_or_else(hidden)?,
        Err(error) => {
            let besides = before.as_ref().and_then(|before| before.uuid(0));
            return Err(explained_new(connection, context, &plan.create, besides, error).await);
        }
    };
    match before {
        Some(before) => overwritten(connection, context, object, &before, after).await,
        // Another transaction inserted the record between the two statements, so its values before the upsert are not known.
        None if dialect == Dialect::Postgres && after.tail() == Some(1) => {
            Err(Error::retry(Retry::Contended, "two upserts of one record"))
        }
        None => {
            context.made(object, may_create, vec![plan.create.id]);
            Ok(Upserted { record: RecordAnswer::new(object, plan.create.id, after)?, created: true })
        }
    }
}

/// Locks and changes the existing record of an upsert with one statement of Postgres. `None` if there is no such record, or if
/// the caller may not change it.
async fn overwrite_at_once(
    connection: &mut Connection,
    plan: &UpsertPlan,
    context: &mut WriteContext,
) -> Result<Option<Upserted>> {
    let object = &plan.create.object;
    let (after, before) = match connection.fetch_change(sql::lock_and_overwrite(plan), &object.columns).await {
        Ok(Some(changed)) => changed,
        Ok(None) => return Ok(None),
        Err(error) => return Err(explained_new(connection, context, &plan.create, None, error).await),
    };
    context.touched.count_new(plan.create.json.len() + before.bytes())?;
    overwritten(connection, context, object, &before, after).await.map(Some)
}

/// Writes the event of an upsert that changed a record, and makes its answer.
async fn overwritten(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    before: &Record,
    after: Record,
) -> Result<Upserted> {
    let id = before.uuid(0).ok_or_else(|| Error::internal("a record without an id"))?;
    if let Some(event) = record_change(connection, context, object, id, before, &after)? {
        connection.emit(event).await?;
    }
    Ok(Upserted { record: RecordAnswer::new(object, id, after)?, created: false })
}
