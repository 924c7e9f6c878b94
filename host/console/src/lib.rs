//! The console at `/admin`: the page and the files that it loads. The binary contains all of them.
//!
//! The sources are in `console/` of the checkout. Their build writes `assets/`, as this crate's `README.md` describes. The
//! console has no rights and no endpoints of its own: it calls the public API with the session of the signed-in user. So this
//! crate must not know operations, callers or axum.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use blockbase_embedded::{Answer, File, Files, KeptBy, page};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Deserialize;

/// The path of the page.
pub const PATH: &str = "/admin";
/// The path, below [`PATH`], of the page where people set a password with a link.
pub const SET_PASSWORD: &str = "/set-password";
/// The path below which the page's files are.
const ASSETS_PATH: &str = "/admin/assets/";

const TEMPLATE: &str = include_str!("../assets/index.html");
/// The text in the template that the nonce replaces.
const PLACEHOLDER: &str = "{nonce}";
const MANIFEST: &str = include_str!("../assets/manifest.json");
/// The gzipped files. Each has its name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The number of random bytes in a nonce.
const NONCE_BYTES: usize = 16;
/// The crate `http` has no constant for this header.
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The build's list of its files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest<'a> {
    #[serde(borrow)]
    assets: Vec<Entry<'a>>,
}

/// One file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry<'a> {
    name: &'a str,
    content_type: Cow<'a, str>,
    /// The number of bytes of the unpacked file.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it with the file"))]
    size: u64,
    /// The SHA-256 of the unpacked file, in hexadecimal.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it with the file"))]
    sha256: &'a str,
}

fn entries() -> Result<Vec<Entry<'static>>, String> {
    let manifest: Manifest<'_> =
        serde_json::from_str(MANIFEST).map_err(|error| format!("The console's manifest.json cannot be read: {error}."))?;
    Ok(manifest.assets)
}

/// The console.
pub struct Console {
    /// The parts of the page between the nonces.
    template: Vec<&'static str>,
    files: Files,
}

impl Console {
    /// # Errors
    /// A sentence for the operator, if the files in the binary do not come from one build.
    pub fn new() -> Result<Console, String> {
        let entries = entries()?;
        let described: HashMap<&str, &Entry<'_>> = entries.iter().map(|entry| (entry.name, entry)).collect();
        let files: Vec<(&str, File)> = FILES
            .iter()
            .map(|(name, packed)| {
                let entry = described.get(name).ok_or_else(|| format!("The console's manifest.json has no {name}."))?;
                Ok((*name, File::new(&entry.content_type, packed)?))
            })
            .collect::<Result<_, String>>()?;
        if files.len() != described.len() {
            return Err("The console's manifest.json names files that do not exist.".to_owned());
        }
        Ok(Console { template: TEMPLATE.split(PLACEHOLDER).collect(), files: Files::new(KeptBy::Everybody, files) })
    }

    /// Answers a GET of `/admin` and of paths below it. For the path of a file, it returns the file. For every other path, it
    /// returns the page, and the console evaluates the path. `None` for a missing file.
    pub fn answer(&self, path: &str, request: &HeaderMap) -> Option<Answer> {
        match path.strip_prefix(ASSETS_PATH) {
            Some(name) => self.files.answer(name, request),
            None => Some(self.page()),
        }
    }

    /// The page with a new nonce, which no other response has.
    fn page(&self) -> Answer {
        let mut random = [0; NONCE_BYTES];
        if getrandom::fill(&mut random).is_err() {
            // If the system cannot provide randomness, the page cannot be made.
            let mut response = Response::<()>::default().map(|()| Default::default());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return response;
        }
        let nonce = URL_SAFE_NO_PAD.encode(random);
        let headers =
            [(header::CACHE_CONTROL, "no-store"), (header::REFERRER_POLICY, "same-origin"), (OPENER_POLICY, "same-origin")];
        let mut response = page(self.template.join(&nonce), &headers);
        if let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) {
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        response
    }
}

/// The policy of the page: it may load from this server, call this server, and use styles with this nonce.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; font-src 'self'; \
         connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_manifest_describes_every_file_as_it_is() {
        let entries = entries().expect("a manifest");
        let console = Console::new().expect("files of one build");
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert_eq!(console.files.names().collect::<Vec<_>>(), names);
        for entry in entries {
            let (_, packed) = FILES.iter().find(|(name, _)| *name == entry.name).expect("a file");
            let mut unpacked = Vec::new();
            GzDecoder::new(*packed).read_to_end(&mut unpacked).expect(entry.name);
            assert_eq!(unpacked.len() as u64, entry.size, "{}", entry.name);
            assert_eq!(hex::encode(Sha256::digest(&unpacked)), entry.sha256, "{}", entry.name);
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            assert!(entry.name.bytes().all(is_plain), "{} needs no escapes in a URL", entry.name);
        }
    }

    #[test]
    fn the_page_has_its_nonce_and_loads_files_that_there_are() {
        let page = Console::new().expect("files of one build").template.join("the-nonce");
        assert!(page.contains("the-nonce") && !page.contains(PLACEHOLDER));
        // With this policy, the page can have no inline script, and no style without the nonce.
        for script in page.split("<script").skip(1) {
            assert!(script.split('>').next().is_some_and(|tag| tag.contains(" src=\"/admin/assets/")), "{script}");
        }
        for style in page.split("<style").skip(1) {
            assert!(style.starts_with(" nonce=\"the-nonce\""), "{style}");
        }
        for name in page.split(ASSETS_PATH).skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(FILES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
