//! The sessions of the caller's user.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AuthBody, AuthError};
use crate::AppState;
use crate::extract::{RequestInfo, credentials};

#[derive(Deserialize)]
struct RevokeBody {
    id: Option<String>,
    token: Option<String>,
}

fn done() -> Response {
    axum::Json(json!({ "status": true })).into_response()
}

/// The session and its user, or null.
pub(crate) async fn get(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    headers: HeaderMap,
) -> Result<Response, AuthError> {
    let verdict = state.app.verdict(&credentials(&headers)).await?;
    let answer = match verdict {
        Some(verdict) => {
            info.note_renewed(verdict.renewed);
            verdict.session.map(|session| json!({ "session": session, "user": verdict.user }))
        }
        None => None,
    };
    let mut response = axum::Json(answer.unwrap_or(Value::Null)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn list(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, AuthError> {
    Ok(axum::Json(state.app.list_sessions(&credentials(&headers)).await?).into_response())
}

pub(crate) async fn revoke(State(state): State<AppState>, headers: HeaderMap, body: AuthBody) -> Result<Response, AuthError> {
    let credentials = credentials(&headers);
    let body: RevokeBody = body.parse()?;
    state.app.revoke_session(&credentials, body.id.as_deref(), body.token.as_deref()).await?;
    Ok(done())
}

pub(crate) async fn revoke_others(
    State(state): State<AppState>,
    headers: HeaderMap,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    state.app.revoke_sessions(&credentials(&headers), true).await?;
    Ok(done())
}

pub(crate) async fn revoke_all(
    State(state): State<AppState>,
    headers: HeaderMap,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    state.app.revoke_sessions(&credentials(&headers), false).await?;
    Ok(done())
}
