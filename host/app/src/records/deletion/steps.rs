//! Deletes one record whose dependent records are too many for one transaction. It uses several transactions, and begins at the
//! ends of the chains of dependent records. A list of all dependent records, made at the beginning, would miss records that get
//! another parent in between.
//!
//! Only an operation that has to succeed at any size may use this, because between two steps others can see that a part is
//! deleted.

use std::collections::HashSet;
use std::sync::Arc;

use blockbase_query::plan::RecordPlan;
use blockbase_query::{Scope, sql};
use blockbase_schema::{Code, Object, OnDelete, Result};
use blockbase_store::Connection;
use uuid::Uuid;

use super::{Cascade, check_restrictions, clear_one, delete_records, referring_unseen};
use crate::outbox::record_events::{WriteContext, owner};
use crate::outbox::touched::too_large;
use crate::records::links::{DeletedRecord, take_some_links};

/// The maximum number of a chain's records that are remembered. If there are more, the earlier ones are forgotten.
const FOLLOWED_MAX: usize = 10_000;
/// How often records may be forgotten in one step. If a chain needs more, its references form a circle.
const FORGOTTEN_MAX: usize = 100;
/// The maximum number of records whose references are cleared in one step.
const CLEARED_MAX: usize = 500;
/// The maximum number of bytes of these records, without the last one.
const CLEARED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum number of links that are removed in one step.
const TAKEN_LINKS_MAX: usize = 10_000;

/// The result of one step of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The record is deleted. `false` if it did not exist.
    Done(bool),
    /// Some dependent records were deleted or detached. The record still exists.
    Some,
    /// Nothing was left to detach.
    Nothing,
}

/// The size of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSize {
    /// The number of records that the step deletes, besides their dependent records.
    pub(crate) records: usize,
    /// If true, the step deletes no records. It clears references to the last record of the chain, and removes links of that
    /// record.
    pub(crate) detaches: bool,
    /// If true, the step does not delete the record itself.
    pub(crate) keeps_record: bool,
}

/// Makes one step of the deletion of a record within `scope`. It deletes the last `size.records` records of a chain of dependent
/// records, or the record itself if it has no dependent records left. It locks all records of the chain, so that they stay
/// dependent.
///
/// # Errors
/// `answer_too_large` if the step is too large; the caller should make a smaller one. `foreign_key_violation`.
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
    // This is checked first, so that nothing is deleted if the record has to stay.
    let alone = Cascade { seen: HashSet::from([(object.id, id)]), ..Cascade::default() };
    check_restrictions(connection, context, object, &[id], &alone).await?;
    let levels = follow(connection, context, object, id, size.records).await?;
    // A record that stays is not deleted. So `going` contains it only if no other record refers to it any more.
    let going = if size.keeps_record && levels.len() > 1 { &levels[1..] } else { &levels[..] };
    let Some((last, ids)) = part_of(going, size.records) else { return Ok(Step::Done(false)) };
    if size.detaches {
        return match detach(connection, context, last, ids[0]).await? {
            0 => Ok(Step::Nothing),
            _ => Ok(Step::Some),
        };
    }
    let is_itself = last.id == object.id && ids.contains(&id);
    if is_itself && size.keeps_record {
        return Ok(Step::Done(true));
    }
    delete_records(connection, context, last, &Scope::All, ids, None).await?;
    Ok(if is_itself { Step::Done(true) } else { Step::Some })
}

/// The number of records that one transaction deletes, unless they are too large together.
pub(crate) const RECORDS_AT_ONCE: usize = 500;
/// The initial limit on the dependent records that one transaction deletes together with a record.
const ALONG_AT_ONCE: usize = 64;

/// Makes steps until a record is deleted. If the record stays, it makes steps until nothing refers to it. Returns whether it
/// existed.
///
/// # Errors
/// The errors of a step; `answer_too_large` if a single record is too large.
pub(crate) async fn in_steps<F>(keeps_record: bool, step: impl Fn(StepSize) -> F) -> Result<bool>
where
    F: Future<Output = Result<Step>>,
{
    let mut size = StepSize { records: ALONG_AT_ONCE, detaches: false, keeps_record };
    // Whether the record is too large by itself, and nothing is left to detach from it.
    let mut is_alone = false;
    // Whether a record that stays has no dependent records left, but only references and links.
    let mut is_last = false;
    loop {
        match step(size).await {
            Ok(Step::Done(true)) if keeps_record && !is_last => (is_last, size.detaches) = (true, true),
            Ok(Step::Done(was_there)) => return Ok(was_there),
            Ok(Step::Some) if size.detaches => {}
            Ok(Step::Some) => {
                // The limit grows slowly, because the next records may be as large.
                size.records = (size.records + size.records / 4 + 1).min(RECORDS_AT_ONCE);
                is_alone = false;
            }
            Ok(Step::Nothing) if is_last => return Ok(true),
            Ok(Step::Nothing) => {
                size.detaches = false;
                is_alone = true;
            }
            Err(error) if error.code != Code::AnswerTooLarge || size.detaches || is_alone => return Err(error),
            Err(_) if size.records > 1 => size.records = (size.records / 4).max(1),
            Err(_) => size.detaches = true,
        }
    }
}

type Level = (Arc<Object>, Vec<Uuid>);

/// A chain of dependent records. Each level has some records that refer to the level before. Nothing refers to the last level.
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
            // Keeps only those that still refer to the records after they are locked.
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

/// Finds the first level from which the rest of the chain has at most `records` records. Returns its object, and the records of
/// this level that a step deletes. The records of later levels are deleted with them.
fn part_of(levels: &[Level], records: usize) -> Option<(&Arc<Object>, Vec<Uuid>)> {
    let (mut place, mut count) = (levels.len().checked_sub(1)?, levels.last()?.1.len());
    while place > 0 && count + levels[place - 1].1.len() <= records {
        place -= 1;
        count += levels[place].1.len();
    }
    let (object, ids) = &levels[place];
    Some((object, ids.iter().take(records.max(1)).copied().collect()))
}

/// Clears some of the references that the deletion of a record would clear, and removes some of its links. Returns their number.
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
    let gone = record.map(|record| DeletedRecord { object: object.as_ref(), id, owner: owner(object, &record) });
    let gone: Vec<DeletedRecord<'_>> = gone.into_iter().collect();
    Ok(detached + take_some_links(connection, context, &gone, TAKEN_LINKS_MAX).await?)
}
