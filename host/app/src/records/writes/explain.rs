//! Finds out why the database refused a write, with the same errors on both engines.

use blockbase_query::ddl::unique_index_columns;
use blockbase_query::plan::{Assignment, CreatePlan};
use blockbase_query::{Action, Scope, sql};
use blockbase_schema::{Code, Error, Object, Reference, Result, Value};
use blockbase_store::{Connection, DbError, Record};
use uuid::Uuid;

use crate::outbox::record_events::WriteContext;

/// Whether the caller may read every row of the object that a reference leads to. Then the engine's foreign key checks it.
pub(super) fn is_checked_by_engine(context: &WriteContext, reference: &Reference) -> bool {
    let access = context.caller.access_to(&context.grant_context(), &reference.target, Action::Read);
    access.is_ok_and(|access| *access.scope() == Scope::All)
}

/// Checks that the rows to which a row refers exist for the caller. A row that the caller may not read counts as missing.
pub(super) async fn check_references(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    values: impl IntoIterator<Item = (usize, &Value)> + Send,
) -> Result<()> {
    let given: Vec<(usize, Uuid)> = values
        .into_iter()
        .filter_map(|(index, value)| match (&object.columns[index].reference, value) {
            (Some(_), Value::Uuid(id)) => Some((index, *id)),
            _ => None,
        })
        .collect();
    for (index, id) in given {
        let Some(reference) = &object.columns[index].reference else { continue };
        if is_checked_by_engine(context, reference) {
            continue;
        }
        let access = context.caller.access_to(&context.grant_context(), &reference.target, Action::Read).ok();
        let is_there = match (access, context.registry.object(&reference.target)) {
            (_, Some(target)) if context.new_records.contains(&(target.id, id)) => true,
            (Some(access), Some(target)) => {
                let statement = sql::visible(connection.dialect(), target, access.scope(), vec![id]);
                !connection.fetch_rows(statement).await.map_err(|error| error.on(target))?.is_empty()
            }
            _ => false,
        };
        if !is_there {
            return Err(DbError::ForeignKey { relationship: Some(reference.relationship_id) }.on(object));
        }
    }
    Ok(())
}

/// The domain error of a new row.
pub(super) async fn explained_new(
    connection: &mut Connection,
    context: &WriteContext,
    plan: &CreatePlan,
    besides: Option<Uuid>,
    error: DbError,
) -> Error {
    let values: Vec<Option<&Value>> = plan.values.iter().map(Some).collect();
    explained(connection, context, &plan.object, error, &values, besides).await
}

/// The domain error of a write. `values` are the values that the row would have, as far as they are known.
///
/// SQLite does not report which reference has no target. If several unique constraints are violated, it reports the newest one,
/// and Postgres the oldest one. So further queries find the violation.
pub(super) async fn explained(
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
                    let error = DbError::Unique { columns, index: None };
                    return without_hidden(context, object, error).unwrap_or_else(|error| error.on(object));
                }
            }
        }
        _ => {}
    }
    without_hidden(context, object, error).unwrap_or_else(|error| error.on(object))
}

/// Removes the names of columns that the caller does not know from the error of a conflict. If there is nothing to hide, returns
/// the error itself.
fn without_hidden(context: &WriteContext, object: &Object, error: DbError) -> std::result::Result<Error, DbError> {
    let DbError::Unique { columns, index } = &error else { return Err(error) };
    let of_index = || index.as_deref().map(|index| unique_index_columns(object, index)).unwrap_or_default();
    let columns = if columns.is_empty() { of_index() } else { columns.clone() };
    match columns.iter().all(|column| context.caller.may_name(&context.grant_context(), object, column)) {
        true => Err(error),
        false => {
            let message = format!("A record of `{}` with these values exists already.", object.name());
            Ok(Error::new(Code::UniqueViolation, message))
        }
    }
}

/// The first rule, in the order of the columns, that an atomic operator broke. The engines may find another rule first, and
/// Postgres does not report which one.
pub(super) fn broken_sum(object: &Object, before: &Record, assignments: &[(usize, Assignment)]) -> Option<Error> {
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

/// The values of a stored record after an update, as far as they are known without running the update.
pub(super) fn values_after(object: &Object, before: &Record, assignments: &[(usize, Assignment)]) -> Vec<Option<Value>> {
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
