//! The service itself: settings, status, the audit log, metrics and probes.

pub(crate) mod audit;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod settings;

use crate::routing::Routes;

pub(crate) fn routes(has_metrics: bool) -> Routes {
    let routes = Routes::new()
        .get("/api/v1/settings", settings::list)
        .get("/api/v1/status", settings::status)
        .get("/api/v1/audit", audit::list)
        .get("/healthz", health::alive)
        .get("/readyz", health::ready);
    match has_metrics {
        true => routes.get("/metrics", metrics::handle),
        false => routes,
    }
}
