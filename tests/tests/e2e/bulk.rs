//! Many records in one call: all or none.

use blockbase_tests::{ServerBuilder, on_both_engines};
use serde_json::{Value, json};

on_both_engines! {
    async fn bulk_calls_write_all_or_none(server: Server) {
        let admin = server.admin().await;
        admin.define("item", json!([
            { "name": "code", "type": "text", "isUnique": true },
            { "name": "size", "type": "integer", "min": 0, "default": 4 },
            { "name": "tags", "type": "multi_enum", "options": ["a", "b"] },
        ])).await;
        let records: Vec<Value> = (0..1000).map(|number| json!({ "code": format!("c{number}"), "tags": ["b"] })).collect();
        let made = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let ids: Vec<String> = serde_json::from_value(made.json()["ids"].clone()).unwrap();
        assert_eq!((made.json()["count"].clone(), ids.len()), (json!(1000), 1000));
        let listed = admin.get("/api/v1/data/item?sort=id&limit=3").await.json();
        assert_eq!(listed["pagination"]["totalCount"], 1000);
        for (place, record) in listed["data"].as_array().unwrap().iter().enumerate() {
            assert_eq!((&record["id"], &record["code"], &record["size"]), (&json!(ids[place]), &json!(format!("c{place}")), &json!(4)));
        }
        assert_eq!(admin.get("/api/v1/data/item?search=c999").await.json()["pagination"]["totalCount"], 1);
        let events = admin.outbox("item").await;
        assert_eq!(events.len(), 1000);
        assert!(events.iter().zip(&ids).all(|((topic, event), id)| topic == "data.item.created" && event["id"] == json!(id)));

        // The failing record's place is named, and nothing stays of the others.
        for (place, bad, status, code) in [
            (700, json!({ "code": "c5" }), 409, "unique_violation"),
            (0, json!({ "size": -1 }), 400, "CONSTRAINT_VIOLATION"),
            (3, json!({ "colour": 1 }), 400, "unknown_field"),
            (250, json!({ "code": 5 }), 400, "invalid_value"),
        ] {
            let mut records: Vec<Value> = (0..800).map(|number| json!({ "code": format!("new{number}") })).collect();
            records[place] = bad;
            let refused = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await.expect_error(status, code);
            assert!(refused["message"].as_str().unwrap().starts_with(&format!("At index {place}:")), "{refused}");
        }
        let within = json!({ "data": [{ "code": "twin" }, { "code": "twin" }] });
        let refused = admin.post("/api/v1/data/item/bulk", within).await.expect_error(409, "unique_violation");
        assert!(refused["message"].as_str().unwrap().starts_with("At index 1:"), "{refused}");
        assert_eq!(admin.get("/api/v1/data/item").await.json()["pagination"]["totalCount"], 1000);
        assert_eq!(admin.outbox("item").await.len(), 1000);

        let nobody = "01890000-0000-7000-8000-000000000000";
        let gone = admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": [ids[9], nobody, ids[2], ids[9]] })).await;
        assert_eq!((gone.status, gone.json()), (200, json!({ "count": 2, "ids": [ids[9], ids[2]] })));
        let gone = admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": ids })).await.json();
        assert_eq!(gone["count"], 998);
        assert_eq!(admin.get("/api/v1/data/item").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.get("/api/v1/data/item?search=c999").await.json()["pagination"]["totalCount"], 0);
        let deleted = admin.outbox("item").await.iter().filter(|(topic, _)| topic == "data.item.deleted").count();
        assert_eq!(deleted, 1000);
        assert_eq!(admin.post("/api/v1/data/item/bulk", json!({ "data": [] })).await.json(), json!({ "count": 0, "ids": [] }));
        assert_eq!(admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": [] })).await.json(), json!({ "count": 0, "ids": [] }));
    }

    async fn bulk_bodies_are_checked_whole(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let path = "/api/v1/data/task/bulk";
        let many: Vec<Value> = (0..1001).map(|_| json!({ "title": "t" })).collect();
        for body in [json!({}), json!([]), json!({ "data": {} }), json!({ "data": [1] }), json!({ "data": [], "x": 1 }), json!({ "data": many })] {
            admin.post(path, body).await.expect_error(400, "invalid_request");
        }
        for body in [json!({}), json!({ "ids": 1 }), json!({ "ids": [null] }), json!({ "ids": vec!["x"; 1001] })] {
            admin.delete_with(path, body).await.expect_error(400, "invalid_request");
        }
        admin.delete_with(path, json!({ "ids": ["no uuid"] })).await.expect_error(400, "invalid_value");
        admin.get(path).await.expect_error(405, "method_not_allowed");
        admin.post("/api/v1/data/nothing/bulk", json!({ "data": [] })).await.expect_error(404, "not_found");
        server.call("POST", path, Some(json!({ "data": [] }))).await.expect_error(401, "unauthorized");
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_of_a_bulk_call_is_a_setting() {
    let server = ServerBuilder::new(blockbase_tests::Engine::Sqlite).env("SVC_MAX_BULK", "2").start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let titles = |count: usize| json!({ "data": vec![json!({ "title": "t" }); count] });
    assert_eq!(admin.post("/api/v1/data/task/bulk", titles(2)).await.status, 201);
    admin.post("/api/v1/data/task/bulk", titles(3)).await.expect_error(400, "invalid_request");
}
