//! Events, their stream, deliveries, subscriptions and webhooks.

pub(crate) mod deliveries;
pub(crate) mod document;
pub(crate) mod stream;
pub(crate) mod webhooks;

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    deliveries::routes().merge(stream::routes()).merge(webhooks::routes())
}
