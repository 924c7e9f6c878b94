//! Request bodies: reads a complete body up to a limit, and checks the JSON of operations that need it.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use blockbase_app::schema::json::{Members, holds_nul, parse_list, parse_members, parse_object};
use blockbase_app::schema::{Code, Error};
use blockbase_app::{QuotaOwner, run_offloaded};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::request::admission::admitted;
use crate::request::extract::RequestInfo;
use crate::state::bodies::BodyPlace;

/// The longest time for a body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time for which the client may send nothing.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The maximum number of bytes that are reserved for a body before it arrives.
const BODY_BYTES_USUAL: usize = 64 * 1024;

/// Reads the body of an admitted request, up to its limit.
///
/// # Errors
/// `payload_too_large` if the body is larger; `invalid_request` if it ends early or comes too slowly; `unavailable` if too many bytes of
/// other bodies are in memory.
pub(crate) async fn read(request: Request, state: &AppState) -> Result<Bytes, ApiError> {
    let admitted = admitted(request.extensions())?;
    let bytes_max = admitted.body_bytes_max;
    read_admitted(request, state, admitted.owner, bytes_max).await
}

/// Does the same as [`read`], with another limit.
pub(crate) async fn read_within(request: Request, state: &AppState, bytes_max: usize) -> Result<Bytes, ApiError> {
    let owner = admitted(request.extensions())?.owner;
    read_admitted(request, state, owner, bytes_max).await
}

async fn read_admitted(request: Request, state: &AppState, owner: QuotaOwner, bytes_max: usize) -> Result<Bytes, ApiError> {
    let (parts, body) = request.into_parts();
    read_body(&parts, body, state, owner, bytes_max).await
}

/// Does the same as [`read_within`], for a request that is split into parts and body. The bytes count until the request ends.
pub(crate) async fn read_body(
    parts: &Parts,
    body: Body,
    state: &AppState,
    owner: QuotaOwner,
    bytes_max: usize,
) -> Result<Bytes, ApiError> {
    let mut place = state.bodies.place(owner);
    match tokio::time::timeout(BODY_TIMEOUT, collect(&parts.headers, body, bytes_max, &mut place)).await {
        Ok(body) => {
            let body = body?;
            if let Some(info) = parts.extensions.get::<RequestInfo>() {
                *info.quota.body_place.lock() = Some(place);
            }
            Ok(body)
        }
        Err(_) => Err(too_slow()),
    }
}

fn too_slow() -> ApiError {
    Error::invalid_request("The body did not arrive in time.").into()
}

async fn collect(headers: &HeaderMap, mut body: Body, bytes_max: usize, place: &mut BodyPlace) -> Result<Bytes, ApiError> {
    let too_large = || {
        ApiError(Error::new(
            Code::PayloadTooLarge,
            format!("The body is larger than {bytes_max} bytes, the limit of this operation."),
        ))
    };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let announced = announced.map_or(0, |length| usize::try_from(length).unwrap_or(bytes_max));
    // The length is only announced and may be wrong, so at most the usual size is reserved.
    let mut kept: Vec<u8> = Vec::with_capacity(announced.min(BODY_BYTES_USUAL));
    while let Some(frame) = tokio::time::timeout(SILENCE_MAX, body.frame()).await.map_err(|_| too_slow())? {
        let frame = frame.map_err(|_| Error::invalid_request("The body was cut short."))?;
        let Ok(data) = frame.into_data() else { continue };
        if data.is_empty() {
            continue;
        }
        if kept.len() + data.len() > bytes_max {
            return Err(too_large());
        }
        place.arrive(data.len(), announced).await?;
        if kept.len() + data.len() > kept.capacity() && kept.len() < announced {
            // The body is larger than usual: one allocation for the rest, instead of repeated doubling.
            kept.reserve_exact(announced - kept.len());
        }
        kept.extend_from_slice(&data);
    }
    Ok(kept.into())
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
        // This fails if the handler has no demand.
        admitted(request.extensions())?;
        expect_media_type(request.headers(), "application/json")?;
        let bytes = read(request, state).await?;
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(JsonText(text)),
            Err(_) => Err(Error::invalid_request("The body is not valid UTF-8.").into()),
        }
    }
}

/// The members of a JSON object. Their values stay text.
pub(crate) struct JsonMembers(pub(crate) Members);

impl FromRequest<AppState> for JsonMembers {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        Ok(JsonMembers(run_offloaded(text.len(), || parse_members(&text))?))
    }
}

/// A JSON body with a fixed form.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        // Text in Postgres cannot contain a NUL character.
        if holds_nul(&text) {
            return Err(Error::invalid_request("A text in the body contains a NUL character.").into());
        }
        Ok(JsonBody(run_offloaded(text.len(), || parse_object(&text))?))
    }
}

/// Reads a member for which `null` has another meaning than leaving it out. `null` becomes `Some(None)`.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// Reads a member of a change that may be left out, but must not be null. So a client cannot believe that null means "no change".
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// `{ "ids": [uuid] }`. The operation checks the ids.
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
        let ids = run_offloaded(text.len(), || {
            let document: Document<'_> = parse_object(&text)?;
            parse_list(document.ids.get(), state.app.settings().bulk_records_max)
        });
        Ok(Ids(ids?))
    }
}
