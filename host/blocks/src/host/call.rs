//! The state of one call: its caller, and the rest of its limits.
//!
//! If an instance is kept for a further call, that call gets a new state. Only what belongs to the instance goes over
//! ([`CallState::renew`]).

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_outbound::Client;
use blockbase_telemetry::CallClock;
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

use crate::engine::executors::Executors;
use crate::engine::limits::{CallMemory, HANDLES_MAX, HOST_CALLS_MAX, LimitHit, TABLE_ELEMENTS_MAX, Tripped};
use crate::engine::starts::OfCalls;
use crate::host::log_sink::LogSink;
use crate::host::service::Service;
use crate::host::wasi::Wasi;
use crate::host::wasi_http::Outgoing;

/// The maximum number of bytes that the headers of one request or response of `wasi:http` take in memory.
const FIELDS_BYTES_MAX: usize = 128 * 1024;
/// The maximum number of handles that an instance may still have when it is kept for a further call.
const HANDLES_KEPT_MAX: usize = 16;

/// The limits of a call, and the parts of the server that it uses.
pub(crate) struct CallEnvironment {
    pub(crate) client: Client,
    pub(crate) executors: Arc<Executors>,
    pub(crate) memory_bytes_max: usize,
    pub(crate) memory: Arc<CallMemory>,
    pub(crate) timeout: Duration,
    pub(crate) clock: CallClock,
}

/// The data of a call's store.
pub(crate) struct CallState {
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) executors: Arc<Executors>,
    pub(crate) log: LogSink,
    pub(crate) outgoing: Outgoing,
    deadline: Instant,
    host_calls: u32,
    memory_bytes_max: usize,
    /// The engine drops this state before it clears the memory. So the code that runs the call holds this count too, until the
    /// memory is cleared.
    memory: Arc<CallMemory>,
    table_elements: usize,
    /// The number of bytes by which a memory has grown last.
    growth_bytes: usize,
    /// A limit that the guest has exceeded. The guest may continue for a moment, or trap with its own message.
    pub(crate) tripped: Tripped,
    /// Measures the parts of the call's time.
    pub(crate) clock: CallClock,
    /// The host calls that have begun and not ended, while the clock follows the guest.
    pub(crate) host_calls_open: u32,
    table: ResourceTable,
    wasi: Option<Wasi>,
    http_context: WasiHttpCtx,
    /// Whether no call uses the instance yet, because it is made ahead.
    is_ahead: bool,
    /// Whether the guest has called a function of the block interface or of `wasi:http`.
    has_used_block_interface: bool,
}

impl CallState {
    pub(crate) fn new(service: Option<Service>, call_id: String, environment: CallEnvironment) -> CallState {
        let deadline = Instant::now() + environment.timeout;
        let block = service.as_ref().map(|service| (Arc::clone(&service.app), Arc::clone(&service.block)));
        let service = service.map(Arc::new);
        let tripped = Tripped::default();
        CallState {
            log: LogSink::new(block, call_id),
            outgoing: Outgoing::new(
                environment.client,
                Arc::clone(&environment.executors),
                service.clone(),
                deadline,
                tripped.clone(),
            ),
            service,
            executors: environment.executors,
            deadline,
            host_calls: 0,
            memory_bytes_max: environment.memory_bytes_max,
            memory: environment.memory,
            table_elements: 0,
            growth_bytes: 0,
            tripped,
            clock: environment.clock,
            host_calls_open: 0,
            table: {
                let mut table = ResourceTable::new();
                table.set_max_capacity(HANDLES_MAX);
                table
            },
            wasi: None,
            http_context: {
                let mut context = WasiHttpCtx::new();
                context.set_field_size_limit(FIELDS_BYTES_MAX);
                context
            },
            is_ahead: false,
            has_used_block_interface: false,
        }
    }

    /// The state of an instance that is made ahead of the calls of its block. Like an install, it acts for nobody.
    pub(crate) fn ahead(environment: CallEnvironment) -> CallState {
        CallState { is_ahead: true, ..CallState::new(None, "ahead".to_owned(), environment) }
    }

    /// Counts a host call. Every host function of the block interface calls this first.
    pub(crate) fn count_host_call(&mut self) -> wasmtime::Result<()> {
        self.has_used_block_interface = true;
        self.count()
    }

    fn count(&mut self) -> wasmtime::Result<()> {
        self.host_calls += 1;
        match self.host_calls <= HOST_CALLS_MAX {
            true => Ok(()),
            false => Err(wasmtime::Error::from(LimitHit::HostCalls)),
        }
    }

    /// Counts a call of a function of WASI, which cannot fail here. If there are too many, the next tick ends the guest.
    pub(crate) fn count_wasi_call(&mut self) {
        if self.count().is_err() {
            self.tripped.trip(LimitHit::HostCalls);
        }
    }

    /// What the guest has done that belongs to a call, if there is anything: it has called the block interface or `wasi:http`, it
    /// has logged, or it has other handles than a few of its standard streams. It may have read clocks, random bytes and its empty
    /// environment.
    pub(crate) fn belongs_to_call(&mut self) -> Option<OfCalls> {
        let has_all_lines = self.finish_streams();
        if self.has_used_block_interface {
            return Some(OfCalls::BlockInterface);
        }
        if !has_all_lines || !self.log.is_unused() {
            return Some(OfCalls::Log);
        }
        (!self.has_only_standard_streams()).then_some(OfCalls::Handle)
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(crate) fn wasi_parts(&mut self) -> (&mut Wasi, &mut ResourceTable) {
        let log = &self.log;
        (self.wasi.get_or_insert_with(|| Wasi::new(log)), &mut self.table)
    }

    pub(crate) fn http_parts(&mut self) -> (&mut dyn WasiHttpHooks, &mut WasiHttpCtx, &mut ResourceTable) {
        (&mut self.outgoing, &mut self.http_context, &mut self.table)
    }

    /// Drops what the call still has, except the memory of its instance: its requests, its handles, its rights and its log. The
    /// requests that the guest has not waited for are cut.
    pub(crate) fn end(&mut self) {
        self.table = ResourceTable::new();
        self.wasi = None;
        self.rest();
    }

    /// Drops the same, except what the instance needs for a further call: its handles, its clocks and its random generators.
    /// While the instance waits, nothing in it leads to the call, its rights or the service.
    pub(crate) fn rest(&mut self) {
        self.outgoing.end();
        self.service = None;
        self.log.end();
    }

    /// Gives a kept instance the state of its next call. These parts of the instance go over:
    ///
    /// - the number of elements of its tables. Its memory is counted in the state of the new call already;
    /// - its handles, which are only those of its standard streams ([`CallState::has_only_standard_streams`]);
    /// - the context of WASI, because its monotonic clock must not go back. The context also has the random generators, which
    ///   continue, and the standard streams, which write to the log of the new call.
    pub(crate) fn renew(&mut self, next: CallState) {
        let before = std::mem::replace(self, next);
        before.log.become_of(&self.log);
        self.log = before.log;
        self.table_elements = before.table_elements;
        self.table = before.table;
        self.wasi = before.wasi;
    }

    pub(crate) fn table_elements(&self) -> usize {
        self.table_elements
    }

    /// Whether the only handles of the guest are a few of its standard streams, which standard libraries open once and never
    /// close. A handle of anything else, such as a timer or a request, belongs to the call.
    ///
    /// Streams and pollables of other things are no exception: they are children of those things, which are then in the table
    /// too.
    pub(crate) fn has_only_standard_streams(&mut self) -> bool {
        fn is_of_stream(entry: &(dyn Any + Send)) -> bool {
            entry.is::<DynOutputStream>() || entry.is::<DynInputStream>() || entry.is::<DynPollable>()
        }
        let mut count = 0;
        self.table.iter_mut().all(|entry| {
            count += 1;
            count <= HANDLES_KEPT_MAX && is_of_stream(entry)
        })
    }

    /// Logs the last, unfinished lines of the guest's standard streams. Returns `false` if one exceeds a limit.
    pub(crate) fn finish_streams(&self) -> bool {
        self.wasi.as_ref().is_none_or(Wasi::finish)
    }
}

impl ResourceLimiter for CallState {
    /// Counts all memories of the call together, and also the memory of all calls.
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let grown = self.memory.bytes().saturating_add(more);
        self.growth_bytes = 0;
        if grown > self.memory_bytes_max {
            self.tripped.trip(LimitHit::Memory);
            return Ok(false);
        }
        let is_there = match self.is_ahead {
            true => self.memory.take_ahead(more, self.memory_bytes_max),
            false => self.memory.take(more),
        };
        if !is_there {
            self.tripped.trip(LimitHit::AllMemory);
            return Ok(false);
        }
        self.growth_bytes = more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        let not_grown = std::mem::take(&mut self.growth_bytes);
        self.memory.give_back(not_grown);
        tracing::debug!(error.cause = %error, "a memory of a guest did not grow");
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let grown = self.table_elements.saturating_add(desired.saturating_sub(current));
        if grown > TABLE_ELEMENTS_MAX {
            self.tripped.trip(LimitHit::Tables);
            return Ok(false);
        }
        self.table_elements = grown;
        Ok(true)
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.count_wasi_call();
        let (wasi, table) = self.wasi_parts();
        WasiCtxView { ctx: &mut wasi.context, table }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.has_used_block_interface = true;
        self.count_wasi_call();
        let (hooks, ctx, table) = self.http_parts();
        WasiHttpCtxView { hooks, table, ctx }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_outbound::AddressPolicy;
    use wasmtime_wasi::p2::bindings::cli::stdout::Host as _;

    use super::*;
    use crate::engine::limits::{LOG_LINES_MAX, MemoryBudget};

    fn environment(memory: Arc<CallMemory>) -> CallEnvironment {
        CallEnvironment {
            client: Client::new(AddressPolicy { allow_private: false }).expect("a client"),
            executors: Arc::new(Executors::new().expect("executors")),
            memory_bytes_max: 100,
            memory,
            timeout: Duration::from_secs(1),
            clock: CallClock::default(),
        }
    }

    fn state(memory: Arc<CallMemory>) -> CallState {
        CallState::new(None, "call".to_owned(), environment(memory))
    }

    #[tokio::test]
    async fn a_start_may_read_clocks_but_not_act_as_a_call() {
        use wasmtime_wasi::p2::bindings::clocks::wall_clock::Host as _;

        let started = || CallState::ahead(environment(CallMemory::new(MemoryBudget::new(1000))));
        let mut state = started();
        wasmtime_wasi::clocks::WasiClocksView::clocks(&mut state).now().expect("the time");
        let stream = wasmtime_wasi::cli::WasiCliView::cli(&mut state).get_stdout().expect("a stream");
        assert_eq!(state.belongs_to_call(), None);
        state.table.get_mut(&stream).expect("the stream").write(b"no end".as_slice().into()).expect("a line");
        assert_eq!(state.belongs_to_call(), Some(OfCalls::Log));

        let mut state = started();
        state.count_host_call().expect("a call of the block interface");
        assert_eq!(state.belongs_to_call(), Some(OfCalls::BlockInterface));
        let mut state = started();
        let _view = state.http();
        assert_eq!(state.belongs_to_call(), Some(OfCalls::BlockInterface), "it has used `wasi:http`");
        let mut state = started();
        let _timer = state.table.push(()).expect("room for a handle");
        assert_eq!(state.belongs_to_call(), Some(OfCalls::Handle));
    }

    #[tokio::test]
    async fn a_call_has_the_whole_memory_of_an_instance_that_was_made_ahead() {
        let memory = CallMemory::new(MemoryBudget::new(100));
        let mut made = CallState::ahead(environment(Arc::clone(&memory)));
        assert!(!made.memory_growing(0, 1, None).expect("an answer"), "a call would not have all its memory");
        assert_eq!(made.tripped.hit(), Some(LimitHit::AllMemory));
        made.rest();
        made.renew(state(memory));
        assert!(made.memory_growing(0, 100, None).expect("an answer") && made.tripped.hit().is_none());
    }

    #[tokio::test]
    async fn the_next_call_of_an_instance_has_its_own_limits_and_the_streams_that_the_guest_opened() {
        let memory = CallMemory::new(MemoryBudget::new(100));
        let mut kept = state(Arc::clone(&memory));
        assert!(kept.table_growing(0, 7, None).expect("an answer"));
        kept.host_calls = HOST_CALLS_MAX;
        kept.tripped.trip(LimitHit::HostCalls);
        kept.outgoing.count().expect("a request");
        kept.log.count(1).expect("a line");
        let stream = wasmtime_wasi::cli::WasiCliView::cli(&mut kept).get_stdout().expect("a stream");
        assert!(kept.has_only_standard_streams());
        kept.rest();
        kept.renew(state(memory));
        assert!(kept.tripped.hit().is_none() && kept.count_host_call().is_ok());
        assert_eq!(kept.table_elements(), 7);
        // The guest writes to the stream of the first call, and the line counts for the second one.
        let line = b"x\n".as_slice().into();
        kept.table.get_mut(&stream).expect("the stream").write(line).expect("a line");
        let others = (0..LOG_LINES_MAX - 1).filter(|_| kept.log.count(1).is_ok()).count();
        assert_eq!((others, kept.log.count(1)), (LOG_LINES_MAX as usize - 1, Err(LimitHit::LogLines)));
        let _timer = kept.table.push(()).expect("room for a handle");
        assert!(!kept.has_only_standard_streams());
    }

    #[tokio::test]
    async fn an_instance_keeps_16_handles_of_its_standard_streams_at_most() {
        let mut kept = state(CallMemory::new(MemoryBudget::new(100)));
        for count in 1..=17 {
            let _stream = wasmtime_wasi::cli::WasiCliView::cli(&mut kept).get_stdout().expect("a stream");
            assert_eq!(kept.has_only_standard_streams(), count <= 16, "{count}");
        }
    }

    #[tokio::test]
    async fn the_end_of_a_call_drops_its_handles_but_its_memory_still_counts() {
        let budget = MemoryBudget::new(100);
        let mut state = state(CallMemory::new(budget.clone()));
        assert!(state.memory.take(60));
        let held = Arc::new(());
        let _handle = state.table.push(Arc::clone(&held)).expect("room for a handle");
        state.end();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(!budget.take(41));
        drop(state);
        assert!(budget.take(100));
    }
}
