//! The state of the server (`GET /api/v1/status`): disk space, waiting work, failures and instances.
//!
//! Data from the database is read at most every few seconds, by one caller for all, because people leave the page open. No number
//! here needs a scan of a table: the counts are stored, or the counting stops at a limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_query::{Action, Dialect};
use blockbase_schema::{Resource, Result};
use blockbase_store::{InstanceRow, ReadCost, Suspension, ThingKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::base::answer::Timestamp;
use crate::caller::Caller;
use crate::state::activity::ActivityAnswer;
use crate::state::instance::{Process, VERSION};
use crate::state::readings::{Deliveries, Reading};

/// The time for which a reading of the database is shown.
const READ_EVERY: Duration = Duration::from_secs(3);
/// The time for which the database's size is shown. It is longer, because Postgres has to look at every file to compute the size.
const ROOM_EVERY: Duration = Duration::from_secs(60);
/// The maximum number of instances in the answer.
const INSTANCES_MAX: i64 = 100;
/// An instance that was not seen for this long has stopped, or cannot reach the database.
const SILENT_MS: i64 = 30_000;

/// A check of the server, and whether it passes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct Check {
    #[serde(rename = "check")]
    name: &'static str,
    #[serde(rename = "ok")]
    is_ok: bool,
    detail: String,
}

/// The state of the server: disk space, waiting work, failures, and the running instances.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcStatus", deny_unknown_fields)]
pub struct StatusAnswer {
    version: &'static str,
    #[schemars(extend("enum" = ["sqlite", "postgres"]))]
    engine: &'static str,
    engine_version: String,
    started_at: Timestamp,
    now: Timestamp,
    #[schemars(range(min = 0))]
    uptime_seconds: i64,
    instances: Vec<RunningInstance>,
    database: DatabaseAnswer,
    outbox: OutboxAnswer,
    deliveries: DeliveriesAnswer,
    streams: StreamsAnswer,
    blocks: BlocksAnswer,
    activity: ActivityAnswer,
    health: Vec<Check>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
struct RunningInstance {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    version: String,
    started_at: Timestamp,
    seen_at: Timestamp,
    /// Whether this is the instance that answers the request.
    is_this: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
struct DatabaseAnswer {
    #[schemars(range(min = 0))]
    size_bytes: i64,
    #[schemars(range(min = 0))]
    free_bytes: Option<i64>,
    #[schemars(range(min = 0))]
    total_bytes: Option<i64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
struct OutboxAnswer {
    #[schemars(range(min = 0))]
    events: i64,
    #[schemars(range(min = 0))]
    size_bytes: i64,
    /// Null if there is no limit.
    #[schemars(range(min = 1))]
    max_bytes: Option<i64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
struct DeliveriesAnswer {
    /// Counted up to 100,000 for each consumer.
    #[schemars(range(min = 0))]
    pending: i64,
    /// Deliveries that will be retried, among the newest 100,000 failed ones.
    #[schemars(range(min = 0))]
    failed: i64,
    /// Deliveries without attempts left, among the newest 100,000 failed ones.
    #[schemars(range(min = 0))]
    dead: i64,
    oldest_pending_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct StreamsAnswer {
    open: usize,
    max: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct BlocksAnswer {
    installed: usize,
    /// The blocks that are suspended, or whose last call on this instance failed. Empty if the caller may not read `blocks`.
    failing: Vec<FailingBlock>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct FailingBlock {
    name: String,
    error: String,
    at: Timestamp,
}

impl App {
    /// The state of the server. Only callers who may read `blocks` get the names of failing blocks.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`, `unavailable` if the database does not answer.
    pub async fn status(&self, caller: &Caller) -> Result<StatusAnswer> {
        caller.require(Resource::Settings, Action::Read)?;
        let reading = self.reading().await?;
        let Reading { engine_version, instances, outbox, deliveries, suspended, room } = reading.as_ref();
        let (now, Process { started_at, .. }) = (self.clock.now(), &self.process);
        let outbox_max = Some(self.settings.events_bytes_max).filter(|most| *most > 0);
        let (open, most) = self.streams_open_and_max();
        let failing = self.failing_blocks(suspended);
        let health = self.health(&reading, failing.len());
        let shown_failing = if caller.holds(Resource::Blocks, Action::Read) { failing } else { Vec::new() };
        Ok(StatusAnswer {
            version: VERSION,
            engine: self.engine_name(),
            engine_version: engine_version.clone(),
            started_at: Timestamp(*started_at),
            now: Timestamp(now),
            uptime_seconds: (now - *started_at).max(0) / 1000,
            instances: self.shown_instances(instances, now),
            database: DatabaseAnswer { size_bytes: room.size_bytes, free_bytes: room.free_bytes, total_bytes: room.total_bytes },
            outbox: OutboxAnswer { events: outbox.events, size_bytes: outbox.bytes, max_bytes: outbox_max },
            deliveries: DeliveriesAnswer {
                pending: deliveries.pending,
                failed: deliveries.failed,
                dead: deliveries.dead,
                oldest_pending_at: deliveries.oldest_pending_at.map(Timestamp),
            },
            streams: StreamsAnswer { open, max: most },
            blocks: BlocksAnswer { installed: self.blocks.read().len(), failing: shown_failing },
            activity: self.activity.answer(now),
            health,
        })
    }

    fn engine_name(&self) -> &'static str {
        match self.store.dialect() {
            Dialect::Sqlite => "sqlite",
            Dialect::Postgres => "postgres",
        }
    }

    /// The data from the database. It is read again if the last reading is too old. If several callers need a new reading at the
    /// same time, one of them reads and the others wait for it.
    async fn reading(&self) -> Result<Arc<Reading>> {
        let mut kept = self.status_readings.0.lock().await;
        if let Some((at, reading)) = &kept.reading
            && at.elapsed() < READ_EVERY
        {
            return Ok(Arc::clone(reading));
        }
        let room = match kept.room {
            // Only the size of a Postgres database is kept longer, because it costs little to read the numbers of the file
            // system.
            Some((at, room)) if self.is_shared() && at.elapsed() < ROOM_EVERY => room,
            _ => {
                let room = self.store.room().await?;
                kept.room = Some((Instant::now(), room));
                room
            }
        };
        let (engine_version, instances, outbox, deliveries, suspended) = self
            .store
            .read_as_service(ReadCost::Scan, |connection| {
                Box::pin(async move {
                    let engine_version = connection.engine_version().await?;
                    let instances = connection.instances(INSTANCES_MAX).await?;
                    let outbox = connection.outbox_size().await?;
                    let (queues, oldest_pending_at) = connection.queue_depths().await?;
                    let (failed, dead) = connection.failed_deliveries().await?;
                    let pending = queues.iter().map(|queue| queue.pending).sum();
                    let deliveries = Deliveries { pending, failed, dead, oldest_pending_at };
                    let suspended = connection.suspensions(ThingKind::Block).await?;
                    Ok((engine_version, instances, outbox, deliveries, suspended))
                })
            })
            .await?;
        let reading = Arc::new(Reading { engine_version, instances, outbox, deliveries, suspended, room });
        kept.reading = Some((Instant::now(), Arc::clone(&reading)));
        Ok(reading)
    }

    /// The instances to show. They always include this one.
    fn shown_instances(&self, known: &[InstanceRow], now: i64) -> Vec<RunningInstance> {
        let own = &self.process.id;
        let this = InstanceRow {
            id: own.clone(),
            version: VERSION.to_owned(),
            started_at: self.process.started_at,
            seen_at: now,
            silent_ms: 0,
        };
        // This instance's row is replaced by its own data, which is newer.
        let others = known.iter().filter(|row| row.id != *own).cloned();
        let mut rows: Vec<InstanceRow> = others.chain([this]).collect();
        rows.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
        rows.into_iter()
            .map(|row| RunningInstance {
                is_this: row.id == *own,
                id: row.id,
                version: row.version,
                started_at: Timestamp(row.started_at),
                seen_at: Timestamp(row.seen_at),
            })
            .collect()
    }

    /// Lists each block that is suspended, or whose last call on this instance failed.
    fn failing_blocks(&self, suspended: &HashMap<String, Suspension>) -> Vec<FailingBlock> {
        let blocks = Arc::clone(&self.blocks.read());
        let failing = blocks.values().filter(|block| block.enabled).filter_map(|block| {
            let (error, at) = match suspended.get(block.name()) {
                Some(suspension) => (format!("It is suspended: {}.", suspension.reason.as_str()), suspension.since),
                None => {
                    let fault = self.block_faults.of(block.name()).filter(|fault| fault.at >= block.installed_at())?;
                    (fault.error, fault.at)
                }
            };
            Some(FailingBlock { name: block.name().to_owned(), error, at: Timestamp(at) })
        });
        failing.collect()
    }

    fn health(&self, reading: &Reading, failing: usize) -> Vec<Check> {
        let Reading { engine_version, instances, outbox, deliveries, room, .. } = reading;
        let engine = match self.store.dialect() {
            Dialect::Sqlite => "SQLite",
            Dialect::Postgres => "Postgres",
        };
        let check = |name, is_ok, good: String, bad: String| Check { name, is_ok, detail: if is_ok { good } else { bad } };
        let mut checks = vec![check("database", true, format!("{engine} {engine_version} answers."), String::new())];
        if let Some(free) = room.free_bytes {
            let free_mib = free / (1024 * 1024);
            checks.push(check(
                "disk",
                room.is_enough,
                format!("The disk of the database has {free_mib} MiB of free space."),
                format!(
                    "The disk of the database has only {free_mib} MiB of free space, so writes are refused. Free some space."
                ),
            ));
        }
        let most = self.settings.events_bytes_max;
        checks.push(check(
            "outbox",
            most == 0 || outbox.bytes <= most,
            "The outbox is within its bound.".to_owned(),
            "The outbox is larger than SVC_EVENTS_MAX_BYTES, because consumers still have to get its events. Look at the \
            deliveries."
                .to_owned(),
        ));
        checks.push(check(
            "deliveries",
            deliveries.dead == 0,
            "No delivery was given up.".to_owned(),
            match deliveries.dead {
                1 => "1 delivery was given up. Repair its receiver, then retry the delivery.".to_owned(),
                dead => format!("{dead} deliveries were given up. Repair their receivers, then retry the deliveries."),
            },
        ));
        checks.push(check(
            "blocks",
            failing == 0,
            "No block fails.".to_owned(),
            match failing {
                1 => "1 block fails or is suspended. Look at its log.".to_owned(),
                _ => format!("{failing} blocks fail or are suspended. Look at their logs."),
            },
        ));
        let silent = instances.iter().filter(|row| row.id != self.process.id && row.silent_ms > SILENT_MS).count();
        let other_versions = instances.iter().filter(|row| row.version != VERSION).count();
        if self.is_shared() {
            checks.push(check(
                "instances",
                silent == 0 && other_versions == 0,
                "All instances are running, and have the same version.".to_owned(),
                format!(
                    "{silent} instances were not seen for {} s, and {other_versions} have another version.",
                    SILENT_MS / 1000
                ),
            ));
        }
        checks.push(check(
            "permissions",
            self.settings.require_auth,
            "Permissions are enforced.".to_owned(),
            "SVC_REQUIRE_AUTH is false: everybody who reaches this server may do everything.".to_owned(),
        ));
        checks.push(check(
            "events",
            self.settings.events_enabled,
            "Writes emit events.".to_owned(),
            "SVC_EVENTS_ENABLED is false: writes emit no events, and nothing is delivered.".to_owned(),
        ));
        checks
    }
}
