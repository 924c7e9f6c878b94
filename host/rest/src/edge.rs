//! What every request passes before its route is found, and every response after: who sent it, from where, what it may cost.

pub(crate) mod address;
pub(crate) mod drain_body;
pub(crate) mod host;
pub(crate) mod middleware;
pub(crate) mod observe;
pub(crate) mod origin;
pub(crate) mod responses;
pub(crate) mod security_headers;
