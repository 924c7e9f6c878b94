//! A single connection for all operations of a client. PUT reserves it, GET opens it, POST begins an operation on it, and DELETE ends one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_graphql::parser::types::OperationType;
use blockbase_app::schema::{BUSY_RETRY_AFTER_S, Code, Error, Result};
use blockbase_app::{CALLER_RECHECK, CLIENT_STALLED_MAX, FrameSender, Frames, HEARTBEAT as HEARTBEAT_PERIOD, SessionRecheck};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::{Framing, HEARTBEAT, OPENING, event_stream, of_queue};
use crate::Graphql;
use crate::document::request::GraphqlRequest;
use crate::error::Refusal;
use crate::http::accept::Form;
use crate::http::answer::{Body, answer, refuse};
use crate::http::operation::{Operation, RequestContext};
use crate::sse_connections::{Owner, Slot, parameter};

/// The longest time until a reservation is opened.
const RESERVED_MAX: Duration = Duration::from_secs(60);
/// The maximum number of operations that run on one connection. The next constant is the maximum before the connection is opened.
const OPERATIONS_MAX: usize = 100;
const OPERATIONS_BEFORE_MAX: usize = 10;
/// The longest time that an operation waits for its turn to make a result.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// The maximum number of bytes of the variables of all operations that run on one connection. A single operation may have more.
const VARIABLE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// The maximum number of frames that wait for the client.
const FRAMES_AHEAD: usize = 64;

/// The response to an error about the connection. Its status follows from the code.
fn error_response(code: Code, message: &str) -> Response<Body> {
    let mut response = refuse(Form::Events, Refusal::Malformed(Error::new(code, message)));
    *response.status_mut() = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    response
}

fn no_connection() -> Response<Body> {
    error_response(Code::NotFound, "There is no such event stream. Reserve one with PUT.")
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

impl Graphql {
    /// Reserves a connection, and returns its token.
    pub(crate) fn reserve(self: &Arc<Self>, context: &RequestContext) -> Response<Body> {
        let allowed = self.app.may_stream(&context.caller).and_then(|()| context.caller.require_platform());
        let place = allowed.and_then(|()| self.app.stream_place(context.caller.quota_owner()));
        let reserve = |place| {
            let frames = self.app.frames(FRAMES_AHEAD, context.caller.quota_owner());
            self.sse.reserve(Owner::of(&context.caller), place, frames)
        };
        match place.and_then(reserve) {
            Ok(token) => {
                let (graphql, reserved) = (Arc::downgrade(self), token.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(RESERVED_MAX).await;
                    if let Some(graphql) = graphql.upgrade() {
                        graphql.sse.lapse(&reserved);
                    }
                });
                plain(StatusCode::CREATED, token)
            }
            Err(error) => refuse(Form::Events, Refusal::Malformed(error)),
        }
    }

    /// Opens a reserved connection.
    pub(crate) fn connect(self: &Arc<Self>, context: &RequestContext, token: &str) -> Response<Body> {
        let owner = Owner::of(&context.caller);
        let Some(waiting) = self.sse.with(token, &owner, |connection| connection.waiting.take()) else { return no_connection() };
        let Some(waiting) = waiting else {
            return error_response(Code::Conflict, "This event stream is already open.");
        };
        let (sender, receiver) = self.app.frames(1, context.caller.quota_owner());
        let open = Open {
            graphql: Arc::clone(self),
            token: token.to_owned(),
            owner,
            session_recheck: SessionRecheck::new(&self.app, context.caller.clone(), &context.credentials),
            waiting,
        };
        tokio::spawn(open.run(sender, self.draining.clone()));
        event_stream(of_queue(receiver))
    }

    /// Begins an operation, and sends its results to a connection.
    pub(crate) async fn begin(self: &Arc<Self>, context: RequestContext, token: &str, request: GraphqlRequest) -> Response<Body> {
        let Some(id) = request.operation_id.clone().filter(|id| !id.is_empty()) else {
            return error_response(Code::InvalidRequest, "`extensions.operationId` is missing.");
        };
        let owner = Owner::of(&context.caller);
        let number = self.sse.operations.fetch_add(1, Ordering::Relaxed);
        let taken = self.sse.with(token, &owner, |connection| {
            let most = if connection.waiting.is_some() { OPERATIONS_BEFORE_MAX } else { OPERATIONS_MAX };
            if connection.operations.contains_key(&id) {
                return Err("An operation with this id is already running.");
            }
            if connection.operations.len() >= most {
                return Err("This event stream already has as many running operations as it may have.");
            }
            connection.operations.insert(id.clone(), Slot::Starting(number));
            Ok(())
        });
        match taken {
            None => return no_connection(),
            Some(Err(message)) => return error_response(Code::Conflict, message),
            Some(Ok(())) => {}
        }
        // The slot is freed when this request ends, unless the operation runs.
        let mut place = StartingPlace { graphql: self, token, id: &id, number, is_kept: false };
        let form = context.form;
        let operation = match Operation::prepare(self, context, request, false).await {
            Ok(operation) => operation,
            Err(refusal) => return refuse(if form == Form::Json { Form::Graphql } else { form }, refusal),
        };
        let (graphql, whose, key) = (Arc::clone(self), token.to_owned(), id.clone());
        // A subscription drops its variables when it has begun.
        let bytes = if operation.ty() == OperationType::Subscription { 0 } else { operation.variable_bytes() };
        let begun = self.sse.with(token, &owner, |connection| {
            // An operation that was stopped meanwhile no longer has a slot, and does not begin.
            connection.operations.get(&id).filter(|slot| slot.number() == number)?;
            if !has_room(connection.operations.values().map(Slot::variable_bytes).sum(), bytes) {
                return Some(false);
            }
            let (frames, results) = (connection.frames.clone(), Arc::clone(&connection.results));
            let running = tokio::spawn(async move {
                graphql.feed(operation, &key, &frames, &results).await;
                graphql.sse.release(&whose, &key, number);
            });
            connection.operations.insert(id.clone(), Slot::Running(number, running.abort_handle(), bytes));
            Some(true)
        });
        match begun {
            None => return no_connection(),
            Some(Some(false)) => {
                return error_response(
                    Code::Conflict,
                    "The running operations of this event stream already have as many bytes of variables as they may have.",
                );
            }
            Some(begun) => place.is_kept = begun.is_some(),
        }
        answer(StatusCode::ACCEPTED, Form::Json, b"null".to_vec())
    }

    /// Sends an operation's results to its connection.
    async fn feed(&self, operation: Operation, id: &str, frames: &FrameSender, results: &Semaphore) {
        let framing = Framing::of_operation(id.to_owned());
        if operation.ty() == OperationType::Subscription {
            match self.subscribe(&operation, &framing, false).await {
                Ok(mut events) => {
                    // A long subscription should not keep its schema in memory.
                    drop(operation);
                    while let Some(frame) = events.next().await {
                        if !frames.send(frame).await {
                            return;
                        }
                    }
                }
                Err(error) => {
                    let _ = frames.send(framing.next(&crate::error::refused(&[error.into()]))).await;
                }
            }
        } else {
            let (result, turn) = match self.turn(&operation, results).await {
                Ok(turn) => (operation.run().await, Some(turn)),
                Err(error) => (crate::error::refused(&[error.into()]), None),
            };
            let frame = framing.next(&result);
            drop((operation, result, turn));
            let _ = frames.send(frame).await;
        }
        let _ = frames.send(framing.complete()).await;
    }

    /// Waits until a result may be made: first for room in the caller's share, then for its turn. With this order, operations
    /// that wait for room do not prevent others from getting their turn, and an operation without room gets its own error.
    async fn turn<'r>(&self, operation: &Operation, results: &'r Semaphore) -> Result<SemaphorePermit<'r>> {
        let owner = operation.context.caller.quota_owner();
        self.app.response_room(owner).await?;
        let turn = tokio::time::timeout(TURN_WAIT_MAX, results.acquire()).await.map_err(|_| no_turn())?;
        // Other operations may have taken the room during the wait.
        self.app.response_room(owner).await?;
        turn.map_err(Error::internal)
    }

    /// Ends an operation of a connection.
    pub(crate) fn stop(&self, context: &RequestContext, token: &str, query: &str) -> Response<Body> {
        let Some(id) = parameter(query, "operationId").filter(|id| !id.is_empty()) else {
            return error_response(Code::InvalidRequest, "The parameter `operationId` is missing.");
        };
        let owner = Owner::of(&context.caller);
        match self.sse.with(token, &owner, |connection| connection.operations.remove(&id)) {
            None => no_connection(),
            Some(ended) => {
                if let Some(slot) = ended {
                    slot.end();
                }
                plain(StatusCode::OK, String::new())
            }
        }
    }
}

/// Whether an operation whose variables have `more` bytes may begin. The variables of the running operations have `under_way`
/// bytes.
fn has_room(under_way: usize, more: usize) -> bool {
    under_way == 0 || under_way.saturating_add(more) <= VARIABLE_BYTES_MAX
}

fn no_turn() -> Error {
    let message = "Earlier operations of this event stream took too long, so this one was not run. Send it again.";
    Error::new(Code::Unavailable, message).with_retry_after(BUSY_RETRY_AFTER_S)
}

/// The slot of an operation whose document is being checked.
struct StartingPlace<'g> {
    graphql: &'g Graphql,
    token: &'g str,
    id: &'g str,
    number: u64,
    is_kept: bool,
}

impl Drop for StartingPlace<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.graphql.sse.release(self.token, self.id, self.number);
        }
    }
}

/// A connection that a client is reading.
struct Open {
    graphql: Arc<Graphql>,
    token: String,
    owner: Owner,
    session_recheck: SessionRecheck,
    waiting: Frames,
}

impl Open {
    async fn run(mut self, sender: FrameSender, mut draining: watch::Receiver<bool>) {
        self.pass_on(&sender, &mut draining).await;
        // The operations of the connection end too.
        self.graphql.sse.close(&self.token);
    }

    /// Whether the credential that opened the connection is still valid, for the same owner.
    async fn look_again(&mut self) -> Option<()> {
        self.session_recheck.renew().await?;
        let caller = self.session_recheck.caller();
        let may =
            Owner::of(caller) == self.owner && self.graphql.app.may_stream(caller).is_ok() && caller.require_platform().is_ok();
        may.then_some(())
    }

    async fn pass_on(&mut self, sender: &FrameSender, draining: &mut watch::Receiver<bool>) {
        if !sender.send(OPENING).await {
            return;
        }
        let mut recheck = tokio::time::interval(CALLER_RECHECK);
        recheck.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heartbeat = tokio::time::interval(HEARTBEAT_PERIOD);
        heartbeat.reset();
        loop {
            let frame = tokio::select! {
                biased;
                () = sender.closed() => return,
                () = drained(draining) => return,
                _ = recheck.tick() => {
                    if self.look_again().await.is_none() {
                        return;
                    }
                    continue;
                }
                frame = self.waiting.next() => frame,
                _ = heartbeat.tick() => Some(HEARTBEAT),
            };
            let Some(frame) = frame else { return };
            if !self.session_recheck.is_current() && self.look_again().await.is_none() {
                return;
            }
            tokio::select! {
                sent = sender.send(frame) => if !sent { return },
                () = drained(draining) => return,
                () = tokio::time::sleep(CLIENT_STALLED_MAX) => return,
            }
        }
    }
}

/// Waits until the server drains, or has ended.
async fn drained(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|draining| *draining).await;
}
