//! Events, their stream, deliveries, subscriptions and webhooks.

pub(crate) mod deliveries;
pub(crate) mod document;
pub(crate) mod stream;
pub(crate) mod webhooks;

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/events", deliveries::events)
        .get("/api/v1/events/{id}", deliveries::event)
        .get("/api/v1/events/stream", stream::stream)
        .post("/api/v1/events/ticket", stream::ticket)
        .get("/api/v1/events/deliveries", deliveries::list)
        .get("/api/v1/events/deliveries/counts", deliveries::counts)
        .get("/api/v1/events/deliveries/{eventId}/{consumer}", deliveries::one)
        .post("/api/v1/events/deliveries/retry", deliveries::retry)
        .get("/api/v1/events/subscriptions", deliveries::subscriptions)
        .post("/api/v1/events/subscriptions", deliveries::subscribe)
        .delete("/api/v1/events/subscriptions/{consumer}", deliveries::unsubscribe)
        .get("/api/v1/webhooks", webhooks::list)
        .post("/api/v1/webhooks", webhooks::create)
        .get("/api/v1/webhooks/{id}", webhooks::get)
        .patch("/api/v1/webhooks/{id}", webhooks::update)
        .delete("/api/v1/webhooks/{id}", webhooks::delete)
        .post("/api/v1/events/subscriptions/{consumer}/adopt", deliveries::adopt)
        .post("/api/v1/webhooks/{id}/adopt", webhooks::adopt)
        .post("/api/v1/webhooks/{id}/test", webhooks::test)
        .post("/api/v1/webhooks/{id}/rotate-secret", webhooks::rotate_secret)
}
