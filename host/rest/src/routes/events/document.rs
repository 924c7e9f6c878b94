//! The stream, recent events, deliveries, subscriptions, webhooks.

use blockbase_app::schema::Resource;
use blockbase_app::{DELIVERY_STATUSES, DeliveryAnswer, DeliveryCounts, DeliveryWithHistory, SubscriptionAnswer, WebhookAnswer};
use serde_json::{Value, json};

use crate::openapi::answers::of;
use crate::openapi::components::{exact_object, instant, list_of, schema};
use crate::openapi::operation::{
    Operation, Paths, data_with_warnings, headers as response_headers, path_parameter, query_parameter,
};
use crate::routes::data::filters_document::paging_parameters;

pub(crate) fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let id = json!({ "type": "string", "format": "uuid" });
    json!({
        "SvcEvent": exact_object(json!({
            "id": id,
            "topic": text,
            "payload": { "type": "object" },
            "occurredAt": instant(),
        })),
    })
}

pub(crate) fn describe(paths: &mut Paths) {
    stream(paths);
    events(paths);
    subscriptions(paths);
    webhooks(paths);
}

fn stream(paths: &mut Paths) {
    let topics =
        "Topic patterns, separated by commas: `*` stands for one segment, `#` for any number. 50 at most; `data.#` by default.";
    let patterns = json!({ "type": "string", "examples": ["data.task.#"] });
    let since = "The id of an event: first comes what the outbox holds after it, then what happens, without a gap.";
    let frame = "A frame an event: `id:` its id, `data:` `{ id, topic, payload, occurredAt }`. A comment every 15 seconds.";
    let frames = json!({ "text/event-stream": { "schema": { "type": "string", "description": frame } } });
    let stream = Operation::new("events.stream", "events", "Follow events as they are committed")
        .describe("Server-Sent Events. Each event is one unnamed frame: `id` is the event's id, `data` its envelope as JSON. Events that the caller may not read are left out.")
        .parameter(query_parameter("topics", topics, patterns))
        .parameter(query_parameter("since", since, json!({ "type": "string", "format": "uuid" })))
        .problems(&[400, 404])
        .response(200, json!({ "description": "The stream.", "headers": response_headers(&[]), "content": frames }));
    paths.add("get", "/api/v1/events/stream", stream);
}

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Events, "events", verb, summary)
}

fn events(paths: &mut Paths) {
    let topic = "All topics that begin with it; a pattern where it holds `*` or `#`.";
    let limit = json!({ "type": "integer", "minimum": 1, "default": 50 });
    let recent = operation("list", "List recent events, newest first")
        .describe("Needs read on `events`, and leaves out what the caller may not read. Looks through 100,000 events: those of the object or the record where one is named, and those older than `before`. `limit` is 500 at most. 400 `answer_too_large` where they have more bytes than `SVC_MAX_ANSWER_BYTES`: ask with a smaller `limit`. 404 where the outbox does not hold the event of `before`.")
        .parameter(query_parameter("topic", topic, json!({ "type": "string" })))
        .parameter(query_parameter("object", "Only those of this object's records.", json!({ "type": "string" })))
        .parameter(query_parameter("record", "Only those of the record with this id.", json!({ "type": "string" })))
        .parameter(query_parameter("before", "Only those older than the event with this id; 404 where the outbox does not have it or you may not see it.", json!({ "type": "string" })))
        .parameter(query_parameter("limit", "How many.", limit))
        .problems(&[400, 404])
        .answers_data(200, "The events.", list_of(schema("SvcEvent")));
    paths.add("get", "/api/v1/events", recent);
    let one = operation("get", "Get an event")
        .describe(
            "Needs read on `events` and on what the event is about. 404 where the outbox does not hold it, or not any more.",
        )
        .parameter(path_parameter("id", "The event's id.", json!({ "type": "string" })))
        .problems(&[400, 404])
        .answers_data(200, "The event.", schema("SvcEvent"));
    paths.add("get", "/api/v1/events/{id}", one);

    let filters = || {
        let instant = || json!({ "type": "string", "format": "date-time" });
        [
            query_parameter("status", "Only those.", json!({ "type": "string", "enum": DELIVERY_STATUSES })),
            query_parameter("consumer", "Only those of one consumer group.", json!({ "type": "string" })),
            query_parameter("dead", "Only those that are dead, or are not.", json!({ "type": "boolean" })),
            query_parameter("eventId", "Only those of one event.", json!({ "type": "string" })),
            query_parameter("topic", topic, json!({ "type": "string" })),
            query_parameter("since", "Only those of events from this instant on.", instant()),
            query_parameter("until", "Only those of events before this instant.", instant()),
        ]
    };
    let deliveries = operation("listDeliveries", "List deliveries, those of the newest events first")
        .describe("Needs read on `events`, and leaves out entries of events that the caller may not read.")
        .parameters(filters())
        .parameters(paging_parameters())
        .problems(&[400])
        .answers_page("A page of the ledger.", of::<DeliveryAnswer>());
    paths.add("get", "/api/v1/events/deliveries", deliveries);
    let one = operation("getDelivery", "Get a delivery with its attempts")
        .describe("Needs read on `events` and on what the event is about.")
        .parameter(path_parameter("eventId", "The event's id.", json!({ "type": "string" })))
        .parameter(path_parameter("consumer", "The consumer group.", json!({ "type": "string" })))
        .problems(&[400, 404])
        .answers_data(200, "The delivery.", of::<DeliveryWithHistory>());
    paths.add("get", "/api/v1/events/deliveries/{eventId}/{consumer}", one);
    let counts = operation("countDeliveries", "Count deliveries by consumer group and state")
        .describe("Needs read on `events`, and leaves out entries of events that the caller may not read. Groups without entries are left out; 1,000 groups at most, by their names.")
        .parameters(filters())
        .problems(&[400])
        .answers_data(200, "The groups, by their names.", list_of(of::<DeliveryCounts>()));
    paths.add("get", "/api/v1/events/deliveries/counts", counts);
    let one = json!({
        "type": "object",
        "title": "One delivery",
        "properties": { "eventId": { "type": "string" }, "consumer": { "type": "string" } },
        "required": ["eventId", "consumer"],
        "additionalProperties": false,
    });
    let maybe = |mut schema: Value| {
        schema["type"] = json!(["string", "null"]);
        schema
    };
    let all = json!({
        "type": "object",
        "title": "All dead deliveries that match",
        "properties": {
            "dead": { "type": "boolean", "const": true },
            "consumer": maybe(json!({ "description": "Only those of one consumer group." })),
            "topic": maybe(json!({ "description": topic })),
            "since": maybe(json!({ "format": "date-time", "description": "Only those of events from this instant on." })),
            "until": maybe(json!({ "format": "date-time", "description": "Only those of events before this instant." })),
        },
        "required": ["dead"],
        "additionalProperties": false,
    });
    let count = exact_object(json!({ "count": { "type": "integer", "minimum": 0, "maximum": 1_000_000 } }));
    let retry = operation("retryDelivery", "Try deliveries again that failed")
        .describe("They are due at once and have all their attempts again. Needs read and update on `events`, read on the event, and the rights that the consumer group carries. One delivery that did not fail, or whose group is disabled or suspended, is 409. With `dead` all dead ones that match, up to 1,000,000: those of events that the caller may not read are passed over, and so are groups that are disabled, suspended or carry rights that the caller does not hold, unless `consumer` names the group. They are delivered in order, at the ordinary pace.")
        .json_body(json!({ "oneOf": [one, all] }))
        .problems(&[404, 409])
        .answers_data(200, "The one delivery.", of::<DeliveryAnswer>())
        .answers_data(202, "How many dead deliveries are due again.", count);
    paths.add("post", "/api/v1/events/deliveries/retry", retry);
}

fn subscriptions(paths: &mut Paths) {
    let base = "/api/v1/events/subscriptions";
    let list = operation("listSubscriptions", "List subscriptions")
        .describe("Those made here and those that blocks declare; webhooks have a list of their own.")
        .answers_data(200, "The subscriptions.", list_of(of::<SubscriptionAnswer>()));
    paths.add("get", base, list);
    let body = json!({
        "type": "object",
        "properties": {
            "event": { "type": "string", "description": "Topic pattern.", "examples": ["data.order.#"] },
            "consumer": { "type": "string", "pattern": "^[a-z][a-z0-9_:.\\-]*$", "maxLength": 100 },
            "handler": { "type": "string", "enum": ["log_event", "persist_event"] },
            "config": { "type": ["object", "null"], "description": "Of `persist_event`: `{ object, map: { <column>: <token> } }`." },
            "perInstance": { "type": ["boolean", "null"] },
        },
        "required": ["event", "consumer", "handler"],
        "additionalProperties": false,
    });
    let create = operation("createSubscription", "Let a built-in handler have events")
        .describe("Needs create on `events`, read on what it subscribes to and, for `persist_event`, create on its object.")
        .json_body(body)
        .problems(&[409])
        .answers(201, "The new subscription.", data_with_warnings(of::<SubscriptionAnswer>()));
    paths.add("post", base, create);
    let consumer = || path_parameter("consumer", "The consumer group.", json!({ "type": "string" }));
    let adopt = operation("adoptSubscription", "Become the maker of a subscription")
        .describe("It has the caller's rights from then on, and is suspended no more. Needs update on `events` and the rights that it carries: else 403, and nothing changes. One that a block declared comes with the block: 409.")
        .parameter(consumer())
        .problems(&[400, 404, 409])
        .answers_data(200, "The subscription as it is now.", of::<SubscriptionAnswer>());
    paths.add("post", "/api/v1/events/subscriptions/{consumer}/adopt", adopt);
    let delete = operation("deleteSubscription", "Delete a subscription")
        .describe("What it still had to get is dropped. Needs delete on `events` and the rights that it carries. One that a block declared goes with the block: 409.")
        .parameter(consumer())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The subscription is gone.");
    paths.add("delete", "/api/v1/events/subscriptions/{consumer}", delete);
}

fn webhooks(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::Webhooks, "webhooks", verb, summary);
    let webhook = || path_parameter("id", "The webhook's id.", json!({ "type": "string" }));
    let base = "/api/v1/webhooks";
    paths.add(
        "get",
        base,
        operation("list", "List webhooks, newest first").answers_data(200, "The webhooks.", list_of(of::<WebhookAnswer>())),
    );
    let topics =
        json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 50, "examples": [["data.#"]] });
    let headers = json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" } });
    let body = json!({
        "type": "object",
        "properties": {
            "name": { "type": ["string", "null"], "minLength": 1, "maxLength": 200 },
            "url": { "type": "string", "format": "uri", "examples": ["https://example.com/hook"] },
            "topics": topics,
            "headers": headers,
            "enabled": { "type": ["boolean", "null"] },
        },
        "required": ["url", "topics"],
        "additionalProperties": false,
    });
    let secret = json!({ "type": "string", "pattern": "^whsec_", "description": "Shown this once." });
    let made = json!({
        "type": "object",
        "properties": { "data": of::<WebhookAnswer>(), "secret": secret, "warnings": schema("SvcWarnings") },
        "required": ["data", "secret"],
        "additionalProperties": false,
    });
    let create = operation("create", "Make a webhook")
        .describe("Needs create on `webhooks` and read on what it subscribes to. Each request carries `x-svc-signature: t=<unix seconds>,v1=<hex>`, the HMAC-SHA256 of `<t>.<body>` under the secret.")
        .json_body(body)
        .problems(&[409])
        .answers(201, "The new webhook and its secret.", made);
    paths.add("post", base, create);
    let base = "/api/v1/webhooks/{id}";
    let get = operation("get", "Get a webhook").parameter(webhook()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The webhook.", of::<WebhookAnswer>()));
    let changes = json!({
        "type": "object",
        "properties": {
            "name": { "type": ["string", "null"], "minLength": 1, "maxLength": 200 },
            "url": { "type": "string", "format": "uri" },
            "topics": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 50 },
            "headers": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "All of them; `***` keeps the value that is stored. A change of `url` drops the stored values.",
            },
            "enabled": { "type": "boolean" },
        },
        "additionalProperties": false,
    });
    let update = operation("update", "Change a webhook")
        .describe("What happened while it was disabled is not sent later. Needs update on `webhooks`, and read on what it sends and will send. Whoever changes `url` or `topics` becomes its maker.")
        .parameter(webhook())
        .json_body(changes)
        .problems(&[404, 409])
        .answers(200, "The webhook as it is now.", data_with_warnings(of::<WebhookAnswer>()));
    paths.add("patch", base, update);
    let adopt = operation("adopt", "Become the maker of a webhook")
        .describe("It has the caller's rights from then on, and is suspended no more. Needs update on `webhooks` and read on what it sends: else 403, and nothing changes. One that a block declared comes with the block: 409.")
        .parameter(webhook())
        .problems(&[400, 404, 409])
        .answers_data(200, "The webhook as it is now.", of::<WebhookAnswer>());
    paths.add("post", "/api/v1/webhooks/{id}/adopt", adopt);
    let delete = operation("delete", "Delete a webhook")
        .describe("What it still had to send is dropped. Needs delete on `webhooks` and read on what it sends. One that a block declared goes with the block: 409.")
        .parameter(webhook())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The webhook is gone.");
    paths.add("delete", base, delete);
    let sent = json!({
        "type": "object",
        "properties": { "eventId": { "type": "string", "format": "uuid" } },
        "required": ["eventId"],
        "additionalProperties": false,
    });
    let test = operation("test", "Send a test event to a webhook")
        .describe("An event `webhook.test.<id>` goes through the whole pipeline. A disabled or suspended webhook is 409. Needs update on `webhooks` and read on what it sends.")
        .parameter(webhook())
        .problems(&[400, 404, 409])
        .answers_data(202, "The event is on its way.", sent);
    paths.add("post", "/api/v1/webhooks/{id}/test", test);
    let rotated = json!({
        "type": "object",
        "properties": { "secret": secret },
        "required": ["secret"],
        "additionalProperties": false,
    });
    let rotate = operation("rotateSecret", "Give a webhook a new secret")
        .describe(
            "The one before it signs as well for 24 hours: the signature header has two `v1` then. Needs update on `webhooks` and read on what it sends.",
        )
        .parameter(webhook())
        .problems(&[400, 404])
        .answers(200, "The new secret.", rotated);
    paths.add("post", "/api/v1/webhooks/{id}/rotate-secret", rotate);
}
