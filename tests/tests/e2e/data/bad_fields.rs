//! Records with several invalid fields: every surface that writes reports all of them, and writes nothing.

use blockbase_tests::{Admin, Server, on_both_engines, test_block};
use serde_json::{Value, json};

use crate::mcp::{Client, call, read_result};

/// The field and the code of each issue, in order.
#[track_caller]
fn listed(error: &Value) -> Vec<(&str, &str)> {
    let issues = error["issues"].as_array().unwrap_or_else(|| panic!("no issues: {error}"));
    assert!(issues.iter().all(|issue| issue.as_object().unwrap().len() == 3 && issue["message"].is_string()), "{error}");
    issues.iter().map(|issue| (issue["field"].as_str().unwrap(), issue["error"].as_str().unwrap())).collect()
}

/// A record with a fault of every kind. `title` is missing.
fn bad() -> Value {
    json!({ "priority": "much", "colour": 1, "done": "maybe", "size": 2, "updated_at": "ignored" })
}

const OF_BAD: [(&str, &str); 5] = [
    ("colour", "unknown_field"),
    ("size", "unknown_field"),
    ("priority", "invalid_value"),
    ("done", "invalid_value"),
    ("title", "not_null_violation"),
];

async fn written(admin: &Admin<'_>) -> (Value, usize) {
    (admin.get("/api/v1/data/task").await.json(), admin.outbox("task").await.len())
}

/// The error of a tool that fails.
async fn refused_tool(server: &Server, admin: &Admin<'_>, tool: &str, arguments: Value) -> Value {
    let client = Client { server, credential: Some(admin.token.clone()), session: None };
    let called = read_result(&client.send(call(tool, &arguments.to_string())).await.text);
    assert!(called.is_error, "{}", called.text);
    serde_json::from_str(&called.text).unwrap()
}

on_both_engines! {
    async fn rest_lists_every_field_at_fault(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let id = admin.make("task", json!({ "title": "there" })).await;
        let before = written(&admin).await;
        let (all, many) = ("/api/v1/data/task", "/api/v1/data/task/bulk");

        let created = admin.post(all, bad()).await.expect_error(400, "unknown_field");
        assert_eq!(listed(&created), OF_BAD);
        // The error itself is the first issue, the same as if it were the only one.
        assert_eq!((&created["field"], &created["message"]), (&json!("colour"), &created["issues"][0]["message"]));
        let alone = admin.post(all, json!({ "title": "t", "colour": 1 })).await.expect_error(400, "unknown_field");
        assert_eq!((&alone["field"], &alone["message"], alone.get("issues")), (&created["field"], &created["message"], None));

        let mut upsert = bad();
        upsert["id"] = json!("no uuid");
        let upserted = admin.post(&format!("{all}?on_conflict=id"), upsert).await.expect_error(400, "invalid_value");
        assert_eq!((listed(&upserted)[0], &listed(&upserted)[1..]), (("id", "invalid_value"), &OF_BAD[..]));

        let changes = json!({ "title": null, "done": { "$inc": 1 }, "priority": 99, "colour": 1 });
        let of_changes = [
            ("colour", "unknown_field"),
            ("title", "not_null_violation"),
            ("done", "INVALID_ATOMIC_OP"),
            ("priority", "CONSTRAINT_VIOLATION"),
        ];
        let changed = admin.patch(&format!("{all}/{id}"), changes.clone()).await.expect_error(400, "unknown_field");
        assert_eq!(listed(&changed), of_changes);
        for dry_run in ["", "?dryRun=true"] {
            let body = json!({ "ids": [id], "values": changes });
            let changed = admin.patch(&format!("{many}{dry_run}"), body).await.expect_error(400, "unknown_field");
            assert_eq!(listed(&changed), of_changes, "{dry_run}");
        }

        // If there are several records, the issues are those of the first invalid record. The message names its index.
        let bulk = json!({ "data": [{ "title": "good" }, bad(), { "nothing": 1, "more": 2 }] });
        let refused = admin.post(many, bulk).await.expect_error(400, "unknown_field");
        assert_eq!((listed(&refused), &refused["issues"]), (OF_BAD.to_vec(), &created["issues"]));
        assert_eq!(refused["message"], format!("At index 1: {}", created["message"].as_str().unwrap()));

        // One issue is a text that is too long. Its field is listed once.
        let long = json!({ "title": "x".repeat(201), "priority": -1, "done": null });
        let refused = admin.post(all, long).await.expect_error(400, "CONSTRAINT_VIOLATION");
        assert_eq!(listed(&refused), [("title", "CONSTRAINT_VIOLATION"), ("priority", "CONSTRAINT_VIOLATION")]);
        // There is an issue for each key of the body. Each key is shortened to an excerpt.
        let keys: serde_json::Map<String, Value> = (0..900).map(|number| (format!("{number}{}", "k".repeat(1000)), json!(1))).collect();
        let refused = admin.post(all, Value::Object(keys)).await;
        assert_eq!(listed(&refused.expect_error(400, "unknown_field")).len(), 901);
        assert!(refused.text.len() < 901 * 400, "{} bytes", refused.text.len());
        assert_eq!(written(&admin).await, before);
    }

    async fn what_only_the_database_finds_comes_after_what_is_wrong(server: Server) {
        let admin = server.admin().await;
        admin.define("item", json!([
            { "name": "code", "type": "text", "isUnique": true },
            { "name": "size", "type": "integer" },
        ])).await;
        admin.make("item", json!({ "code": "a" })).await;
        let both = json!({ "code": "a", "size": "large" });
        let refused = admin.post("/api/v1/data/item", both).await.expect_error(400, "invalid_value");
        assert_eq!((&refused["field"], refused.get("issues")), (&json!("size"), None));
        let taken = admin.post("/api/v1/data/item", json!({ "code": "a" })).await.expect_error(409, "unique_violation");
        assert_eq!(taken.get("issues"), None);
    }

    async fn tools_and_blocks_list_what_rest_lists(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let id = admin.make("task", json!({ "title": "there" })).await;
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let before = written(&admin).await;
        let created = admin.post("/api/v1/data/task", bad()).await.json();
        let changes = json!({ "title": null, "priority": 99 });
        let changed = admin.patch(&format!("/api/v1/data/task/{id}"), changes.clone()).await.json();
        assert_eq!(listed(&changed), [("title", "not_null_violation"), ("priority", "CONSTRAINT_VIOLATION")]);

        let of_task = |more: Value| {
            let mut arguments = json!({ "object_name": "task" });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        assert_eq!(refused_tool(&server, &admin, "create_record", of_task(json!({ "data": bad() }))).await, created);
        assert_eq!(refused_tool(&server, &admin, "update_record", of_task(json!({ "id": id, "data": changes }))).await, changed);
        let bulk = refused_tool(&server, &admin, "bulk_create_records", of_task(json!({ "data": [bad()] }))).await;
        assert_eq!(bulk["issues"], created["issues"]);

        for (input, rest) in [
            (json!({ "op": "create", "object": "task", "json": bad().to_string() }), &created),
            (json!({ "op": "update", "object": "task", "id": id, "json": changes.to_string() }), &changed),
        ] {
            let refused = admin.post("/api/v1/blocks/parity/actions/run", input).await.data()["refused"].clone();
            assert_eq!((&refused["code"], &refused["message"]), (&rest["error"], &rest["message"]));
            assert_eq!(refused["details"], json!({ "field": rest["field"], "issues": rest["issues"] }));
        }
        assert_eq!(written(&admin).await, before);
    }

    async fn graphql_lists_what_does_not_fit_then_what_breaks_a_rule(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let id = admin.make("task", json!({ "title": "there" })).await;
        let before = written(&admin).await;
        let refused = async |query: &str, variables: Value| -> Value {
            let answer = crate::graphql::send(&server, Some(&admin.token), query, variables).await.json();
            assert_eq!(answer["errors"].as_array().map(Vec::len), Some(1), "{answer}");
            let mut error = answer["errors"][0]["extensions"].clone();
            error["error"] = error["code"].clone();
            error
        };
        let create = "mutation($input: TaskCreateInput!) { create_task(input: $input) { id } }";
        let update = "mutation($id: ID!, $input: TaskUpdateInput) { update_task(id: $id, input: $input) { id } }";
        // The values are sent as a variable and as a literal. GraphQL checks the types of the schema first.
        let misfits = json!({ "priority": "much", "colour": 1, "done": "maybe" });
        let literal = "mutation { create_task(input: { priority: \"much\", colour: 1, done: \"maybe\" }) { id } }";
        for error in [refused(create, json!({ "input": misfits })).await, refused(literal, Value::Null).await] {
            assert_eq!((&error["code"], &error["field"]), (&json!("unknown_field"), &json!("colour")));
            // A missing value is not a mismatch of types, so the operation reports it.
            assert_eq!(listed(&error), [("colour", "unknown_field"), ("done", "invalid_value"), ("priority", "invalid_value")]);
        }
        // Values of the right type are then checked against the rules of their fields, as on every surface.
        let broken = json!({ "title": "x".repeat(201), "priority": 99 });
        let of_broken = [("title", "CONSTRAINT_VIOLATION"), ("priority", "CONSTRAINT_VIOLATION")];
        let rest = admin.post("/api/v1/data/task", broken.clone()).await.json();
        for error in [refused(create, json!({ "input": broken })).await, refused(update, json!({ "id": id, "input": broken })).await] {
            assert_eq!((listed(&error), &error["issues"]), (of_broken.to_vec(), &rest["issues"]));
        }
        let one = refused(create, json!({ "input": { "title": "t", "priority": 99 } })).await;
        assert_eq!((&one["field"], one.get("issues")), (&json!("priority"), None));
        assert_eq!(written(&admin).await, before);
    }
}
