//! The size of responses on every surface.

use blockbase_tests::{ServerBuilder, on_both_engines};
use serde_json::json;

use crate::mcp::{call, read_result};

on_both_engines! {
    async fn an_answer_has_a_bound_on_every_surface(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", "65536").start().await;
        let admin = server.admin().await;
        admin.define("author", json!([{ "name": "name", "type": "text" }])).await;
        admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
        admin.relate(json!({ "name": "author", "kind": "many_to_one", "source": "doc", "target": "author" })).await;
        let author = admin.make("author", json!({ "name": "n".repeat(4000) })).await;
        let docs: Vec<_> = (0..25).map(|_| json!({ "t": "x".repeat(4000), "author_id": author })).collect();
        let made = admin.post("/api/v1/data/doc/bulk", json!({ "data": docs })).await;
        assert_eq!(made.status, 201, "{}", made.text);

        let error = admin.get("/api/v1/data/doc").await.expect_error(400, "answer_too_large");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`select`") && message.contains("`limit`"), "{message}");
        admin.get("/api/v1/data/doc?sort=t&count=none").await.expect_error(400, "answer_too_large");
        for query in ["select=id", "limit=5", "select=id&count=none", "limit=15"] {
            assert_eq!(admin.get(&format!("/api/v1/data/doc?{query}")).await.status, 200, "{query}");
        }
        // The author is read once, but shown with each record.
        admin.get("/api/v1/data/doc?select=id&expand=author").await.expect_error(400, "answer_too_large");
        assert_eq!(admin.get("/api/v1/data/doc?select=id&expand=author&limit=10").await.status, 200);
        admin.get(&format!("/api/v1/data/author/{author}?expand=doc_by_author")).await.expect_error(400, "answer_too_large");

        let graphql = async |query: &str| admin.post("/api/v1/graphql", json!({ "query": query })).await.json();
        for query in [
            "{ doc { data { t } } }",
            "{ a: doc(limit: 9) { data { t } } b: doc(limit: 9) { data { t } } }",
            "{ doc(limit: 10) { data { a: t b: t } } }",
            "{ doc { data { author { name } } } }",
        ] {
            let answer = graphql(query).await;
            assert_eq!(answer["errors"][0]["extensions"]["code"], "answer_too_large", "{query}: {:.300}", answer.to_string());
        }
        // Each alias repeats the groups.
        let groups = |aliases: usize| {
            let data: String = (0..aliases).map(|number| format!("a{number}: data ")).collect();
            format!(r#"{{ doc_groups(functions: ["count"], groupBy: ["t"]) {{ {data} }} }}"#)
        };
        let answer = graphql(&groups(30)).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "answer_too_large", "{:.300}", answer.to_string());
        assert!(answer["data"]["doc_groups"].is_null(), "{:.300}", answer.to_string());
        let answer = graphql(&groups(7)).await;
        assert_eq!(answer["data"]["doc_groups"]["a6"][0]["count"], 25, "{:.300}", answer.to_string());
        let answer = graphql("{ a: doc(limit: 7) { data { t } } b: doc(limit: 7) { data { t } } }").await;
        assert!(answer["errors"].is_null() && answer["data"]["b"]["data"].as_array().unwrap().len() == 7, "{answer}");

        let tool = async |arguments: &str| {
            let request = admin.request("POST", "/api/v1/mcp").header("accept", "application/json, text/event-stream");
            let request = request.header("content-type", "application/json").body(call("query_data", arguments));
            read_result(&server.send(request).await.text)
        };
        let refused = tool(r#"{ "object_name": "doc" }"#).await;
        assert!(refused.is_error && refused.text.contains("answer_too_large"), "{:.300}", refused.text);
        assert!(!tool(r#"{ "object_name": "doc", "limit": 5 }"#).await.is_error);
    }
}
