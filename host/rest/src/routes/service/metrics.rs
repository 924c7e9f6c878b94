//! `GET /metrics`: the metrics of telemetry in Prometheus' text format, for operators of the server.
//!
//! Metrics contain names of topics, blocks and consumer groups, which not every caller may know. So the server shows them to
//! clients that send the token. If no token is configured, it shows them to clients of the metrics' own listener. If there is no
//! such listener, or if it is on loopback, it shows them only to clients on this machine.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use blockbase_app::schema::{Code, Error, Result};
use blockbase_telemetry::{PROMETHEUS_CONTENT_TYPE, Telemetry};
use sha2::{Digest, Sha256};

use crate::AppState;
use crate::answer::error::{ApiError, no_method, no_route};
use crate::edge::host::{KnownHosts, NamedHost};
use crate::edge::security_headers;

/// The metrics, and the rule about the clients that may see them.
#[derive(Clone)]
pub struct Metrics {
    pub telemetry: Telemetry,
    pub access: MetricsAccess,
}

/// The rule of one listener.
#[derive(Clone)]
pub enum MetricsAccess {
    /// Clients that send this bearer token.
    Token(String),
    /// Clients on this machine that send no headers of a proxy. If the public URL does not lead to this machine, no client is
    /// admitted, because a proxy on this machine could make all clients look local.
    ThisMachine { public_url_is_local: bool, hosts: KnownHosts },
    /// All clients of the metrics' own listener, which is not on loopback.
    Anybody,
}

impl MetricsAccess {
    fn check(&self, uri: &Uri, peer: SocketAddr, headers: &HeaderMap) -> Result<()> {
        match self {
            MetricsAccess::Anybody => Ok(()),
            MetricsAccess::Token(token) => {
                let sent = headers.get(header::AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
                let sent = sent.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
                // Hashes are compared, so that the time of the comparison reveals nothing about the token.
                match sent.is_some_and(|(_, sent)| Sha256::digest(sent.trim_ascii()) == Sha256::digest(token)) {
                    true => Ok(()),
                    false => {
                        Err(Error::new(Code::Unauthorized, "Send the token of SVC_METRICS_TOKEN as `Authorization: Bearer …`."))
                    }
                }
            }
            MetricsAccess::ThisMachine { public_url_is_local, hosts } => {
                let is_forwarded = headers.keys().any(|name| name == "forwarded" || name.as_str().starts_with("x-forwarded-"));
                let is_here = *public_url_is_local && peer.ip().to_canonical().is_loopback() && !is_forwarded;
                let is_known = NamedHost::of(uri, headers).is_ok_and(|host| hosts.check(&host).is_ok());
                // Scripts of web pages in a browser on this machine also send requests from this machine.
                match is_here && is_known && !headers.contains_key(header::ORIGIN) {
                    true => Ok(()),
                    false => Err(Error::new(
                        Code::Forbidden,
                        "Metrics are shown only to clients on this machine. Set SVC_METRICS_TOKEN or SVC_METRICS_LISTEN to \
                        scrape them from elsewhere.",
                    )),
                }
            }
        }
    }
}

impl Metrics {
    async fn answer(&self, uri: &Uri, peer: SocketAddr, headers: &HeaderMap) -> Result<Response> {
        self.access.check(uri, peer, headers)?;
        let telemetry = self.telemetry.clone();
        // Writing thousands of series takes some time.
        let text = tokio::task::spawn_blocking(move || telemetry.render_prometheus()).await.map_err(Error::internal)?;
        let text = text.map_err(Error::internal)?;
        Ok(([(header::CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE)], text).into_response())
    }
}

/// Serves the metrics on the main listener, if they have no listener of their own.
pub(crate) async fn handle(
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let metrics = state.settings.metrics.as_ref().ok_or_else(|| Error::internal("the settings have no metrics"))?;
    Ok(metrics.answer(&uri, peer, &headers).await?)
}

/// The router of the metrics' own listener. It serves only `GET /metrics`.
pub fn metrics_router(metrics: Metrics) -> Router {
    async fn answer(
        State(metrics): State<Metrics>,
        ConnectInfo(peer): ConnectInfo<SocketAddr>,
        uri: Uri,
        headers: HeaderMap,
    ) -> Response {
        let answered = metrics.answer(&uri, peer, &headers).await;
        let mut response = answered.unwrap_or_else(|error| ApiError(error).into_response());
        security_headers::add_headers(uri.path(), false, response.headers_mut());
        response
    }
    Router::new().route("/metrics", get(answer)).fallback(no_route).method_not_allowed_fallback(no_method).with_state(metrics)
}
