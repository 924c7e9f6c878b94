//! `POST /api/v1/roles/:id/explain`: why a user may use a record or not.

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

use super::{World, of_my_teams, world};
use crate::accounts::roles::{role, user};

const EXPLAIN: &str = "/api/v1/roles/worker/explain";

on_both_engines! {
    async fn a_role_is_explained_for_a_user_and_a_record(server: Server) {
        let World { admin, ann_id, tasks: [a, b, c], .. } = world(&server).await;
        let explain = async |body: Value| admin.post(EXPLAIN, body).await;
        let of = |action: &str, id: &str| json!({ "userId": ann_id, "object": "task", "action": action, "id": id });
        let shown = explain(of("read", &a)).await.data();
        assert_eq!(shown["grants"].as_array().unwrap().len(), 1, "{shown}");
        assert_eq!((&shown["grants"][0]["where"], &shown["passes"]), (&of_my_teams(), &json!(true)), "{shown}");
        assert!(shown["condition"].to_string().contains(&ann_id), "{shown}");
        for (action, id, passes) in [("read", &b, true), ("read", &c, false), ("update", &a, true), ("update", &b, false), ("update", &c, true)] {
            assert_eq!(explain(of(action, id)).await.data()["passes"], passes, "{action} {id}");
        }
        // The shown condition works unchanged in a query.
        let condition = json!({ "where": shown["condition"] });
        assert_eq!(admin.post("/api/v1/data/task/query", condition).await.data().as_array().unwrap().len(), 2);
        // A new record has to belong to one of her teams, like `a` and `b`. No grant allows `manage`.
        assert_eq!(explain(of("create", &a)).await.data()["passes"], true);
        assert_eq!(explain(of("create", &c)).await.data()["passes"], false);
        let none = explain(of("manage", &a)).await.data();
        assert_eq!(none, json!({ "grants": [], "condition": { "_or": [] }, "passes": false }));
        // Without a user, the variables have no values, so the grant includes no row.
        let nobody = explain(json!({ "object": "task", "action": "read" })).await.data();
        assert_eq!((&nobody["condition"], &nobody["passes"]), (&json!({ "_or": [] }), &Value::Null), "{nobody}");
        let all = admin.post("/api/v1/roles/admin/explain", of("read", &c)).await.data();
        assert_eq!((&all["condition"], &all["passes"]), (&json!({}), &json!(true)), "{all}");

        // Users are explained like the records of any object.
        role(&admin, "self", json!([{ "resource": "users", "actions": ["read"], "rowPolicy": "own" }])).await;
        let admin_id = admin.get("/api/v1/me").await.json()["userId"].clone();
        for (id, passes) in [(json!(ann_id), true), (admin_id, false)] {
            let of_users = json!({ "userId": ann_id, "object": "users", "action": "read", "id": id });
            let shown = admin.post("/api/v1/roles/self/explain", of_users).await.data();
            assert_eq!((&shown["grants"][0]["rowPolicy"], &shown["passes"]), (&json!("own"), &json!(passes)), "{shown}");
        }

        let missing = "20000000-0000-4000-8000-000000000000";
        explain(of("read", missing)).await.expect_error(404, "not_found");
        explain(of("read", "x")).await.expect_error(404, "not_found");
        explain(json!({ "userId": missing, "object": "task", "action": "read" })).await.expect_error(404, "not_found");
        explain(json!({ "object": "nothing", "action": "read" })).await.expect_error(404, "not_found");
        explain(json!({ "object": "task", "action": "look" })).await.expect_error(400, "invalid_request");
        admin.post("/api/v1/roles/nothing/explain", of("read", &a)).await.expect_error(404, "not_found");
    }

    async fn an_explanation_needs_the_rights_to_all_that_it_shows(server: Server) {
        let World { admin, ann_id, .. } = world(&server).await;
        let read = |resource: &str| json!({ "resource": resource, "actions": ["read"] });
        let own = json!({ "resource": "task", "actions": ["read"], "rowPolicy": "own" });
        let some = json!({ "resource": "task", "actions": ["read"], "where": { "state": "open" } });
        for (number, (grants, status)) in [
            (json!([read("roles"), read("users"), read("task")]), 200),
            (json!([read("users"), read("task")]), 403),
            (json!([read("roles"), read("task")]), 403),
            (json!([read("roles"), read("users")]), 403),
            (json!([read("roles"), read("users"), own]), 403),
            (json!([read("roles"), read("users"), some]), 403),
            // The condition has the address of the user, so the caller has to read all of every user.
            (json!([read("roles"), { "resource": "users", "actions": ["read"], "rowPolicy": "own" }, read("task")]), 403),
            (json!([read("roles"), { "resource": "users", "actions": ["read"], "fields": { "read": ["name"] } }, read("task")]), 403),
            (json!([read("roles"), read("users"), { "resource": "task", "actions": ["read"], "fields": { "read": ["title"] } }]), 403),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("reader{number}");
            role(&admin, &name, grants.clone()).await;
            let (reader, _) = user(&admin, &name, Some(&name)).await;
            let answer = reader.post(EXPLAIN, json!({ "userId": ann_id, "object": "task", "action": "read" })).await;
            assert_eq!(answer.status, status, "{grants}: {}", answer.text);
        }
    }
}
