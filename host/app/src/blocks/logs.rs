//! The log lines of blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use blockbase_query::Action;
use blockbase_schema::{Error, Resource, Result};
use blockbase_store::{BlockLogFilter, BlockLogPage, BlockLogRow, KeptLogLine, Service};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::App;
use crate::base::answer::Timestamp;
use crate::base::stored::Place;
use crate::caller::Caller;

/// The levels of log lines, the most severe first.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The requested lines of a block's log.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// Lines of these levels. An empty list means all levels.
    pub levels: Vec<&'static str>,
    /// Text that the message or the fields contain, ignoring case.
    pub text: Option<String>,
    /// Milliseconds since the epoch.
    pub since: Option<i64>,
    /// The cursor of an earlier response.
    pub after: Option<i64>,
    /// The maximum number of lines.
    pub limit: i64,
}

impl LogRequest {
    /// Reads a list of levels, separated by commas.
    ///
    /// # Errors
    /// `invalid_request` for an unknown level.
    pub fn read_levels(text: &str) -> Result<Vec<&'static str>> {
        let level = |name: &str| {
            LEVELS.into_iter().find(|known| *known == name).ok_or_else(|| {
                Error::invalid_request(format!(
                    "`level` contains {name:?}, which is not a level. The levels are {}.",
                    LEVELS.join(", ")
                ))
            })
        };
        text.split(',').map(|name| level(name.trim())).collect()
    }
}

/// Text without characters that could control a terminal or change the reading direction.
fn printable(text: &str) -> String {
    let is_hidden = |character: char| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

impl App {
    /// Takes a line that a block logged. The line goes to the process log at once, and to the stored log soon after.
    pub fn log_block_line(&self, block: &str, call_id: &str, level: &str, message: &str, fields: Option<String>) {
        let (message, fields) = (printable(message), fields.as_deref().map(printable));
        // One line of the block's log becomes exactly one line of the process log.
        let line = message.replace('\n', "\\n");
        let shown = fields.as_deref().unwrap_or_default();
        match level {
            "error" => tracing::error!(block.name = block, call.id = call_id, block.fields = shown, "{line}"),
            "warn" => tracing::warn!(block.name = block, call.id = call_id, block.fields = shown, "{line}"),
            "debug" | "trace" => tracing::debug!(block.name = block, call.id = call_id, block.fields = shown, "{line}"),
            _ => tracing::info!(block.name = block, call.id = call_id, block.fields = shown, "{line}"),
        }
        let row = BlockLogRow {
            block: block.to_owned(),
            call_id: call_id.to_owned(),
            level: level.to_owned(),
            message,
            fields,
            logged_at: self.clock.now(),
        };
        if let Some(lines) = self.watched_calls.lock().get_mut(call_id) {
            // The limits of the call bound the length of this list.
            lines.push(row.clone());
        }
        if self.log_lines.try_send(row).is_err() {
            // The warning appears at most once a second. A block that floods its own log must not flood the server's log.
            let now = self.clock.now();
            if now - self.log_loss_reported_at.swap(now, Ordering::Relaxed) > 1000 {
                tracing::warn!(block.name = block, "block log lines come faster than they can be stored; some are not kept");
            }
        }
    }

    /// Stores log lines of blocks.
    pub async fn store_block_logs(&self, lines: Vec<BlockLogRow>) -> Result<()> {
        self.store.write(Service, move |connection| Box::pin(async move { Ok(connection.append_block_logs(lines).await?) })).await
    }

    /// Lines of a block's log: the newest lines first. With a cursor, the lines after it, the oldest first.
    ///
    /// # Errors
    /// `not_found`; `unavailable` if the caller has too many scans running.
    pub async fn block_logs(&self, caller: &Caller, name: &str, request: LogRequest) -> Result<LogPage> {
        caller.require(Resource::Blocks, Action::Read)?;
        let block = self.installed(name)?;
        let LogRequest { levels, text, since, after, limit } = request;
        let filter = BlockLogFilter { block: block.name().to_owned(), levels, text, since, after, limit };
        let page = self.scan(caller, move |connection| Box::pin(async move { Ok(connection.block_logs(filter).await?) })).await?;
        let BlockLogPage { lines, up_to, is_cut } = page;
        let data = lines.into_iter().map(|KeptLogLine { seq, line }| KeptLine { line: LogLine::from(line), id: seq.to_string() });
        Ok(LogPage { data: data.collect(), cursor: up_to.to_string(), missed: is_cut })
    }

    /// Collects the log lines of the call with this id, in addition to the log, until the returned value is dropped.
    pub(crate) fn watch_call(self: &Arc<Self>, call_id: &str) -> WatchedCall {
        self.watched_calls.lock().insert(call_id.to_owned(), Vec::new());
        WatchedCall { app: Arc::clone(self), call_id: call_id.to_owned() }
    }
}

/// A call whose log lines are collected for the waiting caller.
pub(crate) struct WatchedCall {
    app: Arc<App>,
    call_id: String,
}

impl WatchedCall {
    /// The log lines of the call so far, in their order.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        let mut calls = self.app.watched_calls.lock();
        let lines = calls.get_mut(&self.call_id).map(std::mem::take).unwrap_or_default();
        drop(calls);
        lines.into_iter().map(LogLine::from).collect()
    }
}

impl Drop for WatchedCall {
    fn drop(&mut self) {
        self.app.watched_calls.lock().remove(&self.call_id);
    }
}

/// A line that a block logged during a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct LogLine {
    at: Timestamp,
    #[schemars(extend("enum" = LEVELS))]
    level: String,
    message: String,
    /// Further data of the line; null if there is none.
    fields: Value,
    call_id: String,
}

impl From<BlockLogRow> for LogLine {
    fn from(line: BlockLogRow) -> LogLine {
        let fields = line.fields.map(|fields| Place::new("svc_block_logs", "fields", &line.call_id).read(&fields));
        LogLine {
            at: Timestamp(line.logged_at),
            level: line.level,
            message: line.message,
            fields: fields.unwrap_or_default(),
            call_id: line.call_id,
        }
    }
}

/// A stored line of a block's log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcBlockLogLine", deny_unknown_fields)]
pub struct KeptLine {
    #[serde(flatten)]
    line: LogLine,
    /// The number of the line. A later line has a higher number.
    id: String,
}

/// Lines of a block's log: the newest first, or those after a cursor, the oldest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct LogPage {
    data: Vec<KeptLine>,
    /// Send it as `after` to get the lines that follow.
    cursor: String,
    /// Whether lines after the cursor may be deleted already: only the last 1,000 lines of a block are kept.
    missed: bool,
}
