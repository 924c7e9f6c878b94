//! Resolves names to addresses that may be called.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{AddressPolicy, Refused};

/// Resolves names with the system's resolver, and drops addresses that must not be called.
pub(crate) struct CheckedResolver(pub(crate) AddressPolicy);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let resolved: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = resolved.iter().copied().filter(|address| policy.allows(address.ip())).collect();
            match (allowed.is_empty(), resolved.first()) {
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
                (true, Some(address)) => {
                    // Only the log has the address, because readers of the ledger must not learn the addresses of the internal network.
                    tracing::debug!(outbound.name = name, outbound.address = %address.ip(), "a name leads to an address that is refused");
                    Err(Refused::Private(name).into())
                }
                (true, None) => Err(format!("{name} has no address").into()),
            }
        })
    }
}
