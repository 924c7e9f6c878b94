//! The settings of the background work.

use std::sync::Arc;
use std::time::Duration;

use blockbase_outbound::{Client, Mailer};

/// The settings that the background work needs.
#[derive(Clone)]
pub struct Settings {
    /// How often the dispatcher looks for work without a hint.
    pub poll: Duration,
    /// The time limit of one call of a webhook.
    pub webhook_timeout: Duration,
    /// The time limit of one call of a block's handler.
    pub handler_timeout: Duration,
    /// The client that makes the calls.
    pub client: Client,
    /// Sends mail. `None` if the server sends no mail.
    pub mailer: Option<Arc<Mailer>>,
}
