//! Shares of owners: the bytes of bodies, and streams.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Server, ServerBuilder, on_both_engines, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{id_of, user_with};
use crate::accounts::roles::key;

/// A request whose body stops after its first bytes.
async fn stalled(who: &Admin<'_>, path: &str, bytes: usize) -> TcpStream {
    let host = who.server.base.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(host).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{{\"body\":",
        who.token
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

/// The beginning of the response on a connection.
async fn answered(connection: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(30), connection.read(&mut bytes)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&bytes[..read]).to_lowercase()
}

/// The response to a request for one more stream. The stream stays open as long as the response exists.
async fn stream(who: &Admin<'_>) -> reqwest::Response {
    who.request("GET", "/api/v1/events/stream").send().await.unwrap()
}

/// A guest whose client address comes from the proxy.
async fn guest(server: &Server, address: &str) -> String {
    let request = server.request("POST", "/api/auth/sign-in/anonymous").header("x-forwarded-for", address);
    let answer = server.send(request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["token"].as_str().unwrap().to_owned()
}

on_both_engines! {
    async fn stalled_uploads_take_their_own_share_alone_and_not_for_long(server: Server) {
        const BYTES: usize = 10_000_000;
        let admin = server.admin().await;
        admin.define("doc", json!([{ "name": "body", "type": "json" }])).await;
        let ann = user_with(&admin, "ann", json!([{ "resource": "doc", "actions": ["create"] }])).await;
        let mut uploads = Vec::new();
        for _ in 0..3 {
            uploads.push(stalled(&ann, "/api/v1/data/doc", BYTES).await);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        // Other callers are served. Small bodies of the same caller are served too.
        let begun = Instant::now();
        admin.make("doc", json!({ "body": ["x".repeat(1_000_000)] })).await;
        ann.make("doc", json!({ "body": 1 })).await;
        assert!(begun.elapsed() < within(Duration::from_secs(4)), "{:?}", begun.elapsed());
        let begun = Instant::now();
        let refused = ann.post("/api/v1/data/doc", json!({ "body": ["x".repeat(BYTES)] })).await;
        refused.expect_error(503, "unavailable");
        assert!(refused.headers.contains_key("retry-after") && begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
        // An upload that sends nothing ends.
        for upload in &mut uploads {
            let answer = answered(upload).await;
            assert!(answer.starts_with("http/1.1 400") && answer.contains("in time"), "{answer}");
        }
        ann.make("doc", json!({ "body": ["x".repeat(BYTES)] })).await;
    }
}

on_both_engines! {
    async fn a_caller_has_so_many_streams_on_all_surfaces_together(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_STREAMS_PER_PRINCIPAL", "4").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let reader = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read"] }]);
        let (ann, ben) = (user_with(&admin, "ann", reader.clone()).await, user_with(&admin, "ben", reader).await);
        let both = "application/json, text/event-stream";
        let rest = |who: &Admin<'_>| who.request("GET", "/api/v1/events/stream");
        let subscription = json!({ "query": "subscription { events { topic } }" });
        let graphql = |who: &Admin<'_>| who.request("POST", "/api/v1/graphql").header("accept", "text/event-stream").json(&subscription);
        let reserved = |who: &Admin<'_>| who.request("PUT", "/api/v1/graphql");
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" },
        } });
        let begun = server.send(ann.request("POST", "/api/v1/mcp").header("accept", both).json(&initialize)).await;
        let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let mcp = |who: &Admin<'_>| who.request("GET", "/api/v1/mcp").header("accept", both).header("mcp-session-id", &session);

        let mut open = Vec::new();
        for request in [rest(&ann), graphql(&ann), mcp(&ann), reserved(&ann)] {
            let response = request.send().await.unwrap();
            assert!(response.status().is_success(), "{}", response.status());
            open.push(response);
        }
        for request in [rest(&ann), graphql(&ann), mcp(&ann), reserved(&ann)] {
            let refused = server.send(request).await;
            assert_eq!(refused.status, 429, "{}", refused.text);
            assert!(refused.text.contains("rate_limited") && refused.headers.contains_key("retry-after"), "{refused:?}");
        }
        let others = [rest(&ben).send().await.unwrap(), rest(&admin).send().await.unwrap()];
        assert!(others.iter().all(|response| response.status() == 200));
        // A closed stream makes room for another.
        open.remove(0);
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        while rest(&ann).send().await.unwrap().status() != 200 {
            assert!(Instant::now() < deadline, "the place is free again");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn guests_of_one_address_share_its_streams(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_TRUSTED_PROXIES", "127.0.0.0/8,::1/128")
            .env("SVC_MAX_STREAMS_PER_PRINCIPAL", "3")
            .start()
            .await;
        let admin = server.admin().await;
        let guests = [
            guest(&server, "192.0.2.1").await,
            guest(&server, "192.0.2.1").await,
            guest(&server, "192.0.2.1").await,
            guest(&server, "192.0.2.1").await,
        ];
        let stream_from = async |token: &str, address: &str| {
            let request = server.request("GET", "/api/v1/events/stream").bearer_auth(token);
            request.header("x-forwarded-for", address).send().await.unwrap()
        };
        let mut open = Vec::new();
        for token in &guests[..3] {
            open.push(stream_from(token, "192.0.2.1").await);
        }
        assert!(open.iter().all(|response| response.status() == 200));
        // The share of a guest is that of the request's network address, even if the guest is known.
        for token in [&guests[3], &guests[0]] {
            let refused = stream_from(token, "192.0.2.1").await;
            assert_eq!(refused.status(), 429);
            assert!(refused.headers().contains_key("retry-after"));
            open.push(stream_from(token, "192.0.2.2").await);
        }
        // Users have their own share, at any address.
        open.push(stream_from(&admin.token, "192.0.2.1").await);
        assert!(open.iter().all(|response| response.status() == 200));
    }

    async fn a_user_gets_no_further_share_by_making_keys(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_STREAMS_PER_PRINCIPAL", "3").start().await;
        let admin = server.admin().await;
        let grants = json!([{ "resource": "api_keys", "actions": ["create"] }]);
        let ann = user_with(&admin, "ann", grants).await;
        let ann_id = id_of(&ann).await;
        let of_ann = json!({ "name": "k", "roleId": "of ann", "userId": ann_id });
        let ((first, _), (second, _)) = (key(&ann, of_ann.clone()).await, key(&ann, of_ann.clone()).await);
        let (by_key, _) = key(&first, of_ann.clone()).await;
        let open = [stream(&first).await, stream(&second).await, stream(&by_key).await];
        assert!(open.iter().all(|response| response.status() == 200));
        for who in [&ann, &first, &second, &by_key] {
            let refused = stream(who).await;
            assert_eq!(refused.status(), 429);
            assert!(refused.headers().contains_key("retry-after"));
        }
        // A key that somebody else made for this user has its own share.
        let (of_admin, _) = key(&admin, of_ann).await;
        let others = [stream(&of_admin).await, stream(&admin).await];
        assert!(others.iter().all(|response| response.status() == 200));
    }
}
