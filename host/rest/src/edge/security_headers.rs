//! Security headers of responses: they forbid caching, frames, and guesses of the content type.

use axum::http::{HeaderMap, HeaderValue, header};

/// The request headers that a response below `/api` depends on.
pub(crate) const CREDENTIALS: HeaderValue = HeaderValue::from_static("Authorization, Cookie, X-API-Key, X-Svc-View-As");
/// One year, as browsers recommend. Subdomains are not included, because their own servers decide.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds the headers that a response does not have yet. `is_https` says whether the public URL has the scheme https.
pub(crate) fn add_headers(path: &str, is_https: bool, headers: &mut HeaderMap) {
    // Nearly every response depends on a credential. So a response that says nothing about caching must not be cached.
    add(headers, header::CACHE_CONTROL, "no-store");
    add(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if !is_asset(path) {
        add(headers, header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'");
    }
    if is_https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
    }
    // A hook's response belongs to its block, and the files of GraphiQL are the same for everybody.
    let is_own = path.starts_with("/api/") && !path.starts_with("/api/v1/hooks/") && !is_asset(path);
    let varies = headers.get_all(header::VARY).iter().any(|value| *value == CREDENTIALS);
    if is_own && !varies {
        headers.append(header::VARY, CREDENTIALS);
    }
}

/// Whether a path is a file that a page from the binary loads. A policy has an effect only on pages and workers. Workers have
/// their own policy.
fn is_asset(path: &str) -> bool {
    path.starts_with("/admin/assets/") || path.starts_with("/api/v1/graphql/assets/")
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
        for path in ["/admin/assets/a.js", "/api/v1/graphql/assets/a.js"] {
            let headers = after(path, false, &[]);
            assert!(!headers.contains_key(header::VARY) && !headers.contains_key(header::CONTENT_SECURITY_POLICY), "{path}");
        }
    }
}
