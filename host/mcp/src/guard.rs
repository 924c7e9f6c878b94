//! Where a request may come from: the names of this server, and the origins that are trusted.
//!
//! A page of a foreign origin whose name was made to lead here (DNS rebinding) speaks with its own name in `Host`, and a browser
//! says in `Origin` whose page it is.

use blockbase_app::schema::{Code, Error, Result};
use http::uri::{Authority, Uri};
use http::{HeaderMap, header};

use crate::Settings;

/// Names under which developers reach a server on their own machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Hosts and origins that are let in.
pub(crate) struct Guard {
    /// Lower-case names, with the port where it is none of a scheme's own.
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// A host as it is compared: `https` and `http` leave out their own port.
fn comparable(authority: &Authority) -> String {
    let host = authority.host().to_ascii_lowercase();
    match authority.port_u16() {
        None | Some(80 | 443) => host,
        Some(port) => format!("{host}:{port}"),
    }
}

impl Guard {
    pub(crate) fn new(settings: &Settings) -> Guard {
        let own = settings.public_url.parse::<Uri>().ok();
        let own_host = own.as_ref().and_then(Uri::authority).map(comparable);
        let own_origin = own.as_ref().and_then(|url| Some(format!("{}://{}", url.scheme_str()?, url.authority()?)));
        let listened = LOOPBACK.map(|host| format!("{host}:{}", settings.listen.port()));
        let hosts = listened.into_iter().chain([settings.listen.to_string()]);
        Guard {
            hosts: hosts.filter_map(|host| host.parse().ok()).map(|host| comparable(&host)).chain(own_host).collect(),
            origins: settings.trusted_origins.iter().cloned().chain(own_origin).collect(),
        }
    }

    /// # Errors
    /// `forbidden`, saying which header and which setting.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<()> {
        let text = |name| headers.get(name).map(|value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()));
        let host = text(header::HOST).and_then(|host| host.parse().ok().map(|host| comparable(&host)));
        if !host.is_some_and(|host| self.hosts.contains(&host)) {
            let message =
                "The header Host names another server than this one; SVC_PUBLIC_URL says under which name it is reached.";
            return Err(Error::new(Code::Forbidden, message));
        }
        match text(header::ORIGIN) {
            Some(origin) if !self.origins.iter().any(|known| known.eq_ignore_ascii_case(&origin)) => {
                let message = "The request comes from an origin that is not trusted (SVC_TRUSTED_ORIGINS).";
                Err(Error::new(Code::Forbidden, message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn is_let_in(guard: &Guard, host: Option<&'static str>, origin: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        guard.check(&headers).is_ok()
    }

    #[test]
    fn only_names_of_this_server_are_let_in() {
        let guard = Guard::new(&Settings {
            public_url: "https://api.example.com".to_owned(),
            listen: ([0, 0, 0, 0], 4000).into(),
            trusted_origins: vec!["https://app.example.com".to_owned()],
        });
        for host in ["api.example.com", "API.example.com:443", "127.0.0.1:4000", "localhost:4000", "[::1]:4000"] {
            assert!(is_let_in(&guard, Some(host), None), "{host}");
        }
        for host in ["evil.example", "api.example.com:4000", "localhost:4001", "localhost", "", "api.example.com.evil.example"] {
            assert!(!is_let_in(&guard, Some(host), None), "{host}");
        }
        assert!(!is_let_in(&guard, None, None));
        for (origin, is_trusted) in [
            ("https://api.example.com", true),
            ("https://app.example.com", true),
            ("http://app.example.com", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            assert_eq!(is_let_in(&guard, Some("api.example.com"), Some(origin)), is_trusted, "{origin}");
        }
    }
}
