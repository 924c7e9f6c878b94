//! End-to-end tests: every one drives the real binary over HTTP.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod aggregates;
mod alterations;
mod bad_input;
mod better_auth;
mod block_versions;
mod blocks;
mod bootstrap;
mod bulk;
mod cli_blocks;
mod data;
mod deliveries;
mod delivery_faults;
mod differential;
mod events;
mod faults;
mod guests;
mod hostile;
mod mask;
mod mcp;
mod openapi;
mod policy;
mod process;
mod readme;
mod relationships;
mod roles;
mod route_permissions;
mod same_bytes;
mod schema;
mod sdk_c;
mod sdk_go;
mod sdk_js;
mod sdk_promises;
mod sdk_python;
mod sdk_rust;
mod search;
mod sessions;
mod shipped_blocks;
mod stripe;
mod subscriptions;
mod tasks;
mod telemetry;
mod upsert;
mod webhooks;
