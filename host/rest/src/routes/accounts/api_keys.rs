//! `/api/v1/api-keys`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error, time};
use blockbase_app::{ApiKeyAnswer, KEY_NAME_CHARS_MAX, NewKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
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
