//! `GET /api/v1/me`, and the claim of the account that was made at boot.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use crate::AppState;
use crate::admission::Claiming;
use crate::body::JsonBody;
use crate::error::ApiError;
use crate::extract::Presented;
use crate::render;

/// The identity verdict; a bad credential is an answer, not an error.
pub(crate) async fn verdict(State(state): State<AppState>, Presented(credentials): Presented) -> Result<Response, ApiError> {
    let verdict = state.app.me(&credentials).await?;
    let json = verdict.as_deref().unwrap_or(r#"{"authenticated":false}"#);
    Ok(render::json_bytes(StatusCode::OK, json.as_bytes().to_vec()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimBody {
    name: String,
    new_password: String,
}

pub(crate) async fn claim(
    State(state): State<AppState>,
    Claiming(credentials): Claiming,
    JsonBody(body): JsonBody<ClaimBody>,
) -> Result<Response, ApiError> {
    state.app.claim(&credentials, body.name, body.new_password).await?;
    Ok(render::data(StatusCode::OK, &json!({ "claimed": true })))
}
