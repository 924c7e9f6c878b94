//! Versions of blocks: upgrades, their consent, and rollbacks. There is always exactly one complete version that works.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Answer, Engine, ServerBuilder, example_block, on_both_engines, pack, until, within};
use serde_json::{Value, json};

/// A version of the block `shift`: the component of `examples/echo`, with these keys in its manifest.
async fn version(number: &str, keys: Value) -> Vec<u8> {
    let mut manifest = json!({
        "name": "shift", "version": number, "actions": [{ "name": "echo" }], "requires": { "plugins": ["log"] },
    });
    for (key, value) in keys.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    pack(example_block("echo").await, manifest).await.unwrap()
}

async fn upgraded(admin: &Admin<'_>, file: Vec<u8>) -> Answer {
    let answer = admin.install("?upgrade=true", file).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

async fn serving(admin: &Admin<'_>) -> String {
    admin.get("/api/v1/blocks/shift").await.data()["version"].as_str().unwrap().to_owned()
}

async fn block_events(admin: &Admin<'_>) -> Vec<String> {
    let events = admin.get("/api/v1/events?topic=block.").await.data();
    let mut topics: Vec<String> =
        events.as_array().unwrap().iter().map(|event| event["topic"].as_str().unwrap().to_owned()).collect();
    topics.reverse();
    topics
}

/// A right on one resource.
fn right(resource: &str, actions: Value) -> Value {
    json!({ "data": [{ "resource": resource, "actions": actions }] })
}

on_both_engines! {
    async fn an_upgrade_asks_for_consent_where_it_wants_more(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let first = version("1.0.0", json!({ "permissions": right("task", json!(["read"])) })).await;
        assert_eq!(admin.install("?upgrade=true", first.clone()).await.status, 201);
        let same = version("1.1.0", json!({ "permissions": right("task", json!(["read"])) })).await;
        admin.install("", same.clone()).await.expect_error(409, "block_exists");
        let second = upgraded(&admin, same).await;
        assert_eq!((&second.data()["version"], &second.data()["versions"]), (&json!("1.1.0"), &json!(["1.1.0", "1.0.0"])));

        let more = json!({
            "permissions": {
                "data": [{ "resource": "task", "actions": ["read", "delete"] }], "secrets": ["KEY"], "http": ["https://api.example.com"],
            },
            "subscriptions": [{ "event": "data.task.#", "consumer": "shift:log", "handler": "log_event" }],
            "webhooks": [{ "name": "out", "url": "https://hooks.example.com/", "topics": ["data.task.#"] }],
        });
        let more = version("2.0.0", more).await;
        let dry = admin.install("?upgrade=true&dryRun=true", more.clone()).await;
        assert_eq!(dry.status, 200, "{}", dry.text);
        let listed = dry.json()["report"]["newPermissions"].clone();
        let refused = admin.install("?upgrade=true", more.clone()).await.expect_error(409, "new_permissions");
        assert_eq!(refused["newPermissions"], listed);
        assert_eq!(listed["secrets"], json!(["KEY"]));
        assert_eq!(listed["http"], json!(["https://api.example.com"]));
        assert_eq!((&listed["subscriptions"][0]["event"], &listed["webhooks"][0]["url"]), (&json!("data.task.#"), &json!("https://hooks.example.com/")));
        assert_eq!(listed["data"][0]["actions"], json!(["read", "delete"]));
        assert_eq!(serving(&admin).await, "1.1.0");
        let third = admin.install("?upgrade=true&allowNewPermissions=true", more.clone()).await;
        assert_eq!((third.status, &third.data()["version"]), (200, &json!("2.0.0")));
        assert!(third.json()["report"]["webhooks"][0]["secret"].as_str().unwrap().starts_with("whsec_"));
        // Uploading the current file again is not an upgrade.
        upgraded(&admin, more).await;
        // A version with fewer permissions needs no consent.
        upgraded(&admin, version("2.1.0", json!({})).await).await;
        assert_eq!(admin.get("/api/v1/webhooks").await.data(), json!([]));
        assert_eq!(block_events(&admin).await, ["block.installed", "block.upgraded", "block.upgraded", "block.upgraded"]);
        admin.install("?upgrade=true&colour=red", first).await.expect_error(400, "invalid_request");
    }

    async fn nobody_upgrades_or_rolls_back_to_what_they_do_not_hold(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let wide = json!({ "permissions": right("task", json!(["manage"])) });
        assert_eq!(admin.install("", version("1.0.0", wide.clone()).await).await.status, 201);
        let token = server.sign_up("operator").await;
        let rights = "[{\"resource\":\"blocks\",\"actions\":[\"manage\"]}]";
        server.sql(&format!("INSERT INTO svc_roles VALUES ('r-op', 'op', NULL, '{rights}', 0, 0)")).await;
        server.sql("INSERT INTO svc_user_roles SELECT id, 'r-op' FROM svc_users WHERE name = 'operator'").await;
        let operator = server.with_token(token);
        // These callers lack the rights of the installed version, so they cannot give these rights to other code.
        operator.install("?upgrade=true&allowNewPermissions=true", version("1.1.0", wide).await).await.expect_error(403, "forbidden");
        upgraded(&operator, version("2.0.0", json!({})).await).await;
        operator.post("/api/v1/blocks/shift/rollback", json!({})).await.expect_error(403, "forbidden");
        assert_eq!(admin.post("/api/v1/blocks/shift/rollback", json!({})).await.data()["version"], "1.0.0");
    }

    async fn whoever_lets_other_code_have_secrets_manages_them(server: Server) {
        let admin = server.admin().await;
        let asks = json!({ "permissions": { "secrets": ["KEY"], "http": ["https://api.example.com"] } });
        assert_eq!(admin.install("", version("1.0.0", asks.clone()).await).await.status, 201);
        let token = server.sign_up("installer").await;
        let rights = "[{\"resource\":\"blocks\",\"actions\":[\"create\",\"read\"]}]";
        server.sql(&format!("INSERT INTO svc_roles VALUES ('r-in', 'in', NULL, '{rights}', 0, 0)")).await;
        server.sql("INSERT INTO svc_user_roles SELECT id, 'r-in' FROM svc_users WHERE name = 'installer'").await;
        let installer = server.with_token(token);
        // No secret is set yet, so there is nothing to reveal.
        upgraded(&installer, version("1.1.0", asks.clone()).await).await;
        admin.post("/api/v1/blocks/shift/secrets", json!({ "name": "KEY", "value": "hush" })).await.data();
        let taken = json!({ "permissions": { "secrets": ["KEY"], "http": ["https://elsewhere.example.com"] } });
        for file in [version("1.2.0", asks.clone()).await, version("1.2.0", taken).await] {
            let refused = installer.install("?upgrade=true&allowNewPermissions=true", file).await.expect_error(403, "forbidden");
            assert!(refused["message"].as_str().unwrap().contains("secrets"), "{refused}");
        }
        installer.post("/api/v1/blocks/shift/rollback", json!({})).await.expect_error(403, "forbidden");
        // A version that asks for no permissions gets none.
        upgraded(&installer, version("2.0.0", json!({})).await).await;
        upgraded(&admin, version("2.1.0", json!({})).await).await;
    }

    async fn an_input_names_a_member_once_and_is_checked_in_bounded_time(server: Server) {
        let admin = server.admin().await;
        let mut defs = json!({ "a0": { "type": "string" } });
        for level in 1..50 {
            let below = json!({ "$ref": format!("#/$defs/a{}", level - 1) });
            defs[format!("a{level}")] = json!({ "allOf": [below, below] });
        }
        let input = json!({
            "type": "object", "$defs": defs,
            "properties": { "amount": { "type": "integer", "minimum": 0 }, "slow": { "$ref": "#/$defs/a49" } },
        });
        let file = version("1.0.0", json!({ "actions": [{ "name": "echo", "input": input }] })).await;
        let installed = admin.install("", file).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let sent = async |body: &'static str| {
            let request = admin.request("POST", "/api/v1/blocks/shift/actions/echo").header("content-type", "application/json");
            server.send(request.body(body)).await
        };
        assert_eq!(sent(r#"{"amount":5}"#).await.data(), json!({ "amount": 5 }));
        sent(r#"{"amount":-5}"#).await.expect_error(400, "validation_failed");
        // If two members have the same name, some JSON parsers take the first and others the last.
        let twice = sent(r#"{"amount":-5,"amount":5}"#).await.expect_error(400, "invalid_request");
        assert!(twice["message"].as_str().unwrap().contains("amount"), "{twice}");
        sent(r#"{"amount":5,"deep":[{"x":1,"x":1}]}"#).await.expect_error(400, "invalid_request");
        // The work of the check doubles with each level of the schema. The check is stopped, and the server continues.
        sent(r#"{"slow":"text"}"#).await.expect_error(400, "invalid_request");
        assert_eq!(sent(r#"{"amount":6}"#).await.data(), json!({ "amount": 6 }));
    }

    async fn a_rollback_goes_back_one_version_at_a_time(server: Server) {
        let admin = server.admin().await;
        for number in ["1.0.0", "1.1.0", "1.2.0"] {
            let file = version(number, json!({ "description": number })).await;
            assert!(admin.install("?upgrade=true", file).await.status < 300);
        }
        let back = async || admin.post("/api/v1/blocks/shift/rollback", json!({})).await;
        assert_eq!(back().await.data()["version"], "1.1.0");
        assert_eq!(admin.post("/api/v1/blocks/shift/actions/echo", json!({ "a": 1 })).await.data(), json!({ "a": 1 }));
        assert_eq!(back().await.data()["version"], "1.0.0");
        back().await.expect_error(409, "conflict");
        // The next upgrade removes the version that was rolled back. So the previous version is the one that was active before
        // it.
        upgraded(&admin, version("2.0.0", json!({})).await).await;
        assert_eq!(admin.get("/api/v1/blocks/shift").await.data()["versions"], json!(["2.0.0", "1.0.0"]));
        assert_eq!(back().await.data()["version"], "1.0.0");
        // Another file with the same version number replaces the current file.
        let other = upgraded(&admin, version("1.0.0", json!({ "description": "mended" })).await).await;
        assert_eq!((&other.data()["description"], &other.data()["versions"]), (&json!("mended"), &json!(["1.0.0"])));
        for minor in 1..8 {
            upgraded(&admin, version(&format!("3.{minor}.0"), json!({})).await).await;
        }
        assert_eq!(admin.get("/api/v1/blocks/shift").await.data()["versions"], json!(["3.7.0", "3.6.0", "3.5.0", "3.4.0", "3.3.0"]));
        assert_eq!(server.sql("SELECT version FROM svc_block_versions").await.len(), 5);
        admin.post("/api/v1/blocks/nothing/rollback", json!({})).await.expect_error(404, "not_found");
        // A rollback emits the same event as any other change of the version.
        let events = admin.get("/api/v1/events?topic=block.upgraded").await.data();
        assert!(events.as_array().unwrap().iter().any(|event| event["payload"]["version"] == "1.1.0"), "{events}");
    }

    async fn configuration_secrets_webhooks_and_groups_outlive_an_upgrade(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let config = |properties: Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let keys = |config: Value, url: &str, consumer: &str| {
            json!({
                "config": config,
                "permissions": { "secrets": ["KEY"] },
                "webhooks": [{ "name": "out", "url": url, "topics": ["data.task.#"] }],
                "subscriptions": [{ "event": "data.task.#", "consumer": consumer, "handler": "log_event" }],
            })
        };
        let first = config(json!({ "size": { "type": "integer", "default": 1 }, "colour": { "type": "string", "default": "red" }, "gone": { "type": "string" } }));
        let installed = admin.install("", version("1.0.0", keys(first, "https://one.example.com/", "shift:a")).await).await;
        let webhook = installed.json()["report"]["webhooks"][0].clone();
        admin.post("/api/v1/blocks/shift/secrets", json!({ "name": "KEY", "value": "hush" })).await;
        let set = json!({ "size": 7, "gone": "soon" });
        assert_eq!(admin.patch("/api/v1/blocks/shift", json!({ "config": set })).await.data()["config"], json!({ "size": 7, "gone": "soon", "colour": "red" }));

        // `size` is now text, `gone` no longer exists, and `colour`, which nobody set, has another default.
        let second = config(json!({ "size": { "type": "string", "default": "m" }, "colour": { "type": "string", "default": "blue" } }));
        let file = version("2.0.0", keys(second.clone(), "https://two.example.com/", "shift:a")).await;
        let answer = admin.install("?upgrade=true&allowNewPermissions=true", file).await;
        assert_eq!(answer.data()["config"], json!({ "size": "m", "colour": "blue" }));
        let report = answer.json()["report"]["webhooks"][0].clone();
        assert_eq!((&report["id"], &report["url"], &report["secret"]), (&webhook["id"], &json!("https://two.example.com/"), &Value::Null));
        let secrets = admin.get("/api/v1/blocks/shift/secrets").await.data();
        assert_eq!((&secrets[0]["name"], &secrets[0]["isSet"]), (&json!("KEY"), &json!(true)));
        assert!(!secrets.to_string().contains("hush"));
        let groups = async || {
            let listed = admin.get("/api/v1/events/subscriptions").await.data();
            listed.as_array().unwrap().iter().map(|group| group["consumer"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(groups().await, ["shift:a"]);
        upgraded(&admin, version("3.0.0", keys(second, "https://two.example.com/", "shift:b")).await).await;
        assert_eq!(groups().await, ["shift:b"]);
        // A rollback restores what the earlier version declares.
        admin.post("/api/v1/blocks/shift/rollback", json!({})).await.data();
        assert_eq!(groups().await, ["shift:a"]);
        assert_eq!(admin.delete("/api/v1/blocks/shift").await.status, 204);
        assert_eq!(server.sql("SELECT name FROM svc_block_secrets").await.len(), 0);
        assert_eq!(server.sql("SELECT id FROM svc_webhooks").await.len(), 0);
    }

    async fn calls_that_run_end_on_their_version(server: Server) {
        let admin = server.admin().await;
        let first = version("1.0.0", json!({ "actions": [{ "name": "spin", "timeoutMs": 2500 }, { "name": "echo" }] })).await;
        assert_eq!(admin.install("", first).await.status, 201);
        // The new version is another program, which has neither `spin` nor `echo`.
        let manifest = json!({
            "name": "shift", "version": "2.0.0", "actions": [{ "name": "complete" }], "requires": { "plugins": ["data", "log", "config"] },
        });
        let second = pack(example_block("tasks").await, manifest).await.unwrap();
        let upgrade = async {
            let begun = async || admin.get("/api/v1/blocks/shift/logs").await.text.contains("spinning");
            until("the call has begun", begun).await;
            upgraded(&admin, second).await;
            admin.post("/api/v1/blocks/shift/actions/echo", json!({})).await.expect_error(404, "not_found");
        };
        let (spun, ()) = tokio::join!(admin.post("/api/v1/blocks/shift/actions/spin", json!({})), upgrade);
        spun.expect_error(504, "action_timeout");
    }

    async fn one_name_stands_for_one_thing(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let named = async |block: &str, action: &str| {
            let manifest = json!({ "name": block, "version": "1.0.0", "actions": [{ "name": action }], "requires": { "plugins": ["log"] } });
            // The component of `examples/echo` handles only `echo`. But the names are checked before the handlers, so only the
            // names can cause the error.
            pack(example_block("echo").await, manifest).await.unwrap()
        };
        for (block, action) in [("create", "task"), ("list", "objects")] {
            let error = admin.install("", named(block, action).await).await.expect_error(400, "invalid_block");
            assert!(error["message"].as_str().unwrap().contains(&format!("`{action}`")), "{error}");
        }
        assert_eq!(admin.install("", named("update-x", "echo").await).await.status, 201);
        let object = json!({ "name": "x_echo", "fields": [{ "name": "a", "type": "text" }] });
        let error = admin.post("/api/v1/objects", object).await.expect_error(400, "invalid_schema");
        assert!(error["message"].as_str().unwrap().contains("update-x"), "{error}");
        assert_eq!(admin.get("/api/v1/objects/x_echo").await.status, 404);
        let object = json!({ "name": "echo", "fields": [{ "name": "a", "type": "text" }] });
        assert_eq!(admin.post("/api/v1/objects", object).await.status, 201);
        let error = admin.install("", named("delete", "echo").await).await.expect_error(400, "invalid_block");
        assert!(error["message"].as_str().unwrap().contains("`delete_echo`"), "{error}");
        assert_eq!(admin.delete("/api/v1/objects/echo").await.status, 204);
        assert_eq!(admin.install("", named("delete", "echo").await).await.status, 201);
    }

    async fn what_another_block_needs_stays(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.install("", version("1.0.0", json!({})).await).await.status, 201);
        let needs = json!({
            "name": "needs", "version": "1.0.0", "actions": [{ "name": "echo" }], "requires": { "handlers": ["shift.echo"], "plugins": ["shift", "log"] },
        });
        assert_eq!(admin.install("", pack(example_block("echo").await, needs).await.unwrap()).await.status, 201);
        admin.delete("/api/v1/blocks/shift").await.expect_error(409, "conflict");
        let lacks = version("2.0.0", json!({ "actions": [{ "name": "remember" }] })).await;
        let error = admin.install("?upgrade=true", lacks).await.expect_error(409, "conflict");
        assert!(error["message"].as_str().unwrap().contains("shift.echo"), "{error}");
        assert_eq!(serving(&admin).await, "1.0.0");
        assert_eq!(admin.delete("/api/v1/blocks/needs").await.status, 204);
        assert_eq!(admin.delete("/api/v1/blocks/shift").await.status, 204);
    }

    async fn a_kill_at_any_moment_leaves_the_old_version_or_the_new(server: Server) {
        let token = server.admin().await.token;
        let files = [
            version("1.0.0", json!({ "subscriptions": [{ "event": "data.#", "consumer": "shift:one", "handler": "log_event" }] })).await,
            version("2.0.0", json!({ "subscriptions": [{ "event": "data.#", "consumer": "shift:two", "handler": "log_event" }] })).await,
        ];
        assert_eq!(server.with_token(token.clone()).install("", files[0].clone()).await.status, 201);
        let mut server = server;
        for round in 0..6_u64 {
            let (base, file) = (server.base.clone(), files[usize::from(round % 2 == 0)].clone());
            let admin = server.with_token(token.clone());
            let request = admin
                .request("POST", "/api/v1/blocks?upgrade=true&allowNewPermissions=true")
                .header("content-type", "application/wasm")
                .body(file);
            let sent = tokio::spawn(request.send());
            // When the component is already compiled, an upgrade takes about ten milliseconds.
            tokio::time::sleep(Duration::from_millis(if round < 2 { 1500 } else { round * 9 })).await;
            server.kill();
            let _ = sent.await;
            server = server.restart().await;
            assert_ne!(server.base, base);
            let admin = server.with_token(token.clone());
            let block = admin.get("/api/v1/blocks/shift").await.data();
            let groups = admin.get("/api/v1/events/subscriptions").await.data();
            let expected = if block["version"] == "1.0.0" { "shift:one" } else { "shift:two" };
            assert_eq!((groups.as_array().unwrap().len(), &groups[0]["consumer"]), (1, &json!(expected)), "{block}");
            let stored = server.sql("SELECT v.digest FROM svc_blocks b JOIN svc_block_versions v ON v.block = b.name AND v.version = b.version").await;
            assert_eq!(json!(stored[0][0]), block["digest"]);
            assert_eq!(admin.post("/api/v1/blocks/shift/actions/echo", json!({ "round": round })).await.data(), json!({ "round": round }));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instance_serves_a_change_within_five_seconds() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let here = first.admin().await;
    let second = first.builder().start().await;
    let there = second.with_token(here.token.clone());
    let serves = async |what: &str, number: Option<&str>| {
        let begun = Instant::now();
        loop {
            let block = there.get("/api/v1/blocks/shift").await;
            let found = (block.status == 200).then(|| block.data()["version"].as_str().unwrap().to_owned());
            let called = there.post("/api/v1/blocks/shift/actions/echo", json!({})).await.status;
            if found.as_deref() == number && called == if number.is_some() { 200 } else { 404 } {
                break;
            }
            assert!(begun.elapsed() < within(Duration::from_secs(5)), "{what}: the other instance serves {found:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let files = [version("1.0.0", json!({})).await, version("2.0.0", json!({})).await];
    // The other instance compiles the component itself. Here that happens before the time is measured.
    there.install("?dryRun=true", files[0].clone()).await;
    assert_eq!(here.install("", files[0].clone()).await.status, 201);
    serves("the install", Some("1.0.0")).await;
    upgraded(&here, files[1].clone()).await;
    serves("the upgrade", Some("2.0.0")).await;
    here.post("/api/v1/blocks/shift/rollback", json!({})).await.data();
    serves("the rollback", Some("1.0.0")).await;
    assert_eq!(here.delete("/api/v1/blocks/shift").await.status, 204);
    serves("the uninstall", None).await;
}
