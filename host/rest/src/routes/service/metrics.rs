//! `GET /metrics`: the metrics of telemetry in Prometheus' text format, for operators of the server.
//!
//! Metrics contain names of topics, blocks and consumer groups, which not every caller may know. So the server shows them to
//! clients that send the token. If no token is configured, it shows them to clients of the metrics' own listener. If there is no
//! such listener, or if it is on loopback, it shows them only to clients on this machine.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::answer::error::{ApiError, no_method, no_route};
use crate::edge::security_headers;
use crate::trust::metrics_access::Metrics;

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
