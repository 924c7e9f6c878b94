//! The single connections of this instance, and the operations on them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use blockbase_app::schema::{BUSY_RETRY_AFTER_S, Code, Error, Result};
use blockbase_app::{Caller, FrameSender, Frames, StreamPlace};
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// The maximum number of reserved connections, whether open or not.
const CONNECTIONS_MAX: usize = 10_000;
/// The maximum number of connections of one owner.
const CONNECTIONS_OF_ONE_MAX: usize = 20;
/// The maximum number of results that one connection makes at the same time. The size of a result counts in the caller's share,
/// but it is known only after the result is made.
const RESULTS_AT_ONCE: usize = 2;
const TOKEN_HEADER: &str = "x-graphql-event-stream-token";

/// The connections of this instance, by their tokens.
#[derive(Default)]
pub(crate) struct Connections {
    by_token: Mutex<HashMap<String, Connection>>,
    pub(crate) operations: AtomicU64,
}

pub(crate) struct Connection {
    /// The owner. No other caller may use the connection, even with its token.
    owner: Owner,
    pub(crate) frames: FrameSender,
    /// The permits for its operations to make a result.
    pub(crate) results: Arc<Semaphore>,
    /// The frames, until the connection is opened.
    pub(crate) waiting: Option<Frames>,
    /// The connection's permit for an open stream.
    _place: StreamPlace,
    pub(crate) operations: HashMap<String, Slot>,
}

/// An operation on its connection. A later operation with the same id has another number.
pub(crate) enum Slot {
    /// The document of the operation is being checked.
    Starting(u64),
    /// The operation runs. The last value is the size of its variables in bytes.
    Running(u64, AbortHandle, usize),
}

impl Slot {
    pub(crate) fn number(&self) -> u64 {
        match self {
            Slot::Starting(number) | Slot::Running(number, ..) => *number,
        }
    }

    pub(crate) fn variable_bytes(&self) -> usize {
        match self {
            Slot::Starting(_) => 0,
            Slot::Running(_, _, bytes) => *bytes,
        }
    }

    pub(crate) fn end(&self) {
        if let Slot::Running(_, handle, _) = self {
            handle.abort();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.operations.values().for_each(Slot::end);
    }
}

/// A user, with the API key if they use one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner(Option<(Option<String>, Option<String>)>);

impl Owner {
    pub(crate) fn of(caller: &Caller) -> Owner {
        Owner(caller.principal.actor().map(|actor| (actor.user_id.clone(), actor.api_key_id.clone())))
    }
}

impl Connections {
    /// The token with which a request names its connection.
    pub(crate) fn token(&self, headers: &HeaderMap, query: &str) -> Option<String> {
        let of_header = headers.get(TOKEN_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        of_header.or_else(|| parameter(query, "token")).filter(|token| !token.is_empty())
    }

    pub(crate) fn reserve(&self, owner: Owner, place: StreamPlace, (frames, waiting): (FrameSender, Frames)) -> Result<String> {
        let mut by_token = self.by_token.lock();
        if by_token.values().filter(|known| known.owner == owner).count() >= CONNECTIONS_OF_ONE_MAX {
            let message = format!("One caller can have at most {CONNECTIONS_OF_ONE_MAX} event streams of this kind.");
            return Err(Error::new(Code::RateLimited, message).with_retry_after(BUSY_RETRY_AFTER_S));
        }
        if by_token.len() >= CONNECTIONS_MAX {
            let message = "This server has as many event streams open as it allows. Try again later.";
            return Err(Error::busy(message));
        }
        let token = uuid::Uuid::new_v4().to_string();
        let waiting = Some(waiting);
        let (results, operations) = (Arc::new(Semaphore::new(RESULTS_AT_ONCE)), HashMap::new());
        by_token.insert(token.clone(), Connection { owner, frames, results, waiting, _place: place, operations });
        Ok(token)
    }

    /// Runs `act` on the owner's connection. `None` if the owner has no connection with this token.
    pub(crate) fn with<T>(&self, token: &str, owner: &Owner, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let mut by_token = self.by_token.lock();
        let connection = by_token.get_mut(token)?;
        (connection.owner == *owner).then(|| act(connection))
    }

    /// Closes a reservation that nobody has opened.
    pub(crate) fn lapse(&self, token: &str) {
        let mut by_token = self.by_token.lock();
        let lapsed = by_token.get(token).is_some_and(|connection| connection.waiting.is_some());
        let connection = if lapsed { by_token.remove(token) } else { None };
        drop(by_token);
        drop(connection);
    }

    /// Frees an operation's slot, if the slot still belongs to this operation.
    pub(crate) fn release(&self, token: &str, id: &str, number: u64) {
        if let Some(connection) = self.by_token.lock().get_mut(token)
            && connection.operations.get(id).is_some_and(|slot| slot.number() == number)
        {
            connection.operations.remove(id);
        }
    }

    pub(crate) fn close(&self, token: &str) {
        let closed = self.by_token.lock().remove(token);
        drop(closed);
    }
}

pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}
