//! Each tool has the same effects as REST, and returns the same bytes.

use blockbase_tests::{Engine, ServerBuilder, example_block, on_both_engines};
use serde_json::{Value, json};

use super::{Client, initialization, make_schema, read_result};
use crate::promises::normalize::Mask;

/// Asserts that the output of a tool equals that of REST, except for ids and instants.
#[track_caller]
fn same(one: &str, other: &str) {
    assert_eq!(Mask::default().mask(one), Mask::default().mask(other));
}

const EXACT: &str = r#""exact":123456789012.345678,"large":9223372036854775807"#;

on_both_engines! {
    async fn tools_that_read_answer_as_rest_does(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin);
        let person = admin.make("person", json!({ "name": "Zoë" })).await;
        for number in 0..7 {
            let notes = if number == 0 { "null" } else { r#"{"a":[null,"\u00e9"]}"# };
            let text = format!(
                r#"{{"title":"Éclair {number}","code":"c{number}",{EXACT},"count":{number},"owner_id":"{person}","notes":{notes}}}"#
            );
            let made = server.send(admin.request("POST", "/api/v1/data/task").header("content-type", "application/json").body(text)).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let id = admin.get("/api/v1/data/task?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
        for (arguments, query) in [
            (json!({}), ""),
            (json!({ "page": 2, "page_size": 3, "sort": "title" }), "?page=2&pageSize=3&sort=title"),
            (json!({ "limit": 2, "offset": 1, "sort": "-count" }), "?limit=2&offset=1&sort=-count"),
            (json!({ "search": "ÉCLAIR 3" }), "?search=ÉCLAIR 3"),
            (json!({ "filters": [{ "field": "count", "operator": "gte", "value": 2 }, { "field": "code", "operator": "in", "value": ["c1", "c5"] }] }), "?count[gte]=2&code[in]=c1,c5"),
            (json!({ "filters": [{ "field": "count", "value": "3" }] }), "?count[eq]=3"),
            (json!({ "filters": [{ "field": "notes", "operator": "is_null" }] }), "?notes[is_null]="),
            (json!({ "select": "title", "expand": "owner,labels", "count": "none" }), "?select=title&expand=owner,labels&count=none"),
            (json!({ "expand": "colour" }), "?expand=colour"),
            (json!({ "search": null, "page": null }), ""),
        ] {
            let mut arguments = arguments;
            arguments["object_name"] = json!("task");
            let called = client.call("query_data", arguments.clone()).await;
            let rest = admin.get(&format!("/api/v1/data/task{query}")).await;
            assert_eq!((rest.status, called.text.as_str()), (200, rest.text.as_str()), "{arguments}");
            called.document();
        }
        let got = client.call("get_record", json!({ "object_name": "task", "id": id, "expand": "owner" })).await;
        let rest = admin.get(&format!("/api/v1/data/task/{id}?expand=owner")).await;
        assert_eq!(got.text, rest.text);
        let got_less = client.call("get_record", json!({ "object_name": "task", "id": id, "expand": "colour" })).await;
        assert_eq!(got_less.text, admin.get(&format!("/api/v1/data/task/{id}?expand=colour")).await.text);
        assert!(got_less.document()["warnings"][0].as_str().unwrap().contains("`colour`"), "{}", got_less.text);
        // Both forms of the result (text and structured content) have all digits.
        assert!(got.text.contains(EXACT) && got.structured.as_deref().unwrap().contains(EXACT), "{}", got.text);
        for (arguments, query) in [
            (json!({ "fn": "count" }), "fn=count"),
            (json!({ "fn": "sum", "field": "exact" }), "fn=sum&field=exact"),
            (json!({ "fn": "avg", "field": "count", "filters": [{ "field": "count", "operator": "lt", "value": 3 }], "search": "clair" }), "fn=avg&field=count&count[lt]=3&search=clair"),
        ] {
            let mut arguments = arguments;
            arguments["object_name"] = json!("task");
            let called = client.call("aggregate_data", arguments).await;
            assert_eq!(called.text, admin.get(&format!("/api/v1/data/task/aggregate?{query}")).await.text);
            called.document();
        }

        let objects = client.call("list_objects", json!({})).await.document();
        let all = ["create", "read", "update", "delete"];
        let names = ["label", "person", "task"].map(|name| json!({ "name": name, "actions": all }));
        assert_eq!(objects, json!({ "data": names }));
        let mut object = client.call("get_object", json!({ "object_name": "task" })).await.document()["data"].take();
        assert_eq!(object["expandKeys"], json!(["owner", "labels"]));
        assert_eq!(object["relations"][1], json!({ "key": "labels", "object": "label", "isList": true, "isLinked": true }));
        assert_eq!(object["uniqueTargets"], json!([["id"], ["code"]]));
        let columns: Vec<&str> = object["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        let record = admin.get(&format!("/api/v1/data/task/{id}")).await.data();
        assert_eq!(columns, record.as_object().unwrap().keys().collect::<Vec<_>>());
        for added in ["columns", "uniqueTargets", "relations", "expandKeys", "actions"] {
            assert!(object.as_object_mut().unwrap().remove(added).is_some(), "{added}");
        }
        assert_eq!(object, admin.get("/api/v1/objects/task").await.data());
    }

    async fn tools_that_write_write_as_rest_does(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin);
        let by_rest = async |method: &str, path: &str, body: &str| {
            let request = admin.request(method, &format!("/api/v1/data/{path}")).header("content-type", "application/json");
            server.send(request.body(body.to_owned())).await
        };
        let id_of = |text: &str| serde_json::from_str::<Value>(text).unwrap()["data"]["id"].as_str().unwrap().to_owned();

        let values = format!(r#"{{"title":"a","code":"one",{EXACT},"notes":{{"n":1.50}}}}"#);
        let created = client.call_text("create_record", &format!(r#"{{"object_name":"task","data":{values}}}"#)).await;
        created.document();
        assert!(created.text.contains(EXACT), "{}", created.text);
        let id = id_of(&created.text);
        assert_eq!(created.text, admin.get(&format!("/api/v1/data/task/{id}")).await.text);
        let twin = by_rest("POST", "task", &values.replace("one", "two")).await;
        same(&created.text, &twin.text.replace("two", "one"));
        let twin = id_of(&twin.text);

        let changes = r#"{"count":{"$inc":5},"exact":0.000001}"#;
        let before = by_rest("PATCH", &format!("task/{id}"), r#"{"count":1}"#).await;
        assert_eq!(before.status, 200, "{}", before.text);
        by_rest("PATCH", &format!("task/{twin}"), r#"{"count":1}"#).await;
        let updated = client.call_text("update_record", &format!(r#"{{"object_name":"task","id":"{id}","data":{changes}}}"#)).await;
        assert_eq!((updated.document()["data"]["count"].clone(), updated.text.contains(r#""exact":0.000001"#)), (json!(6), true));
        let by_rest_too = by_rest("PATCH", &format!("task/{twin}"), changes).await;
        same(&updated.text, &by_rest_too.text.replace("two", "one"));

        for (code, is_new) in [("three", true), ("three", false)] {
            let values = format!(r#"{{"title":"t","code":"{code}"}}"#);
            let upserted = client.call_text("upsert_record", &format!(r#"{{"object_name":"task","data":{values},"on_conflict":["code"]}}"#)).await;
            assert_eq!(upserted.document()["created"], is_new);
            let rest = by_rest("POST", "task?on_conflict=code", &values.replace("three", "four")).await;
            same(&upserted.text, &rest.text.replace("four", "three"));
        }

        let records = r#"[{"title":"b1"},{"title":"b2","large":9223372036854775807}]"#;
        let made = client.call_text("bulk_create_records", &format!(r#"{{"object_name":"task","data":{records}}}"#)).await;
        let ids = made.document()["ids"].clone();
        same(&made.text, &by_rest("POST", "task/bulk", &format!(r#"{{"data":{records}}}"#)).await.text);
        let changes = r#"{"title":"b3","count":{"$inc":2},"exact":0.5}"#;
        let arguments = |more: &str| format!(r#"{{"object_name":"task","ids":{ids},"data":{changes}{more}}}"#);
        let tried = client.call_text("bulk_update_records", &arguments(r#","dry_run":true"#)).await;
        assert_eq!((tried.document(), &tried.text), (json!({ "count": 2, "ids": ids }), &made.text));
        assert_eq!(admin.get("/api/v1/data/task?title=b3").await.json()["pagination"]["totalCount"], 0);
        let changed = client.call_text("bulk_update_records", &arguments("")).await;
        assert_eq!((changed.document(), &changed.text), (json!({ "count": 2, "ids": ids }), &made.text));
        assert_eq!(by_rest("PATCH", "task/bulk", &format!(r#"{{"ids":{ids},"values":{changes}}}"#)).await.text, made.text);
        assert_eq!(admin.get("/api/v1/data/task?title=b3&exact=0.5").await.json()["pagination"]["totalCount"], 2);
        // A condition can choose the records.
        let left = async |title: &str| admin.get(&format!("/api/v1/data/task?{title}")).await.json()["pagination"]["totalCount"].clone();
        for dry_run in [true, false] {
            let chosen = json!({ "title": "b3", "exact": 0.5 });
            let arguments = json!({ "object_name": "task", "where": chosen, "data": { "exact": 0.75 }, "dry_run": dry_run });
            assert_eq!(client.call("bulk_update_records", arguments).await.document()["count"], 2);
            assert_eq!(left("title=b3&exact=0.5").await, if dry_run { 2 } else { 0 });
        }
        admin.make("task", json!({ "title": "to go" })).await;
        for dry_run in [true, false] {
            let arguments = json!({ "object_name": "task", "where": { "title": "to go" }, "dry_run": dry_run });
            assert_eq!(client.call("bulk_delete_records", arguments).await.document()["count"], 1);
            assert_eq!(left("title=to+go").await, if dry_run { 1 } else { 0 });
        }
        for chosen in [json!({}), json!({ "where": {} }), json!({ "where": "x" }), json!({ "where": { "title": "b3" }, "ids": ids })] {
            for (tool, data) in [("bulk_update_records", json!({ "data": {} })), ("bulk_delete_records", json!({}))] {
                let mut arguments = json!({ "object_name": "task" });
                for members in [&chosen, &data] {
                    arguments.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
                }
                client.call(tool, arguments).await.expect_error("invalid_request");
            }
        }
        let gone = client.call("bulk_delete_records", json!({ "object_name": "task", "ids": ids })).await;
        assert_eq!((gone.document(), gone.text), (json!({ "count": 2, "ids": ids }), made.text));

        let labels = [admin.make("label", json!({ "name": "x" })).await, admin.make("label", json!({ "name": "y" })).await];
        let links = json!({ "object_name": "task", "id": id, "relation": "labels", "ids": labels });
        for (tool, method, what) in [("link_records", "POST", "added"), ("unlink_records", "DELETE", "removed")] {
            let changed = client.call(tool, links.clone()).await;
            assert_eq!(changed.text, format!(r#"{{"data":{{"{what}":2}}}}"#));
            let rest = by_rest(method, &format!("task/{twin}/links/labels"), &json!({ "ids": labels }).to_string()).await;
            assert_eq!((changed.document(), changed.text), (rest.json(), rest.text));
        }
        let deleted = client.call("delete_record", json!({ "object_name": "task", "id": id })).await;
        assert_eq!(deleted.document(), json!({ "data": { "deleted": true } }));
        assert_eq!(admin.get(&format!("/api/v1/data/task/{id}")).await.status, 404);

        // Each write has its event, with its actor.
        let topics: Vec<String> = admin.outbox("task").await.into_iter().map(|(topic, _)| topic).collect();
        assert_eq!(topics.iter().filter(|topic| *topic == "data.task.linked").count(), 2);
        assert!(admin.outbox("task").await.iter().all(|(_, payload)| payload["actor"]["via"] == "session"));
    }

    async fn errors_are_those_of_rest(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin);
        let id = admin.make("task", json!({ "title": "a", "code": "one" })).await;
        let nothing = "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9";
        let task = |more: Value| {
            let mut arguments = json!({ "object_name": "task" });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        for (tool, arguments, method, path, body) in [
            ("create_record", task(json!({ "data": { "title": "b", "code": "one" } })), "POST", "task", json!({ "title": "b", "code": "one" })),
            ("create_record", task(json!({ "data": {} })), "POST", "task", json!({})),
            ("create_record", task(json!({ "data": { "title": "b", "colour": 1 } })), "POST", "task", json!({ "title": "b", "colour": 1 })),
            ("create_record", task(json!({ "data": { "title": "b", "count": -1 } })), "POST", "task", json!({ "title": "b", "count": -1 })),
            ("create_record", task(json!({ "data": { "title": "b", "count": "many" } })), "POST", "task", json!({ "title": "b", "count": "many" })),
            ("create_record", task(json!({ "data": { "title": "b", "owner_id": nothing } })), "POST", "task", json!({ "title": "b", "owner_id": nothing })),
            ("create_record", json!({ "object_name": "nothing", "data": {} }), "POST", "nothing", json!({})),
            ("update_record", task(json!({ "id": nothing, "data": {} })), "PATCH", &format!("task/{nothing}"), json!({})),
            ("update_record", task(json!({ "id": "no id", "data": {} })), "PATCH", "task/no id", json!({})),
            ("update_record", task(json!({ "id": id, "data": { "title": { "$inc": 1 } } })), "PATCH", &format!("task/{id}"), json!({ "title": { "$inc": 1 } })),
            ("upsert_record", task(json!({ "data": { "title": "b" }, "on_conflict": ["title"] })), "POST", "task?on_conflict=title", json!({ "title": "b" })),
            ("bulk_create_records", task(json!({ "data": [{ "title": "b" }, {}] })), "POST", "task/bulk", json!({ "data": [{ "title": "b" }, {}] })),
            ("bulk_update_records", task(json!({ "ids": ["x"], "data": {} })), "PATCH", "task/bulk", json!({ "ids": ["x"], "values": {} })),
            ("bulk_update_records", task(json!({ "ids": [id], "data": { "count": -1 } })), "PATCH", "task/bulk", json!({ "ids": [id], "values": { "count": -1 } })),
            ("bulk_update_records", task(json!({ "ids": [id], "data": { "title": { "$inc": 1 } } })), "PATCH", "task/bulk", json!({ "ids": [id], "values": { "title": { "$inc": 1 } } })),
            ("bulk_delete_records", task(json!({ "ids": ["x"] })), "DELETE", "task/bulk", json!({ "ids": ["x"] })),
            ("link_records", task(json!({ "id": id, "relation": "labels", "ids": [nothing] })), "POST", &format!("task/{id}/links/labels"), json!({ "ids": [nothing] })),
            ("link_records", task(json!({ "id": id, "relation": "owner", "ids": [nothing] })), "POST", &format!("task/{id}/links/owner"), json!({ "ids": [nothing] })),
            ("get_record", task(json!({ "id": nothing })), "GET", &format!("task/{nothing}"), Value::Null),
            ("delete_record", task(json!({ "id": nothing })), "DELETE", &format!("task/{nothing}"), Value::Null),
            ("query_data", task(json!({ "filters": [{ "field": "colour", "value": 1 }] })), "GET", "task?colour=1", Value::Null),
            ("query_data", task(json!({ "filters": [{ "field": "title", "operator": "near", "value": 1 }] })), "GET", "task?title[near]=1", Value::Null),
            ("query_data", task(json!({ "sort": "colour" })), "GET", "task?sort=colour", Value::Null),
            ("query_data", task(json!({ "search": "x".repeat(2000) })), "GET", &format!("task?search={}", "x".repeat(2000)), Value::Null),
            ("aggregate_data", task(json!({ "fn": "sum", "field": "title" })), "GET", "task/aggregate?fn=sum&field=title", Value::Null),
            ("aggregate_data", task(json!({ "fn": "median" })), "GET", "task/aggregate?fn=median", Value::Null),
            ("get_record", json!({ "object_name": "nothing", "id": id }), "GET", &format!("nothing/{id}"), Value::Null),
        ] {
            let request = admin.request(method, &format!("/api/v1/data/{path}"));
            let rest = server.send(if body.is_null() { request } else { request.json(&body) }).await;
            let called = client.call(tool, arguments.clone()).await;
            assert!(rest.status >= 400 && called.is_error, "{tool} {arguments}: {}", rest.text);
            // Each surface has its own hint for the error.
            let expected = rest.text.replace("GET /api/v1/data lists", "The tool `list_objects` lists");
            assert_eq!(called.text, expected, "{tool} {arguments}");
        }
    }

    async fn actions_of_blocks_are_tools(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        for block in ["echo", "tasks"] {
            assert_eq!(admin.install("", example_block(block).await).await.status, 201);
        }
        let client = Client::of(&admin);
        let tools = client.tools().await;
        let tool = tools.iter().find(|tool| tool["name"] == "tasks_complete").unwrap();
        let manifest = admin.get("/api/v1/blocks/actions").await.data();
        let declared = manifest["actions"].as_array().unwrap().iter().find(|action| action["name"] == "complete").unwrap();
        assert_eq!((&tool["inputSchema"], &tool["description"]), (&declared["input"], &declared["description"]));
        assert_eq!(tool["annotations"]["readOnlyHint"], false);

        let input = r#"{"text":"Zoë","number":12345678901234567,"list":[1,null]}"#;
        let echoed = client.call_text("echo_echo", input).await;
        let rest = server.send(admin.request("POST", "/api/v1/blocks/echo/actions/echo").header("content-type", "application/json").body(input)).await;
        assert_eq!((echoed.document(), &echoed.text), (rest.json(), &rest.text));
        let answer = client.ask("tools/call", json!({ "name": "echo_echo" })).await;
        assert_eq!(read_result(&answer.text).document(), json!({ "data": {} }));
        for (tool, action, input) in [
            ("tasks_complete", "tasks/actions/complete", json!({ "id": "x", "colour": 1 })),
            ("tasks_complete", "tasks/actions/complete", json!({ "id": "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9" })),
            ("echo_refuse", "echo/actions/refuse", json!({ "code": "conflict" })),
            ("echo_panic", "echo/actions/panic", json!({})),
            ("echo_spin", "echo/actions/spin", json!({})),
        ] {
            let called = client.call(tool, input.clone()).await;
            let rest = admin.post(&format!("/api/v1/blocks/{action}"), input).await;
            assert!(called.is_error && rest.status >= 400);
            assert_eq!(called.text, rest.text, "{tool}");
        }
        let task = admin.make("task", json!({ "title": "a" })).await;
        assert_eq!(client.call("tasks_complete", json!({ "id": task })).await.document()["data"]["task"]["done"], true);

        // A tool that existed a moment ago gets the error code of REST.
        admin.patch("/api/v1/blocks/tasks", json!({ "enabled": false })).await.data();
        assert_eq!(admin.delete("/api/v1/blocks/echo").await.status, 204);
        for tool in ["tasks_complete", "echo_echo", "nothing"] {
            let answer = client.ask("tools/call", json!({ "name": tool, "arguments": {} })).await;
            let error = answer.json()["error"].clone();
            assert_eq!((answer.status, &error["code"], &error["data"]["error"]), (200, &json!(-32602), &json!("not_found")), "{}", answer.text);
        }
        assert_eq!(admin.delete("/api/v1/objects/task").await.status, 204);
        for (tool, arguments) in [("query_data", json!({ "object_name": "task" })), ("get_object", json!({ "object_name": "task" }))] {
            client.call(tool, arguments).await.expect_error("not_found");
        }
    }
}

/// Every version of the protocol gets responses in the form of that version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_of_the_protocol_is_spoken() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let client = Client::of(&admin);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut params = initialization();
        params["protocolVersion"] = json!(version);
        let answer = client.ask("initialize", params).await;
        let result = answer.json()["result"].clone();
        assert_eq!(result["protocolVersion"], version, "{}", answer.text);
        assert_eq!(
            (&result["capabilities"], &result["serverInfo"]["name"]),
            (&json!({ "tools": { "listChanged": true } }), &json!("blockbase"))
        );
    }
    let mut params = initialization();
    params["protocolVersion"] = json!("1999-01-01");
    assert_eq!(client.ask("initialize", params).await.json()["result"]["protocolVersion"], "2025-11-25");

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let modern = async |method: &str, name: Option<&str>, params: Value| {
        let mut params = params;
        params["_meta"] = meta.clone();
        let mut request = client.request("POST").header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
        server.send(request.json(&body)).await
    };
    let discovered = modern("server/discover", None, json!({})).await.json()["result"].clone();
    assert_eq!(discovered["supportedVersions"].as_array().unwrap().len(), 5);
    let listed = modern("tools/list", None, json!({})).await.json()["result"].clone();
    assert_eq!((&listed["resultType"], listed["tools"].as_array().unwrap().len()), (&json!("complete"), 15));
    let called =
        modern("tools/call", Some("query_data"), json!({ "name": "query_data", "arguments": { "object_name": "task" } })).await;
    assert!(called.text.contains(r#""structuredContent":{"data":[],"#), "{}", called.text);
    let mismatched = modern("tools/call", Some("get_record"), json!({ "name": "query_data" })).await;
    assert_eq!((mismatched.status, mismatched.json()["error"]["code"].clone()), (400, json!(-32020)), "{}", mismatched.text);
    assert_eq!(server.send(client.request("GET").header("mcp-protocol-version", "2026-07-28")).await.status, 405);

    // Arrays, in the version of the protocol that has them.
    let array = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_objects"}},7]"#;
    let answers = client.send(array).await.json();
    let codes: Vec<Value> = answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!((codes, &answers[2]["error"]["code"]), (vec![json!(1), json!(2), Value::Null], &json!(-32600)));
    assert_eq!(client.send(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await.status, 202);
    let request = client.request("POST").header("content-type", "application/json").header("mcp-protocol-version", "2025-06-18");
    assert_eq!(server.send(request.body(array)).await.status, 400);
}
