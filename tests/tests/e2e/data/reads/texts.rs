//! The length of texts, and their characters.

use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

on_both_engines! {
    async fn a_text_has_a_bound_on_every_way_in(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let long = "x".repeat(3000);
        let fields = json!([
            { "name": "slug", "type": "slug", "isUnique": true },
            { "name": "t", "type": "text" },
            { "name": "wide", "type": "text", "max": 5000 },
            { "name": "narrow", "type": "text", "max": 10 },
            { "name": "j", "type": "json" },
        ]);
        admin.define("doc", fields).await;
        admin.define("defaulted", json!([{ "name": "n", "type": "integer" }, { "name": "t", "type": "text", "default": long }])).await;
        let id = admin.make("doc", json!({ "slug": "old", "t": long })).await;
        let token = admin.token.clone();
        let bounded = server.builder().env("SVC_MAX_TEXT_BYTES", "2048").env("SVC_MAX_BODY_BYTES", "16384");
        drop(server);
        let server = bounded.start().await;
        let admin = server.with_token(token);

        let refused = |answer: blockbase_tests::Answer| {
            let error = answer.expect_error(400, "CONSTRAINT_VIOLATION");
            assert_eq!(error["field"], "t", "{error}");
            assert!(error["message"].as_str().unwrap().contains("rule `max`"), "{error}");
        };
        refused(admin.post("/api/v1/data/doc", json!({ "t": long })).await);
        refused(admin.post("/api/v1/data/doc/bulk", json!({ "data": [{ "t": "short" }, { "t": long }] })).await);
        refused(admin.patch(&format!("/api/v1/data/doc/{id}"), json!({ "t": long })).await);
        refused(admin.post("/api/v1/data/doc?on_conflict=slug", json!({ "slug": "old", "t": long })).await);
        refused(admin.post("/api/v1/data/doc?on_conflict=slug", json!({ "slug": "new", "t": long })).await);
        refused(admin.post("/api/v1/data/defaulted", json!({ "n": 1 })).await);
        let query = format!(r#"mutation {{ create_doc(input: {{ t: "{long}" }}) {{ id }} }}"#);
        let answer = admin.post("/api/v1/graphql", json!({ "query": query })).await.json();
        assert_eq!(answer["errors"][0]["extensions"]["code"], "CONSTRAINT_VIOLATION", "{answer}");

        // A text of the maximum size, a field with its own limit, and a text that was written before the limit was set.
        assert_eq!(admin.post("/api/v1/data/doc", json!({ "t": "x".repeat(2048) })).await.status, 201);
        assert_eq!(admin.post("/api/v1/data/doc", json!({ "wide": "x".repeat(5000) })).await.status, 201);
        admin.post("/api/v1/data/doc", json!({ "narrow": "x".repeat(11) })).await.expect_error(400, "CONSTRAINT_VIOLATION");
        assert_eq!(admin.post("/api/v1/data/doc", json!({ "j": [long] })).await.status, 201);
        assert_eq!(admin.get(&format!("/api/v1/data/doc/{id}")).await.data()["t"], json!(long));
        assert_eq!(admin.patch(&format!("/api/v1/data/doc/{id}"), json!({ "wide": "y" })).await.data()["t"], json!(long));
    }
}

on_both_engines! {
    async fn letters_of_one_case_fold_find_each_other(server: Server) {
        let admin = server.admin().await;
        admin.define("word", json!([{ "name": "t", "type": "text" }, { "name": "n", "type": "integer" }])).await;
        for (number, text) in ["GROẞE Straße", "große STRASSE", "Ångström", "\u{212b}ngstrom", "ΟΔΟΣ", "οδος", "İstanbul"].iter().enumerate() {
            admin.make("word", json!({ "t": text, "n": number })).await;
        }
        check_letters(&admin).await;

        // If an index was built with other rules for folding, the server builds it again.
        let token = admin.token.clone();
        let id = server.sql("SELECT id FROM svc_objects WHERE name = 'word'").await[0][0].clone();
        let statements = match server.engine() {
            Engine::Sqlite => vec![
                format!("DROP TABLE svc_ft_{id}"),
                format!(
                    "CREATE VIRTUAL TABLE svc_fts_{id} USING fts5(document, content='', contentless_delete=1, detail=none, \
                     tokenize='trigram case_sensitive 1')"
                ),
            ],
            Engine::Postgres => {
                vec![format!("DROP INDEX svc_sf_{id}"), format!("CREATE INDEX svc_se_{id} ON word USING gin (upper(t) gin_trgm_ops)")]
            }
        };
        for statement in statements {
            server.sql(&statement).await;
        }
        let server = server.restart().await;
        check_letters(&server.with_token(token)).await;
        let old = match server.engine() {
            Engine::Sqlite => format!("SELECT name FROM sqlite_master WHERE name = 'svc_fts_{id}'"),
            Engine::Postgres => format!("SELECT relname::text FROM pg_class WHERE relname = 'svc_se_{id}'"),
        };
        assert!(server.sql(&old).await.is_empty());
    }

    async fn several_filters_on_one_text_all_count(server: Server) {
        let admin = server.admin().await;
        admin.define("word", json!([{ "name": "t", "type": "text" }, { "name": "n", "type": "integer" }])).await;
        for (number, text) in ["Ab cd ef", "ab CD", "cd EF", ""].iter().enumerate() {
            admin.make("word", json!({ "t": text, "n": number })).await;
        }
        admin.make("word", json!({ "t": null, "n": 4 })).await;
        for (query, expected) in [
            ("t[ilike]=AB&t[ilike]=cd&t[ilike]=AB", vec![0, 1]),
            ("t[ilike]=AB&t[ilike]=cd&t[ilike]=ef", vec![0]),
            ("t[like]=cd&t[like]=EF", vec![2]),
            ("t[like]=b&t[ilike]=EF&n=0&n=0", vec![0]),
            ("t[ilike]=&t[ilike]=c", vec![0, 1, 2]),
            ("t[like]=&t[ilike]=", vec![0, 1, 2, 3]),
        ] {
            assert_eq!(numbers(&admin, query).await, expected, "{query}");
        }
        // The order and the paging of lists that SQLite sorts.
        let sorted = admin.get("/api/v1/data/word?n[gte]=0&sort=-t,n&limit=3&offset=1&select=n").await.json();
        let found: Vec<_> = sorted["data"].as_array().unwrap().iter().map(|row| row["n"].as_i64().unwrap()).collect();
        assert_eq!(found, [2, 1, 0], "{sorted}");
        assert_eq!(sorted["pagination"]["totalCount"], 5);
    }
}

async fn numbers(admin: &Admin<'_>, query: &str) -> Vec<i64> {
    let answer = admin.get(&format!("/api/v1/data/word?{query}&sort=n&select=n")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let rows: Value = answer.json()["data"].take();
    rows.as_array().unwrap().iter().map(|row| row["n"].as_i64().unwrap()).collect()
}

async fn check_letters(admin: &Admin<'_>) {
    for (term, expected) in [
        ("große", vec![0, 1]),
        ("groẞe", vec![0, 1]),
        ("GROSSE", vec![0, 1]),
        ("STRAẞE", vec![0, 1]),
        ("ång", vec![2, 3]),
        ("\u{212b}NG", vec![2, 3]),
        ("οδος", vec![4, 5]),
        ("ΟΔΟΣ", vec![4, 5]),
        ("i\u{307}stanbul", vec![6]),
    ] {
        assert_eq!(numbers(admin, &format!("t[ilike]={term}")).await, expected, "ilike {term}");
        assert_eq!(numbers(admin, &format!("search={term}")).await, expected, "search {term}");
    }
}
