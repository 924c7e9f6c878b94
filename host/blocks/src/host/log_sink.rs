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

/// Receives the lines of one call. Without a block it counts them, but drops them. All clones belong to the same call.
#[derive(Clone)]
pub(crate) struct LogSink(Arc<Mutex<Sink>>);

#[derive(Default)]
struct Sink {
    block: Option<(Arc<App>, Arc<InstalledBlock>)>,
    call_id: String,
    /// The number of bytes and of lines so far.
    bytes: usize,
    lines: u32,
}

impl LogSink {
    pub(crate) fn new(block: Option<(Arc<App>, Arc<InstalledBlock>)>, call_id: String) -> LogSink {
        LogSink(Arc::new(Mutex::new(Sink { block, call_id, ..Sink::default() })))
    }

    /// Ends the call. Lines that come later are dropped.
    pub(crate) fn end(&self) {
        *self.0.lock() = Sink::default();
    }

    /// From now on, this sink and its clones receive the lines of the call of `next`.
    pub(crate) fn become_of(&self, next: &LogSink) {
        let next = std::mem::take(&mut *next.0.lock());
        *self.0.lock() = next;
    }

    /// Whether no line was counted yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.0.lock().lines == 0
    }

    /// Counts a line before its contents are read.
    pub(crate) fn count(&self, bytes: usize) -> Result<(), LimitHit> {
        if bytes > LOG_LINE_BYTES_MAX {
            return Err(LimitHit::LogLine);
        }
        let mut sink = self.0.lock();
        (sink.bytes, sink.lines) = (sink.bytes + bytes, sink.lines + 1);
        match (sink.bytes <= LOG_BYTES_MAX, sink.lines <= LOG_LINES_MAX) {
            (true, true) => Ok(()),
            (false, _) => Err(LimitHit::LogBytes),
            (true, false) => Err(LimitHit::LogLines),
        }
    }

    /// Writes a line that was already counted.
    pub(crate) fn write(&self, level: &str, message: &str, fields: Option<String>) {
        let sink = self.0.lock();
        let Some((app, block)) = &sink.block else { return };
        let level = match level {
            "error" | "warn" | "debug" | "trace" => level,
            _ => "info",
        };
        app.log_block_line(block.name(), &sink.call_id, level, message, fields);
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

    /// Writes the last line, even if it has no end. Returns `false` if the line exceeds a limit. Then it is lost.
    pub(crate) fn finish(&self) -> bool {
        let mut line = self.line.lock();
        let is_written = line.is_empty() || self.end(&mut line).is_ok();
        line.clear();
        is_written
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
