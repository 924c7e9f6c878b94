//! Turns: the requests of one caller never make other callers wait, for any of the shared resources.

use std::time::Duration;

use blockbase_tests::{
    Admin, Answer, Engine, Server, ServerBuilder, http_client, on_both_engines, on_sqlite_first, test_block, until, within,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{memory, reset_peak, user_with};

/// The number of records whose list is nearly as large as a response may be.
const RECORDS: usize = 72;
const TEXT_BYTES: usize = 950_000;
/// The maximum size of a response. A single response of this size exceeds a caller's share of unread bytes.
const ANSWER_BYTES_MAX: &str = "80000000";

/// Requests all records over a separate connection, and does not read the response.
async fn unread(who: &Admin<'_>) -> TcpStream {
    let host = who.server.base.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(host).await.unwrap();
    let authorization = match who.token.is_empty() {
        true => String::new(),
        false => format!("Authorization: Bearer {}\r\n", who.token),
    };
    let head = format!("GET /api/v1/data/doc?limit={RECORDS} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

/// Reads a response to its end, and returns its number of bytes.
async fn read_all(connection: &mut TcpStream) -> usize {
    let (mut bytes, mut head, mut read) = (vec![0; 1 << 20], Vec::new(), 0);
    let mut expected = usize::MAX;
    while read < expected {
        let count = connection.read(&mut bytes).await.unwrap();
        assert!(count > 0, "the connection was closed after {read} bytes");
        read += count;
        if expected == usize::MAX {
            head.extend_from_slice(&bytes[..count]);
            let text = String::from_utf8_lossy(&head).to_lowercase();
            if let Some((top, _)) = text.split_once("\r\n\r\n") {
                let length = top.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                expected = top.len() + 4 + length.parse::<usize>().unwrap();
            }
        }
    }
    read
}

async fn large_records(admin: &Admin<'_>) {
    admin.define("doc", json!([{ "name": "body", "type": "text" }])).await;
    let body = "x".repeat(TEXT_BYTES);
    let made: Vec<Value> = (0..8).map(|_| json!({ "body": body })).collect();
    for _ in 0..RECORDS / made.len() {
        assert_eq!(admin.post("/api/v1/data/doc/bulk", json!({ "data": made })).await.status, 201);
    }
}

on_sqlite_first! {
    async fn whoever_reads_no_answer_gets_no_further_one_and_others_do(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", ANSWER_BYTES_MAX).start().await;
        let admin = server.admin().await;
        large_records(&admin).await;
        let ann = user_with(&admin, "ann", json!([{ "resource": "doc", "actions": ["read"] }])).await;
        let mut connection = unread(&ann).await;
        let few = "/api/v1/data/doc?limit=1";
        until("there is no further answer", async || {
            let refused = ann.get(few).await;
            refused.status == 503 && refused.text.contains("Too many responses") && refused.headers.contains_key("retry-after")
        })
        .await;
        assert_eq!(admin.get(few).await.status, 200);
        assert_eq!(server.call("GET", "/healthz", None).await.status, 200);
        let read = read_all(&mut connection).await;
        assert!(read > RECORDS * TEXT_BYTES, "{read}");
        until("the share is free again", async || ann.get(few).await.status == 200).await;
    }
}

on_both_engines! {
    #[ignore = "long: memory, alone"]
    async fn answers_that_nobody_reads_take_little_memory_and_are_cut_off(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", ANSWER_BYTES_MAX).start().await;
        let admin = server.admin().await;
        large_records(&admin).await;
        let ann = user_with(&admin, "ann", json!([{ "resource": "doc", "actions": ["read"] }])).await;
        assert_eq!(ann.get(&format!("/api/v1/data/doc?limit={RECORDS}")).await.status, 200);
        let before = reset_peak(&server);
        let mut connections = Vec::new();
        for _ in 0..30 {
            connections.push(unread(&ann).await);
        }
        until("most are refused", async || ann.get("/api/v1/data/doc?limit=1").await.status == 503).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let grown = memory(&server, "VmHWM") - before;
        eprintln!("{:?}: 30 unread lists of 68 MB: {grown} kB more at the peak", server.engine());
        // The limit is the share, and the responses that were being made when the share was used up.
        assert!(grown < 450_000, "{grown} kB");
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(ann.get("/api/v1/data/doc?limit=1").await.status, 200, "what nobody read is gone");
        let left = memory(&server, "VmRSS") - before;
        eprintln!("{:?}: {left} kB are left after 40 s", server.engine());
    }
}

on_both_engines! {
    #[ignore = "long: memory, alone"]
    async fn operations_on_a_stream_that_nobody_reads_take_little_memory(engine: Engine) {
        const PATH: &str = "/api/v1/graphql";
        const OPERATIONS: usize = 40;
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", ANSWER_BYTES_MAX).start().await;
        let admin = server.admin().await;
        large_records(&admin).await;
        let grants = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "doc", "actions": ["read"] }]);
        let ann = user_with(&admin, "ann", grants).await;
        let query = format!("{{ doc(limit: {RECORDS}) {{ data {{ body }} }} }}");
        let read = ann.post(PATH, json!({ "query": query })).await;
        assert!(read.status == 200 && read.text.len() > RECORDS * TEXT_BYTES, "{}", read.status);
        drop(read);
        let token = server.send(ann.request("PUT", PATH)).await.text;
        let before = reset_peak(&server);
        let host = server.base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).await.unwrap();
        let head = format!(
            "GET {PATH}?token={token} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\nAuthorization: Bearer {}\r\n\r\n",
            ann.token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut opened = [0; 12];
        stream.read_exact(&mut opened).await.unwrap();
        assert_eq!(&opened, b"HTTP/1.1 200");
        for number in 0..OPERATIONS {
            let operation = json!({ "query": query, "extensions": { "operationId": number.to_string() } });
            assert_eq!(ann.post(&format!("{PATH}?token={token}"), operation).await.status, 202);
        }
        until("the share is used up", async || ann.get("/api/v1/data/doc?limit=1").await.status == 503).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let grown = memory(&server, "VmHWM") - before;
        eprintln!("{engine:?}: {OPERATIONS} unread results of 68 MB: {grown} kB more at the peak");
        // The limit is the share, and the two results that may be made at a time. Each exists as a tree and as a frame.
        assert!(grown < 450_000, "{grown} kB");
    }
}

on_both_engines! {
    async fn an_address_has_so_many_connections(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_CONNECTIONS_PER_ADDRESS", "8").start().await;
        let host = server.base.strip_prefix("http://").unwrap();
        let mut open = Vec::new();
        loop {
            let mut connection = TcpStream::connect(host).await.unwrap();
            let asked = connection.write_all(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await.is_ok();
            let mut bytes = [0; 512];
            let answered = if asked { connection.read(&mut bytes).await.unwrap_or(0) } else { 0 };
            if answered == 0 {
                break;
            }
            open.push(connection);
            assert!(open.len() <= 8, "{} connections", open.len());
        }
        assert!(open.len() >= 6, "the test's own client may have two: {}", open.len());
        drop(open);
        until("there is a place again", async || {
            let client = http_client();
            client.get(format!("{}/healthz", server.base)).send().await.is_ok_and(|answer| answer.status() == 200)
        })
        .await;
        let bad = ServerBuilder::new(engine).env("SVC_MAX_CONNECTIONS_PER_ADDRESS", "none").fail().await;
        assert!(bad.1.contains("SVC_MAX_CONNECTIONS_PER_ADDRESS"), "{}", bad.1);
    }
}

/// A request to a hook that does not end. The client address comes from the proxy.
async fn slow_hook(server: &Server, address: &str, path: &str) -> Answer {
    let request = server.request("POST", &format!("/api/v1/hooks/hostile/{path}")).header("x-forwarded-for", address);
    server.send(request.body("{}")).await
}

on_both_engines! {
    async fn a_flood_of_hooks_leaves_the_block_to_others(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_TRUSTED_PROXIES", "127.0.0.1")
            .env("SVC_ACTION_TIMEOUT_MS", "60000")
            .start()
            .await;
        let server = &server;
        let admin = server.admin().await;
        assert_eq!(admin.install("", test_block("hostile").await).await.status, 201);
        assert_eq!(slow_hook(server, "192.0.2.2", "mirror").await.status, 200);
        let flood = async { futures_util::future::join_all((0..60).map(|_| slow_hook(server, "192.0.2.1", "slow"))).await };
        let others = async {
            until("the flood has all that it may have", async || {
                let refused = slow_hook(server, "192.0.2.1", "mirror").await;
                refused.status == 503 && refused.headers.contains_key("retry-after")
            })
            .await;
            let begun = std::time::Instant::now();
            assert_eq!(slow_hook(server, "192.0.2.2", "mirror").await.status, 200, "the same block for another address");
            let called = admin.post("/api/v1/blocks/hostile/actions/good", json!({ "a": 1 })).await;
            assert_eq!(called.status, 200, "{}", called.text);
            assert!(begun.elapsed() < within(Duration::from_secs(5)), "{:?}", begun.elapsed());
        };
        tokio::select! {
            _ = flood => panic!("no call of the flood ends by itself that soon"),
            () = others => {}
        }
    }
}

/// On Postgres, several writes wait for the same row.
#[tokio::test]
async fn writers_of_a_locked_row_leave_connections_to_others() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "body", "type": "text" }])).await;
    let (id, other) = (admin.make("doc", json!({ "body": "a" })).await, admin.make("doc", json!({ "body": "b" })).await);
    let ann = user_with(&admin, "ann", json!([{ "resource": "doc", "actions": ["update"] }])).await;
    let lock = server.lock_rows(&format!("SELECT 1 FROM doc WHERE id = '{id}' FOR UPDATE")).await;
    // This is more than the number of connections.
    const WRITERS: usize = 24;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let request = ann.request("PATCH", &format!("/api/v1/data/doc/{id}")).json(&json!({ "body": "c" }));
        writers.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    let waiting = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("many wait for the row", async || server.sql(waiting).await[0][0].parse::<usize>().unwrap() >= 8).await;
    let begun = std::time::Instant::now();
    assert_eq!(admin.get(&format!("/api/v1/data/doc/{other}")).await.status, 200);
    assert_eq!(admin.patch(&format!("/api/v1/data/doc/{other}"), json!({ "body": "d" })).await.status, 200);
    server.sign_up("bob").await;
    assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    assert!(begun.elapsed() < within(Duration::from_secs(3)), "{:?}", begun.elapsed());
    // Every wait for a lock or a connection has an end.
    let mut refused = 0;
    while let Some(status) = writers.join_next().await {
        assert_eq!(status.unwrap(), 503);
        refused += 1;
    }
    assert_eq!(refused, WRITERS);
    lock.release().await;
    assert_eq!(ann.patch(&format!("/api/v1/data/doc/{id}"), json!({ "body": "c" })).await.status, 200);
}

on_both_engines! {
    #[ignore = "long: latency and memory, alone"]
    async fn large_bulk_updates_of_one_caller_delay_nobody_else(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.define("doc", json!([{ "name": "body", "type": "text" }, { "name": "n", "type": "integer" }])).await;
        let body = "x".repeat(30_000);
        let mut ids = Vec::new();
        for _ in 0..2 {
            let made: Vec<Value> = (0..200).map(|_| json!({ "body": body })).collect();
            let made = admin.post("/api/v1/data/doc/bulk", json!({ "data": made })).await;
            assert_eq!(made.status, 201);
            ids.extend(made.json()["ids"].as_array().unwrap().clone());
        }
        let ann = user_with(&admin, "ann", json!([{ "resource": "doc", "actions": ["update", "read"] }])).await;
        let own = admin.make("doc", json!({ "body": "small" })).await;
        let before = reset_peak(&server);
        let mut updates = JoinSet::new();
        for _ in 0..20 {
            let change = json!({ "ids": ids, "values": { "n": 1 } });
            let request = ann.request("PATCH", "/api/v1/data/doc/bulk").json(&change);
            updates.spawn(async move { request.send().await.unwrap().status().as_u16() });
        }
        let mut slowest = Duration::ZERO;
        let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
        while !updates.is_empty() {
            let begun = std::time::Instant::now();
            assert_eq!(admin.patch(&format!("/api/v1/data/doc/{own}"), json!({ "n": 2 })).await.status, 200);
            slowest = slowest.max(begun.elapsed());
            while let Some(status) = updates.try_join_next() {
                *statuses.entry(status.unwrap()).or_default() += 1;
            }
        }
        let grown = memory(&server, "VmHWM") - before;
        eprintln!("{engine:?}: slowest write of another {slowest:?}, {grown} kB more at the peak, answers {statuses:?}");
        assert!(statuses.keys().all(|status| [200, 503].contains(status)) && statuses[&200] > 0, "{statuses:?}");
        // When this caller's turn comes, one job of the other caller is running.
        assert!(slowest < within(Duration::from_secs(6)), "{slowest:?}");
        assert!(grown < 900_000, "{grown} kB");
    }
}
