//! Calls the handlers of deliveries.

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::schema::Code;
use blockbase_app::{App, DeliveryCheck, Subscription};
use blockbase_store::ClaimedEvent;
use serde_json::Value;

/// The reason why an attempt failed.
pub(crate) struct Failed {
    /// The stable name of the reason.
    pub(crate) kind: &'static str,
    /// The error that the ledger stores.
    pub(crate) problem: String,
    /// Whether the receiver answered.
    pub(crate) answered: bool,
    /// Whether another attempt would fail as well.
    pub(crate) is_final: bool,
}

impl Failed {
    /// The receiver answered, or nothing was sent. Another attempt may succeed.
    pub(crate) fn new(kind: &'static str, problem: String) -> Failed {
        Failed { kind, problem, answered: true, is_final: false }
    }

    /// Whether the rights of the maker could not be read from the database. Then the receiver was not called, and no attempt
    /// counts.
    pub(crate) fn is_unjudged(&self) -> bool {
        self.kind == Code::Unavailable.as_str()
    }
}

/// Returns the check that decides which events the group gets. Refuses the attempt if the group is suspended because its maker
/// lost a right that the group needs. The event then waits for its next attempt, and is dead after the last one, so that no event
/// is lost silently.
///
/// # Errors
/// The reason for the refusal.
pub(crate) async fn may_deliver(app: &App, subscription: &Subscription) -> Result<DeliveryCheck, Failed> {
    let check = app.delivery_check(subscription).await;
    let check = check.map_err(|error| Failed::new(error.code.as_str(), error.message))?;
    match check.why_stopped() {
        None => Ok(check),
        Some(problem) => Err(Failed::new("suspended", problem)),
    }
}

/// Calls the handler of a block. The tuple has the names of the block and of the handler, and the configuration. The time limit
/// includes the time for loading the block.
pub(crate) async fn deliver_to_block(
    app: &Arc<App>,
    (block, handler, config): (&str, &str, &Value),
    event: ClaimedEvent,
    attempts: i64,
    timeout: Duration,
) -> Result<(), Failed> {
    let delivered = app.deliver_to_block(block, handler, config, event, attempts);
    match tokio::time::timeout(timeout, delivered).await {
        Ok(delivered) => delivered.map_err(|error| Failed::new(error.code.as_str(), error.message)),
        Err(_) => {
            let problem = format!("the handler did not end within {} ms", timeout.as_millis());
            Err(Failed::new(Code::ActionTimeout.as_str(), problem))
        }
    }
}

/// The maximum number of bytes of a payload that the log shows.
const LOGGED_BYTES_MAX: usize = 8 * 1024;

/// The handler `log_event`.
pub(crate) fn log_event(consumer: &str, event: &ClaimedEvent) {
    let shown = &event.payload[..event.payload.floor_char_boundary(LOGGED_BYTES_MAX)];
    tracing::info!(event.id = event.id, event.topic = event.topic, event.consumer = consumer, event.payload = shown, "event");
}
