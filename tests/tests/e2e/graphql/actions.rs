//! Actions of blocks as mutations.

use blockbase_tests::{example_block, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, codes, data, send};

on_both_engines! {
    async fn actions_are_mutations_with_the_errors_of_rest(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let tasks = admin.install("", example_block("tasks").await).await;
        assert_eq!(tasks.status, 201, "{}", tasks.text);
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        let fields = data(&admin, "{ __schema { mutationType { fields { name description args { name type { name } } type { name } } } } }", Value::Null).await;
        let fields = fields["__schema"]["mutationType"]["fields"].as_array().unwrap().clone();
        let complete = fields.iter().find(|field| field["name"] == "tasks_complete").unwrap();
        assert_eq!(complete["args"], json!([{ "name": "input", "type": { "name": "JSON" } }]));
        assert_eq!(complete["type"]["name"], "JSON");

        let id = admin.make("task", json!({ "title": "one" })).await;
        let call = "mutation($input: JSON) { tasks_complete(input: $input) }";
        let rest = |input: Value| { let admin = &admin; async move { admin.post("/api/v1/blocks/tasks/actions/complete", input).await } };
        let done = data(&admin, call, json!({ "input": { "id": id } })).await["tasks_complete"].clone();
        admin.patch(&format!("/api/v1/data/task/{id}"), json!({ "done": false })).await.data();
        let again = rest(json!({ "id": id })).await.data();
        assert_eq!((&done["message"], &done["open"], &done["task"]["title"]), (&again["message"], &again["open"], &again["task"]["title"]));
        admin.patch(&format!("/api/v1/data/task/{id}"), json!({ "done": false })).await.data();
        let literal = data(&admin, &format!("mutation {{ a: tasks_complete(input: {{ id: \"{id}\" }}) }}"), Value::Null).await;
        assert_eq!(literal["a"]["task"]["id"], json!(id));
        // Input and result keep their digits.
        let body = r#"{"query":"mutation($i: JSON) { echo_echo(input: $i) }","variables":{"i":{"n":123456789012345678.125}}}"#;
        let answer = server.send(admin.request("POST", PATH).header("content-type", "application/json").body(body)).await;
        let through_rest = server.send(admin.request("POST", "/api/v1/blocks/echo/actions/echo").header("content-type", "application/json").body(r#"{"n":123456789012345678.125}"#)).await;
        assert_eq!(answer.text.replace("{\"data\":{\"echo_echo\":", "").trim_end_matches('}'), through_rest.text.replace("{\"data\":", "").trim_end_matches('}'));

        for input in [json!({}), json!({ "id": 7 }), json!({ "id": "none" }), json!({ "id": id, "more": 1 })] {
            let rest = rest(input.clone()).await.json();
            let answer = send(&server, Some(&admin.token), call, json!({ "input": input })).await.json();
            assert_eq!(answer["data"], json!({ "tasks_complete": null }));
            let extensions = &answer["errors"][0]["extensions"];
            assert_eq!((&extensions["code"], &extensions["issues"], &answer["errors"][0]["message"]), (&rest["error"], &rest["issues"], &rest["message"]));
        }
        assert_eq!(codes(&server, Some(&admin.token), "mutation { echo_panic }", Value::Null).await, ["action_failed"]);
        assert_eq!(codes(&server, Some(&admin.token), "mutation { echo_spin }", Value::Null).await, ["action_timeout"]);
        assert_eq!(codes(&server, Some(&admin.token), "mutation { echo_nothing }", Value::Null).await, ["not_found"]);

        // A caller who may not call an action does not see it.
        let role = admin.post("/api/v1/roles", json!({ "name": "callers", "permissions": [{ "resource": "data", "actions": ["read"] }, { "resource": "echo:calls", "actions": ["read"] }] })).await.data();
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": role["id"] })).await.json()["key"].as_str().unwrap().to_owned();
        let own = server.with_token(key.clone());
        assert_eq!(data(&own, "mutation { echo_echo(input: {a: 1}) }", Value::Null).await, json!({ "echo_echo": { "a": 1 } }));
        let seen = data(&own, "{ __schema { mutationType { fields { name } } } }", Value::Null).await;
        assert_eq!(seen["__schema"]["mutationType"]["fields"], json!([{ "name": "echo_echo" }]));
        assert_eq!(codes(&server, Some(&key), "mutation { tasks_complete }", Value::Null).await, ["forbidden"]);

        // A disabled or uninstalled block has no mutation. When the block is enabled again, the mutation is back.
        admin.patch("/api/v1/blocks/echo", json!({ "enabled": false })).await.data();
        assert_eq!(codes(&server, Some(&admin.token), "mutation { echo_echo }", Value::Null).await, ["not_found"]);
        admin.patch("/api/v1/blocks/echo", json!({ "enabled": true })).await.data();
        data(&admin, "mutation { echo_echo(input: {}) }", Value::Null).await;
        assert_eq!(admin.delete("/api/v1/blocks/echo").await.status, 204);
        assert_eq!(codes(&server, Some(&admin.token), "mutation { echo_echo }", Value::Null).await, ["not_found"]);
    }
}
