//! Conditions and fields in the permissions that a block asks for.

use blockbase_tests::{Admin, Answer, inspect, on_both_engines, pack, test_block};
use serde_json::{Value, json};

use crate::accounts::policies::{define, of_my_teams};
use crate::accounts::roles::{key, role, user};
use crate::events::webhooks::{ledger_until, quick};

/// A version of the block `reach`, which runs operations of the data interface with these permissions.
async fn version(number: &str, data: Value) -> Vec<u8> {
    let manifest = json!({
        "name": "reach",
        "version": number,
        "actions": [{ "name": "run", "rbac": { "resource": "reach:run", "action": "read" } }],
        "resources": [{ "name": "reach:run", "actions": ["read"] }],
        "requires": { "plugins": ["data"] },
        "permissions": { "data": data },
    });
    pack(test_block("parity").await, manifest).await.unwrap()
}

async fn installed(who: &Admin<'_>, query: &str, data: Value) -> Answer {
    who.install(query, version("1.0.0", data).await).await
}

/// The outcome of an operation: `{ "done" }` or `{ "refused" }`.
async fn run(who: &Admin<'_>, input: Value) -> Value {
    let answer = who.post("/api/v1/blocks/reach/actions/run", input).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.data()
}

async fn titles(who: &Admin<'_>) -> Vec<String> {
    let page = run(who, json!({ "op": "query", "object": "task", "json": "{\"sort\":\"title\"}" })).await;
    let rows = page["done"]["data"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
    rows.iter().map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

async fn refusal(who: &Admin<'_>, input: Value) -> String {
    run(who, input).await["refused"]["code"].as_str().unwrap_or("none").to_owned()
}

async fn asked(admin: &Admin<'_>) -> Value {
    admin.get("/api/v1/blocks/reach").await.data()["permissions"]["data"].clone()
}

fn mine() -> Value {
    json!([{
        "resource": "task",
        "actions": ["read", "update"],
        "where": { "assignee": "$user.id" },
        "check": { "state": { "in": ["open", "done"] } },
        "fields": { "read": ["title", "state"], "write": ["state"] },
    }])
}

/// A user who may call the block, but has no right to tasks.
async fn caller<'a>(admin: &Admin<'a>, name: &str) -> (Admin<'a>, String) {
    user(admin, name, Some("caller")).await
}

async fn callers(admin: &Admin<'_>) {
    role(admin, "caller", json!([{ "resource": "reach:run", "actions": ["read"] }])).await;
}

on_both_engines! {
    async fn a_block_reaches_the_rows_and_fields_that_it_asked_for(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        assert_eq!(installed(&admin, "", mine()).await.status, 201);
        callers(&admin).await;
        let (ann, ann_id) = caller(&admin, "ann").await;
        let (bob, _) = caller(&admin, "bob").await;
        let task = admin.make("task", json!({ "title": "a", "assignee": ann_id, "points": 3 })).await;
        let other = admin.make("task", json!({ "title": "b", "points": 5 })).await;

        assert_eq!((titles(&ann).await, titles(&bob).await), (vec!["a".to_owned()], vec![]));
        let got = run(&ann, json!({ "op": "get", "object": "task", "id": task })).await["done"].clone();
        assert_eq!(got, json!({ "id": task, "title": "a", "state": "open" }));
        let of = |id: &str, changes: Value| json!({ "op": "update", "object": "task", "id": id, "json": changes.to_string() });
        assert_eq!(run(&ann, of(&task, json!({ "state": "done" }))).await["done"]["state"], "done");
        assert_eq!(refusal(&ann, of(&task, json!({ "state": "archived" }))).await, "forbidden");
        assert_eq!(refusal(&ann, of(&task, json!({ "title": "c" }))).await, "forbidden");
        assert_eq!(refusal(&ann, of(&other, json!({ "state": "done" }))).await, "not_found");
        assert_eq!(refusal(&ann, json!({ "op": "query", "object": "task", "json": "{\"where\":{\"points\":3}}" })).await, "unknown_field");
        let sum = json!({ "op": "aggregate", "object": "task", "json": "{\"fn\":\"count\"}" });
        assert_eq!(run(&ann, sum).await["done"]["value"], 1);
        let stored = admin.get(&format!("/api/v1/data/task/{task}")).await.data();
        assert_eq!((&stored["title"], &stored["state"]), (&json!("a"), &json!("done")));
    }

    async fn a_batch_may_refer_to_the_hidden_records_that_it_makes(server: Server) {
        let admin = server.admin().await;
        admin.define("boat", json!([{ "name": "state", "type": "text" }])).await;
        admin.define("seat", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "boat", "kind": "many_to_one", "source": "seat", "target": "boat" })).await;
        let asks = json!([
            { "resource": "boat", "actions": ["create"] },
            { "resource": "boat", "actions": ["read"], "where": { "state": "open" } },
            { "resource": "seat", "actions": ["create", "read"] },
        ]);
        let made = installed(&admin, "", asks).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let batch = |operations: Value| json!({ "op": "batch", "object": "", "json": operations.to_string() });
        let seat = |boat: Value| json!({ "op": "create", "object": "seat", "values": { "name": "a", "boat_id": boat } });
        let boat = json!({ "op": "create", "object": "boat", "values": { "state": "new" } });
        let outcome = run(&admin, batch(json!([boat, seat(json!({ "$ref": "0.id" }))]))).await;
        let done = &outcome["done"];
        assert_eq!(done[0], json!({ "id": done[1]["boat_id"], "state": "new" }), "{outcome}");
        // Later the record is as hidden as any other.
        assert_eq!(refusal(&admin, batch(json!([seat(done[0]["id"].clone())]))).await, "foreign_key_violation");
    }

    async fn what_a_block_asked_for_follows_the_schema(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let ask = json!([{ "resource": "task", "actions": ["read"], "where": { "assignee": "$user.id", "team": { "name": "one" } }, "fields": { "read": ["title"] } }]);
        let made = installed(&admin, "", ask.clone()).await;
        assert_eq!((made.status, &made.json()["report"]["permissions"]["data"]), (201, &ask), "{}", made.text);
        assert_eq!(asked(&admin).await, ask);
        callers(&admin).await;
        let (ann, ann_id) = caller(&admin, "ann").await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        admin.make("task", json!({ "title": "a", "assignee": ann_id, "team_id": team })).await;
        admin.make("task", json!({ "title": "b", "assignee": ann_id })).await;
        assert_eq!(titles(&ann).await, ["a"]);

        for (path, name) in [("/api/v1/objects/task/fields/assignee", "doer"), ("/api/v1/objects/team/fields/name", "label")] {
            assert_eq!(admin.patch(path, json!({ "name": name })).await.status, 200, "{name}");
        }
        assert_eq!(asked(&admin).await[0]["where"], json!({ "doer": "$user.id", "team": { "label": "one" } }));
        assert_eq!(titles(&ann).await, ["a"]);
        for path in ["/api/v1/objects/task/fields/doer", "/api/v1/objects/task/fields/title", "/api/v1/objects/team/fields/label"] {
            let refused = admin.delete(path).await.expect_error(409, "object_in_use");
            assert!(refused["message"].as_str().unwrap().contains("`reach`"), "{refused}");
            let dependents = admin.get(&path.replace("/fields/", "/dependents?field=")).await;
            assert!(dependents.text.contains("of its grant on `task`"), "{}", dependents.text);
        }
        // Another upload of the same file, which has the old names, needs no further consent.
        let same = admin.install("?upgrade=true", version("1.0.0", ask.clone()).await).await;
        assert_eq!((same.status, &same.data()["permissions"]["data"]), (200, &asked(&admin).await), "{}", same.text);
        admin.patch("/api/v1/objects/team/fields/label", json!({ "type": "integer" })).await.expect_error(409, "object_in_use");
        // The error does not show the block's name to callers who may not read blocks.
        role(&admin, "designer", json!([{ "resource": "objects", "actions": ["manage"] }])).await;
        let (designer, _) = user(&admin, "designer", Some("designer")).await;
        let refused = designer.delete("/api/v1/objects/task/fields/doer").await.expect_error(409, "object_in_use");
        assert!(!refused["message"].as_str().unwrap().contains("reach"), "{refused}");

        // An upgrade whose manifest has the new names needs no further consent. After a rollback, the earlier version has the new
        // names too.
        let renamed = json!([{ "resource": "task", "actions": ["read"], "where": { "team.label": { "eq": "one" }, "doer": "$user.id" }, "fields": { "read": ["title"] } }]);
        let upgraded = admin.install("?upgrade=true", version("1.1.0", renamed.clone()).await).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        assert_eq!(asked(&admin).await, renamed);
        let back = admin.post("/api/v1/blocks/reach/rollback", json!({})).await.data();
        assert_eq!((&back["version"], &back["permissions"]["data"][0]["where"]), (&json!("1.0.0"), &json!({ "doer": "$user.id", "team": { "label": "one" } })));
        assert_eq!(titles(&ann).await, ["a"]);

        // If a version does not use the field, the field can be dropped. After that, a rollback to the earlier version is not
        // possible.
        let fewer = json!([{ "resource": "task", "actions": ["read"], "where": { "team.label": "one" }, "fields": { "read": ["title"] } }]);
        let asks_more = admin.install("?upgrade=true", version("2.0.0", fewer.clone()).await).await.expect_error(409, "new_permissions");
        assert_eq!(asks_more["newPermissions"]["data"], fewer);
        assert_eq!(admin.install("?upgrade=true&allowNewPermissions=true", version("2.0.0", fewer).await).await.status, 200);
        assert_eq!(admin.delete("/api/v1/objects/task/fields/doer").await.status, 204);
        let refused = admin.post("/api/v1/blocks/reach/rollback", json!({})).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("names something that no longer exists"), "{refused}");
        assert_eq!(titles(&ann).await, ["a"]);

        // The same applies if a field that a condition of the earlier version tests has another type now.
        let by_points = json!([{ "resource": "task", "actions": ["read"], "where": { "points": { "gte": 2 } } }]);
        let all = json!([{ "resource": "task", "actions": ["read"] }]);
        for (number, asked) in [("3.0.0", by_points), ("4.0.0", all)] {
            let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", version(number, asked).await).await;
            assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        }
        let retyped = admin.patch("/api/v1/objects/task/fields/points", json!({ "type": "text" })).await;
        assert_eq!(retyped.status, 200, "{}", retyped.text);
        let refused = admin.post("/api/v1/blocks/reach/rollback", json!({})).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("tests a field that has another type now"), "{refused}");
        assert_eq!(admin.get("/api/v1/blocks/reach").await.data()["version"], "4.0.0");
    }

    async fn no_rollback_leads_to_permissions_that_are_refused_by_now(server: Server) {
        let admin = server.admin().await;
        let some = json!([{ "resource": "users", "actions": ["read"], "where": { "name": "ann" } }]);
        assert_eq!(installed(&admin, "", some.clone()).await.status, 201);
        let upgraded = admin.install("?upgrade=true", version("1.1.0", some).await).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        // An earlier version of the server accepted more actions with a condition on users.
        let stored = server.sql("SELECT manifest FROM svc_block_versions WHERE version = '1.0.0'").await[0][0].clone();
        let wide = stored.replace(r#""resource":"users","actions":["read"]"#, r#""resource":"users","actions":["read","update"]"#);
        assert_ne!(wide, stored);
        server.sql(&format!("UPDATE svc_block_versions SET manifest = '{wide}' WHERE version = '1.0.0'")).await;
        let refused = admin.post("/api/v1/blocks/reach/rollback", json!({})).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().starts_with("Version 1.0.0 asks for actions on `users`"), "{refused}");
        assert_eq!(admin.get("/api/v1/blocks/reach").await.data()["version"], "1.1.0");
        server.sql(&format!("UPDATE svc_block_versions SET manifest = '{stored}' WHERE version = '1.0.0'")).await;
        assert_eq!(admin.post("/api/v1/blocks/reach/rollback", json!({})).await.data()["version"], "1.0.0");
    }

    async fn nobody_consents_to_names_that_mean_other_fields_by_then(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let rename = async |from: &str, to: &str| {
            let renamed = admin.patch(&format!("/api/v1/objects/task/fields/{from}"), json!({ "name": to })).await;
            assert_eq!(renamed.status, 200, "{from}: {}", renamed.text);
        };
        // The two fields exchange their names.
        let exchange = async || {
            for (from, to) in [("title", "between"), ("assignee", "title"), ("between", "assignee")] {
                rename(from, to).await;
            }
        };
        let inspection = async |file: &[u8]| {
            let request = admin.request("POST", "/api/v1/blocks/inspect").header("content-type", "application/wasm");
            let seen = admin.server.send(request.timeout(std::time::Duration::from_secs(300)).body(file.to_vec())).await.data();
            assert_eq!(seen["problems"], json!([]), "{seen}");
            seen
        };
        let consent = |shown: &Value| shown["consent"].as_str().unwrap().to_owned();
        let asks = [
            json!([{ "resource": "task", "actions": ["read"], "fields": { "read": ["state", "title"] } }]),
            json!([{ "resource": "task", "actions": ["create"], "check": { "title": { "neq": "a" } } }]),
            json!([{ "resource": "member", "actions": ["read"], "where": { "team": { "task_by_team": { "some": { "title": "a" } } } } }]),
        ];
        for ask in asks {
            let file = version("1.0.0", ask.clone()).await;
            let shown = inspection(&file).await;
            assert_eq!(shown["permissions"]["data"], ask);
            let shown = consent(&shown);
            let planned = admin.install("?dryRun=true", file.clone()).await.json();
            assert_eq!(consent(&planned["report"]), shown);
            exchange().await;
            let install = format!("?consent={shown}");
            let refused = admin.install(&install, file.clone()).await.expect_error(409, "conflict");
            assert!(refused["message"].as_str().unwrap().contains("the schema was changed since then"), "{refused}");
            admin.install(&format!("{install}&dryRun=true"), file.clone()).await.expect_error(409, "conflict");
            admin.get("/api/v1/blocks/reach").await.expect_error(404, "not_found");
            for no_consent in ["?consent=yes", "?consent=", "?consent"] {
                admin.install(no_consent, file.clone()).await.expect_error(400, "invalid_request");
            }
            // With the names as they were, the consent is about the same fields again. Other changes of the schema do not matter.
            exchange().await;
            rename("points", "weight").await;
            let installed = admin.install(&install, file).await;
            assert_eq!(installed.status, 201, "{ask}: {}", installed.text);
            assert!(installed.json()["report"].get("consent").is_none(), "{}", installed.text);
            assert_eq!(admin.delete("/api/v1/blocks/reach").await.status, 204);
            rename("weight", "points").await;
        }

        // An upgrade is the same.
        let first = json!({ "resource": "task", "actions": ["read"], "where": { "title": "a" } });
        assert_eq!(installed(&admin, "", json!([first])).await.status, 201);
        let more = json!({ "resource": "task", "actions": ["read", "update"], "where": { "assignee": "b" } });
        let next = version("1.1.0", json!([first, more])).await;
        let shown = inspection(&next).await;
        assert_eq!(shown["newPermissions"]["data"], json!([more]), "{shown}");
        let upgrade = format!("?upgrade=true&allowNewPermissions=true&consent={}", consent(&shown));
        exchange().await;
        admin.install(&upgrade, next.clone()).await.expect_error(409, "conflict");
        assert_eq!(admin.get("/api/v1/blocks/reach").await.data()["version"], "1.0.0");
        exchange().await;
        let upgraded = admin.install(&upgrade, next).await;
        assert_eq!((upgraded.status, &upgraded.data()["version"]), (200, &json!("1.1.0")), "{}", upgraded.text);
    }

    async fn a_consent_is_to_one_manifest_and_to_the_objects_that_it_names(server: Server) {
        let admin = server.admin().await;
        let note = async || admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        note().await;
        let file = version("1.0.0", json!([{ "resource": "note", "actions": ["read"] }])).await;
        let planned = admin.install("?dryRun=true", file.clone()).await.json();
        let install = format!("?consent={}", planned["report"]["consent"].as_str().unwrap());
        // Each of these files asks for more, or declares something else, or has only another version.
        for (part, more) in [
            ("version", json!("1.0.1")),
            ("permissions", json!({ "data": [{ "resource": "note", "actions": ["read"] }], "http": ["https://elsewhere.example.com"] })),
            ("permissions", json!({ "data": [{ "resource": "note", "actions": ["read"] }], "secrets": ["KEY"] })),
            ("permissions", json!({ "data": [{ "resource": "*", "actions": ["read"] }] })),
            ("instances", json!({ "reuse": { "calls": 10, "seconds": 10 } })),
            ("webhooks", json!([{ "name": "out", "url": "https://hooks.example.com/", "topics": ["data.note.#"] }])),
        ] {
            let mut manifest = inspect(file.clone()).await;
            manifest[part] = more;
            let other = pack(test_block("parity").await, manifest.clone()).await.unwrap();
            let refused = admin.install(&install, other).await.expect_error(409, "conflict");
            assert!(refused["message"].as_str().unwrap().contains("the file is another one"), "{manifest}: {refused}");
        }
        // Another object with the same name has other records.
        assert_eq!(admin.delete("/api/v1/objects/note").await.status, 204);
        admin.install(&install, file.clone()).await.expect_error(409, "conflict");
        note().await;
        admin.install(&install, file.clone()).await.expect_error(409, "conflict");
        admin.get("/api/v1/blocks/reach").await.expect_error(404, "not_found");
        let planned = admin.install("?dryRun=true", file.clone()).await.json();
        let installed = admin.install(&format!("?consent={}", planned["report"]["consent"].as_str().unwrap()), file).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
    }

    async fn a_consent_is_to_each_object_that_the_manifest_names(server: Server) {
        let admin = server.admin().await;
        let note = async || admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        note().await;
        let action = json!([{ "name": "run", "rbac": { "resource": "note", "action": "read" } }]);
        let logged = json!([{ "event": "data.note.created", "consumer": "reach:log", "handler": "log_event" }]);
        let stored = json!({ "object": "note", "map": { "title": "event.topic" } });
        let persisted = json!([{ "event": "auth.#", "consumer": "reach:store", "handler": "persist_event", "config": stored }]);
        let sent = json!([{ "name": "out", "url": "https://hooks.example.com/", "topics": ["auth.#", "data.note.*"] }]);
        let parts = [("actions", action), ("subscriptions", logged), ("subscriptions", persisted), ("webhooks", sent)];
        for (part, declared) in parts {
            let mut manifest = inspect(version("1.0.0", json!([])).await).await;
            manifest[part] = declared;
            let file = pack(test_block("parity").await, manifest.clone()).await.unwrap();
            let planned = admin.install("?dryRun=true", file.clone()).await;
            assert_eq!(planned.status, 200, "{manifest}: {}", planned.text);
            let install = format!("?consent={}", planned.json()["report"]["consent"].as_str().unwrap());
            // Another object with the same name has other records and other events.
            assert_eq!(admin.delete("/api/v1/objects/note").await.status, 204);
            note().await;
            let refused = admin.install(&install, file.clone()).await.expect_error(409, "conflict");
            assert!(refused["message"].as_str().unwrap().contains("the schema was changed since then"), "{manifest}: {refused}");
            admin.get("/api/v1/blocks/reach").await.expect_error(404, "not_found");
            // Other changes of the schema do not matter.
            let planned = admin.install("?dryRun=true", file.clone()).await.json();
            let limited = admin.patch("/api/v1/objects/note/fields/title", json!({ "max": 100 })).await;
            assert_eq!(limited.status, 200, "{}", limited.text);
            let installed = admin.install(&format!("?consent={}", planned["report"]["consent"].as_str().unwrap()), file).await;
            assert_eq!(installed.status, 201, "{manifest}: {}", installed.text);
            assert_eq!(admin.delete("/api/v1/blocks/reach").await.status, 204);
        }
        // Nobody consented to the events of an object that did not exist then.
        let mut manifest = inspect(version("1.0.0", json!([])).await).await;
        manifest["subscriptions"] = json!([{ "event": "data.memo.created", "consumer": "reach:log", "handler": "log_event" }]);
        let file = pack(test_block("parity").await, manifest).await.unwrap();
        let planned = admin.install("?dryRun=true", file.clone()).await;
        assert_eq!(planned.status, 200, "{}", planned.text);
        let install = format!("?consent={}", planned.json()["report"]["consent"].as_str().unwrap());
        admin.define("memo", json!([{ "name": "title", "type": "text" }])).await;
        admin.install(&install, file.clone()).await.expect_error(409, "conflict");
        admin.get("/api/v1/blocks/reach").await.expect_error(404, "not_found");
        // Without the object, the consent is to the same again.
        assert_eq!(admin.delete("/api/v1/objects/memo").await.status, 204);
        let installed = admin.install(&install, file).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
    }

    async fn a_consent_is_to_the_fields_that_events_fill(server: Server) {
        let admin = server.admin().await;
        admin.define("heard", json!([{ "name": "tag", "type": "text" }, { "name": "event", "type": "text" }])).await;
        let config = json!({ "object": "heard", "map": { "tag": "event.topic", "event": "event.id" } });
        let mut manifest = inspect(version("1.0.0", json!([])).await).await;
        manifest["subscriptions"] =
            json!([{ "event": "auth.#", "consumer": "reach:store", "handler": "persist_event", "config": config }]);
        let file = pack(test_block("parity").await, manifest).await.unwrap();
        let planned = admin.install("?dryRun=true", file.clone()).await;
        assert_eq!(planned.status, 200, "{}", planned.text);
        let install = format!("?consent={}", planned.json()["report"]["consent"].as_str().unwrap());
        // The two fields exchange their names.
        let exchange = async || {
            for (from, to) in [("tag", "between"), ("event", "tag"), ("between", "event")] {
                let renamed = admin.patch(&format!("/api/v1/objects/heard/fields/{from}"), json!({ "name": to })).await;
                assert_eq!(renamed.status, 200, "{from}: {}", renamed.text);
            }
        };
        exchange().await;
        let refused = admin.install(&install, file.clone()).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("the schema was changed since then"), "{refused}");
        admin.get("/api/v1/blocks/reach").await.expect_error(404, "not_found");
        exchange().await;
        let installed = admin.install(&install, file).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
    }

    async fn a_list_that_names_what_is_gone_is_no_consent(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let ask = |fields: Value| json!([{ "resource": "task", "actions": ["read"], "fields": { "read": fields } }]);
        let (most, title) = (ask(json!({ "except": ["points", "labels"] })), ask(json!(["title"])));
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        assert_eq!(installed(&admin, "", most.clone()).await.status, 201);
        assert!(asked(&admin).await[0].get("broken").is_none());
        let narrower = version("1.1.0", title.clone()).await;
        let planned = admin.install("?upgrade=true&dryRun=true", narrower.clone()).await;
        assert_eq!((planned.status, &planned.json()["report"]["newPermissions"]["data"]), (200, &json!([])), "{}", planned.text);
        // The list names a relation that is deleted with the object on its other side, so it gives the block nothing.
        assert_eq!(admin.delete("/api/v1/objects/label?cascade=true").await.status, 204);
        admin.make("task", json!({ "title": "a" })).await;
        let seen = run(&admin, json!({ "op": "query", "object": "task", "json": "{}" })).await;
        assert_eq!(seen["done"]["data"], json!([]), "{seen}");
        assert_eq!(asked(&admin).await[0]["broken"], true);
        admin.install("?upgrade=true", narrower.clone()).await.expect_error(409, "new_permissions");
        // Another upload of the installed file asks for nothing new.
        let same = admin.install("?upgrade=true", version("1.0.0", most).await).await;
        assert_eq!(same.status, 200, "{}", same.text);
        assert_eq!(admin.install("?upgrade=true&allowNewPermissions=true", narrower).await.status, 200);
        assert_eq!((titles(&admin).await, asked(&admin).await), (vec!["a".to_owned()], title));
    }

    async fn nobody_consents_with_a_list_that_names_what_is_gone(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let reads = |fields: Value| json!({ "resource": "task", "actions": ["read"], "fields": { "read": fields } });
        let most = reads(json!({ "except": ["points", "labels"] }));
        role(&admin, "lead", json!([{ "resource": "blocks", "actions": ["manage"] }, most])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let title = json!([reads(json!(["title"]))]);
        let planned = lead.install("?dryRun=true", version("1.0.0", title.clone()).await).await;
        assert_eq!(planned.status, 200, "{}", planned.text);
        // The role's list names a relation that is deleted with the object on its other side. So the role no longer gives what it
        // lists, and its holder cannot give that to a block.
        assert_eq!(admin.delete("/api/v1/objects/label?cascade=true").await.status, 204);
        let refusal = installed(&lead, "", title.clone()).await.expect_error(403, "forbidden");
        let message = refusal["message"].as_str().unwrap();
        assert!(message.contains("permissions on `task` that you do not have"), "{message}");
        // Nobody adopts a block without its rights either.
        assert_eq!(installed(&admin, "", title).await.status, 201);
        lead.post("/api/v1/blocks/reach/adopt", json!({})).await.expect_error(403, "forbidden");
    }

    async fn the_schema_suspends_blocks_and_lets_them_continue_at_once(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for name in ["label", "tag"] {
            admin.define(name, json!([{ "name": "text", "type": "text" }])).await;
            admin.relate(json!({ "name": format!("{name}s"), "kind": "many_to_many", "source": "task", "target": name })).await;
        }
        let reads = |fields: Value| json!({ "resource": "task", "actions": ["read"], "fields": { "read": fields } });
        let except = |names: Value| reads(json!({ "except": names }));
        let has = |reads: &Value| json!({ "permissions": [{ "resource": "blocks", "actions": ["manage"] }, reads] });
        role(&admin, "lead", has(&except(json!(["points", "labels"])))["permissions"].clone()).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let gives = async |reads: Value| assert_eq!(admin.patch("/api/v1/roles/lead", has(&reads)).await.status, 200);
        let reason = async || admin.get("/api/v1/blocks/reach").await.data()["suspended"]["reason"].clone();
        let asked = json!([except(json!(["points", "labels", "tags"]))]);
        let made = installed(&lead, "", asked).await;
        assert_eq!((made.status, reason().await), (201, Value::Null), "{}", made.text);

        // The list of the maker names a relation that is deleted with the object on its other side. That of the block does too,
        // so the block gets nothing, and its maker needs nothing.
        assert_eq!(admin.delete("/api/v1/objects/label?cascade=true").await.status, 204);
        assert_eq!(reason().await, Value::Null);
        // This version asks for something that the maker has by a list whose fields all exist.
        gives(except(json!(["points", "tags"]))).await;
        let narrower = version("1.1.0", json!([reads(json!(["title"]))])).await;
        let upgraded = lead.install("?upgrade=true&allowNewPermissions=true", narrower).await;
        assert_eq!((upgraded.status, reason().await), (200, Value::Null), "{}", upgraded.text);
        assert_eq!(admin.delete("/api/v1/objects/tag?cascade=true").await.status, 204);
        assert_eq!(reason().await, "rights_lost");
        lead.post("/api/v1/blocks/reach/adopt", json!({})).await.expect_error(403, "forbidden");
        gives(except(json!(["points"]))).await;
        assert_eq!(reason().await, Value::Null);
    }

    async fn a_block_continues_when_the_schema_leaves_nothing_that_its_maker_lacks(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let reads = |fields: Value| json!({ "resource": "task", "actions": ["read"], "fields": { "read": fields } });
        let manages = json!({ "resource": "blocks", "actions": ["manage"] });
        let most = reads(json!({ "except": ["points", "labels"] }));
        role(&admin, "lead", json!([manages, most])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let made = installed(&lead, "", json!([most])).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let reason = async || admin.get("/api/v1/blocks/reach").await.data()["suspended"]["reason"].clone();
        let less = json!({ "permissions": [manages, reads(json!(["title"]))] });
        assert_eq!(admin.patch("/api/v1/roles/lead", less).await.status, 200);
        assert_eq!(reason().await, "rights_lost");
        assert_eq!(admin.delete("/api/v1/objects/label?cascade=true").await.status, 204);
        assert_eq!(reason().await, Value::Null);
    }

    async fn nobody_consents_to_rows_that_they_do_not_hold(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "lead", json!([
            { "resource": "blocks", "actions": ["manage"] },
            { "resource": "reach:run", "actions": ["read"] },
            { "resource": "task", "actions": ["read"], "where": of_my_teams(), "fields": { "read": { "except": ["points"] } } },
            { "resource": "team", "actions": ["read"] },
            { "resource": "member", "actions": ["read"] },
        ])).await;
        let (lead, lead_id) = user(&admin, "lead", Some("lead")).await;
        let grant = |more: Value| {
            let mut grant = json!({ "resource": "task", "actions": ["read"], "where": of_my_teams(), "fields": { "read": ["title", "team_id"] }, "as": "caller" });
            grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([grant])
        };
        for refused in [
            // Without `as`, the block could use the teams of every caller.
            json!({ "as": null }),
            json!({ "where": { "state": "open" } }),
            json!({ "where": null }),
            json!({ "actions": ["update"] }),
            json!({ "fields": null }),
            json!({ "fields": { "read": ["points"] } }),
        ] {
            let mut data = grant(refused.clone());
            data[0].as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let refusal = installed(&lead, "", data.clone()).await.expect_error(403, "forbidden");
            assert!(refusal["message"].as_str().unwrap().contains("The block asks for"), "{refusal}");
        }
        // A caller without a right on an object cannot use a manifest to find out anything about the object.
        let stranger = |condition: Value| json!({ "resource": "secret", "actions": ["read"], "where": condition });
        admin.define("secret", json!([{ "name": "code", "type": "integer" }])).await;
        for condition in [json!({ "code": 1 }), json!({ "code": "x" }), json!({ "nothing": 1 })] {
            let mut known = stranger(condition);
            let refusal = installed(&lead, "", json!([known])).await.expect_error(403, "forbidden");
            known["resource"] = json!("nowhere");
            let other = installed(&lead, "", json!([known])).await.expect_error(403, "forbidden");
            assert_eq!(refusal["message"].as_str().unwrap().replace("secret", "nowhere"), other["message"]);
        }
        let answer = installed(&lead, "", grant(json!({}))).await;
        assert_eq!(answer.status, 201, "{}", answer.text);

        // The block may use the rows that both its maker and its caller may use. `$user` means the maker in the maker's
        // conditions, and the caller in those of the caller.
        let (one, two) = (admin.make("team", json!({ "name": "one" })).await, admin.make("team", json!({ "name": "two" })).await);
        for (title, team) in [("a", &one), ("b", &two)] {
            admin.make("task", json!({ "title": title, "team_id": team })).await;
        }
        role(&admin, "worker", json!([
            { "resource": "reach:run", "actions": ["read"] },
            { "resource": "task", "actions": ["read"], "where": of_my_teams() },
        ])).await;
        let (both, both_id) = user(&admin, "both", Some("worker")).await;
        let (other, other_id) = user(&admin, "other", Some("worker")).await;
        for (user, team) in [(&lead_id, &one), (&both_id, &one), (&both_id, &two), (&other_id, &two)] {
            admin.make("member", json!({ "user_id": user, "team_id": team })).await;
        }
        assert_eq!((titles(&lead).await, titles(&both).await, titles(&other).await), (vec!["a".to_owned()], vec!["a".to_owned()], vec![]));
        // If the maker loses a right, the block loses it too.
        assert_eq!(admin.patch("/api/v1/roles/lead", json!({ "permissions": [{ "resource": "blocks", "actions": ["manage"] }] })).await.status, 200);
        assert_eq!(refusal(&both, json!({ "op": "query", "object": "task", "json": "{}" })).await, "forbidden");
    }

    async fn nobody_takes_over_a_block_whose_callers_would_reach_less(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let tasks = |more: Value| {
            let mut grant = json!({ "resource": "task", "actions": ["read"] });
            grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            grant
        };
        let (mine, own) = (json!({ "where": { "assignee": "$user.id" } }), json!({ "rowPolicy": "own" }));
        let manages = json!({ "resource": "blocks", "actions": ["manage"] });
        role(&admin, "lead", json!([manages, tasks(mine.clone())])).await;
        role(&admin, "owner", json!([manages, tasks(own.clone())])).await;
        let calls = json!({ "resource": "reach:run", "actions": ["read"] });
        role(&admin, "worker", json!([calls, { "resource": "task", "actions": ["create", "read"] }])).await;
        let (lead, lead_id) = user(&admin, "lead", Some("lead")).await;
        let (owner, _) = user(&admin, "owner", Some("owner")).await;
        let (ann, ann_id) = user(&admin, "ann", Some("worker")).await;
        for (title, assignee) in [("a", &ann_id), ("b", &lead_id)] {
            admin.make("task", json!({ "title": title, "assignee": assignee })).await;
        }
        let asked = |more: &Value| {
            let mut grant = tasks(more.clone());
            grant["as"] = json!("caller");
            json!([grant])
        };
        assert_eq!(installed(&admin, "", asked(&mine)).await.status, 201);
        // With the maker's `$user`, every other caller would reach nothing.
        let next = version("1.1.0", asked(&mine)).await;
        for refused in [
            lead.post("/api/v1/blocks/reach/adopt", json!({})).await,
            lead.install("?upgrade=true&dryRun=true", next.clone()).await,
            lead.install("?upgrade=true", next.clone()).await,
        ] {
            let refused = refused.expect_error(403, "forbidden");
            assert!(refused["message"].as_str().unwrap().contains("You did not make this block"), "{refused}");
        }
        assert_eq!(titles(&ann).await, ["a"]);
        assert_eq!(admin.install("?upgrade=true", next).await.status, 200);

        // Only the part that names the caller would mean another row.
        let (open, both) = (json!({ "where": { "state": "open" } }), json!({ "where": { "state": "open", "assignee": "$user.id" } }));
        role(&admin, "opener", json!([manages, tasks(open)])).await;
        let (opener, _) = user(&admin, "opener", Some("opener")).await;
        let narrower = admin.install("?upgrade=true&allowNewPermissions=true", version("1.1.1", asked(&both)).await).await;
        assert_eq!(narrower.status, 200, "{}", narrower.text);
        lead.post("/api/v1/blocks/reach/adopt", json!({})).await.expect_error(403, "forbidden");
        let adopted = opener.post("/api/v1/blocks/reach/adopt", json!({})).await;
        assert_eq!(adopted.status, 200, "{}", adopted.text);
        assert_eq!(titles(&ann).await, ["a"]);

        // `own` means the rows of the caller, whoever made the block.
        let other = admin.install("?upgrade=true&allowNewPermissions=true", version("1.2.0", asked(&own)).await).await;
        assert_eq!(other.status, 200, "{}", other.text);
        let adopted = owner.post("/api/v1/blocks/reach/adopt", json!({})).await;
        assert_eq!(adopted.status, 200, "{}", adopted.text);
        ann.make("task", json!({ "title": "of ann" })).await;
        assert_eq!(titles(&ann).await, ["of ann"]);
    }

    async fn a_change_of_rights_or_of_the_schema_counts_at_the_next_call(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let calls = json!({ "resource": "reach:run", "actions": ["read"] });
        let reads = |state: &str| json!([calls, { "resource": "task", "actions": ["read"], "where": { "state": state } }]);
        role(&admin, "lead", json!([{ "resource": "blocks", "actions": ["manage"] }, calls, { "resource": "task", "actions": ["read"] }])).await;
        role(&admin, "worker", reads("open")).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let (ann, ann_id) = user(&admin, "ann", Some("worker")).await;
        let (bob, _) = user(&admin, "bob", Some("worker")).await;
        for (title, state) in [("a", "open"), ("b", "done"), ("c", "open")] {
            admin.make("task", json!({ "title": title, "state": state })).await;
        }
        let ask = |mut grant: Value| {
            grant.as_object_mut().unwrap().extend(json!({ "resource": "task", "actions": ["read"], "as": "caller" }).as_object().unwrap().clone());
            json!([grant])
        };
        let made = installed(&lead, "", ask(json!({}))).await;
        assert_eq!(made.status, 201, "{}", made.text);
        // The second call of each caller has the rights that were computed for the first one.
        for _ in 0..2 {
            assert_eq!((titles(&ann).await, titles(&bob).await), (vec!["a".to_owned(), "c".to_owned()], vec!["a".to_owned(), "c".to_owned()]));
        }
        let changed = admin.patch("/api/v1/roles/worker", json!({ "permissions": reads("done") })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        for _ in 0..2 {
            assert_eq!((titles(&ann).await, titles(&bob).await), (vec!["b".to_owned()], vec!["b".to_owned()]));
        }
        // The stored condition follows a rename.
        assert_eq!(admin.patch("/api/v1/objects/task/fields/state", json!({ "name": "phase" })).await.status, 200);
        assert_eq!(titles(&ann).await, ["b"]);
        // Another role adds rows for one of the callers only.
        role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": "reader" })).await.status, 200);
        assert_eq!((titles(&ann).await, titles(&bob).await), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], vec!["b".to_owned()]));
        // An upgrade narrows what the block asks for.
        let narrow = version("1.1.0", ask(json!({ "where": { "phase": "open" } }))).await;
        let upgraded = lead.install("?upgrade=true&allowNewPermissions=true", narrow).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        assert_eq!((titles(&ann).await, titles(&bob).await), (vec!["a".to_owned(), "c".to_owned()], vec![]));
        // If the maker loses the right, the next call of each caller lacks it too.
        let lost = admin.patch("/api/v1/roles/lead", json!({ "permissions": [{ "resource": "blocks", "actions": ["manage"] }] })).await;
        assert_eq!(lost.status, 200, "{}", lost.text);
        for who in [&ann, &bob] {
            assert_eq!(refusal(who, json!({ "op": "query", "object": "task", "json": "{}" })).await, "forbidden");
        }
    }

    async fn own_rows_of_callers_need_a_right_to_own_rows_of_a_key(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "writer", json!([
            { "resource": "blocks", "actions": ["manage"] },
            { "resource": "reach:run", "actions": ["read"] },
            { "resource": "api_keys", "actions": ["create"] },
            { "resource": "task", "actions": ["create", "read"], "rowPolicy": "own" },
        ])).await;
        let (maker, _) = user(&admin, "maker", Some("writer")).await;
        let (other, _) = user(&admin, "other", Some("writer")).await;
        let (installer, _) = key(&maker, json!({ "name": "ci", "roleId": "writer" })).await;
        let own = json!([{ "resource": "task", "actions": ["read"], "rowPolicy": "own", "as": "caller" }]);
        assert_eq!(installed(&installer, "", own).await.status, 201);
        for (who, title) in [(&maker, "a"), (&other, "b")] {
            who.make("task", json!({ "title": title })).await;
            assert_eq!(titles(who).await, [title]);
        }
    }

    async fn a_block_has_the_own_rows_of_its_maker_and_of_its_caller(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let writer = |row_policy: Option<&str>| json!([
            { "resource": "blocks", "actions": ["manage"] },
            { "resource": "reach:run", "actions": ["read"] },
            { "resource": "task", "actions": ["create", "read"], "rowPolicy": row_policy },
        ]);
        role(&admin, "writer", writer(None)).await;
        let (maker, _) = user(&admin, "maker", Some("writer")).await;
        let (other, _) = user(&admin, "other", Some("writer")).await;
        let (third, _) = user(&admin, "third", Some("writer")).await;
        let both = json!([{ "resource": "task", "actions": ["read"] }, { "resource": "task", "actions": ["read"], "as": "caller" }]);
        assert_eq!(installed(&maker, "", both).await.status, 201);
        for (who, title) in [(&maker, "a"), (&other, "b"), (&third, "c")] {
            who.make("task", json!({ "title": title })).await;
        }
        assert_eq!(titles(&other).await, ["a", "b", "c"]);
        // The maker now has only own rows. For itself, the block reads those of the maker, and as its caller those of the caller.
        let narrowed = admin.patch("/api/v1/roles/writer", json!({ "permissions": writer(Some("own")) })).await;
        assert_eq!(narrowed.status, 200, "{}", narrowed.text);
        assert_eq!(titles(&other).await, ["a", "b"]);
        assert_eq!(titles(&maker).await, ["a"]);
    }

    async fn conditions_of_a_manifest_are_checked(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let ask = |condition: Value| json!([{ "resource": "task", "actions": ["read"], "where": condition }]);
        for (data, code, status) in [
            (ask(json!({ "nothing": 1 })), "invalid_block", 400),
            (ask(json!({ "points": "many" })), "invalid_block", 400),
            (ask(json!({ "team": { "team": { "name": "one" } } })), "invalid_block", 400),
            (ask(json!({ "assignee": "$user.name" })), "invalid_block", 400),
            (ask(json!([])), "invalid_block", 400),
            (json!([{ "resource": "*", "actions": ["read"], "where": { "title": "a" } }]), "invalid_block", 400),
            (json!([{ "resource": "webhooks", "actions": ["read"], "where": { "title": "a" } }]), "invalid_block", 400),
            (json!([{ "resource": "task", "actions": ["read"], "fields": { "read": ["nothing"] } }]), "invalid_block", 400),
            (json!([{ "resource": "users", "actions": ["read", "update"], "fields": { "write": ["name"] } }]), "invalid_block", 400),
            (json!([{ "resource": "users", "actions": ["update"], "where": { "name": "a" } }]), "invalid_block", 400),
            (json!([{ "resource": "nowhere", "actions": ["read"], "where": { "title": "a" } }]), "missing_requirement", 400),
            (Value::Array(vec![ask(json!({ "title": "a" }))[0].clone(); 21]), "invalid_block", 400),
        ] {
            installed(&admin, "", data.clone()).await.expect_error(status, code);
            let dry = installed(&admin, "?dryRun=true", data.clone()).await;
            assert_eq!(dry.status, status, "{data}");
        }
        admin.get("/api/v1/blocks/reach").await.expect_error(404, "not_found");
        // A manifest cannot mark its own permission as broken.
        for (more, why) in [
            (json!({ "broken": true }), "unknown field `broken`"),
            (json!({ "fields": { "read": ["title", "title"] } }), "the field `title` is listed twice"),
        ] {
            let mut manifest = json!({ "name": "reach", "version": "1.0.0", "permissions": { "data": [{ "resource": "task", "actions": ["read"] }] } });
            manifest["permissions"]["data"][0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let refused = pack(test_block("parity").await, manifest).await.expect_err("a manifest that is not packed");
            assert!(refused.contains(why), "{refused}");
        }
        // If a block asks for a complete object, the object need not exist yet.
        assert_eq!(installed(&admin, "", json!([{ "resource": "nowhere", "actions": ["read"] }])).await.status, 201);
    }
}

on_both_engines! {
    async fn a_handler_gets_the_events_that_the_maker_of_its_block_may_read(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }, { "name": "open", "type": "boolean" }])).await;
        let fields = ["event", "tag", "actor"].map(|name| json!({ "name": name, "type": "text" }));
        admin.define("heard", json!(fields)).await;
        let open = json!({ "resource": "note", "actions": ["read"], "where": { "open": true } });
        let creates = json!({ "resource": "heard", "actions": ["create"] });
        let manages = ["blocks", "events"].map(|resource| json!({ "resource": resource, "actions": ["manage"] }));
        role(&admin, "maker", json!([manages[0], manages[1], open, creates])).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let file = test_block("listener").await;
        let mut manifest = inspect(file.clone()).await;
        manifest["subscriptions"] =
            json!([{ "event": "data.note.#", "consumer": "listener:first", "handler": "hear", "config": { "tag": "first" } }]);
        manifest["permissions"]["data"] = json!([open, creates]);
        let installed = maker.install("", pack(file, manifest).await.unwrap()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        admin.make("note", json!({ "title": "open", "open": true })).await;
        let shut = admin.make("note", json!({ "title": "shut", "open": false })).await;
        admin.patch(&format!("/api/v1/data/note/{shut}"), json!({ "title": "came", "open": true })).await.data();
        let is_settled = |entries: &[Value]| entries.len() == 3 && entries.iter().all(|entry| entry["status"] == "delivered");
        let entries = ledger_until(&admin, "consumer=listener:first", is_settled).await;
        let (skipped, mut handed): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| entry["skipped"] == true);
        assert_eq!((skipped.len(), &skipped[0]["attempts"], &skipped[0]["topic"]), (1, &json!(0), &json!("data.note.created")), "{entries:#?}");
        handed.sort_by_key(|entry| entry["eventId"].to_string());
        let heard = admin.get("/api/v1/data/heard").await.data();
        let mut heard: Vec<&Value> = heard.as_array().unwrap().iter().map(|one| &one["event"]).collect();
        heard.sort_by_key(|event| event.to_string());
        assert_eq!(heard, handed.iter().map(|entry| &entry["eventId"]).collect::<Vec<_>>());
    }

    async fn a_replay_is_judged_as_the_maker_of_the_block_like_a_delivery(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }, { "name": "kind", "type": "text" }])).await;
        let fields = ["event", "tag", "actor"].map(|name| json!({ "name": name, "type": "text" }));
        admin.define("heard", json!(fields)).await;
        let public = json!({ "resource": "note", "actions": ["read"], "where": { "_not": { "kind": "secret" } } });
        let creates = json!({ "resource": "heard", "actions": ["create"] });
        let manages = ["blocks", "events"].map(|resource| json!({ "resource": resource, "actions": ["manage"] }));
        role(&admin, "maker", json!([manages[0], manages[1], public, creates])).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let file = test_block("listener").await;
        let mut manifest = inspect(file.clone()).await;
        manifest["subscriptions"] =
            json!([{ "event": "data.note.#", "consumer": "listener:first", "handler": "hear", "config": { "tag": "first" } }]);
        manifest["permissions"]["data"] = json!([public, creates]);
        let installed = maker.install("", pack(file, manifest).await.unwrap()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        // The operator knows the field `kind`, but cannot read it in any of these notes.
        role(&admin, "operator", json!([
            { "resource": "blocks", "actions": ["update"] },
            { "resource": "events", "actions": ["read"] },
            { "resource": "note", "actions": ["read"], "fields": { "read": ["title"] } },
            { "resource": "note", "actions": ["read"], "where": { "title": "known" } },
        ])).await;
        let (operator, _) = user(&admin, "operator", Some("operator")).await;
        let mut events = Vec::new();
        for (title, kind) in [("a", "plain"), ("b", "secret")] {
            admin.make("note", json!({ "title": title, "kind": kind })).await;
            let event = operator.get("/api/v1/events?topic=data.note.created&limit=1").await.data()[0].clone();
            let after = &event["payload"]["after"];
            assert_eq!((&after["title"], &after["kind"]), (&json!(title), &Value::Null), "{event}");
            events.push(event["id"].as_str().unwrap().to_owned());
        }
        let is_settled = |entries: &[Value]| entries.len() == 2 && entries.iter().all(|entry| entry["status"] == "delivered");
        ledger_until(&admin, "consumer=listener:first", is_settled).await;
        let replay = async |event: &str| {
            operator.post("/api/v1/blocks/listener/handlers/hear/replay", json!({ "eventId": event })).await
        };
        let again = replay(&events[0]).await;
        assert_eq!((again.status, &again.data()["ok"]), (200, &json!(true)), "{}", again.text);
        // The maker may not read the second note. Its kind is null only for the operator, so the condition fails all the same.
        replay(&events[1]).await.expect_error(409, "conflict");
        let heard = admin.get("/api/v1/data/heard").await.data();
        let heard: Vec<&Value> = heard.as_array().unwrap().iter().map(|one| &one["event"]).collect();
        assert_eq!(heard, [&json!(events[0]), &json!(events[0])]);
    }
}
