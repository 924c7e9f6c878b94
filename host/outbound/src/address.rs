//! Decides which addresses outbound calls may use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::IpNet;
use url::{Host, Url};

/// Networks that are not part of the public internet, from IANA's special-purpose registries: loopback, private, link-local (with the
/// metadata services of clouds), carrier-grade NAT, documentation, benchmarking, multicast, reserved.
const NOT_PUBLIC: [&str; 30] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    // Addresses that a translator maps to IPv4 addresses.
    "::ffff:0:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    // Teredo and the other protocol assignments. Teredo obfuscates the address that it embeds.
    "2001::/23",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    // The metadata services of Alibaba and Oracle. Their addresses are in public ranges.
    "100.100.100.200/32",
    "192.0.0.192/32",
];

static NETWORKS: LazyLock<Vec<IpNet>> = LazyLock::new(|| NOT_PUBLIC.iter().filter_map(|network| network.parse().ok()).collect());

/// The reason for refusing a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("only http and https URLs are called")]
    Scheme,
    #[error("the URL has no host")]
    Host,
    #[error("{0} is not an address of the public internet, and SVC_ALLOW_PRIVATE_NETWORK is not set")]
    Private(String),
}

/// Whether calls may go to addresses outside of the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPolicy {
    pub allow_private: bool,
}

impl AddressPolicy {
    pub fn allows(self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }

    /// Checks a URL before its host name is resolved.
    ///
    /// # Errors
    /// If the URL has another scheme than http or https, if its host is an address that must not be called, or if it names the
    /// machine itself.
    pub fn check_url(self, url: &Url) -> Result<(), Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme);
        }
        // The parser has already turned forms such as `127.1` and `0x7f000001` into the usual one.
        let address = match url.host().ok_or(Refused::Host)? {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                let is_own = name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost");
                return match is_own && !self.allow_private {
                    true => Err(Refused::Private(name.to_owned())),
                    false => Ok(()),
                };
            }
        };
        if self.allows(address) { Ok(()) } else { Err(Refused::Private(address.to_string())) }
    }
}

fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if NETWORKS.iter().any(|network| network.contains(&address)) {
        return false;
    }
    match address {
        IpAddr::V4(_) => true,
        // If a translator maps an address to IPv4, the address is public if the IPv4 address is public.
        IpAddr::V6(address) => embedded(address).is_none_or(|address| is_public(IpAddr::V4(address))),
    }
}

/// The IPv4 address inside a NAT64, 6to4 or ISATAP address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bytes = address.octets();
    let of = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(of(12)),
        [0x2002, ..] => Some(of(2)),
        // An ISATAP address.
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => Some(of(12)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_is_read() {
        assert_eq!(NETWORKS.len(), NOT_PUBLIC.len());
    }

    #[test]
    fn addresses_that_are_not_public_are_told() {
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "192.0.0.1",
            "100.100.100.200",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "64:ff9b::7f00:1",
            "::ffff:0:7f00:1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:a00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a00:1::",
            "2001::1",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(private.parse().expect("an address")), "{private}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "2002:808:808::",
        ] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
    }

    #[test]
    fn urls_that_name_the_inside_are_told() {
        let policy = AddressPolicy { allow_private: false };
        for inside in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://169.254.169.254/latest",
            "http://0/",
            "ftp://example.com/",
            "file:///etc/passwd",
        ] {
            assert!(policy.check_url(&Url::parse(inside).expect("a URL")).is_err(), "{inside}");
        }
        for outside in ["http://example.com/", "https://1.1.1.1/", "https://[2606:4700::1111]/x"] {
            assert_eq!(policy.check_url(&Url::parse(outside).expect("a URL")), Ok(()), "{outside}");
        }
        let open = AddressPolicy { allow_private: true };
        assert_eq!(open.check_url(&Url::parse("http://127.0.0.1/").expect("a URL")), Ok(()));
        assert!(open.check_url(&Url::parse("ftp://127.0.0.1/").expect("a URL")).is_err());
    }
}
