//! Outbound requests, by the block interface and by wasi:http.

use blockbase_sdk::{Context, Error, JsonSchema, action, http, schemars};
use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

/// The number of bytes that one write to a WASI stream accepts.
const WRITE_BYTES_MAX: usize = 4096;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Send {
    #[serde(default = "get")]
    method: String,
    url: String,
    /// Names with the bytes of their values.
    #[serde(default)]
    headers: Vec<(String, Vec<u8>)>,
    #[serde(default)]
    body_bytes: usize,
    #[serde(default = "once")]
    times: u32,
    timeout_ms: Option<u32>,
}

fn get() -> String {
    "GET".to_owned()
}

fn once() -> u32 {
    1
}

/// Sends a request, or several, by the block interface; the last answer.
#[action]
pub(crate) fn send(_context: &Context, input: Send) -> Result<Value, Error> {
    let body = (input.body_bytes > 0).then(|| vec![b'x'; input.body_bytes]);
    let Send { method, url, headers, timeout_ms, .. } = input;
    let request = http::Request { method, url, headers, body, timeout_ms };
    for _ in 1..input.times {
        http::send(request.clone())?;
    }
    let answer = http::send(request)?;
    Ok(json!({ "status": answer.status, "location": answer.header("location"), "bytes": answer.body.len() }))
}

/// The same by wasi:http. An error's code is its name there.
#[action]
pub(crate) fn wasi_send(_context: &Context, input: Send) -> Result<Value, Error> {
    let mut last = Value::Null;
    for _ in 0..input.times {
        last = exchange(&input)?;
    }
    Ok(last)
}

fn failed(code: ErrorCode) -> Error {
    let name = format!("{code:?}");
    let name = name.strip_prefix("ErrorCode::").unwrap_or(&name).split(['(', ' ']).next().unwrap_or_default().to_owned();
    Error::unavailable(name)
}

fn exchange(input: &Send) -> Result<Value, Error> {
    let (scheme, rest) = input.url.split_once("://").ok_or_else(|| Error::invalid_request("no URL"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let fields = Fields::from_list(&input.headers).map_err(|error| Error::invalid_request(format!("{error:?}")))?;
    let request = OutgoingRequest::new(fields);
    let refused = |()| Error::invalid_request("the request is refused");
    request.set_method(&Method::Other(input.method.clone())).map_err(refused)?;
    request.set_scheme(Some(&if scheme == "https" { Scheme::Https } else { Scheme::Http })).map_err(refused)?;
    request.set_authority(Some(authority)).map_err(refused)?;
    request.set_path_with_query(Some(&format!("/{path}"))).map_err(refused)?;
    let body = request.body().map_err(refused)?;
    let pending = outgoing_handler::handle(request, None).map_err(failed)?;
    let stream = body.write().map_err(refused)?;
    let mut left = input.body_bytes;
    while left > 0 {
        let piece = vec![b'x'; left.min(WRITE_BYTES_MAX)];
        if stream.blocking_write_and_flush(&piece).is_err() {
            break;
        }
        left -= piece.len();
    }
    drop(stream);
    // The response shows whether the body was accepted.
    let _ = OutgoingBody::finish(body, None);
    pending.subscribe().block();
    let answer = pending.get().ok_or_else(|| Error::failed("no answer"))?.map_err(refused)?.map_err(failed)?;
    let location = answer.headers().get("location").first().map(|value| String::from_utf8_lossy(value).into_owned());
    let status = answer.status();
    let body = answer.consume().map_err(refused)?;
    let stream = body.stream().map_err(refused)?;
    let mut bytes = 0;
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(piece) => bytes += piece.len(),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(_)) => return Err(Error::failed("the body broke off")),
        }
    }
    Ok(json!({ "status": status, "location": location, "bytes": bytes }))
}
