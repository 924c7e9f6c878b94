//! Outbound requests of blocks: they can only go to granted origins and public addresses, within the limits of a call.
//!
//! These tests run only on SQLite, because the blocks use no data.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use blockbase_tests::{Admin, Answer, Engine, Receiver, Reply, Server, ServerBuilder};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::{call, expect_limit, good, impatient, install, staying_ready, until};

const MEGABYTE: usize = 1024 * 1024;
/// The two ways to send a request.
const WAYS: [&str; 2] = ["send", "wasi_send"];

/// The scheme, host and port of a URL.
fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

async fn install_with_origins(admin: &Admin<'_>, origins: &[String]) {
    install(admin, "", json!({ "permissions": { "http": origins } })).await;
}

/// A server whose calls have enough time for megabytes, even on a slow machine.
async fn local_server() -> Server {
    let patient = ServerBuilder::new(Engine::Sqlite).env("SVC_ACTION_TIMEOUT_MS", "60000");
    patient.env("SVC_ALLOW_PRIVATE_NETWORK", "true").start().await
}

async fn send(admin: &Admin<'_>, way: &str, url: &str, more: Value) -> Answer {
    let mut input = json!({ "url": url });
    for (key, value) in more.as_object().unwrap() {
        input[key] = value.clone();
    }
    call(admin, way, input).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_granted_origin_is_reached_and_no_other() {
    let server = local_server().await;
    let admin = server.admin().await;
    let (receiver, other) = (Receiver::start().await, Receiver::start().await);
    install_with_origins(&admin, &[origin(&receiver.url)]).await;
    let target = other.url.clone();
    for (place, way) in WAYS.into_iter().enumerate() {
        let (headers, method) = (json!([["x-twice", [49]], ["x-twice", [50]], ["x-raw", [233]]]), "PUT");
        receiver.answer(|_, _| Reply::Text(203, "answered".to_owned()));
        let answer =
            send(&admin, way, &receiver.url, json!({ "method": method, "headers": headers, "body_bytes": 3 })).await.data();
        assert_eq!((&answer["status"], &answer["bytes"]), (&json!(203), &json!(8)), "{way}");
        let received = &receiver.received()[place * 2];
        assert_eq!((received.body.as_ref(), received.headers["x-raw"].as_bytes()), (&b"xxx"[..], &[233_u8][..]));
        assert_eq!(received.headers.get_all("x-twice").iter().collect::<Vec<_>>(), ["1", "2"]);

        // A redirect is returned like any other response, and not followed.
        let elsewhere = target.clone();
        receiver.answer(move |_, _| Reply::Redirect(elsewhere.clone()));
        let answer = send(&admin, way, &receiver.url, json!({})).await.data();
        assert_eq!((&answer["status"], &answer["location"]), (&json!(302), &json!(other.url)), "{way}");

        let port = other.url.rsplit([':', '/']).nth(1).unwrap();
        for url in [
            other.url.clone(),
            receiver.url.replace("127.0.0.1", "localhost"),
            format!("https://127.0.0.1:{port}/"),
            "http://127.0.0.1/".to_owned(),
        ] {
            let refused = send(&admin, way, &url, json!({})).await;
            match way {
                "send" => {
                    let error = refused.expect_error(403, "forbidden");
                    assert!(error["message"].as_str().unwrap().contains("permissions.http"), "{error}");
                }
                _ => assert_eq!(refused.expect_error(503, "unavailable")["message"], "HttpRequestDenied"),
            }
        }
    }
    assert_eq!((receiver.count(), other.count()), (4, 0));
    // URLs with names and passwords, and malformed URLs.
    let named = receiver.url.replace("http://", "http://ann:secret@");
    send(&admin, "send", &named, json!({})).await.expect_error(400, "invalid_request");
    for url in ["", "/hook", "127.0.0.1", "http://", "http://[::1", "http://a b/"] {
        send(&admin, "send", url, json!({})).await.expect_error(400, "invalid_request");
    }
    for url in ["file:///etc/passwd", "ftp://127.0.0.1/", "data:,x", "http://evil.example\\@127.0.0.1/"] {
        send(&admin, "send", url, json!({})).await.expect_error(403, "forbidden");
    }
    assert_eq!(receiver.count(), 4);
    good(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_public_is_not_reached_even_if_it_is_granted() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let receiver = Receiver::start().await;
    let port = receiver.url.rsplit([':', '/']).nth(1).unwrap().to_owned();
    // This machine: by its addresses in each notation, by its own name, and by names that lead to it. Also the metadata service
    // of clouds.
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LOCALHOST",
        "a.localhost",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00:ec2::254]",
    ];
    let machine = std::fs::read_to_string("/etc/hostname").map(|name| name.trim().to_owned()).unwrap_or_default();
    let mut urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/hook")).collect();
    let resolves = tokio::net::lookup_host((machine.as_str(), 80)).await.is_ok_and(|mut found| {
        // If the machine's name leads to a public address, nothing can be tested.
        found.all(|address| match address.ip() {
            std::net::IpAddr::V4(address) => address.is_loopback() || address.is_private(),
            std::net::IpAddr::V6(address) => address.is_loopback(),
        })
    });
    if resolves {
        urls.push(format!("http://{machine}:{port}/hook"));
    }
    let mut origins: Vec<String> = urls.iter().map(|url| origin(url)).collect();
    origins.dedup();
    install_with_origins(&admin, &origins).await;
    for url in &urls {
        let error = send(&admin, "send", url, json!({})).await.expect_error(403, "forbidden");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("is not an address of the public internet"), "{url}: {message}");
        let error = send(&admin, "wasi_send", url, json!({})).await.expect_error(503, "unavailable");
        // The engine's own parser may refuse the address first. In either case nothing is sent.
        assert!(
            ["DestinationIpProhibited", "HttpRequestUriInvalid"].contains(&error["message"].as_str().unwrap()),
            "{url}: {error}"
        );
    }
    assert_eq!(receiver.count(), 0);
    good(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_call_are_bounded() {
    let server = local_server().await;
    let admin = server.admin().await;
    let receiver = Receiver::start().await;
    install_with_origins(&admin, &[origin(&receiver.url)]).await;
    for way in WAYS {
        let before = receiver.count();
        assert_eq!(send(&admin, way, &receiver.url, json!({ "times": 32 })).await.data()["status"], 200);
        staying_ready(&server, async {
            expect_limit(&send(&admin, way, &receiver.url, json!({ "times": 33 })).await, "sent more than 32 requests");
        })
        .await;
        assert_eq!(receiver.count(), before + 64, "{way}");

        let too_much = json!({ "method": "POST", "body_bytes": 8 * MEGABYTE + 1 });
        let answer = send(&admin, way, &receiver.url, too_much).await;
        expect_limit(&answer, "sent a request of more than 8388608 bytes");
        assert_eq!(receiver.count(), before + 64, "{way}");
        receiver.answer(|_, _| Reply::Text(200, "x".repeat(8 * MEGABYTE + 1)));
        let answer = send(&admin, way, &receiver.url, json!({})).await;
        expect_limit(&answer, "got an answer of more than 8388608 bytes");
        receiver.answer(|_, _| Reply::Text(200, "x".repeat(8 * MEGABYTE)));
        assert_eq!(send(&admin, way, &receiver.url, json!({})).await.data()["bytes"], 8 * MEGABYTE, "{way}");
        receiver.answer(|_, _| Reply::Status(200));
        good(&admin).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_are_not_the_blocks_to_set_are_refused() {
    let server = local_server().await;
    let admin = server.admin().await;
    let receiver = Receiver::start().await;
    install_with_origins(&admin, &[origin(&receiver.url)]).await;
    let with = |name: &str, value: &[u8]| json!({ "headers": [[name, value]] });
    for name in
        ["host", "Content-Length", "transfer-encoding", "connection", "upgrade", "proxy-authorization", "te", "trailer", "expect"]
    {
        let error = send(&admin, "send", &receiver.url, with(name, b"1")).await.expect_error(400, "invalid_request");
        assert!(error["message"].as_str().unwrap().contains(&format!("`{}`", name.to_lowercase())), "{error}");
    }
    for (name, value) in
        [("", &b"a"[..]), ("a b", b"a"), ("a:", b"a"), ("\u{f6}", b"a"), ("x-a", b"b\r\nx-c: d"), ("x-a", b"\n"), ("x-a", b"\0")]
    {
        send(&admin, "send", &receiver.url, with(name, value)).await.expect_error(400, "invalid_request");
        let refused = send(&admin, "wasi_send", &receiver.url, with(name, value)).await;
        refused.expect_error(400, "invalid_request");
    }
    let large = with("x-large", &[b'x'; 70_000]);
    let many: Vec<_> = (0..40_000).map(|number| (format!("x-{number}"), [b'x'])).collect();
    for headers in [large, json!({ "headers": many })] {
        let error = send(&admin, "send", &receiver.url, headers).await.expect_error(400, "invalid_request");
        assert_eq!(error["message"], "The headers of a request have 65536 bytes at most.");
    }
    for method in ["", "G T", "GET\r\n", "CONNECT"] {
        send(&admin, "send", &receiver.url, json!({ "method": method })).await.expect_error(400, "invalid_request");
    }
    assert_eq!(receiver.count(), 0);

    // With wasi:http some headers cannot be set, and others are dropped.
    for name in ["host", "connection", "transfer-encoding", "upgrade"] {
        let refused = send(&admin, "wasi_send", &receiver.url, with(name, b"evil.example")).await;
        refused.expect_error(400, "invalid_request");
    }
    for name in ["trailer", "expect", "te"] {
        let sent = send(&admin, "wasi_send", &receiver.url, with(name, b"evil")).await;
        if sent.status == 200 {
            assert!(!receiver.received().last().unwrap().headers.contains_key(name), "{name}");
        } else {
            sent.expect_error(400, "invalid_request");
        }
    }
    good(&admin).await;
}

/// Accepts connections and never responds. Counts the connections, and those that the other side has closed.
async fn silence() -> (String, Arc<[AtomicUsize; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let shared = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            shared[0].fetch_add(1, Ordering::SeqCst);
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let mut read = [0; 1024];
                while stream.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {}
                shared[1].fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    (url, counts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_answers_is_left_at_the_deadline() {
    // The time limit is long enough for a busy machine to connect.
    let server =
        impatient(Engine::Sqlite).env("SVC_ALLOW_PRIVATE_NETWORK", "true").env("SVC_ACTION_TIMEOUT_MS", "4000").start().await;
    let admin = server.admin().await;
    let (url, counts) = silence().await;
    install_with_origins(&admin, &[origin(&url)]).await;
    let count = |which: usize| counts[which].load(Ordering::SeqCst);
    for (turn, way) in WAYS.into_iter().enumerate() {
        let answer = staying_ready(&server, send(&admin, way, &url, json!({}))).await;
        // The guest's request fails at the same time as the server stops the guest. Either may happen first.
        assert!([503, 504].contains(&answer.status), "{way}: {} {}", answer.status, answer.text);
        if answer.status == 504 {
            answer.expect_error(504, "action_timeout");
        }
        until("the connection is closed", async || count(1) == turn + 1).await;
        assert_eq!(count(0), turn + 1);
    }
    // A shorter timeout of the request itself is an error that the block can handle.
    let error = send(&admin, "send", &url, json!({ "timeout_ms": 50 })).await.expect_error(503, "unavailable");
    assert!(error["message"].as_str().unwrap().contains("no answer within 50 ms"), "{error}");
    // A caller who disconnects closes this connection as well.
    let begun = count(0);
    tokio::select! {
        answer = send(&admin, "send", &url, json!({})) => panic!("answered before the caller hung up: {} {}", answer.status, answer.text),
        () = until("the request has arrived", async || count(0) == begun + 1) => {}
    }
    until("all are closed", async || count(1) == count(0)).await;
    // The request with the short timeout may have ended before it was connected.
    assert!([3, 4].contains(&count(0)), "{}", count(0));
    good(&admin).await;
}
