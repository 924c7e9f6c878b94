//! The delivery ledger: what each consumer group has of each event. Claims are leases with a token, by the database's clock.
//!
//! A delivery is `pending` until its first attempt has ended, then `delivered` or `failed`; a failed one is tried again when its
//! time comes, or is dead.

mod attempts;
mod counts;
mod ledger;
mod resets;
mod topic_match;

use std::collections::{HashMap, HashSet};

use blockbase_query::{Dialect, Param, Statement};

use crate::connection::Connection;
use crate::error::DbError;
use crate::packing::{payload_bytes, payload_of};
use crate::row::Row;

pub use attempts::{ATTEMPTS_KEPT, AttemptRow, Attempted};
pub use counts::GroupCounts;
pub use ledger::{LedgerFilter, LedgerRow, QueueDepth, VisibleEvents};
pub use resets::DeadWindow;
pub(crate) use topic_match::{condition as topic_condition, register as register_topic_match};

/// Which deliveries somebody wants to work on.
#[derive(Clone, Debug)]
pub struct Claim {
    pub consumer: String,
    /// What the claim is known by from now on.
    pub token: String,
    /// Deliveries claimed at most.
    pub limit: usize,
    /// Deliveries of the group that are claimed already, by this instance at least.
    pub in_flight: usize,
    /// Nothing that is new is looked for up to this number: the group had all that before, as far as the claimer knows.
    pub after: i64,
    pub lease_ms: i64,
    /// Bytes of payloads claimed at most. The first event is claimed whatever its size.
    pub bytes_max: i64,
    /// A delivery that was claimed so often without an outcome is not claimed any more.
    pub claims_max: i64,
}

/// A delivery that was claimed.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    pub seq: i64,
    /// Attempts that have ended.
    pub attempts: i64,
    /// The number of the last attempt that is kept.
    pub last_attempt: Option<i64>,
    /// Events of one record are delivered one after the other.
    pub record_id: Option<String>,
    /// `None` where the event cannot be read.
    pub event: Option<ClaimedEvent>,
}

/// The event of a delivery.
#[derive(Clone, Debug)]
pub struct ClaimedEvent {
    pub id: String,
    pub topic: String,
    /// JSON text.
    pub payload: String,
    pub occurred_at: i64,
    pub depth: i64,
    /// The object of its record, and who created that: what decides who may see it.
    pub object: Option<String>,
    pub owner: Option<String>,
}

/// What a claim gave.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub deliveries: Vec<ClaimedDelivery>,
    /// Deliveries that were claimed so often without an outcome that they are dead now.
    pub given_up: u64,
    /// Whether more is due than was claimed, at once or when what is claimed has ended.
    pub has_more: bool,
    /// The first of the group's deliveries that are new, claimed or not.
    pub first_pending: Option<FirstPending>,
    /// Whether another instance claims for the group at this moment.
    pub is_contended: bool,
}

/// The first delivery of a group that is new, as one look at the database found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPending {
    pub seq: i64,
    /// Every transaction below was over at this look.
    pub over_below: i64,
    /// Every transaction that was under way at this look is below.
    pub under_way_below: i64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// Settled without an attempt, and why.
    Skipped {
        error: String,
    },
    /// To be tried again after so many milliseconds.
    Failed {
        error: String,
        retry_ms: i64,
    },
    Dead {
        error: String,
    },
    /// It was not begun.
    Released,
}

/// The first key of the lock under which a group's deliveries are claimed; the group's name is the second.
const CLAIM_LOCK: i32 = 0x6262_6463;

/// Milliseconds since the epoch by the engine's clock.
pub(crate) fn database_now(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        Dialect::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    }
}

/// `column` being one of the list that is bound as `$place`.
pub(crate) fn among(dialect: Dialect, column: &str, place: usize) -> String {
    match dialect {
        Dialect::Sqlite => format!("{column} IN (SELECT value FROM json_each(${place}))"),
        Dialect::Postgres => format!("{column} = ANY(${place})"),
    }
}

/// The two queues of a group. Each has an index that its statements are forced to use, because any other index would lead through
/// everything that was delivered before.
#[derive(Clone, Copy)]
enum Queue {
    Pending,
    Retries,
}

impl Queue {
    const BOTH: [Queue; 2] = [Queue::Pending, Queue::Retries];

    fn condition(self) -> &'static str {
        match self {
            Queue::Pending => "status = 'pending'",
            Queue::Retries => "status = 'failed' AND NOT dead",
        }
    }

    /// The table, with the index where the engine lets one be named.
    fn table(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Sqlite, Queue::Pending) => "svc_deliveries INDEXED BY svc_deliveries_pending",
            (Dialect::Sqlite, Queue::Retries) => "svc_deliveries INDEXED BY svc_deliveries_retries",
            (Dialect::Postgres, _) => "svc_deliveries",
        }
    }

    /// The order that only this index has, on Postgres.
    fn order(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (_, Queue::Retries) => "next_attempt_at, event_seq",
            (Dialect::Sqlite, Queue::Pending) => "event_seq",
            (Dialect::Postgres, Queue::Pending) => "event_seq + 0",
        }
    }
}

/// Rows that a claim looks at, at least.
const WINDOW_MIN: usize = 64;
/// Windows that a claim looks at beyond the first, each so many times as large as the one before.
const WINDOWS_MAX: usize = 4;
const WINDOW_GROWTH: usize = 4;
/// Share of a claim that one record may have: they go one after the other, and others are to go beside them.
const ONE_RECORD_SHARE: usize = 4;
/// A row that was claimed so often without an outcome may be what ends the server: of such, one a claim.
const CLAIMS_SUSPECT: i64 = 2;

/// A row that could be claimed, or is.
struct Candidate {
    seq: i64,
    record_id: Option<String>,
    is_leased: bool,
    claims: i64,
    /// As the claim that found the delivery saw it: see [`FirstPending`].
    over_below: i64,
    under_way_below: i64,
}

impl Candidate {
    fn of_row(row: &Row) -> Result<Candidate, DbError> {
        Ok(Candidate {
            seq: row.integer(0)?,
            record_id: row.optional_text(1)?,
            is_leased: row.boolean(2)?,
            claims: row.integer(3)?,
            over_below: row.integer(4)?,
            under_way_below: row.integer(5)?,
        })
    }
}

/// What a claim takes of the rows that it looks at.
struct Choice {
    /// Records that are under way, or of which an earlier event was passed over.
    busy: HashSet<String>,
    /// How many of each record were chosen.
    of_records: HashMap<String, usize>,
    one_record_max: usize,
    claims_max: i64,
    chosen: Vec<i64>,
    exhausted: Vec<i64>,
    has_suspect: bool,
    has_more: bool,
}

impl Choice {
    fn new(claim: &Claim) -> Choice {
        Choice {
            busy: HashSet::new(),
            of_records: HashMap::new(),
            one_record_max: claim.limit.div_ceil(ONE_RECORD_SHARE),
            claims_max: claim.claims_max,
            chosen: Vec::new(),
            exhausted: Vec::new(),
            has_suspect: false,
            has_more: false,
        }
    }

    /// Takes note of what is under way.
    fn know(&mut self, rows: &[Candidate]) {
        self.busy.extend(rows.iter().filter(|row| row.is_leased).filter_map(|row| row.record_id.clone()));
    }

    /// Chooses of rows in their order, until so many are chosen in all.
    fn choose(&mut self, rows: &[Candidate], most: usize) {
        for row in rows.iter().filter(|row| !row.is_leased) {
            if row.claims >= self.claims_max {
                self.exhausted.push(row.seq);
                continue;
            }
            let is_suspect = row.claims >= CLAIMS_SUSPECT;
            let record = row.record_id.as_ref();
            let of_record = record.and_then(|record| self.of_records.get(record)).copied().unwrap_or(0);
            let is_passed_over = record.is_some_and(|record| self.busy.contains(record))
                || of_record >= self.one_record_max
                || self.chosen.len() >= most
                || is_suspect && self.has_suspect;
            if is_passed_over {
                // Later events of the same record have to wait for this one.
                self.busy.extend(row.record_id.clone());
                self.has_more = true;
                continue;
            }
            self.has_suspect |= is_suspect;
            if let Some(record) = record {
                *self.of_records.entry(record.clone()).or_default() += 1;
            }
            self.chosen.push(row.seq);
        }
    }
}

impl Connection {
    /// Claims what is due for a group: retries whose time has come, then what is new, each in its order.
    ///
    /// A record's events are not claimed while an earlier one of the record is. So they reach the group in the order of their
    /// commits, whichever instances deliver them, unless one waits for a retry.
    pub async fn claim_deliveries(&mut self, claim: &Claim) -> Result<Claimed, DbError> {
        if !self.lock_claims(&claim.consumer).await? {
            return Ok(Claimed { is_contended: true, ..Claimed::default() });
        }
        let mut choice = Choice::new(claim);
        let mut claimed = Claimed::default();
        let retries = self.window(claim, Queue::Retries, 0, claim.limit + claim.in_flight).await?;
        let (mut after, mut size) = (claim.after, (claim.limit * 2 + claim.in_flight).max(WINDOW_MIN));
        let mut pending = self.window(claim, Queue::Pending, after, size).await?;
        claimed.first_pending = pending.first().map(|row| FirstPending {
            seq: row.seq,
            over_below: row.over_below,
            under_way_below: row.under_way_below,
        });
        choice.know(&retries);
        choice.know(&pending);
        // If there are enough new deliveries, retries get at most half of the places. So new ones continue however many fail.
        let free = pending.iter().filter(|row| !row.is_leased).count();
        choice.choose(&retries, claim.limit.saturating_sub(free).max(claim.limit.div_ceil(2)));
        choice.choose(&pending, claim.limit);
        // A window full of records that are under way hides what comes behind it.
        for _ in 0..WINDOWS_MAX {
            let Some(last) = pending.last().filter(|_| pending.len() == size && choice.chosen.len() < claim.limit) else { break };
            (after, size) = (last.seq, size * WINDOW_GROWTH);
            pending = self.window(claim, Queue::Pending, after, size).await?;
            choice.know(&pending);
            choice.choose(&pending, claim.limit);
        }
        choice.has_more |= pending.len() == size || retries.len() == claim.limit + claim.in_flight;
        claimed.has_more = choice.has_more;
        if !choice.exhausted.is_empty() {
            claimed.given_up = self.give_up(&claim.consumer, choice.exhausted).await?;
        }
        if !choice.chosen.is_empty() {
            let fitting = self.fitting(choice.chosen, claim.bytes_max).await?;
            claimed.has_more |= fitting.1;
            claimed.deliveries = self.lease(claim, fitting.0).await?;
        }
        Ok(claimed)
    }

    /// The first of the rows, up to so many bytes of payloads, and whether there are more. A row's record has none before it.
    async fn fitting(&mut self, mut chosen: Vec<i64>, bytes_max: i64) -> Result<(Vec<i64>, bool), DbError> {
        chosen.sort_unstable();
        let sql = format!("SELECT seq, {} FROM svc_events WHERE {}", payload_bytes!(), among(self.dialect(), "seq", 1));
        let statement = Statement { sql: self.spell(sql), params: vec![Param::IntegerList(chosen.clone())] };
        let mut sizes = HashMap::new();
        for row in self.fetch_rows(statement).await? {
            sizes.insert(row.integer(0)?, row.integer(1)?);
        }
        let mut bytes = 0;
        let fits = chosen.iter().position(|seq| {
            bytes += sizes.get(seq).copied().unwrap_or(0);
            bytes > bytes_max
        });
        let count = fits.map_or(chosen.len(), |first| first.max(1));
        let is_cut = count < chosen.len();
        chosen.truncate(count);
        Ok((chosen, is_cut))
    }

    /// Of several instances, one claims for a group at a time. On SQLite there is one alone.
    async fn lock_claims(&mut self, consumer: &str) -> Result<bool, DbError> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(true);
        }
        let sql = "SELECT pg_try_advisory_xact_lock($1, hashtext($2))";
        let rows = self.fetch(sql, vec![Param::Integer(Some(CLAIM_LOCK)), consumer.into()]).await?;
        rows.first().map_or(Ok(false), |row| row.boolean(0))
    }

    /// The first rows of a queue behind a number.
    async fn window(&mut self, claim: &Claim, queue: Queue, after: i64, size: usize) -> Result<Vec<Candidate>, DbError> {
        let dialect = self.dialect();
        let now = database_now(dialect);
        let due = match queue {
            Queue::Retries => format!("AND next_attempt_at <= {now} AND $3 = 0"),
            Queue::Pending => format!("AND {} > $3", queue.order(dialect)),
        };
        let sql = format!(
            "SELECT event_seq, record_id, lease_until IS NOT NULL AND lease_until > {now}, claims, {} FROM {} \
             WHERE consumer = $1 AND {} {due} ORDER BY {} LIMIT $2",
            match dialect {
                // There is one writer.
                Dialect::Sqlite => "0, 0",
                Dialect::Postgres =>
                    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
            },
            queue.table(dialect),
            queue.condition(),
            queue.order(dialect),
        );
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let params = vec![claim.consumer.clone().into(), size.into(), after.into()];
        let statement = Statement { sql: self.spell(sql), params };
        self.fetch_rows(statement).await?.iter().map(Candidate::of_row).collect()
    }

    async fn lease(&mut self, claim: &Claim, chosen: Vec<i64>) -> Result<Vec<ClaimedDelivery>, DbError> {
        let dialect = self.dialect();
        let now = database_now(dialect);
        // A row that somebody resets at this moment is left to the next claim.
        let free = match dialect {
            Dialect::Sqlite => among(dialect, "event_seq", 4),
            Dialect::Postgres => format!(
                "event_seq IN (SELECT event_seq FROM svc_deliveries WHERE consumer = $1 AND {} \
                 AND (lease_until IS NULL OR lease_until <= {now}) AND status <> 'delivered' AND NOT dead FOR UPDATE SKIP LOCKED)",
                among(dialect, "event_seq", 4)
            ),
        };
        let sql = format!(
            "UPDATE svc_deliveries SET lease_token = $2, lease_until = {now} + $3, claims = claims + 1 \
             WHERE consumer = $1 AND {free} RETURNING event_seq, attempts, record_id, last_attempt"
        );
        let params =
            vec![claim.consumer.clone().into(), claim.token.clone().into(), claim.lease_ms.into(), Param::IntegerList(chosen)];
        let leased = self.fetch_rows(Statement { sql: self.spell(sql), params }).await?;
        let mut deliveries = Vec::with_capacity(leased.len());
        for row in leased {
            let (seq, attempts, record_id) = (row.integer(0)?, row.integer(1)?, row.optional_text(2)?);
            let last_attempt = row.optional_integer(3)?;
            deliveries.push(ClaimedDelivery { seq, attempts, last_attempt, record_id, event: None });
        }
        deliveries.sort_by_key(|delivery| delivery.seq);
        let mut events = self.claimed_events(deliveries.iter().map(|delivery| delivery.seq).collect()).await?;
        for delivery in &mut deliveries {
            delivery.event = events.remove(&delivery.seq);
        }
        Ok(deliveries)
    }

    /// The events that can be read, by their numbers.
    async fn claimed_events(&mut self, seqs: Vec<i64>) -> Result<HashMap<i64, ClaimedEvent>, DbError> {
        let sql = format!(
            "SELECT seq, id, topic, payload, payload_bytes, packed, occurred_at, depth, object, owner FROM svc_events WHERE {}",
            among(self.dialect(), "seq", 1)
        );
        let statement = Statement { sql: self.spell(sql), params: vec![Param::IntegerList(seqs)] };
        let read = |row: &Row| {
            let event = ClaimedEvent {
                id: row.text(1).ok()?,
                topic: row.text(2).ok()?,
                payload: payload_of(row, 3).ok()?,
                occurred_at: row.integer(6).ok()?,
                depth: row.integer(7).ok()?,
                object: row.optional_text(8).ok()?,
                owner: row.optional_text(9).ok()?,
            };
            Some((row.integer(0).ok()?, event))
        };
        Ok(self.fetch_rows(statement).await?.iter().filter_map(read).collect())
    }

    async fn give_up(&mut self, consumer: &str, seqs: Vec<i64>) -> Result<u64, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'failed', dead = TRUE, next_attempt_at = NULL, lease_token = NULL, lease_until = NULL, \
             error = 'the server ended each time while this was delivered', last_attempt = coalesce(last_attempt, attempts) + 1 \
             WHERE consumer = $1 AND {}",
            among(self.dialect(), "event_seq", 2)
        );
        let params = vec![consumer.into(), Param::IntegerList(seqs.clone())];
        let given_up = self.execute(Statement { sql: self.spell(sql), params }).await?;
        self.keep_last_errors(consumer, seqs).await?;
        Ok(given_up)
    }

    /// Stores how attempts ended, of those whose claim still holds: how many did not hold any more.
    pub async fn settle_deliveries(
        &mut self,
        consumer: &str,
        token: &str,
        outcomes: Vec<(Attempted, Outcome)>,
    ) -> Result<u64, DbError> {
        let count = outcomes.len() as u64;
        let (mut delivered, mut released, mut settled) = (Vec::new(), Vec::new(), 0);
        // By what is said of them.
        let mut skipped: HashMap<String, Vec<i64>> = HashMap::new();
        for (attempted, outcome) in outcomes {
            let seq = attempted.seq;
            match outcome {
                Outcome::Delivered if attempted.is_first() => delivered.push(seq),
                Outcome::Delivered => {
                    let is_held = self.deliver(consumer, token, vec![seq]).await?;
                    settled += is_held;
                    if is_held > 0 {
                        self.keep_attempt(consumer, &attempted, None).await?;
                    }
                }
                Outcome::Skipped { error } => skipped.entry(error).or_default().push(seq),
                Outcome::Released => released.push(seq),
                Outcome::Failed { error, retry_ms } => {
                    settled += self.fail(consumer, token, &attempted, error, Some(retry_ms)).await?;
                }
                Outcome::Dead { error } => settled += self.fail(consumer, token, &attempted, error, None).await?,
            }
        }
        if !delivered.is_empty() {
            settled += self.deliver(consumer, token, delivered).await?;
        }
        for (error, seqs) in skipped {
            settled += self.skip(consumer, token, seqs, error).await?;
        }
        if !released.is_empty() {
            let sql = format!(
                "UPDATE svc_deliveries SET claims = claims - 1, lease_token = NULL, lease_until = NULL \
                 WHERE consumer = $1 AND lease_token = $2 AND {}",
                among(self.dialect(), "event_seq", 3)
            );
            let params = vec![consumer.into(), token.into(), Param::IntegerList(released)];
            settled += self.execute(Statement { sql: self.spell(sql), params }).await?;
        }
        Ok(count.saturating_sub(settled))
    }

    async fn deliver(&mut self, consumer: &str, token: &str, seqs: Vec<i64>) -> Result<u64, DbError> {
        let dialect = self.dialect();
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'delivered', dead = FALSE, attempts = attempts + 1, claims = 0, error = NULL, \
             next_attempt_at = NULL, lease_token = NULL, lease_until = NULL, delivered_at = {}, last_attempt = last_attempt + 1 \
             WHERE consumer = $1 AND lease_token = $2 AND {}",
            database_now(dialect),
            among(dialect, "event_seq", 3)
        );
        let params = vec![consumer.into(), token.into(), Param::IntegerList(seqs)];
        self.execute(Statement { sql: self.spell(sql), params }).await
    }

    /// Settles deliveries that nobody gets.
    async fn skip(&mut self, consumer: &str, token: &str, seqs: Vec<i64>, error: String) -> Result<u64, DbError> {
        let dialect = self.dialect();
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'delivered', dead = FALSE, attempts = 0, claims = 0, error = $4, \
             next_attempt_at = NULL, lease_token = NULL, lease_until = NULL, delivered_at = {} \
             WHERE consumer = $1 AND lease_token = $2 AND {}",
            database_now(dialect),
            among(dialect, "event_seq", 3)
        );
        let params = vec![consumer.into(), token.into(), Param::IntegerList(seqs), error.into()];
        self.execute(Statement { sql: self.spell(sql), params }).await
    }

    /// Dead where there is no time of a retry.
    async fn fail(
        &mut self,
        consumer: &str,
        token: &str,
        attempted: &Attempted,
        error: String,
        retry_ms: Option<i64>,
    ) -> Result<u64, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'failed', dead = $4, attempts = attempts + 1, claims = 0, error = $5, \
             next_attempt_at = {} + $6, lease_token = NULL, lease_until = NULL, last_attempt = $7 \
             WHERE consumer = $1 AND lease_token = $2 AND event_seq = $3",
            database_now(self.dialect())
        );
        let params = vec![
            consumer.into(),
            token.into(),
            attempted.seq.into(),
            retry_ms.is_none().into(),
            error.clone().into(),
            Param::BigInteger(retry_ms),
            attempted.number().into(),
        ];
        let is_held = self.execute(Statement { sql: self.spell(sql), params }).await?;
        if is_held > 0 {
            self.keep_attempt(consumer, attempted, Some(error)).await?;
        }
        Ok(is_held)
    }

    /// Those of the deliveries whose claim still holds, which nobody takes before the transaction ends.
    pub async fn held_claims(&mut self, consumer: &str, token: &str, seqs: Vec<i64>) -> Result<HashSet<i64>, DbError> {
        let dialect = self.dialect();
        let hold = if dialect == Dialect::Postgres { " FOR UPDATE" } else { "" };
        let sql = format!(
            "SELECT event_seq FROM svc_deliveries WHERE consumer = $1 AND lease_token = $2 AND {}{hold}",
            among(dialect, "event_seq", 3)
        );
        let params = vec![consumer.into(), token.into(), Param::IntegerList(seqs)];
        self.fetch_rows(Statement { sql: self.spell(sql), params }).await?.iter().map(|row| row.integer(0)).collect()
    }

    /// Ends all claims. They are those of a process that is gone, on a database that no other process uses.
    pub async fn release_claims(&mut self) -> Result<u64, DbError> {
        let mut released = 0;
        for queue in Queue::BOTH {
            let sql = format!(
                "UPDATE svc_deliveries SET lease_token = NULL, lease_until = NULL WHERE {} AND lease_token IS NOT NULL",
                queue.condition()
            );
            released += self.execute(Statement { sql, params: Vec::new() }).await?;
        }
        Ok(released)
    }

    /// The groups among `consumers` that have something due.
    pub async fn groups_with_work(&mut self, consumers: Vec<String>) -> Result<Vec<String>, DbError> {
        let dialect = self.dialect();
        let now = database_now(dialect);
        let groups = match dialect {
            Dialect::Sqlite => "SELECT value AS consumer FROM json_each($1)",
            Dialect::Postgres => "SELECT consumer FROM unnest($1) AS g (consumer)",
        };
        // A subselect with an order and a limit stays one: it reads an entry or two of the index of each group.
        let found = |queue: Queue, due: &str| {
            format!(
                "(SELECT 1 FROM {} WHERE consumer = g.consumer AND {} {due} \
                 AND (lease_until IS NULL OR lease_until <= {now}) ORDER BY {} LIMIT 1) IS NOT NULL",
                queue.table(dialect),
                queue.condition(),
                queue.order(dialect)
            )
        };
        let pending = found(Queue::Pending, "");
        let retries = found(Queue::Retries, &format!("AND next_attempt_at <= {now}"));
        let sql = format!("SELECT g.consumer FROM ({groups}) AS g WHERE {pending} OR {retries}");
        let statement = Statement { sql: self.spell(sql), params: vec![Param::TextList(Some(consumers))] };
        self.fetch_rows(statement).await?.iter().map(|row| row.text(0)).collect()
    }

    /// The groups that still have something to get. The index is read with one step for each group.
    pub async fn groups_unsettled(&mut self) -> Result<Vec<String>, DbError> {
        let mut groups = Vec::new();
        for queue in Queue::BOTH {
            let (table, unsettled) = (queue.table(self.dialect()), queue.condition());
            let sql = format!(
                "WITH RECURSIVE found (consumer) AS (\
                   SELECT min(consumer) FROM {table} WHERE {unsettled} \
                   UNION ALL \
                   SELECT (SELECT min(consumer) FROM {table} WHERE {unsettled} AND consumer > found.consumer) \
                   FROM found WHERE found.consumer IS NOT NULL) \
                 SELECT consumer FROM found WHERE consumer IS NOT NULL"
            );
            for row in self.fetch_rows(Statement { sql, params: Vec::new() }).await? {
                groups.push(row.text(0)?);
            }
        }
        groups.sort();
        groups.dedup();
        Ok(groups)
    }

    /// Drops up to `limit` deliveries of events numbered up to `up_to` that a group does not get any more.
    pub async fn drop_deliveries(&mut self, consumer: &str, up_to: i64, limit: i64) -> Result<u64, DbError> {
        let mut dropped = 0;
        for queue in Queue::BOTH {
            let sql = format!(
                "DELETE FROM svc_deliveries WHERE consumer = $1 AND event_seq IN \
                 (SELECT event_seq FROM {} WHERE consumer = $1 AND {} AND event_seq <= $2 ORDER BY {} LIMIT $3) \
                 RETURNING event_seq",
                queue.table(self.dialect()),
                queue.condition(),
                queue.order(self.dialect())
            );
            let params = vec![consumer.into(), up_to.into(), limit.into()];
            let rows = self.fetch_rows(Statement { sql: self.spell(sql), params }).await?;
            let seqs = rows.iter().map(|row| row.integer(0)).collect::<Result<Vec<_>, _>>()?;
            if !seqs.is_empty() {
                dropped += seqs.len() as u64;
                self.forget_attempts(consumer, seqs).await?;
            }
        }
        Ok(dropped)
    }
}
