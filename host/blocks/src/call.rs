//! The state of one call: who called, what is left of its bounds, what it logged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_app::{App, Caller, InstalledBlock};
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// Host functions that one call may use.
const HOST_CALLS_MAX: u32 = 10_000;
/// Bytes that one call may log.
const LOG_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one log line.
const LOG_LINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of one standard stream of a call; past them the stream is closed to the guest.
const STREAM_BYTES_MAX: usize = 256 * 1024;
/// Lines kept of one standard stream of a call.
const STREAM_LINES_MAX: usize = 1000;
/// Bytes of randomness of one request.
const RANDOM_BYTES_MAX: u64 = 64 * 1024;
/// Handles to resources of the host that one call may hold.
const RESOURCES_MAX: usize = 1000;
/// Bytes of a call's result.
pub(crate) const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Elements of all tables of a call.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;

/// A bound that a call ran into. It fails the call and names itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitHit {
    HostCalls,
    LogBytes,
    LogLine,
    Memory,
    Tables,
    Result,
}

impl std::fmt::Display for LimitHit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LimitHit::HostCalls => write!(formatter, "the block made more than {HOST_CALLS_MAX} host calls"),
            LimitHit::LogBytes => write!(formatter, "the block logged more than {LOG_BYTES_MAX} bytes"),
            LimitHit::LogLine => write!(formatter, "the block logged a line of more than {LOG_LINE_BYTES_MAX} bytes"),
            LimitHit::Memory => formatter.write_str("the block asked for more memory than one call may have"),
            LimitHit::Tables => formatter.write_str("the block asked for larger tables than one call may have"),
            LimitHit::Result => write!(formatter, "the result is larger than {RESULT_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for LimitHit {}

/// What a call may do with the service; none while a block is only tried at its install.
pub(crate) struct Service {
    pub(crate) app: Arc<App>,
    pub(crate) block: Arc<InstalledBlock>,
    pub(crate) caller: Caller,
}

/// The data of a call's store.
pub(crate) struct CallState {
    pub(crate) service: Option<Service>,
    pub(crate) call_id: String,
    deadline: Instant,
    host_calls: u32,
    logged_bytes: usize,
    memory_bytes: usize,
    memory_bytes_max: usize,
    table_elements: usize,
    /// The bound that made an allocation fail: the guest traps on it with words of its own.
    pub(crate) allocation_limit: Option<LimitHit>,
    table: ResourceTable,
    /// Made when a guest first asks: those that need no WASI pay nothing for it.
    wasi: Option<Wasi>,
}

struct Wasi {
    context: WasiCtx,
    stdout: MemoryOutputPipe,
    stderr: MemoryOutputPipe,
}

impl CallState {
    pub(crate) fn new(service: Option<Service>, call_id: String, timeout: Duration, memory_bytes_max: usize) -> CallState {
        CallState {
            service,
            call_id,
            deadline: Instant::now() + timeout,
            host_calls: 0,
            logged_bytes: 0,
            memory_bytes: 0,
            memory_bytes_max,
            table_elements: 0,
            allocation_limit: None,
            table: {
                let mut table = ResourceTable::new();
                table.set_max_capacity(RESOURCES_MAX);
                table
            },
            wasi: None,
        }
    }

    /// Counts a host call. Every host function begins with it.
    pub(crate) fn count_host_call(&mut self) -> wasmtime::Result<()> {
        self.host_calls += 1;
        match self.host_calls <= HOST_CALLS_MAX {
            true => Ok(()),
            false => Err(wasmtime::Error::from(LimitHit::HostCalls)),
        }
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Refuses a log line that is too long, before anything looks into it.
    pub(crate) fn check_log_line(&self, bytes: usize) -> wasmtime::Result<()> {
        match bytes <= LOG_LINE_BYTES_MAX {
            true => Ok(()),
            false => Err(wasmtime::Error::from(LimitHit::LogLine)),
        }
    }

    /// Takes a line of the block's log.
    pub(crate) fn log(&mut self, level: &str, message: &str, fields: Option<String>) -> wasmtime::Result<()> {
        let bytes = message.len() + fields.as_ref().map_or(0, String::len);
        self.logged_bytes += bytes;
        if self.logged_bytes > LOG_BYTES_MAX {
            return Err(wasmtime::Error::from(LimitHit::LogBytes));
        }
        self.write_line(level, message, fields);
        Ok(())
    }

    fn write_line(&self, level: &str, message: &str, fields: Option<String>) {
        let Some(service) = &self.service else { return };
        let level = match level {
            "error" | "warn" | "debug" | "trace" => level,
            _ => "info",
        };
        service.app.log_block_line(service.block.name(), &self.call_id, level, printable(message), fields);
    }

    /// What the guest wrote to its standard streams goes to its log, a line each, within the bounds of a call's log.
    pub(crate) fn log_streams(&self) {
        let Some(wasi) = &self.wasi else { return };
        for (level, pipe) in [("info", &wasi.stdout), ("error", &wasi.stderr)] {
            let bytes = pipe.contents();
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.lines().filter(|line| !line.is_empty());
            for (index, line) in lines.enumerate() {
                if index == STREAM_LINES_MAX {
                    self.write_line("warn", "the call wrote more lines than are kept; the rest is left out", None);
                    break;
                }
                let line: String = line.chars().take(LOG_LINE_BYTES_MAX / 4).collect();
                self.write_line(level, &line, None);
            }
        }
    }
}

/// Text without what could steer a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() && !matches!(character, '\n' | '\t') { '\u{fffd}' } else { character })
        .collect()
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(|| {
            let (stdout, stderr) = (MemoryOutputPipe::new(STREAM_BYTES_MAX), MemoryOutputPipe::new(STREAM_BYTES_MAX));
            // The builder's own defaults: no files, no environment, no arguments, no sockets; clocks and randomness are real.
            let context = WasiCtxBuilder::new()
                .max_random_size(RANDOM_BYTES_MAX)
                .stdout(stdout.clone())
                .stderr(stderr.clone())
                .allow_tcp(false)
                .allow_udp(false)
                .allow_ip_name_lookup(false)
                .build();
            Wasi { context, stdout, stderr }
        });
        WasiCtxView { ctx: &mut wasi.context, table: &mut self.table }
    }
}

impl ResourceLimiter for CallState {
    /// Counts all memories of the call together.
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let grown = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if grown > self.memory_bytes_max {
            self.allocation_limit = Some(LimitHit::Memory);
            return Ok(false);
        }
        self.memory_bytes = grown;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let grown = self.table_elements.saturating_add(desired.saturating_sub(current));
        if grown > TABLE_ELEMENTS_MAX {
            self.allocation_limit = Some(LimitHit::Tables);
            return Ok(false);
        }
        self.table_elements = grown;
        Ok(true)
    }
}
