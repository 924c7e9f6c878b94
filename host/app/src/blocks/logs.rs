//! What blocks log.

use std::sync::atomic::Ordering;

use blockbase_query::Action;
use blockbase_schema::Result;
use blockbase_store::{BlockLogRow, ReadCost};
use serde_json::{Value, json};

use super::BLOCKS;
use crate::App;
use crate::caller::Caller;

/// Text without what could steer a terminal, or turn the direction in which it is read.
fn printable(text: &str) -> String {
    let is_hidden = |character: char| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

impl App {
    /// Takes a line that a block logged. It reaches the process log at once, and the stored log soon after.
    pub fn log_block_line(&self, block: &str, call_id: &str, level: &str, message: &str, fields: Option<String>) {
        let (message, fields) = (printable(message), fields.as_deref().map(printable));
        // One line of the process log is one line of the block's, whatever is in it.
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
        if self.log_lines.try_send(row).is_err() {
            // Once a second at most: whoever floods the one log must not flood the other.
            let now = self.clock.now();
            if now - self.log_loss_told_at.swap(now, Ordering::Relaxed) > 1000 {
                tracing::warn!(block.name = block, "block log lines come faster than they can be stored; some are not kept");
            }
        }
    }

    /// Stores what blocks logged.
    pub async fn store_block_logs(&self, lines: Vec<BlockLogRow>) -> Result<()> {
        self.store.write(move |connection| Box::pin(async move { Ok(connection.append_block_logs(lines).await?) })).await
    }

    /// The latest log lines of a block, newest first.
    pub async fn block_logs(&self, caller: &Caller, name: &str, level: Option<String>, limit: i64) -> Result<Vec<Value>> {
        caller.require(BLOCKS, Action::Read)?;
        let block = self.installed(name)?;
        let name = block.name().to_owned();
        let lines = self
            .store
            .read(ReadCost::Scan, move |connection| {
                Box::pin(async move { Ok(connection.block_logs(&name, level.as_deref(), limit).await?) })
            })
            .await?;
        Ok(lines
            .into_iter()
            .map(|line| {
                let fields: Value = line.fields.and_then(|fields| serde_json::from_str(&fields).ok()).unwrap_or_default();
                json!({
                    "at": blockbase_schema::time::format_datetime(line.logged_at),
                    "level": line.level,
                    "message": line.message,
                    "fields": fields,
                    "callId": line.call_id,
                })
            })
            .collect())
    }
}
