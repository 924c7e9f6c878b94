//! `/api/v1/api-keys`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error, Resource, time};
use blockbase_app::{ApiKeyAnswer, KEY_NAME_CHARS_MAX, KEYS_OF_USER_MAX, NewKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Operation, Paths, path_parameter};
use crate::request::admission::{ApiKeys, Create, Delete, Granted, Read, Update};
use crate::request::body::JsonBody;
use crate::request::extract::PathParts;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/api-keys", list)
        .post("/api/v1/api-keys", create)
        .delete("/api/v1/api-keys/{id}", delete)
        .post("/api/v1/api-keys/{id}/adopt", adopt)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KeyBody {
    #[schemars(length(min = 1, max = KEY_NAME_CHARS_MAX))]
    name: String,
    /// The id or the name of the role whose rights the key has.
    role_id: String,
    /// The id of the user whom the key acts as. The default is the caller.
    user_id: Option<String>,
    /// When the key expires. Without it the key never expires.
    #[schemars(extend("format" = "date-time"))]
    expires_at: Option<String>,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(ApiKeys, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_api_keys(&caller).await?))
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct KeyMadeAnswer<'a> {
    data: ApiKeyAnswer,
    /// The key. Only this response shows it.
    #[schemars(extend("pattern" = "^svc_[0-9A-Za-z]{43}$"))]
    key: &'a str,
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(ApiKeys, Create)>,
    JsonBody(body): JsonBody<KeyBody>,
) -> Result<Response, ApiError> {
    let instant = |text: String| {
        time::parse_datetime(&text).ok_or_else(|| {
            let message = format!("`expiresAt` needs an RFC 3339 date and time; it is {text:?}.");
            Error::new(Code::InvalidValue, message).with_field("expiresAt")
        })
    };
    let expires_at = body.expires_at.map(instant).transpose()?;
    let new = NewKey { name: body.name, role: body.role_id, user_id: body.user_id, expires_at };
    let (row, key) = state.app.create_api_key(&caller, new).await?;
    Ok((StatusCode::CREATED, axum::Json(KeyMadeAnswer { data: row, key: key.as_str() })).into_response())
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(ApiKeys, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_api_key(&caller, &id).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(ApiKeys, Delete)>,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_api_key(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn describe(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::ApiKeys, "apiKeys", verb, summary);
    let base = "/api/v1/api-keys";
    let list = operation("list", "List the API keys, newest first").problems(&[400]);
    paths.add("get", base, list.answers_data(200, "The keys.", list_of(of::<ApiKeyAnswer>())));
    let create = operation("create", "Make an API key")
        .describe(format!(
            "The key acts as its user with the rights of its role alone. At each use these rights are limited to those of its \
            maker, the caller. The response is 403 if the role gives a right that the caller does not have. A key for another \
            user needs update on `users`, and every right that the user has. The response is 409 if the user has \
            {KEYS_OF_USER_MAX} keys already.",
        ))
        .json_body(body_of::<KeyBody>())
        .problems(&[409])
        .answers(201, "The new key.", of::<KeyMadeAnswer<'_>>());
    paths.add("post", base, create);
    let key = || path_parameter("id", "The key's id.", json!({ "type": "string" }));
    let adopt = operation("adopt", "Become the maker of an API key")
        .describe(
            "From then on the key's rights are limited to those of the caller, and the key is no longer suspended. Needs update \
            on `api_keys` and every right that the key has. Otherwise the response is 403, and nothing changes. To adopt a key \
            that acts as another user, the caller needs the same rights as for making it.",
        )
        .parameter(key())
        .problems(&[400, 404, 409])
        .answers_data(200, "The key as it is now.", of::<ApiKeyAnswer>());
    paths.add("post", "/api/v1/api-keys/{id}/adopt", adopt);
    let delete = operation("delete", "Delete an API key")
        .describe("The response is 403 if the key has a right that the caller does not have, unless the key acts as the caller.")
        .parameter(key())
        .problems(&[400, 404])
        .answers_nothing(204, "The key is deleted and no longer valid.");
    paths.add("delete", "/api/v1/api-keys/{id}", delete);
}
