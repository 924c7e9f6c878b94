//! The stream, recent events, deliveries, subscriptions, webhooks.

use blockbase_app::schema::Resource;
use blockbase_app::{
    DELIVERY_STATUSES, DeliveryAnswer, DeliveryCounts, DeliveryWithHistory, EventText, PATTERNS_MAX, StreamTicketAnswer,
    SubscriptionAnswer, TOPICS_DEFAULT, WebhookAnswer,
};
use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{instant, list_of};
use crate::openapi::operation::{
    Caller, Operation, Paths, data_with_warnings, header_parameter, headers as response_headers, path_parameter, query_parameter,
};
use crate::routes::data::filters_document::paging_parameters;
use crate::routes::events::deliveries::{
    EVENTS_DEFAULT, EVENTS_MAX, RetriedAnswer, RetryDead, RetryOne, SubscriptionBody, TOPIC,
};
use crate::routes::events::webhooks;

pub(crate) fn describe(paths: &mut Paths) {
    stream(paths);
    events(paths);
    subscriptions(paths);
    webhooks(paths);
}

fn stream(paths: &mut Paths) {
    let topics = format!(
        "Topic patterns, separated by commas. `*` stands for one segment, and `#` for any number of segments. At most \
        {PATTERNS_MAX}. The default is `{TOPICS_DEFAULT}`."
    );
    let patterns = json!({ "type": "string", "examples": ["data.task.#"] });
    let since = "The id of an event. The stream first sends the later events that are still in the outbox, then new events, \
        without a gap. It can also be the id of a frame of the type `position`.";
    let resume = "Whether the stream continues after the event in `Last-Event-ID`, so that an `EventSource` that connects again \
        misses no event. If the stream cannot open now, an `EventSource` (`Accept: text/event-stream`) gets 200 in place of 429 and \
        503, and the response ends with a `retry:`.";
    let last_event_id = "The id of the last frame that the client got. It counts only with `resume=true`. Then it replaces \
        `since`.";
    let frame = "One frame for each event: `id:` has its id, `data:` has `{ id, topic, payload, occurredAt }`. With \
        `resume=true`, a stream that begins now first sends a frame of the type `position`, whose `id:` is the place where it \
        begins. Later frames of this type have newer places. A comment comes every 15 seconds.";
    let frames = json!({ "text/event-stream": { "schema": { "type": "string", "description": frame } } });
    let stream = Operation::new("events.stream", "events", "Follow events as they are committed")
        .describe(
            "Server-Sent Events. Each event is one unnamed frame: `id` is the event's id, and `data` is its envelope as \
            JSON. Events that the caller may not read are left out. The response is 404 if the outbox no longer has the event \
            after which the stream should continue, or events after it.",
        )
        .parameter(query_parameter("topics", &topics, patterns))
        .parameter(query_parameter("since", since, json!({ "type": "string" })))
        .parameter(query_parameter("resume", resume, json!({ "type": "boolean", "default": false })))
        .parameter(header_parameter("Last-Event-ID", last_event_id, json!({ "type": "string" })))
        .called_by(Caller::KnownOrTicket)
        .problems(&[400, 404])
        .response(200, json!({ "description": "The stream.", "headers": response_headers(&[]), "content": frames }));
    paths.add("get", "/api/v1/events/stream", stream);
    let ticket = Operation::new("events.ticket", "events", "Make a ticket that opens an event stream")
        .describe(
            "For clients that cannot send a header, such as an `EventSource` of another origin. The ticket opens one stream within \
            60 seconds, as the value of `ticket` in the query. The stream has the rights that the caller has at each event, and \
            ends with the session or the API key. The response is 429 if the caller has too many unused tickets \
            (`SVC_MAX_STREAMS_PER_PRINCIPAL`).",
        )
        .answers_data(201, "The ticket.", of::<StreamTicketAnswer>());
    paths.add("post", "/api/v1/events/ticket", ticket);
}

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Events, "events", verb, summary)
}

fn events(paths: &mut Paths) {
    let limit = json!({ "type": "integer", "minimum": 1, "default": EVENTS_DEFAULT });
    let recent = operation("list", "List recent events, newest first")
        .describe(format!(
            "Needs read on `events`. Events that the caller may not read are left out. Searches at most 100,000 events. With \
            `object` or `record` these are only events of that object or record, and with `before` only older events. `limit` is \
            at most {EVENTS_MAX}. The response is 400 `answer_too_large` if the events have more bytes than \
            `SVC_MAX_ANSWER_BYTES`. Then ask again with a smaller `limit`. The response is 404 if the event of `before` is not \
            in the outbox.",
        ))
        .parameter(query_parameter("topic", TOPIC, json!({ "type": "string" })))
        .parameter(query_parameter("object", "Only events of this object's records.", json!({ "type": "string" })))
        .parameter(query_parameter("record", "Only events of the record with this id.", json!({ "type": "string" })))
        .parameter(query_parameter(
            "before",
            "Only events older than the event with this id. The response is 404 if that event is not in the outbox, or if you \
            may not see it.",
            json!({ "type": "string" }),
        ))
        .parameter(query_parameter("limit", "The maximum number of events.", limit))
        .problems(&[400, 404])
        .answers_data(200, "The events.", list_of(of::<EventText<'_>>()));
    paths.add("get", "/api/v1/events", recent);
    let one = operation("get", "Get an event")
        .describe(
            "Needs read on `events` and on the resource of the event. The response is 404 if the event is not, or no longer, in \
            the outbox.",
        )
        .parameter(path_parameter("id", "The event's id.", json!({ "type": "string" })))
        .problems(&[400, 404])
        .answers_data(200, "The event.", of::<EventText<'_>>());
    paths.add("get", "/api/v1/events/{id}", one);

    let filters = || {
        [
            query_parameter(
                "status",
                "Only deliveries with this status.",
                json!({ "type": "string", "enum": DELIVERY_STATUSES }),
            ),
            query_parameter("consumer", "Only deliveries of this consumer group.", json!({ "type": "string" })),
            query_parameter("dead", "True shows only dead deliveries, false only the others.", json!({ "type": "boolean" })),
            query_parameter("eventId", "Only deliveries of this event.", json!({ "type": "string" })),
            query_parameter("topic", TOPIC, json!({ "type": "string" })),
            query_parameter("since", "Only deliveries of events from this instant on.", instant()),
            query_parameter("until", "Only deliveries of events before this instant.", instant()),
        ]
    };
    let deliveries = operation("listDeliveries", "List deliveries, those of the newest events first")
        .describe("Needs read on `events`. Entries of events that the caller may not read are left out.")
        .parameters(filters())
        .parameters(paging_parameters())
        .problems(&[400])
        .answers_page("A page of the ledger.", of::<DeliveryAnswer>());
    paths.add("get", "/api/v1/events/deliveries", deliveries);
    let one = operation("getDelivery", "Get a delivery with its attempts")
        .describe("Needs read on `events` and on the resource of the event.")
        .parameter(path_parameter("eventId", "The event's id.", json!({ "type": "string" })))
        .parameter(path_parameter("consumer", "The consumer group.", json!({ "type": "string" })))
        .problems(&[400, 404])
        .answers_data(200, "The delivery.", of::<DeliveryWithHistory>());
    paths.add("get", "/api/v1/events/deliveries/{eventId}/{consumer}", one);
    let counts = operation("countDeliveries", "Count deliveries by consumer group and state")
        .describe(
            "Needs read on `events`. Entries of events that the caller may not read are left out, and so are groups \
            without entries. The response has at most 1,000 groups, ordered by name.",
        )
        .parameters(filters())
        .problems(&[400])
        .answers_data(200, "The groups, ordered by name.", list_of(of::<DeliveryCounts>()));
    paths.add("get", "/api/v1/events/deliveries/counts", counts);
    let retry = operation("retryDelivery", "Try deliveries again that failed")
        .describe(
            "The deliveries are due at once and have all their attempts again. Needs read and update on `events`, the right to \
            read the event, and the rights that the consumer group needs. A retry of a single delivery gets 409 if the delivery \
            did not fail, or if its group is disabled or suspended. `dead` retries all dead deliveries that match, up to \
            1,000,000. Deliveries of events that the caller may not read are skipped. A group is skipped too if it is disabled \
            or suspended, or if it needs rights that the caller does not have, unless `consumer` names the group. The deliveries \
            run in order, at the ordinary pace.",
        )
        .json_body(json!({ "oneOf": [body_of::<RetryOne>(), body_of::<RetryDead>()] }))
        .problems(&[404, 409])
        .answers_data(200, "The one delivery.", of::<DeliveryAnswer>())
        .answers_data(202, "The number of dead deliveries that are due again.", of::<RetriedAnswer>());
    paths.add("post", "/api/v1/events/deliveries/retry", retry);
}

fn subscriptions(paths: &mut Paths) {
    let base = "/api/v1/events/subscriptions";
    let list = operation("listSubscriptions", "List subscriptions")
        .describe("Lists the subscriptions that were made here and those that blocks declare. Webhooks have their own list.")
        .answers_data(200, "The subscriptions.", list_of(of::<SubscriptionAnswer>()));
    paths.add("get", base, list);
    let create = operation("createSubscription", "Subscribe a built-in handler to events")
        .describe(
            "Needs create on `events` and read on everything that it subscribes to. `persist_event` also needs create on \
            its object.",
        )
        .json_body(body_of::<SubscriptionBody>())
        .problems(&[409])
        .answers(201, "The new subscription.", data_with_warnings(of::<SubscriptionAnswer>()));
    paths.add("post", base, create);
    let consumer = || path_parameter("consumer", "The consumer group.", json!({ "type": "string" }));
    let adopt = operation("adoptSubscription", "Become the maker of a subscription")
        .describe(
            "From then on the subscription has the caller's rights, and it is no longer suspended. Needs update on `events` and \
            the rights that the subscription needs. Otherwise the response is 403, and nothing changes. A subscription that a \
            block declared gets 409: adopt the block instead.",
        )
        .parameter(consumer())
        .problems(&[400, 404, 409])
        .answers_data(200, "The subscription as it is now.", of::<SubscriptionAnswer>());
    paths.add("post", "/api/v1/events/subscriptions/{consumer}/adopt", adopt);
    let delete = operation("deleteSubscription", "Delete a subscription")
        .describe(
            "Its pending deliveries are dropped. Needs delete on `events` and the rights that the subscription needs. A \
            subscription that a block declared gets 409: it is deleted together with the block.",
        )
        .parameter(consumer())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The subscription is deleted.");
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
    let create = operation("create", "Make a webhook")
        .describe(
            "Needs create on `webhooks` and read on everything that it subscribes to. Each request has the header \
            `x-svc-signature: t=<unix seconds>,v1=<hex>`. `v1` is the HMAC-SHA256 of `<t>.<body>` under the secret.",
        )
        .json_body(body_of::<webhooks::NewBody>())
        .problems(&[409])
        .answers(201, "The new webhook and its secret.", of::<webhooks::WebhookMadeAnswer>());
    paths.add("post", base, create);
    let base = "/api/v1/webhooks/{id}";
    let get = operation("get", "Get a webhook").parameter(webhook()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The webhook.", of::<WebhookAnswer>()));
    let update = operation("update", "Change a webhook")
        .describe(
            "Events that happened while the webhook was disabled are not sent later. Needs update on `webhooks`, and read \
            on everything that it sends before and after the change. A caller who changes `url` or `topics` becomes its maker.",
        )
        .parameter(webhook())
        .json_body(body_of::<webhooks::ChangesBody>())
        .problems(&[404, 409])
        .answers(200, "The webhook as it is now.", data_with_warnings(of::<WebhookAnswer>()));
    paths.add("patch", base, update);
    let adopt = operation("adopt", "Become the maker of a webhook")
        .describe(
            "From then on the webhook has the caller's rights, and it is no longer suspended. Needs update on `webhooks` \
            and read on everything that it sends. Otherwise the response is 403, and nothing changes. A webhook that a block \
            declared gets 409: adopt the block instead.",
        )
        .parameter(webhook())
        .problems(&[400, 404, 409])
        .answers_data(200, "The webhook as it is now.", of::<WebhookAnswer>());
    paths.add("post", "/api/v1/webhooks/{id}/adopt", adopt);
    let delete = operation("delete", "Delete a webhook")
        .describe(
            "Its pending deliveries are dropped. Needs delete on `webhooks` and read on everything that it sends. A webhook that \
            a block declared gets 409: it is deleted together with the block.",
        )
        .parameter(webhook())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The webhook is deleted.");
    paths.add("delete", base, delete);
    let test = operation("test", "Send a test event to a webhook")
        .describe(
            "An event `webhook.test.<id>` is delivered like any other event. The response is 409 if the webhook is disabled or \
            suspended. Needs update on `webhooks` and read on everything that it sends.",
        )
        .parameter(webhook())
        .problems(&[400, 404, 409])
        .answers_data(202, "The event is on its way.", of::<webhooks::SentAnswer>());
    paths.add("post", "/api/v1/webhooks/{id}/test", test);
    let rotate = operation("rotateSecret", "Give a webhook a new secret")
        .describe(
            "The previous secret also signs for 24 hours. During that time the signature header has two `v1` values. Needs \
                update on `webhooks` and read on everything that it sends.",
        )
        .parameter(webhook())
        .problems(&[400, 404])
        .answers(200, "The new secret.", of::<webhooks::SecretAnswer>());
    paths.add("post", "/api/v1/webhooks/{id}/rotate-secret", rotate);
}
