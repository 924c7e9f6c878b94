//! New tickets that open an event stream. A browser's `EventSource` can send no header, so its URL has a ticket instead of the
//! credential itself.

use blockbase_auth::{StreamTicket, hash_token};
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{StreamTicketRow, TicketCredential, TicketStored};
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::access::identity::Presented;
use crate::base::answer::Timestamp;
use crate::caller::{Caller, Credentials};

/// How long a ticket can be used, in milliseconds.
const TICKET_MS: i64 = 60_000;

/// A ticket that opens one event stream.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcStreamTicket", deny_unknown_fields)]
pub struct StreamTicketAnswer {
    /// The value of `ticket` in the query of the stream. Only this response shows it.
    ticket: String,
    expires_at: Timestamp,
}

/// The owner to whom a ticket counts, as it is stored. The text is plain. A hash of an address could be found by trying all
/// addresses, so it would hide nothing.
fn stored_owner(owner: &QuotaOwner) -> String {
    match owner {
        QuotaOwner::Service => "service".to_owned(),
        QuotaOwner::User(id) => format!("user {id}"),
        QuotaOwner::Key(id) => format!("key {id}"),
        QuotaOwner::Address(network) => format!("network {network}"),
        QuotaOwner::Block(name) => format!("block {name}"),
    }
}

impl App {
    /// Makes a ticket that opens one event stream with the caller's credential. An owner can have as many unused tickets as open
    /// streams.
    ///
    /// # Errors
    /// `unauthorized` if the caller may not have streams, `rate_limited` if the owner has too many unused tickets.
    pub async fn make_stream_ticket(&self, caller: &Caller, credentials: &Credentials) -> Result<StreamTicketAnswer> {
        self.may_stream(caller)?;
        let credential = match self.presented(credentials) {
            // Without enforcement, callers without a valid credential may have streams too.
            _ if !caller.is_known() => None,
            Presented::ApiKey(key) => Some(TicketCredential::ApiKey(hash_token(&key))),
            Presented::Bearer(Some(token)) | Presented::Cookie(token) => Some(TicketCredential::Session(hash_token(&token))),
            Presented::Nothing | Presented::Bearer(None) | Presented::Ticket(_) => return Err(Error::unauthenticated()),
        };
        let ticket = StreamTicket::random().map_err(Error::internal)?;
        let now = self.clock.now();
        let row = StreamTicketRow {
            ticket_hash: ticket.hash(),
            owner: stored_owner(caller.quota_owner()),
            credential,
            expires_at: now + TICKET_MS,
        };
        let (expires_at, most) = (row.expires_at, self.settings.streams_of_one_max);
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let stored = self
            .store
            .write(self.by(caller), move |connection| {
                Box::pin(async move { Ok(connection.insert_stream_ticket(row, limit, now).await?) })
            })
            .await?;
        match stored {
            TicketStored::Stored => {
                Ok(StreamTicketAnswer { ticket: ticket.as_str().to_owned(), expires_at: Timestamp(expires_at) })
            }
            TicketStored::TooMany { until } => {
                let message = format!(
                    "You have {most} tickets that no stream has used yet, the most that one caller may have. Use one, or try \
                     again later."
                );
                let seconds = (until - now).max(0).div_euclid(1000) + 1;
                Err(Error::new(Code::RateLimited, message).with_retry_after(u16::try_from(seconds).unwrap_or(u16::MAX)))
            }
        }
    }
}
