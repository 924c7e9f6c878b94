//! The owner of a request's share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The network whose requests count together: an IPv4 address, or a /64 of IPv6, because a single host may use all addresses of
/// it. An IPv4 address in its IPv6 form counts as the IPv4 address.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

/// The owner of the share that a request uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuotaOwner {
    /// The service itself: background work and reads of its own tables. It has its own places.
    Service,
    /// A signed-in user, with all their sessions, and the keys that they made for themselves.
    User(Arc<str>),
    /// An API key that somebody else made for its user, or that has no maker.
    Key(Arc<str>),
    /// A guest or a caller without a credential, identified by their network.
    Address(IpAddr),
    /// A block that handles events. It is the owner because no caller invoked it.
    Block(Arc<str>),
}

impl QuotaOwner {
    /// The owner for a network address.
    pub fn at(address: IpAddr) -> QuotaOwner {
        QuotaOwner::Address(network_of(address))
    }

    /// Does the same as [`QuotaOwner::at`]. Requests with an unknown address share one owner.
    pub fn of_address(address: Option<IpAddr>) -> QuotaOwner {
        QuotaOwner::at(address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }

    pub fn is_service(&self) -> bool {
        *self == QuotaOwner::Service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let network_of = |text: &str| network_of(text.parse().expect("an address")).to_string();
        assert_eq!(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network_of("2001:db8:1:2:ffff::1"), network_of("2001:db8:1:2::"));
        assert_ne!(network_of("2001:db8:1:3::1"), network_of("2001:db8:1:2::1"));
        assert_ne!(network_of("192.0.2.1"), network_of("192.0.2.2"));
        assert_eq!(network_of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
