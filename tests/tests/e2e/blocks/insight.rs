//! Information about blocks: the contents of a file before its install, the usage and the log of an installed block. Also the replay of a
//! recorded event to a handler.

use std::collections::BTreeMap;
use std::time::Duration;

use blockbase_tests::{Admin, Answer, Engine, ServerBuilder, inspect, on_both_engines, pack, test_block, until};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use crate::accounts::roles::{role, user};

/// The listener with changed keys in its manifest.
async fn listener(changes: Value) -> Vec<u8> {
    let file = test_block("listener").await;
    let mut manifest = inspect(file.clone()).await;
    for (key, value) in changes.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    pack(file, manifest).await.unwrap()
}

/// The objects that the listener reads and writes.
async fn make_notes(admin: &Admin<'_>) {
    admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
    let fields = json!([
        { "name": "event", "type": "text" }, { "name": "tag", "type": "text" }, { "name": "actor", "type": "text" },
    ]);
    admin.define("heard", fields).await;
}

async fn upload(who: &Admin<'_>, path: &str, file: Vec<u8>) -> Answer {
    let request = who.request("POST", path).header("content-type", "application/wasm").timeout(Duration::from_secs(300));
    who.server.send(request.body(file)).await
}

async fn inspected(who: &Admin<'_>, file: Vec<u8>) -> Value {
    upload(who, "/api/v1/blocks/inspect", file).await.data()
}

fn codes(inspection: &Value) -> Vec<String> {
    inspection["problems"].as_array().unwrap().iter().map(|problem| problem["error"].as_str().unwrap().to_owned()).collect()
}

/// The id of the newest event of a topic.
async fn event_of(admin: &Admin<'_>, topic: &str) -> String {
    let events = admin.get(&format!("/api/v1/events?limit=1&topic={topic}")).await.data();
    events[0]["id"].as_str().unwrap_or_else(|| panic!("no event of {topic}")).to_owned()
}

async fn replay(who: &Admin<'_>, event: &str, more: Value) -> Answer {
    let mut body = json!({ "eventId": event });
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    who.post("/api/v1/blocks/listener/handlers/hear/replay", body).await
}

/// The parts of a call in the use of a handler. All but the last are within the duration of the call.
const PARTS: [&str; 6] = ["queue", "instantiate", "guest", "host", "render", "teardown"];

/// The milliseconds that the calls of the listener's action, hook and event handler spent in each part, as soon as they have made
/// these numbers of calls.
async fn times_of(admin: &Admin<'_>, calls: [u64; 3]) -> [BTreeMap<&'static str, f64>; 3] {
    let use_of_all = async || {
        let usage = admin.get("/api/v1/blocks/listener/usage").await.data();
        ["actions", "hooks", "handlers"].map(|list| usage[list][0].clone())
    };
    until("each part of each call is counted", async || {
        let all = use_of_all().await;
        let is_counted = |(one, calls): (&Value, u64)| one["calls"] == calls && one["parts"]["teardown"]["calls"] == calls;
        all.iter().zip(calls).all(is_counted)
    })
    .await;
    use_of_all().await.map(|one| {
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number: {one}"));
        for part in PARTS.map(|part| &one["parts"][part]) {
            assert_eq!(part["calls"], one["calls"], "{one}");
            let percentiles = [&part["timeMsP50"], &part["timeMsP95"]];
            match one["calls"] == 0 {
                true => assert!(percentiles.iter().all(|value| value.is_null()), "{one}"),
                false => assert!(number(percentiles[0]) <= number(percentiles[1]), "{one}"),
            }
        }
        let times = BTreeMap::from(PARTS.map(|part| (part, number(&one["parts"][part]["timeMsTotal"]))));
        // Each sum is rounded to a microsecond.
        let in_the_call: f64 = PARTS[..5].iter().map(|part| times[part]).sum();
        assert!(in_the_call <= number(&one["timeMsTotal"]) + 0.005, "{one}");
        times
    })
}

async fn heard(admin: &Admin<'_>) -> Vec<Value> {
    admin.get("/api/v1/data/heard?sort=created_at&limit=100").await.data().as_array().unwrap().clone()
}

fn messages(lines: &Value) -> Vec<String> {
    lines.as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    async fn a_file_is_looked_at_before_it_is_installed(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        let file = listener(json!({ "webhooks": [{ "name": "w", "url": "https://webhook.invalid/", "topics": ["data.note.#"], "headers": { "x-key": "hush" } }] })).await;
        let seen = inspected(&admin, file.clone()).await;
        assert_eq!((&seen["installed"], &seen["differences"], &seen["newPermissions"], &seen["problems"]), (&Value::Null, &json!([]), &Value::Null, &json!([])));
        assert_eq!((&seen["manifest"]["name"], &seen["sizeBytes"]), (&json!("listener"), &json!(file.len())));
        assert_eq!(seen["permissions"]["data"][0], json!({ "resource": "heard", "actions": ["create"] }));
        assert!(!seen.to_string().contains("hush"), "{seen}");
        // Nothing was installed.
        assert_eq!(admin.get("/api/v1/blocks").await.data(), json!([]));
        assert_eq!(server.sql("SELECT name FROM svc_blocks").await.len(), 0);
        let installed = upload(&admin, "/api/v1/blocks", file.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        assert_eq!(installed.data()["digest"], format!("sha256:{}", seen["sha256"].as_str().unwrap()));

        // The same file again has no differences. Another version has some, and shows which of them need consent.
        let same = inspected(&admin, file).await;
        let nothing = json!({ "data": [], "secrets": [], "http": [], "subscriptions": [], "webhooks": [], "actions": [], "hooks": [], "instances": [] });
        assert_eq!((&same["differences"], &same["newPermissions"]), (&json!([]), &nothing));
        let next = listener(json!({
            "version": "0.2.0",
            "permissions": { "data": [{ "resource": "heard", "actions": ["create", "read"] }], "http": ["https://a.example"] },
        })).await;
        let seen = inspected(&admin, next.clone()).await;
        let shown: Vec<String> = seen["differences"].as_array().unwrap().iter().map(|one| format!(
            "{} {} {} {}", one["part"].as_str().unwrap(), one["name"].as_str().unwrap(), one["change"].as_str().unwrap(), one["needsConsent"],
        )).collect();
        assert_eq!(shown, [
            "version version changed false", "data heard changed true", "data note removed false", "http https://a.example added true",
            "webhooks w removed false",
        ]);
        assert_eq!((&seen["differences"][0]["before"], &seen["differences"][0]["after"]), (&json!("0.1.0"), &json!("0.2.0")));
        assert_eq!(seen["installed"]["version"], "0.1.0");
        let asked = upload(&admin, "/api/v1/blocks?upgrade=true", next).await.expect_error(409, "new_permissions");
        assert_eq!(asked["newPermissions"], seen["newPermissions"]);
        assert!(!seen.to_string().contains("hush"), "{seen}");
    }

    async fn an_inspection_says_what_is_in_the_way_of_an_install(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        let file = listener(json!({ "requires": { "plugins": ["data", "log", "elsewhere"] } })).await;
        assert_eq!(codes(&inspected(&admin, file.clone()).await), ["missing_requirement"]);
        upload(&admin, "/api/v1/blocks", file).await.expect_error(400, "missing_requirement");
        // A consumer group that exists already.
        let group = json!({ "event": "data.note.#", "consumer": "listener:first", "handler": "log_event" });
        assert_eq!(admin.post("/api/v1/events/subscriptions", group).await.status, 201);
        let file = listener(json!({})).await;
        assert_eq!(codes(&inspected(&admin, file.clone()).await), ["conflict"]);
        upload(&admin, "/api/v1/blocks", file.clone()).await.expect_error(409, "conflict");
        assert_eq!(admin.delete("/api/v1/events/subscriptions/listener:first").await.status, 204);
        let file = listener(json!({ "webhooks": [{ "name": "w", "url": "ftp://a.example", "topics": ["data.#"] }] })).await;
        let refused = upload(&admin, "/api/v1/blocks", file.clone()).await;
        assert_eq!(codes(&inspected(&admin, file).await), [refused.json()["error"].as_str().unwrap()]);

        // A caller who may install a block may inspect a file, and sees the permissions that they cannot grant.
        role(&admin, "installer", json!([{ "resource": "blocks", "actions": ["create"] }])).await;
        let (installer, _) = user(&admin, "installer", Some("installer")).await;
        let file = listener(json!({})).await;
        let seen = inspected(&installer, file.clone()).await;
        assert_eq!(codes(&seen), ["forbidden", "forbidden"]);
        let refused = upload(&installer, "/api/v1/blocks", file.clone()).await.expect_error(403, "forbidden");
        assert_eq!(seen["problems"][0]["message"], refused["message"]);
        assert_eq!(upload(&admin, "/api/v1/blocks", file.clone()).await.status, 201);
        // Only callers who may read blocks see the installed version.
        let next = listener(json!({ "version": "0.2.0", "description": "Another one.", "permissions": {} })).await;
        let seen = inspected(&installer, next.clone()).await;
        assert_eq!((&seen["installed"]["version"], &seen["installed"]["permissions"]), (&json!("0.1.0"), &Value::Null));
        assert!(seen["differences"].as_array().unwrap().iter().all(|one| one["before"].is_null()), "{seen}");
        assert!(!inspected(&admin, next).await["differences"][0]["before"].is_null());

        let (reader, _) = user(&admin, "reader", None).await;
        for (who, status, code) in [(Some(&reader), 403, "forbidden"), (None, 401, "unauthorized")] {
            let mut request = server.request("POST", "/api/v1/blocks/inspect").header("content-type", "application/wasm");
            if let Some(who) = who {
                request = request.bearer_auth(&who.token);
            }
            server.send(request.body(file.clone())).await.expect_error(status, code);
        }
    }

    async fn files_that_are_no_blocks_are_refused(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_BLOCK_BYTES", "300000").start().await;
        let admin = server.admin().await;
        let file = listener(json!({})).await;
        let cut = file[..file.len() / 2].to_vec();
        for bad in [Vec::new(), b"text".to_vec(), b"\0asm\x01\0\0\0".to_vec(), cut, vec![0; 200_000]] {
            upload(&admin, "/api/v1/blocks/inspect", bad).await.expect_error(400, "invalid_block");
        }
        upload(&admin, "/api/v1/blocks/inspect", vec![0; 300_001]).await.expect_error(413, "payload_too_large");
        admin.post("/api/v1/blocks/inspect", json!({})).await.expect_error(415, "unsupported_media_type");
        upload(&admin, "/api/v1/blocks/inspect?upgrade=true", file.clone()).await.expect_error(400, "invalid_request");
        let named = pack(file, json!({ "name": "inspect", "version": "1.0.0" })).await;
        assert!(named.unwrap_err().contains("reserved"));
        assert_eq!(admin.get("/api/v1/blocks/inspect").await.status, 405);
        assert_eq!(admin.get("/api/v1/blocks").await.data(), json!([]));
    }

    async fn a_browser_goes_from_upload_to_consent_with_its_cookie(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        let sign_in = json!({ "email": "admin@example.com", "password": "correct horse battery" });
        let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(sign_in)).await;
        let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let send = async |path: &str, origin: Option<&str>, file: Vec<u8>| {
            let request = server.request("POST", path).header("cookie", &cookie).header("content-type", "application/wasm");
            let request = origin.iter().fold(request, |request, origin| request.header("origin", *origin));
            server.send(request.timeout(Duration::from_secs(300)).body(file)).await
        };
        let file = listener(json!({})).await;
        for path in ["/api/v1/blocks/inspect", "/api/v1/blocks"] {
            assert_eq!(send(path, None, file.clone()).await.status, 403);
            assert_eq!(send(path, Some("https://evil.example"), file.clone()).await.status, 403);
        }
        let own = server.base.as_str();
        let seen = send("/api/v1/blocks/inspect", Some(own), file.clone()).await.data();
        assert_eq!(seen["problems"], json!([]));
        assert_eq!(send("/api/v1/blocks", Some(own), file).await.status, 201);
        let next = listener(json!({ "version": "0.2.0", "permissions": { "data": [{ "resource": "heard", "actions": ["manage"] }] } })).await;
        let seen = send("/api/v1/blocks/inspect", Some(own), next.clone()).await.data();
        assert!(seen["newPermissions"]["data"].is_array(), "{seen}");
        send("/api/v1/blocks?upgrade=true", Some(own), next.clone()).await.expect_error(409, "new_permissions");
        let upgraded = send("/api/v1/blocks?upgrade=true&allowNewPermissions=true", Some(own), next).await;
        assert_eq!((upgraded.status, &upgraded.data()["version"]), (200, &json!("0.2.0")));
    }

    async fn what_was_inspected_is_not_compiled_again(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        let kept = || {
            let folder = server.directory().join("svc-data");
            let mut names: Vec<String> = Vec::new();
            let mut folders = vec![folder];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                    match entry.path().is_dir() {
                        true => folders.push(entry.path()),
                        false => names.push(entry.file_name().to_string_lossy().into_owned()),
                    }
                }
            }
            names
        };
        let mut digests = Vec::new();
        for number in 0..6 {
            let seen = inspected(&admin, listener(json!({ "description": format!("Number {number}.") })).await).await;
            digests.push(seen["sha256"].as_str().unwrap().to_owned());
        }
        // Four files are kept at a time. So a caller who inspects many files does not fill the disk.
        let is_kept = |digest: &String| kept().iter().any(|name| name.contains(digest.as_str()));
        let shown: Vec<bool> = digests.iter().map(is_kept).collect();
        assert_eq!(shown, [false, false, true, true, true, true], "{:?}", kept());
        upload(&admin, "/api/v1/blocks/inspect", b"nothing".to_vec()).await.expect_error(400, "invalid_block");
        assert!(is_kept(&digests[5]));
    }

    async fn the_use_of_a_block_is_counted_by_its_handlers(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        assert_eq!(admin.install("", listener(json!({})).await).await.status, 201);
        let unused = admin.get("/api/v1/blocks/listener/usage").await.data();
        let part = json!({ "calls": 0, "timeMsTotal": 0.0, "timeMsP50": null, "timeMsP95": null });
        let parts: Map<String, Value> = PARTS.into_iter().map(|name| (name.to_owned(), part.clone())).collect();
        let zero = |name: &str| json!({
            "name": name, "calls": 0, "failed": 0, "timeMsTotal": 0.0, "timeMsP50": null, "timeMsP95": null, "memoryBytesMax": 0,
            "parts": parts,
        });
        assert_eq!(unused["actions"], json!([zero("take")]));
        assert_eq!(unused["hooks"], json!([zero("knock")]));
        assert_eq!(unused["handlers"], json!([zero("hear")]));
        let take = async |input: Value| admin.post("/api/v1/blocks/listener/actions/take", input).await;
        for bytes in [0, 8_000_000, 1000] {
            assert_eq!(take(json!({ "bytes": bytes })).await.data(), bytes);
        }
        take(json!({ "fails": true })).await.expect_error(400, "invalid_request");
        take(json!(["no object"])).await;
        assert_eq!(server.call("POST", "/api/v1/hooks/listener/knock", None).await.status, 200);
        admin.make("note", json!({ "title": "a" })).await;
        until("both groups have heard", async || heard(&admin).await.len() == 2).await;
        until("it is counted", async || admin.get("/api/v1/blocks/listener/usage").await.data()["handlers"][0]["calls"] != 0).await;
        let used = admin.get("/api/v1/blocks/listener/usage").await.data();
        let action = &used["actions"][0];
        // A call with an invalid input does not count.
        assert_eq!((&action["calls"], &action["failed"]), (&json!(4), &json!(1)), "{used}");
        let number = |value: &Value| value.as_f64().unwrap();
        assert!(number(&action["timeMsP50"]) > 0.0 && number(&action["timeMsP95"]) >= number(&action["timeMsP50"]), "{used}");
        assert!(number(&action["timeMsTotal"]) >= number(&action["timeMsP95"]) * 0.9, "{used}");
        assert!(number(&action["memoryBytesMax"]) >= 8_000_000.0, "{used}");
        assert_eq!((&used["hooks"][0]["calls"], &used["hooks"][0]["failed"]), (&json!(1), &json!(0)));
        assert_eq!(used["since"], unused["since"]);
        // An upgrade keeps the counts, and an uninstall ends them.
        let next = listener(json!({ "version": "0.2.0" })).await;
        assert_eq!(admin.install("?upgrade=true", next).await.status, 200);
        assert_eq!(admin.get("/api/v1/blocks/listener/usage").await.data()["actions"][0]["calls"], 4);
        assert_eq!(admin.delete("/api/v1/blocks/listener").await.status, 204);
        admin.get("/api/v1/blocks/listener/usage").await.expect_error(404, "not_found");
        assert_eq!(admin.install("", listener(json!({})).await).await.status, 201);
        assert_eq!(admin.get("/api/v1/blocks/listener/usage").await.data()["actions"][0]["calls"], 0);
        let (nobody, _) = user(&admin, "nobody", None).await;
        nobody.get("/api/v1/blocks/listener/usage").await.expect_error(403, "forbidden");
    }

    async fn the_use_of_a_handler_says_in_which_parts_its_calls_spend_their_time(engine: Engine) {
        // Telemetry is off, and a failed delivery is not retried.
        let server = ServerBuilder::new(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        assert_eq!(admin.install("", listener(json!({})).await).await.status, 201);
        let take = async |input: Value| admin.post("/api/v1/blocks/listener/actions/take", input).await;
        let knock = async || assert_eq!(server.call("POST", "/api/v1/hooks/listener/knock", None).await.status, 200);

        // The answer does not wait for the teardown, nor for the event handlers.
        take(json!({ "bytes": 1_000_000 })).await.data();
        let [action, hook, handler] = times_of(&admin, [1, 0, 0]).await;
        assert!(action["guest"] > 0.0 && action["instantiate"] > 0.0, "{action:?}");
        assert_eq!([hook, handler].map(|times| times.values().sum::<f64>()), [0.0; 2], "the other handlers have no calls");
        knock().await;
        admin.make("note", json!({ "title": "a" })).await;
        let [_, hook, handler] = times_of(&admin, [1, 1, 2]).await;
        assert!(hook.values().sum::<f64>() > 0.0, "{hook:?}");
        assert!(handler["host"] > 0.0, "the server writes the records of the handler: {handler:?}");

        // Calls that fail have parts too, and so have calls in a kept instance. An upgrade keeps the times.
        take(json!({ "fails": true })).await.expect_error(400, "invalid_request");
        admin.make("note", json!({ "title": "trap" })).await;
        times_of(&admin, [2, 1, 4]).await;
        let next = listener(json!({ "version": "0.2.0", "instances": { "reuse": { "calls": 1000, "seconds": 300 } } })).await;
        assert_eq!(admin.install("?upgrade=true&allowNewPermissions=true", next).await.status, 200);
        for _ in 0..3 {
            take(json!({ "bytes": 1_000_000 })).await.data();
            knock().await;
        }
        let [later, more, same] = times_of(&admin, [5, 4, 4]).await;
        assert!(later["guest"] > action["guest"], "{later:?} after {action:?}");
        for (before, after) in [(action, later), (hook, more), (handler, same)] {
            assert!(PARTS.iter().all(|part| after[part] >= before[part]), "{after:?} after {before:?}");
        }

        // The right to call a handler is not the right to see its use.
        role(&admin, "caller", json!([{ "resource": "blocks", "actions": ["update"] }])).await;
        let (caller, _) = user(&admin, "caller", Some("caller")).await;
        assert_eq!(caller.post("/api/v1/blocks/listener/actions/take", json!({})).await.data(), 0);
        let path = "/api/v1/blocks/listener/usage";
        caller.get(path).await.expect_error(403, "forbidden");
        server.call("GET", path, None).await.expect_error(401, "unauthorized");
    }

    async fn a_log_is_searched_and_followed(engine: Engine) {
        // A failed delivery is not retried during this test, so its lines are logged once.
        let server = ServerBuilder::new(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        // One consumer group, so that each note gives one line.
        let group = json!([{ "event": "data.note.#", "consumer": "listener:first", "handler": "hear", "config": { "tag": "ÉTÉ" } }]);
        assert_eq!(admin.install("", listener(json!({ "subscriptions": group })).await).await.status, 201);
        let path = "/api/v1/blocks/listener/logs";
        let logs = async |query: &str| admin.get(&format!("{path}{query}")).await.json();
        let empty = logs("").await;
        assert_eq!(empty, json!({ "data": [], "cursor": "0", "missed": false }));
        let begun = (chrono::Utc::now() - chrono::Duration::seconds(5)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        for title in ["one", "Straße 50%", "fail"] {
            admin.make("note", json!({ "title": title })).await;
        }
        // The lines of several calls may be stored in any order.
        until("all is logged", async || {
            let (heard, all) = (logs("?search=heard").await, logs("").await);
            let has = |log: &Value, text: &str| messages(&log["data"]).iter().any(|message| message.contains(text));
            ["heard one", "heard Straße 50%", "heard fail"].iter().all(|text| has(&heard, text)) && has(&all, "about to fail")
        })
        .await;
        let all = logs("?search=heard").await;
        assert_eq!(messages(&all["data"]).len(), 3, "{all}");
        assert_eq!(messages(&logs("?level=warn").await["data"])[0], "about to fail");
        assert_eq!(messages(&logs("?level=warn,info&limit=1").await["data"]).len(), 1);
        assert_eq!(messages(&logs("?search=STRASSE").await["data"]), ["heard Straße 50%"]);
        assert_eq!(messages(&logs("?search=50%25").await["data"]), ["heard Straße 50%"]);
        assert_eq!(messages(&logs("?search=%25one").await["data"]), [""; 0]);
        // The search finds fields as well.
        assert_eq!(messages(&logs("?search=%C3%A9t%C3%A9&level=info").await["data"]).len(), 3);
        assert_eq!(messages(&logs(&format!("?since={begun}")).await["data"]).len(), messages(&logs("").await["data"]).len());
        assert_eq!(logs("?since=2999-01-01T00:00:00Z").await["data"], json!([]));
        for wrong in ["?level=loud", "?level=warn,", "?since=soon", "?after=-1", "?after=x", "?limit=0", "?search=%00", "?colour=1"] {
            admin.get(&format!("{path}{wrong}")).await.expect_error(400, "invalid_request");
        }

        // A client that follows the log gets each line once and in order, even with small pages.
        let mut cursor = logs("").await["cursor"].as_str().unwrap().to_owned();
        let writes = async {
            for number in 0..60 {
                admin.make("note", json!({ "title": format!("followed {number}") })).await;
            }
        };
        let follows = async {
            let mut followed = Vec::new();
            while followed.len() < 60 {
                let page = logs(&format!("?after={cursor}&limit=7&level=info&search=followed")).await;
                assert_eq!(page["missed"], false);
                followed.extend(page["data"].as_array().unwrap().iter().map(|line| line["id"].as_str().unwrap().parse::<i64>().unwrap()));
                cursor = page["cursor"].as_str().unwrap().to_owned();
            }
            followed
        };
        let ((), followed) = tokio::time::timeout(blockbase_tests::WAIT_MAX, async { tokio::join!(writes, follows) }).await.expect("all lines");
        assert!(followed.windows(2).all(|pair| pair[0] < pair[1]), "{followed:?}");
        let newest = logs("?search=followed&limit=100").await;
        let kept: Vec<i64> = newest["data"].as_array().unwrap().iter().rev().map(|line| line["id"].as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(followed, kept);
        assert_eq!(logs(&format!("?after={cursor}&search=followed")).await["data"], json!([]));
        // The response reports dropped lines.
        let cut = logs("?after=1").await["missed"].clone();
        assert_eq!(cut, false);
        let add = "INSERT INTO svc_block_logs (block, call_id, level, message, logged_at) VALUES ('listener', 'x', 'info', 'filler', 0)";
        let rows: String = (0..1000).map(|_| ", ('listener', 'x', 'info', 'filler', 0)").collect();
        server.sql(&format!("{add}{rows}")).await;
        admin.make("note", json!({ "title": "last" })).await;
        until("it is logged", async || !messages(&logs("?search=last").await["data"]).is_empty()).await;
        assert_eq!(logs("?after=1").await["missed"], true);
    }

    async fn a_recorded_event_reaches_its_handler_once_more(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        assert_eq!(admin.install("", listener(json!({})).await).await.status, 201);
        let note = admin.make("note", json!({ "title": "a" })).await;
        until("both groups have heard", async || heard(&admin).await.len() == 2).await;
        let event = event_of(&admin, "data.note").await;
        let ledger = async || {
            let entries = admin.get("/api/v1/events/deliveries?pageSize=100").await.data();
            let of = |name: &str| entries.as_array().unwrap().iter().filter(|entry| entry["eventId"] == name).cloned().collect::<Vec<_>>();
            of(&event)
        };
        // A handler's record exists before its delivery is settled.
        until("both are settled", async || ledger().await.iter().all(|entry| entry["status"] == "delivered")).await;
        let settled = ledger().await;
        let calls = async || admin.get("/api/v1/blocks/listener/usage").await.data()["handlers"][0]["calls"].as_i64().unwrap();
        let before = calls().await;

        let ended = replay(&admin, &event, json!({})).await.data();
        assert_eq!((&ended["ok"], &ended["error"], &ended["consumer"]), (&json!(true), &Value::Null, &json!("listener:first")));
        assert_eq!(messages(&ended["logs"]), ["heard a"]);
        assert_eq!(ended["logs"][0]["fields"], json!({ "tag": "first", "attempt": 1 }));
        assert!(ended["durationMs"].as_f64().unwrap() > 0.0);
        // The replay has effects: it makes a third record, whose event has one more level of depth. As after any delivery, the
        // record has no author.
        let all = heard(&admin).await;
        assert_eq!(all.len(), 3);
        assert_eq!((&all[2]["event"], &all[2]["tag"], &all[2]["actor"], &all[2]["created_by"]), (&json!(event), &json!("first"), &Value::Null, &Value::Null));
        let depths = server.sql("SELECT CAST(depth AS TEXT) FROM svc_events WHERE topic = 'data.heard.created' ORDER BY seq").await.concat();
        assert_eq!(depths, ["1", "1", "1"]);
        // The ledger has not changed, and the usage counts the call.
        assert_eq!(ledger().await, settled);
        assert_eq!(calls().await, before + 1);
        let second = replay(&admin, &event, json!({ "consumer": "listener:second" })).await.data();
        assert_eq!((&second["consumer"], &second["logs"][0]["fields"]["tag"]), (&json!("listener:second"), &json!("second")));
        assert_eq!(replay(&admin, &event.to_uppercase(), json!({})).await.data()["ok"], true);
        // Its lines are in the log as well, with the same call id.
        until("it is logged", async || {
            let lines = admin.get("/api/v1/blocks/listener/logs?limit=1000").await.data();
            lines.as_array().unwrap().iter().any(|line| line["callId"] == ended["callId"])
        }).await;

        // If a handler fails, the response says so, and the call's writes are undone.
        for (title, code, word) in [("fail", "conflict", "The title says so."), ("trap", "action_failed", "trapped")] {
            admin.patch(&format!("/api/v1/data/note/{note}"), json!({ "title": title })).await.data();
            let event = event_of(&admin, "data.note.updated").await;
            let ended = replay(&admin, &event, json!({})).await.data();
            assert_eq!((&ended["ok"], &ended["error"]["error"]), (&json!(false), &json!(code)), "{ended}");
            assert!(ended["error"]["message"].as_str().unwrap().contains(word), "{ended}");
            assert_eq!(messages(&ended["logs"])[0], format!("heard {title}"));
        }
        // Many replays at the same time.
        let ended = join_all((0..8).map(|_| replay(&admin, &event, json!({})))).await;
        assert!(ended.iter().all(|answer| answer.data()["ok"] == true && messages(&answer.data()["logs"]) == ["heard a"]));
    }

    async fn a_replay_brings_nothing_that_a_delivery_would_not(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        make_notes(&admin).await;
        admin.define("secret", json!([{ "name": "title", "type": "text" }])).await;
        // The installer may read notes and create `heard` records, and nothing else.
        role(&admin, "installer", json!([
            { "resource": "blocks", "actions": ["create", "read", "update"] }, { "resource": "note", "actions": ["read"] },
            { "resource": "heard", "actions": ["create"] },
        ])).await;
        let (installer, installer_id) = user(&admin, "installer", Some("installer")).await;
        let groups = json!([
            { "event": "data.note.#", "consumer": "listener:first", "handler": "hear", "config": { "tag": "first" } },
            { "event": "data.note.created", "consumer": "listener:log", "handler": "log_event" },
        ]);
        assert_eq!(upload(&installer, "/api/v1/blocks", listener(json!({ "subscriptions": groups })).await).await.status, 201);
        admin.make("note", json!({ "title": "a" })).await;
        admin.make("secret", json!({ "title": "hush" })).await;
        let (event, foreign) = (event_of(&admin, "data.note").await, event_of(&admin, "data.secret").await);
        until("it has heard", async || heard(&admin).await.len() == 1).await;

        // A block does not get an event of another topic.
        let refused = replay(&admin, &foreign, json!({})).await;
        refused.expect_error(409, "conflict");
        assert!(!refused.text.contains("hush"));
        let unknown = "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9";
        for missing in [unknown, "", "nothing", "' OR 1=1 --", &"x".repeat(5000)] {
            replay(&admin, missing, json!({})).await.expect_error(404, "not_found");
        }
        replay(&admin, &event, json!({ "consumer": "listener:second" })).await.expect_error(400, "invalid_value");
        for wrong in [json!({ "consumer": 1 }), json!({ "consumer": null }), json!({ "config": {} }), json!({ "eventId": null })] {
            replay(&admin, &event, wrong).await.expect_error(400, "invalid_request");
        }
        replay(&admin, "a\0b", json!({})).await.expect_error(400, "invalid_request");
        for path in ["nothing/handlers/hear", "listener/handlers/nothing", "listener/handlers/log_event", "listener/handlers/take"] {
            let path = format!("/api/v1/blocks/{path}/replay");
            admin.post(&path, json!({ "eventId": event })).await.expect_error(404, "not_found");
        }

        // A replay needs the rights to run the block and to see the event.
        for (name, grants, status) in [
            ("a", json!([{ "resource": "blocks", "actions": ["update"] }, { "resource": "note", "actions": ["read"] }]), 403),
            ("b", json!([{ "resource": "events", "actions": ["read"] }, { "resource": "note", "actions": ["read"] }]), 403),
            ("c", json!([{ "resource": "events", "actions": ["read"] }, { "resource": "blocks", "actions": ["update"] }]), 404),
            ("d", json!([
                { "resource": "events", "actions": ["read"] }, { "resource": "blocks", "actions": ["update"] },
                { "resource": "note", "actions": ["read"], "rowPolicy": "own" },
            ]), 404),
            ("e", json!([
                { "resource": "events", "actions": ["read"] }, { "resource": "blocks", "actions": ["update"] },
                { "resource": "note", "actions": ["read"] },
            ]), 200),
        ] {
            role(&admin, name, grants).await;
            let (who, _) = user(&admin, name, Some(name)).await;
            let answer = replay(&who, &event, json!({})).await;
            assert_eq!(answer.status, status, "{name}: {}", answer.text);
            if status == 200 {
                // Only callers who may read blocks see the log of a block. A record that the block writes has no author, whoever
                // called the replay.
                assert_eq!((&answer.data()["ok"], &answer.data()["logs"]), (&json!(true), &Value::Null));
                assert_eq!(heard(&admin).await.last().unwrap()["created_by"], Value::Null);
            }
        }
        server.call("POST", "/api/v1/blocks/listener/handlers/hear/replay", Some(json!({ "eventId": event }))).await.expect_error(401, "unauthorized");

        // A replay is refused for the same reasons as a delivery: the causation depth, a disabled block, or a maker who has lost
        // their rights or was deleted.
        server.sql(&format!("UPDATE svc_events SET depth = 9 WHERE id = '{event}'")).await;
        replay(&admin, &event, json!({})).await.expect_error(409, "conflict");
        server.sql(&format!("UPDATE svc_events SET depth = 0 WHERE id = '{event}'")).await;
        admin.patch("/api/v1/blocks/listener", json!({ "enabled": false })).await.data();
        replay(&admin, &event, json!({})).await.expect_error(409, "conflict");
        admin.patch("/api/v1/blocks/listener", json!({ "enabled": true })).await.data();
        assert_eq!(replay(&admin, &event, json!({})).await.data()["ok"], true);
        let grants = json!([{ "resource": "blocks", "actions": ["create", "read", "update"] }, { "resource": "note", "actions": ["read"] }]);
        admin.patch("/api/v1/roles/installer", json!({ "permissions": grants })).await.data();
        let cut = replay(&admin, &event, json!({})).await.data();
        assert_eq!((&cut["ok"], &cut["error"]["error"]), (&json!(false), &json!("forbidden")), "{cut}");
        admin.patch("/api/v1/roles/installer", json!({ "permissions": [] })).await.data();
        replay(&admin, &event, json!({})).await.expect_error(409, "conflict");
        admin.patch(&format!("/api/v1/users/{installer_id}"), json!({ "banned": true })).await.data();
        replay(&admin, &event, json!({})).await.expect_error(409, "conflict");
        admin.post("/api/v1/blocks/listener/adopt", json!({})).await.data();
        assert_eq!(replay(&admin, &event, json!({})).await.data()["ok"], true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_several_instances_are_followed_without_a_gap() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    let there = other.with_token(admin.token.clone());
    make_notes(&admin).await;
    assert_eq!(admin.install("", listener(json!({})).await).await.status, 201);
    const CALLS: usize = 150;
    let calls = async |who: &Admin<'_>| {
        for _ in 0..CALLS {
            let called = who.post("/api/v1/blocks/listener/actions/take", json!({ "bytes": 0, "says": true })).await;
            assert_eq!(called.status, 200, "{}", called.text);
        }
    };
    let follow = async {
        let (mut cursor, mut lines) = ("0".to_owned(), Vec::new());
        while lines.len() < 2 * CALLS {
            let page = admin.get(&format!("/api/v1/blocks/listener/logs?after={cursor}")).await.json();
            lines.extend(page["data"].as_array().unwrap().iter().map(|line| line["id"].as_str().unwrap().to_owned()));
            cursor = page["cursor"].as_str().unwrap().to_owned();
        }
        lines
    };
    let all = async { tokio::join!(calls(&admin), calls(&there), follow) };
    let ((), (), followed) = tokio::time::timeout(blockbase_tests::WAIT_MAX, all).await.expect("a line of each call");
    let mut kept: Vec<i64> = followed.iter().map(|id| id.parse().unwrap()).collect();
    let in_order = kept.clone();
    kept.sort_unstable();
    kept.dedup();
    assert_eq!((kept.len(), &kept), (2 * CALLS, &in_order));
}
