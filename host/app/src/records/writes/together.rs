//! Creates the records of several operations of a batch with one statement. On Postgres, where each statement is a round trip, this
//! takes a fraction of the time.

use std::collections::VecDeque;
use std::sync::Arc;

use blockbase_query::plan::CreatePlan;
use blockbase_query::{Access, Dialect, sql};
use blockbase_schema::Result;
use blockbase_store::Connection;

use super::batch::Ready;
use super::bulk::insert_rows_max;
use super::explain::check_references;
use super::steps::{Step, created_event};
use crate::outbox::record_events::WriteContext;
use crate::outbox::touched::EVENT_BYTES_AT_ONCE;

/// The number of operations at the front that run together, at least 1. More than one create records of the same object, and no later
/// operation refers to their results (`is_wanted`, by the place from the front).
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

/// Creates the records of a group of operations, the first of which has the index `first`. `false` if that fails. Nothing has changed
/// then, and running the operations one by one shows which of them fails, and why.
///
/// # Errors
/// The errors after which the transaction cannot go on.
pub(super) async fn create_together(
    connection: &mut Connection,
    context: &mut WriteContext,
    group: &[Ready],
    indices: impl Iterator<Item = Option<usize>>,
) -> Result<bool> {
    let creates: Vec<(&CreatePlan, &Access)> = group.iter().filter_map(created).collect();
    let Some(((first, access), true)) = creates.first().copied().map(|first| (first, creates.len() == group.len())) else {
        return Ok(false);
    };
    let object = Arc::clone(&first.object);
    context.hold_with(connection, &object, &[access]).await?;
    let touched = context.touched;
    for (plan, _) in &creates {
        let is_refused = context.touched.count_new(plan.json.len()).is_err()
            || check_references(connection, context, &object, plan.values.iter().enumerate()).await.is_err();
        if is_refused {
            context.touched = touched;
            return Ok(false);
        }
    }
    let plans: Vec<&CreatePlan> = creates.iter().map(|(plan, _)| *plan).collect();
    connection.savepoint().await?;
    if connection.execute(sql::insert(connection.dialect(), &object, &plans)).await.is_err() {
        connection.back_to_savepoint().await?;
        context.touched = touched;
        return Ok(false);
    }
    connection.count_rows(object.id, i64::try_from(plans.len()).unwrap_or(i64::MAX));
    let mut events = Vec::with_capacity(plans.len());
    for plan in plans {
        events.extend(created_event(context, plan)?);
    }
    connection.emit_all(events).await?;
    for ((plan, access), index) in creates.iter().zip(indices) {
        context.operation = index;
        context.made(&object, access, vec![plan.id]);
    }
    Ok(true)
}
