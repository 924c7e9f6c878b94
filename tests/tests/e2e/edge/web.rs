//! Protection against browsers and the network: hosts, origins, response headers, metrics, the log, the first sign-up.

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One path of each surface, with a method that it supports.
const SURFACES: [(&str, &str); 6] = [
    ("GET", "/api/v1/data/task"),
    ("POST", "/api/v1/data/task"),
    ("GET", "/api/v1/me"),
    ("POST", "/api/v1/graphql"),
    ("POST", "/api/v1/mcp"),
    ("POST", "/api/auth/sign-up/email"),
];

async fn ask(server: &Server, (method, path): (&str, &str), headers: &[(&str, &str)]) -> Answer {
    let request = server.request(method, path).json(&json!({}));
    server.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

fn port(server: &Server) -> &str {
    server.base.rsplit_once(':').unwrap().1
}

/// Sends bytes, and returns everything until the server closes the connection.
async fn raw(server: &Server, text: &str) -> String {
    let mut stream = TcpStream::connect(server.base.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The log of the boot.
async fn log_of_boot(server: &Server) -> String {
    server.log_with("ready").await
}

/// The address of the separate listener for metrics.
async fn metrics_address(server: &Server) -> String {
    let log = server.log_with("server.metrics_address=").await;
    log.split("server.metrics_address=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

on_both_engines! {
    async fn a_foreign_page_may_do_nothing(engine: Engine) {
        for enforced in ["true", "false"] {
            let server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", enforced).start().await;
            let port = port(&server);
            for surface in SURFACES {
                for origin in ["https://evil.example", "http://localhost:1", &format!("https://localhost:{port}"), "null"] {
                    let answer = ask(&server, surface, &[("origin", origin)]).await;
                    assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("INVALID_ORIGIN")), "{surface:?} {origin}: {}", answer.text);
                    let message = answer.json()["message"].as_str().unwrap().to_owned();
                    assert!(message.contains(origin) && message.contains("SVC_TRUSTED_ORIGINS"), "{message}");
                }
                let rebound = ask(&server, surface, &[("host", &format!("evil.example:{port}"))]).await;
                let json = rebound.expect_error(403, "forbidden");
                assert!(json["message"].as_str().unwrap().contains("evil.example") && rebound.text.contains("SVC_PUBLIC_URL"), "{json}");
                for own in [format!("http://localhost:{port}"), format!("http://127.0.0.1:{port}"), format!("http://[::1]:{port}")] {
                    let answer = ask(&server, surface, &[("origin", &own)]).await;
                    assert_ne!(answer.status, 403, "{surface:?} {own}: {}", answer.text);
                }
            }
            // Check that the requests have changed nothing.
            assert_eq!(server.sql("SELECT count(*) FROM svc_users").await[0][0], "0");
            // A write with a cookie still needs an origin.
            let answer = ask(&server, SURFACES[1], &[("cookie", "a=b")]).await;
            assert_eq!(answer.json()["error"], "MISSING_OR_NULL_ORIGIN", "{}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_a_known_name_or_an_address() {
    let server = ServerBuilder::new(Engine::Sqlite)
        .env("SVC_PUBLIC_URL", "https://api.example.com")
        .env("SVC_TRUSTED_ORIGINS", "https://app.example.com")
        .start()
        .await;
    let port = port(&server);
    let me = ("GET", "/api/v1/me");
    for host in [
        "api.example.com",
        "API.example.com:443",
        "app.example.com",
        &format!("localhost:{port}"),
        &format!("127.0.0.1:{port}"),
        &format!("[::1]:{port}"),
        "192.0.2.7:8080",
    ] {
        assert_eq!(ask(&server, me, &[("host", host)]).await.status, 200, "{host}");
    }
    for host in ["evil.example", "localhost:1", "api.example.com.evil.example"] {
        ask(&server, me, &[("host", host)]).await.expect_error(403, "forbidden");
        // Health checks may use any host name.
        for path in ["/healthz", "/readyz"] {
            assert_eq!(ask(&server, ("GET", path), &[("host", host)]).await.status, 200, "{host}");
        }
    }
    // A page from an IP address belongs to the server only if it has the same scheme and port.
    for (host, own, foreign) in [
        ("192.0.2.7".to_owned(), "https://192.0.2.7".to_owned(), "http://192.0.2.7".to_owned()),
        ("192.0.2.7:443".to_owned(), "https://192.0.2.7".to_owned(), "http://192.0.2.7:80".to_owned()),
        (format!("192.0.2.7:{port}"), format!("http://192.0.2.7:{port}"), "http://192.0.2.7".to_owned()),
    ] {
        assert_eq!(ask(&server, me, &[("host", &host), ("origin", &own)]).await.status, 200, "{host} {own}");
        let refused = ask(&server, me, &[("host", &host), ("origin", &foreign)]).await;
        assert_eq!((refused.status, &refused.json()["error"]), (403, &json!("INVALID_ORIGIN")), "{host} {foreign}");
    }
    // A load balancer may send HTTP/1.0 without a host, or a malformed host.
    for path in ["/healthz", "/readyz"] {
        for head in [format!("GET {path} HTTP/1.0\r\n"), format!("GET {path} HTTP/1.1\r\nHost: a/b\r\n")] {
            let answer = raw(&server, &format!("{head}Connection: close\r\n\r\n")).await;
            assert_eq!(answer.split(' ').nth(1), Some("200"), "{head} {answer}");
        }
    }
    for head in [
        "GET /api/v1/me HTTP/1.1\r\nHost: evil@127.0.0.1\r\n",
        "GET /api/v1/me HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.example\r\n",
        "GET http://evil.example/api/v1/me HTTP/1.1\r\nHost: api.example.com\r\n",
        "GET /api/v1/me HTTP/1.1\r\nHost: a/b\r\n",
        "GET /api/v1/me HTTP/1.0\r\n",
    ] {
        let answer = raw(&server, &format!("{head}Connection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.") && answer.contains(" 400 Bad Request"), "{head}: {answer}");
    }
    // For a server with a public name, a page from a loopback address is foreign, but a page from the address of the request is
    // not foreign.
    let answer = ask(&server, me, &[("origin", &format!("http://localhost:{port}"))]).await;
    assert_eq!(answer.json()["error"], "INVALID_ORIGIN");
    let own = [("host", "192.0.2.7:8080"), ("origin", "http://192.0.2.7:8080")];
    assert_eq!(ask(&server, me, &own).await.status, 200);
    assert_eq!(ask(&server, me, &[own[0], ("origin", "http://192.0.2.7:8081")]).await.status, 403);
    // Third parties call hooks at the public host. Pages of other origins may call them too.
    let hook = ("POST", "/api/v1/hooks/none/none");
    ask(&server, hook, &[("origin", "https://evil.example")]).await.expect_error(404, "not_found");
    ask(&server, hook, &[("host", "evil.example")]).await.expect_error(403, "forbidden");
}

on_both_engines! {
    async fn answers_stay_out_of_caches_and_frames(engine: Engine) {
        for (public_url, is_https) in [("https://api.example.com", true), ("http://api.example.com", false)] {
            let server = ServerBuilder::new(engine).env("SVC_PUBLIC_URL", public_url).start().await;
            let admin = server.admin().await;
            admin.make_task_object().await;
            let mut answers = vec![
                admin.get("/api/v1/data/task").await,
                admin.get("/api/v1/data/nothing").await,
                admin.post("/api/v1/data/task", json!({ "title": "a" })).await,
                admin.get("/api/v1/me").await,
                admin.get("/api/auth/get-session").await,
                admin.post("/api/v1/graphql", json!({ "query": "{ task { data { id } } }" })).await,
                server.call("GET", "/api/v1/data/task", None).await,
                server.call("GET", "/api/v1/nowhere", None).await,
            ];
            answers.push(admin.get("/api/v1/users").await);
            for answer in &answers {
                assert_eq!(answer.headers["cache-control"], "no-store", "{}", answer.text);
            }
            let document = admin.get("/api/v1/openapi.json").await;
            assert_eq!(document.headers["cache-control"], "private, no-cache");
            let known = admin.request("GET", "/api/v1/openapi.json").header("if-none-match", document.headers["etag"].clone());
            let known = server.send(known).await;
            assert_eq!(known.status, 304);
            answers.extend([document, known]);
            for answer in &answers {
                let varies: Vec<_> = answer.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
                let varies = varies.join(", ").to_lowercase();
                for name in ["authorization", "cookie", "x-api-key", "origin"] {
                    assert!(varies.contains(name), "{varies}: {}", answer.text);
                }
                assert_eq!(answer.headers["x-content-type-options"], "nosniff");
                assert!(answer.headers["content-security-policy"].to_str().unwrap().contains("frame-ancestors 'none'"));
                let strict = answer.headers.get("strict-transport-security").map(|value| value.to_str().unwrap());
                assert_eq!(strict, is_https.then_some("max-age=31536000"));
            }
        }
    }

    async fn a_request_leaves_one_line_without_secrets(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG_FORMAT", "json").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let id = admin.make("task", json!({ "title": "hunter2" })).await;
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin" })).await.json();
        let request = admin.request("GET", &format!("/api/v1/data/task/{id}?select=title&hunter2=hunter2"));
        server.send(request.header("x-request-id", "of-the-test")).await;
        server.call_as(key["key"].as_str(), "GET", "/api/v1/data/task", None).await.data();
        server.call("GET", "/hunter2", None).await.expect_error(404, "not_found");
        server.call("GET", "/healthz", None).await;
        let log = server.log_with("\"http.route\":\"none\"").await;
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let answered: Vec<&Value> = lines.iter().filter(|line| line["fields"]["message"] == "answered").collect();
        let of = |route: &str, method: &str| {
            let found = answered.iter().filter(|line| line["fields"]["http.route"] == route && line["fields"]["http.method"] == method);
            found.map(|line| (**line).clone()).collect::<Vec<_>>()
        };
        let one = of("/api/v1/data/{object}/{id}", "GET").remove(0);
        assert_eq!((&one["level"], &one["span"]["request.id"]), (&json!("INFO"), &json!("of-the-test")));
        assert!(one["fields"]["http.status"].is_number() && one["fields"]["http.time_ms"].is_number(), "{one}");
        let me = admin.get("/api/v1/me").await.json();
        assert_eq!(one["fields"]["principal"], format!("user:{}", me["userId"].as_str().unwrap()));
        let by_key = of("/api/v1/data/{object}", "GET").remove(0);
        assert_eq!(by_key["fields"]["principal"], format!("key:{}", key["data"]["id"].as_str().unwrap()));
        let nowhere = of("none", "GET").remove(0);
        assert_eq!((&nowhere["fields"]["http.status"], &nowhere["fields"]["principal"]), (&json!(404), &json!("none")));
        assert_eq!(of("/api/auth/sign-up/email", "POST").len(), 1);
        assert!(!log.contains("healthz"), "{log}");
        for secret in ["hunter2", &id, &admin.token, key["key"].as_str().unwrap(), "correct horse"] {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
        let quiet = ServerBuilder::new(engine).env("SVC_LOG_REQUESTS", "false").start().await;
        quiet.admin().await;
        assert!(!quiet.log().contains("answered"), "{}", quiet.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_for_those_who_operate_the_server() {
    let with_telemetry = || ServerBuilder::new(Engine::Sqlite).env("SVC_TELEMETRY", "true");
    let metrics = ("GET", "/metrics");
    // Without further settings, only this machine gets the metrics.
    let server = with_telemetry().start().await;
    assert_eq!(server.call("GET", "/metrics", None).await.status, 200);
    for (name, value) in [
        ("forwarded", "for=192.0.2.1"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("origin", "http://a.example"),
        ("host", "evil.example"),
    ] {
        let refused = ask(&server, metrics, &[(name, value)]).await;
        assert!(refused.expect_error(403, "forbidden")["message"].as_str().unwrap().contains("SVC_METRICS_TOKEN"), "{name}");
    }
    let server = with_telemetry().env("SVC_PUBLIC_URL", "https://api.example.com").start().await;
    server.call("GET", "/metrics", None).await.expect_error(403, "forbidden");
    // With a token, a client that sends it gets the metrics under any host name.
    let server = with_telemetry()
        .env("SVC_METRICS_TOKEN", "of-the-scraper")
        .env("SVC_PUBLIC_URL", "https://api.example.com")
        .start()
        .await;
    for wrong in [None, Some("of-the-scrape"), Some("of-the-scraper2"), Some("")] {
        server.call_as(wrong, "GET", "/metrics", None).await.expect_error(401, "unauthorized");
    }
    let scraped = ask(
        &server,
        metrics,
        &[("authorization", "bearer of-the-scraper"), ("host", "blockbase:4000"), ("x-forwarded-for", "192.0.2.1")],
    )
    .await;
    assert!(scraped.status == 200 && scraped.text.contains("target_info"), "{}", scraped.text);
    let admin = server.admin().await;
    admin.get("/metrics").await.expect_error(401, "unauthorized");
    // With a separate listener, the metrics are only there.
    let server = with_telemetry().env("SVC_METRICS_LISTEN", "127.0.0.1:0").start().await;
    server.call("GET", "/metrics", None).await.expect_error(404, "not_found");
    let address = metrics_address(&server).await;
    let client = blockbase_tests::http_client();
    let own = client.get(format!("http://{address}/metrics")).send().await.unwrap();
    assert_eq!((own.status().as_u16(), &own.headers()["x-content-type-options"]), (200, &"nosniff".parse().unwrap()));
    assert_eq!(
        client.get(format!("http://{address}/metrics")).header("host", "evil.example").send().await.unwrap().status(),
        403
    );
    for path in ["/api/v1/me", "/healthz", "/"] {
        assert_eq!(client.get(format!("http://{address}{path}")).send().await.unwrap().status(), 404, "{path}");
    }
    let server =
        with_telemetry().env("SVC_METRICS_LISTEN", "127.0.0.1:0").env("SVC_METRICS_TOKEN", "of-the-scraper").start().await;
    let address = metrics_address(&server).await;
    assert_eq!(client.get(format!("http://{address}/metrics")).send().await.unwrap().status(), 401);
    assert_eq!(client.get(format!("http://{address}/metrics")).bearer_auth("of-the-scraper").send().await.unwrap().status(), 200);
}

fn sign_up_body(name: &str) -> Value {
    json!({ "name": name, "email": format!("{name}@example.com"), "password": "correct horse battery" })
}

async fn sign_up(server: &Server, name: &str, token: Option<&str>) -> Answer {
    let request = server.request("POST", "/api/auth/sign-up/email").json(&sign_up_body(name));
    server
        .send(match token {
            Some(token) => request.header("x-setup-token", token),
            None => request,
        })
        .await
}

on_both_engines! {
    async fn the_first_sign_up_needs_the_setup_token(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_SETUP_TOKEN", "of-the-operator-1").env("SVC_ANONYMOUS_AUTH", "true").start().await;
        assert!(!log_of_boot(&server).await.contains("of-the-operator-1"));
        for wrong in [None, Some(""), Some("of-the-operato"), Some("auto")] {
            let refused = sign_up(&server, "eve", wrong).await;
            let json = refused.expect_error(403, "setup_token_required");
            assert_eq!(json["code"], "setup_token_required");
        }
        // A guest is not an admin. To become one, the guest needs the token too.
        let guest = server.call("POST", "/api/auth/sign-in/anonymous", None).await.json()["token"].as_str().unwrap().to_owned();
        let upgrade = server.call_as(Some(&guest), "POST", "/api/auth/sign-up/email", Some(sign_up_body("eve"))).await;
        upgrade.expect_error(403, "setup_token_required");
        assert_eq!(server.sql("SELECT count(*) FROM svc_credentials").await[0][0], "0");
        let first = sign_up(&server, "ada", Some("of-the-operator-1")).await;
        assert_eq!(first.status, 200, "{}", first.text);
        let ada = server.with_token(first.json()["token"].as_str().unwrap().to_owned());
        assert_eq!(ada.get("/api/v1/me").await.json()["roles"], json!(["admin"]));
        // The second account needs no token.
        assert_eq!(sign_up(&server, "bob", None).await.status, 200);
    }

    async fn an_automatic_setup_token_stays_the_same_and_is_logged_while_it_is_needed(engine: Engine) {
        let token_of = |log: String| log.split("x-setup-token: ").nth(1).map(|rest| rest.chars().take(32).collect::<String>());
        let server = ServerBuilder::new(engine).env("SVC_SETUP_TOKEN", "auto").start().await;
        let token = token_of(log_of_boot(&server).await).unwrap();
        assert!(token.chars().all(|character| character.is_ascii_hexdigit()), "{token}");
        let server = server.restart().await;
        assert_eq!(token_of(log_of_boot(&server).await).as_ref(), Some(&token));
        sign_up(&server, "eve", Some("auto")).await.expect_error(403, "setup_token_required");
        assert_eq!(sign_up(&server, "ada", Some(&token)).await.status, 200);
        let server = server.restart().await;
        assert_eq!(token_of(log_of_boot(&server).await), None);
        let other = ServerBuilder::new(engine).env("SVC_SETUP_TOKEN", "auto").start().await;
        assert_ne!(token_of(log_of_boot(&other).await).unwrap(), token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_server_that_others_reach_warns() {
    const WARNING: &str = "NOBODY HAS SIGNED UP YET";
    let here = ServerBuilder::new(Engine::Sqlite).start().await;
    assert!(!log_of_boot(&here).await.contains(WARNING));
    for (name, value) in [("SVC_LISTEN", "0.0.0.0:0"), ("SVC_PUBLIC_URL", "https://api.example.com")] {
        let open = ServerBuilder::new(Engine::Sqlite).env(name, value).start().await;
        assert!(log_of_boot(&open).await.contains(WARNING));
        let closed =
            ServerBuilder::new(Engine::Sqlite).env(name, value).env("SVC_SETUP_TOKEN", "a-token-of-an-operator").start().await;
        assert!(!log_of_boot(&closed).await.contains(WARNING));
    }
}
