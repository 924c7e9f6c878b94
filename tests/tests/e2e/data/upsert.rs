//! `?on_conflict=`: one record is inserted or updated.

use blockbase_tests::{Engine, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

fn product() -> Value {
    json!({
        "name": "product",
        "fields": [
            { "name": "sku", "type": "slug", "isUnique": true },
            { "name": "region", "type": "text" },
            { "name": "code", "type": "integer" },
            { "name": "price", "type": "currency", "default": 1 },
            { "name": "stock", "type": "integer", "min": 0 },
            { "name": "title", "type": "text", "required": true },
        ],
        "constraints": { "uniqueTogether": [["region", "code"]] },
    })
}

on_both_engines! {
    async fn an_upsert_inserts_or_updates(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.post("/api/v1/objects", product()).await.status, 201);
        let upsert = async |target: &str, body: Value| admin.post(&format!("/api/v1/data/product?on_conflict={target}"), body).await;
        let first = upsert("sku", json!({ "sku": "a", "title": "One", "stock": 3, "created_by": "x" })).await;
        assert_eq!((first.status, &first.json()["created"]), (201, &json!(true)));
        let made = first.json()["data"].clone();
        assert_eq!((&made["price"], &made["stock"]), (&json!(1), &json!(3)));
        let second = upsert("sku", json!({ "sku": "a", "title": "Two", "price": 5 })).await;
        assert_eq!((second.status, &second.json()["created"]), (200, &json!(false)));
        let changed = second.json()["data"].clone();
        assert_eq!((&changed["id"], &changed["title"], &changed["stock"], &changed["price"]), (&made["id"], &json!("Two"), &json!(3), &json!(5)));
        assert_eq!((&changed["created_by"], &changed["created_at"]), (&made["created_by"], &made["created_at"]));
        // If the body leaves out a field, the field keeps its value, whether it has a default or not.
        let third = upsert("sku", json!({ "sku": "a", "title": "Two" })).await.json();
        assert_eq!((&third["data"]["price"], &third["created"]), (&json!(5), &json!(false)));

        // The columns of a group in any order, the id, and null, which is not equal to anything.
        let pair = |title: &str| json!({ "region": "eu", "code": 7, "title": title });
        assert_eq!(upsert("code,region", pair("x")).await.status, 201);
        assert_eq!(upsert("region,code", pair("y")).await.status, 200);
        let id = made["id"].as_str().unwrap().to_owned();
        let by_id = upsert("id", json!({ "id": id.to_uppercase(), "title": "by id" })).await;
        assert_eq!((by_id.status, &by_id.json()["data"]["sku"]), (200, &json!("a")));
        let new_id = "01890000-0000-7000-8000-00000000000a";
        let with_id = upsert("id", json!({ "id": new_id, "title": "new" })).await;
        assert_eq!((with_id.status, &with_id.json()["data"]["id"]), (201, &json!(new_id)));
        for _ in 0..2 {
            assert_eq!(upsert("sku", json!({ "sku": null, "title": "n" })).await.status, 201);
        }
        assert_eq!(admin.get("/api/v1/data/product").await.json()["pagination"]["totalCount"], 5);
        assert_eq!(admin.get("/api/v1/data/product?search=two").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.get("/api/v1/data/product?search=by+id").await.json()["pagination"]["totalCount"], 1);

        let events: Vec<(String, Value)> = admin.outbox("product").await;
        let topics: Vec<&str> = events.iter().map(|(topic, _)| topic.rsplit('.').next().unwrap()).take(3).collect();
        assert_eq!(topics, ["created", "updated", "updated"]);
        assert_eq!(events[1].1["diff"], json!({ "price": { "before": 1, "after": 5 }, "title": { "before": "One", "after": "Two" } }));
        assert_eq!((&events[1].1["before"]["title"], &events[2].1["diff"]), (&json!("One"), &json!({})));
    }

    async fn an_upsert_refuses_what_is_no_target(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.post("/api/v1/objects", product()).await.status, 201);
        let upsert = async |target: &str, body: Value| admin.post(&format!("/api/v1/data/product?on_conflict={target}"), body).await;
        for target in ["title", "region", "code", "sku,region", "nothing", "", "region,code,sku", "region,region"] {
            let refused = upsert(target, json!({ "sku": "a", "region": "eu", "code": 1, "title": "t" })).await;
            let refused = refused.expect_error(400, "invalid_upsert_target");
            assert!(["id", "sku", "region,code"].iter().all(|known| refused["message"].as_str().unwrap().contains(known)), "{refused}");
        }
        let lacking = upsert("sku", json!({ "title": "t" })).await.expect_error(400, "invalid_upsert_target");
        assert_eq!(lacking["field"], "sku");
        assert_eq!(upsert("region,code", json!({ "region": "eu", "title": "t" })).await.expect_error(400, "invalid_upsert_target")["field"], "code");
        assert_eq!(upsert("id", json!({ "id": "x", "title": "t" })).await.expect_error(400, "invalid_value")["field"], "id");
        assert_eq!(upsert("sku", json!({ "sku": "a" })).await.expect_error(400, "not_null_violation")["field"], "title");
        assert_eq!(upsert("sku", json!({ "sku": "a", "title": "t", "stock": -1 })).await.expect_error(400, "CONSTRAINT_VIOLATION")["field"], "stock");
        assert_eq!(upsert("sku", json!({ "sku": "a", "title": "t", "colour": 1 })).await.expect_error(400, "unknown_field")["field"], "colour");
        // A conflict with another unique target is an error.
        admin.make("product", json!({ "sku": "a", "region": "eu", "code": 1, "title": "t" })).await;
        admin.make("product", json!({ "sku": "b", "title": "t" })).await;
        upsert("sku", json!({ "sku": "b", "region": "eu", "code": 1, "title": "t" })).await.expect_error(409, "unique_violation");
        assert_eq!(admin.get("/api/v1/data/product").await.json()["pagination"]["totalCount"], 2);
    }

    async fn racing_upserts_make_one_record(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.post("/api/v1/objects", product()).await.status, 201);
        let answers = futures_util::future::join_all((0..24).map(|number| {
            let admin = admin.clone();
            async move { admin.post("/api/v1/data/product?on_conflict=sku", json!({ "sku": "one", "title": format!("t{number}"), "stock": number })).await }
        }))
        .await;
        let created = answers.iter().filter(|answer| answer.status == 201).count();
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)), "{answers:?}");
        assert_eq!(created, 1);
        assert_eq!(admin.get("/api/v1/data/product").await.json()["pagination"]["totalCount"], 1);
        // Each event begins with the state in which the previous one ended.
        let events = admin.outbox("product").await;
        assert_eq!(events.len(), 24);
        let titles: std::collections::HashSet<String> = events.iter().map(|(_, event)| event["after"]["title"].to_string()).collect();
        assert_eq!(titles.len(), 24);
        let befores: std::collections::HashSet<String> = events.iter().map(|(_, event)| event["before"]["title"].to_string()).collect();
        assert_eq!(befores.len(), 24, "no two writes saw the same state before them");
    }
}

on_both_engines! {
    async fn a_new_record_comes_with_its_event_and_its_place_in_the_count(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        assert_eq!(admin.post("/api/v1/objects", product()).await.status, 201);
        let body = |sku: &str| json!({ "sku": sku, "title": sku, "region": "eu", "code": sku.len() });
        let create = async |sku: &str| admin.post("/api/v1/data/product", body(sku)).await;
        let upsert = async |sku: &str| admin.post("/api/v1/data/product?on_conflict=sku", body(sku)).await;
        assert_eq!((create("a").await.status, upsert("bb").await.status, upsert("bb").await.status), (201, 201, 200));
        create("a").await.expect_error(409, "unique_violation");
        // The new record is in conflict with another one in the other unique target.
        upsert("cc").await.expect_error(409, "unique_violation");
        let counts = "SELECT (SELECT count(*) FROM product), \
                      (SELECT CAST(sum(c.rows) AS BIGINT) FROM svc_counts c JOIN svc_objects o ON o.id = c.object_id \
                      WHERE o.name = 'product'), \
                      (SELECT count(*) FROM svc_events WHERE topic = 'data.product.created')";
        assert_eq!(server.sql(counts).await, [["2", "2", "2"]]);
        let mark = "after-the-new-records";
        server.send(admin.request("GET", "/api/v1/me").header("x-request-id", mark)).await;
        let log = server.log_with(mark).await;
        // Quotes are escaped in the log. Two of the statements fail.
        let is_one = |line: &&str| line.contains(r#"INSERT INTO \"product\""#) && line.contains("svc_events");
        let together = log.lines().filter(is_one).count();
        // Each upsert first changes the record that exists, and locks it.
        let at_once = log.lines().filter(|line| line.contains(r#"UPDATE \"product\""#) && line.contains("FOR UPDATE")).count();
        // On SQLite, a statement is no round trip.
        assert_eq!((together, at_once), if engine == Engine::Postgres { (4, 3) } else { (0, 0) });
    }
}

async fn a_hidden_record_is_not_changed(engine: Engine) {
    let server = ServerBuilder::new(engine).env("SVC_SIGNUP_ROLE", "member").start().await;
    let grants = json!([{ "resource": "product", "actions": ["create", "read", "update"], "rowPolicy": "own" }]);
    server.sql(&format!("INSERT INTO svc_roles VALUES ('r-member', 'member', NULL, '{grants}', 0, 0)")).await;
    let admin = server.admin().await;
    assert_eq!(admin.post("/api/v1/objects", product()).await.status, 201);
    admin.make("product", json!({ "sku": "theirs", "title": "secret title" })).await;
    let member = server.with_token(server.sign_up("member").await);
    let refused = member.post("/api/v1/data/product?on_conflict=sku", json!({ "sku": "theirs", "title": "mine now" })).await;
    let refused = refused.expect_error(403, "forbidden");
    assert!(!refused.to_string().contains("secret title"));
    assert_eq!(admin.get("/api/v1/data/product").await.data()[0]["title"], "secret title");
    assert_eq!(member.post("/api/v1/data/product?on_conflict=sku", json!({ "sku": "mine", "title": "a" })).await.status, 201);
    assert_eq!(member.post("/api/v1/data/product?on_conflict=sku", json!({ "sku": "mine", "title": "b" })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_record_is_not_changed_on_sqlite() {
    a_hidden_record_is_not_changed(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_record_is_not_changed_on_postgres() {
    a_hidden_record_is_not_changed(Engine::Postgres).await;
}
