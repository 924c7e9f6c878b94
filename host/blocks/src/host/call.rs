//! The state of one call: its caller, and the rest of its limits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_outbound::Client;
use blockbase_telemetry::CallClock;
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

use crate::engine::executors::Executors;
use crate::engine::limits::{CallMemory, HANDLES_MAX, HOST_CALLS_MAX, LimitHit, TABLE_ELEMENTS_MAX, Tripped};
use crate::host::log_sink::LogSink;
use crate::host::service::Service;
use crate::host::wasi::Wasi;
use crate::host::wasi_http::Outgoing;

/// The maximum number of bytes that the headers of one request or response of `wasi:http` take in memory.
const FIELDS_BYTES_MAX: usize = 128 * 1024;

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
    table: ResourceTable,
    wasi: Option<Wasi>,
    http_context: WasiHttpCtx,
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
        }
    }

    /// Counts a host call. Every host function of the block interface calls this first.
    pub(crate) fn count_host_call(&mut self) -> wasmtime::Result<()> {
        self.host_calls += 1;
        match self.host_calls <= HOST_CALLS_MAX {
            true => Ok(()),
            false => Err(wasmtime::Error::from(LimitHit::HostCalls)),
        }
    }

    /// Does the same for functions of WASI, which cannot fail here. The next tick ends the guest.
    pub(crate) fn count_wasi_call(&mut self) {
        if self.count_host_call().is_err() {
            self.tripped.trip(LimitHit::HostCalls);
        }
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
        self.outgoing.end();
        self.service = None;
        self.log = LogSink::new(None, String::new());
    }

    /// Logs the last, unfinished lines of the guest's standard streams.
    pub(crate) fn finish_streams(&self) {
        if let Some(wasi) = &self.wasi {
            wasi.finish();
        }
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
        if !self.memory.take(more) {
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
        self.count_wasi_call();
        let (hooks, ctx, table) = self.http_parts();
        WasiHttpCtxView { hooks, table, ctx }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_outbound::AddressPolicy;

    use super::*;
    use crate::engine::limits::MemoryBudget;

    #[tokio::test]
    async fn the_end_of_a_call_drops_its_handles_but_its_memory_still_counts() {
        let budget = MemoryBudget::new(100);
        let environment = CallEnvironment {
            client: Client::new(AddressPolicy { allow_private: false }).expect("a client"),
            executors: Arc::new(Executors::new().expect("executors")),
            memory_bytes_max: 100,
            memory: CallMemory::new(budget.clone()),
            timeout: Duration::from_secs(1),
            clock: CallClock::default(),
        };
        let mut state = CallState::new(None, "call".to_owned(), environment);
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
