//! Around every request: its id, its address, rate limits, the origin check, one log line.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error};
use futures_util::FutureExt;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serde_json::json;
use tracing::Instrument;

use crate::error::ApiError;
use crate::extract::RequestInfo;
use crate::lingering::lingering;
use crate::origin::OriginProblem;
use crate::{AppState, Settings};

/// The rate limiters.
#[derive(Clone)]
pub struct Limits {
    all: Option<Arc<DefaultKeyedRateLimiter<IpAddr>>>,
    auth: Option<Arc<DefaultKeyedRateLimiter<IpAddr>>>,
}

/// Addresses kept by a limiter before those at rest are dropped.
const ADDRESSES_MAX: usize = 50_000;

impl Limits {
    pub(crate) fn new(settings: &Settings) -> Limits {
        let limiter =
            |per_minute: u32| NonZeroU32::new(per_minute).map(|rate| Arc::new(RateLimiter::dashmap(Quota::per_minute(rate))));
        Limits { all: limiter(settings.requests_per_minute), auth: limiter(settings.auth_requests_per_minute) }
    }

    /// Counts a request; answers with the seconds to wait where there were too many.
    fn check(limiter: &Option<Arc<DefaultKeyedRateLimiter<IpAddr>>>, address: IpAddr) -> Result<(), u64> {
        let Some(limiter) = limiter else { return Ok(()) };
        if limiter.len() > ADDRESSES_MAX {
            limiter.retain_recent();
        }
        limiter.check_key(&address).map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()).as_secs() + 1)
    }
}

pub(crate) async fn around(State((state, limits)): State<(AppState, Limits)>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    request = request.map(lingering);
    let request_id = sane_request_id(request.headers()).unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let socket = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(SocketAddr::from(([127, 0, 0, 1], 0)), |ConnectInfo(address)| *address);
    let address = state.settings.trusted_proxies.client(socket, request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    request.extensions_mut().insert(RequestInfo { request_id: request_id.clone(), address });
    let span = tracing::info_span!("request", request.id = %request_id);
    let answered = async {
        if let Err(refused) = admit(&state, &limits, address, &request) {
            return *refused;
        }
        // A defect in one handler is that request's 500 and nobody else's.
        AssertUnwindSafe(next.run(request))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| ApiError(Error::internal("a handler panicked")).into_response())
    };
    let mut response = answered.instrument(span.clone()).await;
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    span.in_scope(|| {
        let status = response.status().as_u16();
        let micros = begun.elapsed().as_micros() as u64;
        tracing::debug!(http.method = %method, http.path = %path, http.status = status, http.micros = micros, "answered");
    });
    response
}

/// Rate limits and the origin check, before anything is read or looked up.
fn admit(state: &AppState, limits: &Limits, address: IpAddr, request: &Request) -> Result<(), Box<Response>> {
    let path = request.uri().path();
    if matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return Ok(());
    }
    let auth = if path.starts_with("/api/auth/") { &limits.auth } else { &None };
    for limiter in [&limits.all, auth] {
        Limits::check(limiter, address).map_err(|seconds| Box::new(too_many(seconds)))?;
    }
    state.settings.trusted_origins.check(request.method(), path, request.headers()).map_err(|problem| {
        let (code, message) = match problem {
            OriginProblem::Untrusted => {
                ("INVALID_ORIGIN", "The request comes from an origin that is not trusted (SVC_TRUSTED_ORIGINS).")
            }
            OriginProblem::Missing => ("MISSING_OR_NULL_ORIGIN", "A write with a cookie needs an Origin or Referer header."),
        };
        let body = json!({ "code": code, "error": code, "message": message });
        Box::new((StatusCode::FORBIDDEN, axum::Json(body)).into_response())
    })
}

fn too_many(seconds: u64) -> Response {
    let message = format!("Too many requests from this address. Try again in {seconds} s.");
    let mut response = ApiError(Error::new(Code::RateLimited, message)).into_response();
    let seconds = HeaderValue::from(seconds);
    response.headers_mut().insert("x-retry-after", seconds.clone());
    response.headers_mut().insert("retry-after", seconds);
    response
}

/// Longest request id taken from a caller, in characters.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// The caller's own id, if it holds nothing that could disturb a log.
fn sane_request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    let sane = !id.is_empty()
        && id.len() <= REQUEST_ID_CHARS_MAX
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'));
    sane.then(|| id.to_owned())
}
