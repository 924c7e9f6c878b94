//! Origins: which may write with a cookie.

use axum::http::{HeaderMap, Method, header};
use url::Url;

/// Origins that cookie-authenticated writes may come from.
#[derive(Clone, Debug, Default)]
pub struct TrustedOrigins(pub Vec<String>);

/// Why a request is refused for its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginProblem {
    Untrusted,
    Missing,
}

impl TrustedOrigins {
    fn trusts(&self, origin: &str) -> bool {
        self.0.iter().any(|trusted| trusted.eq_ignore_ascii_case(origin))
    }

    /// Whether somebody may be sent to `url`: a path here that no browser takes for another host, or a trusted origin.
    pub(crate) fn may_lead_to(&self, url: &str) -> bool {
        if !url.starts_with('/') {
            return Url::parse(url).is_ok_and(|url| url.host().is_some() && self.trusts(&url.origin().ascii_serialization()));
        }
        let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let is_plain = !url.starts_with("//") && !url.contains('\\') && !url.chars().any(char::is_control);
        is_plain && !path.contains("%2f") && !path.contains("%5c")
    }

    /// A write that carries cookies has to come from a trusted origin, by `Origin` or else by `Referer`; without cookies only a
    /// foreign `Origin` on sign-in and sign-up is refused.
    pub(crate) fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), OriginProblem> {
        // A hook looks at no session, so that no browser can be made to lend it one.
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) || path.starts_with("/api/v1/hooks/") {
            return Ok(());
        }
        let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let has_cookie = headers.contains_key(header::COOKIE);
        let referer = || text(header::REFERER).filter(|_| has_cookie).and_then(|referer| origin_of(&referer));
        let origin = text(header::ORIGIN).or_else(referer);
        let signs_in = path.starts_with("/api/auth/sign-in") || path.starts_with("/api/auth/sign-up");
        match origin.as_deref() {
            None | Some("null") if has_cookie => Err(OriginProblem::Missing),
            Some(origin) if (has_cookie || signs_in) && !self.trusts(origin) => Err(OriginProblem::Untrusted),
            _ => Ok(()),
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
        let trusted = TrustedOrigins(vec!["https://app.example".to_owned()]);
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
    fn cookies_write_from_trusted_origins_alone() {
        let trusted = TrustedOrigins(vec!["http://localhost:4000".to_owned()]);
        let check = |method: Method, pairs: &[(header::HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(name.clone(), axum::http::HeaderValue::from_static(value));
            }
            trusted.check(&method, "/api/v1/data/task", &headers)
        };
        let cookie = (header::COOKIE, "svc.session_token=x");
        assert_eq!(check(Method::POST, &[]), Ok(()));
        assert_eq!(check(Method::POST, &[(header::ORIGIN, "http://evil.example")]), Ok(()));
        assert_eq!(check(Method::POST, std::slice::from_ref(&cookie)), Err(OriginProblem::Missing));
        assert_eq!(
            check(Method::POST, &[cookie.clone(), (header::ORIGIN, "http://evil.example")]),
            Err(OriginProblem::Untrusted)
        );
        assert_eq!(check(Method::POST, &[cookie.clone(), (header::ORIGIN, "http://localhost:4000")]), Ok(()));
        assert_eq!(check(Method::POST, &[cookie.clone(), (header::REFERER, "http://localhost:4000/x?y")]), Ok(()));
        assert_eq!(check(Method::GET, &[cookie]), Ok(()));
    }
}
