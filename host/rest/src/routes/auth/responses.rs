//! Responses that give a session to a client, or take it back, with their documents, and those that lead to a page.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::SignedIn;
use serde::Serialize;
use serde_json::{Value, json};

use super::answers::SessionGoneAnswer;
use crate::AppState;
use crate::answer::auth::show_token;
use crate::openapi::answers::of;
use crate::openapi::operation::headers;

/// A response that leads a browser to a page. The address of the request contains a token, so the browser must not show it to the
/// page as its referrer.
pub(super) fn leads_to(status: StatusCode, location: HeaderValue) -> Response {
    let headers = [(header::LOCATION, location), (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"))];
    (status, headers).into_response()
}

/// A response that gives a session to the client.
pub(super) fn signed_in(state: &AppState, answer: &SignedIn, body: &impl Serialize) -> Response {
    let mut response = (StatusCode::OK, axum::Json(body)).into_response();
    hand_out(state, &mut response, answer.token.as_str(), answer.remember);
    response
}

/// Puts a session's cookie and token into the headers.
pub(super) fn hand_out(state: &AppState, response: &mut Response, token: &str, remember: bool) {
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().set_cookie(token, remember)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    show_token(response.headers_mut(), token);
}

/// A response `{ "success": true }` that removes the session's cookie.
pub(super) fn session_gone(state: &AppState) -> Response {
    without_session(state, axum::Json(SessionGoneAnswer::GONE).into_response())
}

/// A response that also removes the session's cookie.
pub(super) fn without_session(state: &AppState, mut response: Response) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().clear_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// The document of a response that gives a session to the client.
pub(super) fn session_response(answer: Value) -> Value {
    json!({
        "description": "The session. Its token is in the body and in `set-auth-token`. The response also sets a signed cookie.",
        "headers": headers(&[("Set-Cookie", "SetCookie"), ("set-auth-token", "SetAuthToken")]),
        "content": { "application/json": { "schema": answer } },
    })
}

/// The document of a response `{ "success": true }` that removes the cookie.
pub(super) fn cookie_taken_back(description: &str) -> Value {
    json!({
        "description": description,
        "headers": headers(&[("Set-Cookie", "SetCookie")]),
        "content": { "application/json": { "schema": of::<SessionGoneAnswer>() } },
    })
}
