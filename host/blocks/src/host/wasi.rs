//! WASI preview 2, so that every language's standard library works. Clocks and randomness are real, and standard streams go to the
//! block's log. Nothing else works.

use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use crate::host::log_sink::{LogSink, LogStream};

/// The maximum number of bytes of randomness that one request returns.
const RANDOM_BYTES_MAX: u64 = 64 * 1024;

/// It is made when a guest first asks for WASI, so that guests without WASI need no time for it.
pub(crate) struct Wasi {
    pub(crate) context: WasiCtx,
    stdout: LogStream,
    stderr: LogStream,
}

impl Wasi {
    pub(crate) fn new(sink: &LogSink) -> Wasi {
        let (stdout, stderr) = (LogStream::new(sink.clone(), "info"), LogStream::new(sink.clone(), "error"));
        // The builder's own defaults: no files, no environment, no arguments and no sockets, but real clocks and randomness.
        let context = WasiCtxBuilder::new()
            .max_random_size(RANDOM_BYTES_MAX)
            .stdout(stdout.clone())
            .stderr(stderr.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        Wasi { context, stdout, stderr }
    }

    /// Logs the lines that have begun but not ended. Returns `false` if one exceeds a limit.
    pub(crate) fn finish(&self) -> bool {
        let is_written = self.stdout.finish();
        self.stderr.finish() && is_written
    }
}
