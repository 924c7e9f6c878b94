//! The parts of the schema that callers see, and the operations that they may run.

use blockbase_tests::{Admin, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, codes, data, define, send};

/// A user with a role that has these grants.
async fn somebody<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    let role = admin.post("/api/v1/roles", json!({ "name": format!("{name}s"), "permissions": permissions })).await.data();
    let client = admin.server.with_token(admin.server.sign_up(name).await);
    let id = client.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let answer = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role["id"] })).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    client
}

async fn grant_to_public(admin: &Admin<'_>, permissions: Value) {
    let answer = admin.patch("/api/v1/roles/public", json!({ "permissions": permissions })).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

const TYPES: &str = "{ __schema { types { name } queryType { fields { name } } mutationType { fields { name } } } }";

fn names(of: &Value) -> Vec<String> {
    let names = of.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    names.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    async fn strangers_read_what_is_public_and_nothing_else(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        admin.make("task", json!({ "title": "one", "project_id": project })).await;
        for query in ["{ project { data { name } } }", "{ nothing { data { name } } }", "{ project_by_id(id: \"1\") { id } }", "{ project_aggregate(fn: count) { value } }"] {
            assert_eq!(codes(&server, None, query, Value::Null).await, ["unauthorized"], "{query}");
        }
        grant_to_public(&admin, json!([{ "resource": "project", "actions": ["read"] }])).await;
        let anonymous = |query: &'static str| { let server = &server; async move { send(server, None, query, Value::Null).await.json() } };
        assert_eq!(anonymous("{ project { data { name } pagination { totalCount } } svc_objects svc_schema_version: __typename }").await,
            json!({ "data": { "project": { "data": [{ "name": "bakery" }], "pagination": { "totalCount": 1 } }, "svc_objects": ["project"], "svc_schema_version": "Query" } }));
        assert_eq!(anonymous("{ project_aggregate(fn: count) { value } }").await["data"]["project_aggregate"]["value"], 1);
        let found = send(&server, None, "query($id: ID!) { project_by_id(id: $id) { name } }", json!({ "id": project })).await.json();
        assert_eq!(found["data"]["project_by_id"]["name"], "bakery");

        // An object without a grant gets the same answer as an object that does not exist.
        assert_eq!(codes(&server, None, "{ task { data { id } } }", Value::Null).await, codes(&server, None, "{ none { data { id } } }", Value::Null).await);
        for key in ["task_by_project", "none_by_project"] {
            let query = format!("{{ project {{ data {{ {key} {{ title }} }} }} }}");
            assert_eq!(codes(&server, None, &query, Value::Null).await, ["unauthorized"]);
        }
        // The refusal names the right that the caller lacks, in the same words as every other refusal.
        let answer = anonymous("{ task { data { title } } }").await;
        let message = "Authentication required. Send a session token or an API key as `Authorization: Bearer …`.";
        assert_eq!((&answer["errors"][0]["message"], &answer["errors"][0]["extensions"]["code"]), (&json!(message), &json!("unauthorized")));
        let seen = anonymous(TYPES).await;
        let types = names(&seen["data"]["__schema"]["types"]);
        let mut mutations = names(&seen["data"]["__schema"]["mutationType"]["fields"]);
        mutations.sort_unstable();
        let all = ["batch", "create_project", "delete_project", "delete_project_many", "update_project", "update_project_many", "upsert_project"];
        assert_eq!(mutations, all);
        assert!(types.contains(&"Project".to_owned()) && !types.iter().any(|name| name.starts_with("Task")), "{types:?}");
        assert_eq!(anonymous("{ __type(name: \"Task\") { name } }").await, json!({ "data": { "__type": null } }));

        // Every mutation and every subscription needs a credential.
        for query in [
            "mutation { create_project(input: { name: \"x\" }) { id } }",
            "mutation { delete_task(id: \"1\") }",
            "mutation { what_is_this }",
            "mutation { __typename }",
            "subscription { events { id } }",
        ] {
            let answer = send(&server, None, query, Value::Null).await.json();
            assert_eq!(answer["errors"][0]["message"], "Authentication required", "{query}: {answer}");
            assert_eq!(answer["errors"][0]["extensions"]["code"], "unauthorized");
        }
        grant_to_public(&admin, json!([{ "resource": "project", "actions": ["read", "create", "manage"] }])).await;
        assert_eq!(codes(&server, None, "mutation { create_project(input: { name: \"x\" }) { id } }", Value::Null).await, ["unauthorized"]);
        assert_eq!(admin.get("/api/v1/data/project").await.json()["pagination"]["totalCount"], 1);

        // An invalid credential is refused before anything else.
        for credential in ["nonsense", "svc_nonsense"] {
            let answer = send(&server, Some(credential), "{ svc_objects }", Value::Null).await;
            assert_eq!((answer.status, answer.json()["errors"][0]["extensions"]["code"].as_str()), (401, Some("unauthorized")));
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }

    async fn whoever_is_signed_in_needs_the_platform(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("task", json!({ "title": "one" })).await;
        let read = json!([{ "resource": "task", "actions": ["read"] }]);
        let outside = somebody(&admin, "outside", read.clone()).await;
        assert_eq!(outside.get("/api/v1/data/task").await.status, 200);
        for query in ["{ task { data { id } } }", "{ svc_schema_version }", TYPES, "mutation { delete_task(id: \"1\") }"] {
            assert_eq!(codes(&server, Some(&outside.token), query, Value::Null).await, ["forbidden"], "{query}");
        }
        let inside = somebody(&admin, "inside", json!([{ "resource": "task", "actions": ["read"] }, { "resource": "data", "actions": ["read"] }])).await;
        assert_eq!(data(&inside, "{ task { data { title } } svc_objects }", Value::Null).await, json!({ "task": { "data": [{ "title": "one" }] }, "svc_objects": ["task"] }));
        // The right to use the platform does not include any object.
        let only = somebody(&admin, "only", json!([{ "resource": "data", "actions": ["read"] }])).await;
        assert_eq!(data(&only, "{ svc_objects }", Value::Null).await, json!({ "svc_objects": [] }));
        assert_eq!(codes(&server, Some(&only.token), "{ task { data { title } } }", Value::Null).await, ["forbidden"]);
        assert_eq!(codes(&server, Some(&only.token), "{ none { data { title } } }", Value::Null).await, ["forbidden"]);
        // A key has only the rights of its role.
        let role = admin.get("/api/v1/roles/insides").await.data()["id"].clone();
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": role })).await.json()["key"].as_str().unwrap().to_owned();
        let header = server.request("POST", PATH).header("x-api-key", &key).json(&json!({ "query": "{ task { data { title } } }" }));
        assert_eq!(server.send(header).await.json()["data"]["task"]["data"][0]["title"], "one");
        assert_eq!(codes(&server, Some(&key), "mutation { create_task(input: { title: \"x\" }) { id } }", Value::Null).await, ["forbidden"]);
    }

    async fn rows_of_others_stay_theirs(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let own = |actions: &[&str]| json!({ "resource": "task", "actions": actions, "rowPolicy": "own" });
        let grants = json!([own(&["read", "create", "update", "delete"]), { "resource": "project", "actions": ["read"] }, { "resource": "tag", "actions": ["read"] }, { "resource": "data", "actions": ["read"] }]);
        let (ann, ben) = (somebody(&admin, "ann", grants.clone()).await, somebody(&admin, "ben", grants).await);
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        let tag = admin.make("tag", json!({ "label": "sweet" })).await;
        let create = "mutation($p: ID, $t: String) { create_task(input: { title: $t, project_id: $p }) { id } }";
        let mut ids = Vec::new();
        for (who, title) in [(&ann, "hers"), (&ben, "his")] {
            let made = data(who, create, json!({ "p": project, "t": title })).await;
            ids.push(made["create_task"]["id"].as_str().unwrap().to_owned());
        }
        let query = "{ task { data { title } pagination { totalCount } } task_aggregate(fn: count) { value filteredCount } project { data { task_by_project { title } } } }";
        assert_eq!(data(&ann, query, Value::Null).await, json!({
            "task": { "data": [{ "title": "hers" }], "pagination": { "totalCount": 1 } },
            "task_aggregate": { "value": 1, "filteredCount": 1 },
            "project": { "data": [{ "task_by_project": [{ "title": "hers" }] }] },
        }));
        assert_eq!(data(&ann, "query($id: ID!) { task_by_id(id: $id) { id } }", json!({ "id": ids[1] })).await, json!({ "task_by_id": null }));
        let update = "mutation($id: ID!) { update_task(id: $id, input: { title: \"mine\" }) { id } }";
        assert_eq!(codes(&server, Some(&ann.token), update, json!({ "id": ids[1] })).await, ["not_found"]);
        assert_eq!(data(&ann, "mutation($id: ID!) { delete_task(id: $id) }", json!({ "id": ids[1] })).await, json!({ "delete_task": false }));
        let link = "mutation($id: ID!, $ids: [ID!]!) { link_task_tags(id: $id, ids: $ids) }";
        assert_eq!(codes(&server, Some(&ann.token), link, json!({ "id": ids[1], "ids": [tag] })).await, ["not_found"]);
        let upsert = "mutation($input: TaskCreateInput!) { upsert_task(input: $input, onConflict: [\"id\"]) { created } }";
        assert!(!codes(&server, Some(&ann.token), upsert, json!({ "input": { "title": "x" } })).await.is_empty());
        assert_eq!(ben.get("/api/v1/data/task").await.json()["data"][0]["title"], "his");
    }

    async fn each_sees_a_schema_of_their_own(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let writer = somebody(&admin, "writer", json!([{ "resource": "task", "actions": ["create", "update"] }, { "resource": "data", "actions": ["read"] }])).await;
        let whole = data(&admin, TYPES, Value::Null).await;
        let part = data(&writer, TYPES, Value::Null).await;
        let queries = |schema: &Value| names(&schema["__schema"]["queryType"]["fields"]);
        assert!(queries(&whole).contains(&"passport_by_id".to_owned()));
        assert_eq!(queries(&part), ["svc_schema_version", "svc_objects", "task", "task_by_id", "task_aggregate", "task_groups", "task_connection"]);
        assert_eq!(names(&part["__schema"]["mutationType"]["fields"]), ["create_task", "update_task", "upsert_task", "delete_task", "update_task_many", "delete_task_many", "batch"], "links to what is not shown are not shown");

        // A caller who may not read a record sees only the values that they wrote.
        let made = data(&writer, "mutation { create_task(input: { title: \"x\" }) { id title } }", Value::Null).await;
        let id = made["create_task"]["id"].as_str().unwrap().to_owned();
        let update = "mutation($id: ID!) { update_task(id: $id, input: { title: \"y\" }) { id title priority } }";
        let answer = send(&server, Some(&writer.token), update, json!({ "id": id })).await.json();
        assert_eq!(answer["data"]["update_task"], json!({ "id": id, "title": "y", "priority": null }));
        assert_eq!((&answer["errors"][0]["path"], &answer["errors"][0]["extensions"]["code"]), (&json!(["update_task", "priority"]), &json!("forbidden")));
        assert_eq!(codes(&server, Some(&writer.token), "{ task { data { id } } }", Value::Null).await, ["forbidden"]);
        // If a right is removed, the schema loses it too.
        admin.patch("/api/v1/roles/writers", json!({ "permissions": [{ "resource": "data", "actions": ["read"] }] })).await.data();
        assert_eq!(queries(&data(&writer, TYPES, Value::Null).await), ["svc_schema_version", "svc_objects"]);
    }
}

on_both_engines! {
    async fn without_enforcement_everybody_may_everything(engine: Engine) {
        let server: Server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", "false").start().await;
        let define = json!({ "name": "note", "fields": [{ "name": "text", "type": "text" }] });
        assert_eq!(server.call("POST", "/api/v1/objects", Some(define)).await.status, 201);
        let made = send(&server, None, "mutation { create_note(input: { text: \"x\" }) { text created_by } }", Value::Null).await.json();
        assert_eq!(made, json!({ "data": { "create_note": { "text": "x", "created_by": null } } }));
        let found = send(&server, None, "{ note { data { text } } svc_objects }", Value::Null).await.json();
        assert_eq!(found["data"], json!({ "note": { "data": [{ "text": "x" }] }, "svc_objects": ["note"] }));
    }
}
