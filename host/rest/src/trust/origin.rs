//! Origins: the pages that may call this server.

use std::net::SocketAddr;

use axum::http::{HeaderMap, Method, header};
use url::Url;

use crate::trust::host::{NamedHost, is_local};

/// Origins whose pages may call this server. Its own origin is among them.
#[derive(Clone, Debug, Default)]
pub struct TrustedOrigins {
    origins: Vec<String>,
    /// The scheme of the public URL.
    scheme: String,
}

/// The reason for refusing the origin of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OriginProblem {
    /// The origin of the request is not trusted.
    Untrusted(String),
    Missing,
}

/// Names that people and browsers use for their own machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// The maximum number of characters of a foreign origin that an error shows.
const SHOWN_CHARS_MAX: usize = 200;

impl TrustedOrigins {
    /// The origin of the public URL, and the `configured` ones. If the public URL is on this machine, the other names of this
    /// machine with the same port (`localhost`, `127.0.0.1`, `[::1]`) are trusted too, because they lead to the same server.
    pub fn new(public_url: &str, listen: SocketAddr, configured: &[String]) -> TrustedOrigins {
        let public = Url::parse(public_url).ok();
        let mut origins: Vec<String> = public.iter().map(|url| url.origin().ascii_serialization()).collect();
        let scheme = public.as_ref().map_or("http", Url::scheme).to_owned();
        if let Some(url) = public.filter(is_local) {
            let own_port = url.port_or_known_default().unwrap_or(listen.port());
            for (scheme, port) in [(url.scheme(), own_port), ("http", listen.port())] {
                let spellings = LOOPBACK.map(|name| format!("{scheme}://{name}:{port}"));
                // The URL is parsed, so that the scheme's default port is left out.
                origins
                    .extend(spellings.iter().filter_map(|origin| Some(Url::parse(origin).ok()?.origin().ascii_serialization())));
            }
        }
        origins.extend(configured.iter().cloned());
        let mut seen = std::collections::HashSet::new();
        origins.retain(|origin| seen.insert(origin.clone()));
        TrustedOrigins { origins, scheme }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.origins.iter().map(String::as_str)
    }

    fn trusts(&self, origin: &str) -> bool {
        self.origins.iter().any(|trusted| trusted.eq_ignore_ascii_case(origin))
    }

    /// Whether a redirect to `url` is allowed: the target has to be a path that no browser takes for another host, or a URL of a
    /// trusted origin.
    pub(crate) fn may_lead_to(&self, url: &str) -> bool {
        if !url.starts_with('/') {
            return Url::parse(url).is_ok_and(|url| url.host().is_some() && self.trusts(&url.origin().ascii_serialization()));
        }
        let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let is_plain = !url.starts_with("//") && !url.contains('\\') && !url.chars().any(char::is_control);
        is_plain && !path.contains("%2f") && !path.contains("%5c")
    }

    /// Checks the origin of a request. `host` is the checked host of the request.
    ///
    /// If a request has an `Origin`, the origin has to be trusted, even for a read: a browser sends the header for scripts of other
    /// origins, and for forms. A write with cookies needs `Origin`, or else `Referer`.
    ///
    /// # Errors
    /// If the origin is not trusted, or if it is missing although the request needs one.
    pub(crate) fn check(&self, method: &Method, host: &NamedHost, headers: &HeaderMap) -> Result<(), OriginProblem> {
        let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let writes_with_cookie =
            !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) && headers.contains_key(header::COOKIE);
        let mut origins: Vec<String> = headers.get_all(header::ORIGIN).iter().map(text).collect();
        if origins.is_empty() && writes_with_cookie {
            origins.extend(headers.get(header::REFERER).map(text).and_then(|referer| origin_of(&referer)));
        }
        if writes_with_cookie && origins.iter().all(|origin| origin == "null") {
            return Err(OriginProblem::Missing);
        }
        // A page from an IP address of this server belongs to the server. A page from a name is trusted only if the name is
        // configured.
        let is_own = |origin: &str| host.is_ip() && host.is_origin(origin, &self.scheme);
        match origins.into_iter().find(|origin| !self.trusts(origin) && !is_own(origin)) {
            None => Ok(()),
            Some(origin) => Err(OriginProblem::Untrusted(origin.chars().take(SHOWN_CHARS_MAX).collect())),
        }
    }
}

fn origin_of(referer: &str) -> Option<String> {
    Url::parse(referer).ok().map(|url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_away() {
        let trusted = TrustedOrigins::new("https://app.example", ([127, 0, 0, 1], 4000).into(), &[]);
        for good in ["/", "/welcome?to=%2F#x", "https://app.example/x", "https://APP.example"] {
            assert!(trusted.may_lead_to(good), "{good}");
        }
        for bad in [
            "//evil.example",
            "/\\evil.example",
            "/%2fevil.example",
            "/%5Cevil.example",
            "/\t/evil.example",
            "https://evil.example",
            "https://app.example.evil.example",
            "https://app.example@evil.example",
            "http://app.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "evil",
            "",
        ] {
            assert!(!trusted.may_lead_to(bad), "{bad}");
        }
    }

    #[test]
    fn foreign_pages_may_do_nothing_and_cookies_need_an_origin() {
        let listen = ([0, 0, 0, 0], 4000).into();
        let trusted = TrustedOrigins::new("http://localhost:4000", listen, &["https://app.example".to_owned()]);
        let check = |method: Method, host: &'static str, pairs: &[(header::HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs.iter().chain([&(header::HOST, host)]) {
                headers.append(name, axum::http::HeaderValue::from_static(value));
            }
            let host = NamedHost::of(&axum::http::Uri::from_static("/"), &headers).expect("a host");
            trusted.check(&method, &host, &headers)
        };
        let own = "localhost:4000";
        let cookie = (header::COOKIE, "svc.session_token=x");
        let untrusted = |origin: &str| Err(OriginProblem::Untrusted(origin.to_owned()));
        assert_eq!(check(Method::POST, own, &[]), Ok(()));
        assert_eq!(check(Method::GET, own, std::slice::from_ref(&cookie)), Ok(()));
        for method in [Method::GET, Method::POST, Method::DELETE] {
            for origin in ["http://evil.example", "http://localhost:4001", "https://localhost:4000", "http://app.example"] {
                assert_eq!(check(method.clone(), own, &[(header::ORIGIN, origin)]), untrusted(origin));
            }
            assert_eq!(check(method.clone(), own, &[(header::ORIGIN, "null")]), untrusted("null"));
            for origin in ["http://localhost:4000", "http://127.0.0.1:4000", "http://[::1]:4000", "https://app.example"] {
                assert_eq!(check(method.clone(), own, &[(header::ORIGIN, origin), cookie.clone()]), Ok(()), "{origin}");
            }
        }
        assert_eq!(check(Method::POST, own, std::slice::from_ref(&cookie)), Err(OriginProblem::Missing));
        assert_eq!(check(Method::POST, own, &[cookie.clone(), (header::ORIGIN, "null")]), Err(OriginProblem::Missing));
        let twice = [cookie.clone(), (header::ORIGIN, "http://localhost:4000"), (header::ORIGIN, "http://evil.example")];
        assert_eq!(check(Method::POST, own, &twice), untrusted("http://evil.example"));
        assert_eq!(check(Method::POST, own, &[cookie.clone(), (header::REFERER, "http://localhost:4000/x?y")]), Ok(()));
        let referer = (header::REFERER, "http://evil.example/x");
        assert_eq!(check(Method::POST, own, &[cookie.clone(), referer]), untrusted("http://evil.example"));
        // A page that was opened under an address of the server.
        let by_address = (header::ORIGIN, "http://192.0.2.7:4000");
        assert_eq!(check(Method::POST, "192.0.2.7:4000", &[cookie.clone(), by_address.clone()]), Ok(()));
        assert_eq!(check(Method::POST, own, &[cookie, by_address]), untrusted("http://192.0.2.7:4000"));
    }

    #[test]
    fn loopback_spellings_are_trusted_where_the_public_url_is_one() {
        let listen = ([127, 0, 0, 1], 4000).into();
        let elsewhere = TrustedOrigins::new("https://api.example.com", listen, &[]);
        assert!(elsewhere.trusts("https://api.example.com") && !elsewhere.trusts("http://localhost:4000"));
        let here = TrustedOrigins::new("http://127.0.0.1:80", listen, &[]);
        assert!(here.trusts("http://localhost") && here.trusts("http://[::1]:4000") && !here.trusts("https://localhost"));
    }
}
