//! The attributes of `blockbase-sdk`. That crate re-exports and documents them, so use them from there.

mod block;
mod handler;

use proc_macro::TokenStream;

use handler::Kind;

/// Makes a function an action, which callers call by its name.
///
/// The function takes `&Context` and, if the action has an input, a type that is `Deserialize` and `JsonSchema`. It returns a `Result`
/// of a type that is `Serialize`. Its doc comment becomes the description, and the type's schema becomes the input's schema.
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
/// The function takes `&Context` and `hooks::Request`. It returns a `Result` of `Option<Response>`, `Response` or `()`. `None` and `()`
/// send 200 with `{ "received": true }`.
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
/// The function takes `&Context`, `Event<Payload>` and, if the subscription has a `config`, a type for it. Both types are `Deserialize`.
/// It returns `Result<(), _>`. An error makes the delivery fail, and it is retried.
///
/// ```ignore
/// #[subscription(event = "data.task.#")]
/// fn on_task(_context: &Context, event: Event<RecordChange<Task>>) -> Result<(), Error> {
///     index(event.payload.after)
/// }
/// ```
///
/// Options: `event` is a topic pattern. `consumer` is the name of the consumer group, by default made of the names of the block and the
/// function. Without `event`, the subscription has to be in `block.json`, which also has its `config`.
#[proc_macro_attribute]
pub fn subscription(options: TokenStream, function: TokenStream) -> TokenStream {
    finish(handler::expand(Kind::Subscription, options.into(), function.into()))
}

/// Makes the block from its handlers: `block!(greet, ping, on_task);`, once in a crate.
///
/// Each handler is a function with one of the attributes [`macro@action`], [`macro@hook`] and [`macro@subscription`], or the path of
/// such a function. If the attribute is missing, the compiler reports "cannot find type `attribute_of_…`".
#[proc_macro]
pub fn block(handlers: TokenStream) -> TokenStream {
    finish(block::expand(handlers.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
