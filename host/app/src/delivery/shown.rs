//! Decides which parts of an event a caller is shown. Streams, `GET /events`, the ledger, webhooks, subscriptions and blocks all
//! use it.
//!
//! For grants without conditions, the object and the creator of its record decide. Every event has both. For grants with
//! conditions, the images in the payload decide. Their columns and values are from the time of the event, but the rights are the
//! present ones. An image that the reader may not see is null, and then the difference is null too. A part of a condition that
//! cannot be decided counts as false.
//!
//! Images have the names of their time, but rights on fields belong to the numbers of the catalogue. So the catalogue has the last
//! event before each name ([`NamesSince`]). In images up to this event, the field counts as missing. Events from before the object
//! was created are not shown. None of this applies to readers who may read a record with all its fields because they read every
//! record or created this one. They see its older events whole.
//!
//! On Postgres, another instance may have changed the schema a moment ago. So each event has the version of the schema in the
//! snapshot in which it was read, and is decided on this version or a later one (`App::reach_schema`).
//!
//! Another instance may also have changed rights a moment ago. So each statement that reads events also reads the version of the
//! accounts. If it is new, the rights in memory are cleared before anybody decides about one of these events
//! (`IdentityCache::follow`). The caller of a request is then checked again (`App::recheck_at`), a stream finds its caller again,
//! and the rights of makers are looked up after their events were read.
//!
//! The record's own values are tested in memory. For conditions on related rows, the database is read. Streams share the results
//! of these reads ([`event_decisions`]), so the related rows are usually read once for each condition. They are then as they were
//! when one of these streams read them. For everybody else they are the present ones, also for a stream that comes to an event
//! two seconds after it or later. If a condition on related rows names the reader, these rows are read once for each reader. If
//! it names the present moment, each stream reads them by itself. Other conditions of the same reader are still shared, if there
//! are other streams.
//!
//! [`event_decisions`]: crate::state::event_decisions
//! [`NamesSince`]: blockbase_schema::NamesSince

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blockbase_query::condition::{Image, image};
use blockbase_query::{Access, Action, Condition, Decision, GrantContext, Owners, Scope, Seen, sql};
use blockbase_schema::json::{Members, parse_members, write_string};
use blockbase_schema::{Column, Error, Object, Registry, Resource, Result, Value};
use blockbase_store::{ClaimedEvent, CommittedEvent, Cost, EventText, Read};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::App;
use crate::access::quota::ScanPermit;
use crate::base::topic::RecordOp;
use crate::caller::Caller;
use crate::records::read::record_id;
use crate::state::event_decisions::{Answer, EventWait, ImageQuestion, SharedDecision, is_new, others_may_ask};

/// The decision before a payload is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyDecision {
    Whole,
    Nothing,
    /// Only the payload can decide.
    Unknown,
}

/// The parts of an event that are shown.
#[derive(Debug)]
pub(crate) enum VisibleParts {
    Whole,
    Nothing,
    /// The event with this payload, from which some parts are removed.
    Cut(String),
}

/// An event from any source.
#[derive(Clone, Copy)]
pub(crate) struct EventView<'a> {
    /// The number of the event in the outbox.
    pub(crate) seq: i64,
    pub(crate) topic: &'a str,
    /// The payload as JSON text.
    pub(crate) payload: &'a str,
    pub(crate) object: Option<&'a str>,
    pub(crate) owner: Option<&'a str>,
    /// The event was written on this version of the schema or on an earlier one.
    pub(crate) schema: i64,
}

impl<'a> EventView<'a> {
    pub(crate) fn of_committed(event: &'a CommittedEvent) -> EventView<'a> {
        EventView {
            seq: event.seq,
            topic: &event.topic,
            payload: event.payload(),
            object: event.object.as_deref(),
            owner: event.owner.as_deref(),
            schema: event.schema,
        }
    }

    pub(crate) fn of_claimed(event: &'a ClaimedEvent) -> EventView<'a> {
        EventView {
            seq: event.seq,
            topic: &event.topic,
            payload: &event.payload,
            object: event.object.as_deref(),
            owner: event.owner.as_deref(),
            schema: event.schema,
        }
    }
}

/// The changes of a record whose events report that links were made or removed.
const OF_LINKS: [RecordOp; 2] = [RecordOp::Linked, RecordOp::Unlinked];

fn is_of_links(topic: &str) -> bool {
    topic.starts_with("data.") && OF_LINKS.iter().any(|op| topic.rsplit('.').next() == Some(op.name()))
}

/// The topics of an object's events that [`decide_early`] may leave undecided although the caller can read their records.
pub(crate) fn topics_of_links(object: &str) -> [String; 2] {
    OF_LINKS.map(|op| op.topic(object))
}

/// The decision on an event for `caller` before its payload is read. `data.<object>.…` needs read on the object, and all other
/// topics need read on `events`. Events of links only list the targets that can be read, so their payload decides too.
pub(crate) fn decide_early(caller: &Caller, topic: &str, object: Option<&str>, owner: Option<&str>) -> EarlyDecision {
    match decide_record(caller, object, owner) {
        EarlyDecision::Whole if is_of_links(topic) && !reads_all(caller) => EarlyDecision::Unknown,
        decision => decision,
    }
}

/// Whether the caller can read every record of every object, also of those that no longer exist.
pub(crate) fn reads_all(caller: &Caller) -> bool {
    caller.holds("*", Action::Read)
}

/// The decision by the object and the creator of the event's record alone.
fn decide_record(caller: &Caller, object: Option<&str>, owner: Option<&str>) -> EarlyDecision {
    let Some(object) = object else {
        return if caller.holds(Resource::Events, Action::Read) { EarlyDecision::Whole } else { EarlyDecision::Nothing };
    };
    let Some(decision) = caller.reads(object) else { return EarlyDecision::Nothing };
    match (decision.owners(), &decision) {
        (Owners::All, _) => EarlyDecision::Whole,
        (Owners::One(actor), _) if owner == Some(actor) => EarlyDecision::Whole,
        (_, Decision::Rules(_)) => EarlyDecision::Unknown,
        (_, Decision::Rows(_)) => EarlyDecision::Nothing,
    }
}

/// Whether `caller` may be shown an event of a record of this object, whatever else the event has.
pub(crate) fn may_see_of(caller: &Caller, object: &str) -> bool {
    caller.reads(object).is_some_and(|decision| matches!(decision, Decision::Rules(_)) || decision.owners() != Owners::Nobody)
}

/// Whether `caller` is shown all parts of an event, as far as that is known without its payload.
pub(crate) fn is_shown_whole(caller: &Caller, event: &CommittedEvent) -> bool {
    decide_early(caller, &event.topic, event.object.as_deref(), event.owner.as_deref()) == EarlyDecision::Whole
}

impl App {
    /// The parts of an event that `caller` is shown.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn shown_of(&self, caller: &Caller, event: EventView<'_>) -> Result<VisibleParts> {
        Onlooker::new(self, caller).shown_of(event).await
    }

    /// The committed event with the parts that `caller` is shown. `None` if no part is shown. If the caller has a permit, reads
    /// of rows need no further permit for scans.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn shown_event(
        &self,
        caller: &Caller,
        permit: Option<&Arc<ScanPermit>>,
        event: &Arc<CommittedEvent>,
    ) -> Result<Option<Arc<CommittedEvent>>> {
        let onlooker = Onlooker { permit, ..Onlooker::new(self, caller) };
        Ok(with_parts(event, onlooker.shown_of(EventView::of_committed(event)).await?))
    }

    /// Does the same for an event that the feed has just published. If other streams decide the same condition for this event, it
    /// may use the result of one of them.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn shown_live_event(
        &self,
        caller: &Caller,
        event: &Arc<CommittedEvent>,
    ) -> Result<Option<Arc<CommittedEvent>>> {
        let onlooker = Onlooker { live: Some(event), ..Onlooker::new(self, caller) };
        Ok(with_parts(event, onlooker.shown_of(EventView::of_committed(event)).await?))
    }

    /// The numbers of those events of which `caller` is shown something. The rows that decide about events of links are read for
    /// all of these events at once.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn shown_among(
        &self,
        caller: &Caller,
        permit: &Arc<ScanPermit>,
        events: &[Arc<CommittedEvent>],
    ) -> Result<Vec<i64>> {
        let (of_links, others): (Vec<&Arc<CommittedEvent>>, Vec<&Arc<CommittedEvent>>) =
            events.iter().partition(|event| is_of_links(&event.topic));
        let onlooker = Onlooker { permit: Some(permit), ..Onlooker::new(self, caller) };
        let mut shown = onlooker.shown_among_links(&of_links).await?;
        for event in others {
            let onlooker = Onlooker { permit: Some(permit), now: onlooker.now, ..Onlooker::new(self, caller) };
            if !matches!(onlooker.shown_of(EventView::of_committed(event)).await?, VisibleParts::Nothing) {
                shown.push(event.seq);
            }
        }
        Ok(shown)
    }
}

/// The event with the visible parts. `None` if no part is visible.
fn with_parts(event: &Arc<CommittedEvent>, parts: VisibleParts) -> Option<Arc<CommittedEvent>> {
    match parts {
        VisibleParts::Whole => Some(Arc::clone(event)),
        VisibleParts::Nothing => None,
        VisibleParts::Cut(payload) => {
            let text = EventText { id: &event.id, topic: &event.topic, payload: &payload, occurred_at: event.occurred_at };
            let (object, owner) = (event.object.clone(), event.owner.clone());
            Some(Arc::new(CommittedEvent::new(event.seq, &text, object, owner, event.depth)))
        }
    }
}

/// One of the two images of an event.
#[derive(Clone, Copy)]
struct EventImage<'e> {
    /// The number of the event.
    seq: i64,
    name: &'static str,
    /// JSON text.
    raw: &'e str,
}

/// Whether the event with this number is older than the object. Then it is about another object that had the name before.
fn is_of_earlier_object(object: &Object, seq: i64) -> bool {
    seq <= object.since.object
}

/// Whether a column has had its name since before the event with this number. Otherwise the name may mean another column there.
fn has_name_in(column: &Column, seq: i64) -> bool {
    seq > column.named_since
}

/// The maximum number of rows that are looked up at once for several events.
const ROWS_AT_ONCE: usize = 1_000;

/// Rows of an object, and the scope within which the caller sees them.
#[derive(Clone)]
struct Lookup {
    object: Arc<Object>,
    scope: Scope,
    ids: Vec<Uuid>,
}

impl Lookup {
    /// Whether one statement can look up the rows of both.
    fn is_like(&self, other: &Lookup) -> bool {
        self.object.id == other.object.id && self.scope == other.scope
    }
}

/// The rows that decide about an event of links.
struct LinkRows {
    /// The record. `None` if the caller reads every record.
    record: Option<Lookup>,
    /// The targets. `None` if the caller reads every possible target.
    targets: Option<Lookup>,
    /// The ids of the targets as the event has them.
    target_ids: Vec<String>,
}

impl LinkRows {
    /// The look-ups. Something is shown if the caller sees at least one row of each.
    fn lookups(&self) -> impl Iterator<Item = &Lookup> {
        self.record.iter().chain(&self.targets)
    }
}

/// The related rows that a read asks for: those by which an image of the object's record meets the condition.
struct AskedRows {
    object: Arc<Object>,
    condition: Condition,
    image: Arc<Image>,
}

/// A caller who looks at an event.
struct Onlooker<'a> {
    app: &'a App,
    caller: &'a Caller,
    /// The caller's permit for scans, if the caller already has one.
    permit: Option<&'a Arc<ScanPermit>>,
    /// The event, if the feed has just published it. Then other streams decide about it at the same time.
    live: Option<&'a CommittedEvent>,
    /// How long the caller may still wait for the streams of others.
    wait: EventWait,
    /// The time for conditions, in milliseconds since the epoch. With the same time, the same grants give equal scopes.
    now: i64,
}

impl<'a> Onlooker<'a> {
    /// An onlooker without a permit, at an event that was published before.
    fn new(app: &'a App, caller: &'a Caller) -> Onlooker<'a> {
        Onlooker { app, caller, permit: None, live: None, wait: EventWait::default(), now: app.now() }
    }

    fn grant_context<'r>(&'r self, registry: &'r Registry) -> GrantContext<'r> {
        GrantContext { now: self.now, ..self.app.grant_context(registry) }
    }

    async fn shown_of(&self, event: EventView<'_>) -> Result<VisibleParts> {
        let (app, caller) = (self.app, self.caller);
        match decide_early(caller, event.topic, event.object, event.owner) {
            EarlyDecision::Nothing => return Ok(VisibleParts::Nothing),
            EarlyDecision::Whole => return Ok(VisibleParts::Whole),
            EarlyDecision::Unknown => {}
        }
        let (Some(name), Ok(payload)) = (event.object, parse_members(event.payload)) else { return Ok(VisibleParts::Nothing) };
        let payload = &payload;
        app.reach_schema(event.schema).await?;
        app.on_schema(caller, |registry| async move {
            if is_of_links(event.topic) {
                return match self.link_rows(&registry, event, payload)? {
                    Some(rows) => self.shown_links(&registry, payload, rows).await,
                    None => Ok(VisibleParts::Nothing),
                };
            }
            let Some(object) = registry.object(name) else { return Ok(VisibleParts::Nothing) };
            let access = caller.access_to(&self.grant_context(&registry), name, Action::Read)?;
            self.shown_images(&registry, object, &access, (event.seq, payload)).await
        })
        .await
    }

    /// The rows that decide about an event of links: it needs read on the record as it is now, and lists the targets that can be
    /// read now. `None` if no part is shown, whatever the rows are.
    fn link_rows(&self, registry: &Arc<Registry>, event: EventView<'_>, payload: &Members) -> Result<Option<LinkRows>> {
        let (app, caller) = (self.app, self.caller);
        let Some(object) = event.object.and_then(|name| registry.object(name)) else { return Ok(None) };
        let grant_context = self.grant_context(registry);
        let scope = match decide_record(caller, event.object, event.owner) {
            EarlyDecision::Whole => Scope::All,
            EarlyDecision::Nothing | EarlyDecision::Unknown => {
                let access = caller.access_to(&grant_context, object.name(), Action::Read)?;
                match access.seen() {
                    None => access.scope().clone(),
                    Some(seen) => {
                        let known = app.known_to(caller, registry);
                        let key: Option<String> = member(payload, "relationship");
                        let relation = key.and_then(|key| known.relation(object.name(), &key).cloned());
                        // An earlier relationship may have had this key. Relationships of an earlier object were dropped with it,
                        // so this number is higher than theirs.
                        let relation = relation.filter(|relation| event.seq > object.since.of_links(relation));
                        let Some(relation) = relation else { return Ok(None) };
                        seen.rows_with_links(relation.shape)
                    }
                }
            }
        };
        let record = match scope {
            // The record may have been deleted, so it is not looked up.
            Scope::All => None,
            scope => {
                let id: Option<String> = member(payload, "id");
                let Some(id) = id.and_then(|id| record_id(&id)) else { return Ok(None) };
                Some(Lookup { object: Arc::clone(object), scope, ids: vec![id] })
            }
        };
        let (target, target_ids): (Option<String>, Option<Vec<String>>) =
            (member(payload, "targetObject"), member(payload, "targetIds"));
        let (Some(target), Some(target_ids)) = (target, target_ids) else { return Ok(None) };
        let Ok(reads) = caller.access_to(&grant_context, &target, Action::Read) else { return Ok(None) };
        let target = registry.object(&target).filter(|_| *reads.scope().rows() != Scope::All);
        let targets = target.map(|target| {
            let ids = target_ids.iter().filter_map(|id| record_id(id)).collect();
            Lookup { object: Arc::clone(target), scope: reads.scope().clone(), ids }
        });
        Ok(Some(LinkRows { record, targets, target_ids }))
    }

    async fn shown_links(&self, registry: &Registry, payload: &Members, rows: LinkRows) -> Result<VisibleParts> {
        let LinkRows { record, targets, target_ids } = rows;
        if let Some(record) = record
            && self.seen(registry, &record).await?.is_empty()
        {
            return Ok(VisibleParts::Nothing);
        }
        let Some(targets) = targets else { return Ok(VisibleParts::Whole) };
        let seen = self.seen(registry, &targets).await?;
        let shown: Vec<&String> = target_ids.iter().filter(|id| record_id(id).is_some_and(|id| seen.contains(&id))).collect();
        Ok(match shown.len() {
            0 => VisibleParts::Nothing,
            some if some == target_ids.len() => VisibleParts::Whole,
            _ => VisibleParts::Cut(with(payload, &[("targetIds", serde_json::to_string(&shown).map_err(Error::internal)?)])),
        })
    }

    /// The rows of a lookup that the caller sees.
    async fn seen(&self, registry: &Registry, lookup: &Lookup) -> Result<HashSet<Uuid>> {
        let Lookup { object, scope, ids } = lookup;
        let mut seen = HashSet::new();
        for ids in ids.chunks(ROWS_AT_ONCE) {
            seen.extend(self.app.seen(self.caller, self.permit, registry, object, scope, ids.to_vec()).await?);
        }
        Ok(seen)
    }

    /// The numbers of those events of which something is shown. All of them are events of links. The rows that decide about them
    /// are looked up together.
    async fn shown_among_links(&self, events: &[&Arc<CommittedEvent>]) -> Result<Vec<i64>> {
        let (app, caller) = (self.app, self.caller);
        app.reach_schema(events.iter().map(|event| event.schema).max().unwrap_or(0)).await?;
        app.on_schema(caller, |registry| async move {
            let (mut shown, mut undecided): (Vec<i64>, Vec<(i64, LinkRows)>) = (Vec::new(), Vec::new());
            for event in events {
                let view = EventView::of_committed(event);
                match decide_early(caller, view.topic, view.object, view.owner) {
                    EarlyDecision::Whole => shown.push(event.seq),
                    EarlyDecision::Nothing => {}
                    EarlyDecision::Unknown => {
                        let Ok(payload) = parse_members(view.payload) else { continue };
                        let rows = self.link_rows(&registry, view, &payload)?;
                        undecided.extend(rows.map(|rows| (event.seq, rows)));
                    }
                }
            }
            let mut lookups: Vec<Lookup> = Vec::new();
            for lookup in undecided.iter().flat_map(|(_, rows)| rows.lookups()) {
                match lookups.iter_mut().find(|known| known.is_like(lookup)) {
                    Some(known) => known.ids.extend_from_slice(&lookup.ids),
                    None => lookups.push(lookup.clone()),
                }
            }
            let mut found: Vec<(Lookup, HashSet<Uuid>)> = Vec::with_capacity(lookups.len());
            for mut lookup in lookups {
                lookup.ids.sort_unstable();
                lookup.ids.dedup();
                let seen = self.seen(&registry, &lookup).await?;
                found.push((lookup, seen));
            }
            let sees_one = |lookup: &Lookup| {
                let seen = found.iter().find(|(known, _)| known.is_like(lookup)).map(|(_, seen)| seen);
                seen.is_some_and(|seen| lookup.ids.iter().any(|id| seen.contains(id)))
            };
            shown.extend(undecided.iter().filter(|(_, rows)| rows.lookups().all(sees_one)).map(|(seq, _)| *seq));
            Ok(shown)
        })
        .await
    }

    async fn shown_images(
        &self,
        registry: &Registry,
        object: &Arc<Object>,
        access: &Access,
        (seq, payload): (i64, &Members),
    ) -> Result<VisibleParts> {
        let condition = match access.scope() {
            Scope::All => return Ok(VisibleParts::Whole),
            _ if is_of_earlier_object(object, seq) => return Ok(VisibleParts::Nothing),
            scope => scope.condition(object),
        };
        let mut hidden = Vec::new();
        let mut shown: Vec<EventImage<'_>> = Vec::new();
        for name in ["before", "after"] {
            let Some(raw) = raw_of(payload, name).filter(|raw| *raw != "null") else { continue };
            let image = EventImage { seq, name, raw };
            match self.meets(registry, object, &condition, image).await? {
                true => shown.push(image),
                false => hidden.push(name),
            }
        }
        if shown.is_empty() {
            return Ok(VisibleParts::Nothing);
        }
        let mut changed: Vec<(&str, String)> = hidden
            .iter()
            .copied()
            .chain(["diff"].into_iter().filter(|_| !hidden.is_empty()))
            .map(|name| (name, "null".to_owned()))
            .collect();
        if let Some(seen) = access.seen() {
            let mut readable = Vec::with_capacity(shown.len());
            for image in shown {
                let cells = self.readable_cells(registry, seen, image).await?;
                changed.push((image.name, cut_image(seen, &cells, image)));
                readable.push((image.name, cells));
            }
            if let Some(diff) = raw_of(payload, "diff").filter(|raw| *raw != "null" && hidden.is_empty()) {
                changed.push(("diff", cut_diff(seen, &readable, (seq, diff))));
            }
        }
        Ok(match changed.is_empty() {
            true => VisibleParts::Whole,
            false => VisibleParts::Cut(with(payload, &changed)),
        })
    }

    /// For each column that the caller knows, whether its cell in a record's image can be read.
    async fn readable_cells(&self, registry: &Registry, seen: &Seen, image: EventImage<'_>) -> Result<Vec<bool>> {
        let mut cells = Vec::with_capacity(seen.object.columns.len());
        // The cells of several columns may have the same condition, so its result is kept.
        let mut results: Vec<(&Arc<Condition>, bool)> = Vec::new();
        for place in 0..seen.object.columns.len() {
            let Some(readable) = seen.readable(place) else {
                cells.push(true);
                continue;
            };
            let known = results.iter().find(|(known, _)| Arc::ptr_eq(known, readable)).map(|(_, meets)| *meets);
            cells.push(match known {
                Some(meets) => meets,
                None => {
                    let meets = self.meets(registry, &seen.whole, readable, image).await?;
                    results.push((readable, meets));
                    meets
                }
            });
        }
        Ok(cells)
    }

    /// Whether a record's image meets a condition. If the image lacks a column, or if its name may mean another one there, a test
    /// of the column counts as false. A condition on related rows also counts as false, if the row that leads to them no longer
    /// exists. Columns that the condition does not test do not matter.
    async fn meets(
        &self,
        registry: &Registry,
        object: &Arc<Object>,
        condition: &Condition,
        EventImage { seq, name, raw }: EventImage<'_>,
    ) -> Result<bool> {
        let Ok(members) = parse_members(raw) else { return Ok(false) };
        let cells = image(object, &members);
        // A value that is not of its column's present type counts like a missing one. It only matters if the condition tests it.
        let is_there = |column: usize| cells[column].is_some() && has_name_in(&object.columns[column], seq);
        let condition = condition.clone().decided_by(&is_there);
        let image: Image = cells.into_iter().map(|cell| cell.unwrap_or(Value::Null)).collect();
        let condition = condition.left_for(&image);
        if condition.is_true() || condition.is_false() {
            return Ok(condition.is_true());
        }
        let image = Arc::new(image);
        let asks = |condition: Condition| AskedRows { object: Arc::clone(object), condition, image: Arc::clone(&image) };
        if let Some((common, decisive)) = condition.common_part()
            && let Some(shared) = self.shared_decision(registry.version, name, &common, decisive.is_some())
        {
            let meets = self.decided(registry, &shared, asks(common)).await?;
            if decisive.is_none_or(|decisive| decisive == meets) {
                return Ok(meets);
            }
        }
        // The complete condition is read, and not only the personal part, so that all its rows are from the same moment.
        let of_reader = match condition.is_personal() {
            true => self.shared_decision(registry.version, name, &condition, true),
            false => None,
        };
        // If no other stream needs the decision, it is a new one.
        self.decided(registry, &of_reader.unwrap_or_default(), asks(condition)).await
    }

    /// A decision. If no stream has made it, the present related rows are read.
    async fn decided(&self, registry: &Registry, shared: &Arc<SharedDecision>, asked: AskedRows) -> Result<bool> {
        let asked = Arc::new(asked);
        let read = || self.read_related_rows(registry, shared, &asked);
        let meets = shared.get_or(&self.wait, read).await?;
        // Since the caller was last checked, this stream has read or has waited for the read of another one.
        self.app.recheck(self.caller).await?;
        Ok(meets)
    }

    /// Whether a record's image meets a condition, by the present related rows. `None` if another stream asked the database while
    /// this one waited for a connection, or if the read turned out to need a place for a scan. The answer is for all streams, so
    /// the caller is not checked after it.
    async fn read_related_rows(
        &self,
        registry: &Registry,
        shared: &Arc<SharedDecision>,
        asked: &Arc<AskedRows>,
    ) -> Result<Option<Answer>> {
        let needs_place = asked.condition.reads_texts() || shared.needs_place(self.wait.alone_from);
        let cost = if needs_place { Cost::Scan } else { Cost::Unknown };
        let read = Read { schema: registry.version, cost, tables_of_one_moment: None };
        let (shared, asked, alone_from) = (Arc::clone(shared), Arc::clone(asked), self.wait.alone_from);
        // A read of unknown cost has a place only when it begins for the second time.
        let has_place = AtomicBool::new(needs_place);
        self.app
            .read_metered_unchecked(self.caller, self.permit, read, move |connection| {
                let (shared, asked) = (Arc::clone(&shared), Arc::clone(&asked));
                let has_place = has_place.swap(true, Ordering::Relaxed);
                Box::pin(async move {
                    let Some(asking) = shared.ask(has_place, alone_from) else { return Ok(None) };
                    let AskedRows { object, condition, image } = &*asked;
                    let statement = sql::image_meets(connection.dialect(), object, condition, image);
                    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(object));
                    asking.answered(rows.map(|rows| !rows.is_empty())).map(Some)
                })
            })
            .await
    }

    /// The decision that other streams share. `None` if the event is not new, or if the condition is too large. A decision about
    /// a part of a condition needs an additional read, and few streams can use one about a reader. So with `for_others` the
    /// result is also `None` if no other stream is open that could use it.
    fn shared_decision(
        &self,
        schema: i64,
        image: &'static str,
        condition: &Condition,
        for_others: bool,
    ) -> Option<Arc<SharedDecision>> {
        let (event, now) = (self.live?, self.app.now());
        // A search through texts waits for a permit of the caller, and no other caller should wait for that.
        if !is_new(event.occurred_at, now) || condition.reads_texts() {
            return None;
        }
        let generation = self.app.identities.generation();
        let question = ImageQuestion::about(schema, generation, image, condition)?;
        let decisions = self.app.feed().decisions();
        let (open, of_reader) = (self.app.streams_open_and_max().0, || self.app.streams.held(self.caller.quota_owner()));
        match !for_others || others_may_ask(condition.audience(), open, of_reader) {
            true => decisions.of(event.seq, event.occurred_at, now, question),
            false => decisions.known(event.seq, &question),
        }
    }
}

/// The place of a column that the caller knows, by its name in an event. An event may have names of earlier columns, which the
/// caller does not know.
fn known_place(seen: &Seen, seq: i64, name: &str) -> Option<usize> {
    seen.object.column_index(name).filter(|place| has_name_in(&seen.object.columns[*place], seq))
}

/// A record's image as the caller may read it.
fn cut_image(seen: &Seen, cells: &[bool], EventImage { seq, raw, .. }: EventImage<'_>) -> String {
    let Ok(members) = parse_members(raw) else { return "null".to_owned() };
    let known = members.0.iter().filter_map(|(name, raw)| Some((name.as_str(), raw.get(), known_place(seen, seq, name)?)));
    text_of_members(known.map(|(name, raw, place)| (name, if cells[place] { raw } else { "null" })))
}

/// The difference between two images as the caller may read them.
fn cut_diff(seen: &Seen, images: &[(&str, Vec<bool>)], (seq, raw): (i64, &str)) -> String {
    let Ok(members) = parse_members(raw) else { return "null".to_owned() };
    let is_readable = |image: &str, place: usize| images.iter().any(|(name, cells)| *name == image && cells[place]);
    let mut cut: Vec<(&str, String)> = Vec::new();
    for (name, raw) in &members.0 {
        let Some(place) = known_place(seen, seq, name) else { continue };
        let (before, after) = (is_readable("before", place), is_readable("after", place));
        let Ok(sides) = parse_members(raw.get()) else { continue };
        let side = |(side, raw): &'_ (String, Box<RawValue>)| {
            let is_shown = if side == "before" { before } else { after };
            (side.clone(), if is_shown { raw.get().to_owned() } else { "null".to_owned() })
        };
        if before || after {
            let sides: Vec<(String, String)> = sides.0.iter().map(side).collect();
            cut.push((name, text_of_members(sides.iter().map(|(name, raw)| (name.as_str(), raw.as_str())))));
        }
    }
    text_of_members(cut.iter().map(|(name, raw)| (*name, raw.as_str())))
}

/// A JSON object of members whose values are JSON text.
fn text_of_members<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = vec![b'{'];
    for (name, raw) in members {
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(raw.as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn raw_of<'a>(members: &'a Members, name: &str) -> Option<&'a str> {
    members.0.iter().find(|(known, _)| known == name).map(|(_, raw)| RawValue::get(raw))
}

fn member<T: serde::de::DeserializeOwned>(members: &Members, name: &str) -> Option<T> {
    serde_json::from_str(raw_of(members, name)?).ok()
}

/// The payload with other values of some members.
fn with(payload: &Members, changed: &[(&str, String)]) -> String {
    let value = |name: &str| changed.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    text_of_members(payload.0.iter().map(|(name, raw)| (name.as_str(), value(name).unwrap_or(raw.get()))))
}
