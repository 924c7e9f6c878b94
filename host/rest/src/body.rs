//! Request bodies: read whole within a bound, and JSON where JSON is due.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use blockbase_app::schema::json::{FromObject, Members, malformed, parse_list, parse_members};
use blockbase_app::schema::{Code, Error};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::AppState;
use crate::error::ApiError;

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes reserved for a body before it arrives, at most.
const BODY_BYTES_USUAL: usize = 64 * 1024;

/// Reads a body of at most `bytes_max` bytes.
///
/// # Errors
/// `payload_too_large` past it; `invalid_request` for one that was cut short, or is too slow.
pub(crate) async fn read(request: Request, bytes_max: usize) -> Result<Bytes, ApiError> {
    let (parts, body) = request.into_parts();
    read_body(&parts.headers, body, bytes_max).await
}

/// The same of a request that was taken apart.
pub(crate) async fn read_body(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(BODY_TIMEOUT, read_within(headers, body, bytes_max)).await {
        Ok(body) => body,
        Err(_) => Err(Error::invalid_request("The body did not arrive in time.").into()),
    }
}

async fn read_within(headers: &HeaderMap, mut body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let too_large = || {
        ApiError(Error::new(
            Code::PayloadTooLarge,
            format!("The body is larger than {bytes_max} bytes, the most that is taken here."),
        ))
    };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    // What is announced is not yet sent, so no more than a usual body is reserved for it.
    let mut kept =
        BytesMut::with_capacity(announced.map_or(0, |length| usize::try_from(length).unwrap_or(0).min(BODY_BYTES_USUAL)));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::invalid_request("The body was cut short."))?;
        let Ok(data) = frame.into_data() else { continue };
        if kept.len() + data.len() > bytes_max {
            return Err(too_large());
        }
        kept.extend_from_slice(&data);
    }
    Ok(kept.freeze())
}

pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim())
}

/// Checks the content type.
pub(crate) fn expect_media_type(headers: &HeaderMap, expected: &str) -> Result<(), ApiError> {
    match media_type(headers) {
        Some(actual) if actual.eq_ignore_ascii_case(expected) => Ok(()),
        _ => Err(Error::new(Code::UnsupportedMediaType, format!("Send the body with `Content-Type: {expected}`.")).into()),
    }
}

/// The text of a JSON body.
pub(crate) struct JsonText(pub(crate) String);

impl FromRequest<AppState> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        expect_media_type(request.headers(), "application/json")?;
        let bytes = read(request, state.settings.body_bytes_max).await?;
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(JsonText(text)),
            Err(_) => Err(Error::invalid_request("The body is not valid UTF-8.").into()),
        }
    }
}

/// A JSON object as its members, each still text.
pub(crate) struct JsonMembers(pub(crate) Members);

impl FromRequest<AppState> for JsonMembers {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        Ok(JsonMembers(parse_members(&text)?))
    }
}

/// A JSON body of a fixed form.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        refuse_nul(&text)?;
        let body = serde_json::from_str(&text).map(|FromObject(body)| JsonBody(body));
        body.map_err(|error| ApiError(malformed(&error)))
    }
}

/// Refuses text with a NUL character, which Postgres' text cannot hold.
fn refuse_nul(text: &str) -> Result<(), ApiError> {
    fn holds_nul(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => items.iter().any(holds_nul),
            Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
            _ => false,
        }
    }
    // Only an escape can write one.
    match text.contains("\\u0000") && serde_json::from_str(text).is_ok_and(|value| holds_nul(&value)) {
        true => Err(Error::invalid_request("Text of the body holds a NUL character.").into()),
        false => Ok(()),
    }
}

/// For a member where `null` means something else than leaving it out: `Some(None)` for it.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// `{ "ids": [uuid] }`; the ids are looked at by the operation.
pub(crate) struct Ids(pub(crate) Vec<String>);

impl FromRequest<AppState> for Ids {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Document<'a> {
            #[serde(borrow)]
            ids: &'a RawValue,
        }
        let JsonText(text) = JsonText::from_request(request, state).await?;
        let document: Document<'_> = serde_json::from_str(&text).map_err(|error| malformed(&error))?;
        Ok(Ids(parse_list(document.ids.get(), state.app.settings().bulk_records_max)?))
    }
}
