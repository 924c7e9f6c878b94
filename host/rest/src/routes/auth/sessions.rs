//! The sessions of the caller's user.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::{CurrentSession, ListedSession};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::answers::DoneAnswer;
use super::request::{AuthBody, operation};
use super::responses::without_session;
use crate::AppState;
use crate::answer::auth::AuthError;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Caller, Paths};
use crate::request::admission::WithSession;
use crate::request::extract::Presented;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/auth/get-session", get)
        .get("/api/auth/list-sessions", list)
        .post("/api/auth/revoke-session", revoke)
        .post("/api/auth/revoke-sessions", revoke_all)
        .post("/api/auth/revoke-other-sessions", revoke_others)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RevokeBody {
    id: Option<String>,
    token: Option<String>,
}

fn done() -> Response {
    axum::Json(DoneAnswer::DONE).into_response()
}

/// The session and its user, or null. The cookie of a session that has ended is removed.
pub(crate) async fn get(State(state): State<AppState>, Presented(credentials): Presented) -> Result<Response, AuthError> {
    let answer = state.app.current_session(&credentials).await?;
    let cookies = state.app.cookies();
    // If the request has another credential, the cookie was not checked.
    let by_cookie = credentials.bearer.is_none() && credentials.api_key.is_none();
    let has_ended =
        by_cookie && answer.is_none() && credentials.cookies.as_deref().is_some_and(|header| cookies.names_session(header));
    let mut response = axum::Json(answer).into_response();
    if has_ended {
        response = without_session(&state, response);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn list(State(state): State<AppState>, WithSession(credentials): WithSession) -> Result<Response, AuthError> {
    Ok(axum::Json(state.app.list_sessions(&credentials).await?).into_response())
}

pub(crate) async fn revoke(
    State(state): State<AppState>,
    WithSession(credentials): WithSession,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: RevokeBody = body.parse()?;
    state.app.revoke_session(&credentials, body.id.as_deref(), body.token.as_deref()).await?;
    Ok(done())
}

pub(crate) async fn revoke_others(
    State(state): State<AppState>,
    WithSession(credentials): WithSession,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    state.app.revoke_sessions(&credentials, true).await?;
    Ok(done())
}

pub(crate) async fn revoke_all(
    State(state): State<AppState>,
    WithSession(credentials): WithSession,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    state.app.revoke_sessions(&credentials, false).await?;
    Ok(done())
}

pub(crate) fn describe(paths: &mut Paths) {
    let get_session = operation("getSession", "Get the session and its user", Caller::Anyone)
        .describe("The response is null, not an error, if the request has no valid session.")
        .without(&[401])
        .answers(200, "The session, or null.", json!({ "anyOf": [of::<CurrentSession>(), { "type": "null" }] }));
    paths.add("get", "/api/auth/get-session", get_session);
    let list = operation("listSessions", "List the sessions of the caller's user", Caller::Session)
        .describe("Each session has `current`. Tokens are not shown.");
    paths.add(
        "get",
        "/api/auth/list-sessions",
        list.answers(200, "The sessions, newest first. There are at most 100.", list_of(of::<ListedSession>())),
    );
    let revoke = operation("revokeSession", "End one session of the caller's user", Caller::Session)
        .describe("The body names the session by its id or its token. An unknown session counts as ended.")
        .json_body(body_of::<RevokeBody>())
        .answers(200, "The session has ended.", of::<DoneAnswer>());
    paths.add("post", "/api/auth/revoke-session", revoke);
    for (path, verb, summary) in [
        ("/api/auth/revoke-sessions", "revokeSessions", "End all sessions of the caller's user, including this one"),
        ("/api/auth/revoke-other-sessions", "revokeOtherSessions", "End all other sessions of the caller's user"),
    ] {
        let revoke = operation(verb, summary, Caller::Session)
            .describe("The sessions are then invalid everywhere, and the streams that they opened end.")
            .problems(&[400, 413, 415]);
        paths.add("post", path, revoke.answers(200, "The sessions have ended.", of::<DoneAnswer>()));
    }
}
