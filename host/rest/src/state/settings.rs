//! The settings of the surface.

use crate::trust::address::TrustedProxies;
use crate::trust::host::KnownHosts;
use crate::trust::metrics_access::Metrics;
use crate::trust::origin::TrustedOrigins;

/// The parts of the configuration that the surface needs.
#[derive(Clone)]
pub struct Settings {
    pub body_bytes_max: usize,
    pub block_bytes_max: usize,
    /// The maximum number of requests of an address in a minute. 0 means no limit.
    pub requests_per_minute: u32,
    /// The maximum number of requests of an address to `/api/auth` in a minute. 0 means no limit.
    pub auth_requests_per_minute: u32,
    pub trusted_proxies: TrustedProxies,
    pub trusted_origins: TrustedOrigins,
    /// The names of this server. Requests for other hosts are refused.
    pub hosts: KnownHosts,
    /// Whether the public URL has the scheme https. Responses then tell browsers to use only https.
    pub is_https: bool,
    /// The metrics that `/metrics` shows, and the clients that may see them. `None` if the route does not exist.
    pub metrics: Option<Metrics>,
    /// Whether each request gets a line in the log.
    pub log_requests: bool,
}
