//! `permissions.http`: the origins that a block may call.

use blockbase_app::schema::{Code, Error};
use url::Url;

/// `https://api.example.com`, with a port if it is not the scheme's default. If the first label is `*`, it matches one or more
/// labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedOrigin {
    scheme: String,
    /// The host in lower case, without the `*.` of a wildcard.
    host: String,
    port: Option<u16>,
    is_wildcard: bool,
}

impl AllowedOrigin {
    /// # Errors
    /// A sentence for the author.
    pub(crate) fn parse(text: &str) -> Result<AllowedOrigin, String> {
        let refused =
            || format!("{text:?} is not an origin. An origin has the form https://host or https://host:port, without a path.");
        let is_wildcard = text.contains("://*.");
        let url = Url::parse(&text.replacen("://*.", "://", 1)).map_err(|_| refused())?;
        let host = url.host_str().ok_or_else(refused)?.to_owned();
        let is_bare = matches!(url.scheme(), "http" | "https")
            && matches!(url.path(), "" | "/")
            && !text.ends_with('/')
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && !text.contains(|character: char| character.is_whitespace() || character.is_control());
        let wildcard_fits = !is_wildcard || (url.domain().is_some() && host.contains('.'));
        match is_bare && wildcard_fits && !host.contains('*') {
            true => Ok(AllowedOrigin { scheme: url.scheme().to_owned(), host, port: url.port_or_known_default(), is_wildcard }),
            false => Err(refused()),
        }
    }

    pub(crate) fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let host_fits = match self.is_wildcard {
            false => host == self.host,
            true => host.strip_suffix(&self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        host_fits && url.scheme() == self.scheme && url.port_or_known_default() == self.port
    }
}

/// Checks that the block may call a URL.
///
/// # Errors
/// `forbidden`, naming the origin.
pub(crate) fn check_granted(granted: &[String], url: &Url) -> Result<(), Error> {
    let is_granted = granted.iter().filter_map(|text| AllowedOrigin::parse(text).ok()).any(|origin| origin.allows(url));
    match is_granted {
        true => Ok(()),
        false => {
            let origin = url.origin().ascii_serialization();
            let message = format!("The block may not call {origin}: its manifest does not ask for it in `permissions.http`.");
            Err(Error::new(Code::Forbidden, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_allows_itself_and_nothing_else() {
        let allows =
            |origin: &str, url: &str| AllowedOrigin::parse(origin).expect("an origin").allows(&Url::parse(url).expect("a URL"));
        assert!(allows("https://api.stripe.com", "https://api.stripe.com/v1/charges?x"));
        assert!(allows("https://API.stripe.com", "https://api.STRIPE.com:443/"));
        assert!(allows("http://127.0.0.1:8080", "http://127.0.0.1:8080/x"));
        assert!(allows("https://*.example.com", "https://a.b.example.com/"));
        for (origin, url) in [
            ("https://api.stripe.com", "http://api.stripe.com/"),
            ("https://api.stripe.com", "https://api.stripe.com:8443/"),
            ("https://api.stripe.com", "https://api.stripe.com.evil.example/"),
            ("https://api.stripe.com", "https://api.stripe.com@evil.example/"),
            ("https://api.stripe.com", "https://evil.api.stripe.com/"),
            ("https://*.example.com", "https://example.com/"),
            ("https://*.example.com", "https://evilexample.com/"),
        ] {
            assert!(!allows(origin, url), "{origin} {url}");
        }
    }

    #[test]
    fn texts_that_are_not_origins_are_refused() {
        for text in [
            "",
            "*",
            "https://*",
            "https://*.com",
            "https://a/b",
            "https://a/",
            "ftp://a",
            "https://u@a",
            "https://a?b",
            "a.example",
            "https://a b",
        ] {
            assert!(AllowedOrigin::parse(text).is_err(), "{text:?}");
        }
    }
}
