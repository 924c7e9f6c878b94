//! JSON-RPC answers that do not come from rmcp, because the error occurs before or after rmcp's work.

use std::convert::Infallible;

use blockbase_app::log_cause;
use blockbase_app::schema::{Code, Error};
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use serde_json::json;
use serde_json::value::RawValue;

use crate::hints;

/// An answer of the surface.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The text is not JSON.
pub(crate) const PARSE_ERROR: i32 = -32700;
/// The JSON is not a message.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// The message has parameters that its method does not accept.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// Any error for which JSON-RPC has no code. `data` describes it.
const REFUSED: i32 = -32000;
/// The code by which clients recognize that their session has ended.
const NO_SESSION: i32 = -32001;

/// The challenge for a client without a valid credential.
const CHALLENGE: &str = "Bearer realm=\"blockbase\"";

/// A JSON answer from finished bytes.
pub(crate) fn json_bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(bytes.into()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn nothing(status: StatusCode) -> Answer {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = status;
    response
}

/// An error of the protocol. `id` is the request's id, as the client sent it.
pub(crate) fn error(
    status: StatusCode,
    code: i32,
    message: &str,
    data: Option<serde_json::Value>,
    id: Option<&RawValue>,
) -> Answer {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    let id = id.map_or("null", RawValue::get);
    json_bytes(status, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// A domain error outside of a tool, with its envelope in `data`. Only an ended session gets the status 404.
pub(crate) fn refused(problem: &Error, id: Option<&RawValue>) -> Answer {
    log_cause(problem);
    let status = StatusCode::from_u16(problem.code.outer_status()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = error(status, REFUSED, &problem.message_for(hints::words), Some(problem.envelope(hints::words)), id);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    }
    if let Some(seconds) = problem.retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
    }
    response
}

/// The path does not support the method.
pub(crate) fn no_method(method: &Method, allowed: &'static str) -> Answer {
    let message = format!("/api/v1/mcp does not support {method} here. The header Allow lists the supported methods.");
    let problem = Error::new(Code::MethodNotAllowed, message);
    let data = Some(problem.envelope(hints::words));
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, REFUSED, &problem.message, data, None);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The request names no session, or a session that the caller does not have.
pub(crate) fn no_session(is_named: bool) -> Answer {
    let (status, code, problem) = match is_named {
        true => {
            let message = "The session does not exist or has ended. Begin one with initialize.";
            (StatusCode::NOT_FOUND, NO_SESSION, Error::new(Code::NotFound, message))
        }
        false => {
            let message = "The header Mcp-Session-Id is missing. The response to initialize has one.";
            (StatusCode::BAD_REQUEST, INVALID_REQUEST, Error::invalid_request(message))
        }
    };
    error(status, code, &problem.message, Some(problem.envelope(hints::words)), None)
}
