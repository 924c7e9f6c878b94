//! `/api/v1/webhooks`.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Resource;
use blockbase_app::{NewWebhook, TOPICS_MAX, WEBHOOK_NAME_CHARS_MAX, WebhookAnswer, WebhookChanges, WithWarnings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Operation, Paths, data_with_warnings, path_parameter};
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

pub(crate) fn describe(paths: &mut Paths) {
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
        .json_body(body_of::<NewBody>())
        .problems(&[409])
        .answers(201, "The new webhook and its secret.", of::<WebhookMadeAnswer>());
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
        .json_body(body_of::<ChangesBody>())
        .problems(&[404, 409])
        .answers(200, "The webhook as it is now.", data_with_warnings(of::<WebhookAnswer>()));
    paths.add("patch", base, update);
    let adopt = operation("adopt", "Become the maker of a webhook")
        .describe(
            "From then on the webhook has the caller's rights, and it is no longer suspended. Needs update on `webhooks` \
            and read on everything that it sends. If you did not make it, a read under a condition or of some fields is not \
            enough. Otherwise the response is 403, and nothing changes. Look at the `url` first: from then on it gets everything \
            that you may read. A webhook that a block declared gets 409: adopt the block instead.",
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
        .answers_data(202, "The event is on its way.", of::<SentAnswer>());
    paths.add("post", "/api/v1/webhooks/{id}/test", test);
    let rotate = operation("rotateSecret", "Give a webhook a new secret")
        .describe(
            "The previous secret also signs for 24 hours. During that time the signature header has two `v1` values. Needs \
                update on `webhooks` and read on everything that it sends.",
        )
        .parameter(webhook())
        .problems(&[400, 404])
        .answers(200, "The new secret.", of::<SecretAnswer>());
    paths.add("post", "/api/v1/webhooks/{id}/rotate-secret", rotate);
}
