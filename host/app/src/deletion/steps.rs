//! The deletion of one record with which more goes along than one transaction may touch: in several of them, from the ends of what refers
//! to it.
//!
//! Nothing else may do this than what has to come to an end whatever the size: between two steps a part of it is gone, and others see that.

use std::collections::HashSet;
use std::sync::Arc;

use blockbase_query::plan::RecordPlan;
use blockbase_query::{Scope, sql};
use blockbase_schema::{Object, OnDelete, Result};
use blockbase_store::Connection;
use uuid::Uuid;

use super::{Beyond, check_restrictions, clear_one, delete_records, referring_unseen};
use crate::links::{Gone, take_some_links};
use crate::record_events::{WriteContext, owner};
use crate::touched::too_large;

/// Records that are followed before the first of them are forgotten.
const FOLLOWED_MAX: usize = 10_000;
/// How often they are forgotten in one step. What goes on for longer leads in a circle.
const FORGOTTEN_MAX: usize = 100;
/// Records whose references are cleared in one step.
const CLEARED_MAX: usize = 500;
/// Their bytes, but for the last.
const CLEARED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Links that are taken in one step.
const TAKEN_LINKS_MAX: usize = 10_000;

/// How far a deletion came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The record is gone; `true` where it was there.
    Done(bool),
    /// Something that went along is gone, or does not go along any more. The record is still there.
    Some,
    /// There was nothing to detach.
    Nothing,
}

/// What one step does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSize {
    /// Records that it deletes, beside what goes along with them.
    pub(crate) records: usize,
    /// Whether it deletes none, and instead clears references and takes links of the last record that it comes to.
    pub(crate) detaches: bool,
}

/// Makes one step of the deletion of a record within `scope`: deletes the last `size.records` records of a chain that refers to it, or
/// the record itself where nothing goes along with it any more. All that it follows is locked, so it is sure to go along.
///
/// # Errors
/// `answer_too_large` where the step is too large: make a smaller one. `foreign_key_violation`.
pub(crate) async fn delete_some(
    connection: &mut Connection,
    context: &mut WriteContext,
    object: &Arc<Object>,
    scope: &Scope,
    id: Uuid,
    size: StepSize,
) -> Result<Step> {
    let plan = RecordPlan { object: Arc::clone(object), scope: scope.clone(), id };
    let select = sql::get(connection.dialect(), &plan, true);
    if connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?.is_none() {
        return Ok(Step::Done(false));
    }
    // Before anything goes along with a record that has to stay.
    let alone = Beyond { seen: HashSet::from([(object.id, id)]), ..Beyond::default() };
    check_restrictions(connection, context, object, &[id], &alone).await?;
    let levels = follow(connection, context, object, id, size.records).await?;
    let Some((last, ids)) = part_of(&levels, size.records) else { return Ok(Step::Done(false)) };
    if size.detaches {
        return match detach(connection, context, last, ids[0]).await? {
            0 => Ok(Step::Nothing),
            _ => Ok(Step::Some),
        };
    }
    let is_itself = last.id == object.id && ids.contains(&id);
    delete_records(connection, context, last, &Scope::All, ids, None).await?;
    Ok(if is_itself { Step::Done(true) } else { Step::Some })
}

type Level = (Arc<Object>, Vec<Uuid>);

/// A chain of records that go along: at each level some that refer to those of the level before, up to where nothing does.
async fn follow(
    connection: &mut Connection,
    context: &mut WriteContext,
    object: &Arc<Object>,
    id: Uuid,
    at_once: usize,
) -> Result<Vec<Level>> {
    let registry = Arc::clone(&context.registry);
    let mut seen = HashSet::from([(object.id, id)]);
    let mut levels: Vec<Level> = vec![(Arc::clone(object), vec![id])];
    let mut forgotten = 0;
    while let Some((object, ids)) = levels.last().cloned() {
        let mut next = None;
        for (holder, column) in registry.referrers_of(object.name()) {
            let cascades = holder.columns[*column].reference.as_ref().is_some_and(|known| known.on_delete == OnDelete::Cascade);
            if !cascades {
                continue;
            }
            context.hold(connection, holder).await?;
            let found = referring_unseen(connection, holder, *column, &ids, &seen, at_once).await?;
            if found.is_empty() {
                continue;
            }
            // Those that still refer to them once they are locked.
            let held = sql::hold_referring(connection.dialect(), holder, *column, ids.clone(), found);
            let rows = connection.fetch_rows(held).await.map_err(|error| error.on(holder))?;
            let found = rows.iter().map(|row| row.uuid(0)).collect::<Result<Vec<Uuid>, _>>()?;
            if !found.is_empty() {
                next = Some((Arc::clone(holder), found));
                break;
            }
        }
        let Some((holder, found)) = next else { break };
        if seen.len() + found.len() > FOLLOWED_MAX {
            forgotten += 1;
            if forgotten > FORGOTTEN_MAX {
                return Err(too_large());
            }
            seen.clear();
            levels.clear();
        }
        seen.extend(found.iter().map(|id| (holder.id, *id)));
        levels.push((holder, found));
    }
    Ok(levels)
}

/// The level from which on there are `records` records at most, and those of it that a step deletes: all that comes behind goes along.
fn part_of(levels: &[Level], records: usize) -> Option<(&Arc<Object>, Vec<Uuid>)> {
    let (mut place, mut count) = (levels.len().checked_sub(1)?, levels.last()?.1.len());
    while place > 0 && count + levels[place - 1].1.len() <= records {
        place -= 1;
        count += levels[place].1.len();
    }
    let (object, ids) = &levels[place];
    Some((object, ids.iter().take(records.max(1)).copied().collect()))
}

/// Clears some references to a record that are cleared when it goes, and takes some of its links: how many.
async fn detach(connection: &mut Connection, context: &mut WriteContext, object: &Arc<Object>, id: Uuid) -> Result<usize> {
    let registry = Arc::clone(&context.registry);
    let itself = HashSet::from([(object.id, id)]);
    let (mut detached, mut bytes) = (0, 0);
    for (holder, column) in registry.referrers_of(object.name()) {
        let clears = holder.columns[*column].reference.as_ref().is_some_and(|known| known.on_delete == OnDelete::SetNull);
        if !clears {
            continue;
        }
        context.hold(connection, holder).await?;
        let found = referring_unseen(connection, holder, *column, &[id], &itself, CLEARED_MAX).await?;
        let held = sql::hold_referring(connection.dialect(), holder, *column, vec![id], found);
        for row in connection.fetch_rows(held).await.map_err(|error| error.on(holder))? {
            if detached >= CLEARED_MAX || bytes > CLEARED_BYTES_MAX {
                return Ok(detached);
            }
            bytes += clear_one(connection, context, holder, *column, row.uuid(0)?).await?;
            detached += 1;
        }
    }
    let plan = RecordPlan { object: Arc::clone(object), scope: Scope::All, id };
    let select = sql::get(connection.dialect(), &plan, true);
    let record = connection.fetch_record(select, &object.columns).await.map_err(|error| error.on(object))?;
    let gone = record.map(|record| Gone { object: object.as_ref(), id, owner: owner(object, &record) });
    let gone: Vec<Gone<'_>> = gone.into_iter().collect();
    Ok(detached + take_some_links(connection, context, &gone, TAKEN_LINKS_MAX).await?)
}
