//! Calls to other machines, for all parts of the service that make them: webhooks, blocks.
//!
//! A name is resolved, each address checked, and the connection made to a checked address, so that no answer of a name server
//! leads into a network that is not public. Redirects are not followed, no proxy is taken from the environment, an answer is
//! read up to a bound, and one deadline holds for all of it. This crate must not know of webhooks, blocks or the database.
#![forbid(unsafe_code)]

mod address;
mod client;
mod headers;
mod resolver;
mod tls;

pub use address::{AddressPolicy, Refused};
pub use client::{Answer, Client, Failure, Request};
pub use headers::{is_reserved, is_reserved_of_messages};
