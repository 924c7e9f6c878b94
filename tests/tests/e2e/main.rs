//! End-to-end tests: every one drives the real binary over HTTP.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod aggregates;
mod alterations;
mod bad_input;
mod blocks;
mod bulk;
mod data;
mod differential;
mod events;
mod faults;
mod mask;
mod openapi;
mod process;
mod readme;
mod relationships;
mod same_bytes;
mod schema;
mod search;
mod upsert;
