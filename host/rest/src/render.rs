//! Answers made of bytes that are JSON already.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use blockbase_app::Answered;
use serde::Serialize;
use serde_json::{Value, json};

/// A JSON answer of ready bytes.
pub(crate) fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
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

/// `{ "data": … }` around a value.
pub(crate) fn data<T: Serialize>(status: StatusCode, value: &T) -> Response {
    data_bytes(status, &serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec()))
}

/// `{ "data": … }`, with `warnings` where there are any.
pub(crate) fn answered(status: StatusCode, answered: Answered) -> Response {
    let mut answer = json!({ "data": answered.thing });
    add_warnings(&mut answer, answered.warnings);
    json_bytes(status, answer.to_string().into_bytes())
}

/// Adds `warnings` to an answer, where there are any.
pub(crate) fn add_warnings(answer: &mut Value, warnings: Vec<String>) {
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
}
