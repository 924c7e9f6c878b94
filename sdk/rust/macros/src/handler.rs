//! The attributes. They leave the function unchanged and add a type from which `block!` knows what the function handles.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, ItemFn, Lit, LitInt, LitStr, Meta, Result};

/// The maximum length of a handler's name.
const NAME_CHARS_MAX: usize = 48;

/// The kind of handler that an attribute makes of its function.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Action,
    Hook,
    Subscription,
}

impl Kind {
    fn signature(self) -> &'static str {
        match self {
            Kind::Action => {
                "an action is `fn(context: &Context, input: Input) -> Result<Output, Error>`, where `input` may be left out"
            }
            Kind::Hook => "a hook is `fn(context: &Context, request: Request) -> Result<Option<Response>, Error>`",
            Kind::Subscription => {
                "a handler of events is `fn(context: &Context, event: Event<Payload>, config: Config) -> Result<(), Error>`, \
                 where `config` may be left out"
            }
        }
    }

    /// The smallest and the largest number of parameters.
    fn parameters(self) -> (usize, usize) {
        match self {
            Kind::Action => (1, 2),
            Kind::Hook => (2, 2),
            Kind::Subscription => (2, 3),
        }
    }
}

/// The options in the parentheses of an attribute.
#[derive(Default)]
struct Options {
    description: Option<LitStr>,
    timeout_ms: Option<LitInt>,
    rbac: Option<(LitStr, LitStr)>,
    event: Option<LitStr>,
    consumer: Option<LitStr>,
}

impl Options {
    fn parse(kind: Kind, tokens: TokenStream) -> Result<Options> {
        let mut options = Options::default();
        let parser = syn::meta::parser(|meta| options.take(kind, &meta));
        parser.parse2(tokens)?;
        if let (Some(consumer), None) = (&options.consumer, &options.event) {
            return Err(Error::new(consumer.span(), "a `consumer` needs the `event` that it consumes"));
        }
        Ok(options)
    }

    fn take(&mut self, kind: Kind, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match kind {
            Kind::Action | Kind::Hook if meta.path.is_ident("description") => self.description = Some(meta.value()?.parse()?),
            Kind::Action if meta.path.is_ident("timeout_ms") => self.timeout_ms = Some(meta.value()?.parse()?),
            Kind::Action if meta.path.is_ident("rbac") => self.rbac = Some(rbac(meta)?),
            Kind::Subscription if meta.path.is_ident("event") => self.event = Some(meta.value()?.parse()?),
            Kind::Subscription if meta.path.is_ident("consumer") => self.consumer = Some(meta.value()?.parse()?),
            _ => {
                return Err(meta.error(match kind {
                    Kind::Action => "the options of an action are `description`, `timeout_ms` and `rbac(resource, action)`",
                    Kind::Hook => "the option of a hook is `description`",
                    Kind::Subscription => "the options of a subscription are `event` and `consumer`",
                }));
            }
        }
        Ok(())
    }
}

fn rbac(meta: &ParseNestedMeta<'_>) -> Result<(LitStr, LitStr)> {
    let (mut resource, mut action) = (None, None);
    meta.parse_nested_meta(|part| {
        let target = match () {
            () if part.path.is_ident("resource") => &mut resource,
            () if part.path.is_ident("action") => &mut action,
            () => return Err(part.error("`rbac` takes `resource` and `action`")),
        };
        *target = Some(part.value()?.parse()?);
        Ok(())
    })?;
    match (resource, action) {
        (Some(resource), Some(action)) => Ok((resource, action)),
        _ => Err(meta.error("`rbac` needs both `resource` and `action`")),
    }
}

/// The name of the type beside a handler. If a function has no attribute, the compiler's error names the missing type, which
/// begins with "attribute_of".
pub(crate) fn attribute_of(function: &Ident) -> Ident {
    format_ident!("attribute_of_{}", function.unraw(), span = function.span())
}

pub(crate) fn expand(kind: Kind, options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(kind, options)?;
    let function: ItemFn = syn::parse2(function)?;
    check(kind, &function)?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let name = ident.unraw().to_string();
    let attribute = attribute_of(ident);
    let description = options.description.as_ref().map(LitStr::value).unwrap_or_else(|| documentation(&function.attrs));
    let full = function.sig.inputs.len() == kind.parameters().1;
    // The span is that of the function's name, so that the compiler shows a wrong signature there.
    let (constant, body) = match kind {
        Kind::Action => {
            let (call, describe) = match full {
                true => (quote!(action), quote!(describe_action)),
                false => (quote!(action_without_input), quote!(describe_action_without_input)),
            };
            let timeout_ms = optional(options.timeout_ms.as_ref());
            let rbac = optional(options.rbac.map(|(resource, action)| quote!((#resource, #action))).as_ref());
            let body = quote_spanned! {ident.span()=>
                fn action(
                    context: &::blockbase_sdk::Context,
                    input: &::std::primitive::str,
                ) -> ::std::result::Result<::std::string::String, ::blockbase_sdk::Error> {
                    ::blockbase_sdk::handlers::#call(#ident, context, input)
                }

                fn describe() -> ::blockbase_sdk::serde_json::Value {
                    ::blockbase_sdk::handlers::#describe(#ident, #name, #description, #timeout_ms, #rbac)
                }
            };
            (quote!(Action), body)
        }
        Kind::Hook => {
            let body = quote_spanned! {ident.span()=>
                fn hook(
                    context: &::blockbase_sdk::Context,
                    request: ::blockbase_sdk::hooks::Request,
                ) -> ::blockbase_sdk::handlers::HookAnswer {
                    ::blockbase_sdk::handlers::hook(#ident, context, request)
                }

                fn describe() -> ::blockbase_sdk::serde_json::Value {
                    ::blockbase_sdk::handlers::describe_hook(#name, #description)
                }
            };
            (quote!(Hook), body)
        }
        Kind::Subscription => {
            let call = match full {
                true => quote!(subscription),
                false => quote!(subscription_without_config),
            };
            let event = optional(options.event.as_ref());
            let consumer = optional(options.consumer.as_ref());
            let body = quote_spanned! {ident.span()=>
                fn subscription(
                    context: &::blockbase_sdk::Context,
                    event: ::blockbase_sdk::handlers::RawEvent,
                    config: &::std::primitive::str,
                ) -> ::std::result::Result<(), ::blockbase_sdk::Error> {
                    ::blockbase_sdk::handlers::#call(#ident, context, event, config)
                }

                fn describe() -> ::blockbase_sdk::serde_json::Value {
                    ::blockbase_sdk::handlers::describe_subscription(#name, #event, #consumer)
                }
            };
            (quote!(Subscription), body)
        }
    };
    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility enum #attribute {}

        impl ::blockbase_sdk::handlers::Handler for #attribute {
            const NAME: &'static ::std::primitive::str = #name;
            const KIND: ::blockbase_sdk::handlers::Kind = ::blockbase_sdk::handlers::Kind::#constant;

            #body
        }
    })
}

fn check(kind: Kind, function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let refuse = |span, reason: &str| Err(Error::new(span, format!("{reason}: {}", kind.signature())));
    if let Some(asyncness) = &signature.asyncness {
        return refuse(asyncness.span(), "handlers are plain functions, not async ones");
    }
    if !signature.generics.params.is_empty() {
        return refuse(signature.generics.span(), "handlers have no generic parameters");
    }
    if let Some(receiver @ FnArg::Receiver(_)) = signature.inputs.first() {
        return refuse(receiver.span(), "handlers are free functions");
    }
    let (fewest, most) = kind.parameters();
    if !(fewest..=most).contains(&signature.inputs.len()) {
        return refuse(signature.paren_token.span.join(), "the parameters do not fit");
    }
    if let syn::ReturnType::Default = signature.output {
        return refuse(signature.ident.span(), "the function returns nothing");
    }
    let name = signature.ident.unraw().to_string();
    let fits = name.len() <= NAME_CHARS_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    match fits {
        true => Ok(()),
        false => Err(Error::new(
            signature.ident.span(),
            format!("names of handlers are 1 to {NAME_CHARS_MAX} of `a-z`, `0-9` and `_`, and begin with a letter"),
        )),
    }
}

fn optional(tokens: Option<&impl quote::ToTokens>) -> TokenStream {
    match tokens {
        Some(tokens) => quote!(::std::option::Option::Some(#tokens)),
        None => quote!(::std::option::Option::None),
    }
}

/// The doc comment as running text. A line break becomes a space, and an empty line begins a paragraph.
fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    let mut paragraph_ended = false;
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(lines), .. }) = &pair.value else { continue };
        if !pair.path.is_ident("doc") {
            continue;
        }
        let lines = lines.value();
        for line in lines.split('\n').map(str::trim) {
            if line.is_empty() {
                paragraph_ended = true;
                continue;
            }
            if !text.is_empty() {
                text.push_str(if paragraph_ended { "\n\n" } else { " " });
            }
            paragraph_ended = false;
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: Kind, options: TokenStream, function: TokenStream) -> String {
        expand(kind, options, function).expect_err("a refusal").to_string()
    }

    #[test]
    fn what_does_not_fit_is_said_in_a_sentence() {
        let message = refusal(
            Kind::Action,
            quote!(),
            quote!(
                async fn greet(context: &Context) -> Result<(), Error> {}
            ),
        );
        assert!(message.contains("not async ones") && message.contains("fn(context: &Context, input: Input)"), "{message}");
        assert!(
            refusal(
                Kind::Action,
                quote!(),
                quote!(
                    fn greet() -> Result<(), Error> {}
                )
            )
            .contains("parameters")
        );
        assert!(
            refusal(
                Kind::Hook,
                quote!(),
                quote!(
                    fn ping(context: &Context, request: Request) {}
                )
            )
            .contains("returns nothing")
        );
        assert!(
            refusal(
                Kind::Hook,
                quote!(),
                quote!(
                    fn ping<T>(context: &Context, t: T) -> T {}
                )
            )
            .contains("generic")
        );
        assert!(
            refusal(
                Kind::Action,
                quote!(),
                quote!(
                    fn Greet(context: &Context) -> Result<(), Error> {}
                )
            )
            .contains("`a-z`")
        );
        let greet = quote!(
            fn greet(context: &Context) -> Result<(), Error> {}
        );
        assert!(refusal(Kind::Action, quote!(timeout = 5), greet.clone()).contains("`timeout_ms`"));
        assert!(refusal(Kind::Action, quote!(rbac(resource = "a:b")), greet).contains("both"));
        let handler = quote!(
            fn on_task(context: &Context, event: Event) -> Result<(), Error> {}
        );
        assert!(refusal(Kind::Subscription, quote!(consumer = "a:b"), handler).contains("needs the `event`"));
    }

    #[test]
    fn a_doc_comment_becomes_running_text() {
        let function: ItemFn = syn::parse_quote! {
            /// Greets
            /// somebody.
            ///
            /// Loudly, if asked.
            #[inline]
            fn greet() {}
        };
        assert_eq!(documentation(&function.attrs), "Greets somebody.\n\nLoudly, if asked.");
    }
}
