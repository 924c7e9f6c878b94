//! The delivery ledger: what each consumer group has of each event. Claims are leases with a token, by the database's clock.
//!
//! A delivery is `pending` until its first attempt has ended, then `delivered` or `failed`; a failed one is tried again when its
//! time comes, or is dead.

use std::collections::{HashMap, HashSet};

use blockbase_query::{Dialect, Param, Statement};

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

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
    pub lease_ms: i64,
    /// Bytes of payloads claimed at most, but for the first.
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
}

/// What a claim gave.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub deliveries: Vec<ClaimedDelivery>,
    /// Deliveries that were claimed so often without an outcome that they are dead now.
    pub given_up: u64,
    /// Whether more is due than was claimed, at once or when what is claimed has ended.
    pub has_more: bool,
    /// Whether another instance claims for the group at this moment.
    pub is_contended: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
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

/// An entry of the ledger with its event's topic.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    pub event_id: String,
    pub topic: String,
    pub consumer: String,
    pub handler: String,
    pub status: String,
    pub attempts: i64,
    pub error: Option<String>,
    pub next_attempt_at: Option<i64>,
    pub delivered_at: Option<i64>,
    pub occurred_at: i64,
    pub is_dead: bool,
}

/// Which entries of the ledger are asked for.
#[derive(Clone, Debug, Default)]
pub struct LedgerFilter {
    pub status: Option<String>,
    pub consumer: Option<String>,
    pub is_dead: Option<bool>,
}

/// How much a consumer group still has to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    pub consumer: String,
    pub pending: i64,
}

macro_rules! ledger_columns {
    () => {
        "e.id, e.topic, d.consumer, d.handler, d.status, d.attempts, d.error, d.next_attempt_at, d.delivered_at, e.occurred_at, d.dead"
    };
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
fn among(dialect: Dialect, column: &str, place: usize) -> String {
    match dialect {
        Dialect::Sqlite => format!("{column} IN (SELECT value FROM json_each(${place}))"),
        Dialect::Postgres => format!("{column} = ANY(${place})"),
    }
}

/// A row that could be claimed, or is.
struct Candidate {
    seq: i64,
    record_id: Option<String>,
    is_leased: bool,
    claims: i64,
    bytes: i64,
}

impl Candidate {
    fn of_row(row: &Row) -> Result<Candidate, DbError> {
        Ok(Candidate {
            seq: row.integer(0)?,
            record_id: row.optional_text(1)?,
            is_leased: row.boolean(2)?,
            claims: row.integer(3)?,
            bytes: row.integer(4)?,
        })
    }
}

fn ledger_row(row: &Row) -> Result<LedgerRow, DbError> {
    Ok(LedgerRow {
        event_id: row.text(0)?,
        topic: row.text(1)?,
        consumer: row.text(2)?,
        handler: row.text(3)?,
        status: row.text(4)?,
        attempts: row.integer(5)?,
        error: row.optional_text(6)?,
        next_attempt_at: row.optional_integer(7)?,
        delivered_at: row.optional_integer(8)?,
        occurred_at: row.integer(9)?,
        is_dead: row.boolean(10)?,
    })
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
        let candidates = self.candidates(claim).await?;
        let mut claimed = Claimed::default();
        let mut busy: HashSet<String> =
            candidates.iter().filter(|row| row.is_leased).filter_map(|row| row.record_id.clone()).collect();
        let (mut chosen, mut exhausted, mut bytes) = (Vec::new(), Vec::new(), 0);
        for row in candidates.into_iter().filter(|row| !row.is_leased) {
            if row.record_id.as_ref().is_some_and(|record| busy.contains(record)) {
                claimed.has_more = true;
                continue;
            }
            if row.claims >= claim.claims_max {
                exhausted.push(row.seq);
                continue;
            }
            bytes += row.bytes;
            if chosen.len() == claim.limit || (!chosen.is_empty() && bytes > claim.bytes_max) {
                // What comes later of the same record has to wait for this one.
                busy.extend(row.record_id);
                claimed.has_more = true;
                continue;
            }
            chosen.push(row.seq);
        }
        if !exhausted.is_empty() {
            claimed.given_up = self.give_up(&claim.consumer, exhausted).await?;
        }
        if !chosen.is_empty() {
            claimed.deliveries = self.lease(claim, chosen).await?;
        }
        Ok(claimed)
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

    async fn candidates(&mut self, claim: &Claim) -> Result<Vec<Candidate>, DbError> {
        let now = database_now(self.dialect());
        let mut found = Vec::new();
        // Half of the places at most for retries, so that what is new goes on however much fails.
        for (due, order, wanted) in [
            (
                format!("d.status = 'failed' AND NOT d.dead AND d.next_attempt_at <= {now}"),
                "d.next_attempt_at, d.event_seq",
                claim.limit.div_ceil(2),
            ),
            ("d.status = 'pending'".to_owned(), "d.event_seq", claim.limit * 2),
        ] {
            let sql = format!(
                "SELECT d.event_seq, d.record_id, d.lease_until IS NOT NULL AND d.lease_until > {now}, d.claims, \
                 octet_length(e.payload) FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq \
                 WHERE d.consumer = $1 AND {due} ORDER BY {order} LIMIT $2"
            );
            let window = i64::try_from(wanted + claim.in_flight).unwrap_or(i64::MAX);
            let params = vec![claim.consumer.clone().into(), window.into()];
            let statement = Statement { sql: self.spell(sql), params };
            for row in self.fetch_rows(statement).await? {
                found.push(Candidate::of_row(&row)?);
            }
        }
        Ok(found)
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
             WHERE consumer = $1 AND {free} RETURNING event_seq, attempts, record_id"
        );
        let params =
            vec![claim.consumer.clone().into(), claim.token.clone().into(), claim.lease_ms.into(), Param::IntegerList(chosen)];
        let leased = self.fetch_rows(Statement { sql: self.spell(sql), params }).await?;
        let mut deliveries = Vec::with_capacity(leased.len());
        for row in leased {
            let (seq, attempts, record_id) = (row.integer(0)?, row.integer(1)?, row.optional_text(2)?);
            deliveries.push(ClaimedDelivery { seq, attempts, record_id, event: None });
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
            "SELECT seq, id, topic, payload, occurred_at, depth FROM svc_events WHERE {}",
            among(self.dialect(), "seq", 1)
        );
        let statement = Statement { sql: self.spell(sql), params: vec![Param::IntegerList(seqs)] };
        let read = |row: &Row| {
            let payload = row.text(3).ok()?;
            serde_json::from_str::<serde::de::IgnoredAny>(&payload).ok()?;
            let event = ClaimedEvent {
                id: row.text(1).ok()?,
                topic: row.text(2).ok()?,
                payload,
                occurred_at: row.integer(4).ok()?,
                depth: row.integer(5).ok()?,
            };
            Some((row.integer(0).ok()?, event))
        };
        Ok(self.fetch_rows(statement).await?.iter().filter_map(read).collect())
    }

    async fn give_up(&mut self, consumer: &str, seqs: Vec<i64>) -> Result<u64, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'failed', dead = TRUE, next_attempt_at = NULL, lease_token = NULL, lease_until = NULL, \
             error = 'the server ended each time while this was delivered' WHERE consumer = $1 AND {}",
            among(self.dialect(), "event_seq", 2)
        );
        let params = vec![consumer.into(), Param::IntegerList(seqs)];
        self.execute(Statement { sql: self.spell(sql), params }).await
    }

    /// Stores how attempts ended, of those whose claim still holds: how many did not hold any more.
    pub async fn settle_deliveries(
        &mut self,
        consumer: &str,
        token: &str,
        outcomes: Vec<(i64, Outcome)>,
    ) -> Result<u64, DbError> {
        let count = outcomes.len() as u64;
        let (mut delivered, mut released, mut settled) = (Vec::new(), Vec::new(), 0);
        for (seq, outcome) in outcomes {
            match outcome {
                Outcome::Delivered => delivered.push(seq),
                Outcome::Released => released.push(seq),
                Outcome::Failed { error, retry_ms } => settled += self.fail(consumer, token, seq, error, Some(retry_ms)).await?,
                Outcome::Dead { error } => settled += self.fail(consumer, token, seq, error, None).await?,
            }
        }
        if !delivered.is_empty() {
            settled += self.deliver(consumer, token, delivered).await?;
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
             next_attempt_at = NULL, lease_token = NULL, lease_until = NULL, delivered_at = {} \
             WHERE consumer = $1 AND lease_token = $2 AND {}",
            database_now(dialect),
            among(dialect, "event_seq", 3)
        );
        let params = vec![consumer.into(), token.into(), Param::IntegerList(seqs)];
        self.execute(Statement { sql: self.spell(sql), params }).await
    }

    /// Dead where there is no time of a retry.
    async fn fail(
        &mut self,
        consumer: &str,
        token: &str,
        seq: i64,
        error: String,
        retry_ms: Option<i64>,
    ) -> Result<u64, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'failed', dead = $4, attempts = attempts + 1, claims = 0, error = $5, \
             next_attempt_at = {} + $6, lease_token = NULL, lease_until = NULL \
             WHERE consumer = $1 AND lease_token = $2 AND event_seq = $3",
            database_now(self.dialect())
        );
        let params =
            vec![consumer.into(), token.into(), seq.into(), retry_ms.is_none().into(), error.into(), Param::BigInteger(retry_ms)];
        self.execute(Statement { sql: self.spell(sql), params }).await
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

    /// Ends all claims: those of a process that is gone, on a database that no other has.
    pub async fn release_claims(&mut self) -> Result<u64, DbError> {
        let mut released = 0;
        for unsettled in ["status = 'pending'", "status = 'failed' AND NOT dead"] {
            let sql = format!(
                "UPDATE svc_deliveries SET lease_token = NULL, lease_until = NULL WHERE {unsettled} AND lease_token IS NOT NULL"
            );
            released += self.execute(Statement { sql, params: Vec::new() }).await?;
        }
        Ok(released)
    }

    /// Those of the groups that have something due.
    pub async fn groups_with_work(&mut self, consumers: Vec<String>) -> Result<Vec<String>, DbError> {
        let dialect = self.dialect();
        let now = database_now(dialect);
        let groups = match dialect {
            Dialect::Sqlite => "SELECT value AS consumer FROM json_each($1)",
            Dialect::Postgres => "SELECT consumer FROM unnest($1) AS g (consumer)",
        };
        let free = format!("(d.lease_until IS NULL OR d.lease_until <= {now})");
        let sql = format!(
            "SELECT g.consumer FROM ({groups}) AS g WHERE \
             EXISTS (SELECT 1 FROM svc_deliveries d WHERE d.consumer = g.consumer AND d.status = 'pending' AND {free}) \
             OR EXISTS (SELECT 1 FROM svc_deliveries d WHERE d.consumer = g.consumer AND d.status = 'failed' AND NOT d.dead \
             AND d.next_attempt_at <= {now} AND {free})"
        );
        let statement = Statement { sql: self.spell(sql), params: vec![Param::TextList(Some(consumers))] };
        self.fetch_rows(statement).await?.iter().map(|row| row.text(0)).collect()
    }

    /// The groups that still have something to get, found by a step an index entry and group.
    pub async fn groups_unsettled(&mut self) -> Result<Vec<String>, DbError> {
        let mut groups = Vec::new();
        for unsettled in ["status = 'pending'", "status = 'failed' AND NOT dead"] {
            let sql = format!(
                "WITH RECURSIVE found (consumer) AS (\
                   SELECT min(consumer) FROM svc_deliveries WHERE {unsettled} \
                   UNION ALL \
                   SELECT (SELECT min(d.consumer) FROM svc_deliveries d WHERE {unsettled} AND d.consumer > found.consumer) \
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
        for unsettled in ["status = 'pending'", "status = 'failed' AND NOT dead"] {
            let sql = format!(
                "DELETE FROM svc_deliveries WHERE consumer = $1 AND event_seq IN \
                 (SELECT event_seq FROM svc_deliveries WHERE consumer = $1 AND {unsettled} AND event_seq <= $2 LIMIT $3)"
            );
            let params = vec![consumer.into(), up_to.into(), limit.into()];
            dropped += self.execute(Statement { sql: self.spell(sql), params }).await?;
        }
        Ok(dropped)
    }

    /// A page of the ledger, the newest event first, and how many entries there are in all.
    pub async fn ledger(&mut self, filter: &LedgerFilter, limit: i64, offset: i64) -> Result<(Vec<LedgerRow>, i64), DbError> {
        let mut conditions = vec!["TRUE".to_owned()];
        let mut params: Vec<Param> = Vec::new();
        let mut add = |condition: &str, param: Param| {
            params.push(param);
            conditions.push(format!("{condition} ${}", params.len()));
        };
        if let Some(status) = &filter.status {
            add("d.status =", status.clone().into());
        }
        if let Some(consumer) = &filter.consumer {
            add("d.consumer =", consumer.clone().into());
        }
        match filter.is_dead {
            None => {}
            // Spelt out, so that the index of the dead serves it.
            Some(true) => conditions.push("d.dead".to_owned()),
            Some(false) => conditions.push("NOT d.dead".to_owned()),
        }
        let conditions = conditions.join(" AND ");
        let sql = format!("SELECT count(*) FROM svc_deliveries d WHERE {conditions}");
        let total = self.fetch_integer(Statement { sql: self.spell(sql), params: params.clone() }).await?;
        params.extend([limit.into(), offset.into()]);
        let sql = format!(
            "SELECT {} FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq WHERE {conditions} \
             ORDER BY d.event_seq DESC, d.consumer LIMIT ${} OFFSET ${}",
            ledger_columns!(),
            params.len() - 1,
            params.len()
        );
        let rows = self.fetch_rows(Statement { sql: self.spell(sql), params }).await?;
        Ok((rows.iter().map(ledger_row).collect::<Result<_, _>>()?, total))
    }

    /// One entry of the ledger, which nobody else changes until the transaction ends.
    pub async fn held_delivery(&mut self, event_id: &str, consumer: &str) -> Result<Option<LedgerRow>, DbError> {
        let sql = format!(
            "SELECT {} FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq WHERE e.id = $1 AND d.consumer = $2{}",
            ledger_columns!(),
            match self.dialect() {
                Dialect::Sqlite => "",
                Dialect::Postgres => " FOR UPDATE OF d",
            }
        );
        let statement = Statement { sql: self.spell(sql), params: vec![event_id.into(), consumer.into()] };
        self.fetch_rows(statement).await?.first().map(ledger_row).transpose()
    }

    /// Makes a delivery pending again with all its attempts; an attempt that is under way does not count any more.
    pub async fn reset_delivery(&mut self, event_id: &str, consumer: &str) -> Result<bool, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'pending', dead = FALSE, attempts = 0, claims = 0, error = NULL, \
             next_attempt_at = {}, lease_token = NULL, lease_until = NULL \
             WHERE consumer = $2 AND event_seq = (SELECT seq FROM svc_events WHERE id = $1)",
            database_now(self.dialect())
        );
        let statement = Statement { sql: self.spell(sql), params: vec![event_id.into(), consumer.into()] };
        let reset = self.execute(statement).await? == 1;
        if reset {
            self.effects.consumers.insert(consumer.to_owned());
        }
        Ok(reset)
    }

    /// How much each group has to get, and when the oldest of it happened.
    pub async fn queue_depths(&mut self) -> Result<(Vec<QueueDepth>, Option<i64>), DbError> {
        let sql = "SELECT consumer, count(*) FROM svc_deliveries WHERE status = 'pending' GROUP BY consumer ORDER BY consumer";
        let mut depths = Vec::new();
        for row in self.fetch(sql, Vec::new()).await? {
            depths.push(QueueDepth { consumer: row.text(0)?, pending: row.integer(1)? });
        }
        let mut oldest: Option<i64> = None;
        for depth in &depths {
            let sql = "SELECT e.occurred_at FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq \
                       WHERE d.consumer = $1 AND d.status = 'pending' ORDER BY d.event_seq LIMIT 1";
            let rows = self.fetch(sql, vec![depth.consumer.clone().into()]).await?;
            let occurred_at = rows.first().map(|row| row.integer(0)).transpose()?;
            oldest = oldest.into_iter().chain(occurred_at).min();
        }
        Ok((depths, oldest))
    }
}
