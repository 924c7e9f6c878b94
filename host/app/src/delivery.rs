//! Delivery of events to their receivers: subscriptions, webhooks, the live feed and streams.

pub(crate) mod delivery_check;
pub(crate) mod feed;
pub(crate) mod ledger;
pub(crate) mod persist_event;
pub(crate) mod retries;
pub(crate) mod shown;
pub(crate) mod stream;
pub(crate) mod stream_tickets;
pub(crate) mod subscriptions;
pub(crate) mod webhooks;
