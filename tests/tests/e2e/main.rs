//! End-to-end tests: every one drives the real binary over HTTP.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod bad_input;
mod blocks;
mod data;
mod events;
mod faults;
mod openapi;
mod process;
mod readme;
mod same_bytes;
mod schema;
