//! The console's page and files as browsers get them: complete, cached as long as allowed, and not available to other origins.

use std::collections::BTreeSet;

use blockbase_tests::{Engine, Server, ServerBuilder, http_client, until};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::graphql::graphiql::{BROWSER, ELSEWHERE, LOADS, unpacked};

const ASSETS: &str = "/admin/assets";

/// The build's list of files.
fn manifest() -> Vec<Value> {
    let manifest: Value = serde_json::from_str(include_str!("../../../../host/console/assets/manifest.json")).unwrap();
    let files = manifest["assets"].as_array().unwrap().clone();
    assert!(!files.is_empty());
    files
}

fn asset_path(file: &Value) -> String {
    format!("{ASSETS}/{}", file["name"].as_str().unwrap())
}

async fn server() -> Server {
    // The files in the binary do not depend on the database, so one engine is enough.
    ServerBuilder::new(Engine::Sqlite).start().await
}

/// A response with its raw bytes.
struct Fetched {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Fetched {
    #[track_caller]
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers)).to_str().unwrap()
    }
}

async fn fetch(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Fetched {
    let mut request = http_client().request(method.parse().unwrap(), format!("{}{path}", server.base));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Fetched { status, headers, body: response.bytes().await.unwrap().to_vec() }
}

/// Sends a request without normalizing its target. Returns the status and the body.
async fn raw(server: &Server, target: &str) -> (u16, String) {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_has_its_policy_and_a_nonce_of_its_own_each_time() {
    let server = server().await;
    let mut nonces = BTreeSet::new();
    // Every path below `/admin` belongs to the console.
    for path in ["/admin", "/admin/", "/admin/records/task?page=2", "/admin/index.html", "/admin/assets", "/admin/a%2Fb/%00"] {
        let page = fetch(&server, "GET", path, &[("accept", BROWSER)]).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
        let policy = page.header("content-security-policy");
        let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap().to_owned();
        assert_eq!(
            policy,
            format!(
                "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; \
                 font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; \
                 frame-ancestors 'none'"
            )
        );
        assert_eq!(page.headers.get_all("content-security-policy").iter().count(), 1);
        let text = String::from_utf8(page.body.clone()).unwrap();
        assert!(nonce.len() >= 20 && text.contains(&nonce) && !text.contains("{nonce}"), "{text}");
        assert!(nonces.insert(nonce), "a nonce was given twice");
        assert_eq!(page.header("cache-control"), "no-store");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("referrer-policy"), "same-origin");
        assert!(!page.headers.contains_key("etag") && !page.headers.contains_key("set-cookie"));
    }
    let head = fetch(&server, "HEAD", "/admin", &[]).await;
    assert_eq!((head.status, head.body.len(), head.header("cache-control")), (200, 0, "no-store"));
    assert!(head.header("content-length").parse::<usize>().unwrap() > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_loads_from_this_server_alone() {
    let server = server().await;
    let page = String::from_utf8(fetch(&server, "GET", "/admin", &[]).await.body).unwrap();
    assert!(!page.contains("://") && !page.contains("=\"//"), "{page}");
    let is_handler = |word: &str| word.starts_with("on") && word.contains('=');
    assert!(!page.split_whitespace().any(is_handler) && !page.contains("style="), "{page}");
    for script in page.split("<script").skip(1) {
        assert!(script.contains(" src=\"/admin/assets/") && script.contains("></script>"), "{script}");
    }
    let known: BTreeSet<String> = manifest().iter().map(asset_path).collect();
    let named: BTreeSet<String> = page
        .match_indices("/admin/assets/")
        .map(|(at, _)| page[at..].split(['"', '\'', '?']).next().unwrap().to_owned())
        .collect();
    assert!(!named.is_empty() && named.is_subset(&known), "{named:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_file_is_what_the_build_says_in_both_forms() {
    let server = server().await;
    let mut workers = 0;
    for file in manifest() {
        let path = asset_path(&file);
        let gzip = fetch(&server, "GET", &path, &[("accept-encoding", "gzip, br")]).await;
        let plain = fetch(&server, "GET", &path, &[("accept-encoding", "br, gzip;q=0")]).await;
        let unasked = fetch(&server, "GET", &path, &[]).await;
        assert_eq!((gzip.status, plain.status, unasked.status), (200, 200, 200), "{path}");
        assert_eq!(gzip.header("content-encoding"), "gzip");
        assert!(!plain.headers.contains_key("content-encoding") && unasked.body == plain.body);
        let packed = gzip.body.clone();
        let content = tokio::task::spawn_blocking(move || unpacked(&packed)).await.unwrap();
        assert!(content == plain.body, "{path}");
        assert_eq!(content.len() as u64, file["size"].as_u64().unwrap());
        assert_eq!(hex::encode(Sha256::digest(&content)), file["sha256"].as_str().unwrap(), "{path}");
        for answer in [&gzip, &plain] {
            assert_eq!(answer.header("content-type"), file["contentType"].as_str().unwrap());
            assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            let vary: Vec<String> =
                answer.headers.get_all("vary").iter().map(|vary| vary.to_str().unwrap().to_lowercase()).collect();
            assert!(vary.iter().any(|vary| vary.contains("accept-encoding")), "{vary:?}");
            // The file does not depend on the caller.
            assert!(vary.iter().all(|vary| !vary.contains("cookie")), "{vary:?}");
            assert_eq!(answer.header("content-length"), answer.body.len().to_string());
        }
        // The page loads dozens of files, so each has only the headers that it needs. A worker does not get the policy of its page.
        let is_worker = path.contains(".worker-");
        assert_eq!(gzip.headers.contains_key("content-security-policy"), is_worker, "{path}");
        assert!(gzip.headers.keys().all(|name| !name.as_str().starts_with("access-control-")), "{path}: {:?}", gzip.headers);
        workers += usize::from(is_worker);
        let text = String::from_utf8_lossy(&content);
        // The way in which the build starts a worker.
        for worker in text.split("new Worker(").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            assert!(worker.contains(".worker-"), "{path} starts {worker}");
        }
        for elsewhere in ELSEWHERE.iter().chain(&LOADS) {
            // License texts name the origin of their packages.
            assert!(path.contains("licen") || !text.contains(elsewhere), "{path} has {elsewhere}");
        }

        let tag = plain.header("etag").to_owned();
        assert_ne!(tag, gzip.header("etag"));
        let known = fetch(&server, "GET", &path, &[("if-none-match", &tag)]).await;
        assert_eq!((known.status, known.body.len(), known.header("etag")), (304, 0, tag.as_str()));
        assert_eq!(known.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(fetch(&server, "GET", &path, &[("if-none-match", "\"other\"")]).await.status, 200);
        let head = fetch(&server, "HEAD", &path, &[("accept-encoding", "gzip")]).await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.header("content-length"), gzip.body.len().to_string());
    }
    assert!(workers > 0, "no file is a worker");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_nothing_beside_the_files() {
    let server = server().await;
    let name = manifest()[0]["name"].as_str().unwrap().to_owned();
    let gone = [
        format!("{ASSETS}/"),
        format!("{ASSETS}/none.js"),
        format!("{ASSETS}/{name}.gz"),
        format!("{ASSETS}/{name}/"),
        format!("{ASSETS}//{name}"),
        format!("{ASSETS}/./{name}"),
        format!("{ASSETS}/../manifest.json"),
        format!("{ASSETS}/..%2findex.html"),
        format!("{ASSETS}/%2e%2e/index.html"),
        format!("{ASSETS}/..%5cindex.html"),
        format!("{ASSETS}/../../../../etc/passwd"),
        format!("{ASSETS}/{name}%00"),
        format!("{ASSETS}/{}", name.to_uppercase()),
        format!("{ASSETS}/manifest.json"),
        format!("{ASSETS}/index.html"),
    ];
    for target in &gone {
        let (status, answer) = raw(&server, target).await;
        assert_eq!(status, 404, "{target}: {answer}");
        assert!(answer.contains("\"not_found\"") && answer.contains("cache-control: no-store"), "{target}: {answer}");
    }
    for target in ["/admin/../etc/passwd", "/admin/%2e%2e/svc.secret", "/adminx", "/Admin", "//admin"] {
        let (_, answer) = raw(&server, target).await;
        assert!(!answer.contains("root:") && !answer.contains("BEGIN"), "{target}: {answer}");
    }
    assert_eq!((raw(&server, "/adminx").await.0, raw(&server, "//admin").await.0), (404, 404));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_sent_from_the_root_to_the_console_and_programs_are_not() {
    let server = server().await;
    for accept in [BROWSER, "text/html", "application/json;q=0.9, text/html;q=0.1"] {
        for method in ["GET", "HEAD"] {
            let answer = fetch(&server, method, "/", &[("accept", accept)]).await;
            assert_eq!((answer.status, answer.header("location")), (302, "/admin"), "{accept}");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
    let plain: [&[(&str, &str)]; 6] = [
        &[],
        &[("accept", "*/*")],
        &[("accept", "text/*")],
        &[("accept", "application/json")],
        &[("accept", "text/html;q=0")],
        &[("user-agent", "Mozilla/5.0"), ("accept", "*/*")],
    ];
    for headers in plain {
        let answer = fetch(&server, "GET", "/", headers).await;
        assert_eq!(answer.status, 404, "{headers:?}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["error"], "not_found");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(fetch(&server, method, "/", &[("accept", BROWSER)]).await.status, 404, "{method}");
    }
    // Other paths that do not exist still get 404.
    assert_eq!(fetch(&server, "GET", "/api/v1/nothing", &[("accept", BROWSER)]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_read_and_nothing_else() {
    let server = server().await;
    let file = asset_path(&manifest()[0]);
    for path in ["/admin", "/admin/", "/admin/records", &file, "/admin/assets/none.js"] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "QUERY"] {
            let answer = fetch(&server, method, path, &[]).await;
            let allowed = answer.header("allow").replace(' ', "");
            assert_eq!((answer.status, allowed.as_str()), (405, "GET,HEAD"), "{method} {path}");
        }
    }
    let local = |host: &'static str| [("host", host), ("accept", BROWSER)];
    for path in ["/admin", file.as_str(), "/"] {
        assert_eq!(fetch(&server, "GET", path, &local("console.evil.example")).await.status, 403, "{path}");
        assert_eq!(fetch(&server, "GET", path, &[("origin", "https://evil.example")]).await.status, 403, "{path}");
    }
    // The page ignores credentials, and sets none.
    for credential in [("authorization", "Bearer nothing"), ("x-api-key", "svc_nothing"), ("cookie", "svc.session_token=x")] {
        for path in ["/admin", file.as_str()] {
            let answer = fetch(&server, "GET", path, &[credential]).await;
            assert_eq!((answer.status, answer.headers.contains_key("set-cookie")), (200, false), "{credential:?} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_files_have_a_limit_of_their_own() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_RATE_LIMIT_RPM", "5").start().await;
    let file = asset_path(&manifest()[0]);
    for _ in 0..40 {
        assert_eq!(fetch(&server, "GET", "/admin", &[]).await.status, 200);
        assert_eq!(fetch(&server, "GET", &file, &[]).await.status, 200);
    }
    // The limit of API requests is still unused.
    for _ in 0..5 {
        assert_eq!(fetch(&server, "GET", "/api/v1/instance", &[]).await.status, 200);
    }
    assert_eq!(fetch(&server, "GET", "/api/v1/instance", &[]).await.status, 429);
    assert_eq!(fetch(&server, "GET", "/admin", &[]).await.status, 200);
    let client = http_client();
    let mut refused = None;
    for _ in 0..1000 {
        let answer = client.get(format!("{}{file}", server.base)).send().await.unwrap();
        if answer.status() == 429 {
            refused = Some(answer);
            break;
        }
    }
    assert!(refused.expect("files have a limit").headers().contains_key("retry-after"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_says_where_the_console_is_and_who_becomes_admin() {
    let fresh = server().await;
    until("the console's address is printed", async || fresh.printed().contains("first account")).await;
    let printed = fresh.printed();
    assert!(printed.contains(&format!("The console is at {}/admin\n", fresh.base)), "{printed}");
    assert!(printed.contains("The first account becomes admin") && !printed.contains("setup token"), "{printed}");
    fresh.admin().await;
    let known = fresh.restart().await;
    until("the console's address is printed", async || known.printed().contains("/admin\n")).await;
    assert!(!known.printed().contains("first account"), "{}", known.printed());

    let guarded = ServerBuilder::new(Engine::Sqlite)
        .env("SVC_SETUP_TOKEN", "auto")
        .env("SVC_PUBLIC_URL", "https://api.example.com/")
        .start()
        .await;
    until("the setup token is printed", async || guarded.printed().contains("setup token: ")).await;
    let printed = guarded.printed();
    assert!(printed.contains("The console is at https://api.example.com/admin\n"), "{printed}");
    let token = printed.split("setup token: ").nth(1).unwrap().trim();
    let body = json!({ "name": "a", "email": "a@example.com", "password": "correct horse battery" });
    let signed_up = guarded.request("POST", "/api/auth/sign-up/email").header("x-setup-token", token).json(&body);
    assert_eq!(guarded.send(signed_up).await.status, 200);

    let chosen = ServerBuilder::new(Engine::Sqlite).env("SVC_SETUP_TOKEN", "chosen-by-hand-1234").start().await;
    until("a hint is printed", async || chosen.printed().contains("SVC_SETUP_TOKEN")).await;
    assert!(!chosen.printed().contains("chosen-by-hand-1234"), "{}", chosen.printed());
}
