//! The MCP surface: its tools run the same operations as REST.
//!
//! rmcp handles the protocol with its versions, lifecycle and messages. This crate adds the checks of callers, the sessions, and
//! the tools. Each HTTP request is answered by itself, with the rights of its credential. The only purpose of a session is to
//! notify its client of changes to the list of tools.
//!
//! A client that disconnects cancels its call, although the protocol lets the call continue, because in this server an action ends
//! with its caller. A deleted tool gets the error of an unknown one, because clients cannot distinguish them.
//!
//! This crate must not know of axum, SQL or wasmtime. No other crate knows rmcp.
#![forbid(unsafe_code)]

mod admission;
mod answer;
mod batch;
mod call;
mod hints;
mod message;
mod post;
mod server;
mod session;
mod stream;
mod surface;
mod tools;
mod watch;

pub use surface::Mcp;
