//! Events for handlers of blocks.

use std::sync::Arc;
use std::time::Duration;

use blockbase_schema::{Code, Error, Result};
use blockbase_store::ClaimedEvent;
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::caller::Caller;
use crate::state::block_types::{EventCall, InstalledBlock};
use crate::state::block_usage::HandlerKind;
use blockbase_quota::QuotaOwner;

impl App {
    /// Gives an event to a block's handler. The handler's own writes have a depth of one more than the event.
    ///
    /// No caller invokes the handler. So its rows have no stamp, and it has no rights "as caller".
    ///
    /// # Errors
    /// The handler's own error, or the reason why it did not finish.
    pub async fn deliver_to_block(
        &self,
        block: &str,
        handler: &str,
        config: &Value,
        event: ClaimedEvent,
        attempts: i64,
    ) -> Result<()> {
        let block = self.installed(block)?;
        if !block.enabled {
            return Err(Error::new(Code::Unavailable, format!("The block `{}` is disabled.", block.name())));
        }
        let attempt = u32::try_from(attempts + 1).unwrap_or(u32::MAX);
        let call = self.event_call(block, handler, config, event, attempt).await?;
        self.run_event_call(call).await
    }

    /// The parts of a handler's call. No caller invokes it, and its own writes have a depth of one more than the event.
    ///
    /// # Errors
    /// `forbidden` if the maker of the block was deleted or banned.
    pub(crate) async fn event_call(
        &self,
        block: Arc<InstalledBlock>,
        handler: &str,
        config: &Value,
        event: ClaimedEvent,
        attempt: u32,
    ) -> Result<EventCall> {
        let nobody = Caller { quota_owner: QuotaOwner::Block(block.name().into()), ..Caller::nobody() };
        let (caller, reuse) = self.block_caller(&block, &nobody).await?;
        let caller = Caller { depth: event.depth + 1, ..caller };
        Ok(EventCall {
            handler: handler.to_owned(),
            event,
            attempt,
            config: config.to_string(),
            caller,
            usage: block.usage_of(HandlerKind::Subscription, handler),
            block,
            call_id: Uuid::new_v4().to_string(),
            timeout: Duration::from_millis(self.settings.action_timeout_ms),
            reuse,
        })
    }

    /// Runs a call of a handler, and counts what it uses.
    ///
    /// # Errors
    /// The handler's own error, or the reason why it did not finish.
    pub(crate) async fn run_event_call(&self, call: EventCall) -> Result<()> {
        let usage = Arc::clone(&call.usage);
        let name = call.block.name().to_owned();
        let answer = usage.observe(self.runtime()?.deliver_event(call)).await;
        self.block_faults.note(&name, answer.as_ref().err(), self.clock.now());
        answer
    }
}
