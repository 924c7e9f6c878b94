//! A new maker must not cut what somebody else made: webhooks, subscriptions and blocks are judged by the rights of their maker.

use std::time::Duration;

use blockbase_tests::{Admin, Receiver, Server, example_block, on_both_engines, pack};
use serde_json::{Value, json};

use crate::accounts::policies::{define, of_my_teams};
use crate::accounts::roles::{key, role, user};
use crate::events::webhooks::{make, quick};

/// A grant to read tasks, with these further members.
fn reads(more: Value) -> Value {
    let mut grant = json!({ "resource": "task", "actions": ["read"] });
    grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grant
}

/// The grants of somebody who manages webhooks, subscriptions, blocks and keys, and reads tasks like this.
fn manager(read: Value) -> Value {
    let manages = |resource: &str| json!({ "resource": resource, "actions": ["manage"] });
    json!([manages("webhooks"), manages("events"), manages("blocks"), manages("api_keys"), read])
}

/// Makes a subscription to tasks.
async fn subscribe(maker: &Admin<'_>, consumer: &str) {
    let body = json!({ "event": "data.task.#", "consumer": consumer, "handler": "log_event" });
    let made = maker.post("/api/v1/events/subscriptions", body).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

/// The makers of all webhooks, subscriptions and blocks, in this order: each is a user, and a key or an empty text.
async fn makers(server: &Server) -> Vec<Vec<String>> {
    let mut makers = Vec::new();
    for table in ["svc_webhooks", "svc_subscriptions", "svc_blocks"] {
        let select = format!("SELECT made_by_user, coalesce(made_by_key, '') FROM {table} ORDER BY 1, 2");
        makers.extend(server.sql(&select).await);
    }
    makers
}

/// As many things that this user made with a session.
fn of_session(user_id: &str, count: usize) -> Vec<Vec<String>> {
    vec![vec![user_id.to_owned(), String::new()]; count]
}

/// A version of a block: the component of `examples/echo`, with these keys in its manifest.
async fn version(name: &str, number: &str, keys: Value) -> Vec<u8> {
    let mut manifest = json!({
        "name": name, "version": number, "actions": [{ "name": "echo" }], "requires": { "plugins": ["log"] },
    });
    manifest.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    pack(example_block("echo").await, manifest).await.unwrap()
}

fn webhook(name: &str, url: &str) -> Value {
    json!({ "name": name, "url": url, "topics": ["data.task.#"] })
}

fn subscription(consumer: &str) -> Value {
    json!({ "event": "data.task.#", "consumer": consumer, "handler": "log_event" })
}

const UPGRADE: &str = "?upgrade=true&allowNewPermissions=true";

on_both_engines! {
    async fn nobody_adopts_what_they_would_cut(engine: Engine) {
        let server = quick(engine).start().await;
        let receiver = Receiver::start().await;
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "wide", manager(reads(json!({})))).await;
        let (maker, maker_id) = user(&admin, "maker", Some("wide")).await;
        let (id, _) = make(&maker, json!({ "url": receiver.url, "topics": ["data.task.#"] })).await;
        subscribe(&maker, "listener").await;
        let path = format!("/api/v1/webhooks/{id}");
        let adoptions = [format!("{path}/adopt"), "/api/v1/events/subscriptions/listener/adopt".to_owned()];
        let mut narrow = Vec::new();
        for (name, more) in [
            ("own", json!({ "rowPolicy": "own" })),
            ("state", json!({ "where": { "state": "open" } })),
            ("variable", json!({ "where": { "assignee": "$user.id" } })),
            ("related", json!({ "where": of_my_teams() })),
            ("fields", json!({ "fields": { "read": { "except": ["points"] } } })),
        ] {
            role(&admin, name, manager(reads(more))).await;
            narrow.push((name, user(&admin, name, Some(name)).await.0));
        }
        let refuses_all = async || {
            for (name, who) in &narrow {
                for adopt in &adoptions {
                    let refused = who.post(adopt, json!({})).await.expect_error(403, "forbidden");
                    let message = refused["message"].as_str().unwrap();
                    assert!(message.contains("only some records or fields of `task`"), "{name}: {message}");
                }
            }
        };
        let before = admin.get(&path).await.data();
        refuses_all().await;
        assert_eq!((makers(&server).await, admin.get(&path).await.data()), (of_session(&maker_id, 2), before));
        // The webhook still sends everything that its maker may read.
        admin.make("task", json!({ "title": "hidden", "state": "done", "points": 3 })).await;
        let sent = receiver.wait_for(1).await.remove(0).json();
        let after = &sent["payload"]["after"];
        assert_eq!((&after["title"], &after["points"]), (&json!("hidden"), &json!(3)), "{sent}");

        // The same holds while the things are suspended.
        assert_eq!(admin.delete(&format!("/api/v1/users/{maker_id}?suspend=true")).await.status, 204);
        refuses_all().await;
        assert_eq!(admin.get(&path).await.data()["suspended"]["reason"], "maker_gone");
        let (wide, wide_id) = user(&admin, "successor", Some("wide")).await;
        for adopt in &adoptions {
            assert_eq!(wide.post(adopt, json!({})).await.data()["suspended"], Value::Null);
        }
        assert_eq!(makers(&server).await, of_session(&wide_id, 2));
    }

    async fn a_person_adopts_what_their_own_key_made(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "team", manager(reads(json!({})))).await;
        let (ann, ann_id) = user(&admin, "ann", Some("team")).await;
        let (bob, _) = user(&admin, "bob", Some("team")).await;
        let (by_key, row) = key(&ann, json!({ "name": "one", "roleId": "team" })).await;
        let (by_other_key, _) = key(&ann, json!({ "name": "two", "roleId": "team" })).await;
        let (by_key_of_key, below) = key(&by_key, json!({ "name": "three", "roleId": "team" })).await;
        let mut adoptions = Vec::new();
        for (maker, consumer) in [(&by_key, "one"), (&by_key_of_key, "two"), (&by_key, "three")] {
            let (id, _) = make(maker, json!({ "url": "https://webhook.invalid/", "topics": ["data.task.#"] })).await;
            subscribe(maker, consumer).await;
            adoptions.push([format!("/api/v1/webhooks/{id}/adopt"), format!("/api/v1/events/subscriptions/{consumer}/adopt")]);
        }
        let last = adoptions.pop().unwrap();
        // From now on, everybody reads only their own tasks.
        let narrow = json!({ "permissions": manager(reads(json!({ "where": { "assignee": "$user.id" } }))) });
        assert_eq!(admin.patch("/api/v1/roles/team", narrow).await.status, 200);
        let refuses = async |who: &Admin<'_>, adoptions: &[[String; 2]]| {
            for adopt in adoptions.iter().flatten() {
                who.post(adopt, json!({})).await.expect_error(403, "forbidden");
            }
        };
        refuses(&bob, &adoptions).await;
        // A key is not its person, because it may have fewer rights.
        refuses(&by_other_key, &adoptions).await;
        let (key_id, below_id) = (row["id"].as_str().unwrap().to_owned(), below["id"].as_str().unwrap().to_owned());
        let of = |key_id: &str| vec![ann_id.clone(), key_id.to_owned()];
        let mut made = [of(&key_id), of(&key_id), of(&below_id)];
        made.sort();
        let before = makers(&server).await;
        assert_eq!((&before[..3], &before[3..]), (&made[..], &made[..]));
        for adopt in adoptions.iter().flatten() {
            assert_eq!(ann.post(adopt, json!({})).await.data()["suspended"], Value::Null);
        }
        let after = [of(""), of(""), of(&key_id)];
        assert_eq!(makers(&server).await, [after.clone(), after.clone()].concat());
        refuses(&by_key, &adoptions).await;

        // Nobody knows any more who made a key that is gone.
        assert_eq!(ann.delete(&format!("/api/v1/api-keys/{key_id}")).await.status, 204);
        refuses(&ann, &[last]).await;
        assert_eq!(makers(&server).await, [after.clone(), after].concat());
    }

    async fn nobody_adopts_what_a_key_of_theirs_made_that_somebody_else_gave_them(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "wide", manager(reads(json!({})))).await;
        role(&admin, "narrow", manager(reads(json!({ "where": { "state": "open" } })))).await;
        let (bob, bob_id) = user(&admin, "bob", Some("narrow")).await;
        // This key acts as Bob, but has the rights of its role. So has the key that it makes.
        let (given, _) = key(&admin, json!({ "name": "given", "roleId": "wide", "userId": bob_id })).await;
        let (below, _) = key(&given, json!({ "name": "below", "roleId": "wide" })).await;
        for (name, maker) in [("given", &given), ("below", &below)] {
            let (id, _) = make(maker, json!({ "url": "https://webhook.invalid/", "topics": ["data.task.#"] })).await;
            let consumer = format!("of-{name}");
            subscribe(maker, &consumer).await;
            let keys = json!({ "webhooks": [webhook("out", "https://webhook.invalid/")] });
            let installed = maker.install("", version(name, "1.0.0", keys.clone()).await).await;
            assert_eq!(installed.status, 201, "{}", installed.text);
            let before = makers(&server).await;
            for path in [
                format!("/api/v1/webhooks/{id}/adopt"),
                format!("/api/v1/events/subscriptions/{consumer}/adopt"),
                format!("/api/v1/blocks/{name}/adopt"),
            ] {
                bob.post(&path, json!({})).await.expect_error(403, "forbidden");
            }
            bob.install("?upgrade=true", version(name, "1.1.0", keys).await).await.expect_error(403, "forbidden");
            assert_eq!(makers(&server).await, before);
        }
    }

    async fn nothing_is_handed_over_to_somebody_who_would_cut_it(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "wide", manager(reads(json!({})))).await;
        role(&admin, "narrow", manager(reads(json!({ "where": { "state": "open" } })))).await;
        let (_, wide_id) = user(&admin, "wide", Some("wide")).await;
        let (_, narrow_id) = user(&admin, "narrow", Some("narrow")).await;
        // With each user, one more thing of the heir, and with a block also its subscription.
        for (kind, count) in [("webhook", 1), ("subscription", 2), ("block", 4)] {
            let (maker, maker_id) = user(&admin, kind, Some("wide")).await;
            match kind {
                "webhook" => {
                    make(&maker, json!({ "url": "https://webhook.invalid/", "topics": ["data.task.#"] })).await;
                }
                "subscription" => subscribe(&maker, "listener").await,
                _ => {
                    let keys = json!({ "subscriptions": [subscription("hears:log")] });
                    assert_eq!(maker.install("", version("hears", "1.0.0", keys).await).await.status, 201);
                }
            }
            let path = format!("/api/v1/users/{maker_id}");
            let before = makers(&server).await;
            let refused = admin.delete(&format!("{path}?handOverTo={narrow_id}")).await.expect_error(403, "forbidden");
            assert!(refused["message"].as_str().unwrap().contains("lacks a right"), "{kind}: {refused}");
            assert_eq!((admin.get(&path).await.status, makers(&server).await), (200, before), "{kind}");
            assert_eq!(admin.delete(&format!("{path}?handOverTo={wide_id}")).await.status, 204, "{kind}");
            assert_eq!(makers(&server).await, of_session(&wide_id, count), "{kind}");
        }
    }

    async fn nobody_upgrades_a_block_whose_events_they_would_cut(engine: Engine) {
        let server = quick(engine).start().await;
        let receiver = Receiver::start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let out = webhook("out", &receiver.url);
        let both = json!({ "webhooks": [out], "subscriptions": [subscription("sender:log")] });
        assert_eq!(admin.install("", version("sender", "1.0.0", both.clone()).await).await.status, 201);
        let active = version("sender", "1.1.0", both.clone()).await;
        assert_eq!(admin.install("?upgrade=true", active.clone()).await.status, 200);
        role(&admin, "wide", manager(reads(json!({})))).await;
        role(&admin, "narrow", manager(reads(json!({ "where": { "state": "open" } })))).await;
        let (narrow, narrow_id) = user(&admin, "narrow", Some("narrow")).await;
        let (wide, wide_id) = user(&admin, "wide", Some("wide")).await;
        let state = async || {
            let mut state = Vec::new();
            for path in ["/api/v1/blocks/sender", "/api/v1/webhooks", "/api/v1/events/subscriptions"] {
                state.push(admin.get(path).await.data());
            }
            (state, makers(&server).await)
        };
        let before = state().await;
        for keys in [
            json!({ "webhooks": [out] }),
            json!({ "subscriptions": [subscription("sender:log")] }),
            // Under another name, it would go on with fewer events too.
            json!({ "webhooks": [webhook("renamed", &receiver.url)] }),
            json!({ "subscriptions": [subscription("sender:renamed")] }),
        ] {
            let file = version("sender", "1.2.0", keys.clone()).await;
            let inspect = narrow.request("POST", "/api/v1/blocks/inspect").header("content-type", "application/wasm");
            let inspected = server.send(inspect.timeout(Duration::from_secs(300)).body(file.clone())).await.data();
            let problems = inspected["problems"].as_array().unwrap();
            let is_told = |problem: &&Value| problem["message"].as_str().unwrap().contains("only some records or fields of `task`");
            let told: Vec<&Value> = problems.iter().filter(is_told).collect();
            assert_eq!((problems.len(), told.len(), &problems[0]["error"]), (1, 1, &json!("forbidden")), "{keys}: {inspected}");
            for query in ["?upgrade=true&dryRun=true", UPGRADE] {
                narrow.install(query, file.clone()).await.expect_error(403, "forbidden");
            }
        }
        narrow.post("/api/v1/blocks/sender/rollback", json!({})).await.expect_error(403, "forbidden");
        narrow.post("/api/v1/blocks/sender/adopt", json!({})).await.expect_error(403, "forbidden");
        // The file that is active changes nothing, so nobody takes anything over with it.
        assert_eq!(narrow.install("?upgrade=true", active).await.status, 200);
        assert_eq!(state().await, before);
        admin.make("task", json!({ "title": "hidden", "state": "done", "points": 3 })).await;
        let sent = receiver.wait_for(1).await.remove(0).json();
        assert_eq!(sent["payload"]["after"]["points"], 3, "{sent}");

        // Somebody who reads everything upgrades it, and the webhook keeps its id and secret.
        let upgraded = wide.install("?upgrade=true", version("sender", "1.3.0", both).await).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        let report = upgraded.json()["report"]["webhooks"][0].clone();
        assert_eq!((&report["id"], report.get("secret")), (&before.0[1][0]["id"], None), "{report}");
        assert_eq!(makers(&server).await, of_session(&wide_id, 3));
        // What the block does now counts too. Otherwise a rollback would restore it with fewer events.
        let empty = version("sender", "2.0.0", json!({})).await;
        for query in ["?upgrade=true&dryRun=true", UPGRADE] {
            narrow.install(query, empty.clone()).await.expect_error(403, "forbidden");
        }
        assert_eq!(makers(&server).await, of_session(&wide_id, 3));
        assert_eq!(wide.install("?upgrade=true", empty).await.status, 200);
        assert_eq!(admin.get("/api/v1/webhooks").await.data(), json!([]));
        // What the block would do counts as before.
        let again = version("sender", "2.0.1", json!({ "webhooks": [out], "subscriptions": [subscription("sender:log")] })).await;
        narrow.install(UPGRADE, again).await.expect_error(403, "forbidden");
        narrow.post("/api/v1/blocks/sender/rollback", json!({})).await.expect_error(403, "forbidden");
        assert_eq!(makers(&server).await, of_session(&wide_id, 1));
        // A block that gets no events, and would get none, is not cut.
        assert_eq!(narrow.install("?upgrade=true", version("sender", "2.0.2", json!({})).await).await.status, 200);
        assert_eq!(makers(&server).await, of_session(&narrow_id, 1));
        // From now on the block is their own, so they may give it what they could give to a new one.
        let own = json!({ "webhooks": [out], "subscriptions": [subscription("sender:log")] });
        for number in ["2.1.0", "2.2.0"] {
            assert_eq!(narrow.install(UPGRADE, version("sender", number, own.clone()).await).await.status, 200);
        }
        assert_eq!(makers(&server).await, of_session(&narrow_id, 3));
    }

    async fn each_kind_of_events_of_a_block_counts_by_itself(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "narrow", manager(reads(json!({ "where": { "state": "open" } })))).await;
        let (narrow, _) = user(&admin, "narrow", Some("narrow")).await;
        for (name, keys) in [
            ("sends", json!({ "webhooks": [webhook("out", "https://webhook.invalid/")] })),
            ("hears", json!({ "subscriptions": [subscription("hears:log")] })),
        ] {
            assert_eq!(admin.install("", version(name, "1.0.0", keys.clone()).await).await.status, 201);
            let before = makers(&server).await;
            narrow.post(&format!("/api/v1/blocks/{name}/adopt"), json!({})).await.expect_error(403, "forbidden");
            for keys in [keys, json!({})] {
                narrow.install("?upgrade=true", version(name, "1.1.0", keys).await).await.expect_error(403, "forbidden");
            }
            assert_eq!(makers(&server).await, before, "{name}");
        }
    }

    async fn a_new_version_takes_nothing_from_others(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let url = "https://hooks.example.com/";
        assert_eq!(admin.install("", version("sender", "1.0.0", json!({})).await).await.status, 201);
        let (id, _) = make(&admin, json!({ "name": "out", "url": url, "topics": ["data.task.#"] })).await;
        subscribe(&admin, "sender:log").await;
        let path = format!("/api/v1/webhooks/{id}");
        let (of_admin, groups) = (admin.get(&path).await.data(), admin.get("/api/v1/events/subscriptions").await.data());
        // A consumer group has one handler.
        let taken = json!({ "webhooks": [webhook("out", url)], "subscriptions": [subscription("sender:log")] });
        admin.install(UPGRADE, version("sender", "1.1.0", taken).await).await.expect_error(409, "conflict");
        assert_eq!(admin.get("/api/v1/blocks/sender").await.data()["version"], "1.0.0");
        assert_eq!(admin.get("/api/v1/webhooks").await.data(), json!([of_admin]));

        // A webhook of the same name and URL is another one, with its own secret. It is deleted with the block.
        let beside = json!({ "webhooks": [webhook("out", url)], "subscriptions": [subscription("sender:other")] });
        let upgraded = admin.install(UPGRADE, version("sender", "1.2.0", beside).await).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        let report = upgraded.json()["report"]["webhooks"][0].clone();
        assert!(report["id"] != json!(id) && report["secret"].is_string(), "{report}");
        assert_eq!(admin.get(&path).await.data(), of_admin);
        assert_eq!(admin.delete("/api/v1/blocks/sender").await.status, 204);
        assert_eq!(admin.get("/api/v1/webhooks").await.data(), json!([of_admin]));
        assert_eq!(admin.get("/api/v1/events/subscriptions").await.data(), groups);
    }

    async fn a_webhook_keeps_its_secret_at_another_url_by_consent_alone(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let (a, b, c) = ("https://a.example.com/", "https://b.example.com/", "https://c.example.com/");
        let urls = |one: &str, two: &str| json!({ "webhooks": [webhook("one", one), webhook("two", two)] });
        assert_eq!(admin.install("", version("sender", "1.0.0", urls(a, b)).await).await.status, 201);
        let ids = async || {
            let listed = admin.get("/api/v1/webhooks").await.data();
            let id_of = |name: &str| {
                let found = listed.as_array().unwrap().iter().find(|webhook| webhook["name"] == name).unwrap();
                (found["id"].clone(), found["url"].clone())
            };
            [id_of("one"), id_of("two")]
        };
        let [(one, _), (two, _)] = ids().await;
        let secrets = async || server.sql("SELECT name, secret FROM svc_webhooks ORDER BY name").await;
        let kept = secrets().await;
        // If the two receivers are swapped, each would get what is signed with the secret of the other one.
        let swapped = version("sender", "1.1.0", urls(b, a)).await;
        for (file, names) in [(swapped.clone(), &["one", "two"][..]), (version("sender", "1.1.0", urls(c, b)).await, &["one"])] {
            let refused = admin.install("?upgrade=true", file).await.expect_error(409, "new_permissions");
            let asked = refused["newPermissions"]["webhooks"].as_array().unwrap().clone();
            assert_eq!(asked.iter().map(|webhook| webhook["name"].as_str().unwrap()).collect::<Vec<_>>(), names, "{refused}");
        }
        assert_eq!(ids().await, [(one.clone(), json!(a)), (two.clone(), json!(b))]);
        let upgraded = admin.install(UPGRADE, swapped).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        assert!(!upgraded.text.contains("whsec_"), "{}", upgraded.text);
        assert_eq!(ids().await, [(one.clone(), json!(b)), (two.clone(), json!(a))]);
        assert_eq!(secrets().await, kept);
        // A rollback asks nothing.
        assert_eq!(admin.post("/api/v1/blocks/sender/rollback", json!({})).await.status, 200);
        assert_eq!((ids().await, secrets().await), ([(one, json!(a)), (two, json!(b))], kept));
    }
}
