//! Values are stored exactly as they were sent, or refused: this applies to digits, times, URLs and schedules.

use blockbase_tests::{Admin, Answer, on_both_engines};
use serde_json::{Value, json};

/// Sends JSON text unchanged. A tree would lose digits.
async fn send(admin: &Admin<'_>, method: &str, path: &str, text: &str) -> Answer {
    let request = admin.request(method, path).header("content-type", "application/json").body(text.to_owned());
    admin.server.send(request).await
}

#[track_caller]
fn holds(answer: &Answer, part: &str) {
    assert!(answer.text.contains(part), "{part} is not in {}", answer.text);
}

on_both_engines! {
    async fn rules_and_defaults_keep_every_digit(server: Server) {
        let admin = server.admin().await;
        let definition = r#"{ "name": "exact", "fields": [
            { "name": "d", "type": "decimal", "min": -123456789012.123456, "max": 123456789012.123456, "default": 123456789012.123455 },
            { "name": "b", "type": "big_integer", "max": 9007199254740993, "default": 9007199254740993 },
            { "name": "half", "type": "big_integer", "max": 9007199254740993.5 },
            { "name": "c", "type": "currency" },
            { "name": "p", "type": "percentage" },
            { "name": "f", "type": "float", "max": 0.1 } ] }"#;
        let made = send(&admin, "POST", "/api/v1/objects", definition).await;
        assert_eq!(made.status, 201, "{}", made.text);
        for path in ["/api/v1/objects", "/api/v1/objects/exact", "/api/v1/schema", "/api/v1/schema/migrations"] {
            let shown = admin.get(path).await;
            holds(&shown, "\"max\":123456789012.123456");
            holds(&shown, "\"default\":123456789012.123455");
            holds(&shown, "\"default\":9007199254740993");
        }
        // Readers of the document store numbers as doubles. So if a double cannot represent a number exactly, the document
        // contains it as text.
        let document = admin.get("/api/v1/openapi.json").await;
        holds(&document, "\"default\":\"123456789012.123455\"");
        holds(&document, "The most is 123456789012.123456.");

        let path = "/api/v1/data/exact";
        let record = send(&admin, "POST", path, "{}").await;
        holds(&record, "\"d\":123456789012.123455,\"b\":9007199254740993,");
        let one = format!("{path}/{}", record.data()["id"].as_str().unwrap());
        holds(&send(&admin, "PATCH", &one, r#"{"d":{"$inc":0.000001}}"#).await, "\"d\":123456789012.123456");
        for (changes, field) in [
            (r#"{"d":{"$inc":0.000001}}"#, "d"),
            (r#"{"d":123456789012.123457}"#, "d"),
            (r#"{"d":"-123456789012.123457"}"#, "d"),
            (r#"{"b":{"$inc":1}}"#, "b"),
            (r#"{"b":9007199254740994}"#, "b"),
            (r#"{"half":9007199254740994}"#, "half"),
            (r#"{"f":0.10000000000000002}"#, "f"),
        ] {
            let refused = send(&admin, "PATCH", &one, changes).await;
            assert_eq!(refused.expect_error(400, "CONSTRAINT_VIOLATION")["field"], field, "{changes}");
        }
        holds(&send(&admin, "PATCH", &one, r#"{"half":9007199254740993,"f":0.1}"#).await, "\"half\":9007199254740993");
        send(&admin, "PATCH", &one, r#"{"half":{"$inc":1}}"#).await.expect_error(400, "CONSTRAINT_VIOLATION");
        send(&admin, "PATCH", &one, r#"{"f":{"$inc":1e-16}}"#).await.expect_error(400, "CONSTRAINT_VIOLATION");

        for (filter, count) in [
            ("d=123456789012.123456", 1),
            ("d=123456789012.123457", 0),
            ("d[gt]=123456789012.1234555", 1),
            ("d[gt]=123456789012.1234560000000000000000000000000001", 0),
            ("d[gt]=1e-40", 1),
            ("b=9007199254740993", 1),
            ("b[gt]=9007199254740992", 1),
            ("b=9007199254740992", 0),
        ] {
            assert_eq!(admin.get(&format!("{path}?{filter}")).await.json()["pagination"]["totalCount"], count, "{filter}");
        }
        let most = admin.get(&format!("{path}/aggregate?fn=max&field=d")).await;
        holds(&most, "\"value\":123456789012.123456");

        let nines = format!("1.00499{}", "9".repeat(34));
        for (sent, shown) in [
            (nines.as_str(), "1"), ("1.005", "1.01"), ("-1.005", "-1.01"), ("1e-30", "0"), ("-1e-30", "0"), ("5e-3", "0.01"), ("4.99999999999999999999999999999999e-3", "0"),
            ("0.00000000000000000000000000000000000000000000001", "0"), ("1234567890123456.78", "1234567890123456.78"), ("\"+1\"", "1"), ("\".5\"", "0.5"), ("\"007.10\"", "7.1"),
        ] {
            holds(&send(&admin, "PATCH", &one, &format!("{{\"c\":{sent}}}")).await, &format!("\"c\":{shown},"));
        }
        holds(&send(&admin, "PATCH", &one, r#"{"p":{"$inc":1}}"#).await, "\"p\":null");
        send(&admin, "PATCH", &one, r#"{"p":0}"#).await.data();
        holds(&send(&admin, "PATCH", &one, &format!(r#"{{"p":{{"$inc":{nines}}}}}"#)).await, "\"p\":1.005,");
        for bad in ["\"1_000\"", "\" 1\"", "\"1 \"", "\"0x1\"", "\"1e\"", "\".\"", "\"\"", "\"inf\"", "\"1,5\"", "\"\u{661}\"", "1e17", "1e400", "true"] {
            for field in ["c", "b", "f"] {
                if field != "c" && bad == "1e17" {
                    continue;
                }
                let refused = send(&admin, "PATCH", &one, &format!("{{\"{field}\":{bad}}}")).await;
                assert_eq!(refused.expect_error(400, "invalid_value")["field"], field, "{bad}");
            }
        }

        // A change of a field keeps the settings that the change does not name. It can increase a limit by one unit of the last
        // digit.
        let field = "/api/v1/objects/exact/fields/d";
        holds(&send(&admin, "PATCH", field, r#"{"max":123456789012.123457}"#).await, "\"default\":123456789012.123455");
        holds(&send(&admin, "PATCH", &one, r#"{"d":123456789012.123457}"#).await, "\"d\":123456789012.123457");
        let refused = send(&admin, "PATCH", field, r#"{"max":123456789012.123456}"#).await;
        assert!(refused.expect_error(400, "invalid_schema_change")["message"].as_str().unwrap().contains("1 row"));
        send(&admin, "PATCH", field, r#"{"max":1e60}"#).await.expect_error(400, "invalid_schema");
        send(&admin, "PATCH", field, r#"{"max":"1"}"#).await.expect_error(400, "invalid_schema");
        let late = r#"{"name":"late","type":"decimal","required":true,"default":999999999999.999999}"#;
        assert_eq!(send(&admin, "POST", "/api/v1/objects/exact/fields", late).await.status, 201);
        holds(&admin.get(&one).await, "\"late\":999999999999.999999");
    }

    async fn times_and_urls_are_read_strictly(server: Server) {
        let admin = server.admin().await;
        let fields = [("t", "time"), ("at", "datetime"), ("day", "date"), ("link", "url"), ("mail", "email"), ("slug", "slug"), ("id_of", "uuid")];
        let fields: Vec<Value> = fields.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect();
        admin.define("moment", json!(fields)).await;
        let path = "/api/v1/data/moment";
        for (field, good, shown) in [
            ("t", "12:00", "12:00:00"),
            ("t", "23:59:59.9999", "23:59:59.999"),
            ("at", "2024-02-29 10:00:00", "2024-02-29T10:00:00.000Z"),
            ("at", "2024-02-29t10:00:00.5-23:59", "2024-03-01T09:59:00.500Z"),
            ("day", "2024-02-29", "2024-02-29"),
            ("link", "HTTP://a.b", "HTTP://a.b"),
            ("id_of", "{01890000-0000-7000-8000-00000000000A}", "01890000-0000-7000-8000-00000000000a"),
        ] {
            let made = admin.post(path, json!({ field: good })).await;
            assert_eq!(made.data()[field], shown, "{good}");
        }
        for (field, code, bad) in [
            ("t", "invalid_value", ["12:0", "12:00:5", "12: 00", "1:00", "24:00", "12:00:60", " 12:00", "12:00 ", "12:00Z", "+1:00"].as_slice()),
            (
                "at",
                "invalid_value",
                &[
                    "2024-01-01T10:00:60Z", "2016-12-31T23:59:60Z", "2024-1-1T10:00:00Z", "2024-01-01T10:00Z", "+2024-01-01T10:00:00Z", "2024-01-01T10:00:00 Z",
                    "2024-01-01T10:00:00+0100", "2024-01-01T10:00:00.Z", "2024-01-01  10:00:00Z",
                ],
            ),
            ("day", "invalid_value", &["2024-1-1", "+2024-01-01", "2024-01-1", " 2024-01-01", "2024-01-01 ", "2023-02-29", "0000-01-01", "20240101"]),
            ("link", "CONSTRAINT_VIOLATION", &["http:a.b", "http:/a.b", "http:///a.b", "http:\\\\a.b", "//a.b", "a.b", "http://", "http://a b", "http://a\\b", "ftp://a.b"]),
            ("mail", "CONSTRAINT_VIOLATION", &["a@b", " a@b.c", "a@b.c ", "a b@c.d", "a@b..c", "a@-b.c", "@b.c", "a@b.c\n"]),
            ("slug", "CONSTRAINT_VIOLATION", &["A", "a--b", "-a", "a-", "", "a b", "\u{e9}"]),
            ("id_of", "invalid_value", &["01890000-0000-7000-8000-00000000000", " 01890000-0000-7000-8000-00000000000a", "x"]),
        ] {
            for bad in bad {
                let refused = admin.post(path, json!({ field: bad })).await;
                assert_eq!(refused.expect_error(400, code)["field"], field, "{bad:?}");
                if code == "invalid_value" {
                    let encoded: String = bad.bytes().map(|byte| format!("%{byte:02x}")).collect();
                    admin.get(&format!("{path}?{field}={encoded}")).await.expect_error(400, "invalid_value");
                }
            }
        }
        for schedule in ["1,, * * * *", ",1 * * * *", "1- * * * *", "*/ * * * *", "*/+5 * * * *", "1//2 * * * *", "+1 * * * *"] {
            let refused = admin.patch("/api/v1/tasks/event-retention", json!({ "schedule": schedule })).await;
            assert_eq!(refused.expect_error(400, "invalid_value")["field"], "schedule", "{schedule}");
        }
        assert_eq!(admin.patch("/api/v1/tasks/event-retention", json!({ "schedule": "0-30/5,45 3 * JAN,7 MON-FRI" })).await.status, 200);
    }
}
