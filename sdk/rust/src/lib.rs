//! The SDK for blocks written in Rust.
//!
//! A handler is a plain function over serde types with an attribute. [`block!`] lists the handlers:
//!
//! ```
//! use blockbase_sdk::{Context, Error, JsonSchema, action, block, schemars};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom.
//!     name: String,
//! }
//!
//! /// Greets somebody.
//! #[action]
//! fn greet(_context: &Context, input: Greet) -> Result<String, Error> {
//!     Ok(format!("Hello, {}!", input.name))
//! }
//!
//! block!(greet);
//! # fn main() {}
//! ```
//!
//! `blockbase block build` takes from the code: the names, the descriptions (from doc comments), the schema of each input, the topic
//! patterns, and the host interfaces that are called. If `block.json` has the same key, its value wins. Permissions are only in
//! `block.json`.
//!
//! `JsonSchema` is that of [`schemars`]. Its derive looks for a crate or an import with that name, so import both, as above.
//!
//! A panic is a trap: the call fails with "The block trapped", and nothing of the call remains.

/// The bindings that [`block!`] needs. They are not for authors.
#[doc(hidden)]
#[allow(missing_docs)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "block",
        generate_all,
        pub_export_macro: true,
        default_bindings_module: "blockbase_sdk::bindings",
    });
}

pub mod config;
pub mod data;
pub mod deadline;
#[doc(hidden)]
pub mod handlers;
pub mod hooks;
pub mod http;
pub mod log;
pub mod random;
pub mod secrets;
#[cfg(feature = "crypto")]
pub mod signature;
pub mod time;

mod context;
mod error;
mod event;
mod headers;
// Tests compile it for every target, without making it the allocator.
#[cfg(any(test, all(feature = "allocator", target_arch = "wasm32", not(target_feature = "atomics"))))]
mod memory;

pub use blockbase_sdk_macros::{action, block, hook, subscription};
pub use context::{Actor, Context};
pub use error::Error;
pub use event::{Event, RecordChange};
pub use schemars::{self, JsonSchema};
pub use serde_json;
