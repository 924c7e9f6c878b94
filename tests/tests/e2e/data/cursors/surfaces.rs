//! Pages by cursors over MCP and in blocks: the same pages as over REST.

use blockbase_tests::{Admin, on_both_engines, pack, test_block};
use serde_json::{Value, json};

use super::{define, fill, listed, page};
use crate::mcp::Client;

/// A document without the texts of its cursors, which differ each time.
fn without_cursors(document: &Value) -> Value {
    let mut document = document.clone();
    for name in ["startCursor", "endCursor"] {
        let cursor = &mut document["pagination"][name];
        assert!(cursor.is_string(), "{document}");
        *cursor = json!("");
    }
    document
}

/// The list of these tests, after a cursor.
fn query(cursor: &str) -> Value {
    let filters = json!([{ "field": "level", "value": 1 }]);
    json!({ "sort": "-rank,title", "filters": filters, "limit": 5, "select": "rank", "after": cursor })
}

/// Reads all pages with `ask`, and compares them with those of REST. Returns the cursor after the first page.
async fn as_rest(admin: &Admin<'_>, ask: impl AsyncFn(Value) -> Value) -> String {
    let expected = listed(admin, "thing", "sort=-rank,title&level=1").await;
    let (mut ids, mut cursor, mut of_rest, mut first) = (Vec::new(), String::new(), String::new(), None);
    loop {
        let document = ask(query(&cursor)).await;
        let rest = admin.post("/api/v1/data/thing/query", query(&of_rest)).await.json();
        assert_eq!(without_cursors(&document), without_cursors(&rest));
        ids.extend(document["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        cursor = document["pagination"]["endCursor"].as_str().unwrap().to_owned();
        of_rest = rest["pagination"]["endCursor"].as_str().unwrap().to_owned();
        first.get_or_insert_with(|| cursor.clone());
        if document["pagination"]["hasNextPage"] == false {
            assert_eq!(ids, expected);
            return first.unwrap();
        }
    }
}

on_both_engines! {
    async fn tools_have_the_pages_of_rest(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let client = Client::of(&admin);
        let of_thing = |mut query: Value| {
            query["object_name"] = json!("thing");
            query
        };
        let cursor = as_rest(&admin, async |query: Value| {
            let called = client.call("query_data", of_thing(query)).await;
            assert!(!called.is_error, "{}", called.text);
            serde_json::from_str(&called.text).unwrap()
        })
        .await;
        // The caller and the list are the same, so the cursor is good over REST too.
        assert_eq!(admin.post("/api/v1/data/thing/query", query(&cursor)).await.status, 200);
        let last = client.call("query_data", of_thing(json!({ "before": "", "page_size": 2 }))).await;
        let last: Value = serde_json::from_str(&last.text).unwrap();
        let expected = page(&admin, "thing", "before=&limit=2").await.ids;
        assert_eq!(last["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect::<Vec<_>>(), expected);
        for (arguments, field) in [
            (json!({ "after": "x" }), "after"),
            (json!({ "before": "x" }), "before"),
            (json!({ "after": "", "page": 1 }), "page"),
            (json!({ "after": "", "offset": 0 }), "offset"),
            (json!({ "cursor": true }), "cursor"),
        ] {
            let refused = client.call("query_data", of_thing(arguments)).await;
            assert!(refused.is_error, "{}", refused.text);
            let error: Value = serde_json::from_str(&refused.text).unwrap();
            assert_eq!((&error["error"], &error["field"]), (&json!("invalid_request"), &json!(field)));
        }
        let groups = client.call("aggregate_data", of_thing(json!({ "functions": ["count"], "after": "" }))).await;
        assert!(groups.is_error, "{}", groups.text);
    }

    async fn blocks_have_the_pages_of_rest(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let manifest = json!({
            "name": "pager",
            "version": "1.0.0",
            "actions": [{ "name": "run" }],
            "requires": { "plugins": ["data"] },
            "permissions": { "data": [{ "resource": "thing", "actions": ["read"] }] },
        });
        let file = pack(test_block("parity").await, manifest).await.unwrap();
        let installed = admin.install("", file).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let run = async |query: Value| {
            let input = json!({ "op": "query", "object": "thing", "json": query.to_string() });
            let answer = admin.post("/api/v1/blocks/pager/actions/run", input).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.data()
        };
        let cursor = as_rest(&admin, async |query: Value| run(query).await["done"].clone()).await;
        // A block may see more than its caller, so its cursors are its own.
        let refused = admin.post("/api/v1/data/thing/query", query(&cursor)).await;
        assert_eq!(refused.expect_error(400, "invalid_request")["field"], "after");
        let refused = run(json!({ "after": "x" })).await["refused"].clone();
        assert_eq!((&refused["code"], &refused["details"]["field"]), (&json!("invalid_request"), &json!("after")));
    }
}
