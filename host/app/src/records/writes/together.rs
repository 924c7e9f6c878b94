//! Creates the records of several operations of a batch with one statement. On Postgres, where each statement is a round trip,
//! this takes a fraction of the time.

use std::collections::VecDeque;
use std::sync::Arc;

use blockbase_query::plan::CreatePlan;
use blockbase_query::{Access, Dialect, sql};
use blockbase_schema::{Code, Result};
use blockbase_store::{Connection, DbError, Savepoint};

use super::batch::Ready;
use super::bulk::insert_rows_max;
use super::explain::check_references;
use super::steps::{Step, created_event};
use crate::outbox::record_events::WriteContext;
use crate::outbox::touched::EVENT_BYTES_AT_ONCE;

/// The number of operations at the front that run together, at least 1. If there are more, each of them creates a record of the
/// same object, and no later operation refers to a result of theirs (`is_wanted`, by the place from the front).
///
/// If the object refers to itself, a record may depend on the one before it, so each runs by itself.
pub(super) fn group_in_front(dialect: Dialect, left: &VecDeque<Ready>, is_wanted: impl Fn(usize) -> bool) -> usize {
    if dialect == Dialect::Sqlite {
        return 1;
    }
    let Some(object) = left.front().and_then(created).map(|(plan, _)| &plan.object) else { return 1 };
    let refers_to_itself = |target: i64| target == object.id;
    if object.columns.iter().filter_map(|column| column.reference.as_ref()).any(|found| refers_to_itself(found.target_id)) {
        return 1;
    }
    let mut bytes = 0;
    let mut belongs = |place: usize, ready: &Ready| {
        let Some((plan, _)) = created(ready) else { return false };
        bytes += plan.json.len();
        plan.object.id == object.id && !is_wanted(place) && bytes <= EVENT_BYTES_AT_ONCE
    };
    let rows = insert_rows_max(object);
    left.iter().take(rows).enumerate().take_while(|(place, ready)| belongs(*place, ready)).count().max(1)
}

fn created(ready: &Ready) -> Option<(&CreatePlan, &Access)> {
    match ready {
        Ready::Step(step) => match &**step {
            Step::Create(plan, access) => Some((plan, access)),
            _ => None,
        },
        Ready::Waits(..) => None,
    }
}

/// Creates the records of a group of operations. `false` if one of them cannot be created. Nothing has changed then, and running
/// the operations one by one shows which of them fails, and why. `indices` are those with which checks report the operations.
///
/// # Errors
/// The errors that are not about a single record, such as those of the database.
pub(super) async fn create_together(
    connection: &mut Connection,
    context: &mut WriteContext,
    group: &[Ready],
    indices: impl Iterator<Item = Option<usize>>,
    savepoint: &mut Option<Savepoint>,
) -> Result<bool> {
    let creates: Vec<(&CreatePlan, &Access)> = group.iter().filter_map(created).collect();
    let Some((first, access)) = creates.first().copied().filter(|_| creates.len() == group.len()) else {
        return Ok(false);
    };
    let object = Arc::clone(&first.object);
    context.hold_with(connection, &object, &[access]).await?;
    let touched = context.touched;
    for (plan, _) in &creates {
        let mut checked = context.touched.count_new(plan.json.len());
        if checked.is_ok() {
            checked = check_references(connection, context, &object, plan.values.iter().enumerate()).await;
        }
        match checked {
            Ok(()) => {}
            Err(error) if matches!(error.code, Code::AnswerTooLarge | Code::ForeignKeyViolation) => {
                context.touched = touched;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
    let plans: Vec<&CreatePlan> = creates.iter().map(|(plan, _)| *plan).collect();
    let mut events = Vec::with_capacity(plans.len());
    for plan in &plans {
        events.extend(created_event(context, plan)?);
    }
    if !connection.has_room_for_events(&events) {
        context.touched = touched;
        return Ok(false);
    }
    let savepoint = connection.savepoint_here(savepoint).await?;
    match connection.execute(sql::insert(connection.dialect(), &object, &plans)).await {
        Ok(_) => {}
        Err(
            DbError::Unique { .. }
            | DbError::ForeignKey { .. }
            | DbError::NotNull { .. }
            | DbError::Check { .. }
            | DbError::OutOfRange,
        ) => {
            connection.back_to_savepoint(savepoint).await?;
            context.touched = touched;
            return Ok(false);
        }
        Err(error) => return Err(error.on(&object)),
    }
    connection.count_rows(object.id, i64::try_from(plans.len()).unwrap_or(i64::MAX));
    connection.emit_all(events).await?;
    for ((plan, access), index) in creates.iter().zip(indices) {
        context.operation = index;
        context.made(&object, access, vec![plan.id]);
    }
    Ok(true)
}
