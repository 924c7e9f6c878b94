//! Types and functions that every surface needs besides the operations.

use blockbase_query::Action;
use blockbase_schema::{Error, Resource, Result};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::App;
use crate::caller::{Caller, Credentials};

/// The sender of a request, as the layer in front of the surface determined it.
pub struct Invoker {
    /// The caller, or the error if the credential is invalid.
    pub caller: Result<Caller>,
    /// The presented credentials, for a later check.
    pub credentials: Credentials,
    /// The id of the request in logs and spans.
    pub request_id: String,
}

/// A request's body. It is read only when a surface asks for it, after it has admitted the caller.
pub struct IncomingBody(BoxFuture<'static, Result<Bytes>>);

impl IncomingBody {
    pub fn new(reading: impl Future<Output = Result<Bytes>> + Send + 'static) -> IncomingBody {
        IncomingBody(Box::pin(reading))
    }

    /// # Errors
    /// `payload_too_large`, `invalid_request` if the body was cut short or is too slow, `unavailable` if the bodies in flight have too
    /// many bytes.
    pub async fn read(self) -> Result<Bytes> {
        self.0.await
    }
}

/// Logs the cause of an error, because the answer does not show it.
pub fn log_cause(error: &Error) {
    if let Some(cause) = &error.cause {
        // The span carries the request id.
        tracing::error!(error.code = error.code.as_str(), error.cause = %cause, "a request failed");
    }
}

impl Caller {
    /// Checks whether the caller may use GraphQL and MCP. A caller with a credential needs read on the platform resource `data`.
    /// Other callers are admitted, and have the rights of `public`.
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
    /// The versions of the schema and of the installed blocks for new requests.
    pub fn catalogue_version(&self) -> (i64, i64) {
        (self.registry().version, *self.blocks_version.lock())
    }

    /// A receiver that is notified of each change of the schema and of the installed blocks, once this instance serves it.
    pub fn watch_catalogue(&self) -> watch::Receiver<()> {
        self.catalogue_changed.subscribe()
    }
}
