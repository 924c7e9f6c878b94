//! Collects data about a request for telemetry, from its arrival to its response. Nothing is collected if telemetry is off.

use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use blockbase_telemetry::RequestStart;
use tracing::Span;

use crate::request::extract::RequestInfo;

/// A request that is being handled.
pub(crate) struct Observed {
    span: Span,
    /// The method and the route. `None` if telemetry is off.
    request: Option<(Method, Option<MatchedPath>)>,
}

impl Observed {
    pub(crate) fn begin(request: &Request, info: &RequestInfo) -> Observed {
        if !blockbase_telemetry::is_on() {
            return Observed { span: Span::none(), request: None };
        }
        let route = request.extensions().get::<MatchedPath>().cloned();
        let path = shown_path(request.uri().path());
        let span = match path {
            // Machines request these paths every few seconds, so the requests get no span.
            "/healthz" | "/readyz" | "/metrics" => Span::none(),
            _ => blockbase_telemetry::request_span(&RequestStart {
                method: request.method().as_str(),
                route: route.as_ref().map(MatchedPath::as_str),
                path,
                request_id: &info.request_id,
                client: info.address,
                traceparent: header(request.headers(), "traceparent"),
                tracestate: header(request.headers(), "tracestate"),
            }),
        };
        Observed { span, request: Some((request.method().clone(), route)) }
    }

    /// The span that the request runs in.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    pub(crate) fn answered(self, response: &Response, took: Duration) {
        if let Some((method, route)) = &self.request {
            let route = route.as_ref().map(MatchedPath::as_str);
            blockbase_telemetry::request_answered(&self.span, method.as_str(), route, response.status().as_u16(), took);
        }
    }
}

/// The path as traces show it. The path of a password link contains the link's token, which is left out.
fn shown_path(path: &str) -> &str {
    const OF_LINKS: &str = "/api/auth/reset-password/";
    if path.starts_with(OF_LINKS) { OF_LINKS } else { path }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
