//! The service itself: settings, status, metrics and probes.

pub(crate) mod document;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod probes_document;
pub(crate) mod settings;

use crate::AppState;
use axum::{Router, routing};

pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/settings", routing::get(settings::list))
        .route("/api/v1/status", routing::get(settings::status))
        .route("/healthz", routing::get(health::alive))
        .route("/readyz", routing::get(health::ready))
}
