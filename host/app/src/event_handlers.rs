//! Handlers of blocks: events handed to them.

use std::sync::Arc;
use std::time::Duration;

use blockbase_query::Permissions;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::ClaimedEvent;
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::blocks::EventCall;
use crate::caller::Caller;
use crate::shares::Payer;

impl App {
    /// Hands an event to a block's handler. The handler's own writes are one deeper than the event.
    ///
    /// Nobody invokes it: its rows have no stamp, and what it may do "as caller" it may not do here.
    ///
    /// # Errors
    /// What the handler answered, or why it did not.
    pub async fn deliver_to_block(
        self: &Arc<Self>,
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
        let nobody = Caller::anonymous(Arc::new(Permissions::new(Vec::new(), None)));
        let nobody = Caller { payer: Payer::Block(block.name().into()), ..nobody };
        let caller = Caller { depth: event.depth + 1, ..self.block_caller(&block, &nobody).await? };
        let call = EventCall {
            app: Arc::clone(self),
            handler: handler.to_owned(),
            event,
            attempt: u32::try_from(attempts + 1).unwrap_or(u32::MAX),
            config: config.to_string(),
            caller,
            block,
            call_id: Uuid::new_v4().to_string(),
            timeout: Duration::from_millis(self.settings.action_timeout_ms),
        };
        let name = call.block.name().to_owned();
        let answer = self.runtime()?.deliver_event(call).await;
        self.block_faults.note(&name, answer.as_ref().err(), self.clock.now());
        answer
    }
}
