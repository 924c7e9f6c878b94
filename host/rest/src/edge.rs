//! Layers around the routes. Every request passes them before its route is found, and every response on its way back. They find
//! out the client's address, and check the request's host, origin and rate limits.

pub(crate) mod address;
pub(crate) mod drain_body;
pub(crate) mod host;
pub(crate) mod middleware;
pub(crate) mod observe;
pub(crate) mod origin;
pub(crate) mod responses;
pub(crate) mod security_headers;
