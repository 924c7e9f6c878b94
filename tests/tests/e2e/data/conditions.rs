//! Conditions: their meaning, the routes that accept them, and the rights that they need.

mod excluded;
mod keys;
mod many;
mod nulls;
pub(crate) mod plans;
mod refused;

use std::collections::BTreeSet;

use blockbase_tests::{Admin, Answer, on_both_engines, test_block};
use serde_json::{Value, json};

use crate::mcp::Client;

/// Encodes a text for a query string, with `%` and two digits for special characters.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Defines `task` (project, tags), `project` (owner), `person` (boss), `card` (one per person) and `label`.
async fn define(admin: &Admin<'_>) {
    admin
        .define(
            "task",
            json!([
                { "name": "title", "type": "text" },
                { "name": "amount", "type": "decimal", "scale": 2 },
                { "name": "count", "type": "big_integer" },
                { "name": "done", "type": "boolean" },
                { "name": "due", "type": "date" },
                { "name": "at", "type": "datetime" },
                { "name": "hour", "type": "time" },
                { "name": "state", "type": "enum", "options": ["open", "closed"] },
                { "name": "kinds", "type": "multi_enum", "options": ["a", "b", "c"] },
                { "name": "extra", "type": "json" },
                { "name": "code", "type": "uuid" },
            ]),
        )
        .await;
    for object in ["project", "person", "card", "label"] {
        admin.define(object, json!([{ "name": "name", "type": "text" }])).await;
    }
    for (name, kind, source, target) in [
        ("project", "many_to_one", "task", "project"),
        ("owner", "many_to_one", "project", "person"),
        ("boss", "many_to_one", "person", "person"),
        ("holder", "one_to_one", "card", "person"),
        ("tags", "many_to_many", "task", "label"),
    ] {
        admin.relate(json!({ "name": name, "kind": kind, "source": source, "target": target })).await;
    }
}

/// Task `a` belongs to a project with an owner, `b` to a project without an owner, and `c` to no project. `a` has both tags, `b`
/// has one tag, `c` has none.
async fn fill(admin: &Admin<'_>) {
    let boss = admin.make("person", json!({ "name": "Zoë" })).await;
    let ann = admin.make("person", json!({ "name": "Ann", "boss_id": boss })).await;
    admin.make("card", json!({ "name": "blue", "holder_id": ann })).await;
    let house = admin.make("project", json!({ "name": "House", "owner_id": ann })).await;
    let boat = admin.make("project", json!({ "name": "Boat" })).await;
    let (red, green) = (admin.make("label", json!({ "name": "red" })).await, admin.make("label", json!({ "name": null })).await);
    let a = json!({
        "title": "a", "amount": "1.10", "count": 9_007_199_254_740_993_i64, "done": true, "due": "1970-01-01", "at": "1970-01-01T00:00:00Z",
        "hour": "12:00", "state": "open", "kinds": ["a", "b"], "extra": {}, "code": "20000000-0000-4000-8000-00000000000a", "project_id": house,
    });
    let a = admin.make("task", a).await;
    let b = json!({ "title": "b", "amount": "-0.05", "count": 0, "done": false, "due": "1969-12-31", "at": "1969-12-31T23:59:59.999Z", "kinds": [], "project_id": boat });
    let b = admin.make("task", b).await;
    admin.make("task", json!({ "title": "c" })).await;
    for (task, labels) in [(a, json!([red, green])), (b, json!([green]))] {
        admin.post(&format!("/api/v1/data/task/{task}/links/tags"), json!({ "ids": labels })).await.data();
    }
}

/// Sends a condition, which is JSON text, to all routes of REST that accept a condition.
async fn ask(who: &Admin<'_>, object: &str, condition: &str) -> [Answer; 4] {
    let path = format!("/api/v1/data/{object}");
    let encoded = encoded(condition);
    let query = who.request("POST", &format!("{path}/query")).header("content-type", "application/json");
    let [list, aggregate, export, query] = [
        who.request("GET", &format!("{path}?pageSize=100&sort=created_at&where={encoded}")),
        who.request("GET", &format!("{path}/aggregate?fn=count&where={encoded}")),
        who.request("GET", &format!("{path}/export?format=ndjson&sort=created_at&where={encoded}")),
        query.body(format!(r#"{{ "pageSize": 100, "sort": "created_at", "where": {condition} }}"#)),
    ];
    let server = who.server;
    [server.send(list).await, server.send(aggregate).await, server.send(export).await, server.send(query).await]
}

/// The titles of the tasks that a condition finds, in the order of their creation. All surfaces have to find the same tasks.
async fn found(who: &Admin<'_>, condition: &str) -> String {
    let [list, aggregate, export, query] = ask(who, "task", condition).await;
    if list.status != 200 {
        return list.text;
    }
    assert_eq!((export.status, query.status), (200, 200), "{condition}: {} {}", export.text, query.text);
    let title = |record: &Value| record["title"].as_str().unwrap().to_owned();
    let titles = |answer: &Answer| answer.json()["data"].as_array().unwrap().iter().map(title).collect::<Vec<_>>();
    let listed = titles(&list);
    let exported: Vec<String> = export.text.lines().map(|line| title(&serde_json::from_str(line).unwrap())).collect();
    assert_eq!((titles(&query), exported), (listed.clone(), listed.clone()), "{condition}");
    let counts =
        [&list.json()["pagination"]["totalCount"], &query.json()["pagination"]["totalCount"], &aggregate.data()["value"]]
            .map(Value::as_u64);
    assert_eq!(counts, [Some(listed.len() as u64); 3], "{condition}");
    listed.concat()
}

/// Every surface has to refuse a condition with the same error: with one of these codes, a message that begins with `path`, and
/// the field if the code has one. Returns the differences.
async fn unrefused(who: &Admin<'_>, condition: &str, codes: &str, path: &str, field: Option<&str>) -> Option<String> {
    let answers = ask(who, "task", condition).await;
    let error = answers[0].json();
    let (code, message) = (error["error"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default());
    let is_expected = codes.split(" or ").any(|known| known == code)
        && message.starts_with(&format!("`{path}"))
        && field.is_none_or(|field| error["field"].as_str().is_some_and(|shown| shown.ends_with(field)))
        && answers.iter().all(|answer| answer.status == 400 && answer.json() == error);
    if is_expected {
        answers.iter().for_each(|answer| drop(answer.expect_error(400, code)));
        return None;
    }
    let shown: Vec<String> = answers.iter().map(|answer| format!("\n    {} {}", answer.status, answer.text)).collect();
    let excerpt: String = condition.chars().take(200).collect();
    Some(format!("\n  {excerpt}: {codes}, `{path}, {field:?} expected, not{}", shown.concat()))
}

/// A user with only these rights.
async fn user<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    let made = admin.post("/api/v1/roles", json!({ "name": format!("role_{name}"), "permissions": permissions })).await;
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": made.data()["id"] })).await;
    assert_eq!(given.status, 200, "{}", given.text);
    user
}

on_both_engines! {
    async fn conditions_mean_what_is_written(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let mut wrong = Vec::new();
        for (condition, expected) in [
            // Lists of conditions, including empty lists.
            (r#"{}"#, "abc"),
            (r#"{ "_and": [] }"#, "abc"),
            (r#"{ "_or": [] }"#, ""),
            (r#"{ "_not": {} }"#, ""),
            (r#"{ "_not": { "_or": [] } }"#, "abc"),
            (r#"{ "_or": [{}, { "_or": [] }] }"#, "abc"),
            (r#"{ "title": "a", "_or": [{ "title": "b" }] }"#, ""),
            (r#"{ "_or": [{ "title": "a" }, { "title": "b", "done": false }] }"#, "ab"),
            (r#"{ "_and": [{ "_or": [{ "title": "a" }, { "title": "b" }] }, { "_not": { "title": "a" } }] }"#, "b"),
            // Operators, their aliases, and several operators on one field.
            (r#"{ "title": { "eq": "a", "==": "b" } }"#, ""),
            (r#"{ "amount": { "gte": -0.05, "lt": 1.1 } }"#, "b"),
            (r#"{ "amount": { ">=": "-0.05", "<=": "1.10" } }"#, "ab"),
            (r#"{ "amount": { "GT": -0.05 } }"#, "a"),
            (r#"{ "title": { "<>": "a" } }"#, "bc"),
            (r#"{ "title": { "notin": ["a"] } }"#, "bc"),
            (r#"{ "title": { "Contains": "A" } }"#, "a"),
            (r#"{ "title": { "like": "A" } }"#, ""),
            (r#"{ "title": { "like": "%" } }"#, ""),
            // Null is an ordinary value, so every test is true or false.
            (r#"{ "amount": null }"#, "c"),
            (r#"{ "amount": { "eq": null } }"#, "c"),
            (r#"{ "amount": { "neq": null } }"#, "ab"),
            (r#"{ "amount": { "neq": 1.1 } }"#, "bc"),
            (r#"{ "_not": { "amount": 1.1 } }"#, "bc"),
            (r#"{ "_not": { "amount": { "gt": 0 } } }"#, "bc"),
            (r#"{ "_not": { "amount": { "lte": 0 } } }"#, "ac"),
            (r#"{ "_not": { "state": { "like": "o" } } }"#, "bc"),
            (r#"{ "amount": { "in": [null, 1.1] } }"#, "ac"),
            (r#"{ "amount": { "nin": [null, 1.1] } }"#, "b"),
            (r#"{ "amount": { "in": [] } }"#, ""),
            (r#"{ "amount": { "nin": [] } }"#, "abc"),
            (r#"{ "amount": { "nin": [1.1] } }"#, "bc"),
            (r#"{ "extra": { "is_null": true } }"#, "bc"),
            (r#"{ "extra": { "notnull": true } }"#, "a"),
            (r#"{ "title": "null" }"#, ""),
            // Values follow the type of their column, and keep every digit.
            (r#"{ "amount": 1.1000000000000000000000001 }"#, ""),
            (r#"{ "amount": { "neq": 1.1000000000000000000000001 } }"#, "abc"),
            (r#"{ "amount": { "lt": 1.1000000000000000000000001 } }"#, "ab"),
            (r#"{ "amount": { "in": ["1.101", "1.1"] } }"#, "a"),
            (r#"{ "count": 9007199254740993 }"#, "a"),
            (r#"{ "count": 9007199254740992 }"#, ""),
            (r#"{ "count": "9007199254740993" }"#, "a"),
            (r#"{ "done": "true" }"#, "a"),
            (r#"{ "done": false }"#, "b"),
            (r#"{ "due": { "lt": "1970-01-01" } }"#, "b"),
            (r#"{ "at": "1970-01-01T02:00:00+02:00" }"#, "a"),
            (r#"{ "hour": { "lte": "12:00" } }"#, "a"),
            (r#"{ "code": "2000000000004000800000000000000A" }"#, "a"),
            (r#"{ "created_at": { "gt": "2020-01-01T00:00:00Z" }, "title": "c" }"#, "c"),
            // Lists of texts.
            (r#"{ "kinds": "a" }"#, "a"),
            (r#"{ "kinds": { "neq": "a" } }"#, "bc"),
            (r#"{ "kinds": { "in": ["b", "c"] } }"#, "a"),
            (r#"{ "kinds": { "nin": ["b", "c"] } }"#, "bc"),
            (r#"{ "kinds": null }"#, "c"),
            (r#"{ "kinds": { "like": "b" } }"#, "a"),
            (r#"{ "_not": { "kinds": { "ilike": "B" } } }"#, "bc"),
            // If a related row is absent, its cells are null.
            (r#"{ "project": {} }"#, "abc"),
            (r#"{ "project": { "name": "House" } }"#, "a"),
            (r#"{ "project.name": { "neq": "House" } }"#, "bc"),
            (r#"{ "_not": { "project.name": "House" } }"#, "bc"),
            (r#"{ "project": { "name": null } }"#, "c"),
            (r#"{ "project.id": null }"#, "c"),
            (r#"{ "project.owner.name": { "ilike": "an" } }"#, "a"),
            (r#"{ "project": { "owner": { "name": { "ilike": "an" } } } }"#, "a"),
            (r#"{ "project.owner": { "name": null } }"#, "bc"),
            (r#"{ "project": { "owner.boss.name": null } }"#, "bc"),
            (r#"{ "project.owner.card_by_holder": { "name": "blue" } }"#, "a"),
            (r#"{ "project.owner.card_by_holder.name": { "neq": "blue" } }"#, "bc"),
            (r#"{ "project.task_by_project": { "none": {} } }"#, "c"),
            (r#"{ "project.task_by_project": { "every": { "title": "b" } } }"#, "bc"),
            // If there are no related rows, `some` is false, and `none` and `every` are true.
            (r#"{ "tags": { "some": {} } }"#, "ab"),
            (r#"{ "tags": { "none": {} } }"#, "c"),
            (r#"{ "tags": { "every": { "_or": [] } } }"#, "c"),
            (r#"{ "tags": { "some": { "name": "red" } } }"#, "a"),
            (r#"{ "tags": { "none": { "name": "red" } } }"#, "bc"),
            (r#"{ "tags": { "every": { "name": null } } }"#, "bc"),
            (r#"{ "tags": { "every": { "name": { "neq": "red" } } } }"#, "bc"),
            (r#"{ "_not": { "tags": { "some": { "name": "red" } } } }"#, "bc"),
            (r#"{ "tags": { "some": { "name": "red" }, "every": { "name": { "is_not_null": true } } } }"#, ""),
            (r#"{ "tags": { "some": { "tags": { "some": { "title": "a" } } } } }"#, "ab"),
        ] {
            let titles = found(&admin, condition).await;
            if titles != expected {
                wrong.push(format!("\n  {condition}: {expected} expected, not {titles}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.concat());
    }

    async fn variables_stand_for_the_caller_and_the_time(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        admin.make("task", json!({ "title": "$x" })).await;
        admin.make("task", json!({ "title": "role_ann" })).await;
        let ann = user(&admin, "ann", json!([{ "resource": "task", "actions": ["read", "create"] }])).await;
        ann.make("task", json!({ "title": "own" })).await;
        for (condition, expected) in [
            (r#"{ "title": "$$x" }"#, "$x"),
            (r#"{ "title": { "in": ["$$x", "a"] } }"#, "a$x"),
            (r#"{ "title": { "like": "$$" } }"#, "$x"),
            (r#"{ "created_by": "$user.id" }"#, "own"),
            (r#"{ "created_by": { "in": ["$user.id"] } }"#, "own"),
            (r#"{ "title": { "in": "$user.roles" } }"#, "role_ann"),
            (r#"{ "title": { "nin": "$user.roles" }, "created_by": "$user.id" }"#, "own"),
            (r#"{ "created_at": { "gt": "$now" } }"#, ""),
            (r#"{ "at": { "lt": "$now" } }"#, "ab"),
            (r#"{ "due": { "lt": "$today" } }"#, "ab"),
        ] {
            assert_eq!(found(&ann, condition).await, expected, "{condition}");
        }
        let mut wrong = Vec::new();
        for (condition, code, path) in [
            (r#"{ "title": "$x" }"#, "invalid_request", "where.title"),
            (r#"{ "title": "$" }"#, "invalid_request", "where.title"),
            (r#"{ "title": "$user" }"#, "invalid_request", "where.title"),
            (r#"{ "title": "$USER.ID" }"#, "invalid_request", "where.title"),
            (r#"{ "title": { "like": "$x" } }"#, "invalid_request", "where.title.like"),
            (r#"{ "title": { "in": ["a", "$x"] } }"#, "invalid_request", "where.title.in[1]`"),
            (r#"{ "title": { "in": "$user.id" } }"#, "invalid_request", "where.title.in"),
            (r#"{ "title": { "in": ["a", "$user.roles"] } }"#, "invalid_request", "where.title.in[1]"),
            (r#"{ "title": "$user.roles" }"#, "invalid_request", "where.title"),
            (r#"{ "title": { "neq": "$user.roles" } }"#, "invalid_request", "where.title.neq"),
            (r#"{ "amount": "$now" }"#, "invalid_value", "where.amount"),
            (r#"{ "title": "$key.id" }"#, "invalid_value", "where.title"),
            // The email address was never verified.
            (r#"{ "title": "$user.email" }"#, "invalid_value", "where.title"),
        ] {
            let field = (code == "invalid_value").then_some("");
            wrong.extend(unrefused(&ann, condition, code, path, field).await);
        }
        assert!(wrong.is_empty(), "{}", wrong.concat());

        // A key counts as its user, but has only the rights of its own role.
        let role = admin.post("/api/v1/roles", json!({ "name": "a", "permissions": [{ "resource": "task", "actions": ["read", "create"] }] })).await.data();
        let ann_id = ann.get("/api/v1/me").await.json()["userId"].clone();
        let key = admin.post("/api/v1/api-keys", json!({ "name": "key", "roleId": role["id"], "userId": ann_id })).await.json();
        let by_key = server.with_token(key["key"].as_str().unwrap().to_owned());
        assert_eq!(found(&by_key, r#"{ "created_by": "$user.id" }"#).await, "own");
        assert_eq!(found(&by_key, r#"{ "title": { "in": "$user.roles" } }"#).await, "a");
        assert_eq!(found(&by_key, r#"{ "title": { "neq": "$key.id" }, "created_by": "$user.id" }"#).await, "own");

        // Without a credential, there is no user.
        let public = json!({ "permissions": [{ "resource": "task", "actions": ["read"] }] });
        assert_eq!(admin.patch("/api/v1/roles/public", public).await.status, 200);
        let address = format!("/api/v1/data/task?where={}", encoded(r#"{ "created_by": "$user.id" }"#));
        assert_eq!(server.call("GET", &address, None).await.expect_error(400, "invalid_value")["field"], "created_by");
        let address = format!("/api/v1/data/task?where={}", encoded(r#"{ "title": "$$x" }"#));
        assert_eq!(server.call("GET", &address, None).await.data().as_array().unwrap().len(), 1);
    }

    async fn a_query_takes_what_a_list_takes(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let path = "/api/v1/data/task/query";
        for (body, list) in [
            (json!({}), ""),
            (json!({ "search": "a" }), "search=a"),
            (json!({ "filters": [{ "field": "title", "value": "a" }] }), "title=a"),
            (json!({ "filters": [{ "field": "title", "operator": "neq", "value": "a" }, { "field": "amount", "operator": "is_null" }] }), "title[neq]=a&amount[is_null]=1"),
            (json!({ "sort": "-title,amount", "page": 2, "pageSize": 1 }), "sort=-title,amount&page=2&pageSize=1"),
            (json!({ "sort": "title", "limit": 1, "offset": 1, "count": "none" }), "sort=title&limit=1&offset=1&count=none"),
            (json!({ "select": "title,done", "expand": "project.owner,tags", "sort": "title" }), "select=title,done&expand=project.owner,tags&sort=title"),
            (json!({ "expand": "nothing" }), "expand=nothing"),
            (json!({ "where": { "done": false }, "search": "b", "filters": [{ "field": "amount", "operator": "lt", "value": 0 }] }), "done=false"),
            (json!({ "where": { "done": false }, "search": "a" }), "done=false&search=a"),
            (json!({ "where": { "done": false }, "filters": [{ "field": "title", "value": "a" }] }), "done=false&title=a"),
        ] {
            let (answer, listed) = (admin.post(path, body.clone()).await, admin.get(&format!("/api/v1/data/task?{list}")).await);
            assert_eq!((answer.status, &answer.text), (200, &listed.text), "{body}");
        }
        let where_and_filter = format!("/api/v1/data/task?where={}&title=a", encoded(r#"{ "done": false }"#));
        assert_eq!(admin.get(&where_and_filter).await.data(), json!([]));
        // These are the parameters of the list, as text. In JSON, a filter's value has its own type.
        assert_eq!(admin.post(path, json!({ "filters": [{ "field": "title", "value": "null" }] })).await.data(), json!([]));
        for (body, code) in [
            (json!([]), "invalid_request"),
            (json!({ "wheer": {} }), "invalid_request"),
            (json!({ "fn": "count" }), "invalid_request"),
            (json!({ "where": [] }), "invalid_request"),
            (json!({ "where": "{}" }), "invalid_request"),
            (json!({ "filters": {} }), "invalid_request"),
            (json!({ "filters": [{ "operator": "eq", "value": 1 }] }), "invalid_request"),
            (json!({ "filters": [{ "field": "nothing", "value": 1 }] }), "unknown_field"),
            (json!({ "filters": [{ "field": "title", "operator": "near", "value": 1 }] }), "invalid_request"),
            (json!({ "page": 0 }), "invalid_request"),
            (json!({ "page": "x" }), "invalid_request"),
            (json!({ "sort": 1 }), "invalid_request"),
            (json!({ "sort": "nothing" }), "unknown_field"),
            (json!({ "select": ["nothing"] }), "invalid_request"),
        ] {
            let answer = admin.post(path, body.clone()).await;
            assert_eq!(answer.status, 400, "{body}: {}", answer.text);
            answer.expect_error(400, code);
        }
        // The query string has no parameters.
        for query in ["where=%7B%22title%22:%22a%22%7D", "title=a", "limit=1", "count=none"] {
            let refused = admin.post(&format!("{path}?{query}"), json!({})).await.expect_error(400, "invalid_request");
            let name = query.split('=').next().unwrap();
            assert_eq!(refused["message"], format!("There is no parameter `{name}` here. This operation has none."));
            assert_eq!(refused["field"], name);
        }
        for twice in [r#"{ "where": {}, "where": {} }"#, r#"{ "limit": 1, "limit": 2 }"#, r#"{ "filters": [{ "field": "title", "field": "done", "value": 1 }] }"#] {
            let request = admin.request("POST", path).header("content-type", "application/json").body(twice);
            server.send(request).await.expect_error(400, "invalid_request");
        }
        admin.post("/api/v1/data/nothing/query", json!({})).await.expect_error(404, "not_found");
        let reader = user(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
        assert_eq!(reader.post(path, json!({ "where": { "title": "a" } })).await.json()["pagination"]["totalCount"], 1);
        let writer = user(&admin, "writer", json!([{ "resource": "task", "actions": ["create", "update", "delete"] }])).await;
        writer.post(path, json!({})).await.expect_error(403, "forbidden");
    }

    async fn null_is_null_and_a_string_is_text(server: Server) {
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }, { "name": "number", "type": "integer" }])).await;
        admin.make("note", json!({ "text": "null", "number": 1 })).await;
        admin.make("note", json!({ "text": null, "number": 2 })).await;
        let numbers = |page: &Value| page["data"].as_array().unwrap_or_else(|| panic!("{page}")).iter().map(|row| row["number"].clone()).collect::<Vec<_>>();
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let mcp = Client::of(&admin).begin().await;
        for (value, expected) in [(json!("null"), 1), (Value::Null, 2)] {
            let by_condition = json!({ "where": { "text": value } });
            assert_eq!(numbers(&admin.post("/api/v1/data/note/query", by_condition).await.json()), [expected], "{value}");
            let filters = json!([{ "field": "text", "operator": "eq", "value": value }]);
            let body = json!({ "filters": filters });
            assert_eq!(numbers(&admin.post("/api/v1/data/note/query", body).await.json()), [expected], "{value}");
            for arguments in [json!({ "filters": filters }), json!({ "where": { "text": value } })] {
                let mut arguments = arguments;
                arguments["object_name"] = json!("note");
                let called = mcp.call("query_data", arguments.clone()).await;
                let page: Value = serde_json::from_str(&called.text).unwrap();
                assert_eq!(numbers(&page), [expected], "{arguments}");
            }
            for query in [json!({ "filters": filters }), json!({ "where": { "text": value } })] {
                let input = json!({ "op": "query", "object": "note", "json": query.to_string() });
                let outcome = admin.post("/api/v1/blocks/parity/actions/run", input).await.data();
                assert_eq!(numbers(&outcome["done"]), [expected], "{query} in a block");
            }
            for argument in [format!("filter: [{{ field: \"text\", operator: eq, value: {value} }}]"), format!("where: {{ text: {{ eq: {value} }} }}")] {
                let query = format!("{{ note({argument}) {{ data {{ number }} }} }}");
                let answer = admin.post("/api/v1/graphql", json!({ "query": query })).await.json();
                assert_eq!(numbers(&answer["data"]["note"]), [expected], "{query}: {answer}");
            }
        }
        // A condition that is null counts as left out.
        let every = json!({ "where": null, "sort": "number" });
        assert_eq!(numbers(&admin.post("/api/v1/data/note/query", every.clone()).await.json()), [1, 2]);
        let called = mcp.call("query_data", json!({ "object_name": "note", "where": null, "sort": "number" })).await;
        assert_eq!(numbers(&serde_json::from_str(&called.text).unwrap()), [1, 2]);
        let called = mcp.call("aggregate_data", json!({ "object_name": "note", "where": null, "fn": "count" })).await;
        let counted: Value = serde_json::from_str(&called.text).unwrap();
        assert_eq!(counted["data"]["value"], 2, "{counted}");
        let count = json!({ "where": null, "fn": "count" });
        for (op, query, found) in [("query", every, "/done/data/1/number"), ("aggregate", count, "/done/filteredCount")] {
            let input = json!({ "op": op, "object": "note", "json": query.to_string() });
            let outcome = admin.post("/api/v1/blocks/parity/actions/run", input).await.data();
            assert_eq!(outcome.pointer(found), Some(&json!(2)), "{op} in a block: {outcome}");
        }
        // In a query string there is only text, so `null` means null.
        assert_eq!(numbers(&admin.get("/api/v1/data/note?text=null").await.json()), [2]);
    }

    async fn conditions_follow_circles_of_rows(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(admin.make("person", json!({ "name": name })).await);
        }
        // `a` and `b` are each other's boss, and `c` is its own.
        for (person, boss) in [(0, 1), (1, 0), (2, 2)] {
            admin.patch(&format!("/api/v1/data/person/{}", ids[person]), json!({ "boss_id": ids[boss] })).await.data();
        }
        for (condition, expected) in [
            (json!({ "boss.boss.name": "a" }), "a"),
            (json!({ "boss.boss.boss.name": "a" }), "b"),
            (json!({ "boss.boss.boss.name": "c" }), "c"),
            (json!({ "person_by_boss": { "some": { "person_by_boss": { "some": { "name": "a" } } } } }), "a"),
            (json!({ "person_by_boss": { "none": { "name": "c" } } }), "ab"),
            (json!({ "person_by_boss": { "every": { "boss": { "person_by_boss": { "some": { "name": "b" } } } } } }), "a"),
        ] {
            let page = admin.post("/api/v1/data/person/query", json!({ "where": condition, "sort": "name" })).await.json();
            let rows = page["data"].as_array().unwrap_or_else(|| panic!("{condition}: {page}"));
            assert_eq!(rows.iter().map(|row| row["name"].as_str().unwrap()).collect::<String>(), expected, "{condition}");
            assert_eq!(page["pagination"]["totalCount"], expected.len(), "{condition}");
        }
    }

    async fn a_field_that_is_called_where_stays_a_filter(server: Server) {
        let admin = server.admin().await;
        admin.define("visit", json!([{ "name": "where", "type": "text" }])).await;
        for place in ["here", "{}", "there"] {
            admin.make("visit", json!({ "where": place })).await;
        }
        let places = |answer: Answer| answer.data().as_array().unwrap().iter().map(|record| record["where"].clone()).collect::<Vec<_>>();
        assert_eq!(places(admin.get("/api/v1/data/visit?where=here").await), ["here"]);
        assert_eq!(places(admin.get("/api/v1/data/visit?where=%7B%7D").await), ["{}"]);
        assert_eq!(places(admin.get("/api/v1/data/visit?where[neq]=here&sort=where").await), ["there", "{}"]);
        assert_eq!(admin.get("/api/v1/data/visit/aggregate?fn=count&where=%7B%7D").await.data()["value"], 1);
        assert_eq!(admin.get("/api/v1/data/visit/export?format=ndjson&where=here").await.text.lines().count(), 1);
        let condition = json!({ "where": { "_or": [{ "where": "here" }, { "where": { "like": "{" } }] }, "sort": "where" });
        assert_eq!(places(admin.post("/api/v1/data/visit/query", condition).await), ["here", "{}"]);
        // The other surfaces take no filters in a query string, so `where` is a condition there.
        let mcp = Client::of(&admin).begin().await;
        let called = mcp.call("query_data", json!({ "object_name": "visit", "where": { "where": "here" } })).await;
        let page: Value = serde_json::from_str(&called.text).unwrap();
        assert_eq!((&page["pagination"]["totalCount"], &page["data"][0]["where"]), (&json!(1), &json!("here")), "{page}");
        let query = "{ visit(where: { where: { eq: \"here\" } }) { data { where } } visit_aggregate(fn: count, where: { where: { neq: \"here\" } }) { value } }";
        let answer = admin.post("/api/v1/graphql", json!({ "query": query })).await.json();
        assert_eq!(answer["data"], json!({ "visit": { "data": [{ "where": "here" }] }, "visit_aggregate": { "value": 2 } }), "{answer}");
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        for (op, query, found, expected) in [
            ("query", json!({ "where": { "where": "here" } }), "/done/data/0/where", json!("here")),
            ("query", json!({ "where": { "where": "here" } }), "/done/pagination/totalCount", json!(1)),
            ("aggregate", json!({ "fn": "count", "where": { "where": { "neq": "here" } } }), "/done/value", json!(2)),
        ] {
            let input = json!({ "op": op, "object": "visit", "json": query.to_string() });
            let outcome = admin.post("/api/v1/blocks/parity/actions/run", input).await.data();
            assert_eq!(outcome.pointer(found), Some(&expected), "{query} in a block: {outcome}");
        }
        let chosen = format!("/api/v1/data/visit/bulk?dryRun=true&where={}", encoded(r#"{ "where": "here" }"#));
        assert_eq!(admin.delete(&chosen).await.json()["count"], 1);
        admin.delete("/api/v1/data/visit/bulk?dryRun=true&where=here").await.expect_error(400, "invalid_request");
    }

    async fn conditions_reach_what_their_caller_may_read(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let read = |object: &str| json!({ "resource": object, "actions": ["read"] });
        let own = |object: &str| json!({ "resource": object, "actions": ["read", "create"], "rowPolicy": "own" });

        // Without the right to read the object that a relation leads to, the condition is refused. The other parts of the
        // condition do not matter.
        let some = user(&admin, "some", json!([read("task"), read("project")])).await;
        let mut messages = BTreeSet::new();
        for condition in [
            r#"{ "project.owner": {} }"#,
            r#"{ "project.owner.name": "Ann" }"#,
            r#"{ "_or": [{}, { "project": { "owner": { "name": "Ann" } } }] }"#,
            r#"{ "_or": [], "project": { "owner.boss": { "name": "Ann" } } }"#,
            // The refusal does not show whether the object has these fields, or their types.
            r#"{ "project.owner.nothing": 1 }"#,
            r#"{ "project": { "owner": { "name": { "gte": 1 } } } }"#,
            r#"{ "project.owner": { "name": { "near": 1 } } }"#,
            r#"{ "project": { "owner": 1 } }"#,
        ] {
            for answer in ask(&some, "task", condition).await {
                messages.insert(answer.expect_error(403, "forbidden")["message"].to_string());
            }
            assert_eq!(messages.len(), 1, "{condition}: {messages:?}");
        }
        for answer in ask(&some, "person", "{}").await {
            answer.expect_error(403, "forbidden");
        }
        assert_eq!(found(&some, r#"{ "project.name": "House" }"#).await, "a");

        // For hidden rows, cells are null, and to-many relations do not include the rows.
        let few = user(&admin, "few", json!([read("task"), own("project"), own("label")])).await;
        for (condition, expected) in [
            (r#"{ "project.name": null }"#, "abc"),
            (r#"{ "project.name": "House" }"#, ""),
            (r#"{ "project.id": null, "project_id": { "neq": null } }"#, "ab"),
            (r#"{ "project.task_by_project": { "some": {} } }"#, ""),
            (r#"{ "tags": { "some": {} } }"#, ""),
            (r#"{ "tags": { "every": { "name": "nothing" } } }"#, "abc"),
            (r#"{ "tags": { "none": { "name": "red" } } }"#, "abc"),
            (r#"{ "_not": { "tags": { "some": { "name": "red" } } } }"#, "abc"),
        ] {
            assert_eq!(found(&few, condition).await, expected, "{condition}");
        }
        let project = few.make("project", json!({ "name": "Own" })).await;
        admin.make("task", json!({ "title": "d", "project_id": project })).await;
        assert_eq!(found(&few, r#"{ "project.name": { "neq": null } }"#).await, "d");
        assert_eq!(found(&few, r#"{ "project.task_by_project": { "some": { "title": "d" } } }"#).await, "d");
    }
}
