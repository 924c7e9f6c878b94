//! Conditions that are malformed or too large. The error names the place of the fault.

use blockbase_tests::{on_both_engines, test_block};
use serde_json::{Value, json};

use crate::data::conditions::{define, encoded, fill, found, unrefused};
use crate::mcp::Client;

/// Either code is allowed, because the specification does not say which of them applies.
const EITHER: &str = "invalid_request or invalid_value";

/// `depth` times `open`, then the middle, then `depth` times `close`.
fn nested(depth: usize, open: &str, middle: &str, close: &str) -> String {
    format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
}

/// A condition with `count` tests.
fn any_of(count: usize) -> String {
    format!(r#"{{ "_or": [{}] }}"#, vec![r#"{ "title": "a" }"#; count].join(","))
}

/// `count` times `item`, with commas between.
fn many(item: &str, count: usize) -> String {
    vec![item; count].join(",")
}

/// A condition with `count` relation keys.
fn steps(count: usize) -> String {
    format!(r#"{{ "_and": [{}] }}"#, many(r#"{ "project": {} }"#, count))
}

/// A condition with a list of `count` values.
fn within(count: usize) -> String {
    format!(r#"{{ "count": {{ "in": [{}] }} }}"#, many("0", count))
}

/// The code of an error, and the path at the beginning of its message.
fn fault(error: &Value) -> (String, String) {
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("error").to_lowercase(), text("message").split('`').nth(1).unwrap_or_default().to_owned())
}

on_both_engines! {
    async fn a_wrong_condition_is_refused_with_its_place(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let mut wrong = Vec::new();
        let invalid = "invalid_request";
        for (condition, code, path) in [
            // Conditions of a wrong form.
            ("[]", invalid, "where`"),
            ("1", invalid, "where`"),
            ("\"title\"", invalid, "where`"),
            (r#"{ "_and": {} }"#, invalid, "where._and`"),
            (r#"{ "_or": null }"#, invalid, "where._or`"),
            (r#"{ "_or": [{}, 1] }"#, invalid, "where._or[1]`"),
            (r#"{ "_or": [[]] }"#, invalid, "where._or[0]`"),
            (r#"{ "_not": [] }"#, invalid, "where._not`"),
            (r#"{ "_not": true }"#, invalid, "where._not`"),
            (r#"{ "_xor": [] }"#, invalid, "where._xor`"),
            (r#"{ "_": {} }"#, invalid, "where._`"),
            (r#"{ "_AND": [] }"#, invalid, "where._AND`"),
            (r#"{ "_not": { "_or": [{ "amount": { "gte": 1 } }, { "amount": { "near": 1 } }] } }"#, invalid, "where._not._or[1].amount.near`"),
            // Keys that occur twice.
            (r#"{ "title": "a", "title": "a" }"#, invalid, "where"),
            (r#"{ "title": { "eq": "a", "eq": "a" } }"#, invalid, "where.title"),
            (r#"{ "title": "a", "\u0074itle": "a" }"#, invalid, "where"),
            (r#"{ "_and": [], "_and": [] }"#, invalid, "where"),
            (r#"{ "_or": [{ "tags": { "some": {}, "some": {} } }] }"#, invalid, "where._or[0].tags"),
            // Wrong fields and relations.
            (r#"{ "nothing": 1 }"#, "unknown_field", "where.nothing`"),
            (r#"{ "": 1 }"#, "unknown_field", "where."),
            (r#"{ "project.nothing": 1 }"#, "unknown_field", "where.project.nothing`"),
            (r#"{ "project": { "nothing": 1 } }"#, "unknown_field", "where.project.nothing`"),
            (r#"{ "nothing.name": 1 }"#, "unknown_field", "where.nothing"),
            (r#"{ "task_by_project": { "some": {} } }"#, "unknown_field", "where.task_by_project`"),
            (r#"{ "tags": { "every": { "title": "a" } } }"#, "unknown_field", "where.tags.every.title`"),
            (r#"{ "project": { "some": {} } }"#, "unknown_field", "where.project.some`"),
            (r#"{ "title.name": 1 }"#, "invalid_request or unknown_field", "where.title"),
            (r#"{ "tags.name": "red" }"#, "invalid_request or unknown_field", "where.tags"),
            (r#"{ "tags.some": {} }"#, "invalid_request or unknown_field", "where.tags"),
            (r#"{ "project.": {} }"#, "unknown_field", "where.project."),
            (r#"{ ".title": 1 }"#, "unknown_field", "where."),
            (r#"{ "project": null }"#, invalid, "where.project`"),
            (r#"{ "project": "x" }"#, invalid, "where.project`"),
            (r#"{ "project": [] }"#, invalid, "where.project`"),
            (r#"{ "tags": {} }"#, invalid, "where.tags`"),
            (r#"{ "tags": null }"#, invalid, "where.tags`"),
            (r#"{ "tags": { "name": "red" } }"#, invalid, "where.tags"),
            (r#"{ "tags": { "some": [] } }"#, invalid, "where.tags.some`"),
            (r#"{ "tags": { "none": null } }"#, invalid, "where.tags.none`"),
            (r#"{ "tags": { "SOME": {} } }"#, invalid, "where.tags"),
            // Wrong operators.
            (r#"{ "amount": {} }"#, invalid, "where.amount`"),
            (r#"{ "amount": { "near": 1 } }"#, invalid, "where.amount.near`"),
            (r#"{ "amount": { "": 1 } }"#, invalid, "where.amount."),
            (r#"{ "amount": { "like": "1" } }"#, invalid, "where.amount.like`"),
            (r#"{ "extra": { "eq": {} } }"#, invalid, "where.extra"),
            (r#"{ "extra": 1 }"#, invalid, "where.extra"),
            (r#"{ "kinds": { "gt": "a" } }"#, invalid, "where.kinds.gt`"),
            (r#"{ "amount": { "in": 1 } }"#, invalid, "where.amount.in`"),
            (r#"{ "amount": { "in": "1,2" } }"#, invalid, "where.amount.in`"),
            (r#"{ "amount": { "nin": null } }"#, invalid, "where.amount.nin`"),
            (r#"{ "amount": { "in": { "0": 1 } } }"#, invalid, "where.amount.in`"),
            (r#"{ "amount": { "is_null": false } }"#, invalid, "where.amount.is_null`"),
            (r#"{ "amount": { "is_not_null": "true" } }"#, invalid, "where.amount.is_not_null`"),
            (r#"{ "amount": { "gte": null } }"#, EITHER, "where.amount.gte`"),
            (r#"{ "title": { "like": 1 } }"#, EITHER, "where.title.like`"),
            (r#"{ "title": { "ilike": null } }"#, EITHER, "where.title.ilike`"),
            (r#"{ "title": { "like": ["a"] } }"#, EITHER, "where.title.like`"),
        ] {
            let field = (code == "unknown_field").then_some("");
            wrong.extend(unrefused(&admin, condition, code, path, field).await);
        }
        // Wrong values.
        for (condition, path, field) in [
            (r#"{ "title": 1 }"#, "where.title`", "title"),
            (r#"{ "title": { "eq": true } }"#, "where.title.eq`", "title"),
            (r#"{ "title": "\u0000" }"#, "where.title`", "title"),
            (r#"{ "title": { "like": "a\u0000" } }"#, "where.title.like`", "title"),
            (r#"{ "amount": { "lt": 1e400 } }"#, "where.amount.lt`", "amount"),
            (r#"{ "count": 1.5 }"#, "where.count`", "count"),
            (r#"{ "amount": "x" }"#, "where.amount`", "amount"),
            (r#"{ "amount": true }"#, "where.amount`", "amount"),
            (r#"{ "amount": { "in": [1, "x"] } }"#, "where.amount.in[1]`", "amount"),
            (r#"{ "count": "null" }"#, "where.count`", "count"),
            (r#"{ "done": 1 }"#, "where.done`", "done"),
            (r#"{ "done": "yes" }"#, "where.done`", "done"),
            (r#"{ "due": "1970-1-1" }"#, "where.due`", "due"),
            (r#"{ "due": 0 }"#, "where.due`", "due"),
            (r#"{ "at": { "gt": "yesterday" } }"#, "where.at.gt`", "at"),
            (r#"{ "hour": { "lt": 12 } }"#, "where.hour.lt`", "hour"),
            (r#"{ "code": "x" }"#, "where.code`", "code"),
            (r#"{ "id": "x" }"#, "where.id`", "id"),
            (r#"{ "project_id": { "neq": "x" } }"#, "where.project_id.neq`", "project_id"),
            (r#"{ "kinds": 1 }"#, "where.kinds`", "kinds"),
            (r#"{ "project.id": "x" }"#, "where.project.id`", "id"),
            (r#"{ "tags": { "some": { "name": { "nin": [1] } } } }"#, "where.tags.some.name.nin[0]`", "name"),
        ] {
            wrong.extend(unrefused(&admin, condition, "invalid_value", path, Some(field)).await);
        }
        for condition in [r#"{ "title": ["a"] }"#, r#"{ "amount": { "eq": {} } }"#, r#"{ "amount": { "in": [[1]] } }"#, r#"{ "kinds": ["a"] }"#] {
            wrong.extend(unrefused(&admin, condition, EITHER, "where.", None).await);
        }

        // The limits, each with the largest condition that it allows.
        assert_eq!(found(&admin, &any_of(100)).await, "a");
        wrong.extend(unrefused(&admin, &any_of(101), invalid, "where", None).await);
        wrong.extend(unrefused(&admin, &format!(r#"{{ "_and": [{}, {{ "amount": {{ "gte": 1, "lt": 2 }} }}] }}"#, any_of(99)), invalid, "where", None).await);
        assert_eq!(found(&admin, &nested(7, r#"{ "_not": "#, "{}", " }")).await, "");
        wrong.extend(unrefused(&admin, &nested(8, r#"{ "_not": "#, "{}", " }"), invalid, "where", None).await);
        assert_eq!(found(&admin, &nested(6, r#"{ "_and": [{}, "#, r#"{ "title": { "eq": "a" } }"#, "] }")).await, "a");
        wrong.extend(unrefused(&admin, &nested(7, r#"{ "_and": [{}, "#, r#"{ "title": { "eq": "a" } }"#, "] }"), invalid, "where", None).await);
        let dotted = |depth: usize| nested(depth, r#"{ "_not": "#, r#"{ "project.owner.boss.name": "Zoë" }"#, " }");
        assert_eq!(found(&admin, &dotted(4)).await, "a");
        wrong.extend(unrefused(&admin, &dotted(5), invalid, "where", None).await);
        assert_eq!(found(&admin, &steps(10)).await, "abc");
        wrong.extend(unrefused(&admin, &steps(11), invalid, "where", None).await);
        assert_eq!(found(&admin, &format!(r#"{{ "_and": [{}, {{ "project": {{}} }}] }}"#, many(r#"{ "project.owner.boss": {} }"#, 3))).await, "abc");
        wrong.extend(unrefused(&admin, &format!(r#"{{ "_and": [{}, {}] }}"#, steps(10), r#"{ "tags": { "some": {} } }"#), invalid, "where", None).await);
        for deep in [
            r#"{ "project.owner.boss.boss": {} }"#,
            r#"{ "project": { "owner": { "boss": { "boss": { "name": "a" } } } } }"#,
            r#"{ "project.owner": { "project_by_owner": { "some": { "owner.name": "a" } } } }"#,
        ] {
            wrong.extend(unrefused(&admin, deep, invalid, "where", None).await);
        }
        assert_eq!(found(&admin, &within(1000)).await, "b");
        wrong.extend(unrefused(&admin, &within(1001), invalid, "where.count.in", None).await);
        wrong.extend(unrefused(&admin, &nested(1000, r#"{"_not":"#, "{}", "}"), invalid, "where", None).await);
        wrong.extend(unrefused(&admin, &nested(1000, r#"{"_or":["#, "{}", "]}"), invalid, "where", None).await);
        assert!(wrong.is_empty(), "{}", wrong.concat());
        // The condition shares the limit of values with the filters.
        let list = json!((0..1000).collect::<Vec<u32>>());
        let filters = |count: usize| vec![json!({ "field": "count", "operator": "nin", "value": list }); count];
        for (filters, condition, message) in [
            (filters(10), json!({ "title": { "is_null": true } }), None),
            (filters(9), json!({ "count": { "nin": list } }), None),
            (filters(9), json!({ "count": { "nin": list }, "title": "a" }), Some("`where`: The condition and the filters")),
            (filters(10), json!({ "title": "a" }), Some("`where`: The condition and the filters")),
            (filters(11), json!({ "title": "a" }), Some("The filters of a request hold")),
        ] {
            let answer = admin.post("/api/v1/data/task/query", json!({ "filters": filters, "where": condition })).await;
            match message {
                None => assert_eq!(answer.status, 200, "{}", answer.text),
                Some(message) => {
                    let error = answer.expect_error(400, invalid);
                    assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
                }
            }
        }
        // Documents of this size fit only into a body.
        for large in [any_of(10_000), nested(100_000, "[", "", "]"), nested(100_000, r#"{"_not":"#, "{}", "}")] {
            let request = admin.request("POST", "/api/v1/data/task/query").header("content-type", "application/json");
            let error = server.send(request.body(format!(r#"{{ "where": {large} }}"#))).await.expect_error(400, invalid);
            assert!(error["message"].as_str().unwrap().starts_with("`where"), "{error}");
        }
        // Text that is not JSON can only be sent as a parameter. In a body, null counts as left out.
        let malformed = [r#"{ "title": "a" } x"#, r#"{ "title": "a", }"#, r#"{ "title": NaN }"#, "{ 'title': 1 }"];
        for text in malformed.into_iter().chain(["", "{", "title", "\u{0}", "null", " null"]) {
            for path in ["task?", "task/aggregate?fn=count&", "task/export?format=csv&"] {
                let error = admin.get(&format!("/api/v1/data/{path}where={}", encoded(text))).await.expect_error(400, invalid);
                assert!(error["message"].as_str().unwrap().starts_with("`where`"), "{text}: {error}");
            }
        }
        for (path, extra) in [("task?", ""), ("task/aggregate?fn=count&", ""), ("task/export?format=csv&", "")] {
            let twice = format!("/api/v1/data/{path}where=%7B%7D&where=%7B%7D{extra}");
            admin.get(&twice).await.expect_error(400, invalid);
        }
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 3);
    }

    async fn bulk_calls_tools_and_blocks_refuse_what_a_list_refuses(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let mcp = Client::of(&admin).begin().await;
        let send = async |method: &str, path: &str, body: String| {
            let request = admin.request(method, &format!("/api/v1/data/task/{path}")).header("content-type", "application/json");
            server.send(request.body(body)).await
        };
        let small = [
            "[]",
            "1",
            r#""{}""#,
            r#"{ "_or": [{}, 1] }"#,
            r#"{ "_xor": [] }"#,
            r#"{ "title": "a", "title": "a" }"#,
            r#"{ "_or": [{ "tags": { "some": {}, "some": {} } }] }"#,
            r#"{ "nothing": 1 }"#,
            r#"{ "project": { "nothing": 1 } }"#,
            r#"{ "project.owner.boss.boss": {} }"#,
            r#"{ "tags": {} }"#,
            r#"{ "tags": { "every": { "title": "a" } } }"#,
            r#"{ "amount": { "near": 1 } }"#,
            r#"{ "amount": { "in": [1, "x"] } }"#,
            r#"{ "amount": { "is_null": false } }"#,
            r#"{ "title": 1 }"#,
            r#"{ "title": "$x" }"#,
            r#"{ "title": "$key.id" }"#,
        ];
        let large = [
            steps(11),
            format!(r#"{{ "_and": [{}] }}"#, many("{}", 101)),
            within(1001),
            any_of(101),
            any_of(10_000),
            format!(r#"{{ "_and": [{}] }}"#, vec![any_of(100); 100].join(",")),
            nested(1_000, r#"{"_not":"#, "{}", "}"),
            nested(1_000, r#"{"_or":["#, "{}", "]}"),
        ];
        for condition in small.into_iter().chain(large.iter().map(String::as_str)) {
            let excerpt: String = condition.chars().take(200).collect();
            let expected = fault(&send("POST", "query", format!(r#"{{ "where": {condition} }}"#)).await.json());
            assert!(expected.1.starts_with("where"), "{excerpt}: {expected:?}");
            for (method, values) in [("PATCH", r#", "values": { "done": true }"#), ("DELETE", "")] {
                let answer = send(method, "bulk", format!(r#"{{ "where": {condition}{values} }}"#)).await;
                assert_eq!((answer.status, fault(&answer.json())), (400, expected.clone()), "{method} {excerpt}: {}", answer.text);
            }
            for (tool, more) in [
                ("query_data", ""),
                ("aggregate_data", r#""fn": "count", "#),
                ("bulk_update_records", r#""data": { "done": true }, "#),
                ("bulk_delete_records", ""),
            ] {
                let called = mcp.call_text(tool, &format!(r#"{{ "object_name": "task", {more}"where": {condition} }}"#)).await;
                let error: Value = serde_json::from_str(&called.text).unwrap_or_else(|_| panic!("{tool} {excerpt}: {}", called.text));
                assert_eq!((called.is_error, fault(&error)), (true, expected.clone()), "{tool} {excerpt}: {error}");
            }
            for (op, function) in [("query", ""), ("aggregate", r#""fn": "count", "#)] {
                let query = format!(r#"{{ {function}"where": {condition} }}"#);
                let input = json!({ "op": op, "object": "task", "json": query });
                let refused = admin.post("/api/v1/blocks/parity/actions/run", input).await.data()["refused"].clone();
                let error = json!({ "error": refused["code"], "message": refused["message"] });
                assert_eq!(fault(&error), expected, "{op} in a block, {excerpt}: {refused}");
            }
        }
        let rest = admin.get("/api/v1/data/task?done=true").await.json();
        assert_eq!((&rest["pagination"]["totalCount"], &rest["data"][0]["title"]), (&json!(1), &json!("a")));
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 3);
    }
}
