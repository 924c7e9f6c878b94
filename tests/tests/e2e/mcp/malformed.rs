//! Requests that are not messages, that come from foreign origins, or that ask for something that does not exist.

use blockbase_tests::{Engine, ServerBuilder, on_sqlite_first};
use serde_json::json;

use super::{BOTH, Client, PATH, call, make_schema, read_result};

on_sqlite_first! {
    async fn whatever_comes_is_answered_by_the_protocol(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin);
        let long_id = "x".repeat(5000);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (body, status, code) in [
            ("{".to_owned(), 400, -32700),
            (String::new(), 400, -32700),
            ("7".to_owned(), 400, -32600),
            ("\"x\"".to_owned(), 400, -32600),
            ("null".to_owned(), 400, -32600),
            ("{}".to_owned(), 400, -32600),
            ("[]".to_owned(), 400, -32600),
            (format!("[{}]", vec!["7"; 60].join(",")), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#.to_owned(), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#.to_owned(), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#.to_owned(), 400, -32600),
            (format!(r#"{{"jsonrpc":"2.0","id":"{long_id}","method":"ping"}}"#), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}"#.to_owned(), 400, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#.to_owned(), 400, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["x"]}}"#.to_owned(), 400, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned(), 200, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#.to_owned(), 200, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#.to_owned(), 200, -32601),
            (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#), 400, -32600),
        ] {
            let answer = client.send(body.clone()).await;
            let shown = body.chars().take(100).collect::<String>();
            assert_eq!((answer.status, &answer.json()["error"]["code"]), (status, &json!(code)), "{shown}: {}", answer.text);
        }
        // An array of malformed messages gets an array of errors.
        let answer = client.send(deep).await;
        assert_eq!((answer.status, &answer.json()[0]["error"]["code"]), (200, &json!(-32600)), "{}", answer.text);
        let answer = client.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec()).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32700)));
        let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(11 * 1024 * 1024));
        let answer = client.send(large).await;
        assert_eq!((answer.status, &answer.json()["error"]["data"]["error"]), (413, &json!("payload_too_large")), "{}", answer.text);

        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let post = || server.request("POST", PATH).bearer_auth(&admin.token);
        for (request, status) in [
            (post().header("accept", BOTH).body(ping), 415),
            (post().header("accept", BOTH).header("content-type", "text/plain").body(ping), 415),
            (post().header("accept", "application/json").header("content-type", "application/json").body(ping), 406),
            (post().header("accept", "text/event-stream").header("content-type", "application/json").body(ping), 406),
            (post().header("accept", "*/*").header("content-type", "application/json; charset=utf-8").body(ping), 200),
            (post().header("accept", BOTH).header("content-type", "application/json").header("mcp-protocol-version", "2030-01-01").body(ping), 400),
            (client.request("GET"), 400),
            (client.request("DELETE"), 400),
            (client.request("GET").header("mcp-session-id", "nothing"), 404),
            (client.request("DELETE").header("mcp-session-id", "nothing"), 404),
            (client.request("POST").header("content-type", "application/json").header("mcp-session-id", "nothing").body(ping), 404),
            (server.request("POST", "/api/v1/mcp?sessions=some").bearer_auth(&admin.token).json(&json!({})), 400),
            (server.request("GET", PATH).bearer_auth(&admin.token).header("accept", "application/json"), 406),
            (client.request("PUT"), 405),
            (client.request("PATCH"), 405),
            (client.request("HEAD"), 405),
        ] {
            let answer = server.send(request).await;
            assert_eq!(answer.status, status, "{}", answer.text);
            assert_eq!(answer.headers.contains_key("allow"), status == 405);
            if ![200, 405].contains(&status) {
                assert!(answer.json()["error"]["code"].is_i64(), "{}", answer.text);
            }
        }
        assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    }

    async fn arguments_that_a_tool_does_not_take_are_refused(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin);
        let id = admin.make("task", json!({ "title": "a" })).await;
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (tool, arguments) in [
            ("list_objects", json!({ "object_name": "task" }).to_string()),
            ("query_data", json!({}).to_string()),
            ("query_data", json!({ "object_name": 7 }).to_string()),
            ("query_data", json!({ "object_name": "task", "colour": 1 }).to_string()),
            ("query_data", json!({ "object_name": "task", "pageSize": 1 }).to_string()),
            ("query_data", json!({ "object_name": "task", "page": 0 }).to_string()),
            ("query_data", json!({ "object_name": "task", "page": "1" }).to_string()),
            ("query_data", json!({ "object_name": "task", "page_size": 1.5 }).to_string()),
            ("query_data", json!({ "object_name": "task", "offset": -1 }).to_string()),
            ("query_data", json!({ "object_name": "task", "filters": {} }).to_string()),
            ("query_data", json!({ "object_name": "task", "filters": [7] }).to_string()),
            ("query_data", json!({ "object_name": "task", "filters": [{ "field": "title", "value": 1, "colour": 2 }] }).to_string()),
            ("query_data", json!({ "object_name": "task", "filters": [{ "value": 1 }] }).to_string()),
            ("query_data", json!({ "object_name": "task", "count": "some" }).to_string()),
            ("query_data", json!({ "object_name": "task", "search": "\0" }).to_string()),
            ("query_data", r#"{"object_name":"task","object_name":"person"}"#.to_owned()),
            ("query_data", r#"["task"]"#.to_owned()),
            ("query_data", r#""task""#.to_owned()),
            ("aggregate_data", json!({ "object_name": "task" }).to_string()),
            ("aggregate_data", json!({ "object_name": "task", "fn": "count", "sort": "title" }).to_string()),
            ("get_record", json!({ "object_name": "task" }).to_string()),
            ("get_record", json!({ "object_name": "task", "id": 7 }).to_string()),
            ("create_record", json!({ "object_name": "task" }).to_string()),
            ("create_record", json!({ "object_name": "task", "data": [] }).to_string()),
            ("create_record", json!({ "object_name": "task", "data": "{}" }).to_string()),
            ("create_record", r#"{"object_name":"task","data":{"title":"a","title":"b"}}"#.to_owned()),
            ("create_record", format!(r#"{{"object_name":"task","data":{deep}}}"#)),
            ("upsert_record", json!({ "object_name": "task", "data": {}, "on_conflict": "code" }).to_string()),
            ("bulk_create_records", json!({ "object_name": "task", "data": {} }).to_string()),
            ("bulk_create_records", json!({ "object_name": "task", "data": vec![json!({ "title": "a" }); 1001] }).to_string()),
            ("bulk_delete_records", json!({ "object_name": "task", "ids": [7] }).to_string()),
            ("bulk_delete_records", json!({ "object_name": "task", "ids": vec![id.as_str(); 1001] }).to_string()),
            ("link_records", json!({ "object_name": "task", "id": id, "ids": [] }).to_string()),
        ] {
            let called = client.call_text(tool, &arguments).await;
            let shown = arguments.chars().take(200).collect::<String>();
            assert!(called.is_error && called.text.contains(r#""error":"invalid_request""#), "{tool} {shown}: {}", called.text);
        }
        // The nesting of a value that stays text is deeper than the JSON parser allows.
        let notes = format!(r#"{{"object_name":"task","data":{{"title":"a","notes":{deep}}}}}"#);
        client.call_text("create_record", &notes).await.expect_error("invalid_value");
        assert_eq!(server.sql("SELECT count(*) FROM task").await[0][0], "1");
        // As with REST, a bulk call of ten megabytes is not too large.
        let wide = json!({ "object_name": "task", "data": vec![json!({ "title": "x".repeat(9000) }); 1000] }).to_string();
        let answer = client.send(call("bulk_create_records", &wide)).await;
        assert_eq!(read_result(&answer.text).document()["count"], 1000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_and_origins_are_those_of_the_server() {
    let server = ServerBuilder::new(Engine::Sqlite)
        .env("SVC_PUBLIC_URL", "https://api.example.com")
        .env("SVC_TRUSTED_ORIGINS", "https://app.example.com")
        .start()
        .await;
    let admin = server.admin().await;
    let client = Client::of(&admin);
    let port = server.base.rsplit_once(':').unwrap().1;
    let ask = async |host: &str, origin: Option<&str>| {
        let mut request = client.request("POST").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        server.send(request.json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))).await
    };
    for host in [
        "api.example.com",
        "api.example.com:443",
        &format!("localhost:{port}"),
        &format!("127.0.0.1:{port}"),
        &format!("[::1]:{port}"),
    ] {
        for origin in [None, Some("https://app.example.com"), Some("https://api.example.com")] {
            let answer = ask(host, origin).await;
            assert_eq!(answer.status, 200, "{host} {origin:?}: {}", answer.text);
        }
    }
    for (host, origin) in [
        ("evil.example", None),
        ("localhost:1", None),
        ("api.example.com", Some("https://evil.example")),
        ("api.example.com", Some("null")),
        ("api.example.com", Some("http://app.example.com")),
        ("evil.example", Some("https://app.example.com")),
    ] {
        // This check runs before all surfaces, so the response is not a message of the protocol.
        let answer = ask(host, origin).await;
        let code = if host == "api.example.com" { "INVALID_ORIGIN" } else { "forbidden" };
        assert_eq!((answer.status, &answer.json()["error"]), (403, &json!(code)), "{host} {origin:?}: {}", answer.text);
    }
    let preflight = server.request("OPTIONS", PATH).header("origin", "https://app.example.com");
    let preflight =
        preflight.header("access-control-request-method", "POST").header("access-control-request-headers", "mcp-session-id");
    let answer = server.send(preflight).await;
    assert_eq!(answer.headers["access-control-allow-origin"], "https://app.example.com");
    let exposed = ask("api.example.com", Some("https://app.example.com")).await;
    let exposed = exposed.headers["access-control-expose-headers"].to_str().unwrap().to_owned();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
}
