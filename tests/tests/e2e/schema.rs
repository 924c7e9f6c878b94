//! Objects with fields of every type, and definitions that the catalogue refuses.

pub(crate) mod alterations;
pub(crate) mod plans;

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

fn every_type() -> Value {
    let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let mut fields: Vec<Value> = [
        "text",
        "email",
        "url",
        "slug",
        "integer",
        "big_integer",
        "decimal",
        "float",
        "percentage",
        "currency",
        "rating",
        "boolean",
        "date",
        "datetime",
        "time",
        "json",
        "uuid",
    ]
    .iter()
    .map(|kind| field(&format!("a_{kind}"), kind))
    .collect();
    fields.push(json!({ "name": "a_enum", "type": "enum", "options": ["red", "green"] }));
    fields.push(json!({ "name": "a_multi_enum", "type": "multi_enum", "options": ["red", "green", "blue"] }));
    json!({ "name": "sample", "fields": fields })
}

on_both_engines! {
    async fn every_field_type_takes_and_gives_what_it_says(server: Server) {
        let admin = server.admin().await;
        let made = admin.post("/api/v1/objects", every_type()).await;
        assert_eq!(made.status, 201, "{}", made.text);
        for (field, given, shown) in [
            ("a_text", json!("Zoë \" \\ \u{1F600}"), json!("Zoë \" \\ \u{1F600}")),
            ("a_email", json!("ann@example.com"), json!("ann@example.com")),
            ("a_url", json!("https://example.com/a?b=c"), json!("https://example.com/a?b=c")),
            ("a_slug", json!("a-b-2"), json!("a-b-2")),
            ("a_enum", json!("green"), json!("green")),
            ("a_multi_enum", json!(["blue", "red"]), json!(["blue", "red"])),
            ("a_integer", json!("-2147483648"), json!(-2147483648_i64)),
            ("a_big_integer", json!(i64::MAX), json!(i64::MAX)),
            ("a_decimal", json!(1.0000005), json!(1.000001)),
            ("a_decimal", json!("-12.3400"), json!(-12.34)),
            ("a_decimal", json!("1e3"), json!(1000)),
            ("a_float", json!(0.1), json!(0.1)),
            ("a_float", json!(1e300), json!(1e300)),
            ("a_percentage", json!(12.34565), json!(12.3457)),
            ("a_percentage", json!(-12.34565), json!(-12.3457)),
            ("a_currency", json!(19.995), json!(20)),
            ("a_rating", json!(5), json!(5)),
            ("a_boolean", json!("true"), json!(true)),
            ("a_date", json!("2024-02-29"), json!("2024-02-29")),
            ("a_datetime", json!("2026-03-04T05:06:07.1239+02:00"), json!("2026-03-04T03:06:07.123Z")),
            ("a_datetime", json!("1969-12-31T23:59:59.001"), json!("1969-12-31T23:59:59.001Z")),
            ("a_time", json!("09:05"), json!("09:05:00")),
            ("a_time", json!("23:59:59.25"), json!("23:59:59.250")),
            ("a_json", json!({ "b": [1, null, "x"], "a": {} }), json!({ "b": [1, null, "x"], "a": {} })),
            ("a_json", json!("[1, 2]"), json!([1, 2])),
            ("a_uuid", json!("67E5504410B1426F9247BB680E5FE0C8"), json!("67e55044-10b1-426f-9247-bb680e5fe0c8")),
            ("a_text", Value::Null, Value::Null),
        ] {
            let created = admin.post("/api/v1/data/sample", json!({ field: given })).await;
            assert_eq!(created.status, 201, "{field} {given}: {}", created.text);
            let created = created.data();
            assert_eq!(created[field], shown, "{field} {given}");
            let path = format!("/api/v1/data/sample/{}", created["id"].as_str().unwrap());
            assert_eq!(admin.get(&path).await.data(), created, "{field} {given}");
            let patched = admin.patch(&path, json!({ field: given })).await.data();
            assert_eq!(patched[field], shown, "{field} {given}");
        }
        let order = admin.get("/api/v1/data/sample?a_json%5Bis_not_null%5D=&limit=1&offset=1").await.text;
        assert!(order.contains(r#""a_json":{"b":[1,null,"x"],"a":{}}"#), "{order}");
    }

    async fn values_outside_a_type_or_a_rule_are_refused(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.post("/api/v1/objects", every_type()).await.status, 201);
        for (field, given, code) in [
            ("a_text", json!(7), "invalid_value"),
            ("a_text", json!("a\u{0}b"), "invalid_value"),
            ("a_email", json!("nobody"), "CONSTRAINT_VIOLATION"),
            ("a_url", json!("ftp://example.com"), "CONSTRAINT_VIOLATION"),
            ("a_slug", json!("A--b"), "CONSTRAINT_VIOLATION"),
            ("a_enum", json!("blue"), "CONSTRAINT_VIOLATION"),
            ("a_multi_enum", json!(["red", "red"]), "CONSTRAINT_VIOLATION"),
            ("a_multi_enum", json!("red"), "invalid_value"),
            ("a_integer", json!(2147483648_i64), "invalid_value"),
            ("a_integer", json!(1.5), "invalid_value"),
            ("a_integer", json!("one"), "invalid_value"),
            ("a_big_integer", json!("9223372036854775808"), "invalid_value"),
            ("a_decimal", json!("1234567890123.1"), "invalid_value"),
            ("a_float", json!("NaN"), "invalid_value"),
            ("a_rating", json!(6), "CONSTRAINT_VIOLATION"),
            ("a_boolean", json!(1), "invalid_value"),
            ("a_date", json!("2023-02-29"), "invalid_value"),
            ("a_datetime", json!("tomorrow"), "invalid_value"),
            ("a_time", json!("25:00"), "invalid_value"),
            ("a_json", json!("{broken"), "invalid_value"),
            ("a_json", json!({ "a": "\u{0}" }), "invalid_value"),
            ("a_uuid", json!("not-a-uuid"), "invalid_value"),
            ("a_text", json!({ "$inc": 1 }), "invalid_value"),
        ] {
            let error = admin.post("/api/v1/data/sample", json!({ field: given })).await.expect_error(400, code);
            assert_eq!(error["field"], field, "{given}");
        }
        assert_eq!(admin.get("/api/v1/data/sample").await.json()["pagination"]["totalCount"], 0);
        let id = admin.post("/api/v1/data/sample", json!({ "a_integer": i32::MAX, "a_text": "x" })).await.data()["id"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/data/sample/{id}");
        for (changes, code) in [
            (json!({ "a_text": { "$inc": 1 } }), "INVALID_ATOMIC_OP"),
            (json!({ "a_integer": { "$inc": 1, "$dec": 1 } }), "INVALID_ATOMIC_OP"),
            (json!({ "a_integer": { "$mul": 2 } }), "INVALID_ATOMIC_OP"),
            (json!({ "a_integer": { "$inc": "1" } }), "INVALID_ATOMIC_OP"),
            (json!({ "a_integer": { "$inc": 1 } }), "invalid_value"),
            (json!({ "colour": 1 }), "unknown_field"),
        ] {
            admin.patch(&path, changes).await.expect_error(400, code);
        }
        assert_eq!(admin.get(&path).await.data()["a_integer"], i32::MAX);
    }

    async fn unique_values_are_kept_unique(server: Server) {
        let admin = server.admin().await;
        let definition = json!({ "name": "member", "constraints": { "uniqueTogether": [["team", "number"]] }, "fields": [
            { "name": "code", "type": "slug", "isUnique": true },
            { "name": "team", "type": "text" },
            { "name": "number", "type": "integer" },
        ] });
        assert_eq!(admin.post("/api/v1/objects", definition).await.status, 201);
        let make = async |body: Value| admin.post("/api/v1/data/member", body).await;
        assert_eq!(make(json!({ "code": "a", "team": "x", "number": 1 })).await.status, 201);
        assert_eq!(make(json!({ "code": "a" })).await.expect_error(409, "unique_violation")["field"], "code");
        let error = make(json!({ "code": "b", "team": "x", "number": 1 })).await.expect_error(409, "unique_violation");
        assert!(error["message"].as_str().unwrap().contains("team, number"), "{error}");
        let racing = futures_util::future::join_all((0..10).map(|_| make(json!({ "code": "race" })))).await;
        assert_eq!(racing.iter().filter(|answer| answer.status == 201).count(), 1);
        assert_eq!(racing.iter().filter(|answer| answer.status == 409).count(), 9);
    }

    async fn definitions_that_cannot_be_are_refused_whole(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let version = admin.get("/api/v1/schema").await.data()["version"].clone();
        for (definition, code, status) in [
            (json!({ "name": "task" }), "object_exists", 409),
            (json!({ "name": "Task" }), "invalid_schema", 400),
            (json!({ "name": "users" }), "invalid_schema", 400),
            (json!({ "name": "svc_x" }), "invalid_schema", 400),
            (json!({ "name": "x; DROP TABLE task" }), "invalid_schema", 400),
            (json!({ "name": "x", "colour": 1 }), "invalid_schema", 400),
            (json!(["x"]), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [["a", "text"]] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "id", "type": "text" }] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "a", "type": "text" }, { "name": "a", "type": "text" }] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "a", "type": "colour" }] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "a", "type": "enum" }] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "a", "type": "text", "pattern": "(" }] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "a", "type": "integer", "default": "x" }] }), "invalid_schema", 400),
            (json!({ "name": "x", "fields": [{ "name": "a", "type": "boolean", "min": 1 }] }), "invalid_schema", 400),
            (json!({ "name": "x", "indexes": [["nothing"]] }), "invalid_schema", 400),
        ] {
            admin.post("/api/v1/objects", definition).await.expect_error(status, code);
        }
        let schema = admin.get("/api/v1/schema").await.data();
        assert_eq!((&schema["version"], schema["objects"].as_array().unwrap().len()), (&version, 1));
        admin.get("/api/v1/objects/nothing").await.expect_error(404, "not_found");

        assert_eq!(admin.delete("/api/v1/objects/task").await.status, 204);
        admin.get("/api/v1/data/task").await.expect_error(404, "not_found");
        admin.delete("/api/v1/objects/task").await.expect_error(404, "not_found");
        admin.make_task_object().await;
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
        let history = admin.get("/api/v1/schema/migrations").await.data();
        let ops: Vec<&str> = history.as_array().unwrap().iter().map(|entry| entry["change"]["op"].as_str().unwrap()).collect();
        assert_eq!(ops, ["create_object", "delete_object", "create_object"]);
        assert_eq!(history[0]["appliedBy"], admin.get("/api/v1/me").await.json()["userId"]);
    }

    async fn an_object_made_anew_under_its_name_is_another(server: Server) {
        let admin = server.admin().await;
        let define = async |kind: &str| {
            let fields = json!([{ "name": "a", "type": kind }]);
            assert_eq!(admin.post("/api/v1/objects", json!({ "name": "thing", "fields": fields })).await.status, 201);
        };
        define("text").await;
        // There are more calls than pooled connections, so that each connection has prepared its statements.
        for _ in 0..40 {
            admin.post("/api/v1/data/thing", json!({ "a": "1" })).await.data();
            assert_eq!(admin.get("/api/v1/data/thing?a=1").await.status, 200);
        }
        assert_eq!(admin.delete("/api/v1/objects/thing").await.status, 204);
        define("integer").await;
        for number in 1..40 {
            assert_eq!(admin.post("/api/v1/data/thing", json!({ "a": 1 })).await.data()["a"], 1);
            let listed = admin.get("/api/v1/data/thing?a=1&limit=1").await.json();
            assert_eq!((&listed["data"][0]["a"], &listed["pagination"]["totalCount"]), (&json!(1), &json!(number)));
        }
    }

    async fn names_that_mean_something_to_an_engine_are_safe(server: Server) {
        let admin = server.admin().await;
        for name in ["ctid", "xmin", "tableoid", "rowid"] {
            let definition = json!({ "name": "thing", "fields": [{ "name": name, "type": "text" }] });
            admin.post("/api/v1/objects", definition).await.expect_error(400, "invalid_schema");
        }
        admin.post("/api/v1/objects", json!({ "name": "json_each" })).await.expect_error(400, "invalid_schema");
        let fields: Vec<Value> = ["type", "value", "key", "select", "group", "count", "page", "user"]
            .iter()
            .map(|name| json!({ "name": name, "type": "multi_enum", "options": ["a", "b"] }))
            .collect();
        assert_eq!(admin.post("/api/v1/objects", json!({ "name": "order", "fields": fields })).await.status, 201);
        let all = json!({ "type": ["a"], "value": ["a"], "key": ["a"], "select": ["a"], "group": ["a"], "count": ["a"], "page": ["a"], "user": ["a"] });
        admin.post("/api/v1/data/order", all).await.data();
        for name in ["type", "value", "key", "select", "group", "count", "page", "user"] {
            for (operator, value, found) in [("eq", "a", 1), ("eq", "b", 0), ("neq", "a", 0), ("nin", "b", 1), ("ilike", "A", 1)] {
                let answer = admin.get(&format!("/api/v1/data/order?{name}%5B{operator}%5D={value}")).await.json();
                assert_eq!(answer["pagination"]["totalCount"], found, "{name} {operator} {value}");
            }
        }
        assert_eq!(admin.get("/api/v1/data/order?search=a").await.json()["pagination"]["totalCount"], 1);
    }

    async fn values_at_the_edges_of_indexes_and_types_are_kept_or_refused(server: Server) {
        let admin = server.admin().await;
        let definition = json!({ "name": "edge", "fields": [
            { "name": "code", "type": "text", "isUnique": true },
            { "name": "whole", "type": "integer" },
            { "name": "price", "type": "currency" },
        ] });
        assert_eq!(admin.post("/api/v1/objects", definition).await.status, 201);
        // Text that cannot be compressed, and is as long as an index entry may be.
        let noise = |length: usize| -> String {
            let mut state = 1_u64;
            (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    char::from(b'!' + (state >> 33) as u8 % 90)
                })
                .collect()
        };
        assert_eq!(admin.post("/api/v1/data/edge", json!({ "code": noise(2000) })).await.status, 201);
        let error = admin.post("/api/v1/data/edge", json!({ "code": noise(40_000) })).await.expect_error(400, "CONSTRAINT_VIOLATION");
        assert_eq!(error["field"], "code");
        let made = admin.post("/api/v1/data/edge", json!({ "whole": 5, "price": 1.00 })).await.data();
        let path = format!("/api/v1/data/edge/{}", made["id"].as_str().unwrap());
        admin.patch(&path, json!({ "whole": { "$dec": -2147483648_i64 } })).await.expect_error(400, "invalid_value");
        assert_eq!(admin.get(&path).await.data()["whole"], 5);
        // A filter compares all digits of its value.
        for (filter, found) in [
            ("price=1.00", 1),
            ("price=1.004", 0),
            ("price%5Bgt%5D=0.999", 1),
            ("price%5Bgt%5D=1.001", 0),
            ("price%5Bgte%5D=1.001", 0),
            ("price%5Blt%5D=1.001", 1),
            ("price%5Blte%5D=0.999", 0),
            ("price%5Bin%5D=1.004,1", 1),
            ("price%5Bin%5D=1.004", 0),
        ] {
            let answer = admin.get(&format!("/api/v1/data/edge?{filter}")).await.json();
            assert_eq!(answer["pagination"]["totalCount"], found, "{filter}");
        }
        let many: Vec<String> = (0..200_000).map(|number| format!("\"k{number}\":0")).collect();
        let request = admin.request("POST", "/api/v1/data/edge").header("content-type", "application/json");
        let answer = server.send(request.body(format!("{{{}}}", many.join(",")))).await;
        answer.expect_error(400, "invalid_request");
    }
}
