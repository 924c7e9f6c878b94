//! Plans of changes to the schema, the dependents of an object, and the history of one object.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Answer, Engine, ServerBuilder, on_both_engines, test_block};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};

const STUFF: &str = "/api/v1/objects/stuff";
const FIELDS: &str = "/api/v1/objects/stuff/fields";

async fn send(who: &Admin<'_>, method: &str, path: &str, body: &Value) -> Answer {
    let request = who.request(method, path);
    who.server.send(if body.is_null() { request } else { request.json(body) }).await
}

/// The plan of a change.
#[track_caller]
fn plan<'a>(who: &'a Admin<'_>, method: &'a str, path: &'a str, body: &'a Value) -> impl Future<Output = Value> + 'a {
    let place = std::panic::Location::caller();
    async move {
        let separator = if path.contains('?') { '&' } else { '?' };
        let answer = send(who, method, &format!("{path}{separator}dryRun=true"), body).await;
        assert_eq!(answer.status, 200, "{place}: {}", answer.text);
        answer.data()
    }
}

/// An object whose rows violate many rules.
async fn stuff(admin: &Admin<'_>) {
    admin
        .define(
            "stuff",
            json!([
                { "name": "name", "type": "text" },
                { "name": "count", "type": "integer" },
                { "name": "level", "type": "enum", "options": ["low", "high"] },
                { "name": "price", "type": "decimal", "scale": 3 },
            ]),
        )
        .await;
    for (name, count, level, price) in [
        (json!("hush-aa"), json!(1), json!("low"), json!(1.125)),
        (json!("hush-aa"), json!(50), json!("high"), json!(2.5)),
        (json!("hush-b"), Value::Null, json!("high"), json!(3)),
    ] {
        admin.make("stuff", json!({ "name": name, "count": count, "level": level, "price": price })).await;
    }
}

/// The state that a plan must not change.
async fn state(admin: &Admin<'_>) -> (Value, Value, Vec<Vec<String>>) {
    (
        admin.get("/api/v1/schema").await.data(),
        admin.get("/api/v1/schema/migrations").await.data(),
        admin.server.sql("SELECT topic FROM svc_events ORDER BY seq").await,
    )
}

/// The entries of `lost`: kind, object, name, rows.
fn lost(plan: &Value) -> Vec<(String, String, String, i64)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let entries = plan["lost"].as_array().unwrap().iter();
    entries
        .map(|lost| (text(&lost["what"]), text(&lost["object"]), text(&lost["name"]), lost["rows"].as_i64().unwrap()))
        .collect()
}

fn names(dependents: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    dependents.as_array().unwrap().iter().map(|one| format!("{} {}", text(&one["kind"]), text(&one["name"]))).collect()
}

on_both_engines! {
    async fn a_plan_finds_what_the_change_would_meet(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        let before = state(&admin).await;
        let group = json!({ "constraints": { "uniqueTogether": [["name", "level"]] } });
        let pairs = json!({ "constraints": { "uniqueTogether": [["name", "count"]] } });
        let must = json!({ "name": "must", "type": "text", "required": true });
        let same = json!({ "name": "same", "type": "text", "isUnique": true, "default": "x" });
        let link = json!({ "name": "twin", "kind": "many_to_one", "source": "stuff", "target": "stuff", "required": true });
        for (method, path, body, findings) in [
            ("PATCH", format!("{FIELDS}/count"), json!({ "required": true }), vec![("required", 1)]),
            ("PATCH", format!("{FIELDS}/name"), json!({ "isUnique": true }), vec![("isUnique", 2)]),
            ("PATCH", format!("{FIELDS}/count"), json!({ "min": 2 }), vec![("min", 1)]),
            ("PATCH", format!("{FIELDS}/count"), json!({ "required": true, "min": 2, "max": 49 }), vec![("required", 1), ("min, max", 2)]),
            ("PATCH", format!("{FIELDS}/name"), json!({ "pattern": "-b$" }), vec![("pattern", 2)]),
            ("PATCH", format!("{FIELDS}/level"), json!({ "options": ["high"] }), vec![("options", 1)]),
            ("PATCH", format!("{FIELDS}/price"), json!({ "scale": 2 }), vec![("scale", 1)]),
            ("PATCH", format!("{FIELDS}/count"), json!({ "type": "text", "max": 1 }), vec![("type, max", 1)]),
            ("PATCH", STUFF.to_owned(), group, vec![]),
            ("PATCH", STUFF.to_owned(), json!({ "constraints": { "uniqueTogether": [["level", "name"], ["level", "price"]] } }), vec![]),
            ("PATCH", STUFF.to_owned(), pairs, vec![]),
            ("POST", FIELDS.to_owned(), must, vec![("required", 3)]),
            ("POST", FIELDS.to_owned(), same, vec![("isUnique", 3)]),
            ("POST", "/api/v1/relationships".to_owned(), link, vec![("required", 3)]),
        ] {
            let plan = plan(&admin, method, &path, &body).await;
            let broken: Vec<(&str, i64)> =
                plan["breaking"].as_array().unwrap().iter().map(|one| (one["rule"].as_str().unwrap(), one["rows"].as_i64().unwrap())).collect();
            assert_eq!(broken, findings, "{method} {path} {body}: {plan}");
            assert_eq!((&plan["destructive"], &plan["rows"], &plan["lost"]), (&json!(false), &json!(0), &json!([])), "{plan}");
            assert!(!plan.to_string().contains("hush"), "a plan shows a value: {plan}");
            assert_eq!(state(&admin).await, before, "{method} {path} left something");
            if findings.is_empty() {
                continue;
            }
            // The change itself fails with the first entry of the plan.
            let refused = send(&admin, method, &path, &body).await.expect_error(400, "invalid_schema_change");
            assert_eq!(refused["message"], plan["breaking"][0]["message"]);
            assert_eq!(refused["field"], plan["breaking"][0]["field"]);
        }
        // Two rows have the same values in a unique group.
        admin.make("stuff", json!({ "name": "hush-b", "level": "high" })).await;
        let group = json!({ "constraints": { "uniqueTogether": [["name", "level"]] } });
        let found = plan(&admin, "PATCH", STUFF, &group).await;
        assert_eq!((&found["breaking"][0]["rule"], &found["breaking"][0]["rows"]), (&json!("uniqueTogether"), &json!(2)));
    }

    async fn long_values_are_all_looked_at(server: Server) {
        let admin = server.admin().await;
        admin.define("page", json!([{ "name": "text", "type": "text" }, { "name": "tags", "type": "multi_enum", "options": ["a", "b", "c"] }])).await;
        // More text than one step reads, with short values and nulls in between.
        for number in 0..24 {
            let text = match number % 4 {
                0 => json!(format!("n{}", "é".repeat(480_000))),
                1 => Value::Null,
                2 => json!(""),
                _ => json!(format!("y{number}")),
            };
            let tags = if number % 2 == 0 { json!(["a", "b"]) } else { json!(["c"]) };
            admin.make("page", json!({ "text": text, "tags": tags })).await;
        }
        let field = "/api/v1/objects/page/fields/text";
        for (body, rows) in [(json!({ "pattern": "^y" }), 12), (json!({ "max": 480_000 }), 6), (json!({ "min": 1 }), 6), (json!({ "max": 480_001 }), 0)] {
            let plan = plan(&admin, "PATCH", field, &body).await;
            assert_eq!(plan["breaking"].as_array().unwrap().first().map_or(0, |one| one["rows"].as_i64().unwrap()), rows, "{body}");
        }
        let options = json!({ "options": ["a", "b"] });
        assert_eq!(plan(&admin, "PATCH", "/api/v1/objects/page/fields/tags", &options).await["breaking"][0]["rows"], 12);
        assert_eq!(admin.patch(field, json!({ "max": 480_001 })).await.status, 200);
        admin.patch(field, json!({ "pattern": "^y" })).await.expect_error(400, "invalid_schema_change");
    }

    async fn a_plan_counts_what_would_be_lost(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        admin.define("part", json!([{ "name": "note", "type": "text" }])).await;
        let of = admin.relate(json!({ "name": "whole", "kind": "many_to_one", "source": "part", "target": "stuff" })).await;
        let tags = admin.relate(json!({ "name": "kin", "kind": "many_to_many", "source": "stuff", "target": "part" })).await;
        let id = admin.get("/api/v1/data/stuff").await.data()[0]["id"].clone();
        let mut parts = Vec::new();
        for whole in [id.clone(), id.clone(), Value::Null] {
            parts.push(admin.make("part", json!({ "note": "hush", "whole_id": whole })).await);
        }
        let links = format!("/api/v1/data/stuff/{}/links/kin", id.as_str().unwrap());
        assert!(admin.post(&links, json!({ "ids": parts })).await.status < 300);
        let group = json!({ "indexes": [["whole_id", "note"]] });
        assert_eq!(admin.patch("/api/v1/objects/part", group).await.status, 200);
        let before = state(&admin).await;

        let nothing = Value::Null;
        let dropped = plan(&admin, "DELETE", &format!("{FIELDS}/count"), &nothing).await;
        assert_eq!(lost(&dropped), [("values".into(), "stuff".into(), "count".into(), 2)]);
        assert_eq!((&dropped["destructive"], &dropped["rows"]), (&json!(true), &json!(2)));

        let unlinked = plan(&admin, "DELETE", &format!("/api/v1/relationships/{tags}"), &nothing).await;
        assert_eq!(lost(&unlinked), [("links".into(), "stuff".into(), "kin".into(), 3)]);
        // A change that would be refused has no plan either.
        let path = format!("/api/v1/relationships/{of}?dryRun=true");
        admin.delete(&path).await.expect_error(400, "invalid_schema_change");
        admin.delete(&format!("{STUFF}?dryRun=true")).await.expect_error(409, "object_in_use");

        let gone = plan(&admin, "DELETE", &format!("{STUFF}?cascade=true"), &nothing).await;
        let expected = [
            ("records", "stuff", "-", 3_i64),
            ("values", "part", "whole_id", 2),
            ("links", "stuff", "kin", 3),
        ];
        assert_eq!(lost(&gone), expected.map(|(what, object, name, rows)| (what.into(), object.into(), name.into(), rows)));
        assert_eq!(gone["rows"], 8);
        assert_eq!(names(&gone["dependents"]), ["relationship whole", "index whole_id, note", "relationship kin"]);
        assert_eq!(state(&admin).await, before);
        assert!(!gone.to_string().contains("hush"));

        // The change does what the plan showed.
        assert_eq!(admin.delete(&format!("{STUFF}?cascade=true")).await.status, 204);
        let left = admin.get("/api/v1/schema").await.data();
        assert_eq!(left["relationships"], json!([]));
        assert!(left["objects"][0]["indexes"].as_array().is_none_or(Vec::is_empty), "{left}");
        let empty = plan(&admin, "DELETE", "/api/v1/objects/part/fields/note", &nothing).await;
        assert_eq!((&empty["destructive"], &empty["rows"]), (&json!(true), &json!(3)));
    }

    async fn a_plan_is_refused_as_the_change_is(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        let text = json!({ "name": "x", "type": "text" });
        for (method, path, body, status, code) in [
            ("POST", "/api/v1/objects".to_owned(), json!({ "name": "stuff" }), 409, "object_exists"),
            ("POST", "/api/v1/objects".to_owned(), json!({ "name": "svc_x" }), 400, "invalid_schema"),
            ("POST", "/api/v1/objects".to_owned(), json!({ "name": "stuff_by_id" }), 400, "invalid_schema"),
            ("PATCH", STUFF.to_owned(), json!({ "name": "other" }), 400, "invalid_schema_change"),
            ("PATCH", STUFF.to_owned(), json!({ "indexes": [["nothing"]] }), 400, "invalid_schema"),
            ("PATCH", "/api/v1/objects/nothing".to_owned(), json!({ "label": "x" }), 404, "not_found"),
            ("DELETE", "/api/v1/objects/nothing".to_owned(), Value::Null, 404, "not_found"),
            ("POST", FIELDS.to_owned(), json!({ "name": "name", "type": "text" }), 400, "invalid_schema"),
            ("POST", "/api/v1/objects/nothing/fields".to_owned(), text, 404, "not_found"),
            ("PATCH", format!("{FIELDS}/nothing"), json!({ "label": "x" }), 404, "not_found"),
            ("DELETE", format!("{FIELDS}/nothing"), Value::Null, 404, "not_found"),
            ("POST", "/api/v1/relationships".to_owned(), json!({ "name": "x", "kind": "many_to_one", "source": "stuff", "target": "nothing" }), 400, "invalid_schema"),
            ("DELETE", "/api/v1/relationships/77".to_owned(), Value::Null, 404, "not_found"),
        ] {
            send(&admin, method, &format!("{path}?dryRun=true"), &body).await.expect_error(status, code);
            // A typo in the parameter must not turn a plan into a change.
            for query in ["dryrun=true", "dryRun=yes", "dryRun=true&dryRun=false", "dry_run=true"] {
                send(&admin, method, &format!("{path}?{query}"), &body).await.expect_error(400, "invalid_request");
            }
        }
        assert_eq!(admin.get("/api/v1/schema/migrations").await.data().as_array().unwrap().len(), 1);
        // The same plan can be made again, and the change still works after it.
        let made = json!({ "name": "fresh", "fields": [{ "name": "a", "type": "text" }] });
        for _ in 0..2 {
            let plan = plan(&admin, "POST", "/api/v1/objects", &made).await;
            assert_eq!(plan, json!({ "destructive": false, "rows": 0, "lost": [], "breaking": [], "dependents": [], "hidden": 0 }));
        }
        let link = json!({ "name": "kin", "kind": "many_to_many", "source": "stuff", "target": "stuff" });
        assert_eq!(plan(&admin, "POST", "/api/v1/relationships", &link).await["breaking"], json!([]));
        assert_eq!(admin.post("/api/v1/objects", made).await.status, 201);
        assert_eq!(admin.post("/api/v1/relationships", link).await.status, 201);
    }

    async fn a_plan_tells_of_rows_only_those_who_may_read_them_all(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        admin.define("empty", json!([{ "name": "a", "type": "text" }])).await;
        admin.relate(json!({ "name": "kin", "kind": "many_to_many", "source": "stuff", "target": "empty" })).await;
        let changes = json!({ "resource": "objects", "actions": ["create", "read", "update", "delete"] });
        role(&admin, "blind", json!([changes])).await;
        role(&admin, "own", json!([changes, { "resource": "stuff", "actions": ["read"], "rowPolicy": "own" }])).await;
        role(&admin, "seeing", json!([changes, { "resource": "stuff", "actions": ["read"] }])).await;
        let (blind, _) = user(&admin, "blind", Some("blind")).await;
        let (own, _) = user(&admin, "own", Some("own")).await;
        let (seeing, _) = user(&admin, "seeing", Some("seeing")).await;
        let required = json!({ "required": true });
        let asking = [
            ("PATCH", format!("{FIELDS}/count?dryRun=true"), required.clone()),
            ("PATCH", "/api/v1/objects/empty/fields/a?dryRun=true".to_owned(), required),
            ("DELETE", format!("{FIELDS}/count?dryRun=true"), Value::Null),
            ("DELETE", "/api/v1/objects/empty/fields/a?dryRun=true".to_owned(), Value::Null),
            ("DELETE", format!("{STUFF}?dryRun=true&cascade=true"), Value::Null),
        ];
        for (method, path, body) in &asking {
            for who in [&blind, &own] {
                let refused = send(who, method, path, body).await.expect_error(403, "forbidden");
                let message = refused["message"].as_str().unwrap();
                assert!(message.contains("read `stuff`") || message.contains("read `empty`"), "{message}");
            }
            server.call(method, path, (!body.is_null()).then(|| body.clone())).await.expect_error(401, "unauthorized");
        }
        // A change that reads no rows needs no right to read them.
        for (method, path, body) in [
            ("PATCH", STUFF.to_owned(), json!({ "label": "Things" })),
            ("PATCH", format!("{FIELDS}/name"), json!({ "label": "Name" })),
            ("POST", FIELDS.to_owned(), json!({ "name": "more", "type": "text" })),
            ("POST", "/api/v1/objects".to_owned(), json!({ "name": "further" })),
        ] {
            assert_eq!(plan(&blind, method, &path, &body).await["breaking"], json!([]));
        }
        assert_eq!(plan(&seeing, "DELETE", &format!("{FIELDS}/count"), &Value::Null).await["rows"], 2);
        // Links show data of both objects.
        let kin = admin.get("/api/v1/relationships").await.data()[0]["id"].to_string();
        seeing.delete(&format!("/api/v1/relationships/{kin}?dryRun=true")).await.expect_error(403, "forbidden");
        // A caller who has the right to make the change also has the right to its plan.
        let (reader, _) = user(&admin, "reader", None).await;
        let reads = json!([{ "resource": "*", "actions": ["read"] }]);
        admin.patch("/api/v1/roles/public", json!({ "permissions": reads })).await;
        for (method, path, body) in &asking {
            send(&reader, method, path, body).await.expect_error(403, "forbidden");
        }
    }

    async fn dependents_are_told_to_those_who_may_read_them(server: Server) {
        let admin = server.admin().await;
        for name in ["note", "heard"] {
            admin.define(name, json!([
                { "name": "title", "type": "text" }, { "name": "event", "type": "text" }, { "name": "tag", "type": "text" },
                { "name": "actor", "type": "text" },
            ])).await;
        }
        let relationship = admin.relate(json!({ "name": "source", "kind": "many_to_one", "source": "heard", "target": "note" })).await;
        let groups = json!({ "constraints": { "uniqueTogether": [["source_id", "tag"]] }, "indexes": [["tag", "title"]] });
        assert_eq!(admin.patch("/api/v1/objects/heard", groups).await.status, 200);
        let own = json!([{ "resource": "note", "actions": ["read"], "rowPolicy": "own" }, { "resource": "note", "actions": ["create"] }]);
        let writer = role(&admin, "writer", own).await;
        role(&admin, "elsewhere", json!([{ "resource": "notes", "actions": ["read"] }, { "resource": "*", "actions": ["read"] }])).await;
        let hook = json!({ "url": "https://webhook.invalid/", "topics": ["data.note.created", "data.#"], "name": "teller" });
        admin.post("/api/v1/webhooks", hook).await.data();
        admin.post("/api/v1/webhooks", json!({ "url": "https://webhook.invalid/", "topics": ["data.#"] })).await.data();
        let config = json!({ "object": "heard", "map": { "event": "event.id", "tag": "event.topic" } });
        let persisted = json!({ "event": "data.note.#", "consumer": "keeper", "handler": "persist_event", "config": config });
        assert_eq!(admin.post("/api/v1/events/subscriptions", persisted).await.status, 201);
        assert_eq!(admin.install("", test_block("listener").await).await.status, 201);
        let task = json!({ "name": "nightly", "type": "block_action", "schedule": "0 0 1 1 *", "config": { "block": "listener", "action": "take", "input": {} } });
        admin.post("/api/v1/tasks", task).await.data();

        let path = "/api/v1/objects/note/dependents";
        let all = admin.get(path).await.json();
        assert_eq!(names(&all["data"]), [
            "relationship source", "unique source_id, tag", "role writer", "webhook teller", "subscription keeper",
            "subscription listener:first", "subscription listener:log", "subscription listener:second", "block listener", "task nightly",
        ]);
        assert_eq!(all["hidden"], 0);
        let of = |name: &str| all["data"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
        assert_eq!(of("source")["id"], relationship.to_string());
        assert_eq!(of("writer")["id"], writer);
        assert_eq!(of("writer")["detail"], "may read (own rows), create `note`");
        assert_eq!(of("teller")["detail"], "sends data.note.created");
        assert_eq!(of("listener:first")["detail"], "gets data.note.#; the block `listener` declared it");
        assert_eq!(of("listener")["detail"], "may read `note`");
        assert_eq!(of("nightly")["detail"], "calls the action `take` of the block `listener`");

        let of_heard = admin.get("/api/v1/objects/heard/dependents").await.data();
        assert_eq!(names(&of_heard), ["relationship source", "subscription keeper", "block listener", "task nightly"]);
        let of_tag = admin.get("/api/v1/objects/heard/dependents?field=tag").await.data();
        assert_eq!(names(&of_tag), ["unique source_id, tag", "index tag, title", "subscription keeper", "block listener", "task nightly"]);
        let of_key = admin.get("/api/v1/objects/heard/dependents?field=source_id").await.data();
        assert_eq!(names(&of_key), ["relationship source", "unique source_id, tag", "block listener", "task nightly"]);
        let dropped = plan(&admin, "DELETE", "/api/v1/objects/heard/fields/event", &Value::Null).await;
        assert_eq!(names(&dropped["dependents"]), ["subscription keeper", "block listener", "task nightly"]);

        // Callers see the dependents of each kind that they may read. For the other kinds, they see only the number.
        for (resource, kinds, count) in [
            ("roles", "role", 1), ("webhooks", "webhook", 1), ("events", "subscription", 4), ("blocks", "block", 1), ("tasks", "task", 1),
        ] {
            let grants = json!([{ "resource": "objects", "actions": ["read"] }, { "resource": resource, "actions": ["read"] }]);
            role(&admin, &format!("of {resource}"), grants).await;
            let (who, _) = user(&admin, resource, Some(&format!("of {resource}"))).await;
            let seen = who.get(path).await.json();
            let others: Vec<String> = names(&seen["data"]).into_iter().filter(|name| !name.starts_with("relationship") && !name.starts_with("unique")).collect();
            assert!(others.len() == count && others.iter().all(|name| name.starts_with(kinds)), "{resource}: {seen}");
            assert_eq!(seen["hidden"], json!(8 - count), "{resource}: {seen}");
        }
        let (nobody, _) = user(&admin, "nobody", None).await;
        nobody.get(path).await.expect_error(403, "forbidden");
        server.call("GET", path, None).await.expect_error(401, "unauthorized");
        for field in ["nothing", "id", "created_at", "", "%00", "title%22", "%D8%A7", &"x".repeat(5000)] {
            let answer = admin.get(&format!("{path}?field={field}")).await;
            answer.expect_error(404, "not_found");
        }
        admin.get("/api/v1/objects/nothing/dependents").await.expect_error(404, "not_found");
        admin.get("/api/v1/objects/no%22thing/dependents").await.expect_error(404, "not_found");
        admin.get(&format!("{path}?fields=tag")).await.expect_error(400, "invalid_request");
    }

    async fn the_history_of_one_object_has_what_touched_it(server: Server) {
        let admin = server.admin().await;
        for name in ["one", "two", "three"] {
            admin.define(name, json!([{ "name": "a", "type": "text" }])).await;
        }
        admin.post("/api/v1/objects/one/fields", json!({ "name": "b", "type": "integer" })).await.data();
        admin.relate(json!({ "name": "kin", "kind": "many_to_one", "source": "one", "target": "two" })).await;
        admin.patch("/api/v1/objects/two", json!({ "label": "Two" })).await.data();
        assert_eq!(admin.delete("/api/v1/objects/two?cascade=true").await.status, 204);
        let history = async |query: &str| -> Vec<(i64, String)> {
            let entries = admin.get(&format!("/api/v1/schema/migrations{query}")).await.data();
            entries.as_array().unwrap().iter().map(|one| (one["version"].as_i64().unwrap(), one["change"]["op"].as_str().unwrap().to_owned())).collect()
        };
        let ops = |entries: &[(i64, String)]| entries.iter().map(|(_, op)| op.clone()).collect::<Vec<_>>();
        let all = history("").await;
        assert_eq!(all.len(), 7);
        // The deleted object had a relation key on this object. The key was deleted too.
        assert_eq!(ops(&history("?object=one").await), ["delete_object", "create_relationship", "add_field", "create_object"]);
        assert_eq!(ops(&history("?object=two").await), ["delete_object", "update_object", "create_relationship", "create_object"]);
        assert_eq!(ops(&history("?object=three").await), ["create_object"]);
        for unknown in ["?object=nothing", "?object=", "?object=o%25ne", "?object=One"] {
            assert_eq!(history(unknown).await, [], "{unknown}");
        }
        assert_eq!(history("?limit=2").await, all[..2]);
        assert_eq!(history(&format!("?object=one&limit=2&before={}", all[0].0)).await.len(), 2);
        assert_eq!(history(&format!("?before={}", all[2].0)).await, all[3..]);
        for wrong in ["?object=%00one", "?limit=0", "?limit=x", "?before=-1", "?colour=1", "?limit=99999999999999999999"] {
            admin.get(&format!("/api/v1/schema/migrations{wrong}")).await.expect_error(400, "invalid_request");
        }
    }

    async fn plans_and_changes_meet_without_harm(server: Server) {
        let admin = server.admin().await;
        stuff(&admin).await;
        let rows: Vec<Value> = (0..1000).map(|number| json!({ "name": format!("n{number}"), "count": number })).collect();
        for _ in 0..5 {
            assert_eq!(admin.post("/api/v1/data/stuff/bulk", json!({ "data": rows })).await.status, 201);
        }
        let plans = async {
            for round in 0..12 {
                let body = if round % 2 == 0 { json!({ "pattern": "^n" }) } else { json!({ "isUnique": true }) };
                let plan = plan(&admin, "PATCH", &format!("{FIELDS}/name"), &body).await;
                assert_eq!(plan["breaking"].as_array().unwrap().len(), 1, "{plan}");
            }
        };
        let changes = async {
            for round in 0..6 {
                let name = format!("extra{round}");
                let added = admin.post(FIELDS, json!({ "name": name, "type": "integer", "default": 1 })).await;
                assert_eq!(added.status, 201, "{}", added.text);
                assert_eq!(admin.patch(&format!("{FIELDS}/{name}"), json!({ "type": "text" })).await.status, 200);
            }
        };
        let writes = async {
            for number in 0..60 {
                let made = admin.post("/api/v1/data/stuff", json!({ "name": format!("w{number}") })).await;
                assert_eq!(made.status, 201, "{}", made.text);
            }
        };
        tokio::join!(plans, changes, writes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_third_plan_of_one_caller_waits_for_its_turn() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    stuff(&admin).await;
    // The scans wait until the test lets them continue.
    let lock = server.hold_reads("stuff").await;
    let begun = Instant::now();
    let path = format!("{FIELDS}/count?dryRun=true");
    let mut plans: FuturesUnordered<_> = (0..3).map(|_| admin.patch(&path, json!({ "required": true }))).collect();
    let refused = plans.next().await.unwrap();
    refused.expect_error(503, "unavailable");
    assert_eq!(refused.headers["retry-after"], "5");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    lock.release().await;
    while let Some(plan) = plans.next().await {
        assert_eq!(plan.status, 200, "{}", plan.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_plans_a_change_of_what_another_made_a_moment_ago() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    let there = other.with_token(admin.token.clone());
    for round in 0..5 {
        let name = format!("fresh{round}");
        admin.define(&name, json!([{ "name": "a", "type": "text" }])).await;
        admin.make(&name, json!({ "a": "x" })).await;
        let gone = plan(&there, "DELETE", &format!("/api/v1/objects/{name}"), &Value::Null).await;
        assert_eq!(gone["rows"], 1, "{gone}");
        let dependents = there.get(&format!("/api/v1/objects/{name}/dependents")).await;
        assert_eq!(dependents.data(), json!([]));
    }
}
