//! Malformed requests: each gets the right 4xx in the envelope, and changes nothing.

use std::io::{Read, Write};

use blockbase_tests::{Engine, ServerBuilder, on_both_engines};
use serde_json::json;

on_both_engines! {
    async fn the_whole_record_surface_refuses_what_is_wrong(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("tag", json!([{ "name": "name", "type": "text", "isUnique": true }])).await;
        admin.relate(json!({ "name": "tags", "kind": "many_to_many", "source": "task", "target": "tag" })).await;
        let id = admin.make("task", json!({ "title": "t", "priority": 1 })).await;
        let record = format!("/api/v1/data/task/{id}");
        let links = format!("{record}/links/tags");
        let drop = "\"); DROP TABLE task; --";
        for (method, path, body, status, code) in [
            ("GET", "/api/v1/data/task/aggregate?fn=count&field=title\"--".to_owned(), None, 400, "unknown_field"),
            ("GET", "/api/v1/data/task?expand=tags%22%3BDROP,%00,....".to_owned(), None, 400, "invalid_request"),
            ("GET", "/api/v1/data/task?expand=a.b.c.d".to_owned(), None, 400, "invalid_request"),
            ("GET", "/api/v1/data/task?page=99999999999999999999".to_owned(), None, 400, "invalid_request"),
            ("GET", "/api/v1/data/task?offset=9223372036854775807".to_owned(), None, 400, "invalid_request"),
            ("GET", "/api/v1/data/task?count=some".to_owned(), None, 400, "invalid_request"),
            ("POST", "/api/v1/data/task?on_conflict=title%22)%20DO%20NOTHING--".to_owned(), Some(json!({ "title": "t" })), 400, "invalid_upsert_target"),
            ("POST", "/api/v1/data/task/bulk".to_owned(), Some(json!({ "data": [{ "title": "a" }, { drop: 1 }] })), 400, "unknown_field"),
            ("POST", "/api/v1/data/task/bulk".to_owned(), Some(json!({ "data": [{ "title": "a\u{0}" }] })), 400, "invalid_value"),
            ("DELETE", "/api/v1/data/task/bulk".to_owned(), Some(json!({ "ids": [drop] })), 400, "invalid_value"),
            ("POST", links.clone(), Some(json!({ "ids": [drop] })), 400, "invalid_value"),
            ("POST", format!("{record}/links/tags%22--"), Some(json!({ "ids": [] })), 404, "not_found"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$inc": 1, "$dec": 1 } })), 400, "INVALID_ATOMIC_OP"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$inc": "1" } })), 400, "INVALID_ATOMIC_OP"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$inc": null } })), 400, "INVALID_ATOMIC_OP"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$mul": 2 } })), 400, "INVALID_ATOMIC_OP"),
            ("PATCH", record.clone(), Some(json!({ "priority": {} })), 400, "INVALID_ATOMIC_OP"),
            ("PATCH", record.clone(), Some(json!({ "priority": [1] })), 400, "invalid_value"),
            ("PATCH", record.clone(), Some(json!({ "title": { "$inc": 1 } })), 400, "INVALID_ATOMIC_OP"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$inc": 1.5 } })), 400, "invalid_value"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$inc": 1e30 } })), 400, "invalid_value"),
            ("PATCH", record.clone(), Some(json!({ "priority": { "$inc": 9 } })), 400, "CONSTRAINT_VIOLATION"),
            ("PATCH", record.clone(), Some(json!({ "title": null })), 400, "not_null_violation"),
            ("POST", "/api/v1/objects".to_owned(), Some(json!({ "name": drop })), 400, "invalid_schema"),
            ("POST", "/api/v1/objects".to_owned(), Some(json!({ "name": "x", "fields": [{ "name": drop, "type": "text" }] })), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/task/fields".to_owned(), Some(json!({ "name": drop, "type": "text" })), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/task/fields".to_owned(), Some(json!({ "name": "title", "type": "text" })), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/task/fields".to_owned(), Some(json!({ "name": "x", "type": "integer", "default": drop })), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/task/fields".to_owned(), Some(json!({ "name": "x", "type": "text", "default": "a\u{0}" })), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/task/fields".to_owned(), Some(json!([])), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/nothing/fields".to_owned(), Some(json!({ "name": "x", "type": "text" })), 404, "not_found"),
            ("PATCH", "/api/v1/objects/task".to_owned(), Some(json!({ "indexes": [[drop]] })), 400, "invalid_schema"),
            ("PATCH", "/api/v1/objects/task".to_owned(), Some(json!([])), 400, "invalid_request"),
            ("DELETE", "/api/v1/objects/task?cascade=perhaps".to_owned(), None, 400, "invalid_request"),
            ("POST", "/api/v1/relationships".to_owned(), Some(json!({ "name": drop, "kind": "many_to_one", "source": "task", "target": "tag" })), 400, "invalid_schema"),
            ("POST", "/api/v1/relationships".to_owned(), Some(json!({ "name": "x", "kind": "many_to_one", "source": drop, "target": "tag" })), 400, "invalid_schema"),
            ("DELETE", "/api/v1/relationships/1%20OR%201=1".to_owned(), None, 404, "not_found"),
            ("DELETE", "/api/v1/relationships/99999999999999999999".to_owned(), None, 404, "not_found"),
        ] {
            let mut request = admin.request(method, &path);
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = server.send(request).await;
            assert_eq!(answer.status, status, "{method} {path} {body:?}: {}", answer.text);
            answer.expect_error(status, code);
        }
        let texts = "'; DROP TABLE task; --\" \\ %_ ${x} {{y}} \u{202e}";
        let kept = admin.patch(&record, json!({ "title": texts })).await.data();
        assert_eq!(kept["title"], texts);
        let field = json!({ "name": "note", "type": "text", "default": texts, "description": texts, "label": texts });
        assert_eq!(admin.post("/api/v1/objects/task/fields", field).await.status, 201);
        assert_eq!(admin.get(&record).await.data()["note"], texts);
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(admin.get("/api/v1/data/tag").await.json()["pagination"]["totalCount"], 0);
    }

    async fn malformed_requests_are_refused_and_change_nothing(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let post = |body: Vec<u8>, media: &str| admin.request("POST", "/api/v1/data/task").header("content-type", media).body(body);
        for (body, media, status, code) in [
            (b"{".to_vec(), "application/json", 400, "invalid_request"),
            (b"".to_vec(), "application/json", 400, "invalid_request"),
            (b"[]".to_vec(), "application/json", 400, "invalid_request"),
            (b"\"x\"".to_vec(), "application/json", 400, "invalid_request"),
            (b"{\"title\":\"a\"} x".to_vec(), "application/json", 400, "invalid_request"),
            (b"{\"title\":\"a\",\"title\":\"b\"}".to_vec(), "application/json", 400, "invalid_request"),
            (b"{\"title\":\"\xff\"}".to_vec(), "application/json", 400, "invalid_request"),
            (b"{\"title\":\"a\"}".to_vec(), "text/plain", 415, "unsupported_media_type"),
            (b"{\"title\":\"a\\u0000\"}".to_vec(), "application/json", 400, "invalid_value"),
            (b"{\"title\":\"\\ud800\"}".to_vec(), "application/json", 400, "invalid_value"),
            (b"{\"colour\":1}".to_vec(), "application/json", 400, "unknown_field"),
            (b"{\"title\":5}".to_vec(), "application/json", 400, "invalid_value"),
            (b"{}".to_vec(), "application/json", 400, "not_null_violation"),
            (b"{\"title\":\"a\",\"priority\":1e400}".to_vec(), "application/json", 400, "invalid_value"),
            (b"{\"title\":\"a\",\"priority\":123456789012345678901234567890}".to_vec(), "application/json", 400, "invalid_value"),
            (format!("{{\"title\":{}1{}}}", "[".repeat(5000), "]".repeat(5000)).into_bytes(), "application/json", 400, "invalid_value"),
            (vec![b' '; 11 << 20], "application/json", 413, "payload_too_large"),
        ] {
            let shown: String = String::from_utf8_lossy(&body).chars().take(60).collect();
            let answer = server.send(post(body, media)).await;
            assert_eq!(answer.status, status, "{shown}: {}", answer.text);
            answer.expect_error(status, code);
        }
        for (method, path, status, code) in [
            ("GET", "/api/v1/data/nothing", 404, "not_found"),
            ("GET", "/api/v1/data/%22%3B%20DROP%20TABLE%20task", 404, "not_found"),
            ("GET", "/api/v1/data/task/x", 404, "not_found"),
            ("GET", "/api/v1/data/task/%27%20OR%201%3D1", 404, "not_found"),
            ("GET", "/api/v1/data/task?title=%00", 400, "invalid_value"),
            ("GET", "/api/v1/data/task?search=%00", 400, "invalid_request"),
            ("GET", "/api/v1/data/task?title=%ff", 400, "invalid_request"),
            ("GET", "/api/v1/data/task?title%22%3B--=x", 400, "unknown_field"),
            ("GET", "/api/v1/data/task?sort=title%3Bdrop", 400, "unknown_field"),
            ("GET", "/api/v1/nothing", 404, "not_found"),
            ("GET", "/", 404, "not_found"),
        ] {
            let answer = server.send(admin.request(method, path)).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.text);
            answer.expect_error(status, code);
        }
        let long_list = vec!["x"; 10_000].join(",");
        admin.get(&format!("/api/v1/data/task?title%5Bin%5D={long_list}")).await.expect_error(400, "invalid_request");
        for method in ["PUT", "POST", "QUERY"] {
            let answer = server.send(admin.request(method, "/api/v1/data/task/00000000-0000-0000-0000-000000000000")).await;
            answer.expect_error(405, "method_not_allowed");
            assert!(answer.headers["allow"].to_str().unwrap().contains("PATCH"), "{:?}", answer.headers);
        }
        let answer = server.send(admin.request("GET", "/api/v1/me").header("x-request-id", "mine-1")).await;
        assert_eq!(answer.headers["x-request-id"], "mine-1");
        let answer = server.send(admin.request("GET", "/api/v1/me").header("x-request-id", "not sane \"")).await;
        assert_ne!(answer.headers["x-request-id"], "not sane \"");
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
        let injection = "'); DROP TABLE task; --";
        let made = admin.post("/api/v1/data/task", json!({ "title": injection })).await.data();
        assert_eq!(made["title"], injection);
        let found = admin.get("/api/v1/data/task?title=%27)%3B%20DROP%20TABLE%20task%3B%20--").await;
        assert_eq!(found.json()["pagination"]["totalCount"], 1);
    }
}

#[tokio::test]
async fn a_body_cut_short_changes_nothing() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let address = server.base.strip_prefix("http://").unwrap().to_owned();
    let head = format!(
        "POST /api/v1/data/task HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"title\":\"half",
        admin.token
    );
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    })
    .await
    .unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
}
