//! Calls. Each runs in an instance that no other call uses at the time, within the limits of a call.

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::schema::{Code, Error, Result, time};
use blockbase_app::{
    ActionCall, ActionOutcome, Caller, EventCall, HandlerUsage, HookCall, HookRequest, HookResponse, InstalledBlock, QuotaOwner,
};
use blockbase_telemetry::{BlockInstance, BlockUse, CallClock, CallPart};
use tokio::time::{Instant, timeout_at};
use wasmtime::{CallHook, Store, Trap};

use super::checks::check_registered;
use super::guest::{Guest, Reused, Running};
use super::{Inner, Loaded};
use crate::engine::Ticking;
use crate::engine::call_slots::{CallKind, CallSlot};
use crate::engine::limits::{CallMemory, LimitHit, RESULT_BYTES_MAX};
use crate::engine::starts::WORTH_MAKING;
use crate::host::bindings::blockbase::block::types;
use crate::host::bindings::exports::blockbase::block::{hooks, registry, subscriptions};
use crate::host::call::{CallEnvironment, CallState};
use crate::host::service::Service;
use crate::package::manifest::invalid;

/// The time that a block may take to report its handlers.
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of bytes of a handler's error message that the caller gets.
const ERROR_MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// One function of a guest, with its arguments.
trait GuestCall: Send + 'static {
    /// The value that the guest returns.
    type Output: Send + 'static;
    /// The answer of the call.
    type Answer;

    fn make(self, running: Running<'_>) -> impl Future<Output = wasmtime::Result<Self::Output>> + Send;

    /// The number of bytes of the result, which has a limit.
    fn result_bytes(_: &Self::Output) -> usize {
        0
    }

    /// Checks what the guest returned, and makes the answer of it.
    fn answer(output: Self::Output) -> Result<Self::Answer>;
}

struct Handlers;

impl GuestCall for Handlers {
    type Output = Vec<registry::Handler>;
    type Answer = Vec<registry::Handler>;

    async fn make(self, mut running: Running<'_>) -> wasmtime::Result<Self::Output> {
        let registry = running.registry()?;
        registry.call_handlers(running.store).await
    }

    fn answer(handlers: Self::Output) -> Result<Self::Answer> {
        Ok(handlers)
    }
}

struct Action {
    context: types::Context,
    name: String,
    input: String,
}

impl GuestCall for Action {
    type Output = std::result::Result<String, types::Error>;
    type Answer = ActionOutcome;

    async fn make(self, mut running: Running<'_>) -> wasmtime::Result<Self::Output> {
        let actions = running.actions()?;
        actions.call_call(running.store, &self.context, &self.name, &self.input).await
    }

    fn result_bytes(output: &Self::Output) -> usize {
        output.as_ref().map_or(0, String::len)
    }

    fn answer(output: Self::Output) -> Result<Self::Answer> {
        let result = output.map_err(handler_error)?;
        match serde_json::from_str::<serde::de::IgnoredAny>(&result) {
            Ok(_) => Ok(result),
            Err(_) => Err(Error::new(Code::ActionFailed, "The handler's result is not JSON.")),
        }
    }
}

struct Hook {
    context: types::Context,
    name: String,
    request: hooks::Request,
}

impl GuestCall for Hook {
    type Output = std::result::Result<Option<hooks::Response>, types::Error>;
    type Answer = Option<HookResponse>;

    async fn make(self, mut running: Running<'_>) -> wasmtime::Result<Self::Output> {
        let hooks = running.hooks()?;
        hooks.call_receive(running.store, &self.context, &self.name, &self.request).await
    }

    fn result_bytes(output: &Self::Output) -> usize {
        output.as_ref().ok().and_then(Option::as_ref).map_or(0, |response| response.body.len())
    }

    fn answer(output: Self::Output) -> Result<Self::Answer> {
        // The handler's own error code does not matter: the sender sees only that the hook failed.
        let failed = |error: types::Error| Error { code: Code::ActionFailed, ..handler_error(error) };
        let response = output.map_err(failed)?;
        Ok(response.map(|hooks::Response { status, headers, body }| HookResponse { status, headers, body: body.into() }))
    }
}

struct Delivery {
    context: types::Context,
    handler: String,
    event: subscriptions::Event,
    config: String,
}

impl GuestCall for Delivery {
    type Output = std::result::Result<(), types::Error>;
    type Answer = ();

    async fn make(self, mut running: Running<'_>) -> wasmtime::Result<Self::Output> {
        let subscriptions = running.subscriptions()?;
        subscriptions.call_deliver(running.store, &self.context, &self.handler, &self.event, &self.config).await
    }

    fn answer(output: Self::Output) -> Result<Self::Answer> {
        output.map_err(handler_error)
    }
}

/// The settings of a call, which are the same for every kind of call.
struct CallSettings<'a> {
    service: Option<Service>,
    block: &'a str,
    kind: CallKind,
    /// The owner whose turn the call uses.
    owner: QuotaOwner,
    call_id: String,
    deadline: Instant,
    /// The total time of the call. Error messages name it.
    timeout: Duration,
    /// The counters to which the call's usage is added.
    usage: Option<Arc<HandlerUsage>>,
    /// It is off if the call has no counters.
    clock: CallClock,
    /// `None` if the call gets an instance of its own, which is dropped afterwards.
    reused: Option<Reused>,
}

/// The end of a call, and the usage of the call.
struct Ended<T> {
    outcome: std::result::Result<T, Failed>,
    memory_bytes: usize,
    clock: CallClock,
}

/// The reason why a call has no outcome.
pub(super) enum Failed {
    Deadline,
    Limit(LimitHit),
    /// A trap of the guest's code. The text is the engine's own, without addresses.
    Trap(String),
    /// The guest exited, or returned a value that the interface does not allow.
    Abnormal(wasmtime::Error),
}

impl Failed {
    pub(super) fn of(error: wasmtime::Error, tripped: Option<LimitHit>) -> Failed {
        // A recorded limit takes precedence. The guest continued until the next tick, and may have exceeded another limit in that
        // time.
        let stopped_by = || error.downcast_ref::<LimitHit>().copied();
        let limit = tripped.or_else(stopped_by).or_else(|| LimitHit::of_engine(&error));
        match (limit, error.downcast_ref::<Trap>()) {
            (Some(limit), _) => Failed::Limit(limit),
            (None, Some(trap)) => Failed::Trap(trap_name(*trap)),
            (None, None) => Failed::Abnormal(error),
        }
    }

    fn error(self, timeout: Duration) -> Error {
        let message = match self {
            Failed::Deadline => {
                let message = format!("The call did not end within {} ms and was stopped.", timeout.as_millis());
                return Error::new(Code::ActionTimeout, message);
            }
            Failed::Limit(limit) => format!("A limit of the call was hit: {limit}."),
            Failed::Trap(trap) => format!("The block trapped: {trap}."),
            Failed::Abnormal(error) => {
                tracing::warn!(error.cause = %format!("{error:#}"), "a block's call ended abnormally");
                "The block trapped: the call ended abnormally.".to_owned()
            }
        };
        Error::new(Code::ActionFailed, message)
    }
}

/// The kind of a trap, in the words of the engine.
fn trap_name(trap: Trap) -> String {
    trap.to_string().trim_start_matches("wasm trap: ").to_owned()
}

/// Makes the clock of a call follow the guest from now on: into its own code, into the host, and back.
fn follow_guest(store: &mut Store<CallState>) {
    // The state of the call counts the open host calls. So the closure has no size, and takes no memory.
    store.call_hook(|mut store, border| {
        let state = store.data_mut();
        let part = match border {
            CallHook::CallingHost => {
                state.host_calls_open += 1;
                CallPart::Host
            }
            CallHook::ReturningFromHost => {
                state.host_calls_open = state.host_calls_open.saturating_sub(1);
                CallPart::Guest
            }
            CallHook::CallingWasm => CallPart::Guest,
            // The host also calls the guest to get memory for the results of a host function.
            CallHook::ReturningFromWasm if state.host_calls_open > 0 => CallPart::Host,
            CallHook::ReturningFromWasm => CallPart::Render,
        };
        state.clock.enter(part);
        Ok(())
    });
}

/// Cuts the requests of the call and drops its handles. Then drops the instance and clears its memory. The answer does not wait
/// for the memory if there is room for all the memory that one more call may have (`memory_of_a_call` bytes).
///
/// The call keeps what it takes from other calls until the end: its memory, its slot and the ticks. So a caller cannot pile up
/// instances that are not cleared yet. With less room the answer waits, because the client's next call could fail for lack of the
/// memory that this call still has.
///
/// The time is counted in `usage`.
fn tear_down(mut guest: Guest, held: (CallSlot, Ticking), memory_of_a_call: usize, usage: Option<Arc<HandlerUsage>>) {
    let begun = Instant::now();
    guest.store.data_mut().end();
    let ended_in = begun.elapsed();
    let may_wait = guest.memory.may_wait(memory_of_a_call);
    let work = move || {
        let begun = Instant::now();
        drop(guest);
        drop(held);
        if let Some(usage) = usage {
            usage.torn_down(ended_in + begun.elapsed());
        }
    };
    match may_wait {
        // The task runs on the executor of this call, usually as soon as its thread has written the answer.
        true => drop(tokio::spawn(async move { work() })),
        false => work(),
    }
}

impl Inner {
    pub(super) fn environment(&self, timeout: Duration, memory: &Arc<CallMemory>, clock: CallClock) -> CallEnvironment {
        CallEnvironment {
            client: self.client.clone(),
            executors: Arc::clone(&self.executors),
            memory_bytes_max: self.memory_bytes_max,
            memory: Arc::clone(memory),
            timeout,
            clock,
        }
    }

    /// Makes a call when a slot is free. It runs in an instance of its own, new or made ahead, which is dropped afterwards. If the
    /// block reuses instances, the call may also run in a kept one. The instance is kept again if the call leaves nothing that
    /// belongs to it alone. The call ends if its caller stops waiting, and its instance with it.
    async fn run<C: GuestCall>(self: &Arc<Self>, loaded: Arc<Loaded>, settings: CallSettings<'_>, call: C) -> Result<C::Answer> {
        let CallSettings { service, block, kind, owner, call_id, deadline, timeout, usage, mut clock, reused } = settings;
        let slot = self.call_slots.take(block, kind, &owner, deadline, self.memory_bytes_max).await?;
        clock.enter(CallPart::Instantiate);
        let remaining = deadline.saturating_duration_since(Instant::now());
        let usage_of_teardown = usage.clone();
        // The block, if the call may use an instance that was made ahead. During an install there is no block yet.
        let ahead_of = service.as_ref().filter(|_| reused.is_none()).map(|service| Arc::clone(&service.block));
        let started = Arc::clone(&loaded);
        let kept = reused.as_ref().and_then(|reused| reused.kept(&self.stock));
        let looks_ahead = ahead_of.as_ref().filter(|_| started.starts.may_wait_ahead());
        let made = looks_ahead.and_then(|block| self.stock.take_ahead(block));
        let instance = match (&kept, &made) {
            (Some(_), _) => BlockInstance::Kept,
            (None, Some(_)) => BlockInstance::Ahead,
            (None, None) => BlockInstance::New,
        };
        blockbase_telemetry::block_instance(block, instance);
        let waited = kept.or(made);
        let memory = match &waited {
            Some(guest) => Arc::clone(&guest.memory),
            None => CallMemory::new(slot.memory.clone()),
        };
        let state = CallState::new(service, call_id, self.environment(remaining, &memory, clock));
        let ticking = self.ticker.keep();
        let (engine, memory_of_a_call) = (self.engine.clone(), self.memory_bytes_max);
        let (stock, executors) = (Arc::clone(&self.stock), Arc::clone(&self.executors));
        let run = async move {
            // Both are kept until the instance is gone and its memory is cleared, which may be after the answer, or after the
            // caller has gone. They are declared before the guest, so that they are dropped after it.
            let held = (slot, ticking);
            let mut guest = match waited {
                Some(mut guest) => {
                    // The guest has its memory itself, and gives it back when it goes.
                    drop(memory);
                    guest.store.data_mut().renew(state);
                    guest
                }
                None => Guest::new(&engine, loaded, memory, state),
            };
            guest.begin();
            let outcome = timeout_at(deadline, async {
                let running = guest.running().await?;
                if running.store.data().clock.is_on() {
                    follow_guest(running.store);
                }
                call.make(running).await
            })
            .await;
            let state = guest.store.data_mut();
            let has_all_lines = state.finish_streams();
            let outcome = match (outcome, state.tripped.hit()) {
                (Err(_), _) => Err(Failed::Deadline),
                (Ok(Err(error)), tripped) => Err(Failed::of(error, tripped)),
                (Ok(Ok(_)), Some(limit)) => Err(Failed::Limit(limit)),
                (Ok(Ok(output)), None) if C::result_bytes(&output) > RESULT_BYTES_MAX => Err(Failed::Limit(LimitHit::Result)),
                (Ok(Ok(output)), None) => Ok(output),
            };
            let (memory_bytes, mut clock) = (guest.memory.bytes(), std::mem::take(&mut state.clock));
            clock.enter(CallPart::Teardown);
            // After a trap, a limit or the deadline, the state of the guest is unknown.
            let may_stay = outcome.is_ok() && has_all_lines;
            let begun = Instant::now();
            let gone = match reused.filter(|reused| may_stay && guest.may_serve_again(&reused.limits, memory_of_a_call)) {
                Some(reused) => guest.keep(reused, &stock, &executors),
                None => Some(guest),
            };
            match (gone, usage_of_teardown) {
                // The guest that goes has the slot of the call until the end, even if it is another one.
                (Some(guest), usage) => tear_down(guest, held, memory_of_a_call, usage),
                (None, Some(usage)) => usage.torn_down(begun.elapsed()),
                (None, None) => {}
            }
            clock.enter(CallPart::Render);
            Ended { outcome, memory_bytes, clock }
        };
        let (ended, busy) = self.executors.run(run).await;
        if let Some(usage) = &usage {
            usage.used_memory(ended.memory_bytes);
        }
        blockbase_telemetry::block_used(&BlockUse {
            block,
            busy,
            memory_bytes: ended.memory_bytes,
            trap: match &ended.outcome {
                Err(Failed::Trap(trap)) => Some(trap.as_str()),
                Err(Failed::Abnormal(_)) => Some("abnormal end"),
                _ => None,
            },
            limit: match &ended.outcome {
                Err(Failed::Limit(limit)) => Some(limit.name()),
                Err(Failed::Deadline) => Some("deadline"),
                _ => None,
            },
        });
        let answer = ended.outcome.map_err(|failed| failed.error(timeout)).and_then(C::answer);
        if let Some(usage) = usage {
            usage.ended(ended.clock);
        }
        if let Some(block) = ahead_of.filter(|_| started.starts.call(Instant::now(), WORTH_MAKING)) {
            self.make_ahead(block, started);
        }
        answer
    }

    /// Loads the block's component within the time of the call.
    async fn ready(self: &Arc<Self>, block: &Arc<InstalledBlock>, deadline: Instant) -> Result<Arc<Loaded>> {
        let loaded = timeout_at(deadline, self.load(block)).await;
        let late = "The block is being compiled on this instance, which goes on. Try again shortly.";
        loaded.unwrap_or_else(|_| Err(Error::new(Code::Unavailable, late)))
    }

    /// The names and kinds of the handlers that a component reports.
    pub(super) async fn handlers(self: &Arc<Self>, loaded: &Arc<Loaded>, block: &str) -> Result<Vec<registry::Handler>> {
        let (deadline, timeout) = (Instant::now() + REGISTRY_TIMEOUT, REGISTRY_TIMEOUT);
        let settings = CallSettings {
            service: None,
            block,
            kind: CallKind::Action,
            owner: QuotaOwner::Service,
            call_id: "install".to_owned(),
            deadline,
            timeout,
            usage: None,
            clock: CallClock::default(),
            reused: None,
        };
        self.run(Arc::clone(loaded), settings, Handlers)
            .await
            .map_err(|error| invalid(format!("The block does not report its handlers: {}", error.message)))
    }

    pub(super) async fn call_action(self: &Arc<Self>, call: ActionCall) -> Result<ActionOutcome> {
        let clock = CallClock::start();
        let deadline = Instant::now() + call.timeout;
        let loaded = self.ready(&call.block, deadline).await?;
        let ActionCall { block, action, input, caller, call_id, timeout, usage, reuse } = call;
        check_registered(loaded.actions.is_some(), "action", &action)?;
        let work = Action { context: context(&call_id, &caller, &block), name: action, input };
        let called = Arc::clone(&block);
        let (kind, owner) = (CallKind::Action, caller.quota_owner().clone());
        let reused = Reused::of(&block, kind, reuse);
        let service = Some(Service { app: self.app()?, block, caller });
        let (block, usage) = (called.name(), Some(usage));
        let settings = CallSettings { service, block, kind, owner, call_id, deadline, timeout, usage, clock, reused };
        self.run(loaded, settings, work).await
    }

    pub(super) async fn receive_hook(self: &Arc<Self>, call: HookCall) -> Result<Option<HookResponse>> {
        let clock = CallClock::start();
        let deadline = Instant::now() + call.timeout;
        let loaded = self.ready(&call.block, deadline).await?;
        let HookCall { block, hook, request, caller, call_id, timeout, usage, reuse } = call;
        check_registered(loaded.hooks.is_some(), "hook", &hook)?;
        let HookRequest { method, path, query, headers, body, remote_address } = request;
        let request = hooks::Request { method, path, query, headers, body: body.into(), remote_address };
        let work = Hook { context: context(&call_id, &caller, &block), name: hook, request };
        let called = Arc::clone(&block);
        let (kind, owner) = (CallKind::Hook, caller.quota_owner().clone());
        let reused = Reused::of(&block, kind, reuse);
        let service = Some(Service { app: self.app()?, block, caller });
        let (block, usage) = (called.name(), Some(usage));
        let settings = CallSettings { service, block, kind, owner, call_id, deadline, timeout, usage, clock, reused };
        self.run(loaded, settings, work).await
    }

    pub(super) async fn deliver_event(self: &Arc<Self>, call: EventCall) -> Result<()> {
        let clock = CallClock::start();
        let deadline = Instant::now() + call.timeout;
        let loaded = self.ready(&call.block, deadline).await?;
        let EventCall { block, handler, event, attempt, config, caller, call_id, timeout, usage, reuse } = call;
        check_registered(loaded.subscriptions.is_some(), "subscription handler", &handler)?;
        let event = subscriptions::Event {
            id: event.id,
            topic: event.topic,
            payload: event.payload,
            occurred_at: time::format_datetime(event.occurred_at),
            attempt,
        };
        let work = Delivery { context: context(&call_id, &caller, &block), handler, event, config };
        let called = Arc::clone(&block);
        let (kind, owner) = (CallKind::EventHandler, caller.quota_owner().clone());
        let reused = Reused::of(&block, kind, reuse);
        let service = Some(Service { app: self.app()?, block, caller });
        let (block, usage) = (called.name(), Some(usage));
        let settings = CallSettings { service, block, kind, owner, call_id, deadline, timeout, usage, clock, reused };
        self.run(loaded, settings, work).await
    }
}

/// The context that the handler of a call gets.
fn context(call_id: &str, caller: &Caller, block: &InstalledBlock) -> types::Context {
    types::Context {
        call_id: call_id.to_owned(),
        actor: caller.principal.actor().map(|actor| types::Actor {
            user_id: actor.user_id.clone(),
            api_key_id: actor.api_key_id.clone(),
            via: actor.via.name().to_owned(),
        }),
        block: block.name().to_owned(),
    }
}

/// The handler's own error. It keeps its code if handlers may use that code. Otherwise it becomes `action_failed`.
fn handler_error(error: types::Error) -> Error {
    let code = Code::OF_HANDLERS.into_iter().find(|code| code.as_str() == error.code).unwrap_or(Code::ActionFailed);
    let mut message = error.message;
    if message.len() > ERROR_MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(ERROR_MESSAGE_BYTES_MAX));
        message.push('…');
    }
    // The message is the handler's own, unchanged.
    Error { message, ..Error::new(code, String::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bound_that_was_hit_names_the_failure() {
        let stopped_by = |limit: LimitHit| wasmtime::Error::from(limit);
        let failed = Failed::of(stopped_by(LimitHit::LogLines), Some(LimitHit::HostCalls));
        assert!(matches!(failed, Failed::Limit(LimitHit::HostCalls)));
        assert!(matches!(Failed::of(stopped_by(LimitHit::LogLines), None), Failed::Limit(LimitHit::LogLines)));
        assert!(matches!(Failed::of(wasmtime::Error::from(Trap::UnreachableCodeReached), None), Failed::Trap(_)));
    }
}
