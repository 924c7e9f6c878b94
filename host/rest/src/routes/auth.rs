//! `/api/auth` in better-auth's wire form.

mod answers;
mod confirm_page;
pub(crate) mod document;
mod mail_links;
mod own_account;
mod profile;
mod reset;
mod sessions;
mod sign;
mod verify;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::json::{parse_members, strict_from_value};
use blockbase_app::schema::{Code, Error};
use blockbase_app::{AuthProblem, Client, Credentials, SignedIn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use mail_links::mail_links;
pub(crate) use own_account::{change_email, delete_user, delete_user_callback, verify_password};
pub(crate) use profile::{change_password, delete_guest, update_user};
pub(crate) use reset::{request_reset, reset_callback, reset_password};
pub(crate) use sessions::{get, list, revoke, revoke_all, revoke_others};
pub(crate) use sign::{guest, sign_in, sign_out, sign_up};
pub(crate) use verify::{send_verification, verify_email};

use crate::AppState;
use crate::answer::auth::{AuthError, show_token};
use crate::request::body::{media_type, read_within};
use crate::request::extract::RequestInfo;
use crate::routing::Routes;
use answers::SessionGoneAnswer;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/sign-up/email", sign_up)
        .post("/api/auth/sign-in/email", sign_in)
        .post("/api/auth/sign-in/anonymous", guest)
        .post("/api/auth/sign-out", sign_out)
        .get("/api/auth/get-session", get)
        .get("/api/auth/list-sessions", list)
        .post("/api/auth/revoke-session", revoke)
        .post("/api/auth/revoke-sessions", revoke_all)
        .post("/api/auth/revoke-other-sessions", revoke_others)
        .post("/api/auth/change-password", change_password)
        .post("/api/auth/send-verification-email", send_verification)
        .get("/api/auth/verify-email", verify_email)
        .post("/api/auth/verify-email", verify_email)
        .post("/api/auth/request-password-reset", request_reset)
        .get("/api/auth/reset-password/{token}", reset_callback)
        .post("/api/auth/reset-password", reset_password)
        .post("/api/auth/change-email", change_email)
        .post("/api/auth/verify-password", verify_password)
        .post("/api/auth/delete-user", delete_user)
        .get("/api/auth/delete-user/callback", delete_user_callback)
        .post("/api/auth/update-user", update_user)
        .post("/api/auth/delete-anonymous-user", delete_guest)
}

/// A body of the protocol: JSON, a form, or nothing. Unknown members are ignored, as in the protocol.
pub(crate) struct AuthBody {
    members: Map<String, Value>,
    is_empty: bool,
}

impl FromRequest<AppState> for AuthBody {
    type Rejection = AuthError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, AuthError> {
        let kind = media_type(request.headers()).unwrap_or_default().to_ascii_lowercase();
        let bytes = read_within(request, state, state.settings.body_bytes_max.min(BODY_BYTES_MAX)).await?;
        let invalid = || Error::invalid_request("The body is not valid UTF-8.");
        let text = std::str::from_utf8(&bytes).map_err(|_| invalid())?;
        let members = members_of(&kind, text)?;
        let holds = |character: char| members.values().any(|value| value.as_str().is_some_and(|text| text.contains(character)));
        // The decoder of forms writes U+FFFD for bytes that are not UTF-8.
        if kind != "application/json" && holds('\u{fffd}') {
            return Err(invalid().into());
        }
        // Text in Postgres cannot contain a NUL character, so no account has one.
        if holds('\0') {
            return Err(AuthProblem::Validation("A member contains a NUL character.".to_owned()).into());
        }
        Ok(AuthBody { members, is_empty: text.is_empty() })
    }
}

fn members_of(kind: &str, text: &str) -> Result<Map<String, Value>, AuthError> {
    match kind {
        "" | "application/json" if text.is_empty() => Ok(Map::new()),
        "application/json" => {
            let members = parse_members(text)?.0.into_iter();
            Ok(members.map(|(name, raw)| (name, serde_json::from_str(raw.get()).unwrap_or_default())).collect())
        }
        "application/x-www-form-urlencoded" => {
            Ok(form_urlencoded::parse(text.as_bytes()).map(|(name, value)| form_member(&name, &value)).collect())
        }
        _ => Err(Error::new(
            Code::UnsupportedMediaType,
            "Send the body with `Content-Type: application/json` or `application/x-www-form-urlencoded`.",
        )
        .into()),
    }
}

/// The maximum size of the body of these operations, in bytes. It is small because many bodies may be in memory while their
/// passwords wait for the check.
const BODY_BYTES_MAX: usize = 65_536;

/// A pair of a form as a JSON member. The text of a flag becomes a boolean.
fn form_member(name: &str, value: &str) -> (String, Value) {
    let value = match (name, value) {
        ("rememberMe" | "revokeOtherSessions", "true" | "on") => Value::Bool(true),
        ("rememberMe" | "revokeOtherSessions", "false" | "") => Value::Bool(false),
        (_, text) => Value::String(text.to_owned()),
    };
    (name.to_owned(), value)
}

impl AuthBody {
    /// Requires that the body is not empty, so that a client that forgot it does not change anything.
    fn required(self) -> Result<AuthBody, AuthError> {
        match self.is_empty {
            true => Err(AuthProblem::Validation("Send an object, `{}` at least.".to_owned()).into()),
            false => Ok(self),
        }
    }

    fn parse<T: DeserializeOwned>(self) -> Result<T, AuthError> {
        strict_from_value(Value::Object(self.members)).map_err(|misfit| AuthProblem::Validation(misfit.to_string()).into())
    }
}

/// The client of a request: its address, and its credentials.
fn client(credentials: Credentials, headers: &HeaderMap, info: &RequestInfo) -> Client {
    Client {
        ip_address: Some(info.address.to_string()),
        user_agent: headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned),
        languages: languages(headers),
        credentials,
    }
}

/// The languages that a browser names.
fn languages(headers: &HeaderMap) -> Option<String> {
    headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A response that gives a session to the client.
fn signed_in(state: &AppState, answer: &SignedIn, body: &impl Serialize) -> Response {
    let mut response = (StatusCode::OK, axum::Json(body)).into_response();
    hand_out(state, &mut response, answer.token.as_str(), answer.remember);
    response
}

/// Puts a session's cookie and token into the headers.
fn hand_out(state: &AppState, response: &mut Response, token: &str, remember: bool) {
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().set_cookie(token, remember)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    show_token(response.headers_mut(), token);
}

/// A response `{ "success": true }` that removes the session's cookie.
fn session_gone(state: &AppState) -> Response {
    without_session(state, axum::Json(SessionGoneAnswer::GONE).into_response())
}

/// A response that also removes the session's cookie.
fn without_session(state: &AppState, mut response: Response) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().clear_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
