//! Events, their stream, deliveries, subscriptions and webhooks.

pub(crate) mod deliveries;
pub(crate) mod stream;
pub(crate) mod webhooks;

use crate::openapi::operation::Paths;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    deliveries::routes().merge(stream::routes()).merge(webhooks::routes())
}

pub(crate) fn describe(paths: &mut Paths) {
    stream::describe(paths);
    deliveries::describe(paths);
    deliveries::describe_subscriptions(paths);
    webhooks::describe(paths);
}
