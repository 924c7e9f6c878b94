//! The schema follows the registry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use blockbase_tests::{Engine, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, codes, data, send};

const ROOTS: &str = "{ svc_schema_version svc_objects __schema { queryType { fields { name } } } }";

on_both_engines! {
    async fn what_is_made_altered_and_dropped_shows_at_once(server: Server) {
        let admin = server.admin().await;
        // There is also a schema if there is no object.
        let empty = data(&admin, "{ svc_schema_version svc_objects __schema { mutationType { name } subscriptionType { name } } }", Value::Null).await;
        assert_eq!(empty["svc_objects"], json!([]));
        assert_eq!(empty["__schema"], json!({ "mutationType": null, "subscriptionType": { "name": "Subscription" } }));
        let mut version = empty["svc_schema_version"].as_i64().unwrap();
        let mut went_up = |data: &Value| {
            let now = data["svc_schema_version"].as_i64().unwrap();
            assert!(now > version, "{now} after {version}");
            version = now;
        };
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let query = "{ svc_schema_version note { data { text } } }";
        let first = data(&admin, query, Value::Null).await;
        assert_eq!(first["note"]["data"], json!([]));
        went_up(&first);
        admin.make("note", json!({ "text": "a" })).await;
        admin.patch("/api/v1/objects/note/fields/text", json!({ "name": "body" })).await.data();
        assert_eq!(codes(&server, Some(&admin.token), query, Value::Null).await, ["unknown_field"]);
        let renamed = data(&admin, "{ svc_schema_version note { data { body } } }", Value::Null).await;
        assert_eq!(renamed["note"]["data"], json!([{ "body": "a" }]));
        went_up(&renamed);
        admin.define("tag", json!([])).await;
        admin.relate(json!({ "name": "tags", "kind": "many_to_many", "source": "note", "target": "tag" })).await;
        // An object without fields has an input type that accepts nothing.
        let made = data(&admin, "mutation { create_tag(input: {}) { id } }", Value::Null).await["create_tag"]["id"].clone();
        let related = data(&admin, "{ svc_schema_version note { data { tags { id } } } tag { data { id tags { body } } } }", Value::Null).await;
        assert_eq!(related["tag"]["data"], json!([{ "id": made, "tags": [] }]));
        went_up(&related);
        let roots = data(&admin, ROOTS, Value::Null).await;
        let names: Vec<&str> = roots["__schema"]["queryType"]["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["svc_schema_version", "svc_objects", "note", "note_by_id", "note_aggregate", "note_groups", "note_connection", "tag", "tag_by_id", "tag_aggregate", "tag_groups", "tag_connection"]);
        assert_eq!(server.call_as(Some(&admin.token), "DELETE", "/api/v1/objects/note?cascade=true", None).await.status, 204);
        assert_eq!(codes(&server, Some(&admin.token), "{ note { data { id } } }", Value::Null).await, ["not_found"]);
        assert_eq!(data(&admin, ROOTS, Value::Null).await["svc_objects"], json!(["tag"]));
    }

    async fn traffic_goes_on_while_the_schema_changes(server: Server) {
        let admin = server.admin().await;
        admin.define("base", json!([{ "name": "text", "type": "text" }])).await;
        for number in 0..20 {
            admin.make("base", json!({ "text": number.to_string() })).await;
        }
        let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let url = format!("{}{}", server.base, PATH);
        let mut workers = Vec::new();
        for worker in 0..4 {
            let (over, answered, url, token) = (Arc::clone(&over), Arc::clone(&answered), url.clone(), admin.token.clone());
            workers.push(tokio::spawn(async move {
                let client = blockbase_tests::http_client();
                while !over.load(Ordering::Relaxed) {
                    let query = match worker {
                        0 => "{ base(limit: 5) { data { text } pagination { totalCount } } }",
                        1 => "{ __schema { types { name } } }",
                        2 => "mutation { create_base(input: { text: \"more\" }) { text } }",
                        _ => "{ base(limit: 1) { data { id } } __typename svc_objects }",
                    };
                    let answer = client.post(&url).bearer_auth(&token).json(&json!({ "query": query })).send().await.unwrap();
                    let (status, body) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
                    assert!(status == 200 && body["errors"].is_null(), "{query}: {status} {body}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for round in 0..15 {
            let name = format!("extra{round}");
            admin.define(&name, json!([{ "name": "label", "type": "text" }])).await;
            let found = data(&admin, &format!("{{ {name} {{ data {{ label }} }} }}"), Value::Null).await;
            assert_eq!(found[&name]["data"], json!([]));
            let added = admin.post("/api/v1/objects/base/fields", json!({ "name": format!("field{round}"), "type": "integer" })).await;
            assert_eq!(added.status, 201, "{}", added.text);
            data(&admin, &format!("{{ base(limit: 3) {{ data {{ field{round} }} }} }}"), Value::Null).await;
            if round % 2 == 0 {
                assert_eq!(admin.delete(&format!("/api/v1/objects/{name}")).await.status, 204);
            }
        }
        over.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.await.unwrap();
        }
        assert!(answered.load(Ordering::Relaxed) > 100);
        assert!(!server.log().contains("ERROR"), "{}", server.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_follows() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = first.admin().await;
    let second = first.builder().start().await;
    let there = second.with_token(admin.token.clone());
    assert_eq!(data(&there, "{ svc_objects }", Value::Null).await["svc_objects"], json!([]));
    admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
    let until = Instant::now() + blockbase_tests::WAIT_MAX;
    loop {
        let answer = send(&second, Some(&admin.token), "{ note { data { text } } }", Value::Null).await.json();
        if answer["errors"].is_null() {
            break;
        }
        assert_eq!(answer["errors"][0]["extensions"]["code"], "not_found", "{answer}");
        assert!(Instant::now() < until, "{answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
