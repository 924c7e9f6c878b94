//! Determines the address of the client.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The networks whose `X-Forwarded-For` header is trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(pub Vec<IpNet>);

impl TrustedProxies {
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client's address. Behind trusted proxies it is the last address in `X-Forwarded-For` that is not a trusted proxy.
    pub(crate) fn client(&self, socket: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = socket.ip().to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let headers = headers.get_all("x-forwarded-for").iter();
        let hops: Vec<_> = headers.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).collect();
        for hop in hops.into_iter().rev() {
            let Some(address) = std::str::from_utf8(hop).ok().and_then(|hop| hop_address(hop.trim())) else { break };
            client = address.to_canonical();
            if !self.trusts(client) {
                break;
            }
        }
        client
    }
}

/// Parses the address of one hop in the header. It may have a port.
fn hop_address(hop: &str) -> Option<IpAddr> {
    hop.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let proxies = TrustedProxies(vec!["10.0.0.0/8".parse().expect("a network")]);
        let client = |socket: &str, forwarded: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", axum::http::HeaderValue::from_static(forwarded));
            proxies.client(SocketAddr::new(socket.parse().expect("an address"), 1), &headers).to_string()
        };
        assert_eq!(client("192.0.2.1", "198.51.100.7"), "192.0.2.1");
        assert_eq!(client("10.0.0.1", "198.51.100.7"), "198.51.100.7");
        assert_eq!(client("10.0.0.1", "203.0.113.9, 198.51.100.7, 10.0.0.2"), "198.51.100.7");
        assert_eq!(client("10.0.0.1", "198.51.100.7:4711, 10.0.0.2:80"), "198.51.100.7");
        assert_eq!(client("10.0.0.1", "[2001:db8::1]:4711"), "2001:db8::1");
        assert_eq!(client("::ffff:10.0.0.1", "not an address"), "10.0.0.1");
    }
}
