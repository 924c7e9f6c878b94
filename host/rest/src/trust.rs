//! The machines and names that the server trusts: proxies, hosts, the origins of pages, and the clients that may read metrics.

pub(crate) mod address;
pub(crate) mod host;
pub(crate) mod metrics_access;
pub(crate) mod origin;
