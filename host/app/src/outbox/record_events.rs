//! Events about changes of records: the record before and after, the difference, and the actor.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use blockbase_auth::{Actor, EtagKey};
use blockbase_query::{GrantContext, Scope, Shapes, Statement, sql};
use blockbase_schema::{Code, Column, Error, Object, Registry, Result, TextBounds, system};
use blockbase_store::{Connection, DbError, NewEvent, Record, RecordsMax};
use uuid::Uuid;

use crate::App;
use crate::base::clock::Clock;
use crate::base::topic::RecordOp;
use crate::caller::Caller;
use crate::outbox::pending::PendingChecks;
use crate::outbox::touched::{Touched, too_large};
use crate::state::routing::Subscriptions;

/// The number of bytes of a payload around its body, if all ids are the platform's. It is an estimate that saves an allocation.
const HEAD_AND_ACTOR_BYTES: usize = 256;

/// The data that all writes of one call share.
pub(crate) struct WriteContext {
    /// The schema that the writes were planned on.
    pub(crate) registry: Arc<Registry>,
    shapes: Arc<Shapes>,
    pub(crate) now: i64,
    pub(crate) actor_id: Option<String>,
    pub(crate) caller: Caller,
    /// The limits on the lengths of texts that may be written.
    pub(crate) texts: TextBounds,
    pub(crate) etags: EtagKey,
    /// The amount of stored data that the writes have touched.
    pub(crate) touched: Touched,
    clock: Clock,
    events_enabled: bool,
    actor: Option<Actor>,
    depth: i64,
    subscriptions: Arc<Subscriptions>,
    held: Vec<i64>,
    /// The rows that still have to meet a `check`.
    pub(crate) checks: PendingChecks,
    /// Whether a row has failed its check. The error then already names the operation that wrote the row.
    pub(crate) has_failed_check: bool,
    /// The index of the running operation, if the call has several and its errors name the index.
    pub(crate) operation: Option<usize>,
    /// Whether the call has several operations, which may refer to each other's new records.
    pub(crate) is_batch: bool,
    /// The records that earlier operations of the call have made, each with the number of its object. The caller may refer to
    /// them, even if they may not read them yet.
    pub(crate) new_records: HashSet<(i64, Uuid)>,
    /// The maximum number of records or links of one operation.
    pub(crate) records_max: usize,
    /// The guest who writes, until it is checked that the guest still exists.
    guest: Option<String>,
}

/// The JSON of an event's images.
pub(crate) struct Images<'a> {
    pub(crate) before: &'a [u8],
    pub(crate) after: &'a [u8],
    pub(crate) diff: &'a [u8],
}

impl App {
    pub(crate) fn write_context(&self, caller: &Caller, registry: &Arc<Registry>) -> WriteContext {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.activity.wrote(self.clock.now());
        self.context_of(caller, registry, self.settings.events_enabled)
    }

    /// The context of writes without a request. `events_enabled` says whether they emit events.
    pub(crate) fn context_of(&self, caller: &Caller, registry: &Arc<Registry>, events_enabled: bool) -> WriteContext {
        WriteContext {
            registry: Arc::clone(registry),
            shapes: Arc::clone(&self.shapes),
            now: self.clock.now(),
            actor_id: caller.actor_id().map(str::to_owned),
            caller: caller.clone(),
            texts: TextBounds { plain: self.settings.text_bytes_max, most: self.settings.body_bytes_max },
            etags: self.etags.clone(),
            touched: Touched::default(),
            clock: self.clock.clone(),
            events_enabled,
            actor: caller.principal.actor().cloned(),
            depth: caller.depth,
            subscriptions: Arc::clone(&self.subscriptions.read()),
            held: Vec::new(),
            checks: PendingChecks::default(),
            has_failed_check: false,
            operation: None,
            is_batch: false,
            new_records: HashSet::new(),
            records_max: self.settings.bulk_records_max,
            guest: caller.identity().filter(|identity| identity.user.is_anonymous).map(|identity| identity.user.id.clone()),
        }
    }
}

impl WriteContext {
    /// The context in which conditions of grants are read.
    pub(crate) fn grant_context(&self) -> GrantContext<'_> {
        GrantContext { registry: &self.registry, now: self.now, shapes: &self.shapes }
    }

    /// The registry without the fields that the caller may not know.
    pub(crate) fn known(&self) -> Arc<Registry> {
        self.shapes.registry(&self.registry, &self.caller.known_objects(&self.grant_context()))
    }

    /// The id of a new record.
    pub(crate) fn new_id(&self) -> Uuid {
        self.clock.id(self.now)
    }

    /// Locks an object, so that it is neither dropped nor altered before the transaction ends. Also checks that the object is as
    /// planned and that the subscriptions are current.
    ///
    /// # Errors
    /// An error to retry if the object changed. `unauthorized` for a guest who signed up meanwhile, so that no row keeps the stamp of a
    /// deleted user.
    pub(crate) async fn hold(&mut self, connection: &mut Connection, object: &Object) -> Result<()> {
        // Users are never altered or dropped, so they need no lock.
        if self.held.contains(&object.id) || object.is_users() {
            return Ok(());
        }
        if let Some(guest) = self.guest.take()
            && !connection.keep_user(&guest).await?
        {
            return Err(Error::new(Code::Unauthorized, "The guest has signed up, or is gone. Use the new session."));
        }
        let held = connection.hold_object(object.id).await?;
        let Some(held) = held.filter(|held| held.revision == object.revision) else {
            return Err(Error::retry(
                blockbase_schema::Retry::SchemaMoved,
                format!("the object {} has another revision by now", object.name()),
            ));
        };
        self.held.push(object.id);
        if self.events_enabled && held.subscriptions_version != self.subscriptions.version {
            self.subscriptions = Arc::new(Subscriptions::load(connection).await?);
        }
        Ok(())
    }

    /// Whether the writes emit events.
    pub(crate) fn emits_events(&self) -> bool {
        self.events_enabled
    }

    /// The event of a record that was created, updated or deleted. `None` if events are off.
    pub(crate) fn event(
        &self,
        object: &Object,
        record_id: Uuid,
        op: RecordOp,
        images: &Images<'_>,
        owner: Option<String>,
    ) -> Result<Option<NewEvent>> {
        let body = [b"\"before\":", images.before, b",\"after\":", images.after, b",\"diff\":", images.diff];
        self.event_of(object, record_id, op, &body, owner)
    }

    /// An event of a record. Between its head and its actor, its payload contains `body`, which are members of a JSON object.
    pub(crate) fn event_of(
        &self,
        object: &Object,
        record_id: Uuid,
        op: RecordOp,
        body: &[&[u8]],
        owner: Option<String>,
    ) -> Result<Option<NewEvent>> {
        // Changes of users have other events.
        if !self.events_enabled || object.is_users() {
            return Ok(None);
        }
        let name = object.name();
        let record_id = record_id.hyphenated().to_string();
        let bytes = body.iter().map(|part| part.len()).sum::<usize>();
        let mut payload = Vec::with_capacity(bytes + name.len() + HEAD_AND_ACTOR_BYTES);
        for part in [r#"{"object":""#, name, r#"","id":""#, &record_id, r#"","op":""#, op.name(), "\","] {
            payload.extend_from_slice(part.as_bytes());
        }
        body.iter().for_each(|part| payload.extend_from_slice(part));
        payload.extend_from_slice(b",\"actor\":");
        serde_json::to_writer(&mut payload, &self.actor).map_err(Error::internal)?;
        payload.push(b'}');
        let topic = op.topic(name);
        Ok(Some(NewEvent {
            id: self.clock.id(self.now),
            deliveries: self.subscriptions.deliveries(&topic, self.depth),
            topic,
            payload: String::from_utf8(payload).map_err(Error::internal)?,
            object: Some(name.to_owned()),
            record_id: Some(record_id),
            owner,
            depth: self.depth,
            occurred_at: self.now,
        }))
    }
}

impl WriteContext {
    /// Reads the records that the write is about to change or delete: those of `ids` within `scope`, by `statement`. The database
    /// adds up their sizes first, so that it reads only few records of a write that it refuses.
    ///
    /// # Errors
    /// `answer_too_large` as soon as the write has touched too many bytes. Then it reads no further records.
    pub(crate) async fn take_up(
        &mut self,
        connection: &mut Connection,
        object: &Object,
        (ids, scope): (&[Uuid], &Scope),
        statement: Statement,
    ) -> Result<Vec<Record>> {
        let columns: Vec<&Column> = object.columns.iter().collect();
        let bytes_max = self.touched.bytes_left(ids.len());
        if ids.len() > 1
            && let Some(sizes) = sql::get_many_bytes(connection.dialect(), object, scope, ids.to_vec())
        {
            let bytes = connection.fetch_integer(sizes).await.map_err(|error| error.on(object))?;
            if usize::try_from(bytes).unwrap_or(usize::MAX) > bytes_max {
                return Err(too_large());
            }
        }
        let found =
            connection.fetch_records(statement, &columns, 0, RecordsMax::bytes(bytes_max)).await.map_err(
                |error| match error {
                    DbError::AnswerTooLarge => too_large(),
                    error => error.on(object),
                },
            )?;
        self.touched.count(found.len(), found.iter().map(Record::bytes).sum())?;
        Ok(found)
    }
}

/// `{ field: { before, after } }` for the business fields whose JSON differs.
pub(crate) fn diff(object: &Object, before: &Record, after: &Record) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (index, column) in object.columns.iter().enumerate().filter(|(_, column)| !column.is_system) {
        if before.cell(index) == after.cell(index) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(column.name.as_bytes());
        out.extend_from_slice(b"\":{\"before\":");
        out.extend_from_slice(before.cell(index));
        out.extend_from_slice(b",\"after\":");
        out.extend_from_slice(after.cell(index));
        out.push(b'}');
    }
    out.push(b'}');
    out
}

/// The owner of a record.
pub(crate) fn owner(object: &Object, record: &Record) -> Option<String> {
    let index = object.column_index(system::CREATED_BY)?;
    serde_json::from_slice(record.cell(index)).ok().flatten()
}
