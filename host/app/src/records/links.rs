//! Makes and removes links, which are pairs of records of a many_to_many relationship.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use blockbase_query::plan::{LinkPlan, RecordPlan};
use blockbase_query::{Access, Action, GrantContext, sql};
use blockbase_schema::{Code, Error, Object, Relation, RelationShape, RelationshipKind, Result, json};
use blockbase_store::{Connection, DbError};
use uuid::Uuid;

use crate::base::topic::RecordOp;
use crate::caller::Caller;
use crate::outbox::record_events::{WriteContext, owner};
use crate::outbox::touched::{LINKS_BEYOND_MAX, too_large};
use crate::records::ids::{check_size, parse_ids};
use crate::records::read::record_id;

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    Add,
    Remove,
}

/// A relation whose links a caller may change.
pub(crate) struct Linkable {
    object: Arc<Object>,
    access: Access,
    relation: Relation,
    target: Arc<Object>,
    target_access: Access,
}

impl Linkable {
    /// The relation `key` of an object, for a caller who may update the object and read the other side's records.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`; `not_found` for an unknown object or relation.
    pub(crate) fn find(caller: &Caller, grant_context: &GrantContext<'_>, object: &str, key: &str) -> Result<Linkable> {
        let registry = grant_context.registry;
        let (object, access) = caller.object(grant_context, object, Action::Update)?;
        let relation = registry
            .relation(object.name(), key)
            .filter(|relation| matches!(relation.shape, RelationShape::Linked { .. }))
            .cloned()
            .ok_or_else(|| Error::new(Code::NotFound, format!("`{}` has no many_to_many relation `{key}`.", object.name())))?;
        let access = access.linking(&relation)?;
        let target_access = caller.access_to(grant_context, &relation.related, Action::Read)?;
        let target = registry.object(&relation.related).ok_or_else(|| Error::unknown_object(&relation.related))?;
        Ok(Linkable { object, access, target: Arc::clone(target), relation, target_access })
    }

    /// Adds the objects that a change of links locks.
    pub(crate) fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        objects.extend([Arc::clone(&self.object), Arc::clone(&self.target)]);
        self.access.objects_into(objects);
    }
}

/// A change of links that is ready to run.
pub(crate) struct LinkStep {
    plan: LinkPlan,
    access: Access,
    change: LinkChange,
}

impl LinkStep {
    /// Rows of the other side that the caller may not read count as missing. `None` if the text of the record's id is not a
    /// valid id.
    ///
    /// # Errors
    /// `invalid_value` for an id that is not a UUID; `invalid_request` for too many ids.
    pub(crate) fn new(
        context: &WriteContext,
        linkable: Linkable,
        id: &str,
        ids: &[String],
        change: LinkChange,
    ) -> Result<Option<LinkStep>> {
        let Linkable { object, access, relation, target, target_access } = linkable;
        check_size(ids.len(), context.records_max)?;
        let target_ids = parse_ids(ids)?;
        let Some(id) = record_id(id) else { return Ok(None) };
        let record = RecordPlan::new(&object, &access, id);
        let plan = LinkPlan { record, relation, target, target_scope: target_access.scope().clone(), target_ids };
        Ok(Some(LinkStep { plan, access, change }))
    }

    /// Adds the objects that the change locks.
    pub(crate) fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        objects.extend([Arc::clone(&self.plan.record.object), Arc::clone(&self.plan.target)]);
        self.access.objects_into(objects);
    }

    pub(crate) fn change(&self) -> LinkChange {
        self.change
    }

    /// Makes or removes the links. Returns how many changed. `None` if the record does not exist.
    ///
    /// # Errors
    /// `foreign_key_violation` for an id to link that does not exist. Then nothing is linked. `forbidden` if an earlier operation
    /// of the call has written the record or one of these links, and its record fails its check.
    pub(crate) async fn run(self, connection: &mut Connection, context: &mut WriteContext) -> Result<Option<usize>> {
        context.touched.count(1, 0)?;
        context.touched.count_links(self.plan.target_ids.len())?;
        run(connection, self.plan, context, &self.access, self.change).await
    }
}

async fn run(
    connection: &mut Connection,
    plan: LinkPlan,
    context: &mut WriteContext,
    access: &Access,
    change: LinkChange,
) -> Result<Option<usize>> {
    let object = &plan.record.object;
    context.hold_with(connection, object, &[access]).await?;
    context.hold(connection, &plan.target).await?;
    context.decides_by(connection, access, Some(&plan.target_scope)).await?;
    let dialect = connection.dialect();
    let record = connection.fetch_record(sql::get(dialect, &plan.record, false), &object.columns).await;
    let Some(record) = record.map_err(|error| error.on(object))? else { return Ok(None) };
    let missing = |id: &Uuid| {
        Error::new(Code::ForeignKeyViolation, format!("There is no record of `{}` with the id {id}.", plan.target.name()))
            .with_field("ids")
    };
    let visible = sql::visible(dialect, &plan.target, &plan.target_scope, plan.target_ids.clone());
    let mut visible = ids(connection.fetch_rows(visible).await.map_err(|error| error.on(&plan.target))?)?;
    let new = plan.target_ids.iter().filter(|id| context.new_records.contains(&(plan.target.id, **id)));
    visible.extend(new);
    let mut plan = plan.clone();
    match change {
        LinkChange::Add => {
            if let Some(id) = plan.target_ids.iter().find(|id| !visible.contains(id)) {
                return Err(missing(id));
            }
        }
        // Links to rows that the caller does not see are kept.
        LinkChange::Remove => plan.target_ids.retain(|id| visible.contains(id)),
    }
    context.changes_links(connection, access, &plan, change == LinkChange::Add).await?;
    let statement = sql::change_links(dialect, &plan, change == LinkChange::Add)
        .ok_or_else(|| Error::internal("a link of a relation that has none"))?;
    let changed = match connection.fetch_rows(statement).await {
        Ok(rows) => ids(rows)?,
        // One of the records was deleted between the check and the link.
        Err(DbError::ForeignKey { .. }) => {
            return Err(Error::new(Code::ForeignKeyViolation, "One of the records does not exist any more."));
        }
        Err(error) => return Err(error.on(object)),
    };
    if changed.is_empty() {
        return Ok(Some(0));
    }
    let targets: Vec<Uuid> = plan.target_ids.iter().filter(|id| changed.contains(id)).copied().collect();
    let body = event_body(&plan.relation.key, plan.target.name(), &targets);
    let op = if change == LinkChange::Add { RecordOp::Linked } else { RecordOp::Unlinked };
    if let Some(event) = context.event_of(object, plan.record.id, op, &[&body], owner(object, &record))? {
        connection.emit(event).await?;
    }
    Ok(Some(changed.len()))
}

/// The members that only the payloads of `linked` and `unlinked` have.
fn event_body(relation: &str, target: &str, target_ids: &[Uuid]) -> Vec<u8> {
    let mut body = b"\"relationship\":".to_vec();
    json::write_string(&mut body, relation);
    body.extend_from_slice(b",\"targetObject\":");
    json::write_string(&mut body, target);
    body.extend_from_slice(b",\"targetIds\":[");
    for (place, id) in target_ids.iter().enumerate() {
        body.extend_from_slice(if place > 0 { b",\"" } else { b"\"" });
        body.extend_from_slice(id.hyphenated().encode_lower(&mut [0; 36]).as_bytes());
        body.push(b'"');
    }
    body.push(b']');
    body
}

/// The maximum number of target ids in one `unlinked` event of a deletion.
const EVENT_TARGETS_MAX: usize = 1000;

/// Removes the links of records that are about to be deleted, and emits `unlinked` for them. The engines' foreign keys would
/// remove them too, but without events.
///
/// Each link is in exactly one event. If the link's source is deleted, the event belongs to the source. If only the target is
/// deleted, the event belongs to the target. But if only the source shows the relation, the event belongs to the source, which is
/// not deleted. This is so if the relationship is between an object and itself, or if the target is a user.
///
/// Returns how many links it removed.
///
/// # Errors
/// `answer_too_large` if there are more links than one deletion may remove.
pub(crate) async fn take_links(connection: &mut Connection, context: &WriteContext, gone: &[DeletedRecord<'_>]) -> Result<usize> {
    take(connection, context, gone, LINKS_BEYOND_MAX + 1, true).await
}

/// Does the same for some of the links: about `most`. Returns how many it removed.
pub(crate) async fn take_some_links(
    connection: &mut Connection,
    context: &WriteContext,
    gone: &[DeletedRecord<'_>],
    most: usize,
) -> Result<usize> {
    take(connection, context, gone, most, false).await
}

async fn take(
    connection: &mut Connection,
    context: &WriteContext,
    gone: &[DeletedRecord<'_>],
    at_once: usize,
    takes_all: bool,
) -> Result<usize> {
    let mut taken = 0;
    if !context.emits_events() {
        return Ok(taken);
    }
    let registry = Arc::clone(&context.registry);
    let dialect = connection.dialect();
    let linked = registry.relationships().iter().filter(|known| known.definition.kind == RelationshipKind::ManyToMany);
    for relationship in linked {
        let known = &relationship.definition;
        let of = |name: &str| gone.iter().filter(|gone| gone.object.name() == name).map(|gone| gone.id).collect::<Vec<_>>();
        let (sources, targets) = (of(&known.source), of(&known.target));
        if sources.is_empty() && targets.is_empty() {
            continue;
        }
        let (Some(source), Some(target)) = (registry.object(&known.source), registry.object(&known.target)) else { continue };
        let owners: HashMap<(i64, Uuid), &Option<String>> =
            gone.iter().map(|gone| ((gone.object.id, gone.id), &gone.owner)).collect();
        loop {
            let most = i64::try_from(at_once).unwrap_or(i64::MAX);
            let statement = sql::take_links(dialect, source, relationship.id, sources.clone(), targets.clone(), most);
            let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(source))?;
            let is_last = rows.len() < at_once;
            taken += rows.len();
            if takes_all && taken > LINKS_BEYOND_MAX {
                return Err(too_large());
            }
            let mut links = Vec::with_capacity(rows.len());
            for row in rows {
                links.push((row.uuid(0)?, row.uuid(1)?));
            }
            links.sort_unstable();
            emit_unlinked(connection, context, &known.name, (source, target), &owners, links).await?;
            if is_last {
                break;
            }
            if !takes_all {
                return Ok(taken);
            }
        }
    }
    Ok(taken)
}

/// Emits `unlinked` for removed links, given as pairs of the source's and the target's id. `owners` has the owner of each record
/// that is about to be deleted.
async fn emit_unlinked(
    connection: &mut Connection,
    context: &WriteContext,
    relationship: &str,
    (source, target): (&Object, &Object),
    owners: &HashMap<(i64, Uuid), &Option<String>>,
    links: Vec<(Uuid, Uuid)>,
) -> Result<()> {
    // The links are grouped by the side and the record whose event names them. The source's side comes first.
    let mut unlinked: BTreeMap<(bool, Uuid), Vec<Uuid>> = BTreeMap::new();
    for (from, to) in links {
        // Users have no events of records, so the event belongs to the source.
        let has_two_sides = source.id != target.id && !target.is_users();
        let is_of_target = has_two_sides && !owners.contains_key(&(source.id, from));
        let (near, far) = if is_of_target { (to, from) } else { (from, to) };
        unlinked.entry((is_of_target, near)).or_default().push(far);
    }
    let staying: Vec<Uuid> = unlinked
        .keys()
        .filter(|(of_target, id)| !of_target && !owners.contains_key(&(source.id, *id)))
        .map(|(_, id)| *id)
        .collect();
    let staying = owners_of(connection, source, staying).await?;
    let mut events = Vec::new();
    for ((is_of_target, id), far) in unlinked {
        let (near, other) = if is_of_target { (target, source) } else { (source, target) };
        let owner = owners.get(&(near.id, id)).map(|owner| (*owner).clone());
        let owner = owner.or_else(|| staying.get(&id).cloned()).flatten();
        for targets in far.chunks(EVENT_TARGETS_MAX) {
            let body = event_body(relationship, other.name(), targets);
            events.extend(context.event_of(near, id, RecordOp::Unlinked, &[&body], owner.clone())?);
        }
    }
    connection.emit_all(events).await?;
    Ok(())
}

/// A record that is about to be deleted.
pub(crate) struct DeletedRecord<'a> {
    pub(crate) object: &'a Object,
    pub(crate) id: Uuid,
    /// `created_by` of the record.
    pub(crate) owner: Option<String>,
}

/// The owners of the records.
async fn owners_of(connection: &mut Connection, object: &Object, ids: Vec<Uuid>) -> Result<HashMap<Uuid, Option<String>>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let statement = sql::owners(connection.dialect(), object, ids);
    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(object))?;
    Ok(rows.iter().map(|row| Ok((row.uuid(0)?, row.optional_text(1)?))).collect::<Result<_, DbError>>()?)
}

fn ids(rows: Vec<blockbase_store::Row>) -> Result<HashSet<Uuid>> {
    rows.iter().map(|row| row.uuid(0).map_err(Error::from)).collect()
}
