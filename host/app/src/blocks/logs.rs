//! What blocks log.

use blockbase_query::Action;
use blockbase_schema::Result;
use blockbase_store::{BlockLogRow, ReadCost};
use serde_json::{Value, json};

use super::BLOCKS;
use crate::App;
use crate::caller::Caller;

impl App {
    /// Takes a line that a block logged. It reaches the process log at once, and the stored log soon after.
    pub fn log_block_line(&self, block: &str, call_id: &str, level: &str, message: String, fields: Option<String>) {
        let shown = fields.as_deref().unwrap_or_default();
        match level {
            "error" => tracing::error!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
            "warn" => tracing::warn!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
            "debug" | "trace" => tracing::debug!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
            _ => tracing::info!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
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
            tracing::warn!(block.name = block, "block log lines come faster than they can be stored; some are not kept");
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
