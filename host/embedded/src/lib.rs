//! Serves browsers the files that the binary contains. Files are found by their exact names, and sent gzipped or unpacked with an
//! ETag.
//!
//! A name changes with the content, so a browser may keep a file forever. This crate must not know axum, callers, or the purpose of the
//! files.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Read;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use sha2::{Digest, Sha256};

/// A response whose body is complete.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The policy of a worker, which does not get the policy of its page. The worker may call this server, and load its scripts from
/// there. Other files need no policy, because a browser applies the policy of the page that loads them.
const WORKER_POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'";
/// The number of characters of a hash in an ETag.
const TAG_CHARS: usize = 32;

/// The caches that may keep a file, in both cases for a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// Only the browser, because the response may contain a session cookie.
    Browser,
    /// Shared caches and browsers.
    Everybody,
}

impl KeptBy {
    fn cache_control(self) -> &'static str {
        match self {
            KeptBy::Browser => "private, max-age=31536000, immutable",
            KeptBy::Everybody => "public, max-age=31536000, immutable",
        }
    }
}

/// One file.
pub struct File {
    content_type: HeaderValue,
    /// The gzipped content.
    packed: &'static [u8],
    /// The unpacked content. The first request that needs it unpacks the file. The tags are also made at the first request.
    unpacked: OnceLock<Bytes>,
    tags: OnceLock<Tags>,
}

/// The `ETag` of each form. Two forms of one file have different bytes, so they need different tags.
struct Tags {
    packed: HeaderValue,
    unpacked: HeaderValue,
}

impl File {
    /// # Errors
    /// If the content type is not a valid header value.
    pub fn new(content_type: &str, packed: &'static [u8]) -> Result<File, String> {
        let content_type = HeaderValue::from_str(content_type).map_err(|_| format!("{content_type:?} is not a content type"))?;
        Ok(File { content_type, packed, unpacked: OnceLock::new(), tags: OnceLock::new() })
    }

    fn unpacked(&self) -> &Bytes {
        self.unpacked.get_or_init(|| {
            let mut bytes = Vec::new();
            // The result is ignored, because tests check that every file in the binary is valid gzip.
            let _ = GzDecoder::new(self.packed).read_to_end(&mut bytes);
            bytes.into()
        })
    }

    fn tags(&self) -> &Tags {
        self.tags.get_or_init(|| {
            let mut hash = hex::encode(Sha256::digest(self.packed));
            hash.truncate(TAG_CHARS);
            let tag = |form: &str| HeaderValue::from_str(&format!("\"{hash}-{form}\""));
            let nothing = HeaderValue::from_static("\"\"");
            Tags { packed: tag("gzip").unwrap_or(nothing.clone()), unpacked: tag("plain").unwrap_or(nothing) }
        })
    }
}

/// The files below one path.
pub struct Files {
    by_name: BTreeMap<&'static str, File>,
    kept_by: KeptBy,
}

impl Files {
    pub fn new(kept_by: KeptBy, files: impl IntoIterator<Item = (&'static str, File)>) -> Files {
        Files { by_name: files.into_iter().collect(), kept_by }
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }

    /// The file with exactly this name, or 304 if the client already has it. `None` if there is no such file.
    pub fn answer(&self, name: &str, request: &HeaderMap) -> Option<Answer> {
        let file = self.by_name.get(name)?;
        let packed = accepts_gzip(request);
        let tag = if packed { &file.tags().packed } else { &file.tags().unpacked };
        let mut response = match is_known(request, tag) {
            true => {
                let mut response = Response::new(Full::default().boxed());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
            false => {
                let body = if packed { Bytes::from_static(file.packed) } else { file.unpacked().clone() };
                let mut response = Response::new(Full::new(body).boxed());
                response.headers_mut().insert(header::CONTENT_TYPE, file.content_type.clone());
                if packed {
                    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                }
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, tag.clone());
        add(
            headers,
            &[
                (header::CACHE_CONTROL, self.kept_by.cache_control()),
                (header::VARY, "accept-encoding"),
                (header::REFERRER_POLICY, "no-referrer"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ],
        );
        if is_worker(name) {
            add(headers, &[(header::CONTENT_SECURITY_POLICY, WORKER_POLICY)]);
        }
        Some(response)
    }
}

/// An HTML page with these headers in addition to its type.
pub fn page(content: impl Into<Bytes>, headers: &[(HeaderName, &'static str)]) -> Answer {
    let mut response = Response::new(Full::new(content.into()).boxed());
    add(
        response.headers_mut(),
        &[(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")],
    );
    add(response.headers_mut(), headers);
    response
}

/// Whether a browser runs the file as a worker. Both builds name workers in this way.
fn is_worker(name: &str) -> bool {
    name.contains(".worker-")
}

fn add(headers: &mut HeaderMap, more: &[(HeaderName, &'static str)]) {
    headers.extend(more.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))));
}

/// Whether `Accept-Encoding` names gzip or `*`. Without this header, a client gets the unpacked file, which every program can read.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut named, mut any) = (None, None);
    for coding in values.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let is_wanted = quality.is_none_or(|quality| quality.parse::<f32>().is_ok_and(|quality| quality > 0.0));
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            named = Some(is_wanted);
        } else if name == "*" {
            any = Some(is_wanted);
        }
    }
    named.or(any).unwrap_or(false)
}

/// Whether `If-None-Match` names the tag. The comparison is weak, as RFC 9110 demands for this header.
fn is_known(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).map(str::trim).any(|known| {
        let opaque = known.strip_prefix("W/").unwrap_or(known);
        known == "*" || opaque.as_bytes() == tag.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> &'static [u8] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory");
        encoder.finish().expect("memory").leak()
    }

    fn request(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn files() -> Files {
        let file = File::new("text/javascript; charset=utf-8", packed("let a = 1;")).expect("a content type");
        Files::new(KeptBy::Everybody, [("a-1234.js", file)])
    }

    #[test]
    fn gzip_is_sent_to_who_names_it() {
        for (accepted, is_gzip) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("*", true),
            ("x-gzip", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*;q=0", false),
            ("br", false),
            ("identity", false),
            ("", false),
            ("gzip;q=nonsense", false),
        ] {
            assert_eq!(accepts_gzip(&request(&[(header::ACCEPT_ENCODING, accepted)])), is_gzip, "{accepted}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_file_has_two_forms_with_a_tag_each() {
        let files = files();
        let gzip = files.answer("a-1234.js", &request(&[(header::ACCEPT_ENCODING, "gzip")])).expect("a file");
        let plain = files.answer("a-1234.js", &HeaderMap::new()).expect("a file");
        assert_eq!(
            (&gzip.headers()["content-encoding"], plain.headers().get("content-encoding")),
            (&"gzip".parse().expect("text"), None)
        );
        assert_ne!(gzip.headers()["etag"], plain.headers()["etag"]);
        for answer in [&gzip, &plain] {
            assert_eq!(answer.headers()["content-type"], "text/javascript; charset=utf-8");
            assert_eq!(answer.headers()["cache-control"], "public, max-age=31536000, immutable");
            assert_eq!(answer.headers()["vary"], "accept-encoding");
        }
        assert_eq!(files.by_name["a-1234.js"].unpacked(), "let a = 1;");

        let tag = plain.headers()["etag"].to_str().expect("text").to_owned();
        for (known, status) in
            [(tag.clone(), 304), (format!("\"x\", W/{tag}"), 304), ("*".to_owned(), 304), ("\"x\"".to_owned(), 200)]
        {
            let mut request = HeaderMap::new();
            request.insert(header::IF_NONE_MATCH, known.parse().expect("a header"));
            let answer = files.answer("a-1234.js", &request).expect("a file");
            assert_eq!(
                (answer.status().as_u16(), &answer.headers()["etag"]),
                (status, &tag.parse().expect("a header")),
                "{known}"
            );
        }
    }

    #[test]
    fn a_worker_has_a_policy_and_other_files_have_none() {
        let file = || File::new("text/javascript; charset=utf-8", packed("let a = 1;")).expect("a content type");
        let files = Files::new(KeptBy::Everybody, [("a.worker-1234.js", file()), ("a-1234.js", file())]);
        let policy = |name| {
            let answer = files.answer(name, &HeaderMap::new()).expect("a file");
            answer.headers().get(header::CONTENT_SECURITY_POLICY).cloned()
        };
        assert_eq!(policy("a.worker-1234.js"), Some(HeaderValue::from_static(WORKER_POLICY)));
        assert_eq!(policy("a-1234.js"), None);
    }

    #[test]
    fn a_file_is_found_by_its_whole_name_alone() {
        for name in ["", "a", "a-1234.js.gz", "A-1234.js", "/a-1234.js", "../a-1234.js", "a-1234.js/"] {
            assert!(files().answer(name, &HeaderMap::new()).is_none(), "{name}");
        }
    }
}
