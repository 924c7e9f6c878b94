//! Requests that are not executed: each gets an error in GraphQL's form, never a 500, and changes nothing.

use blockbase_tests::{Admin, Server, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, codes, data, define, send};

/// Sends a body unchanged. Returns the status and the first code.
async fn raw(admin: &Admin<'_>, content_type: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
    let answer = admin.server.send(admin.request("POST", PATH).header("content-type", content_type).body(body)).await;
    let json = answer.json();
    assert!(json.get("data").is_none(), "{}", answer.text);
    (answer.status, json["errors"][0]["extensions"]["code"].as_str().unwrap_or_else(|| panic!("{}", answer.text)).to_owned())
}

fn nested(levels: usize) -> String {
    format!("{{ task {{ data {{ {}id{} }} }} }}", "project { task_by_project { ".repeat(levels / 2), "} }".repeat(levels / 2))
}

on_both_engines! {
    async fn documents_have_bounds(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        admin.make("task", json!({ "title": "x", "project_id": project })).await;
        // Twelve levels are allowed. These are the root, `data`, nine relations and a leaf.
        let deep = "{ task { data { project { task_by_project { project { task_by_project { project { task_by_project { project { task_by_project { project { name } } } } } } } } } } } }";
        assert_eq!(deep.matches('{').count(), 12);
        data(&admin, deep, Value::Null).await;
        let fragments = format!("query {{ task {{ data {{ ...F }} }} }} fragment F on Task {{ {} }}", "project { task_by_project { ".repeat(5) + "id" + &"} }".repeat(5));
        let bomb: String = (0..30).map(|number| format!("fragment F{number} on Task {{ ...F{0} ...F{0} }} ", number + 1)).collect();
        let many = |count: usize, part: &str| (0..count).map(|number| part.replace('N', &number.to_string())).collect::<String>();
        let lists = |depth: usize| format!("{{ task(filter: [{{ field: \"title\", operator: in, value: {}1{} }}]) {{ data {{ id }} }} }}", "[".repeat(depth), "]".repeat(depth));
        for (what, query) in [
            ("levels", nested(11)),
            ("levels by fragments", fragments),
            ("a fragment within itself", "{ task { data { ...F } } } fragment F on Task { id project { task_by_project { ...F } } }".to_owned()),
            ("fragments that double", format!("{{ task {{ data {{ ...F0 }} }} }} {bomb} fragment F30 on Task {{ id }}")),
            ("root fields", format!("{{ {} }}", many(101, "aN: svc_objects "))),
            ("fields", format!("{{ task {{ data {{ {} }} }} }}", many(1000, "aN: id "))),
            ("directives", format!("{{ svc_objects {} }}", "@skip(if: false) ".repeat(501))),
            ("lists in a filter", lists(16)),
            ("lists that go on", lists(5000)),
            ("selections that go on", "{ task { data ".repeat(4000)),
            ("more operations than are looked at", many(51, "query QN { svc_objects } ")),
            ("operations that share what is long", many(40, "query QN { ...F } ") + "fragment F on Query { " + &many(300, "aN: svc_objects ") + "}"),
            ("a fragment that nothing uses", "{ svc_objects } fragment F on Query { svc_objects }".to_owned()),
            ("names past all measure", format!("{{ {} }}", "z".repeat(60_000))),
            ("aliases in introspection", "{ __schema { types { a: name b: name } } }".to_owned()),
            ("a number past all measure", "{ task(limit: 0.01e-9223372036854775808) { data { id } } }".to_owned()),
            ("a string without an end", "{ task(filter: [{ field: \"extra\", value: [\"\"\"x\" 123456789012.123456789]}]) { data { id } } }".to_owned()),
            ("introspection that multiplies", "{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }".to_owned()),
        ] {
            assert!(codes(&server, Some(&admin.token), &query, Value::Null).await.iter().all(|code| code == "invalid_request"), "{what}");
        }
        data(&admin, &format!("{{ {} }}", many(100, "aN: svc_objects ")), Value::Null).await;
        // Each alias repeats the long text, so the response exceeds its limit.
        let (long, title) = (format!("{{ task {{ data {{ {} }} }} }}", many(990, "aN: extra ")), "x".repeat(1_000_000));
        admin.make("task", json!({ "title": "long", "extra": [title] })).await;
        assert_eq!(codes(&server, Some(&admin.token), &long, Value::Null).await, ["answer_too_large"]);
        // The same limit applies to all root fields together.
        let roots = format!("{{ {} }}", many(99, "aN: task(limit: 1) { data { extra } } "));
        let answer = send(&server, Some(&admin.token), &roots, Value::Null).await;
        assert!(answer.text.len() < 80_000_000 && answer.json()["errors"].is_array(), "{} bytes", answer.text.len());
        // Texts of more than 64 KiB, of any size.
        for bytes in [65 * 1024, 9 * 1024 * 1024] {
            let answer = send(&server, Some(&admin.token), &format!("{{ svc_objects }}{}", " ".repeat(bytes)), Value::Null).await;
            assert_eq!((answer.status, answer.json()["errors"][0]["extensions"]["code"].as_str()), (413, Some("payload_too_large")));
        }
        assert_eq!(raw(&admin, "application/json", vec![b' '; 11 * 1024 * 1024]).await, (413, "payload_too_large".to_owned()));
        assert_eq!(data(&admin, "{ svc_objects }", Value::Null).await["svc_objects"].as_array().unwrap().len(), 5);
    }

    async fn what_is_no_operation_is_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (body, status) in [
            ("", 400), ("{", 400), ("null", 400), ("7", 400), ("\"{ svc_objects }\"", 400), ("{}", 400),
            ("[]", 400), (r#"[{"query":"{ svc_objects }"}]"#, 400),
            (r#"{"query":null}"#, 400), (r#"{"query":{}}"#, 400), (r#"{"query":"  "}"#, 400),
            (r#"{"query":"{ svc_objects }","query":"{ svc_objects }"}"#, 400),
            (r#"{"query":"{ svc_objects }","variables":[1]}"#, 400), (r#"{"query":"{ svc_objects }","variables":"{}"}"#, 400),
            (r#"{"query":"{ svc_objects }","operationName":1}"#, 400), (r#"{"query":"{ svc_objects }","extensions":[]}"#, 400),
            (r#"{"query":"{ svc_objects }","operationName":"Q"}"#, 200), (r#"{"query":"query A { svc_objects } query B { svc_objects }"}"#, 200),
            (r#"{"query":"query A { svc_objects } query A { svc_objects }"}"#, 200), (r#"{"query":"{ svc_objects } { svc_objects }"}"#, 200),
            (r#"{"query":"fragment F on Task { id }"}"#, 200), (r#"{"query":"type X { id: ID }"}"#, 200), (r#"{"query":"{"}"#, 200), (r#"{"query":"}"}"#, 200),
            (r#"{"query":"{ svc_objects }\u0000"}"#, 200),
        ] {
            assert_eq!(raw(&admin, "application/json", body).await, (status, "invalid_request".to_owned()), "{body}");
        }
        assert_eq!(raw(&admin, "application/json", vec![b'"', 0xff, b'"']).await.0, 400);
        for content_type in ["text/plain", "application/graphql", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/json; charset=utf-16"] {
            assert_eq!(raw(&admin, content_type, r#"{"query":"{ svc_objects }"}"#).await, (415, "unsupported_media_type".to_owned()), "{content_type}");
        }
        for query in [
            "{ svc_objects(limit: 1) }", "{ task { data } }", "{ task { data { title { x } } } }", "{ task }", "{ task { data { id } rows { id } } }",
            "{ task { data { ...Missing } } }", "{ task { data { ...F } } } fragment F on Nothing { id }", "{ task { data { ...F } } } fragment F on Project { id }",
            "{ task { data { id @nonsense } } }", "{ task(limit: \"x\") { data { id } } }", "{ task(filter: 5) { data { id } } }", "{ task(filter: [{ field: \"title\", operator: near, value: 1 }]) { data { id } } }",
            "{ task(filter: [{ value: 1 }]) { data { id } } }", "{ task(limit: 0) { data { id } } }", "{ task(page: -1) { data { id } } }", "{ task(limit: 99999999999999999999) { data { id } } }",
            "{ task_by_id { id } }", "{ task_by_id(id: null) { id } }", "{ task_by_id(id: [\"x\"]) { id } }", "{ task_by_id(id: true) { id } }", "{ task_aggregate(fn: median) { value } }", "{ task_aggregate { value } }",
            "query($id: ID!) { task_by_id(id: $id) { id } }", "query($id: ID) { task_by_id(id: $id) { id } }", "query($id: Nothing) { task_by_id(id: $id) { id } }", "query { task_by_id(id: $id) { id } }",
            "query($x: Int) { svc_objects }", "query($x: Task) { task { data { id } } }", "{ task { data { id: title } data { id } } }", "{ a: task(limit: 1) { data { id } } a: task(limit: 2) { data { id } } }",
            "mutation { create_task { id } }", "mutation { update_project(id: \"1\") { id } }", "mutation { create_task(input: []) { id } }", "mutation { create_task(input: { title: \"x\", title: \"y\" }) { id } }", "mutation { upsert_task(input: { title: \"x\" }, onConflict: [null]) { created } }",
            "mutation { link_task_tags(id: \"1\", ids: null) }", "subscription { events { id } more: events { id } }", "subscription { __typename }", "subscription { events(topics: [1]) { id } }",
        ] {
            let found = codes(&server, Some(&admin.token), query, Value::Null).await;
            assert!(found.iter().all(|code| ["invalid_request", "unknown_field", "invalid_value"].contains(&code.as_str())), "{query}: {found:?}");
        }
        for (query, variables) in [
            ("query($n: Int) { task(limit: $n) { data { id } } }", json!({ "n": "7" })),
            ("query($n: Int) { task(limit: $n) { data { id } } }", json!({ "n": 1.5 })),
            ("query($n: Int!) { task(limit: $n) { data { id } } }", json!({ "n": null })),
            ("query($f: [FilterInput!]) { task(filter: $f) { data { id } } }", json!({ "f": [null] })),
            ("query($f: [FilterInput!]) { task(filter: $f) { data { id } } }", json!({ "f": [{ "field": "title", "operator": "near" }] })),
            ("query($f: [FilterInput!]) { task(filter: $f) { data { id } } }", json!({ "f": [{ "field": "title", "more": 1 }] })),
            ("query($s: [SortInput!]) { task(sort: $s) { data { id } } }", json!({ "s": [{ "field": "title", "direction": "up" }] })),
            ("query($id: ID!) { task_by_id(id: $id) { id } }", json!({ "id": { "x": 1 } })),
            ("query($yes: Boolean!) { svc_objects @include(if: $yes) }", json!({ "yes": "true" })),
            ("mutation($i: TaskCreateInput!) { create_task(input: $i) { id } }", json!({ "i": "x" })),
            ("mutation($i: TaskCreateInput!) { create_task(input: $i) { id } }", json!({})),
        ] {
            assert_eq!(codes(&server, Some(&admin.token), query, variables.clone()).await, ["invalid_request"], "{query} {variables}");
        }
        // A variable needs the type of the place where it is used.
        for (query, variables) in [
            ("query($b: Boolean) { task(search: $b) { data { id } } }", json!({ "b": true })),
            ("query($b: String) { task(page: $b) { data { id } } }", json!({ "b": "1" })),
            ("query($f: FilterInput) { task(filter: $f) { data { id } } }", json!({ "f": { "field": "title", "value": 1 } })),
            ("query($f: String) { svc_objects @skip(if: $f) }", json!({ "f": "x" })),
            ("query($f: Boolean) { svc_objects @skip(if: $f) }", json!({ "f": true })),
            ("mutation($b: JSON!) { create_task(input: $b) { id } }", json!({ "b": { "title": "x" } })),
            ("mutation($b: JSON = {}) { update_task(id: \"x\", input: $b) { id } }", json!({ "b": { "priority": { "$inc": 5 } } })),
            ("query($b: Int!) { __type(name: $b) { name } }", json!({ "b": 5 })),
            ("query($b: Int = \"x\") { task(limit: $b) { data { id } } }", json!({})),
        ] {
            assert_eq!(codes(&server, Some(&admin.token), query, variables.clone()).await, ["invalid_request"], "{query} {variables}");
        }
        // A variable that is sent once counts each time it is used. The same applies to filters.
        let often = format!("query($v: JSON) {{ task(filter: [{{ field: \"title\", value: [{}] }}]) {{ data {{ id }} }} }}", "$v ".repeat(1000));
        assert_eq!(codes(&server, Some(&admin.token), &often, json!({ "v": "x".repeat(1_000_000) })).await, ["invalid_request"]);
        let filters: Vec<Value> = (0..101).map(|_| json!({ "field": "title", "value": 1 })).collect();
        let query = "query($f: [FilterInput!]) { task(filter: $f) { data { id } } }";
        assert_eq!(codes(&server, Some(&admin.token), query, json!({ "f": filters })).await, ["invalid_request"]);
        // The error for a literal has the same code as an error of the operation.
        for (input, code) in [("title: \"x\", nope: 1", "unknown_field"), ("title: 5", "invalid_value"), ("title: \"x\", status: gone", "CONSTRAINT_VIOLATION"), ("title: \"x\", priority: 4000000000", "invalid_value")] {
            let query = format!("mutation {{ create_task(input: {{ {input} }}) {{ id }} }}");
            assert_eq!(codes(&server, Some(&admin.token), &query, Value::Null).await, [code], "{input}");
        }
        // A number that a document would round is refused.
        let lossy = "mutation { create_task(input: { title: \"x\", price: 123456789012.123456 }) { price } }";
        assert_eq!(codes(&server, Some(&admin.token), lossy, Value::Null).await, ["invalid_request"]);
        for (sort, code) in [("nope", "unknown_field"), ("extra", "invalid_request"), ("-title", "unknown_field"), ("title,id", "unknown_field")] {
            let query = format!("{{ task(sort: [{{ field: \"{sort}\" }}]) {{ data {{ id }} }} }}");
            assert_eq!(codes(&server, Some(&admin.token), &query, Value::Null).await, [code], "{sort}");
        }
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
        assert!(!server.log().contains("ERROR"), "{}", server.log());
    }

    async fn methods_and_types_are_those_of_graphql_over_http(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let get = |query: &str, accept: &'static str| {
            let query: String = url_encoded(query);
            admin.request("GET", &format!("{PATH}?{query}")).header("accept", accept)
        };
        let answer = server.send(get("query={ svc_objects }", "application/json")).await;
        assert_eq!(answer.json()["data"]["svc_objects"].as_array().unwrap().len(), 5);
        assert_eq!(answer.headers["content-type"], "application/json; charset=utf-8");
        let with_variables = get("query=query($n: Int) { task(limit: $n) { pagination { pageSize } } }&variables={\"n\":3}&operationName=", "*/*");
        assert_eq!(server.send(with_variables).await.json()["data"]["task"]["pagination"]["pageSize"], 3);
        let answer = server.send(get("query={ svc_objects }", "application/graphql-response+json")).await;
        assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, "application/graphql-response+json; charset=utf-8"));
        // With the newer media type, the status shows what happened.
        for (query, status) in [("{", 400), ("{ task { nope } }", 400), ("{ nope { data { id } } }", 400), ("{ task(filter: [{ field: \"nope\", value: 1 }]) { data { id } } }", 200)] {
            let answer = server.send(get(&format!("query={query}"), "application/graphql-response+json")).await;
            assert_eq!(answer.status, status, "{query}: {}", answer.text);
            assert!(answer.json()["errors"].is_array());
        }
        // The server does not run a mutation or a subscription by GET, with any `Accept` header.
        for (query, accept) in [
            ("mutation { create_task(input: { title: \"x\" }) { id } }", "application/json"),
            ("mutation { create_task(input: { title: \"x\" }) { id } }", "text/event-stream"),
            ("subscription { events { id } }", "application/json"),
            ("subscription { events { id } }", "text/event-stream"),
        ] {
            let answer = server.send(get(&format!("query={query}"), accept)).await;
            assert_eq!((answer.status, answer.json()["errors"][0]["extensions"]["code"].as_str()), (405, Some("method_not_allowed")));
            assert!(answer.headers["allow"].to_str().unwrap().contains("POST"));
        }
        for method in ["PATCH", "DELETE"] {
            assert_eq!(server.call_as(Some(&admin.token), method, PATH, None).await.status, 405, "{method}");
        }
        let head = admin.request("HEAD", &format!("{PATH}?query=%7Bsvc_objects%7D"));
        assert_eq!(server.send(head).await.status, 200);
        let head = admin.request("HEAD", &format!("{PATH}?query=%7Bsvc_objects%7D")).header("accept", "text/event-stream");
        assert_eq!(server.send(head).await.status, 405);
        assert_eq!(server.send(get("query={ svc_objects }", "text/plain")).await.status, 406);
        assert_eq!(server.send(get("variables={}", "application/json")).await.status, 400);
        assert_eq!(server.send(get("query={ svc_objects }&variables=x", "application/json")).await.status, 400);
        // A page of another origin cannot write with a cookie.
        let cookie = admin.server.call("POST", "/api/auth/sign-in/email", Some(json!({ "email": "admin@example.com", "password": "correct horse battery" }))).await;
        let cookie = cookie.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let body = json!({ "query": "mutation { create_task(input: { title: \"x\" }) { id } }" });
        let foreign = server.request("POST", PATH).header("cookie", &cookie).header("origin", "https://evil.example").json(&body);
        assert_eq!(server.send(foreign).await.status, 403);
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
        let own = server.request("POST", PATH).header("cookie", &cookie).header("origin", &server.base).json(&body);
        assert!(server.send(own).await.json()["data"]["create_task"]["id"].is_string());
    }
}

fn url_encoded(query: &str) -> String {
    let mut out = String::new();
    for byte in query.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'=' | b'&' | b'_' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// After a flood of refused requests, the server has no work left to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_leave_the_server_quick() {
    let server: Server = blockbase_tests::ServerBuilder::new(blockbase_tests::Engine::Sqlite).start().await;
    let admin = server.admin().await;
    define(&admin).await;
    let bomb: String = (0..900).map(|number| format!("fragment F{number} on Task{{...F{0} ...F{0}}}", number + 1)).collect();
    let bomb = format!("{{task{{data{{...F0}}}}}}{bomb} fragment F900 on Task{{id}}");
    let floods = [
        bomb,
        "{".repeat(65_000),
        format!("{{{}}}", "a:task{data{id}}".repeat(4000)),
        format!("{{task{{data{{id {}}}}}}}", "@include(if:true)".repeat(3800)),
    ];
    let flooding = floods.iter().map(|flood| async {
        for _ in 0..20 {
            assert!(!codes(&server, Some(&admin.token), flood, Value::Null).await.is_empty());
        }
    });
    futures_util::future::join_all(flooding).await;
    assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    data(&admin, "{ task { data { id } } }", Value::Null).await;
}
