//! Calls to other machines, for webhooks, blocks and mail.
//!
//! The client resolves a name, checks each address, and connects only to a checked address. So no answer of a name server can
//! lead the client into a network that is not public. The client does not follow redirects, and ignores proxies in the
//! environment. It reads a response up to a limit, and one deadline applies to the complete call. This crate must not know of
//! webhooks, blocks, accounts or the database.
#![forbid(unsafe_code)]

mod address;
mod client;
mod headers;
mod mail;
mod resolver;
mod tls;

pub use address::{AddressPolicy, Refused};
pub use client::{Answer, Client, Failure, Request};
pub use headers::{is_reserved, is_reserved_of_messages};
pub use mail::{Mail, MailFailure, Mailer};
