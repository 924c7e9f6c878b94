//! Layers around the routes. Every request passes through them before its route is found, and every response after its handler.
//! They determine the client's address, and check the request's host, origin and rate limits.

pub(crate) mod drain_body;
pub(crate) mod middleware;
pub(crate) mod observe;
pub(crate) mod responses;
pub(crate) mod security_headers;
