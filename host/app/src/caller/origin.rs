//! The request of a caller, as the audit log names it.

use std::net::IpAddr;
use std::sync::Arc;

/// The request behind a call. It is empty for work that the service does by itself. Cloning it costs one reference count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) address: Option<IpAddr>,
    pub(crate) request_id: Option<Arc<str>>,
    /// The operator of this server, if the request is theirs.
    pub(crate) operator: Option<Operator>,
}

/// The operator, by the user of the operating system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operator {
    /// `None` if it is not known.
    pub(crate) uid: Option<u32>,
}
