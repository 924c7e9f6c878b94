//! Sessions: their owners, the list of tools that each client knows, and the running requests.
//!
//! A session exists only in this process and gives no rights. It ends if nobody uses it for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{Caller, QuotaOwner};
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::answer;
use crate::answer::Answer;
use crate::message::SESSION_HEADER;

/// The maximum number of sessions in one process.
const SESSIONS_MAX: usize = 10_000;
/// The maximum number of sessions of one owner. An owner is a user, a key that somebody else made, or the network address of
/// guests and of callers without a credential.
const SESSIONS_OF_ONE_MAX: usize = 1_000;
/// A session ends after this time without a request or an open stream.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// The maximum number of open streams of one session. A client needs one. The others allow for broken streams that the server has
/// not noticed yet.
const STREAMS_OF_ONE_MAX: usize = 8;
/// The number of seconds that a client should wait before it tries again.
const RETRY_AFTER_S: u16 = 1;
/// The maximum number of requests of one session that run at the same time.
const RUNNING_MAX: usize = 200;

/// The owner of a session: the user and the key. The credential does not matter, because it may be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Anonymous,
    Known { user_id: Option<String>, api_key_id: Option<String> },
}

impl Owner {
    pub(crate) fn of(caller: &Caller) -> Owner {
        match caller.principal.actor() {
            None => Owner::Anonymous,
            Some(actor) => Owner::Known { user_id: actor.user_id.clone(), api_key_id: actor.api_key_id.clone() },
        }
    }
}

struct State {
    used_at: Instant,
    /// The fingerprint of the list of tools that the client got last, or could have got when the session began. A notification
    /// does not change it. So if a notification was lost with a broken connection, the next stream repeats it.
    known_tools: u64,
    streams: usize,
    /// The notifiers that cancel running requests. The key is the request's id as text.
    running: HashMap<String, Arc<Notify>>,
}

/// A session.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) owner: Owner,
    quota_owner: QuotaOwner,
    state: Mutex<State>,
    /// Becomes true when the session ends.
    ended: watch::Sender<bool>,
}

impl Session {
    fn is_idle(&self, now: Instant) -> bool {
        let state = self.state.lock();
        state.streams == 0 && state.running.is_empty() && now.duration_since(state.used_at) > IDLE_MAX
    }

    pub(crate) fn known_tools(&self) -> u64 {
        self.state.lock().known_tools
    }

    pub(crate) fn set_known_tools(&self, shown: u64) {
        self.state.lock().known_tools = shown;
    }

    pub(crate) fn watch_end(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Counts a stream as open until the result is dropped.
    ///
    /// # Errors
    /// `rate_limited` if the session has too many open streams.
    pub(crate) fn open_stream(self: &Arc<Self>) -> Result<StreamOfSession> {
        let mut state = self.state.lock();
        if state.streams >= STREAMS_OF_ONE_MAX {
            let message = format!("A session can have at most {STREAMS_OF_ONE_MAX} open streams. Close one of them.");
            return Err(Error::new(Code::RateLimited, message).with_retry_after(RETRY_AFTER_S));
        }
        state.streams += 1;
        Ok(StreamOfSession(Arc::clone(self)))
    }

    /// Registers a request, which can be cancelled until the result is dropped.
    ///
    /// # Errors
    /// `invalid_request` if another running request has this id, `unavailable` if too many requests run.
    pub(crate) fn run(self: &Arc<Self>, id: &str) -> Result<Running> {
        let mut state = self.state.lock();
        if state.running.contains_key(id) {
            return Err(Error::invalid_request(format!("A request of this session with the id {id} is still running.")));
        }
        if state.running.len() >= RUNNING_MAX {
            let message = format!("A session can have at most {RUNNING_MAX} running requests. Wait until one of them has ended.");
            return Err(Error::new(Code::Unavailable, message).with_retry_after(RETRY_AFTER_S));
        }
        let cancelled = Arc::new(Notify::new());
        state.running.insert(id.to_owned(), Arc::clone(&cancelled));
        Ok(Running { session: Arc::clone(self), id: id.to_owned(), cancelled })
    }

    /// Cancels a running request. Does nothing if no request has this id.
    pub(crate) fn cancel(&self, id: &str) {
        if let Some(running) = self.state.lock().running.get(id) {
            running.notify_one();
        }
    }
}

/// An open stream. When this is dropped, the stream no longer counts.
pub(crate) struct StreamOfSession(Arc<Session>);

impl Drop for StreamOfSession {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.streams -= 1;
        state.used_at = Instant::now();
    }
}

/// A running request. When this is dropped, the request is no longer registered.
pub(crate) struct Running {
    session: Arc<Session>,
    id: String,
    cancelled: Arc<Notify>,
}

impl Running {
    pub(crate) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.running.remove(&self.id);
        state.used_at = Instant::now();
    }
}

/// The sessions of this process.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// Begins a session. `known_tools` is the fingerprint of the list of tools that its client can know. Returns `None` if there are
    /// too many sessions. A client without a session only misses notifications of changes.
    pub(crate) fn begin(&self, caller: &Caller, known_tools: u64) -> Option<Arc<Session>> {
        let (owner, now) = (Owner::of(caller), Instant::now());
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| !session.is_idle(now));
        let of_one = sessions.values().filter(|session| session.quota_owner == *caller.quota_owner()).count();
        if sessions.len() >= SESSIONS_MAX || of_one >= SESSIONS_OF_ONE_MAX {
            return None;
        }
        let state = State { used_at: now, known_tools, streams: 0, running: HashMap::new() };
        let id = Uuid::new_v4().to_string();
        let session = Arc::new(Session {
            id: id.clone(),
            owner,
            quota_owner: caller.quota_owner().clone(),
            state: Mutex::new(state),
            ended: watch::Sender::new(false),
        });
        sessions.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The caller's session that the request names. The session of another caller counts as missing.
    ///
    /// # Errors
    /// The answer to a request that names no session, or a session that does not exist.
    pub(crate) fn named(&self, headers: &HeaderMap, caller: &Caller) -> Result<Arc<Session>, Box<Answer>> {
        let Some(id) = headers.get(SESSION_HEADER) else { return Err(Box::new(answer::no_session(false))) };
        let missing = || Box::new(answer::no_session(true));
        let id = id.to_str().map_err(|_| missing())?;
        let mut sessions = self.0.lock();
        let now = Instant::now();
        if sessions.get(id).is_some_and(|session| session.is_idle(now)) {
            sessions.remove(id);
        }
        let session = sessions.get(id).filter(|session| session.owner == Owner::of(caller)).ok_or_else(missing)?;
        session.state.lock().used_at = now;
        Ok(Arc::clone(session))
    }

    /// Ends a session with its streams.
    pub(crate) fn end(&self, session: &Session) {
        self.0.lock().remove(&session.id);
        session.ended.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_so_many_sessions_and_no_more() {
        let sessions = Sessions::default();
        let nobody = Caller::system();
        for _ in 0..SESSIONS_OF_ONE_MAX {
            assert!(sessions.begin(&nobody, 0).is_some());
        }
        assert!(sessions.begin(&nobody, 0).is_none());
        let last = sessions.0.lock().values().next().cloned().expect("a session");
        sessions.end(&last);
        assert!(*last.watch_end().borrow());
        assert!(sessions.begin(&nobody, 0).is_some());
    }

    #[test]
    fn what_is_not_used_ends() {
        let sessions = Sessions::default();
        let session = sessions.begin(&Caller::system(), 0).expect("a session");
        let long_after = Instant::now() + IDLE_MAX + Duration::from_secs(1);
        assert!(!session.is_idle(Instant::now()));
        let running = session.run("1").expect("a request");
        assert!(session.run("1").is_err());
        assert!(!session.is_idle(long_after));
        drop(running);
        let stream = session.open_stream().expect("a stream");
        assert!(!session.is_idle(long_after));
        drop(stream);
        assert!(session.is_idle(long_after + IDLE_MAX));
    }

    #[test]
    fn streams_and_requests_of_a_session_are_bounded() {
        let session = Sessions::default().begin(&Caller::system(), 0).expect("a session");
        let streams: Vec<_> = (0..STREAMS_OF_ONE_MAX).map(|_| session.open_stream().expect("a stream")).collect();
        assert!(session.open_stream().is_err());
        drop(streams);
        assert!(session.open_stream().is_ok());
        let running: Vec<_> = (0..RUNNING_MAX).map(|id| session.run(&id.to_string()).expect("a request")).collect();
        assert!(session.run("one more").is_err());
        drop(running);
        assert!(session.run("one more").is_ok());
    }
}
