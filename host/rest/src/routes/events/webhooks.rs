//! `/api/v1/webhooks`.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{NewWebhook, TOPICS_MAX, WEBHOOK_NAME_CHARS_MAX, WebhookAnswer, WebhookChanges, WithWarnings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Create, Delete, Granted, Read, Update, Webhooks};
use crate::request::body::{JsonBody, given, present};
use crate::request::extract::PathParts;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/webhooks", list)
        .post("/api/v1/webhooks", create)
        .get("/api/v1/webhooks/{id}", get)
        .patch("/api/v1/webhooks/{id}", update)
        .delete("/api/v1/webhooks/{id}", delete)
        .post("/api/v1/webhooks/{id}/adopt", adopt)
        .post("/api/v1/webhooks/{id}/test", test)
        .post("/api/v1/webhooks/{id}/rotate-secret", rotate_secret)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBody {
    #[schemars(length(min = 1, max = WEBHOOK_NAME_CHARS_MAX))]
    name: Option<String>,
    #[schemars(extend("format" = "uri", "examples" = ["https://example.com/hook"]))]
    url: String,
    #[schemars(length(min = 1, max = TOPICS_MAX), extend("examples" = [["data.#"]]))]
    topics: Vec<String>,
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    headers: Option<Map<String, Value>>,
    enabled: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesBody {
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(min = 1, max = WEBHOOK_NAME_CHARS_MAX))]
    name: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", extend("format" = "uri"))]
    url: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<String>", length(min = 1, max = TOPICS_MAX))]
    topics: Option<Vec<String>>,
    /// All headers. The value `***` keeps the stored value. A change of `url` drops the stored values.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "BTreeMap<String, String>")]
    headers: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool")]
    enabled: Option<bool>,
}

/// The test event that is on its way.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct SentAnswer {
    #[schemars(extend("format" = "uuid"))]
    event_id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct SecretAnswer {
    /// It is shown only in this response.
    #[schemars(extend("pattern" = "^whsec_"))]
    secret: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct WebhookMadeAnswer {
    data: WebhookAnswer,
    /// It is shown only in this response.
    #[schemars(extend("pattern" = "^whsec_"))]
    secret: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("$ref" = "#/components/schemas/SvcWarnings"), with = "Value")]
    warnings: Vec<String>,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_webhooks(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Create)>,
    JsonBody(body): JsonBody<NewBody>,
) -> Result<Response, ApiError> {
    let NewBody { name, url, topics, headers, enabled } = body;
    let new = NewWebhook { name, url, topics, headers: headers.unwrap_or_default(), enabled: enabled.unwrap_or(true) };
    let (WithWarnings { data, warnings }, secret) = state.app.create_webhook(&caller, new).await?;
    Ok(render::json(StatusCode::CREATED, &WebhookMadeAnswer { data, secret, warnings }))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.webhook(&caller, &id).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<ChangesBody>,
) -> Result<Response, ApiError> {
    let ChangesBody { name, url, topics, headers, enabled } = body;
    let changes = WebhookChanges { name, url, topics, headers, enabled };
    Ok(render::with_warnings(StatusCode::OK, &state.app.update_webhook(&caller, &id, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Delete)>,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_webhook(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn test(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    let event_id = state.app.test_webhook(&caller, &id).await?;
    Ok(render::data(StatusCode::ACCEPTED, &SentAnswer { event_id }))
}

pub(crate) async fn rotate_secret(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    let secret = state.app.rotate_webhook_secret(&caller, &id).await?;
    Ok(render::json(StatusCode::OK, &SecretAnswer { secret }))
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Webhooks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_webhook(&caller, &id).await?))
}
