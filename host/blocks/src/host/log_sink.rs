//! The log of a call. It takes log lines and the lines of the standard streams, and counts both towards one limit.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use blockbase_app::{App, InstalledBlock};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::engine::limits::{LOG_BYTES_MAX, LOG_LINE_BYTES_MAX, LOG_LINES_MAX, LimitHit};

/// Receives the lines of one call. Without a block it counts them, but drops them.
#[derive(Clone)]
pub(crate) struct LogSink(Arc<Sink>);

struct Sink {
    block: Option<(Arc<App>, Arc<InstalledBlock>)>,
    call_id: String,
    /// The number of bytes and of lines so far.
    logged: Mutex<(usize, u32)>,
}

impl LogSink {
    pub(crate) fn new(block: Option<(Arc<App>, Arc<InstalledBlock>)>, call_id: String) -> LogSink {
        LogSink(Arc::new(Sink { block, call_id, logged: Mutex::default() }))
    }

    /// Counts a line before its contents are read.
    pub(crate) fn count(&self, bytes: usize) -> Result<(), LimitHit> {
        if bytes > LOG_LINE_BYTES_MAX {
            return Err(LimitHit::LogLine);
        }
        let (logged, lines) = &mut *self.0.logged.lock();
        (*logged, *lines) = (*logged + bytes, *lines + 1);
        match (*logged <= LOG_BYTES_MAX, *lines <= LOG_LINES_MAX) {
            (true, true) => Ok(()),
            (false, _) => Err(LimitHit::LogBytes),
            (true, false) => Err(LimitHit::LogLines),
        }
    }

    /// Writes a line that was already counted.
    pub(crate) fn write(&self, level: &str, message: &str, fields: Option<String>) {
        let Some((app, block)) = &self.0.block else { return };
        let level = match level {
            "error" | "warn" | "debug" | "trace" => level,
            _ => "info",
        };
        app.log_block_line(block.name(), &self.0.call_id, level, message, fields);
    }
}

/// One of the two standard streams of a call.
#[derive(Clone)]
pub(crate) struct LogStream {
    sink: LogSink,
    level: &'static str,
    /// The line that has not ended yet.
    line: Arc<Mutex<Vec<u8>>>,
}

impl LogStream {
    pub(crate) fn new(sink: LogSink, level: &'static str) -> LogStream {
        LogStream { sink, level, line: Arc::default() }
    }

    fn take(&self, bytes: &[u8]) -> Result<(), LimitHit> {
        let mut line = self.line.lock();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if line.len() + piece.len() > LOG_LINE_BYTES_MAX {
                return Err(LimitHit::LogLine);
            }
            line.extend_from_slice(piece);
            if pieces.peek().is_some() {
                self.end(&mut line)?;
            }
        }
        Ok(())
    }

    fn end(&self, line: &mut Vec<u8>) -> Result<(), LimitHit> {
        self.sink.count(line.len())?;
        let text = String::from_utf8_lossy(line);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        if !text.is_empty() {
            self.sink.write(self.level, text, None);
        }
        line.clear();
        Ok(())
    }

    /// Writes the last line, even if it has no end.
    pub(crate) fn finish(&self) {
        let mut line = self.line.lock();
        if !line.is_empty() {
            // If this line exceeds the limit, it is the call's last line and is lost. The call's own error says so.
            let _ = self.end(&mut line);
        }
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes).map_err(|limit| StreamError::Trap(limit.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 * 1024)
    }
}

impl AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(self.take(bytes).map(|()| bytes.len()).map_err(std::io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
