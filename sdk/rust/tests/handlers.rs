//! The types that the attributes make of functions, called as `block!` calls them.

use std::collections::HashMap;

use blockbase_sdk::handlers::{Handler, Kind, RawEvent};
use blockbase_sdk::hooks::{Request, Response};
use blockbase_sdk::{Context, Error, Event, JsonSchema, RecordChange, action, hook, schemars, subscription};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    /// What.
    item_name: String,
    #[serde(default)]
    amount: u32,
    tags: Option<Vec<Tag>>,
}

#[derive(Deserialize, JsonSchema)]
struct Tag {
    key: String,
}

/// Takes an order.
#[action(timeout_ms = 5000, rbac(resource = "shop:orders", action = "create"))]
fn order(context: &Context, input: Order) -> Result<Value, Error> {
    let tags: Vec<String> = input.tags.into_iter().flatten().map(|tag| tag.key).collect();
    Ok(json!({ "by": context.block, "item": input.item_name, "amount": input.amount, "tags": tags }))
}

#[action(description = "Answers with its input.")]
fn any(_context: &Context, input: Value) -> Result<Value, Error> {
    Ok(input)
}

#[action]
fn counts(_context: &Context, input: HashMap<String, u32>) -> Result<u32, Error> {
    Ok(input.values().sum())
}

#[action]
fn r#try(_context: &Context) -> Result<(), std::num::ParseIntError> {
    "x".parse::<u8>().map(|_| ())
}

#[hook]
fn silent(_context: &Context, _request: Request) -> Result<(), Error> {
    Ok(())
}

#[hook]
fn creates(_context: &Context, request: Request) -> Result<Response, Error> {
    Ok(Response::json(&request.query_value("name"))?.with_status(201))
}

#[hook]
fn perhaps(_context: &Context, request: Request) -> Result<Option<Response>, Error> {
    Ok((!request.body.is_empty()).then(|| Response::text("something")))
}

#[derive(Deserialize)]
struct Settings {
    limit: usize,
}

#[subscription(event = "data.order.#", consumer = "shop:index")]
fn index(_context: &Context, event: Event<RecordChange<HashMap<String, u32>>>, settings: Settings) -> Result<(), Error> {
    match event.payload.after {
        Some(record) if record.len() > settings.limit => Err(Error::failed("too many")),
        _ => Ok(()),
    }
}

#[subscription]
fn everything(_context: &Context, event: Event) -> Result<(), Error> {
    assert_eq!((event.topic.as_str(), event.attempt), ("data.order.created", 2));
    Ok(())
}

fn context() -> Context {
    Context { call_id: "1".to_owned(), actor: None, block: "shop".to_owned() }
}

fn request(body: &str) -> Request {
    Request {
        method: "POST".to_owned(),
        path: "/api/v1/hooks/shop/x".to_owned(),
        query: "name=a%20b".to_owned(),
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
        remote_address: "127.0.0.1".to_owned(),
    }
}

fn event(after: Value) -> RawEvent {
    RawEvent {
        id: "1".to_owned(),
        topic: "data.order.created".to_owned(),
        payload: json!({ "object": "order", "id": "2", "op": "created", "before": null, "after": after, "actor": null })
            .to_string(),
        occurred_at: "2026-11-21T08:25:13.138Z".to_owned(),
        attempt: 2,
    }
}

#[test]
fn an_action_is_described_by_its_comment_its_options_and_its_type() {
    assert_eq!(
        attribute_of_order::describe(),
        json!({
            "name": "order",
            "description": "Takes an order.",
            "input": {
                "type": "object",
                "properties": {
                    "itemName": { "type": "string", "description": "What." },
                    "amount": { "type": "integer", "format": "uint32", "minimum": 0, "default": 0 },
                    "tags": { "type": ["array", "null"], "items": { "$ref": "#/$defs/Tag" } },
                },
                "required": ["itemName"],
                "additionalProperties": false,
                "$defs": { "Tag": { "type": "object", "properties": { "key": { "type": "string" } }, "required": ["key"] } },
            },
            "timeoutMs": 5000,
            "rbac": { "resource": "shop:orders", "action": "create" },
        })
    );
    assert_eq!(
        attribute_of_any::describe(),
        json!({ "name": "any", "description": "Answers with its input.", "input": { "type": "object" } })
    );
    assert_eq!(attribute_of_counts::describe()["input"]["type"], "object");
    assert_eq!(
        attribute_of_try::describe(),
        json!({ "name": "try", "input": { "type": "object", "additionalProperties": false } })
    );
}

#[test]
fn an_action_reads_and_writes_json() {
    let text = attribute_of_order::action(&context(), r#"{ "itemName": "a", "tags": [{ "key": "b" }] }"#).expect("an order");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result, json!({ "by": "shop", "item": "a", "amount": 0, "tags": ["b"] }));
    assert_eq!(attribute_of_order::action(&context(), "{}").expect_err("a refusal").code, "invalid_request");
    assert_eq!(attribute_of_counts::action(&context(), r#"{ "a": 1, "b": 2 }"#).expect("a sum"), "3");
    let error = attribute_of_try::action(&context(), "{}").expect_err("a failure");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("action_failed", "invalid digit found in string"));
}

#[test]
fn a_hook_answers_with_a_response_or_with_nothing() {
    assert_eq!((attribute_of_silent::NAME, attribute_of_silent::KIND), ("silent", Kind::Hook));
    assert!(attribute_of_silent::hook(&context(), request("")).expect("an answer").is_none());
    let response = attribute_of_creates::hook(&context(), request("")).expect("an answer").expect("a response");
    assert_eq!((response.status, response.body.as_slice()), (201, &br#""a b""#[..]));
    assert_eq!(response.headers, [("content-type".to_owned(), b"application/json".to_vec())]);
    assert!(attribute_of_perhaps::hook(&context(), request("")).expect("an answer").is_none());
    assert!(attribute_of_perhaps::hook(&context(), request("x")).expect("an answer").is_some());
}

#[test]
fn a_handler_of_events_gets_typed_payloads_and_settings() {
    assert_eq!(attribute_of_index::describe(), json!({ "handler": "index", "event": "data.order.#", "consumer": "shop:index" }));
    assert_eq!(attribute_of_everything::describe(), json!({ "handler": "everything" }));
    let deliver = |after: Value, config: &str| attribute_of_index::subscription(&context(), event(after), config);
    deliver(json!({ "a": 1 }), r#"{ "limit": 1 }"#).expect("a delivery");
    deliver(Value::Null, r#"{ "limit": 1 }"#).expect("a delivery");
    assert_eq!(deliver(json!({ "a": 1 }), r#"{ "limit": 0 }"#).expect_err("a failure").message, "too many");
    assert!(deliver(json!({ "a": 1 }), "{}").expect_err("a failure").message.contains("config"));
    assert!(deliver(json!({ "a": "b" }), r#"{ "limit": 0 }"#).expect_err("a failure").message.contains("data.order.created"));
    attribute_of_everything::subscription(&context(), event(json!({})), "{}").expect("a delivery");
}
