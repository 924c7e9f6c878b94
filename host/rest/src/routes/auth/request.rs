//! The body and the client of an account request, and the beginning of its document.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use blockbase_app::schema::json::{parse_members, strict_from_value};
use blockbase_app::schema::{Code, Error};
use blockbase_app::{AuthProblem, Client, Credentials};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::AppState;
use crate::answer::auth::AuthError;
use crate::openapi::operation::{Caller, Operation};
use crate::request::body::{media_type, read_within};
use crate::request::extract::{RequestInfo, languages};

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
    pub(super) fn required(self) -> Result<AuthBody, AuthError> {
        match self.is_empty {
            true => Err(AuthProblem::Validation("Send an object, `{}` at least.".to_owned()).into()),
            false => Ok(self),
        }
    }

    pub(super) fn parse<T: DeserializeOwned>(self) -> Result<T, AuthError> {
        strict_from_value(Value::Object(self.members)).map_err(|misfit| AuthProblem::Validation(misfit.to_string()).into())
    }
}

/// The client of a request: its address, and its credentials.
pub(super) fn client(credentials: Credentials, headers: &HeaderMap, info: &RequestInfo) -> Client {
    Client {
        ip_address: Some(info.address.to_string()),
        user_agent: headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned),
        languages: languages(headers),
        credentials,
    }
}

/// The beginning of the document of an operation below `/api/auth`.
pub(super) fn operation(verb: &str, summary: &str, caller: Caller) -> Operation {
    Operation::new(format!("auth.{verb}"), "auth", summary).called_by(caller)
}
