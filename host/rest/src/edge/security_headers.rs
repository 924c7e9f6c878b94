//! Headers that keep answers where they belong: out of caches, out of frames, and read as what they are.

use axum::http::{HeaderMap, HeaderValue, header};

/// What an answer below `/api` depends on.
pub(crate) const CREDENTIALS: HeaderValue = HeaderValue::from_static("Authorization, Cookie, X-API-Key, X-Svc-View-As");
/// A year, as browsers ask for it. Other hosts of the domain are for their own servers to decide.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds to an answer what it does not say itself. `is_https`: whether the public URL is.
pub(crate) fn add_headers(path: &str, is_https: bool, headers: &mut HeaderMap) {
    // Nearly every answer depends on a credential, so an answer without a rule for caches must not be cached.
    add(headers, header::CACHE_CONTROL, "no-store");
    add(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    add(headers, header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'");
    if is_https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
    }
    // The answer of a hook belongs to its block, and the files of GraphiQL are the same for everybody.
    let is_own = path.starts_with("/api/") && !path.starts_with("/api/v1/hooks/") && !path.starts_with("/api/v1/graphql/assets/");
    let varies = headers.get_all(header::VARY).iter().any(|value| *value == CREDENTIALS);
    if is_own && !varies {
        headers.append(header::VARY, CREDENTIALS);
    }
}

fn add(headers: &mut HeaderMap, name: header::HeaderName, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(path: &str, is_https: bool, own: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        let mut headers: HeaderMap = own.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        add_headers(path, is_https, &mut headers);
        headers
    }

    #[test]
    fn an_answer_keeps_its_own_headers_and_gets_the_others() {
        let headers = after("/api/v1/data/task", true, &[(header::VARY, "origin")]);
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["content-security-policy"], "frame-ancestors 'none'");
        assert_eq!(headers["strict-transport-security"], "max-age=31536000");
        assert_eq!(
            headers.get_all(header::VARY).iter().collect::<Vec<_>>(),
            ["origin", "Authorization, Cookie, X-API-Key, X-Svc-View-As"]
        );
        let headers = after(
            "/api/v1/openapi.json",
            false,
            &[(header::CACHE_CONTROL, "private, no-cache"), (header::VARY, "Authorization, Cookie, X-API-Key, X-Svc-View-As")],
        );
        assert_eq!(headers["cache-control"], "private, no-cache");
        assert_eq!(headers.get_all(header::VARY).iter().count(), 1);
        assert!(!headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
        assert!(!after("/api/v1/hooks/a/b", false, &[]).contains_key(header::VARY));
        assert!(!after("/healthz", false, &[]).contains_key(header::VARY));
    }
}
