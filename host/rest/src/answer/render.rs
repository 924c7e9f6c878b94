//! Responses from bytes that are already JSON.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::{App, RecordAnswer, WithWarnings, write_warnings};
use serde::Serialize;

/// The number of headers for which a response has room. The layers around a handler add most of them, and a map that is too small
/// would be made again.
const HEADERS: usize = 12;

/// A JSON response from finished bytes.
pub(crate) fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().reserve(HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// `{ "data": … }` around JSON bytes.
pub(crate) fn data_bytes(status: StatusCode, json: &[u8]) -> Response {
    let mut bytes = Vec::with_capacity(json.len() + 10);
    bytes.extend_from_slice(b"{\"data\":");
    bytes.extend_from_slice(json);
    bytes.push(b'}');
    json_bytes(status, bytes)
}

/// `{ "data": … }` around a record, with its ETag, and with `warnings` if there are any.
pub(crate) fn record(status: StatusCode, record: &RecordAnswer, warnings: &[String], app: &App) -> Response {
    let mut json = data_begun(record);
    write_warnings(&mut json, warnings);
    json.push(b'}');
    with_etag(json_bytes(status, json), &app.etag(&record.version))
}

/// The beginning of a response: `{ "data": …`. The caller appends the rest.
fn data_begun(record: &RecordAnswer) -> Vec<u8> {
    let mut json = Vec::with_capacity(record.json.len() + 32);
    json.extend_from_slice(b"{\"data\":");
    json.extend_from_slice(&record.json);
    json
}

/// Returns the same as [`record`], or 304 if the client already has this version of the record. `is_known` tells whether the
/// client has a given ETag.
pub(crate) fn record_unless_known(record: &RecordAnswer, is_known: impl FnOnce(&str) -> bool, app: &App) -> Response {
    let etag = app.etag(&record.version);
    match is_known(&etag) {
        true => with_etag(StatusCode::NOT_MODIFIED.into_response(), &etag),
        false => with_etag(data_bytes(StatusCode::OK, &record.json), &etag),
    }
}

/// `{ "data": …, "created": … }` around a record, with its ETag, and with `warnings` if there are any.
pub(crate) fn upserted(status: StatusCode, record: &RecordAnswer, created: bool, warnings: &[String], app: &App) -> Response {
    let mut json = data_begun(record);
    json.extend_from_slice(format!(",\"created\":{created}").as_bytes());
    write_warnings(&mut json, warnings);
    json.push(b'}');
    with_etag(json_bytes(status, json), &app.etag(&record.version))
}

fn with_etag(mut response: Response, etag: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

/// A JSON response from a value.
pub(crate) fn json<T: Serialize>(status: StatusCode, answer: &T) -> Response {
    json_bytes(status, bytes_of(answer))
}

/// `{ "data": … }` around a value.
pub(crate) fn data<T: Serialize>(status: StatusCode, value: &T) -> Response {
    data_bytes(status, &bytes_of(value))
}

fn bytes_of(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_else(|_| b"null".to_vec())
}

/// `{ "data": … }`, with `warnings` if there are any.
pub(crate) fn with_warnings<T: Serialize>(status: StatusCode, answer: &WithWarnings<T>) -> Response {
    json(status, answer)
}
