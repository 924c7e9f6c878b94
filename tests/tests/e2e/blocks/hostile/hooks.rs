//! Hooks: the parts of a request that they get, the responses that they may return, and their limits.

use blockbase_tests::{Admin, Answer, Engine, Exposition, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{good, impatient, install, until};

async fn hook(server: &Server, method: &str, path: &str, headers: &[(&str, &[u8])], body: impl Into<Vec<u8>>) -> Answer {
    let mut request = server.request(method, &format!("/api/v1/hooks/hostile/{path}")).body(body.into());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request).await
}

/// Makes the hook return this response.
async fn answered(server: &Server, status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let wanted = json!({ "status": status, "headers": headers, "body": body });
    hook(server, "POST", "answer", &[], wanted.to_string()).await
}

/// The values of a header that the hook got, as bytes.
fn values(mirrored: &Value, name: &str) -> Vec<Vec<u8>> {
    let headers: Vec<(String, Vec<u8>)> = serde_json::from_value(mirrored["headers"].clone()).unwrap();
    headers.into_iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect()
}

async fn logged(admin: &Admin<'_>, part: &str) -> Value {
    let found = async || {
        let lines = admin.get("/api/v1/blocks/hostile/logs?limit=50").await.data();
        lines.as_array().unwrap().iter().find(|line| line["message"].as_str().unwrap().contains(part)).cloned()
    };
    until("it is logged", async || found().await.is_some()).await;
    found().await.unwrap()
}

on_both_engines! {
    async fn a_hook_gets_the_request_as_it_came(engine: Engine) {
        let server = impatient(engine).env("SVC_TRUSTED_PROXIES", "127.0.0.1/32").start().await;
        let admin = server.admin().await;
        install(&admin, "", json!({})).await;
        let body: Vec<u8> = vec![0, 255, 254, b'{', 10, 13, 0xc3];
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let headers: [(&str, &[u8]); 5] = [
                ("x-twice", b"one"),
                ("x-twice", b"two, three"),
                ("x-raw", b"\xff\xfe\xe9"),
                ("x-forwarded-for", b"203.0.113.7"),
                ("authorization", b"Bearer theirs"),
            ];
            let answer = hook(&server, method, "mirror?a=1&b=%C3%B6&a=2", &headers, body.clone()).await;
            assert_eq!(answer.status, 200, "{method}: {}", answer.text);
            let got = answer.json();
            assert_eq!((&got["method"], &got["path"], &got["query"]), (&json!(method), &json!("/api/v1/hooks/hostile/mirror"), &json!("a=1&b=%C3%B6&a=2")));
            assert_eq!(got["body"], json!(body));
            assert_eq!(values(&got, "x-twice"), [b"one".to_vec(), b"two, three".to_vec()]);
            assert_eq!(values(&got, "x-raw"), [b"\xff\xfe\xe9".to_vec()]);
            assert_eq!(values(&got, "authorization"), [b"Bearer theirs".to_vec()]);
            assert_eq!((&got["remoteAddress"], &got["isAnonymous"]), (&json!("203.0.113.7"), &json!(true)));
            assert_eq!(answer.headers["content-security-policy"], "sandbox");
            assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        }
        assert_eq!(hook(&server, "POST", "mirror", &[], "").await.json()["remoteAddress"], "127.0.0.1");
        let head = hook(&server, "HEAD", "mirror", &[], "").await;
        assert_eq!((head.status, head.text.as_str()), (200, ""));
        hook(&server, "BREW", "mirror", &[], "").await.expect_error(405, "method_not_allowed");

        // A session has no effect here, and its cookie is not passed on. Other cookies are passed on.
        let signed_in = server.request("POST", "/api/auth/sign-in/email").json(&json!({ "email": "admin@example.com", "password": "correct horse battery" }));
        let cookie = server.send(signed_in).await.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let cookies = format!("first=1; {cookie}; last=2");
        // A browser sends the cookie from any page. The hook does not use the session's rights, so the request is accepted.
        let headers: [(&str, &[u8]); 4] = [
            ("cookie", cookies.as_bytes()),
            ("origin", b"https://elsewhere.example"),
            ("sec-fetch-site", b"cross-site"),
            ("content-type", b"application/x-www-form-urlencoded"),
        ];
        let got = hook(&server, "POST", "mirror", &headers, "a=1").await.json();
        assert_eq!(values(&got, "cookie"), [b"first=1; last=2".to_vec()]);
        assert_eq!((&values(&got, "origin")[0], &got["isAnonymous"]), (&b"https://elsewhere.example".to_vec(), &json!(true)));
        let alone = hook(&server, "POST", "mirror", &[("cookie", cookie.as_bytes())], "").await.json();
        assert_eq!(values(&alone, "cookie"), Vec::<Vec<u8>>::new());
        assert!(!got.to_string().contains(cookie.split_once('=').unwrap().1));

        hook(&server, "POST", "nothing", &[], "").await.expect_error(404, "not_found");
        server.call("POST", "/api/v1/hooks/nothing/mirror", None).await.expect_error(404, "not_found");
        // An action is not a hook.
        hook(&server, "POST", "good", &[], "{}").await.expect_error(404, "not_found");
        admin.patch("/api/v1/blocks/hostile", json!({ "enabled": false })).await.data();
        hook(&server, "POST", "mirror", &[], "").await.expect_error(404, "not_found");
        admin.patch("/api/v1/blocks/hostile", json!({ "enabled": true })).await.data();
        assert_eq!(hook(&server, "POST", "mirror", &[], "").await.status, 200);
    }

    async fn a_hook_that_fails_tells_the_sender_nothing(engine: Engine) {
        let server = impatient(engine).env("SVC_TELEMETRY", "true").start().await;
        let admin = server.admin().await;
        install(&admin, "", json!({})).await;
        let silent = hook(&server, "POST", "silent", &[], "").await;
        assert_eq!((silent.status, silent.json()), (200, json!({ "received": true })));
        for (name, reason) in [("refuse", "signature is 4 bytes short"), ("panic", "The block trapped: wasm `unreachable`")] {
            let failed = hook(&server, "POST", name, &[], "").await.expect_error(500, "action_failed");
            assert_eq!(failed["message"], "The hook failed.");
            assert!(!failed.to_string().contains("short") && !failed.to_string().contains("inside"), "{failed}");
            let line = logged(&admin, reason).await;
            assert_eq!(line["level"], "error");
            assert!(!line["message"].as_str().unwrap().contains('\u{1b}'), "{line}");
        }
        let late = hook(&server, "POST", "slow", &[], "").await.expect_error(504, "action_timeout");
        assert_eq!(late["message"], "The hook did not end in time.");
        logged(&admin, "did not end within 1500 ms").await;
        assert!(!server.log().contains('\u{1b}'));
        good(&admin).await;

        let shown = Exposition::parse(&server.call("GET", "/metrics", None).await.text);
        let labels = |name: &'static str, outcome: &'static str| [("svc_block", "hostile"), ("svc_hook", name), ("svc_outcome", outcome)];
        for (name, outcome) in [("silent", "success"), ("refuse", "failed"), ("panic", "failed"), ("slow", "failed")] {
            assert_eq!(shown.value("svc_hook_deliveries_total", &labels(name, outcome)), Some(1.0), "{name}");
            assert_eq!(shown.value("svc_hook_duration_milliseconds_count", &labels(name, outcome)), Some(1.0), "{name}");
        }
        let slow = shown.value("svc_hook_duration_milliseconds_sum", &labels("slow", "failed")).unwrap();
        assert!((1500.0..20_000.0).contains(&slow), "{slow} ms");
        let block = ("svc_block", "hostile");
        let trap = ("svc_block_trap", "wasm `unreachable` instruction executed");
        assert_eq!(shown.value("svc_block_traps_total", &[block, trap]), Some(1.0));
        assert_eq!(shown.value("svc_block_limits_total", &[block, ("svc_block_limit", "deadline")]), Some(1.0));
        // Every call counts, no matter how it ends. The call during the install that listed the handlers counts too.
        for family in ["svc_block_cpu_time_milliseconds_count", "svc_block_memory_peak_bytes_count"] {
            assert_eq!(shown.value(family, &[block]), Some(6.0), "{family}");
        }
        assert!(shown.value("svc_block_memory_peak_bytes_sum", &[block]).unwrap() >= 6.0 * 65536.0);
    }
}

// The responses of hooks do not depend on the database, so one engine is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_answers_that_are_responses_are_sent() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let chosen = answered(
        &server,
        418,
        &[("content-type", "text/x-tea"), ("x-a", "1"), ("x-a", "2"), ("location", "/pot")],
        "short and stout",
    )
    .await;
    assert_eq!(
        (chosen.status, chosen.text.as_str(), &chosen.headers["content-type"]),
        (418, "short and stout", &"text/x-tea".parse().unwrap())
    );
    assert_eq!(chosen.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(chosen.headers["location"], "/pot");

    // A hook cannot set the service's own headers, and the service forbids the browser to run anything.
    let own = [
        ("set-cookie", "blockbase.session_token=x"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("clear-site-data", "\"*\""),
        ("service-worker-allowed", "/"),
        ("strict-transport-security", "max-age=1"),
        ("access-control-allow-credentials", "true"),
        ("x-content-type-options", "none"),
        ("content-security-policy", "default-src *"),
    ];
    let kept = answered(&server, 200, &own, "<script>alert(1)</script>").await;
    assert_eq!((kept.status, kept.text.as_str()), (200, "<script>alert(1)</script>"));
    for name in ["set-cookie", "clear-site-data", "service-worker-allowed", "strict-transport-security"] {
        assert!(!kept.headers.contains_key(name), "{name}: {:?}", kept.headers);
    }
    // The service itself sets this header, for origins that it trusts.
    assert!(!kept.headers.contains_key("access-control-allow-origin"));
    assert_eq!(kept.headers.get_all("access-control-allow-credentials").iter().count(), 1);
    assert_eq!(kept.headers["x-content-type-options"], "nosniff");
    assert!(kept.headers.get_all("content-security-policy").iter().any(|policy| policy == "sandbox"));

    let wrong = [
        (99, ("x-a", "b")),
        (0, ("x-a", "b")),
        (100, ("x-a", "b")),
        (101, ("x-a", "b")),
        (600, ("x-a", "b")),
        (1000, ("x-a", "b")),
        (65535, ("x-a", "b")),
        (200, ("", "b")),
        (200, ("x a", "b")),
        (200, ("x-a:", "b")),
        (200, ("x-\u{f6}", "b")),
        (200, ("x-a", "b\r\nset-cookie: c=d")),
        (200, ("x-a", "b\n")),
        (200, ("x-a", "b\0")),
        (200, ("x-a", "\u{7f}")),
    ];
    for (status, header) in wrong {
        let failed = answered(&server, status, &[header], "").await;
        assert_eq!(failed.expect_error(500, "action_failed")["message"], "The hook failed.");
        assert!(!failed.headers.contains_key("x-a") && !failed.headers.contains_key("set-cookie"), "{:?}", failed.headers);
    }
    let line = logged(&admin, "did not return a valid response: the status 1000").await;
    assert_eq!((&line["level"], &line["callId"].is_string()), (&json!("error"), &true));
    logged(&admin, "did not return a valid response: the value of the header x-a").await;
    logged(&admin, "did not return a valid response: a header named \"x a\"").await;

    // A status that allows no body is sent without one, and the connection stays open.
    for status in [204, 304] {
        let bare = answered(&server, status, &[], "a body all the same").await;
        assert_eq!((bare.status, bare.text.as_str()), (status, ""));
    }
    let many: Vec<(String, &str)> = (0..40_000).map(|number| (format!("x-{number}"), "b")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(answered(&server, 200, &many, "").await.expect_error(500, "action_failed")["message"], "The hook failed.");
    logged(&admin, "did not return a valid response: headers of more than 65536 bytes").await;
    good(&admin).await;
}

// The limits of requests to hooks do not depend on the database either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_hooks_are_bounded() {
    let server = ServerBuilder::new(Engine::Sqlite)
        .env("SVC_MAX_BODY_BYTES", "100000")
        .env("SVC_RATE_LIMIT_RPM", "60")
        .env("SVC_TRUSTED_PROXIES", "127.0.0.1/32")
        .start()
        .await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let from = |address: &'static str| -> [(&str, &[u8]); 1] { [("x-forwarded-for", address.as_bytes())] };
    let body = |bytes: usize| vec![b'x'; bytes];
    hook(&server, "POST", "mirror", &from("198.51.100.1"), body(100_001)).await.expect_error(413, "payload_too_large");
    let whole = hook(&server, "POST", "mirror", &from("198.51.100.1"), body(100_000)).await;
    assert_eq!(whole.json()["body"].as_array().map(Vec::len), Some(100_000));
    // The size of a chunked body is not known in advance.
    let head = "POST /api/v1/hooks/hostile/mirror HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\nx-forwarded-for: 198.51.100.2\r\n\r\n";
    let mut stream = TcpStream::connect(server.base.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..8 {
        let piece = format!("{:x}\r\n{}\r\n", 20_000, "x".repeat(20_000));
        if stream.write_all(piece.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(start, *b"HTTP/1.1 413");

    let mut limited = None;
    for _ in 0..100 {
        let answer = hook(&server, "POST", "silent", &from("198.51.100.3"), "").await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    limited.expect("the limit was reached").expect_error(429, "rate_limited");
    // The limit does not affect other clients.
    assert_eq!(hook(&server, "POST", "silent", &from("198.51.100.4"), "").await.status, 200);
}
