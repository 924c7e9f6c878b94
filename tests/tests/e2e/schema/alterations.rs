//! Changes of the schema: their effects, their refusals, and the results of requests meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

async fn stuff(admin: &Admin<'_>) {
    admin
        .define(
            "stuff",
            json!([
                { "name": "name", "type": "text" },
                { "name": "count", "type": "integer" },
                { "name": "level", "type": "enum", "options": ["low", "high"] },
                { "name": "tags", "type": "multi_enum", "options": ["a", "b", "c"] },
                { "name": "price", "type": "decimal", "scale": 3 },
            ]),
        )
        .await;
}

const FIELDS: &str = "/api/v1/objects/stuff/fields";

async fn alter(admin: &Admin<'_>, field: &str, changes: Value) -> blockbase_tests::Answer {
    admin.patch(&format!("{FIELDS}/{field}"), changes).await
}

on_both_engines! {
    async fn fields_come_and_go(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        let first = admin.make("stuff", json!({ "name": "one", "count": 1 })).await;
        let path = format!("/api/v1/data/stuff/{first}");
        let added = admin.post(FIELDS, json!({ "name": "colour", "type": "text", "default": "it's \"red\"", "required": true })).await;
        assert_eq!(added.status, 201, "{}", added.text);
        assert_eq!(added.json()["data"]["name"], "colour");
        assert_eq!(admin.get(&path).await.data()["colour"], "it's \"red\"");
        for (name, field) in [
            ("at", json!({ "type": "datetime", "default": "2026-01-02T03:04:05+01:00" })),
            ("day", json!({ "type": "date", "default": "2026-01-02" })),
            ("ratio", json!({ "type": "float", "default": 0.1 })),
            ("money", json!({ "type": "currency", "default": "1.5", "min": 0 })),
            ("on", json!({ "type": "boolean", "default": true })),
            ("doc", json!({ "type": "json", "default": { "a": ["'", 1.5] } })),
            ("set", json!({ "type": "multi_enum", "options": ["x", "y'"], "default": ["y'"] })),
            ("uid", json!({ "type": "uuid", "default": "01890000-0000-7000-8000-000000000000" })),
            ("plain", json!({ "type": "big_integer", "indexed": true })),
        ] {
            let mut field = field;
            field["name"] = json!(name);
            let answer = admin.post(FIELDS, field).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
        }
        let now = admin.get(&path).await.data();
        for (name, value) in [
            ("at", json!("2026-01-02T02:04:05.000Z")),
            ("day", json!("2026-01-02")),
            ("ratio", json!(0.1)),
            ("money", json!(1.5)),
            ("on", json!(true)),
            ("doc", json!({ "a": ["'", 1.5] })),
            ("set", json!(["y'"])),
            ("uid", json!("01890000-0000-7000-8000-000000000000")),
            ("plain", Value::Null),
        ] {
            assert_eq!(now[name], value, "{name}");
        }
        assert_eq!(admin.get("/api/v1/data/stuff?search=red").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(admin.get("/api/v1/data/stuff?search=y'").await.json()["pagination"]["totalCount"], 1);
        admin.patch(&path, json!({ "money": { "$dec": 2 } })).await.expect_error(400, "CONSTRAINT_VIOLATION");

        // A rename keeps values, indexes, groups and rules.
        admin.patch("/api/v1/objects/stuff", json!({ "constraints": { "uniqueTogether": [["name", "count"]] }, "indexes": [["colour", "name"]] })).await.data();
        let renamed = alter(&admin, "name", json!({ "name": "title" })).await.data();
        assert_eq!(renamed["name"], "title");
        let object = admin.get("/api/v1/objects/stuff").await.data();
        assert_eq!((&object["constraints"]["uniqueTogether"], &object["indexes"]), (&json!([["title", "count"]]), &json!([["colour", "title"]])));
        assert_eq!(admin.get(&path).await.data()["title"], "one");
        admin.get("/api/v1/data/stuff?name=one").await.expect_error(400, "unknown_field");
        let twin = admin.post("/api/v1/data/stuff", json!({ "title": "one", "count": 1 })).await.expect_error(409, "unique_violation");
        assert!(twin["message"].as_str().unwrap().contains("title, count"), "{twin}");

        let grouped = admin.delete(&format!("{FIELDS}/count")).await.expect_error(400, "invalid_schema_change");
        assert_eq!(grouped["field"], "count");
        admin.patch("/api/v1/objects/stuff", json!({ "constraints": null, "indexes": null })).await.data();
        assert_eq!(admin.delete(&format!("{FIELDS}/count")).await.status, 204);
        assert_eq!(admin.delete(&format!("{FIELDS}/colour")).await.status, 204);
        admin.delete(&format!("{FIELDS}/colour")).await.expect_error(404, "not_found");
        let left = admin.get(&path).await.data();
        assert!(left.get("count").is_none() && left.get("colour").is_none());
        assert_eq!((&left["title"], &left["money"]), (&json!("one"), &json!(1.5)));
        assert_eq!(admin.get("/api/v1/data/stuff?search=red").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.get("/api/v1/data/stuff?search=one").await.json()["pagination"]["totalCount"], 1);
        // A new field with the same name is a different field.
        assert_eq!(admin.post(FIELDS, json!({ "name": "colour", "type": "integer", "max": 5 })).await.status, 201);
        assert_eq!(admin.patch(&path, json!({ "colour": 6 })).await.expect_error(400, "CONSTRAINT_VIOLATION")["field"], "colour");
    }

    async fn tightening_says_how_many_rows_break(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        let refused = admin.post(FIELDS, json!({ "name": "must", "type": "text", "required": true })).await;
        assert_eq!(refused.status, 201, "an empty object takes it");
        admin.delete(&format!("{FIELDS}/must")).await;
        for (name, count, level, price) in
            [("aa", json!(1), json!("low"), json!(1.125)), ("aa", json!(50), json!("high"), json!(2.5)), ("b", json!(null), json!("high"), json!(3))]
        {
            admin.make("stuff", json!({ "name": name, "count": count, "level": level, "price": price, "tags": ["a", "b"] })).await;
        }
        let before = admin.get("/api/v1/schema").await.data();
        for (field, changes, word) in [
            ("count", json!({ "required": true }), "1 row breaks"),
            ("name", json!({ "isUnique": true }), "2 rows break"),
            ("count", json!({ "min": 2 }), "1 row breaks"),
            ("count", json!({ "max": 49 }), "1 row breaks"),
            ("name", json!({ "min": 2 }), "1 row breaks"),
            ("name", json!({ "max": 1 }), "2 rows break"),
            ("name", json!({ "pattern": "^b" }), "2 rows break"),
            ("level", json!({ "options": ["low"] }), "2 rows break"),
            ("tags", json!({ "options": ["a", "c"] }), "3 rows break"),
            ("price", json!({ "scale": 2 }), "1 row breaks"),
        ] {
            let refused = alter(&admin, field, changes.clone()).await.expect_error(400, "invalid_schema_change");
            assert!(refused["message"].as_str().unwrap().contains(word), "{changes}: {refused}");
            assert_eq!(refused["field"], field);
        }
        for (changes, word) in [
            (json!({ "constraints": { "uniqueTogether": [["name", "level"]] } }), None),
            (json!({ "constraints": { "uniqueTogether": [["level", "tags"]] } }), Some("tags")),
            (json!({ "constraints": { "uniqueTogether": [["level"]] } }), Some("2 to")),
            (json!({ "indexes": [["nothing"]] }), Some("nothing")),
            (json!({ "name": "other" }), Some("name")),
            (json!({ "colour": "red" }), Some("colour")),
            (json!({ "label": 5 }), Some("label")),
        ] {
            let answer = admin.patch("/api/v1/objects/stuff", changes).await;
            match word {
                None => assert_eq!(answer.status, 200, "{}", answer.text),
                Some(word) => assert!(answer.status == 400 && answer.text.contains(word), "{}", answer.text),
            }
        }
        admin.patch("/api/v1/objects/stuff", json!({ "constraints": {} })).await.data();
        admin.make("stuff", json!({ "name": "b", "level": "high" })).await;
        let group = admin.patch("/api/v1/objects/stuff", json!({ "constraints": { "uniqueTogether": [["name", "level"]] } })).await;
        assert!(group.expect_error(400, "invalid_schema_change")["message"].as_str().unwrap().contains("2 rows break"));
        let refused = admin.post(FIELDS, json!({ "name": "must", "type": "text", "required": true })).await.expect_error(400, "invalid_schema_change");
        assert!(refused["message"].as_str().unwrap().contains("(4)"), "{refused}");
        admin.post(FIELDS, json!({ "name": "one", "type": "text", "isUnique": true, "default": "x" })).await.expect_error(400, "invalid_schema_change");
        for (changes, code) in [
            (json!({ "type": "email" }), "invalid_schema_change"),
            (json!({ "type": "integer" }), "invalid_schema_change"),
            (json!({ "type": "colour" }), "invalid_schema"),
            (json!({ "options": ["a"] }), "invalid_schema"),
            (json!({ "name": "level" }), "invalid_schema"),
            (json!({ "name": "id" }), "invalid_schema"),
            (json!({ "name": "svc_x" }), "invalid_schema"),
            // Conditions have keys of their own that begin with `_`.
            (json!({ "name": "_or" }), "invalid_schema"),
            (json!({ "pattern": "(" }), "invalid_schema"),
            (json!({ "colour": 1 }), "invalid_schema"),
            (json!({ "type": null }), "invalid_schema"),
        ] {
            alter(&admin, "name", changes).await.expect_error(400, code);
        }
        alter(&admin, "nothing", json!({ "label": "x" })).await.expect_error(404, "not_found");
        admin.patch("/api/v1/objects/nothing/fields/x", json!({ "label": "x" })).await.expect_error(404, "not_found");
        assert_eq!(admin.get("/api/v1/schema").await.data()["objects"], before["objects"]);
        // A rule that no row breaks is added, and applies from then on.
        alter(&admin, "count", json!({ "min": 1, "max": 50 })).await.data();
        alter(&admin, "name", json!({ "required": true, "max": 2, "pattern": "^[ab]+$" })).await.data();
        assert_eq!(admin.post("/api/v1/data/stuff", json!({ "count": 5 })).await.expect_error(400, "not_null_violation")["field"], "name");
        assert_eq!(admin.post("/api/v1/data/stuff", json!({ "name": "a", "count": 51 })).await.expect_error(400, "CONSTRAINT_VIOLATION")["field"], "count");
        assert_eq!(admin.post("/api/v1/data/stuff", json!({ "name": "c" })).await.expect_error(400, "CONSTRAINT_VIOLATION")["field"], "name");
        // A rule that was removed no longer applies.
        alter(&admin, "count", json!({ "max": null })).await.data();
        admin.make("stuff", json!({ "name": "a", "count": 51 })).await;
    }

    async fn types_widen_with_their_values(server: Server) {
        let admin = server.admin().await;
        let kinds = ["integer", "big_integer", "decimal", "float", "rating", "boolean", "date", "datetime", "time", "uuid"];
        let mut fields: Vec<Value> = kinds.iter().map(|kind| json!({ "name": format!("a_{kind}"), "type": kind })).collect();
        fields.push(json!({ "name": "a_enum", "type": "enum", "options": ["low", "high"], "default": "low" }));
        fields.push(json!({ "name": "n1", "type": "integer", "isUnique": true, "default": 7 }));
        fields.push(json!({ "name": "n2", "type": "integer", "min": -5 }));
        fields.push(json!({ "name": "n3", "type": "big_integer" }));
        admin.define("wide", json!(fields)).await;
        let values = json!({
            "a_integer": -12, "a_big_integer": i64::MAX, "a_decimal": "-0.050", "a_float": 1e21, "a_rating": 3, "a_boolean": false,
            "a_date": "2026-01-02", "a_datetime": "2026-01-02T03:04:05.6Z", "a_time": "23:59:00.5",
            "a_uuid": "01890000-0000-7000-8000-000000000000", "n1": 4, "n2": -5, "n3": 123456789012_i64,
        });
        let id = admin.make("wide", values).await;
        let path = format!("/api/v1/data/wide/{id}");
        let before = admin.get(&path).await.data();
        let alter = async |field: &str, changes: Value| admin.patch(&format!("/api/v1/objects/wide/fields/{field}"), changes).await;
        for kind in kinds.iter().chain(&["enum"]) {
            let field = format!("a_{kind}");
            let answer = alter(&field, json!({ "type": "text" })).await;
            assert_eq!(answer.status, 200, "{kind}: {}", answer.text);
            let text = match &before[&field] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(admin.get(&path).await.data()[&field], json!(text), "{kind}");
        }
        assert_eq!(admin.get("/api/v1/data/wide?search=9223372036854775807").await.json()["pagination"]["totalCount"], 1);
        for (field, kind) in [("n1", "big_integer"), ("n1", "decimal"), ("n2", "float"), ("n3", "decimal")] {
            let answer = alter(field, json!({ "type": kind })).await;
            assert_eq!(answer.status, 200, "{field} {kind}: {}", answer.text);
        }
        let now = admin.get(&path).await.data();
        assert_eq!((&now["n1"], &now["n2"].as_f64(), &now["n3"]), (&json!(4), &Some(-5.0), &json!(123456789012_i64)));
        let grown = admin.patch(&path, json!({ "n1": { "$inc": 0.25 }, "n2": { "$inc": 0.5 } })).await.data();
        assert_eq!((&grown["n1"], &grown["n2"]), (&json!(4.25), &json!(-4.5)));
        assert_eq!(admin.patch(&path, json!({ "n2": { "$dec": 1 } })).await.expect_error(400, "CONSTRAINT_VIOLATION")["field"], "n2");
        assert_eq!(admin.post("/api/v1/data/wide", json!({ "n1": "4.25" })).await.expect_error(409, "unique_violation")["field"], "n1");
        assert_eq!(admin.post("/api/v1/data/wide", json!({})).await.data()["n1"], 7);
        assert_eq!(alter("n1", json!({ "scale": 2 })).await.status, 200);
        assert_eq!(admin.get(&path).await.data()["n1"], 4.25);
        assert_eq!(alter("n1", json!({ "scale": 9 })).await.status, 200);
        assert_eq!(admin.get(&path).await.data()["n1"], 4.25);
        alter("n1", json!({ "scale": 1 })).await.expect_error(400, "invalid_schema_change");
        alter("n3", json!({ "scale": 8 })).await.expect_error(400, "invalid_schema_change");
        alter("n1", json!({ "type": "float" })).await.expect_error(400, "invalid_schema_change");
        admin.make("wide", json!({ "n1": 1, "n3": 5 })).await;
        let listed = admin.get("/api/v1/data/wide?sort=n3&select=n3").await.data();
        assert_eq!((&listed[0]["n3"], &listed[1]["n3"]), (&json!(5), &json!(123456789012_i64)));
    }

    async fn without_records_a_field_may_become_any_type(server: Server) {
        let admin = server.admin().await;
        let fields = json!([
            { "name": "code", "type": "text", "isUnique": true, "default": "7", "pattern": "^[0-9]+$", "max": 20 },
            { "name": "area", "type": "enum", "options": ["north", "south"], "required": true },
        ]);
        admin.define("free", fields).await;
        let groups = json!({ "constraints": { "uniqueTogether": [["area", "code"]] }, "indexes": [["area", "code"]] });
        admin.patch("/api/v1/objects/free", groups).await.data();
        let path = "/api/v1/objects/free/fields/code";
        // The definition of the changed field has to be valid, like that of a new field.
        assert_eq!(admin.patch(path, json!({ "type": "boolean" })).await.expect_error(400, "invalid_schema")["field"], "code");
        admin.patch(path, json!({ "type": "json" })).await.expect_error(400, "invalid_schema");
        admin.patch("/api/v1/objects/free/fields/area", json!({ "type": "multi_enum" })).await.expect_error(400, "invalid_schema");
        let version = admin.get("/api/v1/schema").await.data()["version"].as_i64().unwrap();
        let plan = admin.patch(&format!("{path}?dryRun=true"), json!({ "type": "integer", "default": 7 })).await.data();
        assert_eq!((&plan["destructive"], &plan["lost"], &plan["breaking"]), (&json!(false), &json!([]), &json!([])), "{plan}");
        assert_eq!(plan["dependents"][0]["kind"], "unique", "{plan}");

        let changed = admin.patch(path, json!({ "type": "integer", "default": 7, "min": 2 })).await.data();
        assert_eq!(changed, json!({ "name": "code", "type": "integer", "isUnique": true, "default": 7, "min": 2 }));
        let schema = admin.get("/api/v1/schema").await.data();
        let free = schema["objects"].as_array().unwrap().iter().find(|object| object["name"] == "free").unwrap();
        assert_eq!((&schema["version"], &free["fields"][0], &free["fields"][1]["name"]), (&json!(version + 1), &changed, &json!("area")));
        let entry = &admin.get("/api/v1/schema/migrations?limit=1").await.data()[0]["change"];
        assert_eq!((&entry["op"], &entry["before"]["type"], &entry["after"]["type"]), (&json!("alter_field"), &json!("text"), &json!("integer")));

        // The rules apply, the default is set, and GraphQL has the new type.
        let id = admin.make("free", json!({ "area": "north" })).await;
        assert_eq!(admin.get(&format!("/api/v1/data/free/{id}")).await.data()["code"], 7);
        let create = |code: Value| admin.post("/api/v1/data/free", json!({ "area": "south", "code": code }));
        assert_eq!(create(json!(7)).await.expect_error(409, "unique_violation")["field"], "code");
        assert_eq!(create(json!(1)).await.expect_error(400, "CONSTRAINT_VIOLATION")["field"], "code");
        assert_eq!(create(json!("x")).await.status, 400);
        let query = r#"{ type: __type(name: "Free") { fields { name type { name } } } }"#;
        let fields = admin.post("/api/v1/graphql", json!({ "query": query })).await.data()["type"]["fields"].clone();
        let code = fields.as_array().unwrap().iter().find(|field| field["name"] == "code").unwrap().clone();
        assert_eq!(code["type"]["name"], "Int");

        // If there is a record, a type can only be widened. A refused change changes nothing.
        let refused = admin.patch(path, json!({ "type": "text", "name": "other" })).await;
        assert_eq!(refused.status, 200, "{}", refused.text);
        let path = "/api/v1/objects/free/fields/other";
        let version = admin.get("/api/v1/schema").await.data()["version"].clone();
        let error = admin.patch(path, json!({ "type": "date", "default": null, "name": "then" })).await.expect_error(400, "invalid_schema_change");
        assert_eq!(error["field"], "other");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("`other` cannot become date from text: `free` has rows (1)."), "{message}");
        let plan = admin.patch(&format!("{path}?dryRun=true"), json!({ "type": "date", "default": null })).await.data();
        assert_eq!((&plan["breaking"][0]["rule"], &plan["breaking"][0]["rows"]), (&json!("type"), &json!(1)), "{plan}");
        assert_eq!(admin.get("/api/v1/schema").await.data()["version"], version);
        assert_eq!(admin.get(&format!("/api/v1/data/free/{id}")).await.data()["other"], "7");

        // If there are no records, the field may get any type again, even together with another name.
        assert_eq!(admin.delete(&format!("/api/v1/data/free/{id}")).await.status, 204);
        admin.patch(path, json!({ "type": "date", "default": null, "name": "then" })).await.data();
        admin.make("free", json!({ "area": "north", "then": "2026-01-02" })).await;
        admin.post("/api/v1/data/free", json!({ "area": "north", "then": "2026-01-02" })).await.expect_error(409, "unique_violation");
        assert_eq!(admin.get("/api/v1/data/free?then=2026-01-02").await.json()["pagination"]["totalCount"], 1);
    }

    async fn a_record_written_at_the_same_moment_has_one_type_or_the_other(server: Server) {
        let admin = server.admin().await;
        admin.define("race", json!([{ "name": "code", "type": "text" }])).await;
        let path = "/api/v1/objects/race/fields/code";
        let (mut changed, mut refused) = (0, 0);
        for round in 0..12 {
            let (old, new) = (json!("7"), json!(7));
            let writes = async {
                let mut made = 0;
                for _ in 0..round {
                    made += i32::from(admin.post("/api/v1/data/race", json!({ "code": old })).await.status == 201);
                }
                made
            };
            let alter = admin.patch(path, json!({ "type": "integer" }));
            let (made, answer) = tokio::join!(writes, alter);
            let listed = admin.get("/api/v1/data/race").await.data();
            let listed = listed.as_array().unwrap();
            match answer.status {
                200 => {
                    changed += 1;
                    // Values that were written after the change have the new type. There is no older value.
                    assert!(listed.iter().all(|record| record["code"] == new), "{listed:?}");
                    admin.make("race", json!({ "code": new })).await;
                }
                _ => {
                    answer.expect_error(400, "invalid_schema_change");
                    refused += 1;
                    assert!(!listed.is_empty() && listed.iter().all(|record| record["code"] == old), "{listed:?}");
                    assert_eq!(listed.len() as i32, made);
                }
            }
            for record in admin.get("/api/v1/data/race?pageSize=100").await.data().as_array().unwrap() {
                assert_eq!(admin.delete(&format!("/api/v1/data/race/{}", record["id"].as_str().unwrap())).await.status, 204);
            }
            // The next round needs the type text again.
            admin.patch(path, json!({ "type": "text" })).await.data();
        }
        assert!(changed + refused == 12 && changed > 0, "{changed} changed, {refused} refused");
    }

    async fn alterations_keep_what_refers_to_the_table(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        admin.define("part", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "whole", "kind": "many_to_one", "source": "part", "target": "stuff", "onDelete": "cascade" })).await;
        admin.relate(json!({ "name": "parent", "kind": "many_to_one", "source": "stuff", "target": "stuff" })).await;
        admin.relate(json!({ "name": "marks", "kind": "many_to_many", "source": "stuff", "target": "part" })).await;
        let root = admin.make("stuff", json!({ "name": "root", "count": 5 })).await;
        let child = admin.make("stuff", json!({ "name": "child", "parent_id": root })).await;
        let part = admin.make("part", json!({ "name": "p", "whole_id": child })).await;
        admin.post(&format!("/api/v1/data/stuff/{child}/links/marks"), json!({ "ids": [part] })).await.data();
        // Each of these changes rebuilds the table on SQLite.
        alter(&admin, "count", json!({ "min": 1 })).await.data();
        alter(&admin, "count", json!({ "type": "text" })).await.data();
        assert_eq!(admin.delete(&format!("{FIELDS}/level")).await.status, 204);
        let seen = admin.get(&format!("/api/v1/data/stuff/{child}?expand=parent,part_by_whole,marks")).await.data();
        assert_eq!((&seen["parent"]["count"], &seen["part_by_whole"][0]["name"], &seen["marks"][0]["name"]), (&json!("5"), &json!("p"), &json!("p")));
        admin.delete(&format!("/api/v1/data/stuff/{root}")).await.expect_error(409, "foreign_key_violation");
        admin.post("/api/v1/data/part", json!({ "whole_id": "01890000-0000-7000-8000-000000000000" })).await.expect_error(409, "foreign_key_violation");
        assert_eq!(admin.delete(&format!("/api/v1/data/stuff/{child}")).await.status, 204);
        assert_eq!(admin.get("/api/v1/data/part").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.delete(&format!("/api/v1/data/stuff/{root}")).await.status, 204);
    }

    async fn the_history_tells_who_did_what(server: Server) {
        let admin = server.admin().await;
        let me = admin.get("/api/v1/me").await.json()["userId"].clone();
        stuff(&admin).await;
        admin.post(FIELDS, json!({ "name": "extra", "type": "text" })).await.data();
        alter(&admin, "extra", json!({ "name": "more" })).await.data();
        admin.patch("/api/v1/objects/stuff", json!({ "label": "Stuff", "description": "Things" })).await.data();
        let relationship = admin.relate(json!({ "name": "parent", "kind": "many_to_one", "source": "stuff", "target": "stuff" })).await;
        admin.delete(&format!("/api/v1/relationships/{relationship}")).await;
        admin.delete(&format!("{FIELDS}/more")).await;
        let id = admin.make("stuff", json!({ "count": 5 })).await;
        alter(&admin, "count", json!({ "type": "rating" })).await.expect_error(400, "invalid_schema_change");
        assert_eq!(admin.delete(&format!("/api/v1/data/stuff/{id}")).await.status, 204);
        admin.delete("/api/v1/objects/stuff").await;
        let history = admin.get("/api/v1/schema/migrations").await.data();
        let history = history.as_array().unwrap();
        let ops: Vec<&str> = history.iter().map(|entry| entry["change"]["op"].as_str().unwrap()).collect();
        assert_eq!(ops, [
            "delete_object", "drop_field", "delete_relationship", "create_relationship", "update_object", "alter_field", "add_field", "create_object",
        ]);
        let versions: Vec<i64> = history.iter().map(|entry| entry["version"].as_i64().unwrap()).collect();
        assert!(versions.windows(2).all(|pair| pair[0] == pair[1] + 1), "{versions:?}");
        assert!(history.iter().all(|entry| entry["appliedBy"] == me && entry["appliedAt"].as_str().unwrap().ends_with('Z')));
        assert_eq!(history[5]["change"]["before"]["name"], "extra");
        let topics = server.sql("SELECT topic FROM svc_events WHERE topic LIKE 'schema.%' ORDER BY seq").await;
        let topics: Vec<&str> = topics.iter().map(|row| row[0].rsplit('.').next().unwrap()).collect();
        assert_eq!(topics, ["created", "updated", "updated", "updated", "updated", "updated", "updated", "deleted"]);
    }
}

/// Requests of every kind run while fields are added, removed, and get other types. Each request succeeds or gets the right
/// error.
async fn a_change_under_traffic_is_never_an_inner_error(engine: Engine) {
    let server = ServerBuilder::new(engine).start().await;
    let admin = server.admin().await;
    stuff(&admin).await;
    admin.define("part", json!([{ "name": "name", "type": "text" }])).await;
    let ids: Vec<String> = futures_util::future::join_all((0..10).map(|number| {
        let admin = admin.clone();
        async move { admin.make("stuff", json!({ "name": format!("n{number}"), "count": number })).await }
    }))
    .await;
    let stop = Arc::new(AtomicBool::new(false));
    let (answered, well) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let traffic = (0..6).map(|worker: usize| {
        let (admin, stop, ids) = (admin.clone(), stop.clone(), ids.clone());
        let (answered, well) = (answered.clone(), well.clone());
        async move {
            for number in worker.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let id = &ids[number % ids.len()];
                let answer = match number % 8 {
                    0 => admin.get(&format!("/api/v1/data/stuff/{id}")).await,
                    1 => admin.get("/api/v1/data/stuff?extra%5Bgte%5D=1&sort=-extra").await,
                    2 => admin.get("/api/v1/data/stuff?search=n1&sort=count").await,
                    3 => admin.patch(&format!("/api/v1/data/stuff/{id}"), json!({ "count": { "$inc": 1 } })).await,
                    4 => admin.post("/api/v1/data/stuff", json!({ "name": "new", "extra": 1 })).await,
                    5 => admin.get("/api/v1/data/stuff/aggregate?fn=sum&field=extra").await,
                    6 => admin.get("/api/v1/data/stuff?expand=part_by_whole&limit=5").await,
                    _ => admin.post("/api/v1/data/part", json!({ "name": "p", "whole_id": id })).await,
                };
                assert!(answer.status < 500, "{} {}", answer.status, answer.text);
                assert!(matches!(answer.status, 200 | 201 | 400 | 404), "{} {}", answer.status, answer.text);
                answered.fetch_add(1, Ordering::Relaxed);
                well.fetch_add(usize::from(answer.status < 300), Ordering::Relaxed);
            }
        }
    });
    let changes = async {
        for round in 0..4 {
            admin.post(FIELDS, json!({ "name": "extra", "type": "integer", "default": round, "indexed": true })).await.data();
            admin.relate(json!({ "name": "whole", "kind": "many_to_one", "source": "part", "target": "stuff" })).await;
            alter(&admin, "extra", json!({ "type": "decimal" })).await.data();
            alter(&admin, "extra", json!({ "type": "text" })).await.data();
            let relationships = admin.get("/api/v1/relationships").await.data();
            admin.delete(&format!("/api/v1/relationships/{}", relationships[0]["id"])).await;
            assert_eq!(admin.delete(&format!("{FIELDS}/extra")).await.status, 204);
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(futures_util::future::join_all(traffic), changes);
    let (answered, well) = (answered.load(Ordering::Relaxed), well.load(Ordering::Relaxed));
    assert!(answered > 100 && well > answered / 4, "{well} of {answered}");
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_under_traffic_is_never_an_inner_error_on_sqlite() {
    a_change_under_traffic_is_never_an_inner_error(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_under_traffic_is_never_an_inner_error_on_postgres() {
    a_change_under_traffic_is_never_an_inner_error(Engine::Postgres).await;
}

/// One instance changes the schema. The other one has the change within a second, and never returns an internal error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_follows_an_alteration() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    let there = other.with_token(admin.token.clone());
    stuff(&admin).await;
    let id = admin.make("stuff", json!({ "name": "n", "count": 5 })).await;
    let path = format!("/api/v1/data/stuff/{id}");
    let follows = async || there.get(&path).await.status == 200;
    blockbase_tests::until("the other instance knows the object", follows).await;
    assert_eq!(there.get(&path).await.data()["count"], 5);
    admin.patch(&format!("{FIELDS}/count"), json!({ "type": "text" })).await.data();
    // The other instance has an old schema now, and notices this at its first request.
    let stale = there.get(&path).await.data();
    assert_eq!(stale["count"], "5");
    assert_eq!(there.patch(&path, json!({ "count": "six" })).await.data()["count"], "six");
    assert_eq!(admin.delete(&format!("{FIELDS}/count")).await.status, 204);
    assert!(there.get(&path).await.data().get("count").is_none());
    admin.post(FIELDS, json!({ "name": "late", "type": "text" })).await.data();
    let follows = async || there.get(&path).await.data().get("late").is_some();
    blockbase_tests::until("the other instance knows the field", follows).await;
    assert_eq!(there.patch(&path, json!({ "late": "x" })).await.data()["late"], "x");
}
