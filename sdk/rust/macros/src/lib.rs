//! The attributes of `blockbase-sdk`, which re-exports and documents them: use them from there.

mod block;
mod handler;

use proc_macro::TokenStream;

use handler::Kind;

/// Makes a function an action, which callers run by its name.
///
/// The function takes `&Context` and, where the action has an input, a type that is `Deserialize` and `JsonSchema`; it returns
/// `Result` of a type that is `Serialize`. Its doc comment becomes the description, the type's schema that of the input.
///
/// ```ignore
/// /// Greets somebody.
/// #[action]
/// fn greet(_context: &Context, input: Greet) -> Result<String, Error> {
///     Ok(format!("Hello, {}!", input.name))
/// }
/// ```
///
/// Options: `timeout_ms = 5000`, `rbac(resource = "tasks:use", action = "read")`, `description = "…"`.
#[proc_macro_attribute]
pub fn action(options: TokenStream, function: TokenStream) -> TokenStream {
    finish(handler::expand(Kind::Action, options.into(), function.into()))
}

/// Makes a function a hook, which receives the requests of third parties.
///
/// The function takes `&Context` and `hooks::Request`; it returns `Result` of `Option<Response>`, `Response` or `()`. Nothing
/// answers 200 with `{ "received": true }`.
///
/// ```ignore
/// /// Takes what the payment provider says.
/// #[hook]
/// fn payments(_context: &Context, request: Request) -> Result<(), Error> {
///     record(request.json()?)
/// }
/// ```
///
/// Options: `description = "…"`.
#[proc_macro_attribute]
pub fn hook(options: TokenStream, function: TokenStream) -> TokenStream {
    finish(handler::expand(Kind::Hook, options.into(), function.into()))
}

/// Makes a function a handler of events.
///
/// The function takes `&Context`, `Event<Payload>` and, where the subscription has a `config`, a type for it, each of them
/// `Deserialize`; it returns `Result<(), _>`. An error is a failed delivery, which is tried again.
///
/// ```ignore
/// #[subscription(event = "data.task.#")]
/// fn on_task(_context: &Context, event: Event<RecordChange<Task>>) -> Result<(), Error> {
///     index(event.payload.after)
/// }
/// ```
///
/// Options: `event` is a pattern of topics and `consumer` the name of the consumer group, by default that of the block and
/// of the function. Without `event` the subscription has to stand in `block.json`, which is also where its `config` is.
#[proc_macro_attribute]
pub fn subscription(options: TokenStream, function: TokenStream) -> TokenStream {
    finish(handler::expand(Kind::Subscription, options.into(), function.into()))
}

/// Makes the block of its handlers: `block!(greet, ping, on_task);`, once in a crate.
///
/// Each is a function with one of the attributes [`macro@action`], [`macro@hook`] and [`macro@subscription`], or the path of
/// one. A function without an attribute is an error that says so: "cannot find type `attribute_of_…`".
#[proc_macro]
pub fn block(handlers: TokenStream) -> TokenStream {
    finish(block::expand(handlers.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
