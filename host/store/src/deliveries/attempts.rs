//! The result of each attempt to deliver. Results are kept beside the ledger, even after a manual retry.
//!
//! Most deliveries of a large ledger succeeded at the first attempt. They need no row and no further column here. The ledger's
//! own row has all their data, and [`Connection::delivery_attempts`] reads it. The first failed attempt and each later attempt
//! cost one row, up to [`ATTEMPTS_KEPT`] rows for each delivery. The length of an error is limited. Rows are deleted by ranges of
//! event numbers, with one statement for each batch. So the deletion of a delivery does not have to look for rows that it rarely
//! has.

use blockbase_query::{Param, Statement};

use crate::connection::Connection;
use crate::dialect_sql::{among, database_now};
use crate::error::DbError;

/// The number of attempts that are stored of a delivery. They are the last ones.
pub const ATTEMPTS_KEPT: i64 = 20;

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// The number of the event.
    pub seq: i64,
    /// The number of attempts that ended before this one since the last manual retry.
    pub attempts: i64,
    /// The number of the attempt before this one, if that attempt is stored.
    pub last_attempt: Option<i64>,
    /// The duration. `None` if there was no attempt.
    pub duration_ms: Option<i64>,
}

impl Attempted {
    /// Whether no attempt of this delivery is stored, so that a success needs no row.
    pub(super) fn is_first(&self) -> bool {
        self.last_attempt.is_none()
    }

    /// The attempt's number among all attempts of its delivery.
    pub(super) fn number(&self) -> i64 {
        self.last_attempt.unwrap_or(self.attempts) + 1
    }
}

/// An attempt as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRow {
    pub number: i64,
    /// Milliseconds since the epoch.
    pub ended_at: i64,
    pub duration_ms: Option<i64>,
    /// The error. `None` if the attempt succeeded.
    pub error: Option<String>,
}

impl Connection {
    /// The stored attempts of a delivery, the last one first.
    pub async fn delivery_attempts(&mut self, event_id: &str, consumer: &str) -> Result<Vec<AttemptRow>, DbError> {
        const ATTEMPTS: &str = "SELECT number, ended_at, duration_ms, error FROM svc_delivery_attempts \
             WHERE event_seq = (SELECT seq FROM svc_events WHERE id = $1) AND consumer = $2 ORDER BY number DESC LIMIT $3";
        let params = vec![event_id.into(), consumer.into(), ATTEMPTS_KEPT.into()];
        let rows = self.fetch(ATTEMPTS, params).await?;
        rows.iter()
            .map(|row| {
                Ok(AttemptRow {
                    number: row.integer(0)?,
                    ended_at: row.integer(1)?,
                    duration_ms: row.optional_integer(2)?,
                    error: row.optional_text(3)?,
                })
            })
            .collect()
    }

    /// Stores an attempt whose claim was valid, and deletes the oldest one if there are too many. It replaces an attempt with the same
    /// number, because a conflict in the history must not stop deliveries.
    pub(super) async fn keep_attempt(
        &mut self,
        consumer: &str,
        attempted: &Attempted,
        error: Option<String>,
    ) -> Result<(), DbError> {
        let number = attempted.number();
        let sql = format!(
            "INSERT INTO svc_delivery_attempts (event_seq, consumer, number, ended_at, duration_ms, error) \
             VALUES ($1, $2, $3, {}, $4, $5) ON CONFLICT (event_seq, consumer, number) \
             DO UPDATE SET ended_at = excluded.ended_at, duration_ms = excluded.duration_ms, error = excluded.error",
            database_now(self.dialect())
        );
        let params =
            vec![attempted.seq.into(), consumer.into(), number.into(), Param::BigInteger(attempted.duration_ms), error.into()];
        self.execute(Statement { sql: self.placeholders(sql), params }).await?;
        if number > ATTEMPTS_KEPT {
            const FORGET: &str = "DELETE FROM svc_delivery_attempts WHERE event_seq = $1 AND consumer = $2 AND number <= $3";
            self.run(FORGET, vec![attempted.seq.into(), consumer.into(), (number - ATTEMPTS_KEPT).into()]).await?;
        }
        Ok(())
    }

    /// Stores the ledger's error for deliveries that were given up without an attempt that ended. The number is that of the
    /// ledger's attempts.
    pub(super) async fn keep_last_errors(&mut self, consumer: &str, seqs: Vec<i64>) -> Result<(), DbError> {
        let dialect = self.dialect();
        let keep = format!(
            "INSERT INTO svc_delivery_attempts (event_seq, consumer, number, ended_at, error) \
             SELECT event_seq, consumer, last_attempt, {}, error FROM svc_deliveries WHERE consumer = $1 AND {} \
             ON CONFLICT DO NOTHING",
            database_now(dialect),
            among(dialect, "event_seq", 2)
        );
        let forget = format!(
            "DELETE FROM svc_delivery_attempts WHERE consumer = $1 AND {} AND number <= {} - {ATTEMPTS_KEPT}",
            among(dialect, "event_seq", 2),
            "(SELECT d.last_attempt FROM svc_deliveries d WHERE d.consumer = $1 AND d.event_seq = svc_delivery_attempts.event_seq)"
        );
        for sql in [keep, forget] {
            let params = vec![consumer.into(), Param::IntegerList(seqs.clone())];
            self.execute(Statement { sql: self.placeholders(sql), params }).await?;
        }
        Ok(())
    }

    /// Deletes the attempts of dropped deliveries.
    pub(super) async fn forget_attempts(&mut self, consumer: &str, seqs: Vec<i64>) -> Result<(), DbError> {
        let sql = format!("DELETE FROM svc_delivery_attempts WHERE consumer = $1 AND {}", among(self.dialect(), "event_seq", 2));
        let params = vec![consumer.into(), Param::IntegerList(seqs)];
        self.execute(Statement { sql: self.placeholders(sql), params }).await.map(|_| ())
    }

    /// Deletes the attempts for those events in `(after, up_to]` that were deleted with their deliveries.
    pub(crate) async fn forget_attempts_of_purged(&mut self, after: i64, up_to: i64) -> Result<(), DbError> {
        const FORGET: &str = "DELETE FROM svc_delivery_attempts WHERE event_seq > $1 AND event_seq <= $2 \
             AND NOT EXISTS (SELECT 1 FROM svc_events e WHERE e.seq = svc_delivery_attempts.event_seq)";
        self.run(FORGET, vec![after.into(), up_to.into()]).await.map(|_| ())
    }
}
