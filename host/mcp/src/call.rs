//! One HTTP request on its way to a tool and back. rmcp passes it along with the message, and never reads it.

use std::sync::Arc;

use blockbase_app::schema::{Error, Result};
use blockbase_app::{Caller, Credentials, RenewalSlot};
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::value::RawValue;
use uuid::Uuid;

/// The admitted caller of a request.
pub(crate) struct Invoked {
    pub(crate) caller: Caller,
    pub(crate) credentials: Credentials,
    pub(crate) request_id: String,
}

impl Invoked {
    /// The caller's credentials for later checks. If a check renews the session, the new token is dropped, because the response
    /// has already been sent.
    pub(crate) fn kept_credentials(&self) -> Credentials {
        Credentials { renewal: RenewalSlot::default(), ..self.credentials.clone() }
    }
}

/// The results of a tool.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The result as JSON, in the same form as in REST.
    pub(crate) document: Option<String>,
    /// Set if the call needs a credential, because HTTP has a status for this error.
    pub(crate) unauthorized: Option<Error>,
    /// The fingerprint of the list of tools, if the answer shows it.
    pub(crate) shown: Option<u64>,
}

/// One request.
pub(crate) struct Call {
    pub(crate) invoked: Arc<Invoked>,
    /// The arguments of a tool as text, which keeps the digits of numbers. The code that runs the tool moves them out.
    pub(crate) arguments: Mutex<Option<Box<RawValue>>>,
    /// A placeholder for the document in rmcp's answer, which accepts only a tree of values. It is random, so nobody can guess
    /// it.
    pub(crate) marker: String,
    pub(crate) outcome: Mutex<Outcome>,
}

impl Call {
    pub(crate) fn new(invoked: Arc<Invoked>, arguments: Option<Box<RawValue>>) -> Arc<Call> {
        let arguments = Mutex::new(arguments);
        Arc::new(Call { invoked, arguments, marker: Uuid::new_v4().to_string(), outcome: Mutex::default() })
    }

    /// The request that `context` is about.
    ///
    /// # Errors
    /// If rmcp lost the request, which is a defect.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Result<Arc<Call>> {
        let parts = context.extensions.get::<http::request::Parts>();
        let call = parts.and_then(|parts| parts.extensions.get::<Arc<Call>>());
        call.cloned().ok_or_else(|| Error::internal("rmcp passed on a message without its request"))
    }
}
