//! GraphiQL as browsers get it: everything comes from this server.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use blockbase_tests::{Engine, Server, ServerBuilder};

const ENDPOINT: &str = "/api/v1/graphql";
/// The `Accept` header of a browser that opens a URL.
pub(crate) const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
/// Hosts from which pages often load scripts, styles and fonts.
pub(crate) const ELSEWHERE: [&str; 8] =
    ["unpkg.com", "jsdelivr", "cdnjs", "esm.sh", "skypack.dev", "googleapis.com", "gstatic.com", "typekit.net"];

/// Code with which scripts and styles load from other hosts.
pub(crate) const LOADS: [&str; 8] =
    ["import(\"http", "from\"http", "from \"http", "url(http", "url(\"http", "@import", "importScripts(\"http", "Worker(\"http"];

/// The response to a GET. If its body is compressed, gzip unpacks it, which is an independent program.
struct Fetched {
    status: u16,
    headers: reqwest::header::HeaderMap,
    text: String,
}

impl Fetched {
    #[track_caller]
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers)).to_str().unwrap()
    }
}

async fn fetch(server: &Server, path: &str, accept: &str) -> Fetched {
    let request = server.request("GET", path).header("accept", accept).header("accept-encoding", "gzip");
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = response.bytes().await.unwrap().to_vec();
    if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
        body = tokio::task::spawn_blocking(move || unpacked(&body)).await.unwrap();
    }
    // Fonts are not text, but that does not matter, because the tests only search for text.
    Fetched { status, headers, text: String::from_utf8_lossy(&body).into_owned() }
}

pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), packed).unwrap();
    let input = std::fs::File::open(file.path()).unwrap();
    let done = Command::new("gzip").arg("-dc").stdin(Stdio::from(input)).output().expect("gzip");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// The text after each occurrence of `before`.
fn behind<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(before).map(|(at, found)| &text[at + found.len()..])
}

/// The text between `before` and the next `after`, for each occurrence.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    behind(text, before).filter_map(move |rest| rest.split(after).next())
}

/// The names of the assets that a text refers to, by URL or as a part of the same bundle.
fn assets_in(text: &str) -> BTreeSet<String> {
    let ends_name = |character: char| !(character.is_ascii_alphanumeric() || "-._".contains(character));
    ["graphql/assets/", "\"./", "url(./", "url(\"./"]
        .into_iter()
        .flat_map(|before| behind(text, before))
        .filter_map(|rest| rest.split(ends_name).next())
        .filter(|name| [".js", ".css", ".ttf", ".txt"].iter().any(|ending| name.ends_with(ending)))
        .map(str::to_owned)
        .collect()
}

async fn server() -> Server {
    // The files in the binary do not depend on the database, so one engine is enough.
    ServerBuilder::new(Engine::Sqlite).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_gets_a_page_that_may_load_from_this_server_alone() {
    let server = server().await;
    let page = fetch(&server, ENDPOINT, BROWSER).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    // Other clients get JSON at the same URL.
    assert!(page.headers.get_all("vary").iter().any(|vary| vary.to_str().unwrap().to_lowercase().contains("accept")));

    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    for directive in policy.split(';').map(str::trim) {
        let (name, sources) = directive.split_once(' ').unwrap();
        for source in sources.split_whitespace() {
            let is_inline_style = name == "style-src" && source == "'unsafe-inline'";
            let is_inline_picture = name == "img-src" && source == "data:";
            assert!(["'self'", "'none'"].contains(&source) || is_inline_style || is_inline_picture, "{directive}");
        }
    }
    for name in ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
        assert!(policy.contains(name), "{policy} has no {name}");
    }

    // Every script is a file of this server. No attribute contains a script.
    assert!(!page.text.contains("://") && !page.text.contains("=\"//"), "{}", page.text);
    let scripts: Vec<&str> = between(&page.text, "<script", '>').collect();
    assert!(!scripts.is_empty());
    assert!(scripts.iter().all(|script| script.contains(" src=\"graphql/assets/")), "{scripts:?}");
    assert_eq!(page.text.matches("></script>").count(), scripts.len(), "{}", page.text);
    let is_handler = |word: &str| word.starts_with("on") && word.contains('=');
    assert!(!page.text.split_whitespace().any(is_handler), "{}", page.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_asset_is_served_with_its_type_and_names_no_host_that_gives_scripts_away() {
    let server = server().await;
    let page = fetch(&server, ENDPOINT, BROWSER).await;
    let mut wanted: Vec<String> = assets_in(&page.text).into_iter().collect();
    // The script, the style, three workers, and the licenses.
    assert_eq!(wanted.len(), 6, "{wanted:?}");
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let asset = fetch(&server, &format!("{ENDPOINT}/assets/{name}"), "*/*").await;
        assert_eq!(asset.status, 200, "{name}");
        let expected = match name.rsplit_once('.').unwrap().1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "ttf" => "font/ttf",
            _ => "text/plain; charset=utf-8",
        };
        assert_eq!(asset.header("content-type"), expected, "{name}");
        assert_eq!(asset.header("x-content-type-options"), "nosniff", "{name}");
        assert_eq!(asset.header("cache-control"), "private, max-age=31536000, immutable", "{name}");
        // A worker does not get the policy of its page.
        let policy = asset.headers.get("content-security-policy").map(|policy| policy.to_str().unwrap());
        assert_eq!(policy.is_some(), name.contains(".worker-"), "{name}: {policy:?}");
        assert!(policy.is_none_or(|policy| policy.starts_with("default-src 'none'; script-src 'self'")), "{name}: {policy:?}");
        if name.ends_with(".txt") {
            // License texts name the origin of their packages.
            assert!(asset.text.contains("graphiql 5."), "{name}");
            continue;
        }
        for host in ELSEWHERE {
            assert!(!asset.text.contains(host), "{name} names {host}");
        }
        for loads in LOADS {
            assert!(!asset.text.contains(loads), "{name} has {loads}");
        }
        wanted.extend(assets_in(&asset.text));
    }
    // Files that the build has split off are found through the files that import them.
    assert!(seen.len() > 20, "{seen:?}");
    assert!(seen.iter().any(|name| name.ends_with(".ttf")), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assets_are_read_and_nothing_else() {
    let server = server().await;
    for name in ["main.js", "nothing-00000000.js", "..%2fpage.html"] {
        assert_eq!(fetch(&server, &format!("{ENDPOINT}/assets/{name}"), "*/*").await.status, 404, "{name}");
    }
    let page = fetch(&server, ENDPOINT, BROWSER).await;
    let script = between(&page.text, "src=\"graphql/", '"').next().unwrap();
    let path = format!("{ENDPOINT}/{script}");
    let head = server.request("HEAD", &path).header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!((head.status().as_u16(), &head.headers()["content-encoding"]), (200, &"gzip".parse().unwrap()));
    let plain = server.request("GET", &path).send().await.unwrap();
    assert!(!plain.headers().contains_key("content-encoding"));
    let posted = server.request("POST", &path).body("{}").send().await.unwrap();
    let allowed = posted.headers()["allow"].to_str().unwrap().replace(' ', "");
    assert_eq!((posted.status().as_u16(), allowed.as_str()), (405, "GET,HEAD"));
}
