//! The delivery ledger: the state of each event for each consumer group. A claim is a lease with a token. Its time is measured by
//! the database's clock.
//!
//! A delivery is `pending` until its first attempt has ended, and then `delivered` or `failed`. A failed delivery is either
//! retried at a certain time, or it is dead.

mod attempts;
mod counts;
mod ledger;
mod resets;

use std::collections::{HashMap, HashSet};

use blockbase_query::{Dialect, Param, Statement};

use crate::connection::Connection;
use crate::dialect_sql::{accounts_in_snapshot, among, database_now, schema_in_snapshot};
use crate::error::DbError;
use crate::packing::{payload_bytes, payload_of};
use crate::row::Row;

pub use attempts::{ATTEMPTS_KEPT, AttemptRow, Attempted};
pub use counts::GroupCounts;
pub use ledger::{LedgerFilter, LedgerRow, QueueDepth, UndecidedEvents, UndecidedMax, VisibleEvents};
pub use resets::DeadWindow;

/// A request to claim deliveries.
#[derive(Clone, Debug)]
pub struct Claim {
    pub consumer: String,
    /// The token that identifies the claim.
    pub token: String,
    /// The maximum number of deliveries to claim.
    pub limit: usize,
    /// The number of the group's deliveries that are already claimed. It counts at least those of this instance.
    pub in_flight: usize,
    /// New deliveries are searched only above this number. As far as the claimer knows, the group has received everything below
    /// it.
    pub after: i64,
    pub lease_ms: i64,
    /// The maximum number of bytes of payloads to claim. The first event is claimed even if it is larger.
    pub bytes_max: i64,
    /// After this many claims without an outcome, a delivery is not claimed again.
    pub claims_max: i64,
}

/// A delivery that was claimed.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    pub seq: i64,
    /// The number of attempts that have ended.
    pub attempts: i64,
    /// The number of the last stored attempt.
    pub last_attempt: Option<i64>,
    /// The record of the event. Events of one record are delivered one after the other.
    pub record_id: Option<String>,
    /// `None` if the event cannot be read.
    pub event: Option<ClaimedEvent>,
}

/// The event of a delivery.
#[derive(Clone, Debug)]
pub struct ClaimedEvent {
    /// The number of the event in the outbox.
    pub seq: i64,
    pub id: String,
    pub topic: String,
    /// The payload as JSON text.
    pub payload: String,
    pub occurred_at: i64,
    pub depth: i64,
    /// The object of the event's record. The object and the record's creator (`owner`) decide who may see the event.
    pub object: Option<String>,
    pub owner: Option<String>,
    /// As in [`CommittedEvent`](crate::CommittedEvent).
    pub schema: i64,
}

/// The result of a claim.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub deliveries: Vec<ClaimedDelivery>,
    /// The version of the accounts when the events of the deliveries were read, as in
    /// [`CommittedEvent`](crate::CommittedEvent).
    pub accounts: i64,
    /// The number of deliveries that are dead now, because they were claimed too often without an outcome.
    pub given_up: u64,
    /// Whether more deliveries are due than were claimed, either now or when the claimed ones have ended.
    pub has_more: bool,
    /// The first new delivery of the group, claimed or not.
    pub first_pending: Option<FirstPending>,
    /// Whether another instance is claiming for the group at this moment.
    pub is_contended: bool,
}

/// The first new delivery of a group, as a query found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPending {
    pub seq: i64,
    /// At the time of the query, every transaction with a number below this one had ended.
    pub over_below: i64,
    /// At the time of the query, every open transaction had a number below this one.
    pub under_way_below: i64,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// The delivery is settled without an attempt, for this reason.
    Skipped {
        error: String,
    },
    /// The attempt failed and is retried after this many milliseconds.
    Failed {
        error: String,
        retry_ms: i64,
    },
    Dead {
        error: String,
    },
    /// The attempt was not begun.
    Released,
}

/// The first key of the lock that an instance needs in order to claim a group's deliveries. The second key is the group's name.
const CLAIM_LOCK: i32 = 0x6262_6463;

/// The two queues of a group. The statements are forced to use each queue's index. With any other index, they would read
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

    /// The table, with its index if the engine lets a statement name one.
    fn table(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Sqlite, Queue::Pending) => "svc_deliveries INDEXED BY svc_deliveries_pending",
            (Dialect::Sqlite, Queue::Retries) => "svc_deliveries INDEXED BY svc_deliveries_retries",
            (Dialect::Postgres, _) => "svc_deliveries",
        }
    }

    /// An order that only this index has, so that Postgres uses the index.
    fn order(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (_, Queue::Retries) => "next_attempt_at, event_seq",
            (Dialect::Sqlite, Queue::Pending) => "event_seq",
            (Dialect::Postgres, Queue::Pending) => "event_seq + 0",
        }
    }
}

/// The smallest number of rows that a claim looks at.
const WINDOW_MIN: usize = 64;
/// The number of further windows that a claim looks at after the first one. Each is `WINDOW_GROWTH` times as large as the one
/// before.
const WINDOWS_MAX: usize = 4;
const WINDOW_GROWTH: usize = 4;
/// One record may have at most this fraction of a claim (one part of four). Its events are delivered one after the other, and
/// other records should run at the same time.
const ONE_RECORD_SHARE: usize = 4;
/// A row with this many claims without an outcome may be the one that ends the server. A claim takes at most one such row.
const CLAIMS_SUSPECT: i64 = 2;

/// A row that could be claimed, or that is already claimed.
struct Candidate {
    seq: i64,
    record_id: Option<String>,
    is_leased: bool,
    claims: i64,
    /// The transaction numbers of the query that found the delivery: see [`FirstPending`].
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

/// Chooses, from the rows that a claim looks at, those that it takes.
struct Choice {
    /// Records with a delivery in progress, or with an earlier event that was not chosen.
    busy: HashSet<String>,
    /// The number of chosen rows of each record.
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

    /// Stores which records have a delivery in progress.
    fn know(&mut self, rows: &[Candidate]) {
        self.busy.extend(rows.iter().filter(|row| row.is_leased).filter_map(|row| row.record_id.clone()));
    }

    /// Chooses rows in their order, until `most` rows are chosen altogether.
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
    /// Claims the due deliveries of a group: first retries whose time has come, then new deliveries. Both are in their order.
    ///
    /// An event of a record is not claimed while an earlier event of the same record is claimed. So events reach the group in the
    /// order of their commits, even if there are several instances, unless an event waits for a retry.
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
        // If there are enough new deliveries, retries get at most half of the claim. So new deliveries continue even if many
        // fail.
        let free = pending.iter().filter(|row| !row.is_leased).count();
        choice.choose(&retries, claim.limit.saturating_sub(free).max(claim.limit.div_ceil(2)));
        choice.choose(&pending, claim.limit);
        // If all records of a window are in progress, the rows behind the window have to be looked at too.
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
            (claimed.deliveries, claimed.accounts) = self.lease(claim, fitting.0).await?;
        }
        Ok(claimed)
    }

    /// The first rows, up to this many bytes of payloads, and whether there are more rows. If a row fits, the earlier rows of its
    /// record fit too.
    async fn fitting(&mut self, mut chosen: Vec<i64>, bytes_max: i64) -> Result<(Vec<i64>, bool), DbError> {
        chosen.sort_unstable();
        let sql = format!("SELECT seq, {} FROM svc_events WHERE {}", payload_bytes!(), among(self.dialect(), "seq", 1));
        let statement = Statement { sql: self.placeholders(sql), params: vec![Param::IntegerList(chosen.clone())] };
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

    /// Lets only one instance claim for a group at a time. SQLite has only one instance.
    async fn lock_claims(&mut self, consumer: &str) -> Result<bool, DbError> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(true);
        }
        let sql = "SELECT pg_try_advisory_xact_lock($1, hashtext($2))";
        let rows = self.fetch(sql, vec![Param::Integer(Some(CLAIM_LOCK)), consumer.into()]).await?;
        rows.first().map_or(Ok(false), |row| row.boolean(0))
    }

    /// The first rows of a queue after a number.
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
                // SQLite has only one writer, so these numbers are not needed.
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
        let statement = Statement { sql: self.placeholders(sql), params };
        self.fetch_rows(statement).await?.iter().map(Candidate::of_row).collect()
    }

    /// The leased deliveries, and the version of the accounts when their events were read.
    async fn lease(&mut self, claim: &Claim, chosen: Vec<i64>) -> Result<(Vec<ClaimedDelivery>, i64), DbError> {
        let dialect = self.dialect();
        let now = database_now(dialect);
        // A row that another transaction resets at this moment is left to the next claim.
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
        let leased = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        let mut deliveries = Vec::with_capacity(leased.len());
        for row in leased {
            let (seq, attempts, record_id) = (row.integer(0)?, row.integer(1)?, row.optional_text(2)?);
            let last_attempt = row.optional_integer(3)?;
            deliveries.push(ClaimedDelivery { seq, attempts, last_attempt, record_id, event: None });
        }
        deliveries.sort_by_key(|delivery| delivery.seq);
        let (mut events, accounts) = self.claimed_events(deliveries.iter().map(|delivery| delivery.seq).collect()).await?;
        for delivery in &mut deliveries {
            delivery.event = events.remove(&delivery.seq);
        }
        Ok((deliveries, accounts))
    }

    /// Those of the events that can be read, by their numbers, and the version of the accounts when they were read.
    async fn claimed_events(&mut self, seqs: Vec<i64>) -> Result<(HashMap<i64, ClaimedEvent>, i64), DbError> {
        let sql = format!(
            "SELECT seq, id, topic, payload, payload_bytes, packed, occurred_at, depth, object, owner, {}, {} FROM svc_events \
             WHERE {}",
            schema_in_snapshot(self.dialect()),
            accounts_in_snapshot(self.dialect()),
            among(self.dialect(), "seq", 1)
        );
        let statement = Statement { sql: self.placeholders(sql), params: vec![Param::IntegerList(seqs)] };
        let read = |row: &Row| {
            let seq = row.integer(0).ok()?;
            let event = ClaimedEvent {
                seq,
                id: row.text(1).ok()?,
                topic: row.text(2).ok()?,
                payload: payload_of(row, 3).ok()?,
                occurred_at: row.integer(6).ok()?,
                depth: row.integer(7).ok()?,
                object: row.optional_text(8).ok()?,
                owner: row.optional_text(9).ok()?,
                schema: row.integer(10).ok()?,
            };
            Some((seq, event))
        };
        let rows = self.fetch_rows(statement).await?;
        // All rows are of one snapshot, so they have the same version.
        let accounts = rows.first().map_or(Ok(0), |row| row.integer(11))?;
        Ok((rows.iter().filter_map(read).collect(), accounts))
    }

    async fn give_up(&mut self, consumer: &str, seqs: Vec<i64>) -> Result<u64, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'failed', dead = TRUE, next_attempt_at = NULL, lease_token = NULL, lease_until = NULL, \
             error = 'the server ended each time while this was delivered', last_attempt = coalesce(last_attempt, attempts) + 1 \
             WHERE consumer = $1 AND {}",
            among(self.dialect(), "event_seq", 2)
        );
        let params = vec![consumer.into(), Param::IntegerList(seqs.clone())];
        let given_up = self.execute(Statement { sql: self.placeholders(sql), params }).await?;
        self.keep_last_errors(consumer, seqs).await?;
        Ok(given_up)
    }

    /// Stores the outcomes of attempts whose claim is still valid. Returns the number of claims that were no longer valid.
    pub async fn settle_deliveries(
        &mut self,
        consumer: &str,
        token: &str,
        outcomes: Vec<(Attempted, Outcome)>,
    ) -> Result<u64, DbError> {
        let count = outcomes.len() as u64;
        let (mut delivered, mut released, mut settled) = (Vec::new(), Vec::new(), 0);
        // The skipped deliveries, grouped by their error.
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
            settled += self.execute(Statement { sql: self.placeholders(sql), params }).await?;
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
        self.execute(Statement { sql: self.placeholders(sql), params }).await
    }

    /// Settles deliveries that no receiver gets.
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
        self.execute(Statement { sql: self.placeholders(sql), params }).await
    }

    /// Stores a failed attempt. Without a time for a retry, the delivery is dead.
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
        let is_held = self.execute(Statement { sql: self.placeholders(sql), params }).await?;
        if is_held > 0 {
            self.keep_attempt(consumer, attempted, Some(error)).await?;
        }
        Ok(is_held)
    }

    /// The deliveries whose claim is still valid. No other transaction takes them before this one ends.
    pub async fn held_claims(&mut self, consumer: &str, token: &str, seqs: Vec<i64>) -> Result<HashSet<i64>, DbError> {
        let dialect = self.dialect();
        let hold = if dialect == Dialect::Postgres { " FOR UPDATE" } else { "" };
        let sql = format!(
            "SELECT event_seq FROM svc_deliveries WHERE consumer = $1 AND lease_token = $2 AND {}{hold}",
            among(dialect, "event_seq", 3)
        );
        let params = vec![consumer.into(), token.into(), Param::IntegerList(seqs)];
        self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?.iter().map(|row| row.integer(0)).collect()
    }

    /// Ends all claims. The process that made them has ended, and no other process uses this database.
    pub async fn release_claims(&mut self) -> Result<u64, DbError> {
        let mut released = 0;
        for queue in Queue::BOTH {
            let sql = format!(
                "UPDATE svc_deliveries SET lease_token = NULL, lease_until = NULL WHERE {} AND lease_token IS NOT NULL",
                queue.condition()
            );
            released += self.execute(Statement { sql: sql.into(), params: Vec::new() }).await?;
        }
        Ok(released)
    }

    /// The groups among `consumers` that have due deliveries.
    pub async fn groups_with_work(&mut self, consumers: Vec<String>) -> Result<Vec<String>, DbError> {
        let dialect = self.dialect();
        let now = database_now(dialect);
        let groups = match dialect {
            Dialect::Sqlite => "SELECT value AS consumer FROM json_each($1)",
            Dialect::Postgres => "SELECT consumer FROM unnest($1) AS g (consumer)",
        };
        // Postgres does not rewrite a subselect with an order and a limit. So it reads only one or two entries of the index for
        // each group.
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
        let statement = Statement { sql: self.placeholders(sql), params: vec![Param::TextList(Some(consumers))] };
        self.fetch_rows(statement).await?.iter().map(|row| row.text(0)).collect()
    }

    /// The groups that still have deliveries. The index is read with one step for each group.
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
            for row in self.fetch_rows(Statement { sql: sql.into(), params: Vec::new() }).await? {
                groups.push(row.text(0)?);
            }
        }
        groups.sort();
        groups.dedup();
        Ok(groups)
    }

    /// Drops up to `limit` deliveries that the group does not get any more. Their events have numbers up to `up_to`.
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
            let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
            let seqs = rows.iter().map(|row| row.integer(0)).collect::<Result<Vec<_>, _>>()?;
            if !seqs.is_empty() {
                dropped += seqs.len() as u64;
                self.forget_attempts(consumer, seqs).await?;
            }
        }
        Ok(dropped)
    }
}
