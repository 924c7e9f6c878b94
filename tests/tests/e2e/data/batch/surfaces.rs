//! Batches over GraphQL and MCP, and in blocks.

use blockbase_tests::{Admin, on_both_engines, test_block};
use serde_json::{Value, json};

use super::{NOBODY, batch, define, events, failed, results, total};
use crate::{graphql, mcp};

const MUTATION: &str = "mutation($operations: [JSON!]!) { batch(operations: $operations) }";

fn operations() -> Value {
    json!([
        { "op": "create", "object": "team", "values": { "name": "red" } },
        { "op": "create", "object": "member", "values": { "name": "Ann", "team_id": { "$ref": "0.id" }, "extra": { "n": 1 } } },
        { "op": "upsert", "object": "tag", "values": { "code": "a" }, "onConflict": ["code"] },
        { "op": "link", "object": "member", "id": { "$ref": "1.id" }, "relation": "tags", "ids": [{ "$ref": "2.id" }] },
        { "op": "unlink", "object": "member", "id": { "$ref": "1.id" }, "relation": "tags", "ids": [{ "$ref": "2.id" }] },
        { "op": "update", "object": "member", "id": { "$ref": "1.id" }, "values": { "points": 3 }, "ifVersion": "*" },
        { "op": "delete", "object": "tag", "id": { "$ref": "2.id" } },
    ])
}

/// The results without ids and times.
fn masked(results: &Value) -> Value {
    let mut results = results.clone();
    for result in results.as_array_mut().unwrap() {
        let Some(data) = result.get_mut("data").and_then(Value::as_object_mut) else { continue };
        for (name, value) in data {
            if name.ends_with("id") || name.ends_with("_at") {
                *value = Value::Null;
            }
        }
    }
    results
}

async fn over_graphql(admin: &Admin<'_>, operations: &Value) -> Value {
    graphql::data(admin, MUTATION, json!({ "operations": operations })).await["batch"].clone()
}

on_both_engines! {
    async fn every_surface_gives_the_same_results_and_errors(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let client = mcp::Client::of(&admin);
        let rest = results(&batch(&admin, operations()).await);
        let made = events(&admin).await;
        let of_graphql = over_graphql(&admin, &operations()).await;
        let of_mcp = client.call("batch_records", json!({ "operations": operations() })).await;
        assert!(!of_mcp.is_error, "{}", of_mcp.text);
        let of_mcp: Value = serde_json::from_str(&of_mcp.text).unwrap();
        assert_eq!(masked(&of_graphql), masked(&json!(rest)));
        assert_eq!(masked(&of_mcp["data"]), masked(&json!(rest)));
        assert_eq!((of_mcp.as_object().unwrap().len(), events(&admin).await), (1, 3 * made));
        // A literal in the document.
        let literal = "mutation { batch(operations: [{ op: \"create\", object: \"team\", values: { name: \"b\" } }, { op: \"delete\", object: \"team\", id: \"x\" }]) }";
        let answer = graphql::send(&server, Some(&admin.token), literal, Value::Null).await.json();
        let error = &answer["errors"][0];
        assert_eq!((&answer["data"]["batch"], &error["extensions"]), (&Value::Null, &json!({ "code": "not_found", "index": 1 })));
        assert_eq!(error["message"], "At index 1: No such record.");

        let before = (total(&admin, "team").await, events(&admin).await);
        let create = json!({ "op": "create", "object": "team", "values": { "name": "c" } });
        for bad in [
            json!({ "op": "update", "object": "team", "id": NOBODY, "values": {} }),
            json!({ "op": "create", "object": "team", "values": { "size": -1 } }),
            json!({ "op": "create", "object": "team", "values": { "size": { "$ref": "0.name" } } }),
            json!({ "op": "create", "object": "team" }),
        ] {
            let operations = json!([create, bad]);
            let rest = batch(&admin, operations.clone()).await;
            let rest = failed(&rest, 1, rest.status, rest.json()["error"].as_str().unwrap());
            let answer = graphql::send(&server, Some(&admin.token), MUTATION, json!({ "operations": operations })).await.json();
            let error = &answer["errors"][0];
            assert_eq!((&error["message"], &error["extensions"]["code"]), (&rest["message"], &rest["error"]));
            assert_eq!((&error["extensions"]["index"], &error["extensions"]["field"]), (&rest["index"], &rest["field"]));
            let of_mcp = client.call("batch_records", json!({ "operations": operations })).await;
            assert!(of_mcp.is_error);
            assert_eq!(serde_json::from_str::<Value>(&of_mcp.text).unwrap(), rest);
        }
        for arguments in [json!({}), json!({ "operations": {} }), json!({ "operations": [], "object_name": "team" }), json!({ "operations": vec![create; 1001] })] {
            let refused: Value = serde_json::from_str(&client.call("batch_records", arguments).await.text).unwrap();
            assert_eq!(refused["error"], "invalid_request", "{refused}");
        }
        assert_eq!((total(&admin, "team").await, events(&admin).await), before);
        assert_eq!(graphql::codes(&server, None, MUTATION, json!({ "operations": [] })).await, ["unauthorized"]);
        let who = server.with_token(server.sign_up("eve").await);
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": [{ "resource": "data", "actions": ["read"] }, { "resource": "team", "actions": ["read"] }] })).await.status, 200);
        assert_eq!(graphql::codes(&server, Some(&who.token), MUTATION, json!({ "operations": [] })).await, ["forbidden"]);
        let refused: Value = serde_json::from_str(&mcp::Client::of(&who).call("batch_records", json!({ "operations": [] })).await.text).unwrap();
        assert_eq!(refused["error"], "forbidden");
    }

    async fn a_block_gets_null_for_a_missing_record(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let run = async |operations: Value| {
            let input = json!({ "op": "batch", "object": "", "json": operations.to_string() });
            let answer = admin.post("/api/v1/blocks/parity/actions/run", input).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.data()
        };
        let done = run(operations()).await["done"].clone();
        let rest = results(&batch(&admin, operations()).await);
        assert_eq!((&done[0]["name"], &done[1]["team_id"]), (&rest[0]["data"]["name"], &done[0]["id"]));
        assert_eq!((&done[2]["created"], &done[2]["data"]["code"]), (&json!(true), &json!("a")));
        assert_eq!((&done[3], &done[4], &done[5]["points"], &done[6]), (&json!(1), &json!(1), &json!(3), &json!(true)));
        // Members that an operation does not use were always ignored here.
        let (teams, before) = (total(&admin, "team").await, events(&admin).await);
        let some = json!([
            { "op": "create", "object": "team", "values": { "name": "x" }, "id": "unused" },
            { "op": "update", "object": "team", "id": NOBODY, "values": { "name": "y" } },
            { "op": "delete", "object": "team", "id": "no id", "values": {} },
            { "op": "link", "object": "member", "id": NOBODY, "relation": "tags", "ids": [] },
        ]);
        let done = run(some).await["done"].clone();
        assert_eq!((&done[0]["name"], &done[1], &done[2], &done[3]), (&json!("x"), &Value::Null, &Value::Null, &Value::Null));
        assert_eq!((total(&admin, "team").await, events(&admin).await), (teams + 1, before + 1));
        // Any other error undoes all of them. The error of the only operation names no index.
        let create = json!({ "op": "create", "object": "team", "values": { "size": 1 } });
        let bad = json!({ "op": "create", "object": "team", "values": { "size": -1 } });
        let refused = run(json!([create, bad])).await["refused"].clone();
        assert_eq!(refused["code"], "CONSTRAINT_VIOLATION");
        assert!(refused["message"].as_str().unwrap().starts_with("At index 1: "), "{refused}");
        let malformed = json!({ "op": "create", "object": "team" });
        for alone in [&bad, &malformed] {
            assert!(!run(json!([alone])).await["refused"]["message"].as_str().unwrap().contains("index"));
        }
        let refused = run(json!([create, malformed])).await["refused"].clone();
        assert!(refused["message"].as_str().unwrap().starts_with("At index 1: "), "{refused}");
        // A reference to a result that is null fails the batch.
        let missing = json!({ "op": "update", "object": "team", "id": NOBODY, "values": {} });
        let refers = json!({ "op": "create", "object": "member", "values": { "name": "m", "team_id": { "$ref": "0.id" } } });
        assert_eq!(run(json!([missing, refers])).await["refused"]["code"], "not_found");
        let lost = run(json!([{ "op": "delete", "object": "team", "id": NOBODY }, create])).await["done"].clone();
        assert_eq!((&lost[0], &lost[1]["size"]), (&Value::Null, &json!(1)));
        assert_eq!((total(&admin, "team").await, events(&admin).await), (teams + 2, before + 2));
    }
}
