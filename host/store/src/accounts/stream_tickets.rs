//! Tickets that open one event stream each. Only the SHA-256 of a ticket is stored.

use blockbase_query::{Dialect, Param};

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// The number of the lock that serializes the new tickets of one owner on Postgres.
const TICKET_LOCK: i32 = 0x7469_636b;

/// The credential that a ticket was made with, as its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketCredential {
    /// SHA-256 of a session's token.
    Session(String),
    /// SHA-256 of an API key.
    ApiKey(String),
}

const SESSION: &str = "session";
const API_KEY: &str = "api_key";

/// A ticket to be stored.
#[derive(Clone, Debug)]
pub struct StreamTicketRow {
    /// SHA-256 of the ticket, in hexadecimal.
    pub ticket_hash: String,
    /// The owner to whom the ticket counts, for example `user <id>`.
    pub owner: String,
    /// `None` if permissions are not enforced and the maker had no credential.
    pub credential: Option<TicketCredential>,
    pub expires_at: i64,
}

/// The result of storing a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketStored {
    Stored,
    /// The owner has as many tickets as allowed. The first of them expires at this time.
    TooMany {
        until: i64,
    },
}

fn credential(row: &Row) -> Result<Option<TicketCredential>, DbError> {
    match (row.optional_text(0)?.as_deref(), row.optional_text(1)?) {
        (None, _) => Ok(None),
        (Some(SESSION), Some(hash)) => Ok(Some(TicketCredential::Session(hash))),
        (Some(API_KEY), Some(hash)) => Ok(Some(TicketCredential::ApiKey(hash))),
        (Some(kind), _) => Err(DbError::Other(format!("there is no kind of credential {kind:?}").into())),
    }
}

impl Connection {
    /// Stores a ticket, unless its owner has `most` tickets that have not expired.
    pub async fn insert_stream_ticket(&mut self, ticket: StreamTicketRow, most: i64, now: i64) -> Result<TicketStored, DbError> {
        if self.dialect() == Dialect::Postgres {
            // Without the lock, concurrent requests could not see each other's tickets, and would exceed the limit together.
            let lock = "SELECT 1::bigint FROM pg_advisory_xact_lock($1, hashtext($2))";
            self.fetch(lock, vec![Param::Integer(Some(TICKET_LOCK)), ticket.owner.clone().into()]).await?;
        }
        let expired = "DELETE FROM svc_stream_tickets WHERE owner = $1 AND expires_at <= $2";
        self.run(expired, vec![ticket.owner.clone().into(), now.into()]).await?;
        let held = "SELECT count(*), coalesce(min(expires_at), 0) FROM svc_stream_tickets WHERE owner = $1";
        let rows = self.fetch(held, vec![ticket.owner.clone().into()]).await?;
        if let Some(row) = rows.first()
            && row.integer(0)? >= most
        {
            return Ok(TicketStored::TooMany { until: row.integer(1)? });
        }
        let (kind, hash) = match ticket.credential {
            None => (None, None),
            Some(TicketCredential::Session(hash)) => (Some(SESSION.to_owned()), Some(hash)),
            Some(TicketCredential::ApiKey(hash)) => (Some(API_KEY.to_owned()), Some(hash)),
        };
        self.run(
            "INSERT INTO svc_stream_tickets (ticket_hash, owner, credential_kind, credential_hash, expires_at) \
             VALUES ($1, $2, $3, $4, $5)",
            vec![ticket.ticket_hash.into(), ticket.owner.into(), kind.into(), hash.into(), ticket.expires_at.into()],
        )
        .await?;
        Ok(TicketStored::Stored)
    }

    /// The credential of a ticket. `None` if the ticket was used, has expired or never existed.
    pub async fn stream_ticket(&mut self, ticket_hash: &str, now: i64) -> Result<Option<Option<TicketCredential>>, DbError> {
        let sql = "SELECT credential_kind, credential_hash FROM svc_stream_tickets WHERE ticket_hash = $1 AND expires_at > $2";
        let rows = self.fetch(sql, vec![ticket_hash.into(), now.into()]).await?;
        rows.first().map(credential).transpose()
    }

    /// Uses a ticket up, and returns its credential. Of several concurrent calls, only one gets it.
    pub async fn use_stream_ticket(&mut self, ticket_hash: &str, now: i64) -> Result<Option<Option<TicketCredential>>, DbError> {
        let rows = self
            .fetch(
                "DELETE FROM svc_stream_tickets WHERE ticket_hash = $1 AND expires_at > $2 \
                 RETURNING credential_kind, credential_hash",
                vec![ticket_hash.into(), now.into()],
            )
            .await?;
        rows.first().map(credential).transpose()
    }

    /// Deletes at most `limit` tickets that have expired.
    pub async fn purge_stream_tickets(&mut self, now: i64, limit: i64) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_stream_tickets WHERE ticket_hash IN (SELECT ticket_hash FROM svc_stream_tickets \
             WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
            vec![now.into(), limit.into()],
        )
        .await
    }
}
