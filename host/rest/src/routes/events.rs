//! Events, their stream, deliveries, subscriptions and webhooks.

pub(crate) mod deliveries;
pub(crate) mod document;
pub(crate) mod stream;
pub(crate) mod webhooks;

use crate::AppState;
use axum::{Router, routing};

pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/events", routing::get(deliveries::events))
        .route("/api/v1/events/{id}", routing::get(deliveries::event))
        .route("/api/v1/events/stream", routing::get(stream::stream))
        .route("/api/v1/events/deliveries", routing::get(deliveries::list))
        .route("/api/v1/events/deliveries/counts", routing::get(deliveries::counts))
        .route("/api/v1/events/deliveries/{eventId}/{consumer}", routing::get(deliveries::one))
        .route("/api/v1/events/deliveries/retry", routing::post(deliveries::retry))
        .route("/api/v1/events/subscriptions", routing::get(deliveries::subscriptions).post(deliveries::subscribe))
        .route("/api/v1/events/subscriptions/{consumer}", routing::delete(deliveries::unsubscribe))
        .route("/api/v1/webhooks", routing::get(webhooks::list).post(webhooks::create))
        .route("/api/v1/webhooks/{id}", routing::get(webhooks::get).patch(webhooks::update).delete(webhooks::delete))
        .route("/api/v1/events/subscriptions/{consumer}/adopt", routing::post(deliveries::adopt))
        .route("/api/v1/webhooks/{id}/adopt", routing::post(webhooks::adopt))
        .route("/api/v1/webhooks/{id}/test", routing::post(webhooks::test))
        .route("/api/v1/webhooks/{id}/rotate-secret", routing::post(webhooks::rotate_secret))
}
