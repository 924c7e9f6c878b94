//! `/api/v1/events` without the stream: recent events, deliveries, subscriptions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::{Error, Resource};
use blockbase_app::{
    BUILT_IN_HANDLERS, CONSUMER_BYTES_MAX, DELIVERY_STATUSES, DeliveryAnswer, DeliveryCounts, DeliveryWithHistory, EventText,
    EventsPagination, EventsRequest, LedgerFilter, LedgerPagination, NewSubscription, RESETS_MAX, SubscriptionAnswer,
    TopicFilter,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{self, exact_object, list_of};
use crate::openapi::operation::{Operation, Paths, data_of, data_with_warnings, path_parameter, query_parameter};
use crate::request::admission::{Create, Delete, Events, Granted, Read, Update};
use crate::request::body::JsonBody;
use crate::request::extract::{PathParts, QueryPairs, instant, without_nul};
use crate::routes::data::filters_document::paging_parameters;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/events", events)
        .get("/api/v1/events/{id}", event)
        .get("/api/v1/events/deliveries", list)
        .get("/api/v1/events/deliveries/counts", counts)
        .get("/api/v1/events/deliveries/{eventId}/{consumer}", one)
        .post("/api/v1/events/deliveries/retry", retry)
        .get("/api/v1/events/subscriptions", subscriptions)
        .post("/api/v1/events/subscriptions", subscribe)
        .delete("/api/v1/events/subscriptions/{consumer}", unsubscribe)
        .post("/api/v1/events/subscriptions/{consumer}/adopt", adopt)
}

const EVENTS_DEFAULT: usize = 50;
const EVENTS_MAX: usize = 500;

/// The description of `topic`, which is a parameter and a member of a body.
const TOPIC: &str = "All topics that begin with this text. If it contains `*` or `#`, it is a pattern.";

/// The members of the bodies [`RetryOne`] and [`RetryDead`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RetryBody {
    event_id: Option<String>,
    consumer: Option<String>,
    dead: Option<bool>,
    topic: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

/// The retry that a body asks for.
enum Retry {
    One(RetryOne),
    Dead(RetryDead),
}

#[derive(JsonSchema)]
#[schemars(title = "One delivery", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RetryOne {
    event_id: String,
    consumer: String,
}

#[derive(JsonSchema)]
#[schemars(title = "All dead deliveries that match", deny_unknown_fields)]
pub(crate) struct RetryDead {
    #[schemars(extend("const" = true))]
    dead: bool,
    /// Only deliveries of this consumer group.
    consumer: Option<String>,
    #[schemars(description = TOPIC)]
    topic: Option<String>,
    /// Only deliveries of events from this instant on.
    #[schemars(extend("format" = "date-time"))]
    since: Option<String>,
    /// Only deliveries of events before this instant.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct RetriedAnswer {
    #[schemars(range(max = RESETS_MAX))]
    count: u64,
}

impl RetryBody {
    /// `None` if the members contradict each other.
    fn asked(self) -> Option<Retry> {
        let RetryBody { event_id, consumer, dead, topic, since, until } = self;
        let narrows = topic.is_some() || since.is_some() || until.is_some();
        match (event_id, consumer, dead) {
            (Some(event_id), Some(consumer), None) if !narrows => Some(Retry::One(RetryOne { event_id, consumer })),
            (None, consumer, Some(true)) => Some(Retry::Dead(RetryDead { dead: true, consumer, topic, since, until })),
            _ => None,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SubscriptionBody {
    /// Topic pattern.
    #[schemars(extend("examples" = ["data.order.#"]))]
    event: String,
    #[schemars(length(max = CONSUMER_BYTES_MAX), extend("pattern" = "^[a-z][a-z0-9_:.\\-]*$"))]
    consumer: String,
    #[schemars(extend("enum" = BUILT_IN_HANDLERS))]
    handler: String,
    /// For `persist_event`: `{ object, map: { <column>: <token> } }`.
    config: Option<Map<String, Value>>,
    per_instance: Option<bool>,
}

/// `GET /api/v1/events`.
pub(crate) async fn events(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["topic", "object", "record", "before", "limit"])?;
    let request = EventsRequest {
        topic: query.given("topic")?.as_deref().map(TopicFilter::parse).transpose()?,
        object: query.given("object")?,
        record: query.given("record")?,
        before: query.given("before")?,
    };
    let limit =
        match query.get("limit") {
            None => EVENTS_DEFAULT,
            Some(text) => text.parse::<usize>().ok().filter(|limit| *limit > 0).ok_or_else(|| {
                Error::invalid_request(format!("`limit` must be a whole number of at least 1; it is {text:?}."))
            })?,
        };
    let events = state.app.recent_events(&caller, request, limit.min(EVENTS_MAX)).await?;
    Ok(render::json_bytes(StatusCode::OK, events.into_bytes()))
}

/// `GET /api/v1/events/{id}`.
pub(crate) async fn event(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    let event = state.app.event(&caller, &id).await?;
    let event = event.ok_or_else(|| Error::not_found("event"))?;
    Ok(render::data_bytes(StatusCode::OK, event.as_bytes()))
}

/// `GET /api/v1/events/deliveries`.
pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let paging = query.page_beside(&[&LEDGER_PARAMETERS[..], &["before"]].concat())?;
    let (filter, before) = (ledger_filter(&query)?, query.given("before")?);
    let page = state.app.list_deliveries(&caller, filter, before.as_deref(), paging).await?;
    Ok(render::json_bytes(StatusCode::OK, page.into_bytes()))
}

/// `GET /api/v1/events/deliveries/{eventId}/{consumer}`.
pub(crate) async fn one(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    PathParts((event_id, consumer)): PathParts<(String, String)>,
) -> Result<Response, ApiError> {
    let delivery = state.app.delivery(&caller, &event_id, &consumer).await?;
    let delivery = delivery.ok_or_else(|| Error::not_found("delivery"))?;
    Ok(render::data(StatusCode::OK, &delivery))
}

/// `GET /api/v1/events/deliveries/counts`.
pub(crate) async fn counts(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&LEDGER_PARAMETERS)?;
    let counts = state.app.count_deliveries(&caller, ledger_filter(&query)?).await?;
    Ok(render::data(StatusCode::OK, &counts))
}

/// `POST /api/v1/events/deliveries/retry`.
pub(crate) async fn retry(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Update)>,
    JsonBody(body): JsonBody<RetryBody>,
) -> Result<Response, ApiError> {
    let RetryDead { dead, consumer, topic, since, until } = match body.asked().ok_or_else(no_retry)? {
        Retry::One(RetryOne { event_id, consumer }) => {
            return Ok(render::data(StatusCode::OK, &state.app.retry_delivery(&caller, &event_id, &consumer).await?));
        }
        Retry::Dead(dead) => dead,
    };
    let filter = LedgerFilter {
        is_dead: Some(dead),
        consumer: without_nul("consumer", consumer)?,
        topic: without_nul("topic", topic)?.as_deref().map(TopicFilter::parse).transpose()?,
        since: since.as_deref().map(|text| instant("since", text)).transpose()?,
        until: until.as_deref().map(|text| instant("until", text)).transpose()?,
        ..LedgerFilter::default()
    };
    let count = state.app.retry_dead_deliveries(&caller, filter).await?;
    Ok(render::data(StatusCode::ACCEPTED, &RetriedAnswer { count }))
}

fn no_retry() -> ApiError {
    let message = "Send `eventId` and `consumer` for one delivery, or `\"dead\": true` for all dead ones, with `consumer`, `topic`, `since` \
                   and `until` to narrow them down.";
    Error::invalid_request(message).into()
}

/// The parameters of both the list and the counts.
const LEDGER_PARAMETERS: [&str; 7] = ["status", "consumer", "dead", "eventId", "topic", "since", "until"];

fn ledger_filter(query: &QueryPairs) -> Result<LedgerFilter, ApiError> {
    Ok(LedgerFilter {
        status: query.given("status")?,
        consumer: query.given("consumer")?,
        is_dead: query.get("dead").map(|_| query.flag("dead")).transpose()?,
        event_id: query.given("eventId")?,
        topic: query.given("topic")?.as_deref().map(TopicFilter::parse).transpose()?,
        since: query.instant("since")?,
        until: query.instant("until")?,
        before: None,
    })
}

/// `GET /api/v1/events/subscriptions`.
pub(crate) async fn subscriptions(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_subscriptions(&caller).await?))
}

/// `POST /api/v1/events/subscriptions`.
pub(crate) async fn subscribe(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Create)>,
    JsonBody(body): JsonBody<SubscriptionBody>,
) -> Result<Response, ApiError> {
    let SubscriptionBody { event, consumer, handler, config, per_instance } = body;
    let (config, per_instance) = (config.unwrap_or_default(), per_instance.unwrap_or(false));
    let new = NewSubscription { event, consumer, handler, config, per_instance };
    Ok(render::with_warnings(StatusCode::CREATED, &state.app.create_subscription(&caller, new).await?))
}

/// `DELETE /api/v1/events/subscriptions/{consumer}`.
pub(crate) async fn unsubscribe(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Delete)>,
    PathParts(consumer): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_subscription(&caller, &consumer).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Update)>,
    PathParts(consumer): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_subscription(&caller, &consumer).await?))
}

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Events, "events", verb, summary)
}

/// `{ "data": …, "pagination"? }`: a list of events.
fn events_page() -> Value {
    let mut page = data_of(list_of(of::<EventText<'_>>()));
    page["properties"]["pagination"] = of::<EventsPagination>();
    page
}

pub(crate) fn describe(paths: &mut Paths) {
    let limit = json!({ "type": "integer", "minimum": 1, "default": EVENTS_DEFAULT });
    let recent = operation("list", "List recent events, newest first")
        .describe(format!(
            "Needs read on `events`. Events that the caller may not read are left out. Searches at most 100,000 events, and reads \
            the payloads of at most 2,000 to decide about them. With `object` or `record` these are only events of that object or \
            record, and with `before` only older events. If the search stops before the list is full, the response has a \
            `pagination`, and its `before` continues the search. `limit` is at most {EVENTS_MAX}. The response is 400 \
            `answer_too_large` if the events have more bytes than `SVC_MAX_ANSWER_BYTES`. Then ask again with a smaller `limit`. \
            The response is 404 if the event of `before` is not in the outbox.",
        ))
        .parameter(query_parameter("topic", TOPIC, json!({ "type": "string" })))
        .parameter(query_parameter("object", "Only events of this object's records.", json!({ "type": "string" })))
        .parameter(query_parameter("record", "Only events of the record with this id.", json!({ "type": "string" })))
        .parameter(query_parameter(
            "before",
            "Only events older than the event with this id. The response is 404 if that event is not in the outbox, or if you \
            may not see it. It can also be `pagination.before` of an earlier response.",
            json!({ "type": "string" }),
        ))
        .parameter(query_parameter("limit", "The maximum number of events.", limit))
        .problems(&[400, 404])
        .answers(200, "The events.", events_page());
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
            query_parameter("since", "Only deliveries of events from this instant on.", components::instant()),
            query_parameter("until", "Only deliveries of events before this instant.", components::instant()),
        ]
    };
    let page = exact_object(json!({ "data": list_of(of::<DeliveryAnswer>()), "pagination": of::<LedgerPagination>() }));
    let deliveries = operation("listDeliveries", "List deliveries, those of the newest events first")
        .describe(
            "Needs read on `events`. Entries of events that the caller may not read are left out. If only the payloads of events \
            can decide that, the server looks at a limited number of these events. If there may be more, `pagination` has \
            `truncated` and `before`, and a request with this `before` looks at the next ones.",
        )
        .parameters(filters())
        .parameter(query_parameter(
            "before",
            "Only deliveries of events older than the event with this id, or `pagination.before` of an earlier response. The \
            response is 404 if that event is not in the outbox, or if you may not see it.",
            json!({ "type": "string" }),
        ))
        .parameters(paging_parameters())
        .problems(&[400, 404])
        .answers(200, "A page of the ledger.", page);
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

pub(crate) fn describe_subscriptions(paths: &mut Paths) {
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
            the rights that the subscription needs. If you did not make it, a read under a condition or of some fields is not \
            enough. Otherwise the response is 403, and nothing changes. A subscription that a block declared gets 409: adopt the \
            block instead.",
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
