//! What a block written in Rust imports.
//!
//! A handler is a plain function over serde types. [`block!`] lists them, and the block is whole:
//!
//! ```ignore
//! use blockbase_sdk::{Context, Error, block};
//!
//! #[derive(serde::Deserialize)]
//! struct Greet { name: String }
//!
//! fn greet(_context: &Context, input: Greet) -> Result<String, Error> {
//!     Ok(format!("Hello, {}!", input.name))
//! }
//!
//! block! { actions: { greet } }
//! ```

/// The bindings that [`block!`] needs. Not for authors.
#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/blockbase-block-0.1.0",
        world: "block",
        pub_export_macro: true,
        default_bindings_module: "blockbase_sdk::bindings",
    });
}

pub mod config;
pub mod data;
pub mod deadline;
pub mod log;

mod error;

use bindings::blockbase::block::types;
pub use bindings::exports::blockbase::block::subscriptions::Event;
pub use error::Error;
pub use serde_json;

/// What is true of one call: its id, who made it, the block's name.
pub type Context = types::Context;

/// Reads the input, runs the handler, writes its result. Not for authors.
#[doc(hidden)]
pub fn run_action<I, O>(
    handler: fn(&Context, I) -> Result<O, Error>,
    context: &Context,
    input: &str,
) -> Result<String, types::Error>
where
    I: serde::de::DeserializeOwned,
    O: serde::Serialize,
{
    let input = serde_json::from_str(input).map_err(|error| Error::invalid_request(error.to_string()))?;
    let output = handler(context, input)?;
    Ok(serde_json::to_string(&output).map_err(|error| Error::failed(error.to_string()))?)
}

/// Makes the block of its handlers: `block! { actions: { name, … }, subscriptions: { name, … } }`.
///
/// An action is `fn(&Context, Input) -> Result<Output, Error>`, a subscription handler
/// `fn(&Context, Event, serde_json::Value) -> Result<(), Error>`.
#[macro_export]
macro_rules! block {
    ($(actions: { $($action:ident),* $(,)? })? $(,)? $(subscriptions: { $($subscription:ident),* $(,)? })? $(,)?) => {
        struct Block;

        const _: () = {
            use $crate::bindings::blockbase::block::types;
            use $crate::bindings::exports::blockbase::block::{actions, hooks, registry, subscriptions};

            impl registry::Guest for Block {
                fn handlers() -> Vec<registry::Handler> {
                    vec![
                        $($(registry::Handler { name: stringify!($action).to_owned(), kind: "action".to_owned() },)*)?
                        $($(registry::Handler { name: stringify!($subscription).to_owned(), kind: "subscription".to_owned() },)*)?
                    ]
                }
            }

            impl actions::Guest for Block {
                fn call(context: types::Context, name: String, input: String) -> Result<String, types::Error> {
                    match name.as_str() {
                        $($(stringify!($action) => $crate::run_action($action, &context, &input),)*)?
                        _ => Err($crate::Error::not_found("action").into()),
                    }
                }
            }

            impl hooks::Guest for Block {
                fn receive(_: types::Context, _: String, _: hooks::Request) -> Result<Option<hooks::Response>, types::Error> {
                    Err($crate::Error::not_found("hook").into())
                }
            }

            impl subscriptions::Guest for Block {
                fn deliver(context: types::Context, name: String, event: $crate::Event, config: String) -> Result<(), types::Error> {
                    let config = $crate::serde_json::from_str::<$crate::serde_json::Value>(&config).unwrap_or_default();
                    match name.as_str() {
                        $($(stringify!($subscription) => Ok($subscription(&context, event, config)?),)*)?
                        _ => {
                            let _ = (context, event, config);
                            Err($crate::Error::not_found("subscription handler").into())
                        }
                    }
                }
            }

            $crate::bindings::export!(Block with_types_in $crate::bindings);
        };
    };
}
