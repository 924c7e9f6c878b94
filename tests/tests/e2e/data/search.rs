//! Search: its index is kept up to date with the rows, and used by lists.

use std::sync::Arc;

use blockbase_query::plan::ListPlan;
use blockbase_query::{Action, Bounds, Decision, Dialect, ListRequest, Param, Permissions, Reading, Statement, Variables, sql};
use blockbase_schema::{Object, Registry, Relationship, StoredObject, time};
use blockbase_tests::{Admin, Engine, Server, ServerBuilder, new_database, on_both_engines, postgres_rows};
use serde_json::{Value, json};

/// An object as the server's table has it.
fn stored(row: &[String]) -> StoredObject {
    StoredObject {
        id: row[0].parse().unwrap(),
        revision: row[1].parse().unwrap(),
        definition: serde_json::from_str(&row[2]).unwrap(),
        keys: serde_json::from_str(&row[3]).unwrap(),
        since: Default::default(),
    }
}

/// The object in the server's own form, so that a test gets the statements that the server would write.
pub(crate) async fn object(server: &Server, name: &str) -> Arc<Object> {
    let rows = server.sql(&format!("SELECT id, revision, definition, field_keys FROM svc_objects WHERE name = '{name}'")).await;
    Arc::new(Object::new(stored(&rows[0]), [], |_| None).unwrap())
}

pub(crate) fn dialect(server: &Server) -> Dialect {
    if server.engine() == Engine::Sqlite { Dialect::Sqlite } else { Dialect::Postgres }
}

/// The server's registry, for lists whose conditions lead through relations.
pub(crate) async fn registry(server: &Server) -> Registry {
    let objects = server.sql("SELECT id, revision, definition, field_keys FROM svc_objects ORDER BY id").await;
    let relationships = server.sql("SELECT id, definition FROM svc_relationships ORDER BY id").await;
    let relationships = relationships
        .iter()
        .map(|row| Relationship { id: row[0].parse().unwrap(), definition: serde_json::from_str(&row[1]).unwrap() });
    Registry::new(1, objects.iter().map(|row| stored(row)).collect(), relationships.collect()).unwrap()
}

/// The server's plan of a list.
pub(crate) fn planned(object: &Arc<Object>, query: &[(&str, &str)]) -> ListPlan {
    planned_in(&Registry::default(), object, query)
}

/// The server's plan of a list whose condition can lead through the relations of a registry.
pub(crate) fn planned_in(registry: &Registry, object: &Arc<Object>, query: &[(&str, &str)]) -> ListPlan {
    let access = Permissions::unrestricted().decide(object.name(), Action::Read).and_then(Decision::plain).unwrap();
    let request = ListRequest::from_parameters(query.iter().copied()).unwrap();
    let reading =
        Reading { registry, decide: &|_| Ok(access.clone()), variables: &Variables::default, bounds: Bounds::of_request() };
    ListPlan::new(object, &access, &request, &reading, Vec::new()).unwrap()
}

/// The engine's plan of a list without its total, as text. A total may scan the table if many rows match.
async fn explained(server: &Server, object: &Arc<Object>, query: &[(&str, &str)]) -> String {
    let query = [query, &[("count", "none")]].concat();
    explained_statement(server, sql::list(dialect(server), &planned(object, &query), None)).await
}

/// The text of a statement, with its values in place of the placeholders.
pub(crate) fn with_values(dialect: Dialect, statement: Statement) -> String {
    let mut text = String::from(statement.sql);
    for (index, param) in statement.params.iter().enumerate().rev() {
        let literal = match param {
            Param::Text(Some(text)) => format!("'{}'", text.replace('\'', "''")),
            Param::Integer(Some(number)) => number.to_string(),
            Param::BigInteger(Some(number)) => number.to_string(),
            Param::Boolean(Some(value)) => value.to_string(),
            Param::Uuid(Some(id)) => format!("'{id}'"),
            Param::Datetime(Some(millis)) => format!("'{}'", time::format_datetime(*millis)),
            other => panic!("{other:?}"),
        };
        text = text.replace(&dialect.placeholder(index + 1), &literal);
    }
    text
}

/// The engine's plan of a statement, as text.
pub(crate) async fn explained_statement(server: &Server, statement: Statement) -> String {
    let dialect = dialect(server);
    let text = with_values(dialect, statement);
    let explain = if dialect == Dialect::Sqlite { "EXPLAIN QUERY PLAN " } else { "EXPLAIN " };
    let rows = server.sql(&format!("{explain}{text}")).await;
    rows.into_iter().map(|row| row.join(" ")).collect::<Vec<_>>().join("\n")
}

on_both_engines! {
    async fn search_and_declared_orders_go_by_index(server: Server) {
        let admin = server.admin().await;
        let made = admin.post("/api/v1/objects", json!({
            "name": "row",
            "fields": [
                { "name": "title", "type": "text", "required": true },
                { "name": "kind", "type": "enum", "options": ["x", "y"] },
                { "name": "tags", "type": "multi_enum", "options": ["é\"b", "other"] },
                { "name": "number", "type": "integer", "indexed": true },
                { "name": "other", "type": "integer" },
                { "name": "free", "type": "integer" },
            ],
            "indexes": [["kind", "other"]],
        })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        for batch in 0..12 {
            let rows: Vec<Value> = (0..1000)
                .map(|row| {
                    let number = batch * 1000 + row;
                    json!({ "title": format!("row number {number:05} of many"), "number": number, "other": number % 7, "kind": if number % 2 == 0 { "x" } else { "y" } })
                })
                .collect();
            assert_eq!(admin.post("/api/v1/data/row/bulk", json!({ "data": rows })).await.status, 201);
        }
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"row\"").await;
        }
        let row = object(&server, "row").await;
        let sqlite = server.engine() == Engine::Sqlite;
        for (query, by_sqlite, by_postgres) in [
            (vec![("search", "number 07123")], "VIRTUAL TABLE INDEX", "svc_sf_"),
            (vec![("title[ilike]", "NUMBER 07123")], "VIRTUAL TABLE INDEX", "svc_sf_"),
            (vec![("title[like]", "07123")], "VIRTUAL TABLE INDEX", "svc_sf_"),
            (vec![], "svc_ix_1_created", "svc_ix_1_created"),
            (vec![("number", "77")], "svc_ix_1_4", "svc_ix_1_4"),
            (vec![("number[gte]", "11990")], "svc_ix_1_4", "svc_ix_1_4"),
            (vec![("number[in]", "1,2,3")], "svc_ix_1_4", "svc_ix_1_4"),
            (vec![("sort", "number")], "svc_ix_1_4", "svc_ix_1_4"),
            (vec![("sort", "-number")], "svc_ix_1_4", "svc_ix_1_4"),
            (vec![("kind", "x"), ("sort", "other")], "svc_ix_1_g_2_5", "svc_ix_1_g_2_5"),
        ] {
            let plan = explained(&server, &row, &query).await;
            let expected = if sqlite { by_sqlite } else { by_postgres };
            assert!(plan.contains(expected), "{query:?}:\n{plan}");
            assert!(!plan.contains("Seq Scan") && !plan.contains("SCAN row\n"), "{query:?}:\n{plan}");
            if query.iter().any(|(name, _)| *name == "sort") {
                assert!(!plan.contains("TEMP B-TREE") && !plan.contains("Sort Key"), "{query:?}:\n{plan}");
            }
        }
        // A query on a field without an index scans and sorts, and its plan shows this. So the assertions above can fail.
        let plan = explained(&server, &row, &[("sort", "free")]).await;
        assert!(plan.contains("TEMP B-TREE") || plan.contains("Sort Key"), "{plan}");

        let total = async |query: &str| admin.get(&format!("/api/v1/data/row?{query}")).await.json()["pagination"]["totalCount"].clone();
        assert_eq!(total("search=NUMBER+07123").await, 1);
        // If too many rows match, the list reads the rows in its own order. The total is still exact.
        assert_eq!(total("search=of+many").await, 12_000);
        let many = admin.get("/api/v1/data/row?search=OF+MANY&sort=-number&limit=2").await.json();
        assert_eq!((&many["data"][0]["number"], &many["data"][1]["number"]), (&json!(11_999), &json!(11_998)));
        assert_eq!(total("search=number+1").await, 2000);
        assert_eq!(total("search=x").await, 6000);
    }

    async fn all_fields_that_an_object_may_have_are_searched_by_one_index(server: Server) {
        let admin = server.admin().await;
        let field = |index: usize| match index % 3 {
            0 => json!({ "name": format!("f{index}"), "type": "multi_enum", "options": ["one", "another"] }),
            _ => json!({ "name": format!("f{index}"), "type": "text" }),
        };
        // If there are 100 fields or more, the expression of Postgres' index has another form.
        for (name, count) in [("wide", 299), ("border", 100)] {
            let fields: Vec<Value> = (0..count).map(field).collect();
            let made = admin.post("/api/v1/objects", json!({ "name": name, "fields": fields })).await;
            assert_eq!(made.status, 201, "{}", made.text);
            // The index is built again, with one more field.
            let added = admin.post(&format!("/api/v1/objects/{name}/fields"), json!({ "name": "last", "type": "text" })).await;
            assert_eq!(added.status, 201, "{}", added.text);
        }
        for (field, word) in [("f98", "before"), ("last", "behind")] {
            admin.make("border", json!({ field: word })).await;
            assert_eq!(admin.get(&format!("/api/v1/data/border?search={word}")).await.json()["pagination"]["totalCount"], 1);
        }
        let data = json!({ "data": [{ "f1": "Needle one" }, { "f298": "needle two" }, { "last": "NEEDLE three" }, { "f0": ["another"] }, {}] });
        assert_eq!(admin.post("/api/v1/data/wide/bulk", data).await.status, 201);
        for (term, found) in [("needle", 3), ("NEEDLE TWO", 1), ("another", 1), ("oneanother", 0)] {
            let answer = admin.get(&format!("/api/v1/data/wide?search={}", term.replace(' ', "+"))).await.json();
            assert_eq!(answer["pagination"]["totalCount"], found, "{term}");
        }
        if server.engine() == Engine::Postgres {
            let valid = server.sql("SELECT indisvalid::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname LIKE 'svc_sf_%'").await;
            assert_eq!(valid, [["true"], ["true"]]);
        }
    }

    async fn the_index_follows_every_write(server: Server) {
        let admin = server.admin().await;
        admin.define("doc", json!([
            { "name": "title", "type": "text" },
            { "name": "mail", "type": "email" },
            { "name": "size", "type": "integer" },
            { "name": "tags", "type": "multi_enum", "options": ["say \"é\"", "plain"] },
        ])).await;
        let found = async |term: &str| {
            let path = format!("/api/v1/data/doc?search={}", term.replace('%', "%25").replace(' ', "+").replace('#', "%23"));
            admin.get(&path).await.json()["pagination"]["totalCount"].as_i64().unwrap()
        };
        let id = admin.make("doc", json!({ "title": "Straße_100% \\ O'Neil \"x\"", "mail": "a@example.com", "tags": ["say \"é\""] })).await;
        let path = format!("/api/v1/data/doc/{id}");
        for term in ["straße", "STRASSE", "sse_100", "0% \\ o", "o'neil", "\"X\"", "example.com", "y \"É", "e_1"] {
            assert_eq!(found(term).await, 1, "{term}");
        }
        for term in ["straßx", "100_", "x\u{1f}a", "com say", "AND", "NEAR(", "*", "title:", "plain"] {
            assert_eq!(found(term).await, 0, "{term}");
        }
        admin.patch(&path, json!({ "size": { "$inc": 1 } })).await;
        admin.patch(&path, json!({ "size": 5 })).await.data();
        assert_eq!(found("strasse").await, 1);
        admin.patch(&path, json!({ "title": "another text" })).await.data();
        assert_eq!((found("strasse").await, found("other tex").await), (0, 1));
        admin.patch(&path, json!({ "title": null, "mail": null, "tags": null })).await.data();
        assert_eq!((found("other tex").await, found("example").await), (0, 0));
        admin.patch(&path, json!({ "tags": ["plain"] })).await.data();
        assert_eq!(found("LAI").await, 1);
        // A failed write does not change the index, whether it is alone or in a bulk call.
        let both = json!({ "data": [{ "title": "first of two" }, { "title": 5 }] });
        admin.post("/api/v1/data/doc/bulk", both).await.expect_error(400, "invalid_value");
        assert_eq!(found("first of").await, 0);
        assert_eq!(admin.delete(&path).await.status, 204);
        assert_eq!(found("plain").await, 0);
        let answers = futures_util::future::join_all((0..40).map(|number| {
            let admin = admin.clone();
            async move {
                let id = admin.make("doc", json!({ "title": format!("storm {number}") })).await;
                let path = format!("/api/v1/data/doc/{id}");
                match number % 3 {
                    0 => admin.delete(&path).await.status,
                    1 => admin.patch(&path, json!({ "title": "calm" })).await.status,
                    _ => 200,
                }
            }
        })).await;
        assert!(answers.iter().all(|status| *status < 300), "{answers:?}");
        assert_eq!((found("storm").await, found("calm").await), (13, 13));
        let server = server.restart().await;
        let admin = server.with_token(admin_token(&server).await);
        let after = admin.get("/api/v1/data/doc?search=storm").await.json();
        assert_eq!(after["pagination"]["totalCount"], 13);
    }
}

async fn admin_token(server: &Server) -> String {
    let body = json!({ "email": "admin@example.com", "password": "correct horse battery" });
    let signed = server.call("POST", "/api/auth/sign-in/email", Some(body)).await;
    signed.json()["token"].as_str().unwrap().to_owned()
}

/// In many managed databases, the service's own role may not create extensions. This test has the same situation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_trigrams_a_search_looks_at_every_row_until_an_administrator_makes_them() {
    let url = new_database().await;
    let administrator = async |sql: &str| postgres_rows(&url, sql).await;
    let plain = ServerBuilder::new(Engine::Postgres).database(url.replace("//test@", "//plain@"));
    for statement in ["CREATE ROLE plain LOGIN", "GRANT ALL ON SCHEMA public TO plain"] {
        administrator(statement).await;
    }
    let server = plain.start().await;
    server.log_with("every search is a scan").await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    for title in ["Éclair", "Bread", "éclairs with cream"] {
        admin.make("task", json!({ "title": title })).await;
    }
    let found =
        async |admin: &Admin<'_>| admin.get("/api/v1/data/task?search=ÉCLAIR").await.json()["pagination"]["totalCount"].clone();
    assert_eq!(found(&admin).await, 2);
    let indexes = "SELECT indexname::text FROM pg_indexes WHERE indexname ~ '^svc_sf_[0-9]+$'";
    assert!(administrator(indexes).await.is_empty());

    administrator("CREATE EXTENSION pg_trgm").await;
    let token = admin.token.clone();
    let server = server.restart().await;
    assert!(!server.log().contains("every search is a scan"), "{}", server.log());
    assert_eq!(administrator(indexes).await.len(), 1);
    let admin = server.with_token(token);
    assert_eq!(found(&admin).await, 2);
    admin.make("task", json!({ "title": "another ÉCLAIR" })).await;
    assert_eq!(found(&admin).await, 3);
}

on_both_engines! {
    async fn a_search_term_is_measured_in_characters(server: Server) {
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let most = "é😀".repeat(500);
        admin.make("note", json!({ "text": format!("before {most} after") })).await;
        admin.make("note", json!({ "text": "é😀".repeat(499) })).await;
        let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        for name in ["search", "q"] {
            let found = admin.get(&format!("/api/v1/data/note?{name}={}", encoded(&most))).await;
            assert_eq!((found.status, &found.json()["pagination"]["totalCount"]), (200, &json!(1)), "{}", found.text);
            let refused = admin.get(&format!("/api/v1/data/note?{name}={}x", encoded(&most))).await;
            let refused = refused.expect_error(400, "invalid_request");
            assert!(refused["message"].as_str().unwrap().contains("1000 characters"), "{refused}");
        }
        let query = "query($term: String) { note(search: $term) { pagination { totalCount } } }";
        let found = crate::graphql::data(&admin, query, json!({ "term": most })).await;
        assert_eq!(found["note"]["pagination"]["totalCount"], 1);
        let refused = crate::graphql::codes(&server, Some(&admin.token), query, json!({ "term": format!("{most}x") })).await;
        assert_eq!(refused, ["invalid_request"]);
    }
}
