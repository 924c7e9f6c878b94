//! Responses that give a session to a client, or take it back, and those that lead to a page.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::SignedIn;
use serde::Serialize;

use super::answers::SessionGoneAnswer;
use crate::AppState;
use crate::answer::auth::show_token;

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
