//! What every surface needs besides the operations themselves.

use blockbase_query::Action;
use blockbase_schema::{Error, Resource, Result};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::App;
use crate::caller::{Caller, Credentials};

/// Who sends a request to a surface, as the layer in front of it found out.
pub struct Invoker {
    /// The caller, or why what they presented does not hold.
    pub caller: Result<Caller>,
    /// What they presented, for what looks again later.
    pub credentials: Credentials,
    /// Names the request in logs and spans.
    pub request_id: String,
}

/// A request's body, which is read once a surface asks for it: after it has let the caller in.
pub struct IncomingBody(BoxFuture<'static, Result<Bytes>>);

impl IncomingBody {
    pub fn new(reading: impl Future<Output = Result<Bytes>> + Send + 'static) -> IncomingBody {
        IncomingBody(Box::pin(reading))
    }

    /// # Errors
    /// `payload_too_large`, `invalid_request` for one that was cut short or is too slow, `unavailable` if too many bytes of
    /// bodies are in flight.
    pub async fn read(self) -> Result<Bytes> {
        self.0.await
    }
}

/// Writes to the log what the answer does not say.
pub fn log_cause(error: &Error) {
    if let Some(cause) = &error.cause {
        // The span carries the request id.
        tracing::error!(error.code = error.code.as_str(), error.cause = %cause, "a request failed");
    }
}

impl Caller {
    /// The gate of GraphQL and MCP: a caller who presents a credential needs read on the platform data resource; everybody else
    /// has what `public` may do.
    ///
    /// # Errors
    /// `forbidden`.
    pub fn require_platform(&self) -> Result<()> {
        match self.is_known() {
            true => self.require(Resource::Data, Action::Read),
            false => Ok(()),
        }
    }
}

impl App {
    /// The versions of the schema and of the installed blocks that new requests are served with.
    pub fn catalogue_version(&self) -> (i64, i64) {
        (self.registry().version, *self.blocks_version.lock())
    }

    /// Tells of each change of the schema and of the installed blocks, once this instance serves it.
    pub fn watch_catalogue(&self) -> watch::Receiver<()> {
        self.catalogue_changed.subscribe()
    }
}
