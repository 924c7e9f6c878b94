//! `GET /api/v1/me`, and the claim of the account that was made at boot.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::AppState;
use crate::body::JsonBody;
use crate::error::ApiError;
use crate::extract::Presented;
use crate::render;

/// The identity verdict; a bad credential is an answer, not an error.
pub(crate) async fn verdict(State(state): State<AppState>, Presented(credentials): Presented) -> Result<Response, ApiError> {
    let Some(verdict) = state.app.verdict(&credentials).await? else {
        return Ok(axum::Json(json!({ "authenticated": false })).into_response());
    };
    let mut answer = json!({
        "authenticated": true,
        "userId": verdict.user_id,
        "roles": verdict.roles,
        "user": verdict.user,
    });
    if let Some(id) = verdict.api_key_id {
        answer["apiKeyId"] = json!(id);
    }
    if verdict.pending_claim {
        answer["pendingClaim"] = json!(true);
    }
    Ok(axum::Json(answer).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimBody {
    name: String,
    new_password: String,
}

pub(crate) async fn claim(
    State(state): State<AppState>,
    Presented(credentials): Presented,
    JsonBody(body): JsonBody<ClaimBody>,
) -> Result<Response, ApiError> {
    state.app.claim(&credentials, body.name, body.new_password).await?;
    Ok(render::data(StatusCode::OK, &json!({ "claimed": true })))
}
