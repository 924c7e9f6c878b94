//! Checks the host that a request names against the names of this server.
//!
//! An attacker can make the name of a page resolve to this server (DNS rebinding). The browser then sends that name in `Host`. So
//! the server accepts only names in the configuration. DNS cannot rebind an IP address, so it accepts every IP address.

use std::net::{IpAddr, SocketAddr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use url::{Host, Url};

/// The names of this server. Every IP address is accepted as well.
#[derive(Clone, Debug, Default)]
pub struct KnownHosts {
    names: Vec<KnownHost>,
    /// The hosts that most requests name: the text of `Host`, and what it means. All of them are accepted.
    usual: Vec<(String, NamedHost)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownHost {
    /// The name in lower case.
    name: String,
    /// `None` means the default port of http or https.
    port: Option<u16>,
    /// Whether the name is accepted without a port too, because some proxies pass it on like that.
    port_may_be_left_out: bool,
}

/// The reason for refusing the host of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostProblem {
    /// The host is missing or malformed, or the request names several hosts.
    Malformed,
    /// The name is not a name of this server.
    Unknown(String),
}

/// The host that a request names.
#[derive(Clone, Debug, Eq)]
pub(crate) struct NamedHost {
    /// The name in lower case. An IPv6 address is in brackets.
    name: String,
    /// `None` for port 80, port 443, and no port.
    port: Option<u16>,
    /// The port as the request names it.
    named_port: Option<u16>,
}

impl PartialEq for NamedHost {
    /// Whether both have the same name and port. Port 80, port 443 and no port count as the same, because a proxy may hide the
    /// port.
    fn eq(&self, other: &NamedHost) -> bool {
        (&self.name, self.port) == (&other.name, other.port)
    }
}

impl NamedHost {
    /// Reads `Host`. If the request target is absolute, its authority has to be the same.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Result<NamedHost, HostProblem> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(HostProblem::Malformed) };
        let named = host.to_str().ok().and_then(|host| host.parse().ok()).and_then(|host| NamedHost::read(&host));
        let named = named.ok_or(HostProblem::Malformed)?;
        match uri.authority().map(NamedHost::read) {
            None => Ok(named),
            Some(Some(target)) if target == named => Ok(named),
            Some(_) => Err(HostProblem::Malformed),
        }
    }

    fn read(authority: &Authority) -> Option<NamedHost> {
        let name = authority.host().to_ascii_lowercase();
        // Parsers disagree about which part is the host if a user name comes before it (`evil@127.0.0.1`).
        let is_plain = !name.is_empty() && !authority.as_str().contains('@');
        let rest = authority.as_str().get(name.len()..)?;
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some("") => None,
            Some(port) => Some(port.parse().ok()?),
            None => return None,
        };
        is_plain.then(|| NamedHost { name, port: port.filter(|port| !matches!(port, 80 | 443)), named_port: port })
    }

    pub(crate) fn is_ip(&self) -> bool {
        let bare = self.name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&self.name);
        bare.parse::<IpAddr>().is_ok()
    }

    /// Whether a page of `origin` came from this host, so that scheme, name and port are the same.
    ///
    /// A request does not name its scheme. Port 80 means http, port 443 https, and without a port the scheme is that of the public URL. On
    /// any other port only one server listens, so both schemes are accepted.
    pub(crate) fn is_origin(&self, origin: &str, public_scheme: &str) -> bool {
        let schemes: &[&str] = match self.named_port {
            None => &[public_scheme],
            Some(80) => &["http"],
            Some(443) => &["https"],
            Some(_) => &["http", "https"],
        };
        let port = self.named_port.map(|port| format!(":{port}")).unwrap_or_default();
        let Ok(page) = Url::parse(origin) else { return false };
        let own = schemes.iter().filter_map(|scheme| Url::parse(&format!("{scheme}://{}{port}", self.name)).ok());
        page.path() == "/" && page.origin().is_tuple() && own.map(|own| own.origin()).any(|own| own == page.origin())
    }

    fn text(&self) -> String {
        match self.port {
            None => self.name.clone(),
            Some(port) => format!("{}:{port}", self.name),
        }
    }
}

/// Whether a URL names this machine by a loopback address.
pub fn is_loopback_url(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether a URL names this machine, by a loopback address or by the unspecified address.
pub(crate) fn is_local(url: &Url) -> bool {
    let is_every_address = match url.host() {
        Some(Host::Ipv4(address)) => address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_unspecified(),
        Some(Host::Domain(_)) | None => false,
    };
    is_loopback_url(url) || is_every_address
}

impl KnownHosts {
    /// Accepts the hosts of the public URL and of the trusted origins, and `localhost` with the port that the server listens on.
    pub fn new(public_url: &str, listen: SocketAddr, trusted_origins: &[String]) -> KnownHosts {
        let urls = std::iter::once(public_url).chain(trusted_origins.iter().map(String::as_str));
        let named = urls.filter_map(|url| Url::parse(url).ok()).filter_map(|url| {
            let name = url.host_str()?.to_ascii_lowercase();
            let port_may_be_left_out = !is_local(&url);
            // The public URL may be `http://0.0.0.0:4000`, but people type `localhost`.
            let name = if is_local(&url) { "localhost".to_owned() } else { name };
            Some(KnownHost { name, port: url.port().filter(|port| !matches!(port, 80 | 443)), port_may_be_left_out })
        });
        let port = Some(listen.port()).filter(|port| !matches!(port, 80 | 443));
        let listened = KnownHost { name: "localhost".to_owned(), port, port_may_be_left_out: false };
        let hosts = KnownHosts { names: named.chain([listened]).collect(), usual: Vec::new() };
        let with_ports = hosts.names.iter().map(|known| (known.name.as_str(), known.port));
        let without_ports = hosts.names.iter().map(|known| (known.name.as_str(), None));
        let mut usual = Vec::new();
        for (name, port) in with_ports.chain(without_ports).chain([("127.0.0.1", port), ("[::1]", port)]) {
            let text = NamedHost { name: name.to_owned(), port, named_port: port }.text();
            let host = text.parse::<Authority>().ok().and_then(|authority| NamedHost::read(&authority));
            if let Some(host) = host.filter(|host| hosts.check(host).is_ok()) {
                usual.push((text, host));
            }
        }
        KnownHosts { usual, ..hosts }
    }

    /// What [`NamedHost::of`] returns for a request that names this server in a usual way. [`KnownHosts::check`] accepts it.
    /// `None` for every other request.
    pub(crate) fn usual(&self, uri: &Uri, headers: &HeaderMap) -> Option<&NamedHost> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None, None) = (hosts.next(), hosts.next(), uri.authority()) else { return None };
        self.usual.iter().find(|(text, _)| text.as_bytes() == host.as_bytes()).map(|(_, host)| host)
    }

    /// # Errors
    /// If the name does not belong to this server.
    pub(crate) fn check(&self, host: &NamedHost) -> Result<(), HostProblem> {
        let is_known = |known: &KnownHost| {
            let left_out = known.port_may_be_left_out && host.port.is_none();
            known.name == host.name && (known.port == host.port || left_out)
        };
        match host.is_ip() || self.names.iter().any(is_known) {
            true => Ok(()),
            false => Err(HostProblem::Unknown(host.text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn named(host: &str) -> Result<NamedHost, HostProblem> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).expect("a header"));
        NamedHost::of(&Uri::from_static("/api/v1/me"), &headers)
    }

    #[test]
    fn a_host_is_a_name_with_a_port_or_without() {
        for host in ["evil@127.0.0.1", "@127.0.0.1", "", "a b", "a/b", ":4000", "127.0.0.1:x", "127.0.0.1:99999", "http://a"] {
            assert_eq!(named(host), Err(HostProblem::Malformed), "{host}");
        }
        assert_eq!(named("API.example.com:443"), named("api.example.com"));
        assert_ne!(named("api.example.com:4000"), named("api.example.com"));
        let mut headers = HeaderMap::new();
        assert_eq!(NamedHost::of(&Uri::from_static("/"), &headers), Err(HostProblem::Malformed));
        headers.append(header::HOST, HeaderValue::from_static("a.example"));
        assert!(NamedHost::of(&Uri::from_static("http://a.example/"), &headers).is_ok());
        assert_eq!(NamedHost::of(&Uri::from_static("http://b.example/"), &headers), Err(HostProblem::Malformed));
        headers.append(header::HOST, HeaderValue::from_static("b.example"));
        assert_eq!(NamedHost::of(&Uri::from_static("/"), &headers), Err(HostProblem::Malformed));
    }

    #[test]
    fn only_names_of_this_server_and_addresses_are_answered() {
        let trusted = ["https://app.example.com".to_owned()];
        let hosts = KnownHosts::new("https://api.example.com:8443/base", ([0, 0, 0, 0], 4000).into(), &trusted);
        let is_let_in = |host: &str| hosts.check(&named(host).expect("a host")).is_ok();
        for host in [
            "api.example.com:8443",
            "API.example.com",
            "app.example.com:443",
            "localhost:4000",
            "127.0.0.1:4000",
            "[::1]:4000",
            "192.0.2.7:8080",
            "[2001:db8::1]",
        ] {
            assert!(is_let_in(host), "{host}");
        }
        for host in [
            "evil.example",
            "api.example.com:4000",
            "localhost:4001",
            "localhost",
            "api.example.com.evil.example",
            "127.0.0.1.evil",
        ] {
            assert!(!is_let_in(host), "{host}");
        }
    }

    #[test]
    fn a_usual_host_means_the_same_as_if_it_were_read() {
        let trusted = ["https://app.example.com".to_owned(), "http://b\u{fc}cher.example:80".to_owned()];
        let at = |public: &str, port: u16| KnownHosts::new(public, ([127, 0, 0, 1], port).into(), &trusted);
        let usual = |hosts: &KnownHosts, host: &str, uri: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).expect("a header"));
            let found = hosts.usual(&Uri::from_static(uri), &headers).cloned();
            headers.append(header::HOST, HeaderValue::from_static("localhost:4000"));
            assert_eq!(hosts.usual(&Uri::from_static(uri), &headers), None, "{host}: two hosts");
            found
        };
        for (public, port) in [("https://api.example.com:8443/base", 4000), ("http://localhost:4000", 4000), ("http://[::1]", 80)]
        {
            let hosts = at(public, port);
            assert!(hosts.usual.len() >= 5, "{hosts:?}");
            for (text, host) in &hosts.usual {
                let read = named(text).expect("a host");
                assert_eq!((&read, read.named_port), (host, host.named_port), "{text}");
                assert_eq!(hosts.check(&read), Ok(()), "{text}");
                assert_eq!(usual(&hosts, text, "/api/v1/me").as_ref(), Some(host), "{text}");
                assert_eq!(usual(&hosts, text, "http://localhost:4000/api/v1/me"), None, "{text}");
            }
        }
        let hosts = at("https://api.example.com:8443/base", 4000);
        for host in
            ["localhost:4000", "127.0.0.1:4000", "[::1]:4000", "api.example.com:8443", "api.example.com", "app.example.com"]
        {
            assert!(usual(&hosts, host, "/").is_some(), "{host}");
        }
        // These are read, and some of them are accepted too.
        for host in
            ["", "localhost", "LOCALHOST:4000", "localhost:4000 ", "127.0.0.1:4001", "evil.example", "app.example.com:443"]
        {
            assert_eq!(usual(&hosts, host, "/"), None, "{host}");
        }
    }

    #[test]
    fn a_page_is_of_the_host_that_its_request_names() {
        let host = named("192.0.2.7:4000").expect("a host");
        let is_own = |origin: &str| host.is_origin(origin, "https");
        assert!(host.is_ip() && is_own("http://192.0.2.7:4000") && is_own("https://192.0.2.7:4000"));
        for origin in
            ["http://192.0.2.7:4001", "http://192.0.2.7", "http://192.0.2.8:4000", "null", "", "http://192.0.2.7:4000/x"]
        {
            assert!(!is_own(origin), "{origin}");
        }
        // Ports 80 and 443 belong to two servers. Without a port, the scheme of the public URL decides which one is meant.
        for (host, public, own, foreign) in [
            ("192.0.2.7", "https", "https://192.0.2.7", "http://192.0.2.7"),
            ("192.0.2.7", "http", "http://192.0.2.7:80", "https://192.0.2.7"),
            ("192.0.2.7:443", "http", "https://192.0.2.7:443", "http://192.0.2.7:443"),
            ("192.0.2.7:80", "https", "http://192.0.2.7", "https://192.0.2.7"),
            ("[2001:db8::1]", "https", "https://[2001:db8::1]", "http://[2001:db8::1]"),
        ] {
            let named = named(host).expect("a host");
            assert!(named.is_origin(own, public) && !named.is_origin(foreign, public), "{host} {public}");
        }
    }
}
