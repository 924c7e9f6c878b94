//! The limits on the sizes of batches and of their results.

use blockbase_tests::{ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::rights::user;
use super::{NOBODY, batch, define, failed, results, total};
use crate::graphql;

const ANSWER_BYTES_MAX: usize = 1_000_000;

on_both_engines! {
    async fn results_that_are_too_large_change_nothing(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", &ANSWER_BYTES_MAX.to_string()).start().await;
        let admin = server.admin().await;
        admin.define("page", json!([{ "name": "text", "type": "text" }, { "name": "reads", "type": "integer" }])).await;
        let create = |bytes: usize| json!({ "op": "create", "object": "page", "values": { "text": "x".repeat(bytes) } });
        let error = failed(&batch(&admin, json!(vec![create(150_000); 7])).await, 6, 400, "answer_too_large");
        assert!(error["message"].as_str().unwrap().contains("SVC_MAX_ANSWER_BYTES"), "{error}");
        assert_eq!(total(&admin, "page").await, 0);
        let done = results(&batch(&admin, json!(vec![create(150_000); 6])).await);
        assert_eq!((done.len(), total(&admin, "page").await), (6, 6));

        // All batches of a GraphQL request share the limit.
        let page = admin.make("page", json!({ "text": "x".repeat(300_000), "reads": 0 })).await;
        let add = json!([{ "op": "update", "object": "page", "id": page, "values": { "reads": { "$inc": 1 } } }]);
        let aliases: Vec<String> = (0..5).map(|number| format!("a{number}: batch(operations: $operations)")).collect();
        let mutation = format!("mutation($operations: [JSON!]!) {{ {} }}", aliases.join(" "));
        let answer = graphql::send(&server, Some(&admin.token), &mutation, json!({ "operations": add })).await;
        assert!(answer.text.len() <= ANSWER_BYTES_MAX + 10_000, "{}", answer.text.len());
        let answer = answer.json();
        let codes: Vec<&Value> = answer["errors"].as_array().unwrap().iter().map(|error| &error["extensions"]["code"]).collect();
        assert_eq!(codes, ["answer_too_large", "answer_too_large"]);
        assert_eq!((&answer["data"]["a2"][0]["data"]["reads"], &answer["data"]["a3"]), (&json!(3), &Value::Null));
        assert_eq!(admin.get(&format!("/api/v1/data/page/{page}")).await.data()["reads"], 3);
    }

    async fn a_record_that_is_read_after_the_batch_is_not_repeated_without_a_bound(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", &ANSWER_BYTES_MAX.to_string()).start().await;
        let admin = server.admin().await;
        admin.define("page", json!([{ "name": "text", "type": "text" }, { "name": "note", "type": "text" }])).await;
        let page = admin.make("page", json!({ "text": "" })).await;
        let limited = user(&admin, "limited", json!([
            { "resource": "page", "actions": ["update"] },
            { "resource": "page", "actions": ["read"], "fields": { "read": ["text"] } },
        ])).await;
        let update = |values: Value| json!({ "op": "update", "object": "page", "id": page, "values": values });
        let mut operations = vec![update(json!({})); 999];
        operations.push(update(json!({ "text": "x".repeat(300_000) })));
        let answer = batch(&limited, json!(operations)).await;
        let done = results(&answer);
        assert!(answer.text.len() <= ANSWER_BYTES_MAX, "{}", answer.text.len());
        assert!(done.iter().all(|result| result["data"]["id"] == page.as_str()));
        // The first results show the record. Those that do not fit show only what the caller sent.
        assert_eq!(done[0]["data"]["text"].as_str().map(str::len), Some(300_000));
        assert_eq!(done[998]["data"], json!({ "id": page }));
        assert_eq!(done[999]["data"]["text"].as_str().map(str::len), Some(300_000));
    }
}

on_both_engines! {
    async fn limits_hold_for_all_operations_together(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let member = admin.make("member", json!({ "name": "Ann" })).await;
        let unlink = json!({ "op": "unlink", "object": "member", "id": member, "relation": "tags", "ids": vec![NOBODY; 1000] });
        // Links that an operation names several times count once.
        results(&batch(&admin, json!(vec![&unlink; 21])).await);
        let ids: Vec<String> = (0..1000).map(|number| format!("20000000-0000-4000-8000-{number:012}")).collect();
        let unlink = json!({ "op": "unlink", "object": "member", "id": member, "relation": "tags", "ids": ids });
        results(&batch(&admin, json!(vec![&unlink; 20])).await);
        failed(&batch(&admin, json!(vec![&unlink; 21])).await, 20, 400, "answer_too_large");
        // Operations that wait for others have a limit of their own.
        let create = json!({ "op": "create", "object": "team", "values": { "name": "red" } });
        let waiting = json!({ "op": "create", "object": "member", "values": { "name": "m", "team_id": { "$ref": "0.id" }, "extra": ["x".repeat(400_000)] } });
        let refused = batch(&admin, json!([create, waiting, waiting, waiting])).await;
        assert!(failed(&refused, 3, 400, "invalid_request")["message"].as_str().unwrap().contains("1 MiB"));
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await), (0, 1));
        results(&batch(&admin, json!([create, waiting, waiting])).await);
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await), (1, 3));
    }
}
