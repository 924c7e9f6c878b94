//! Conditions of grants that name an option of an enum which is then removed.
//!
//! According to the specification, a change is refused if it drops or retypes a column that a condition uses, and a condition is
//! broken if it no longer compiles. Removing an option does neither: a test with its text stays a valid test, which no row meets.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};

const FIELD: &str = "/api/v1/objects/task/fields/state";

async fn titles(caller: &Admin<'_>) -> Vec<String> {
    let listed = caller.get("/api/v1/data/task?sort=title").await;
    assert_eq!(listed.status, 200, "{}", listed.text);
    let title = |row: &Value| row["title"].as_str().expect("a title").to_owned();
    listed.data().as_array().expect("rows").iter().map(title).collect()
}

fn grants() -> Value {
    json!([
        { "resource": "task", "actions": ["read"], "where": { "state": { "in": ["archived", "open"] } } },
        { "resource": "task", "actions": ["create"], "where": { "state": "archived" } },
        { "resource": "task", "actions": ["update"], "where": { "state": { "neq": "archived" } }, "check": { "state": "open" } },
    ])
}

on_both_engines! {
    async fn a_condition_stays_valid_if_its_option_is_removed(server: Server) {
        let admin = server.admin().await;
        let all = json!(["open", "done", "archived"]);
        let fields = json!([{ "name": "title", "type": "text" }, { "name": "state", "type": "enum", "options": all }]);
        admin.define("task", fields).await;
        role(&admin, "worker", grants()).await;
        let (ann, _) = user(&admin, "ann", Some("worker")).await;
        let open = admin.make("task", json!({ "title": "open", "state": "open" })).await;
        let done = admin.make("task", json!({ "title": "done", "state": "done" })).await;
        let old = admin.make("task", json!({ "title": "old", "state": "archived" })).await;
        assert_eq!(titles(&ann).await, ["old", "open"]);

        // A row has the option, so the change is refused, and the condition keeps its meaning.
        let fewer = json!({ "options": ["open", "done"] });
        let refused = admin.patch(FIELD, fewer.clone()).await.expect_error(400, "invalid_schema_change");
        assert_eq!(refused["field"], "state");
        assert_eq!(titles(&ann).await, ["old", "open"]);

        // No row has it any more.
        assert_eq!(admin.delete(&format!("/api/v1/data/task/{old}")).await.status, 204);
        let removed = admin.patch(FIELD, fewer).await;
        assert_eq!(removed.status, 200, "{}", removed.text);
        let shown = admin.get("/api/v1/roles/worker").await.data();
        let parts = |grant: &Value| ["where", "check", "broken"].map(|name| grant[name].clone());
        let all_parts = |grants: &Value| grants.as_array().expect("grants").iter().map(parts).collect::<Vec<_>>();
        assert_eq!(all_parts(&shown["permissions"]), all_parts(&grants()), "{shown}");
        // The other tests of the conditions still decide, also the complement of the one with the option.
        assert_eq!(titles(&ann).await, ["open"]);
        for (id, status) in [(&open, 200), (&done, 403)] {
            let changed = ann.patch(&format!("/api/v1/data/task/{id}"), json!({ "title": "changed" })).await;
            assert_eq!(changed.status, status, "{}", changed.text);
        }
        // No row can meet the condition of this grant.
        for (state, status, code) in [("open", 403, "forbidden"), ("archived", 400, "CONSTRAINT_VIOLATION")] {
            ann.post("/api/v1/data/task", json!({ "title": "new", "state": state })).await.expect_error(status, code);
        }
        // The shown grants can be sent back.
        let again = admin.patch("/api/v1/roles/worker", json!({ "permissions": shown["permissions"] })).await;
        assert_eq!((again.status, &again.data()["permissions"]), (200, &shown["permissions"]), "{}", again.text);

        // With the option, the same grants mean the same as before.
        let back = admin.patch(FIELD, json!({ "options": all })).await;
        assert_eq!(back.status, 200, "{}", back.text);
        let made = ann.post("/api/v1/data/task", json!({ "title": "new", "state": "archived" })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert_eq!(titles(&ann).await, ["changed", "new"]);
    }
}
