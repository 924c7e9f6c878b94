//! `block!`: makes the component's exports from a list of handlers.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Path, Token};

use crate::handler::attribute_of;

pub(crate) fn expand(handlers: TokenStream) -> syn::Result<TokenStream> {
    let handlers = Punctuated::<Path, Token![,]>::parse_terminated.parse2(handlers)?;
    let handlers: Vec<Path> = handlers.into_iter().map(attribute_type).collect();
    Ok(quote! {
        const _: () = {
            use ::blockbase_sdk::bindings::blockbase::block::types;
            use ::blockbase_sdk::bindings::exports::blockbase::block::{actions, hooks, registry, subscriptions};
            use ::blockbase_sdk::bindings::exports::blockbase::sdk::describe;
            use ::blockbase_sdk::handlers::{self, Handler, Kind};

            struct Block;

            impl registry::Guest for Block {
                fn handlers() -> ::std::vec::Vec<registry::Handler> {
                    ::std::vec![#(handlers::registered::<#handlers>()),*]
                }
            }

            impl describe::Guest for Block {
                fn manifest() -> ::std::string::String {
                    handlers::manifest(&[#((<#handlers as Handler>::KIND, <#handlers as Handler>::describe)),*])
                }
            }

            // The kinds are constants, so the compiler removes handlers of other kinds from each chain.
            impl actions::Guest for Block {
                fn call(
                    context: types::Context,
                    name: ::std::string::String,
                    input: ::std::string::String,
                ) -> ::std::result::Result<::std::string::String, types::Error> {
                    #(if let Kind::Action = <#handlers as Handler>::KIND && name == <#handlers as Handler>::NAME {
                        return handlers::answer(<#handlers as Handler>::action(&context.into(), &input));
                    })*
                    let _ = (context, input);
                    handlers::unknown("action", &name)
                }
            }

            impl hooks::Guest for Block {
                fn receive(
                    context: types::Context,
                    name: ::std::string::String,
                    request: hooks::Request,
                ) -> ::std::result::Result<::std::option::Option<hooks::Response>, types::Error> {
                    #(if let Kind::Hook = <#handlers as Handler>::KIND && name == <#handlers as Handler>::NAME {
                        return handlers::answer(<#handlers as Handler>::hook(&context.into(), request.into()));
                    })*
                    let _ = (context, request);
                    handlers::unknown("hook", &name)
                }
            }

            impl subscriptions::Guest for Block {
                fn deliver(
                    context: types::Context,
                    name: ::std::string::String,
                    event: subscriptions::Event,
                    config: ::std::string::String,
                ) -> ::std::result::Result<(), types::Error> {
                    #(if let Kind::Subscription = <#handlers as Handler>::KIND && name == <#handlers as Handler>::NAME {
                        return handlers::answer(<#handlers as Handler>::subscription(&context.into(), event, &config));
                    })*
                    let _ = (context, event, config);
                    handlers::unknown("subscription handler", &name)
                }
            }

            ::blockbase_sdk::bindings::export!(Block with_types_in ::blockbase_sdk::bindings);
        };
    })
}

/// The path of the type that a function's attribute made beside it.
fn attribute_type(mut function: Path) -> Path {
    if let Some(last) = function.segments.last_mut() {
        last.ident = attribute_of(&last.ident);
    }
    function
}
