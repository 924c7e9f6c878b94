//! `GET /api/v1/me` and the paths below it, the claim of the account that was made at boot, and the data about this instance that
//! is public.

pub(crate) mod document;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;
use blockbase_app::schema::json::{holds_nul, parse_members};
use blockbase_app::{PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, USER_NAME_CHARS_MAX, run_offloaded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Claiming, Granted, Person};
use crate::request::body::{JsonBody, JsonText};
use crate::request::extract::{Authenticated, Presented};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/instance", instance)
        .get("/api/v1/me", me_answer)
        .get("/api/v1/me/permissions", permissions)
        .get("/api/v1/me/preferences", preferences)
        .patch("/api/v1/me/preferences", change_preferences)
        .post("/api/v1/admin/claim", claim)
}

/// Shows the caller's identity. An invalid credential gets a normal response, not an error.
pub(crate) async fn me_answer(State(state): State<AppState>, Presented(credentials): Presented) -> Result<Response, ApiError> {
    let me_answer = state.app.me(&credentials).await?;
    let json = me_answer.as_deref().unwrap_or(r#"{"authenticated":false}"#);
    Ok(render::json_bytes(StatusCode::OK, json.as_bytes().to_vec()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimBody {
    #[schemars(length(min = 1, max = USER_NAME_CHARS_MAX))]
    name: String,
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_CHARS_MAX))]
    new_password: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct ClaimedAnswer {
    #[schemars(extend("const" = true))]
    claimed: bool,
}

pub(crate) async fn claim(
    State(state): State<AppState>,
    Claiming(credentials): Claiming,
    JsonBody(body): JsonBody<ClaimBody>,
) -> Result<Response, ApiError> {
    state.app.claim(&credentials, body.name, body.new_password).await?;
    Ok(render::data(StatusCode::OK, &ClaimedAnswer { claimed: true }))
}

/// Shows what a client needs to know before somebody signs in. It ignores credentials.
pub(crate) async fn instance(State(state): State<AppState>) -> Result<Response, ApiError> {
    Ok(render::json(StatusCode::OK, &state.app.instance().await?))
}

/// Lists the caller's rights.
pub(crate) async fn permissions(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.own_permissions(&caller)?))
}

/// Shows the user's preferences.
pub(crate) async fn preferences(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Person>,
) -> Result<Response, ApiError> {
    Ok(render::data_bytes(StatusCode::OK, state.app.preferences(&caller).await?.as_bytes()))
}

pub(crate) async fn change_preferences(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Person>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    if holds_nul(&text) {
        return Err(Error::invalid_request("A text in the body contains a NUL character.").into());
    }
    let changes = run_offloaded(text.len(), || parse_members(&text))?;
    Ok(render::data_bytes(StatusCode::OK, state.app.change_preferences(&caller, changes).await?.as_bytes()))
}
