//! The code to which the attributes and `block!` expand. It is not for authors, because it changes with the macros.
#![allow(missing_docs)]

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::bindings::blockbase::block::types;
use crate::bindings::exports::blockbase::block::{hooks as wit, registry, subscriptions};
use crate::hooks::{Answer, Request};
use crate::{Context, Error, Event, JsonSchema};

pub use subscriptions::Event as RawEvent;

pub type HookAnswer = Result<Option<wit::Response>, Error>;

/// A handler's kind, and the function that makes its entry in the manifest.
pub type Described = (Kind, fn() -> Value);

/// The kind of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Action,
    Hook,
    Subscription,
}

/// A function with an attribute. Only the call of the function's kind is implemented, not the two others.
pub trait Handler {
    const NAME: &'static str;
    const KIND: Kind;

    /// The handler's entry in the manifest, as far as the code determines it.
    fn describe() -> Value;

    fn action(_context: &Context, _input: &str) -> Result<String, Error> {
        Err(Error::not_found("action"))
    }

    fn hook(_context: &Context, _request: Request) -> HookAnswer {
        Err(Error::not_found("hook"))
    }

    fn subscription(_context: &Context, _event: RawEvent, _config: &str) -> Result<(), Error> {
        Err(Error::not_found("subscription handler"))
    }
}

pub fn registered<H: Handler>() -> registry::Handler {
    let kind = match H::KIND {
        Kind::Action => "action",
        Kind::Hook => "hook",
        Kind::Subscription => "subscription",
    };
    registry::Handler { name: H::NAME.to_owned(), kind: kind.to_owned() }
}

pub fn answer<T>(result: Result<T, Error>) -> Result<T, types::Error> {
    result.map_err(types::Error::from)
}

pub fn unknown<T>(what: &str, name: &str) -> Result<T, types::Error> {
    Err(Error::not_found(&format!("{what} as `{name}`")).into())
}

pub fn action<I, O, E>(handler: fn(&Context, I) -> Result<O, E>, context: &Context, input: &str) -> Result<String, Error>
where
    I: DeserializeOwned,
    O: Serialize,
    E: Into<Error>,
{
    let input = serde_json::from_str(input).map_err(|error| Error::invalid_request(error.to_string()))?;
    Ok(serde_json::to_string(&handler(context, input).map_err(E::into)?)?)
}

pub fn action_without_input<O, E>(handler: fn(&Context) -> Result<O, E>, context: &Context, _input: &str) -> Result<String, Error>
where
    O: Serialize,
    E: Into<Error>,
{
    Ok(serde_json::to_string(&handler(context).map_err(E::into)?)?)
}

pub fn hook<A, E>(handler: fn(&Context, Request) -> Result<A, E>, context: &Context, request: Request) -> HookAnswer
where
    A: Answer,
    E: Into<Error>,
{
    let answer = handler(context, request).map_err(E::into)?;
    Ok(answer.into_response().map(wit::Response::from))
}

pub fn subscription<P, C, E>(
    handler: fn(&Context, Event<P>, C) -> Result<(), E>,
    context: &Context,
    event: RawEvent,
    config: &str,
) -> Result<(), Error>
where
    P: DeserializeOwned,
    C: DeserializeOwned,
    E: Into<Error>,
{
    let config = serde_json::from_str(config)
        .map_err(|error| Error::failed(format!("The subscription's config is not of the expected form: {error}.")))?;
    handler(context, typed(event)?, config).map_err(E::into)
}

pub fn subscription_without_config<P, E>(
    handler: fn(&Context, Event<P>) -> Result<(), E>,
    context: &Context,
    event: RawEvent,
    _config: &str,
) -> Result<(), Error>
where
    P: DeserializeOwned,
    E: Into<Error>,
{
    handler(context, typed(event)?).map_err(E::into)
}

fn typed<P: DeserializeOwned>(event: RawEvent) -> Result<Event<P>, Error> {
    let RawEvent { id, topic, payload, occurred_at, attempt } = event;
    let payload = serde_json::from_str(&payload)
        .map_err(|error| Error::failed(format!("The payload of {topic} is not of the expected form: {error}.")))?;
    Ok(Event { id, topic, payload, occurred_at, attempt })
}

pub fn describe_action<I: JsonSchema, O, E>(
    _handler: fn(&Context, I) -> Result<O, E>,
    name: &str,
    description: &str,
    timeout_ms: Option<u64>,
    rbac: Option<(&str, &str)>,
) -> Value {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    // The manifest has only one dialect.
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<I>().to_value();
    described_action(name, description, timeout_ms, rbac, schema)
}

pub fn describe_action_without_input<O, E>(
    _handler: fn(&Context) -> Result<O, E>,
    name: &str,
    description: &str,
    timeout_ms: Option<u64>,
    rbac: Option<(&str, &str)>,
) -> Value {
    described_action(name, description, timeout_ms, rbac, json!({ "type": "object", "additionalProperties": false }))
}

fn described_action(name: &str, description: &str, timeout_ms: Option<u64>, rbac: Option<(&str, &str)>, schema: Value) -> Value {
    let mut entry = described("name", name, description);
    entry.insert("input".to_owned(), object_schema(schema));
    if let Some(timeout_ms) = timeout_ms {
        entry.insert("timeoutMs".to_owned(), timeout_ms.into());
    }
    if let Some((resource, action)) = rbac {
        entry.insert("rbac".to_owned(), json!({ "resource": resource, "action": action }));
    }
    Value::Object(entry)
}

/// The schema of a value that is always an object. If the input can be any value, its schema has no type. The Rust name of the
/// type is removed, because it has no meaning for callers.
fn object_schema(schema: Value) -> Value {
    let mut members = match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    members.remove("title");
    members.entry("type").or_insert_with(|| "object".into());
    Value::Object(members)
}

pub fn describe_hook(name: &str, description: &str) -> Value {
    Value::Object(described("name", name, description))
}

pub fn describe_subscription(name: &str, event: Option<&str>, consumer: Option<&str>) -> Value {
    let mut entry = described("handler", name, "");
    for (key, value) in [("event", event), ("consumer", consumer)] {
        if let Some(value) = value {
            entry.insert(key.to_owned(), value.into());
        }
    }
    Value::Object(entry)
}

fn described(key: &str, name: &str, description: &str) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert(key.to_owned(), name.into());
    if !description.is_empty() {
        entry.insert("description".to_owned(), description.into());
    }
    entry
}

/// The component's description of itself, in the form of `block.json`.
pub fn manifest(handlers: &[Described]) -> String {
    let of = |kind: Kind| handlers.iter().filter(|entry| entry.0 == kind).map(|entry| (entry.1)()).collect::<Vec<Value>>();
    json!({ "actions": of(Kind::Action), "hooks": of(Kind::Hook), "subscriptions": of(Kind::Subscription) }).to_string()
}
