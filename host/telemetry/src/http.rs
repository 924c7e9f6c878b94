//! Spans and metrics of requests, by OpenTelemetry's semantic conventions for HTTP servers.

use std::net::IpAddr;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::instruments::{exports_traces, instruments};
use crate::spans::TARGET;

/// The protocol between this server and the client, or between this server and the proxy before it.
const SCHEME: &str = "http";

/// The data of a request at its beginning.
#[derive(Debug)]
pub struct RequestStart<'a> {
    pub method: &'a str,
    /// The matched route. `None` if no route matches.
    pub route: Option<&'a str>,
    pub path: &'a str,
    pub request_id: &'a str,
    pub client: IpAddr,
    /// The headers that name the caller's trace.
    pub traceparent: Option<&'a str>,
    pub tracestate: Option<&'a str>,
}

/// The method as an attribute. All unknown methods share one value.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// The span of a request. It belongs to the caller's trace if the request names one.
pub fn request_span(start: &RequestStart<'_>) -> Span {
    if !exports_traces() {
        return Span::none();
    }
    let method = known_method(start.method);
    let verb = if method == "_OTHER" { "HTTP" } else { method };
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = %format_args!("{verb}{}{}", if start.route.is_some() { " " } else { "" }, start.route.unwrap_or_default()),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = start.route,
        http.response.status_code = Empty,
        url.scheme = SCHEME,
        url.path = start.path,
        client.address = %start.client,
        request.id = start.request_id,
        "error.type" = Empty,
    );
    if start.traceparent.is_some() {
        // This fails for a span that is not sampled or has already begun. Both cases are harmless.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Caller(start)));
    }
    span
}

/// Records a response: its status in the span, and its duration.
pub fn request_answered(span: &Span, method: &str, route: Option<&str>, status: u16, took: Duration) {
    let Some(instruments) = instruments() else { return };
    let mut attributes = Vec::with_capacity(5);
    attributes.push(KeyValue::new("http.request.method", known_method(method)));
    attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
    attributes.push(KeyValue::new("url.scheme", SCHEME));
    if let Some(route) = route {
        attributes.push(KeyValue::new("http.route", route.to_owned()));
    }
    if status >= 500 {
        attributes.push(KeyValue::new("error.type", status.to_string()));
        span.record("error.type", status.to_string());
        span.record("otel.status_code", "ERROR");
    }
    span.record("http.response.status_code", status);
    instruments.request_duration.record(took.as_secs_f64(), &attributes);
}

/// The part of a request that names its caller's trace.
struct Caller<'a>(&'a RequestStart<'a>);

impl Extractor for Caller<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.0.traceparent,
            "tracestate" => self.0.tracestate,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}
