//! Mutations: their effects, results and events.

use blockbase_tests::{ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, codes, data, define, send};

on_both_engines! {
    async fn records_are_created_updated_upserted_and_deleted(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        let create = "mutation($input: TaskCreateInput!) { create_task(input: $input) { id title done kinds extra project { name } } }";
        let input = json!({ "title": "one", "priority": 1, "kinds": "a", "extra": { "deep": [1, { "x": null }] }, "project_id": project });
        let made = data(&admin, create, json!({ "input": input })).await["create_task"].clone();
        let id = made["id"].as_str().unwrap().to_owned();
        let expected = json!({ "id": id, "title": "one", "done": false, "kinds": ["a"], "extra": { "deep": [1, { "x": null }] }, "project": { "name": "bakery" } });
        assert_eq!(made, expected);

        let update = "mutation($id: ID!, $input: TaskUpdateInput, $increment: TaskIncrementInput) {
            update_task(id: $id, input: $input, increment: $increment) { title priority price project { name } } }";
        let changed = data(&admin, update, json!({ "id": id, "input": { "title": "two", "project_id": null }, "increment": { "priority": 2 } })).await;
        assert_eq!(changed["update_task"], json!({ "title": "two", "priority": 3, "price": null, "project": null }));
        let nothing = data(&admin, update, json!({ "id": id })).await;
        assert_eq!(nothing["update_task"]["title"], "two");
        let literal = format!("mutation {{ update_task(id: \"{id}\", input: {{ status: closed, kinds: [b, a], extra: {{ a: [X, true, 1.5] }} }}) {{ status kinds extra }} }}");
        let changed = data(&admin, &literal, Value::Null).await;
        assert_eq!(changed["update_task"], json!({ "status": "closed", "kinds": ["b", "a"], "extra": { "a": ["X", true, 1.5] } }));

        let upsert = "mutation($name: String!) { upsert_project(input: { name: $name }, onConflict: [\"name\"]) { created data { id name } } }";
        let again = data(&admin, upsert, json!({ "name": "bakery" })).await["upsert_project"].clone();
        assert_eq!(again, json!({ "created": false, "data": { "id": project, "name": "bakery" } }));
        assert_eq!(data(&admin, upsert, json!({ "name": "new" })).await["upsert_project"]["created"], true);

        let delete = "mutation($id: ID!) { delete_task(id: $id) }";
        assert_eq!(data(&admin, delete, json!({ "id": id })).await, json!({ "delete_task": true }));
        assert_eq!(data(&admin, delete, json!({ "id": id })).await, json!({ "delete_task": false }));

        let events: Vec<(String, Value)> = admin.outbox("task").await;
        let topics: Vec<&str> = events.iter().map(|(topic, _)| topic.as_str()).collect();
        assert_eq!(topics, ["data.task.created", "data.task.updated", "data.task.updated", "data.task.deleted"]);
        assert_eq!(events[1].1["diff"]["priority"], json!({ "before": 1, "after": 3 }));
        assert_eq!(events[0].1["actor"]["via"], "session");
    }

    async fn many_records_are_changed_alike(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let mut ids = Vec::new();
        for number in 0..3 {
            ids.push(admin.make("task", json!({ "title": "t", "priority": number })).await);
        }
        let many = "mutation($ids: [ID!]!, $input: TaskUpdateInput, $by: TaskIncrementInput) {
            update_task_many(ids: $ids, input: $input, increment: $by) { ids count again: count } }";
        let missing = "0190d5ae-0000-7000-8000-000000000000";
        let some = json!({ "ids": [ids[1], missing, ids[0], ids[1]], "input": { "title": "new", "status": "open" }, "by": { "priority": 2 } });
        let expected = json!({ "update_task_many": { "ids": [ids[1], ids[0]], "count": 2, "again": 2 } });
        assert_eq!(data(&admin, many, some).await, expected);
        let tasks = data(&admin, "{ task(sort: { field: \"id\" }) { data { title priority status } } }", Value::Null).await;
        let task = |title: &str, priority: i64, status: Value| json!({ "title": title, "priority": priority, "status": status });
        assert_eq!(tasks["task"]["data"], json!([task("new", 2, json!("open")), task("new", 3, json!("open")), task("t", 2, Value::Null)]));
        let topics = admin.outbox("task").await.into_iter().filter(|(topic, _)| topic == "data.task.updated").count();
        assert_eq!(topics, 2);
        // A single id counts as a list of one. An empty change changes nothing.
        let one = data(&admin, many, json!({ "ids": ids[2] })).await;
        assert_eq!(one, json!({ "update_task_many": { "ids": [ids[2]], "count": 1, "again": 1 } }));
        // A condition can choose the records. A dry run changes none.
        let chosen = "mutation($where: Task_Where, $dry: Boolean, $ids: [ID!]) {
            update_task_many(where: $where, dryRun: $dry, ids: $ids, input: { status: open }, increment: { priority: 1 }) { ids count } }";
        let condition = json!({ "title": { "eq": "new" }, "priority": { "gte": 3 } });
        let expected = json!({ "update_task_many": { "ids": [ids[1]], "count": 1 } });
        assert_eq!(data(&admin, chosen, json!({ "where": condition, "dry": true })).await, expected);
        assert_eq!(data(&admin, chosen, json!({ "ids": [ids[1]], "dry": true })).await, expected);
        let topics = admin.outbox("task").await.into_iter().filter(|(topic, _)| topic == "data.task.updated").count();
        assert_eq!(topics, 2);
        assert_eq!(data(&admin, chosen, json!({ "where": condition })).await, expected);
        assert_eq!(data(&admin, chosen, json!({ "where": condition, "dry": false })).await, expected);
        let priority = admin.get(&format!("/api/v1/data/task/{}", ids[1])).await.data()["priority"].clone();
        assert_eq!(priority, 5);
        for wrong in [json!({}), json!({ "where": condition, "ids": [ids[1]] }), json!({ "where": {} }), json!({ "where": { "_or": [] } })] {
            assert_eq!(codes(&server, Some(&admin.token), chosen, wrong.clone()).await, ["invalid_request"], "{wrong}");
        }
        for (variables, code) in [
            (json!({ "ids": ids, "by": { "priority": 9 } }), "CONSTRAINT_VIOLATION"),
            (json!({ "ids": ids, "input": { "priority": 1 }, "by": { "priority": 1 } }), "INVALID_ATOMIC_OP"),
            (json!({ "ids": ids, "input": { "project_id": missing } }), "foreign_key_violation"),
            (json!({ "ids": ids, "input": { "title": null } }), "not_null_violation"),
            (json!({ "ids": ids, "input": { "nope": 1 } }), "unknown_field"),
            (json!({ "ids": ["x"] }), "invalid_value"),
            (json!({ "ids": vec![missing; 1001] }), "invalid_request"),
        ] {
            assert_eq!(codes(&server, Some(&admin.token), many, variables.clone()).await, [code], "{variables}");
        }
        for bad in ["{ update_task_many(input: {}) { count } }", "{ update_task_many(ids: []) }", "{ update_task_many(ids: [], input: {}) { title } }"] {
            assert!(!codes(&server, Some(&admin.token), &format!("mutation {bad}"), Value::Null).await.is_empty(), "{bad}");
        }
        assert_eq!(codes(&server, None, many, json!({ "ids": ids })).await, ["unauthorized"]);
        // An object without numbers has no `increment`.
        let tag = admin.make("tag", json!({ "label": "a" })).await;
        let tags = format!("mutation {{ update_tag_many(ids: [\"{tag}\"], input: {{ label: \"b\" }}) {{ count }} }}");
        assert_eq!(data(&admin, &tags, Value::Null).await, json!({ "update_tag_many": { "count": 1 } }));

        let delete = "mutation($where: Task_Where, $dry: Boolean, $ids: [ID!]) {
            delete_task_many(where: $where, dryRun: $dry, ids: $ids) { count ids } }";
        let condition = json!({ "title": { "eq": "new" } });
        let count = async |variables: Value| data(&admin, delete, variables).await["delete_task_many"]["count"].clone();
        let left = async || admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"].clone();
        assert_eq!((count(json!({ "where": condition, "dry": true })).await, left().await), (json!(2), json!(3)));
        for wrong in [json!({}), json!({ "where": condition, "ids": [ids[1]] }), json!({ "where": {} }), json!({ "ids": vec![missing; 1001] })] {
            assert_eq!(codes(&server, Some(&admin.token), delete, wrong.clone()).await, ["invalid_request"], "{wrong}");
        }
        assert_eq!(codes(&server, None, delete, json!({ "ids": ids })).await, ["unauthorized"]);
        let one = data(&admin, delete, json!({ "ids": [missing, ids[2]] })).await;
        assert_eq!((one, left().await), (json!({ "delete_task_many": { "count": 1, "ids": [ids[2]] } }), json!(2)));
        assert_eq!((count(json!({ "where": condition })).await, left().await), (json!(2), json!(0)));

        // An object with such a name keeps its mutations.
        admin.define("tag_many", json!([{ "name": "label", "type": "text" }])).await;
        let one = admin.make("tag_many", json!({ "label": "a" })).await;
        let update = format!("mutation {{ update_tag_many(id: \"{one}\", input: {{ label: \"b\" }}) {{ label }} }}");
        assert_eq!(data(&admin, &update, Value::Null).await, json!({ "update_tag_many": { "label": "b" } }));
        let delete = format!("mutation {{ delete_tag_many(id: \"{one}\") }}");
        assert_eq!(data(&admin, &delete, Value::Null).await, json!({ "delete_tag_many": true }));
    }

    async fn values_are_coerced_as_the_specification_says(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        // If a variable is left out, the field gets its default. A single value counts as a list, and a pair of escapes is one
        // character.
        admin.make("task", json!({ "title": "😀 x", "kinds": ["a"], "priority": 1 })).await;
        let query = r#"query($op: FilterOperator, $d: SortDirection, $n: Int = 1, $f: [FilterInput!]) {
            a: task(filter: { field: "title", operator: $op, value: "\uD83D\uDE00 x" }, sort: { field: "title", direction: $d }, limit: $n) { data { title } }
            b: task(filter: $f) { data { title } }
        }"#;
        let found = data(&admin, query, json!({ "f": { "field": "kinds", "value": "a" } })).await;
        assert_eq!(found, json!({ "a": { "data": [{ "title": "😀 x" }] }, "b": { "data": [{ "title": "😀 x" }] } }));
        let page = data(&admin, "query($n: Int, $o: Int) { task(limit: $n, offset: $o) { pagination { pageSize } } }", json!({ "n": 2.0, "o": null })).await;
        assert_eq!(page["task"]["pagination"]["pageSize"], 2);
        // A variable in a JSON value may have any type. If it is left out, so is its member.
        let json_value = "mutation($s: String, $n: Int, $none: Boolean) { create_task(input: { title: \"j\", extra: { s: $s, list: [$n, $none], none: $none } }) { extra } }";
        let made = data(&admin, json_value, json!({ "s": "x", "n": 7 })).await;
        assert_eq!(made["create_task"]["extra"], json!({ "s": "x", "list": [7, null] }));
        // An upsert may match by the id. A create may set its own id.
        let id = admin.make("task", json!({ "title": "y" })).await;
        let upsert = "mutation($i: TaskCreateInput!) { upsert_task(input: $i, onConflict: [\"id\"]) { created data { id title } } }";
        let upserted = data(&admin, upsert, json!({ "i": { "id": id, "title": "z" } })).await;
        assert_eq!(upserted["upsert_task"], json!({ "created": false, "data": { "id": id, "title": "z" } }));
        let created = data(&admin, "mutation($i: TaskCreateInput!) { create_task(input: $i) { id } }", json!({ "i": { "id": id, "title": "z" } })).await;
        assert_ne!(created["create_task"]["id"], json!(id));
    }

    async fn digits_of_variables_are_kept(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let query = "mutation($price: Float, $big: Float, $input: TaskUpdateInput!) {
            create_task(input: { title: \\\"x\\\", price: $price, big: $big }) { price big } }";
        let query = query.replace(", $input: TaskUpdateInput!", "").replace('\n', " ");
        let body = format!(r#"{{"query":"{query}","variables":{{"price":-123456789012.123456,"big":-9223372036854775808}}}}"#);
        let request = admin.request("POST", PATH).header("content-type", "application/json").body(body);
        let answer = server.send(request).await;
        assert_eq!(answer.text, r#"{"data":{"create_task":{"price":-123456789012.123456,"big":-9223372036854775808}}}"#);
        let increment = r#"{"query":"mutation($id: ID!, $by: TaskIncrementInput) { update_task(id: $id, increment: $by) { price } }","variables":{"id":"ID","by":{"price":0.000001}}}"#;
        let id = admin.get("/api/v1/data/task").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
        let request = admin.request("POST", PATH).header("content-type", "application/json");
        let answer = server.send(request.body(increment.replace("\"ID\"", &format!("\"{id}\"")))).await;
        assert_eq!(answer.text, r#"{"data":{"update_task":{"price":-123456789012.123455}}}"#);
    }

    async fn links_are_made_and_removed_once(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let task = admin.make("task", json!({ "title": "one" })).await;
        let mut tags = Vec::new();
        for label in ["a", "b"] {
            tags.push(admin.make("tag", json!({ "label": label })).await);
        }
        let link = "mutation($id: ID!, $ids: [ID!]!) { link_task_tags(id: $id, ids: $ids) }";
        assert_eq!(data(&admin, link, json!({ "id": task, "ids": tags })).await, json!({ "link_task_tags": 2 }));
        assert_eq!(data(&admin, link, json!({ "id": task, "ids": tags })).await, json!({ "link_task_tags": 0 }));
        // The other side has the same key. A single id counts as a list of one.
        let unlink = "mutation($id: ID!, $ids: [ID!]!) { unlink_tag_tags(id: $id, ids: $ids) }";
        assert_eq!(data(&admin, unlink, json!({ "id": tags[0], "ids": task })).await, json!({ "unlink_tag_tags": 1 }));
        let topics: Vec<String> = admin.outbox("task").await.into_iter().map(|(topic, _)| topic).collect();
        assert_eq!(topics, ["data.task.created", "data.task.linked"]);
        let missing = "0190d5ae-0000-7000-8000-000000000000";
        for (variables, code) in [
            (json!({ "id": task, "ids": [missing] }), "foreign_key_violation"),
            (json!({ "id": task, "ids": ["x"] }), "invalid_value"),
            (json!({ "id": missing, "ids": tags }), "not_found"),
        ] {
            assert_eq!(codes(&server, Some(&admin.token), link, variables).await, [code]);
        }
        // A foreign key is not a link.
        let fk = "mutation { link_task_project(id: \"1\", ids: []) }";
        assert_eq!(codes(&server, Some(&admin.token), fk, Value::Null).await, ["not_found"]);
    }

    async fn mutations_run_in_order_and_each_key_once(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let query = r#"mutation {
            a: create_task(input: { title: "a", priority: 9 }) { title }
            b: create_task(input: { title: "b", priority: 10 }) { title }
            c: create_task(input: { title: "c" }) { title }
            a: create_task(input: { title: "a", priority: 9 }) { priority }
        }"#;
        let answer = send(&server, Some(&admin.token), query, Value::Null).await;
        let body = answer.json();
        assert_eq!(body["data"], json!({ "a": { "title": "a", "priority": 9 }, "b": null, "c": { "title": "c" } }), "{body}");
        assert_eq!(body["errors"].as_array().unwrap().len(), 1);
        let error = &body["errors"][0];
        assert_eq!((&error["path"], &error["extensions"]["code"], &error["extensions"]["field"]), (&json!(["b"]), &json!("CONSTRAINT_VIOLATION"), &json!("priority")));
        assert_eq!(error["locations"], json!([{ "line": 3, "column": 13 }]));
        let titles = data(&admin, "{ task(sort: [{field: \"id\"}]) { data { title } } }", Value::Null).await;
        assert_eq!(titles["task"]["data"], json!([{ "title": "a" }, { "title": "c" }]));
    }

    async fn failures_have_the_codes_of_rest(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        admin.make("task", json!({ "title": "x", "project_id": project })).await;
        let task = admin.make("task", json!({ "title": "y", "priority": 1 })).await;
        let missing = "0190d5ae-0000-7000-8000-000000000000";
        let create = "mutation($input: TaskCreateInput!) { create_task(input: $input) { id } }";
        let update = "mutation($id: ID!, $input: TaskUpdateInput, $by: TaskIncrementInput) { update_task(id: $id, input: $input, increment: $by) { id } }";
        let path = format!("/api/v1/data/task/{task}");
        for (query, variables, (method, path, body)) in [
            (create, json!({ "input": { "priority": 1 } }), ("POST", "/api/v1/data/task", json!({ "priority": 1 }))),
            (create, json!({ "input": { "title": null } }), ("POST", "/api/v1/data/task", json!({ "title": null }))),
            (create, json!({ "input": { "title": 5 } }), ("POST", "/api/v1/data/task", json!({ "title": 5 }))),
            (create, json!({ "input": { "title": "x", "priority": "many" } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "priority": "many" }))),
            (create, json!({ "input": { "title": "x", "priority": 4_000_000_000_i64 } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "priority": 4_000_000_000_i64 }))),
            (create, json!({ "input": { "title": "x", "priority": 1.5 } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "priority": 1.5 }))),
            (create, json!({ "input": { "title": "x", "nope": 1 } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "nope": 1 }))),
            (create, json!({ "input": { "title": "x", "shade": "green" } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "shade": "green" }))),
            (create, json!({ "input": { "title": "x", "due": "soon" } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "due": "soon" }))),
            (create, json!({ "input": { "title": "x", "extra": "{" } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "extra": "{" }))),
            (create, json!({ "input": { "title": "x", "project_id": missing } }), ("POST", "/api/v1/data/task", json!({ "title": "x", "project_id": missing }))),
            (create, json!({ "input": { "title": "t".repeat(201) } }), ("POST", "/api/v1/data/task", json!({ "title": "t".repeat(201) }))),
            (update, json!({ "id": missing, "input": {} }), ("PATCH", "/api/v1/data/task/0190d5ae-0000-7000-8000-000000000000", json!({}))),
            (update, json!({ "id": task, "input": { "title": null } }), ("PATCH", path.as_str(), json!({ "title": null }))),
            (update, json!({ "id": task, "by": { "priority": 100 } }), ("PATCH", path.as_str(), json!({ "priority": { "$inc": 100 } }))),
            ("mutation { create_project(input: { name: \"bakery\" }) { id } }", Value::Null, ("POST", "/api/v1/data/project", json!({ "name": "bakery" }))),
            ("mutation { create_project(input: { name: \"No Slug\" }) { id } }", Value::Null, ("POST", "/api/v1/data/project", json!({ "name": "No Slug" }))),
            ("mutation { upsert_project(input: { name: \"x\" }, onConflict: [\"created_by\"]) { created } }", Value::Null, ("POST", "/api/v1/data/project?on_conflict=created_by", json!({ "name": "x" }))),
            ("mutation($id: ID!) { delete_project(id: $id) }", json!({ "id": project }), ("DELETE", "PROJECT", Value::Null)),
        ] {
            let path = path.replace("PROJECT", &format!("/api/v1/data/project/{project}"));
            let body = (!body.is_null()).then_some(body);
            let rest = server.call_as(Some(&admin.token), method, &path, body).await;
            assert!((400..500).contains(&rest.status), "{path}: {}", rest.text);
            let rest = rest.json();
            let answer = send(&server, Some(&admin.token), query, variables.clone()).await;
            let extensions = answer.json()["errors"][0]["extensions"].clone();
            assert_eq!((&extensions["code"], &extensions["field"]), (&rest["error"], &rest["field"]), "{query} {variables}: {} / {rest}", answer.text);
        }
        // A field cannot be set and incremented at once.
        let both = json!({ "id": task, "input": { "priority": 1 }, "by": { "priority": 1 } });
        assert_eq!(codes(&server, Some(&admin.token), update, both).await, ["INVALID_ATOMIC_OP"]);
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 2);
    }
}

on_both_engines! {
    async fn the_ids_of_many_records_are_not_repeated_without_a_bound(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", "1048576").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let tags: Vec<Value> = (0..1000).map(|number| json!({ "label": format!("t{number}") })).collect();
        assert_eq!(admin.post("/api/v1/data/tag/bulk", json!({ "data": tags })).await.status, 201);
        let deletion = |aliases: usize| {
            let fields: String = (0..aliases).map(|number| format!("a{number}: ids ")).collect();
            format!("mutation {{ delete_tag_many(where: {{ label: {{ ilike: \"t\" }} }}, dryRun: true) {{ count {fields} }} }}")
        };
        let twice = data(&admin, &deletion(2), Value::Null).await["delete_tag_many"].clone();
        assert_eq!((&twice["count"], &twice["a0"]), (&json!(1000), &twice["a1"]));
        assert_eq!(codes(&server, Some(&admin.token), &deletion(30), Value::Null).await, ["answer_too_large"]);
    }
}
