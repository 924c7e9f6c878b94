//! End-to-end tests: each one runs the real binary, and calls it over HTTP.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod blocks;
mod cli_sdk;
mod console;
mod data;
mod edge;
mod events;
mod graphql;
mod mcp;
mod process;
mod promises;
mod schema;
