//! Plans writes: checks the rights of the caller, and the values against their fields. Writes without references are planned
//! before their transaction begins.

use std::sync::Arc;

use blockbase_query::plan::{CreatePlan, RecordPlan, Stamp, UpdatePlan, UpsertPlan};
use blockbase_query::{Access, Action, GrantContext, not_readable};
use blockbase_schema::json::Members;
use blockbase_schema::{Code, ColumnType, Error, Issue, Object, Result};

use super::request::WriteRequest;
use super::steps::Step;
use crate::caller::Caller;
use crate::outbox::record_events::WriteContext;
use crate::records::links::{LinkStep, Linkable};
use crate::records::read::record_id;

/// The rights with which a caller may make a write.
pub(super) enum Admitted {
    Object(Arc<Object>, Access),
    /// For an upsert: the accesses for a new record and for an existing one.
    Upsert(Arc<Object>, Access, Access),
    Links(Linkable),
}

impl Admitted {
    /// Adds the objects that the write locks.
    pub(super) fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        match self {
            Admitted::Object(object, access) => {
                objects.push(Arc::clone(object));
                access.objects_into(objects);
            }
            Admitted::Upsert(object, may_create, may_update) => {
                objects.push(Arc::clone(object));
                may_create.objects_into(objects);
                may_update.objects_into(objects);
            }
            Admitted::Links(linkable) => linkable.objects_into(objects),
        }
    }
}

/// Requires the rights that a write needs on its object and on the fields that it names. It reads no values.
///
/// # Errors
/// `unauthorized`, `forbidden`; `not_found` for an unknown object or relation.
pub(super) fn admit(context: &WriteContext, request: &WriteRequest) -> Result<Admitted> {
    let (caller, grant_context) = (&context.caller, context.grant_context());
    let right = |action: Action| caller.object(&grant_context, request.object(), action);
    Ok(match request {
        WriteRequest::Create { values, .. } => {
            let (object, access) = right(Action::Create)?;
            let access = access.naming(&object, names(values))?;
            Admitted::Object(object, access)
        }
        WriteRequest::Update { changes, .. } => {
            let (object, access) = right(Action::Update)?;
            let access = access.naming(&object, names(changes))?;
            Admitted::Object(object, access)
        }
        WriteRequest::Upsert { values, .. } => {
            let ((object, may_create), (_, may_update)) = (right(Action::Create)?, right(Action::Update)?);
            let may_create = may_create.naming(&object, names(values))?;
            let may_update = may_update.naming(&object, names(values))?;
            Admitted::Upsert(object, may_create, may_update)
        }
        WriteRequest::Delete { .. } => {
            let (object, access) = right(Action::Delete)?;
            Admitted::Object(object, access)
        }
        WriteRequest::Links { object, relation, .. } => {
            Admitted::Links(Linkable::find(caller, &grant_context, object, relation)?)
        }
    })
}

/// # Errors
/// The errors of [`admit`] and of [`plan_admitted`].
pub(super) fn plan(context: &WriteContext, request: &WriteRequest) -> Result<Step> {
    plan_admitted(context, request, admit(context, request)?)
}

/// Plans a write with the rights that [`admit`] gave for it.
///
/// # Errors
/// `forbidden` for a value that the write reads; the errors of the values.
pub(super) fn plan_admitted(context: &WriteContext, request: &WriteRequest, admitted: Admitted) -> Result<Step> {
    let (caller, grant_context) = (&context.caller, context.grant_context());
    let stamp = stamp(context);
    Ok(match (request, admitted) {
        (WriteRequest::Create { values, .. }, Admitted::Object(object, access)) => {
            let plan = CreatePlan::new(&object, &access, values, context.new_id(), &stamp)
                .map_err(|error| without_unknown(caller, &grant_context, &object, error))?;
            Step::Create(plan, access)
        }
        (WriteRequest::Update { id, changes, condition, .. }, Admitted::Object(object, access)) => {
            let access = adding(caller, &grant_context, &object, access, changes)?;
            match record_id(id) {
                Some(id) => Step::Update(UpdatePlan::new(&object, &access, changes, id, stamp)?, condition.clone(), access),
                None => Step::Missing,
            }
        }
        (WriteRequest::Upsert { values, target, .. }, Admitted::Upsert(object, may_create, may_update)) => {
            let may_update = reading(caller, &grant_context, &object, may_update, target.iter().map(String::as_str))?;
            UpsertPlan::check_target(context.known().object(object.name()).unwrap_or(&object), target)?;
            let plan = UpsertPlan::new(&object, &may_create, &may_update, values, target, context.new_id(), stamp)
                .map_err(|error| without_unknown(caller, &grant_context, &object, error))?;
            Step::Upsert(plan, Box::new((may_create, may_update)))
        }
        (WriteRequest::Delete { id, condition, .. }, Admitted::Object(object, access)) => {
            let plan = record_id(id).map(|id| RecordPlan::new(&object, &access, id));
            plan.map_or(Step::Missing, |plan| Step::Delete(plan, condition.clone(), access))
        }
        (WriteRequest::Links { id, ids, change, .. }, Admitted::Links(linkable)) => {
            LinkStep::new(context, linkable, id, ids, *change)?.map_or(Step::Missing, |step| Step::Links(Box::new(step)))
        }
        _ => return Err(Error::internal("the rights of another write")),
    })
}

pub(super) fn stamp(context: &WriteContext) -> Stamp {
    Stamp { actor_id: context.actor_id.clone(), now: context.now, texts: context.texts }
}

/// The names in a body.
pub(super) fn names(values: &Members) -> impl Iterator<Item = &str> {
    values.0.iter().map(|(name, _)| name.as_str())
}

/// The access for a change, which depends on the fields that it names and the fields that it adds to.
///
/// # Errors
/// `forbidden` with `field`.
pub(super) fn to_change(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    object: &Object,
    access: Access,
    changes: &Members,
) -> Result<Access> {
    let access = access.naming(object, names(changes))?;
    adding(caller, grant_context, object, access, changes)
}

/// The access for a change that adds to fields, so that it reads their values.
fn adding(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    object: &Object,
    access: Access,
    changes: &Members,
) -> Result<Access> {
    let adds = |name: &str, raw: &str| {
        raw.trim_start().starts_with('{') && object.column(name).is_some_and(|column| column.ty != ColumnType::Json)
    };
    let added = changes.0.iter().filter(|(name, raw)| adds(name, raw.get())).map(|(name, _)| name.as_str());
    reading(caller, grant_context, object, access, added)
}

/// The access for a write that reads the values of columns. If a right of the caller on the object depends on a condition or a list
/// of fields, the caller also has to be able to read these values. Otherwise the right to write is enough.
///
/// # Errors
/// `forbidden` with `field` for a column that the caller can read in no row.
fn reading<'c>(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    object: &Object,
    access: Access,
    columns: impl IntoIterator<Item = &'c str>,
) -> Result<Access> {
    let mut columns = columns.into_iter().peekable();
    let Some(first) = columns.peek().copied() else { return Ok(access) };
    match caller.reads(object.name()) {
        Some(decision) if decision.is_all() => Ok(access),
        _ if !caller.has_rules_on(object.name()) => Ok(access),
        None => Err(not_readable(first)),
        Some(_) => access.reading(&caller.access_to(grant_context, object.name(), Action::Read)?, columns),
    }
}

/// The error of a new record. If it names a field that the caller does not know, it is replaced by an error that names no field.
pub(super) fn without_unknown(caller: &Caller, grant_context: &GrantContext<'_>, object: &Object, error: Error) -> Error {
    let is_unknown = |field: &str| object.column(field).is_some() && !caller.may_name(grant_context, object, field);
    let names_unknown = |issue: &Issue| matches!(issue, Issue::Field { field, .. } if is_unknown(field));
    match error.field.as_deref().is_some_and(is_unknown) || error.issues.iter().any(names_unknown) {
        true => Error::new(Code::NotNullViolation, "The record needs a value of a field that you may not write."),
        false => error,
    }
}
