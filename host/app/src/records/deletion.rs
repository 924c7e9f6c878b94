//! Deletes records, and applies their relationships to the records that refer to them.
//!
//! The database deletes the records that refer to a deleted record, or sets their references to null. This module finds these
//! records beforehand, so that each of these changes has its event and its stamps too.

mod steps;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use blockbase_query::plan::{Assignment, Change, RecordPlan, Stamp};
use blockbase_query::{Action, Scope, sql};
use blockbase_schema::{Code, Error, Object, OnDelete, Resource, Result, Value};
use blockbase_store::{Connection, DbError, Record, Row};
use uuid::Uuid;

use crate::base::topic::RecordOp;
use crate::outbox::record_events::{Images, WriteContext, owner};
use crate::outbox::touched::{EVENT_BYTES_AT_ONCE, too_large};
use crate::records::change::record_change;
use crate::records::links::{DeletedRecord, take_links};
use crate::records::versions::{Condition, check_condition, precondition_failed};
pub(crate) use steps::{RECORDS_AT_ONCE, Step, StepSize, delete_some, in_steps};

/// The number of levels of referring records that the database deletes by itself. SQLite allows a thousand levels, and both
/// engines are slow even with fewer.
const ENGINE_LEVELS_MAX: usize = 300;

/// The records that refer to the deleted records. Those in `deleted` are deleted too. Those in `cleared` lose their reference.
#[derive(Default)]
struct Cascade {
    deleted: Vec<(Arc<Object>, Uuid, Record)>,
    /// Each entry has the level, the object, and the deleted records of the object.
    levels: Vec<(usize, Arc<Object>, Vec<Uuid>)>,
    /// All deleted records, also those that the request names.
    seen: HashSet<(i64, Uuid)>,
    cleared: Vec<(Arc<Object>, usize, Uuid)>,
}

/// Deletes those of `ids` that exist and are within `scope`. The caller of this function has locked the object.
///
/// # Errors
/// `precondition_failed` if one of them is not in the state that `condition` requires; `foreign_key_violation`;
/// `answer_too_large` if they are too large, together with the records that are deleted or changed with them; `forbidden` if an
/// earlier operation of the call has written one of all these records, and it fails its check.
pub(crate) async fn delete_records(
    connection: &mut Connection,
    context: &mut WriteContext,
    object: &Arc<Object>,
    scope: &Scope,
    ids: Vec<Uuid>,
    condition: Option<&Condition>,
) -> Result<HashSet<Uuid>> {
    let select = sql::get_many(connection.dialect(), object, scope, ids.clone());
    let found = context.take_up(connection, object, (&ids, scope), select).await?;
    let roots: Vec<(Uuid, Record)> = found.into_iter().filter_map(|record| Some((record.uuid(0)?, record))).collect();
    if roots.is_empty() {
        return Ok(HashSet::new());
    }
    let mut version = None;
    for (id, record) in &roots {
        version = check_condition(&context.etags, condition, object, *id, record)?;
    }
    let ids: Vec<Uuid> = roots.iter().map(|(id, _)| *id).collect();
    let mut cascade = Cascade::default();
    cascade.seen.extend(ids.iter().map(|id| (object.id, *id)));
    if context.registry.deletes_beyond(object.name()) {
        collect(connection, context, object, ids.clone(), &mut cascade).await?;
    }
    context.touched.count_beyond(cascade.deleted.len() + cascade.cleared.len());
    check_restrictions(connection, context, object, &ids, &cascade).await?;
    if !context.checks.is_empty() {
        let cleared = cascade.cleared.iter().map(|(object, _, id)| (object.id, *id)).collect();
        context.deletes(connection, &cascade.seen, cleared).await?;
    }
    clear(connection, context, &cascade).await?;
    let along = cascade.deleted.iter().map(|(object, id, record)| (object, *id, record));
    let gone = along.chain(roots.iter().map(|(id, record)| (object, *id, record)));
    let gone = gone.map(|(object, id, record)| DeletedRecord { object: object.as_ref(), id, owner: owner(object, record) });
    let unlinked = take_links(connection, context, &gone.collect::<Vec<_>>()).await?;
    context.touched.count_links(unlinked)?;
    delete_rows(connection, object, ids.clone(), cascade.levels, version).await?;
    // The events of dependent records come first, those of the requested records last.
    let mut deleted = cascade.deleted;
    deleted.reverse();
    deleted.extend(roots.into_iter().map(|(id, record)| (Arc::clone(object), id, record)));
    emit_deleted(connection, context, deleted).await?;
    Ok(ids.into_iter().collect())
}

/// Deletes records with those that refer to them. The database deletes them all in one statement, because it checks references at
/// the end of a statement. But deep chains are deleted level by level, from their ends.
///
/// # Errors
/// `precondition_failed` if the record no longer has this version.
async fn delete_rows(
    connection: &mut Connection,
    object: &Arc<Object>,
    ids: Vec<Uuid>,
    mut levels: Vec<(usize, Arc<Object>, Vec<Uuid>)>,
    version: Option<i64>,
) -> Result<()> {
    let mut parts = vec![(0, Arc::clone(object), ids)];
    if levels.iter().any(|(level, ..)| *level > ENGINE_LEVELS_MAX) {
        parts.append(&mut levels);
        parts.sort_by_key(|(level, ..)| std::cmp::Reverse(*level));
    }
    for (level, object, ids) in parts {
        let version = version.filter(|_| level == 0);
        let delete = sql::delete_many(connection.dialect(), &object, ids, version);
        let deleted = connection.execute(delete).await.map_err(|error| match error {
            // Another transaction wrote a record that refers to it after the check.
            DbError::ForeignKey { .. } => still_referenced(""),
            error => error.on(&object),
        })?;
        if version.is_some() && deleted == 0 {
            return Err(precondition_failed());
        }
    }
    Ok(())
}

/// Counts the deleted records, removes them from the search index, and emits their events in this order.
async fn emit_deleted(
    connection: &mut Connection,
    context: &WriteContext,
    deleted: Vec<(Arc<Object>, Uuid, Record)>,
) -> Result<()> {
    let (mut events, mut event_bytes) = (Vec::new(), 0);
    let mut counts: HashMap<i64, i64> = HashMap::new();
    for (object, id, record) in deleted {
        // The database itself counts users.
        if !object.is_users() {
            *counts.entry(object.id).or_insert(0) -= 1;
        }
        if object.has_search_index() {
            connection.index_row(object.id, record.tail(), None);
        }
        let images = Images { before: record.json(), after: b"null", diff: b"null" };
        let event = context.event(&object, id, RecordOp::Deleted, &images, owner(&object, &record))?;
        event_bytes += event.as_ref().map_or(0, |event| event.payload.len());
        events.extend(event);
        if event_bytes > EVENT_BYTES_AT_ONCE {
            event_bytes = 0;
            connection.emit_all(std::mem::take(&mut events)).await?;
        }
    }
    for (object_id, difference) in counts {
        connection.count_rows(object_id, difference);
    }
    connection.emit_all(events).await?;
    Ok(())
}

/// Finds the records that refer to deleted records, level by level.
async fn collect(
    connection: &mut Connection,
    context: &mut WriteContext,
    object: &Arc<Object>,
    ids: Vec<Uuid>,
    cascade: &mut Cascade,
) -> Result<()> {
    let registry = Arc::clone(&context.registry);
    let mut levels = vec![(0, Arc::clone(object), ids)];
    while let Some((level, object, ids)) = levels.pop() {
        for (holder, column) in registry.referrers_of(object.name()) {
            let Some(reference) = &holder.columns[*column].reference else { continue };
            if reference.on_delete == OnDelete::Restrict {
                continue;
            }
            context.hold(connection, holder).await?;
            // It first reads only the ids. If a record is already known, the references form a circle, and the record is not read
            // again.
            let room = context.touched.beyond_left().saturating_sub(cascade.deleted.len() + cascade.cleared.len());
            let others = referring_unseen(connection, holder, *column, &ids, &cascade.seen, room + 1).await?;
            if others.len() > room {
                return Err(too_large());
            }
            if others.is_empty() {
                continue;
            }
            let select = sql::referring(connection.dialect(), holder, *column, ids.clone(), others.clone());
            let found = context.take_up(connection, holder, (&others, &Scope::All), select).await?;
            let mut next = Vec::new();
            for record in found {
                let Some(id) = record.uuid(0) else { continue };
                match reference.on_delete {
                    OnDelete::Cascade if cascade.seen.insert((holder.id, id)) => {
                        next.push(id);
                        cascade.deleted.push((Arc::clone(holder), id, record));
                    }
                    OnDelete::SetNull => cascade.cleared.push((Arc::clone(holder), *column, id)),
                    _ => {}
                }
            }
            if !next.is_empty() {
                cascade.levels.push((level + 1, Arc::clone(holder), next.clone()));
                levels.push((level + 1, Arc::clone(holder), next));
            }
        }
    }
    Ok(())
}

/// Returns the ids of at most `most` records of `holder` that refer to `ids` and are not in `seen`.
async fn referring_unseen(
    connection: &mut Connection,
    holder: &Object,
    column: usize,
    ids: &[Uuid],
    seen: &HashSet<(i64, Uuid)>,
    most: usize,
) -> Result<Vec<Uuid>> {
    // All records in `seen` may also refer to them, so the limit is increased by the number of these records.
    let limit = most + seen.iter().filter(|(object_id, _)| *object_id == holder.id).count();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let select = sql::referring_ids(connection.dialect(), holder, column, ids.to_vec(), limit);
    let rows = connection.fetch_rows(select).await.map_err(|error| error.on(holder))?;
    let mut unseen = rows.iter().map(|row| row.uuid(0)).collect::<Result<Vec<Uuid>, DbError>>()?;
    unseen.retain(|id| !seen.contains(&(holder.id, *id)));
    unseen.truncate(most);
    Ok(unseen)
}

/// Sets the references to null as an update would, with stamps and events.
async fn clear(connection: &mut Connection, context: &WriteContext, cascade: &Cascade) -> Result<()> {
    for (object, column, id) in cascade.cleared.iter().filter(|(object, _, id)| !cascade.seen.contains(&(object.id, *id))) {
        clear_one(connection, context, object, *column, *id).await?;
    }
    Ok(())
}

/// Sets one reference to null. Returns the number of bytes of the record that has the reference.
async fn clear_one(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Arc<Object>,
    column: usize,
    id: Uuid,
) -> Result<usize> {
    let dialect = connection.dialect();
    let record = RecordPlan { object: Arc::clone(object), scope: Scope::All, id };
    let change = Change {
        assignments: vec![(column, Assignment::Set(Value::Null))],
        stamp: Stamp { actor_id: context.actor_id.clone(), now: context.now, texts: context.texts },
    };
    let on = |error: DbError| error.on(object);
    let before = connection.fetch_record(sql::get(dialect, &record, true), &object.columns).await.map_err(on)?;
    let after = connection.fetch_record(sql::update(dialect, &record, &change, None), &object.columns).await.map_err(on)?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(0) };
    if let Some(event) = record_change(connection, context, object, id, &before, &after)? {
        connection.emit(event).await?;
    }
    Ok(before.bytes())
}

/// Refuses to delete records that a remaining record refers to. The error names the first such relationship. The databases would
/// refuse this too, but the two engines might name different relationships.
async fn check_restrictions(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    ids: &[Uuid],
    cascade: &Cascade,
) -> Result<()> {
    let gone = |name: &str| -> Vec<Uuid> {
        let along = cascade.deleted.iter().filter(|(object, ..)| object.name() == name).map(|(_, id, _)| *id);
        ids.iter().filter(|_| object.name() == name).copied().chain(along).collect()
    };
    let dialect = connection.dialect();
    for relationship in context.registry.relationships() {
        let known = &relationship.definition;
        if known.on_delete() != OnDelete::Restrict {
            continue;
        }
        let (holder, found) = match known.holder().and_then(|holder| context.registry.object(holder)) {
            Some(holder) => {
                let targets = gone(known.referenced());
                let Some(column) = holder.column_index(&format!("{}_id", known.name)).filter(|_| !targets.is_empty()) else {
                    continue;
                };
                // All deleted records of the holder may also refer to them. If there is one more, it is a record that stays.
                let most = i64::try_from(gone(holder.name()).len()).unwrap_or(i64::MAX - 1) + 1;
                let rows = connection.fetch_rows(sql::referring_ids(dialect, holder, column, targets, most)).await;
                let rows = rows.map_err(|error| error.on(holder))?;
                let stays = |row: &Row| row.uuid(0).is_ok_and(|id| !cascade.seen.contains(&(holder.id, id)));
                (holder.name(), rows.iter().any(stays))
            }
            None => {
                let (sources, targets) = (gone(&known.source), gone(&known.target));
                let other = if sources.is_empty() { &known.source } else { &known.target };
                let linked = match sources.is_empty() && targets.is_empty() {
                    true => false,
                    false => {
                        let statement = sql::any_link(dialect, object, relationship.id, sources, targets);
                        !connection.fetch_rows(statement).await.map_err(|error| error.on(object))?.is_empty()
                    }
                };
                (other.as_str(), linked)
            }
        };
        if found {
            // The error names the referring object only to callers who may know of it.
            let caller = &context.caller;
            let knows_field = || match context.registry.object(holder) {
                Some(object) => caller.may_name(&context.grant_context(), object, &format!("{}_id", known.name)),
                None => true,
            };
            let knows = caller.holds(Resource::Objects, Action::Read) || (caller.may(holder, Action::Read) && knows_field());
            return Err(still_referenced(&if knows { format!(" by `{holder}` (`{}`)", known.name) } else { String::new() }));
        }
    }
    Ok(())
}

fn still_referenced(by: &str) -> Error {
    Error::new(Code::ForeignKeyViolation, format!("The record is still referenced{by}."))
}
