//! Names of tools and mutations that blocks or objects already had when the tools or mutations were added.

use blockbase_tests::{Engine, ServerBuilder};
use serde_json::{Value, json};

use super::Client;
use crate::blocks::hostile::hand_made::HandMade;
use crate::graphql::{codes, data};

/// Blocks with one action and one hook `go`. They were installed when the name of the action was still free.
const BLOCKS: [(&str, &str); 3] = [("bulk", "update_records"), ("update", "list_many"), ("batch", "records")];

/// The type of a mutation's result. Null if the mutation does not exist.
async fn mutation_type(admin: &blockbase_tests::Admin<'_>, name: &str) -> Value {
    let answer = data(admin, "{ __type(name: \"Mutation\") { fields { name type { name } } } }", Value::Null).await;
    let fields = answer["__type"]["fields"].as_array().unwrap();
    let named: Vec<&Value> = fields.iter().filter(|field| field["name"] == name).collect();
    assert!(named.len() <= 1, "{name} is there twice");
    named.first().map_or(Value::Null, |field| field["type"]["name"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_stays_with_what_had_it_first() {
    let mut server = ServerBuilder::new(Engine::Sqlite).start().await;
    let token = server.admin().await.token;
    let admin = server.with_token(token.clone());
    for object in ["list", "task", "task_many"] {
        admin.define(object, json!([{ "name": "title", "type": "text" }])).await;
    }
    // If two mutations would have the same name, the one of the object gets it. The mutation of its own bulk call has one more
    // `_many`.
    assert_eq!(mutation_type(&admin, "update_task_many").await, "TaskMany");
    assert_eq!(mutation_type(&admin, "update_task_many_many").await, "SvcWritten");
    assert_eq!(mutation_type(&admin, "update_list_many").await, "SvcWritten");
    let one = admin.make("task_many", json!({ "title": "a" })).await;
    let update = "mutation($id: ID!) { update_task_many(id: $id, input: { title: \"b\" }) { title } }";
    assert_eq!(data(&admin, update, json!({ "id": one })).await, json!({ "update_task_many": { "title": "b" } }));
    let bulk = "mutation($ids: [ID!]!) { update_task_many_many(ids: $ids, input: { title: \"c\" }) { __typename count } }";
    let expected = json!({ "update_task_many_many": { "__typename": "SvcWritten", "count": 1 } });
    assert_eq!(data(&admin, bulk, json!({ "ids": [one] })).await, expected);
    let of_task = "mutation($ids: [ID!]!) { update_task_many(ids: $ids, input: { title: \"c\" }) { count } }";
    assert!(!codes(&server, Some(&token), of_task, json!({ "ids": [one] })).await.is_empty());

    for (name, _) in BLOCKS {
        let installed = admin.install("", HandMade::default().packed(name).await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
    }
    assert_eq!(Client::of(&admin).tool_names().await.iter().filter(|name| *name == "bulk_update_records").count(), 1);
    server.kill();
    for (name, action) in BLOCKS {
        // Only the manifest is changed, because the component handles every name.
        let renamed = format!(
            "UPDATE svc_block_versions SET manifest = replace(manifest, '\"go\"', '\"{action}\"') WHERE block = '{name}'"
        );
        server.sql(&renamed).await;
    }
    let server = server.restart().await;
    let admin = server.with_token(token.clone());
    let client = Client::of(&admin);
    let tools = client.tools().await;
    let named: Vec<&Value> = tools.iter().filter(|tool| tool["name"] == "bulk_update_records").collect();
    assert_eq!((named.len(), &named[0]["title"]), (1, &json!("bulk: update_records")));
    assert_eq!(client.call("bulk_update_records", json!({})).await.document(), json!({ "data": null }));
    let named: Vec<&Value> = tools.iter().filter(|tool| tool["name"] == "batch_records").collect();
    assert_eq!((named.len(), &named[0]["title"]), (1, &json!("batch: records")));
    assert_eq!(client.call("batch_records", json!({})).await.document(), json!({ "data": null }));
    assert_eq!(mutation_type(&admin, "update_list_many").await, "JSON");
    assert_eq!(data(&admin, "mutation { update_list_many }", Value::Null).await, json!({ "update_list_many": null }));
    // A caller who may not see the block gets the object's tool and mutation.
    let grants = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "list", "actions": ["read", "update"] }]);
    let member = super::user_with(&admin, "member", grants).await;
    let list = admin.make("list", json!({ "title": "a" })).await;
    let arguments = json!({ "object_name": "list", "ids": [list], "data": { "title": "b" } });
    assert_eq!(Client::of(&member).call("bulk_update_records", arguments.clone()).await.document()["count"], 1);
    let operations = json!({ "operations": [{ "op": "update", "object": "list", "id": list, "values": { "title": "d" } }] });
    let done = Client::of(&member).call("batch_records", operations).await.document();
    assert_eq!(done["data"][0]["data"]["title"], "d");
    let bulk = "mutation($ids: [ID!]!) { update_list_many(ids: $ids, input: { title: \"c\" }) { ids } }";
    assert_eq!(data(&member, bulk, json!({ "ids": [list] })).await, json!({ "update_list_many": { "ids": [list] } }));

    // A later version of the block may keep the name. No other block may take it.
    let named_so = HandMade {
        fields: "(data (i32.const 1024) \"\\10\\04\\00\\00\\02\\00\\00\\00\")
                 (data (i32.const 1040) \"\\4c\\04\\00\\00\\0e\\00\\00\\00\\90\\00\\00\\00\\06\\00\\00\\00\\80\\00\\00\\00\\02\\00\\00\\00\\a0\\00\\00\\00\\04\\00\\00\\00\")
                 (data (i32.const 1100) \"update_records\")"
            .to_owned(),
        handlers: "(i32.const 1024)",
        ..HandMade::default()
    };
    let keys = json!({ "version": "0.2.0", "actions": [{ "name": "update_records" }] });
    let upgraded =
        admin.install("?upgrade=true&allowNewPermissions=true", named_so.packed_with("bulk", keys.clone()).await).await;
    assert_eq!(upgraded.status, 200, "{}", upgraded.text);
    assert_eq!(client.call("bulk_update_records", json!({})).await.document(), json!({ "data": null }));
    for (name, _) in BLOCKS {
        assert_eq!(admin.delete(&format!("/api/v1/blocks/{name}")).await.status, 204);
    }
    let refused = admin.install("", named_so.packed_with("bulk", keys).await).await.expect_error(400, "invalid_block");
    assert!(refused["message"].as_str().unwrap().contains("a tool of this server"), "{refused}");
    assert_eq!(client.call("bulk_update_records", arguments).await.document(), json!({ "count": 1, "ids": [list] }));
    assert_eq!(mutation_type(&admin, "update_list_many").await, "SvcWritten");
}
