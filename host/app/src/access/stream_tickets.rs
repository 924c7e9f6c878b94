//! Tickets that open an event stream, when they are used. A ticket opens one stream.
//!
//! A ticket refers to the session or the API key that it was made with, and has no rights of its own. So the stream has the rights
//! of that credential at each event, and ends with it.
//!
//! A request with a ticket and a token or a key is refused, because the two can belong to different callers. A cookie beside a
//! ticket does not count, because the browser sends it by itself.

use std::net::IpAddr;
use std::sync::Arc;

use blockbase_auth::{StreamTicket, TokenHash};
use blockbase_quota::QuotaOwner;
use blockbase_schema::Result;
use blockbase_store::TicketCredential;

use crate::App;
use crate::access::identity::invalid_ticket;
use crate::access::quota::InTurnOf;
use crate::caller::identity::Identity;
use crate::caller::{Caller, Credentials, GivenTicket, TicketState};

impl App {
    /// The identity of a ticket's credential. `None` if the ticket was made without a credential. `address` is the one of the request.
    pub(super) async fn identity_of_ticket(&self, ticket: TicketState, address: Option<IpAddr>) -> Result<Option<Arc<Identity>>> {
        let credential = match ticket {
            TicketState::Used(credential) => credential,
            TicketState::Unused(ticket) => {
                // Anybody can send anything as a ticket. So a text of another form costs no read, and the others wait for the turn of
                // their network.
                let ticket = StreamTicket::parse(&ticket).ok_or_else(invalid_ticket)?;
                let (hash, now) = (ticket.hash(), self.clock.now());
                let found = self.store.read_rows(InTurnOf(QuotaOwner::of_address(address)), None, move |connection| {
                    Box::pin(async move { Ok(connection.stream_ticket(&hash, now).await?) })
                });
                found.await?.ok_or_else(invalid_ticket)?
            }
        };
        let parsed = |stored: &str| TokenHash::parse(stored).ok_or_else(invalid_ticket);
        let identity = match credential {
            None => return Ok(None),
            Some(TicketCredential::ApiKey(hash)) => self.identity_of_key_hash(parsed(&hash)?).await?,
            // Nobody could tell the browser that its session was extended.
            Some(TicketCredential::Session(hash)) => self.identity_of_token_hash(parsed(&hash)?, false).await?.0,
        };
        identity.map(Some).ok_or_else(invalid_ticket)
    }

    /// Uses up the ticket among the credentials. Returns the credentials with which the caller of the stream is checked again.
    /// Of several concurrent requests with one ticket, only one succeeds.
    ///
    /// # Errors
    /// `unauthorized` if the ticket is not valid any more.
    pub(crate) async fn use_stream_ticket(&self, caller: &Caller, credentials: &Credentials) -> Result<Credentials> {
        let Some(GivenTicket(TicketState::Unused(ticket))) = &credentials.ticket else { return Ok(credentials.clone()) };
        let ticket = StreamTicket::parse(ticket).ok_or_else(invalid_ticket)?;
        let (hash, now) = (ticket.hash(), self.clock.now());
        // The write frees room, so it is made even if the disk is nearly full.
        let used = self.store.write_in_reserve(self.by(caller), move |connection| {
            Box::pin(async move { Ok(connection.use_stream_ticket(&hash, now).await?) })
        });
        let credential = used.await?.ok_or_else(invalid_ticket)?;
        Ok(Credentials { ticket: Some(GivenTicket(TicketState::Used(credential))), ..credentials.clone() })
    }

    /// Deletes the tickets that have expired.
    pub async fn purge_stream_tickets(&self) -> Result<u64> {
        self.purge(|connection, now, most| Box::pin(connection.purge_stream_tickets(now, most))).await
    }
}
