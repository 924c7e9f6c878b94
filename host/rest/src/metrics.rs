//! `GET /metrics`: what telemetry has, in Prometheus' text format. There is no such route without telemetry.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::Error;
use blockbase_telemetry::PROMETHEUS_CONTENT_TYPE;

use crate::AppState;
use crate::error::ApiError;

pub(crate) async fn handle(State(state): State<AppState>) -> Result<Response, ApiError> {
    let telemetry = state.settings.telemetry.clone().ok_or_else(|| Error::internal("there is no telemetry"))?;
    // Thousands of series take a while to be written.
    let text = tokio::task::spawn_blocking(move || telemetry.render_prometheus()).await.map_err(Error::internal)?;
    let text = text.map_err(Error::internal)?;
    Ok(([(header::CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE)], text).into_response())
}
