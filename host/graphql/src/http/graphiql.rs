//! GraphiQL for browsers. The binary contains the page and everything that the page loads.
//!
//! `graphiql/` has the sources, and describes how they are built. This module must not know of schemas, callers and operations.

use std::sync::LazyLock;

use blockbase_embedded::{Answer, File, Files, KeptBy};
use http::{HeaderMap, header};

const PAGE: &str = include_str!("../../graphiql/built/page.html");

/// The assets, each with its name and its gzipped content. The name changes if the content changes.
const ASSETS: &[(&str, &[u8])] = include!("../../graphiql/built/assets.rs");

/// The page may load from this server only, and send requests only to it. The editor uses inline styles.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; \
    img-src 'self' data:; font-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The page. The same path also serves JSON, depending on the header `Accept`.
pub(crate) fn page() -> Answer {
    blockbase_embedded::page(
        PAGE,
        &[
            (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
            (header::CACHE_CONTROL, "private, no-cache"),
            (header::VARY, "accept"),
            (header::REFERRER_POLICY, "no-referrer"),
        ],
    )
}

/// The file with this name below `/api/v1/graphql/assets/`.
pub(crate) fn asset(name: &str, request: &HeaderMap) -> Option<Answer> {
    static FILES: LazyLock<Files> = LazyLock::new(|| {
        let files = ASSETS.iter().filter_map(|(name, packed)| Some((*name, File::new(content_type(name), packed).ok()?)));
        // Shared caches must not keep the response, because it may contain the cookie of a renewed session.
        Files::new(KeptBy::Browser, files)
    });
    FILES.answer(name, request)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("ttf") => "font/ttf",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{ASSETS, asset, content_type};

    #[test]
    fn assets_are_found_by_their_names_alone() {
        for (name, content) in ASSETS {
            assert!(asset(name, &HeaderMap::new()).is_some(), "{name}");
            // The magic number of gzip.
            assert!(content.starts_with(&[0x1f, 0x8b]), "{name}");
        }
        for name in ["", "main.js", "../page.html", "assets.rs"] {
            assert!(asset(name, &HeaderMap::new()).is_none(), "{name}");
        }
    }

    #[test]
    fn plain_text_is_the_licences_alone() {
        let plain = ASSETS.iter().filter(|(name, _)| content_type(name).starts_with("text/plain"));
        assert!(plain.map(|(name, _)| name).all(|name| name.starts_with("licences-")));
    }
}
