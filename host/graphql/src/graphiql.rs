//! GraphiQL for browsers: the page and what it loads, all of it in the binary.
//!
//! `graphiql/` has the sources and says how they are built. This module must not know of schemas, callers and operations.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderValue, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};

const PAGE: &str = include_str!("../graphiql/built/page.html");

/// Names, which change with what they name, and gzipped content, by name.
const ASSETS: &[(&str, &[u8])] = include!("../graphiql/built/assets.rs");

/// What the page may do: load and ask this server alone. The editor styles what it draws in place.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; \
    img-src 'self' data:; font-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What a worker may do, whose policy is that of its own script: load its parts.
const ASSET_POLICY: &str = "default-src 'none'; script-src 'self'; frame-ancestors 'none'";

/// The page. Its address answers with JSON too, by `Accept`.
pub(crate) fn page() -> Response<BoxBody<Bytes, Infallible>> {
    answer(
        PAGE.as_bytes(),
        [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
            (header::CACHE_CONTROL, "private, no-cache"),
            (header::VARY, "accept"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ],
    )
}

/// The file of this name below `/api/v1/graphql/assets/`, gzipped, which every browser takes.
pub(crate) fn asset(name: &str) -> Option<Response<BoxBody<Bytes, Infallible>>> {
    let place = ASSETS.binary_search_by_key(&name, |(name, _)| name).ok()?;
    let (name, content) = ASSETS[place];
    Some(answer(
        content,
        [
            (header::CONTENT_TYPE, content_type(name)),
            (header::CONTENT_ENCODING, "gzip"),
            (header::CONTENT_SECURITY_POLICY, ASSET_POLICY),
            // Not in caches that people share: the answer may have a renewed session's cookie with it.
            (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ],
    ))
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("ttf") => "font/ttf",
        _ => "text/plain; charset=utf-8",
    }
}

fn answer(content: &'static [u8], headers: [(HeaderName, &'static str); 6]) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(content)).boxed());
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(headers);
    response
}

#[cfg(test)]
mod tests {
    use super::{ASSETS, asset, content_type};

    #[test]
    fn assets_are_found_by_their_names_alone() {
        for (name, content) in ASSETS {
            assert!(asset(name).is_some(), "{name}");
            // The magic number of gzip.
            assert!(content.starts_with(&[0x1f, 0x8b]), "{name}");
        }
        for name in ["", "main.js", "../page.html", "assets.rs"] {
            assert!(asset(name).is_none(), "{name}");
        }
    }

    #[test]
    fn plain_text_is_the_licences_alone() {
        let plain = ASSETS.iter().filter(|(name, _)| content_type(name).starts_with("text/plain"));
        assert!(plain.map(|(name, _)| name).all(|name| name.starts_with("licences-")));
    }
}
