//! `/api/v1/hooks/:block/:hook`: passes requests of third parties to blocks unchanged.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use blockbase_app::schema::{Code, Error};
use blockbase_app::{HookRequest, HookResponse};
use bytes::Bytes;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::operation::{Caller, Operation, Paths, headers as response_headers, path_parameter};
use crate::request::admission::Anyone;
use crate::request::body;
use crate::request::extract::{PathParts, RequestInfo};

/// Headers that a hook's response must not set. They belong to the connection, or they would affect the service's own origin or
/// the proxy before it.
const ANSWER_HEADERS_KEPT_BACK: [&str; 18] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "trailer",
    "te",
    "set-cookie",
    "strict-transport-security",
    "access-control-allow-credentials",
    "clear-site-data",
    "service-worker-allowed",
    "alt-svc",
    "nel",
    "report-to",
    "reporting-endpoints",
    "accept-ch",
    "critical-ch",
    "x-sendfile",
];
/// Headers with which a block could make nginx serve something else.
const PROXY_PREFIX: &str = "x-accel-";
/// The maximum number of bytes of the names and values of a response's headers together. A request's headers have the same limit.
const ANSWER_HEADERS_BYTES_MAX: usize = 64 * 1024;

pub(crate) async fn receive(
    State(state): State<AppState>,
    _: Anyone,
    PathParts((block, hook)): PathParts<(String, String)>,
    axum::Extension(info): axum::Extension<RequestInfo>,
    request: Request,
) -> Result<Response, ApiError> {
    // The hook is looked up first, so that no large body is read if the hook does not exist.
    state.app.find_hook(&block, &hook).await?;
    let request_of = HookRequest {
        method: request.method().as_str().to_owned(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers: headers(request.headers(), state.app.cookies().name()),
        body: Bytes::new(),
        remote_address: info.address.to_string(),
    };
    let body = body::read(request, &state).await?;
    let request = HookRequest { body, ..request_of };
    match state.app.receive_hook(&block, &hook, request, info.request_id.to_string()).await? {
        None => Ok(render::json_bytes(StatusCode::OK, json!({ "received": true }).to_string().into_bytes())),
        Some(answer) => answered(answer).map_err(|why| {
            let message = format!("The hook `{hook}` did not return a valid response: {why}.");
            state.app.log_block_line(&block, &info.request_id, "error", &message, None);
            ApiError(Error::new(Code::ActionFailed, "The hook failed."))
        }),
    }
}

/// Every header as bytes, without the service's session cookie. A browser sends the cookie by itself, and blocks must not see it.
fn headers(headers: &HeaderMap, own_cookie: &str) -> Vec<(String, Vec<u8>)> {
    let mut kept = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let value = match *name == header::COOKIE {
            false => value.as_bytes().to_vec(),
            true => {
                let is_own = |cookie: &&[u8]| {
                    let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
                    name == own_cookie.as_bytes()
                };
                let others: Vec<&[u8]> = value.as_bytes().split(|byte| *byte == b';').filter(|cookie| !is_own(cookie)).collect();
                if others.is_empty() {
                    continue;
                }
                others.join(&b";"[..]).trim_ascii().to_vec()
            }
        };
        kept.push((name.as_str().to_owned(), value));
    }
    kept
}

/// The response that a hook chose. A browser never runs its content with the rights of the service's own pages.
fn answered(answer: HookResponse) -> Result<Response, String> {
    let status = StatusCode::from_u16(answer.status)
        .ok()
        .filter(|status| (200..600).contains(&status.as_u16()))
        .ok_or_else(|| format!("the status {}", answer.status))?;
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = status;
    let mut bytes = 0;
    for (name, value) in answer.headers {
        bytes += name.len() + value.len();
        let too_many = || format!("headers of more than {ANSWER_HEADERS_BYTES_MAX} bytes");
        if bytes > ANSWER_HEADERS_BYTES_MAX {
            return Err(too_many());
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("a header named {name:?}"))?;
        let value = HeaderValue::from_bytes(&value).map_err(|_| format!("the value of the header {name}"))?;
        if !ANSWER_HEADERS_KEPT_BACK.contains(&name.as_str()) && !name.as_str().starts_with(PROXY_PREFIX) {
            response.headers_mut().try_append(name, value).map_err(|_| too_many())?;
        }
    }
    let headers = response.headers_mut();
    headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// The hooks. All share one path. The third party decides the form of a request, and the block decides the response.
pub(crate) fn describe(paths: &mut Paths) {
    for method in ["get", "post", "put", "patch", "delete"] {
        let hook = Operation::new(
            format!("hooks.{method}"),
            "hooks",
            format!("Send a {} request to a block's hook", method.to_uppercase()),
        )
        .describe(
            "The block gets the request as it came, and chooses the status, headers and body of the response. The operation \
            ignores sessions.",
        )
        .called_by(Caller::Unseen)
        .parameters([
            path_parameter("block", "The block's name.", json!({ "type": "string" })),
            path_parameter("hook", "The hook's name.", json!({ "type": "string" })),
        ])
        .without(&[401])
        .problems(&[400, 404, 413, 504])
        .response(
            200,
            json!({
                "description": "The response that the hook chose, or `{ \"received\": true }` if it chose none.",
                "headers": response_headers(&[]),
                "content": { "*/*": { "schema": {} } },
            }),
        );
        paths.add(method, "/api/v1/hooks/{block}/{hook}", hook);
    }
}
