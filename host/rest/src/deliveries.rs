//! `/api/v1/events` but for the stream: recent events, deliveries, subscriptions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::{Code, Error};
use blockbase_app::{LedgerRequest, NewSubscription, TopicFilter};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::AppState;
use crate::admission::{Create, Delete, Events, Granted, Read, Update};
use crate::body::JsonBody;
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::render;

const EVENTS_DEFAULT: usize = 50;
const EVENTS_MAX: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RetryBody {
    event_id: String,
    consumer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SubscriptionBody {
    event: String,
    consumer: String,
    handler: String,
    config: Option<Map<String, Value>>,
    per_instance: Option<bool>,
}

/// `GET /api/v1/events`.
pub(crate) async fn events(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["topic", "limit"])?;
    let topic = query.get("topic").filter(|topic| !topic.is_empty()).map(TopicFilter::parse).transpose()?;
    let limit = match query.get("limit") {
        None => EVENTS_DEFAULT,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|limit| *limit > 0)
            .ok_or_else(|| Error::invalid_request(format!("`limit` is a whole number of at least 1; it is {text:?}.")))?,
    };
    let events = state.app.recent_events(&caller, topic, limit.min(EVENTS_MAX)).await?;
    Ok(render::data_bytes(StatusCode::OK, events.as_bytes()))
}

/// `GET /api/v1/events/deliveries`.
pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let paging = query.page_beside(&["status", "consumer", "dead"])?;
    let is_dead = query.get("dead").map(|_| query.flag("dead")).transpose()?;
    let text = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let request = LedgerRequest { status: text("status"), consumer: text("consumer"), is_dead };
    if request.consumer.as_ref().is_some_and(|consumer| consumer.contains('\0')) {
        return Err(Error::new(Code::InvalidRequest, "`consumer` holds a NUL character.").into());
    }
    let page = state.app.list_deliveries(&caller, request, paging).await?;
    Ok(render::json_bytes(StatusCode::OK, page.into_bytes()))
}

/// `POST /api/v1/events/deliveries/retry`.
pub(crate) async fn retry(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Events, Update)>,
    JsonBody(body): JsonBody<RetryBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.retry_delivery(&caller, &body.event_id, &body.consumer).await?))
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
    Ok(render::answered(StatusCode::CREATED, state.app.create_subscription(&caller, new).await?))
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
