//! Reuse of instances: state passes from one call to the next only if the manifest asks for it and the installer has consented. It
//! never passes beyond a failure, a change of the block, its consent, or another kind of handler. If the manifest asks for reuse as
//! the caller, it never passes beyond another caller or other rights of the caller either.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, Exposition, ServerBuilder, WAIT_MAX, inspect, on_both_engines, pack, test_block, until};
use serde_json::{Value, json};

use super::call;
use super::hostile::hand_made::HandMade;
use super::hostile::install;
use crate::accounts::roles::{key, role, user};

/// The packed file of `tests/guests/hostile` with some keys replaced.
async fn file(changes: Value) -> Result<Vec<u8>, String> {
    let file = test_block("hostile").await;
    let mut manifest = inspect(file.clone()).await;
    for (key, value) in changes.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    pack(file, manifest).await
}

/// The reuse of instances for many calls.
fn reuse() -> Value {
    json!({ "reuse": { "calls": 1000, "seconds": 300 } })
}

/// The number of calls that the instance of this call has counted, this one included.
async fn count(who: &Admin<'_>) -> u64 {
    call(who, "hostile/actions/count", json!({})).await.data().as_u64().unwrap()
}

/// The same by the hook, which anybody may call.
async fn count_by_hook(admin: &Admin<'_>) -> u64 {
    let answer = admin.server.call("GET", "/api/v1/hooks/hostile/count_request", None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["calls"].as_u64().unwrap()
}

/// Asserts that the next call gets a new instance, and the one after it the same one.
#[track_caller]
fn starts_anew<'a>(admin: &'a Admin<'_>, after: &'a str) -> impl Future<Output = ()> + 'a {
    let caller = std::panic::Location::caller();
    async move {
        assert_eq!((count(admin).await, count(admin).await), (1, 2), "{caller}: after {after}");
    }
}

on_both_engines! {
    async fn state_passes_only_by_consent_and_for_as_many_calls_as_agreed(server: Server) {
        let admin = server.admin().await;
        install(&admin, "", json!({})).await;
        for _ in 0..3 {
            assert_eq!(count(&admin).await, 1, "without reuse");
        }
        assert_eq!(admin.get("/api/v1/blocks/hostile").await.data()["instances"], Value::Null);

        let asked = json!({ "reuse": { "calls": 3, "seconds": 300 } });
        let asking = file(json!({ "version": "0.2.0", "instances": asked })).await.unwrap();
        let request = admin.request("POST", "/api/v1/blocks/inspect").header("content-type", "application/wasm");
        let inspected = server.send(request.body(asking.clone())).await.data();
        assert_eq!((&inspected["instances"], &inspected["manifest"]["instances"]), (&asked, &asked));
        let differences = inspected["differences"].as_array().unwrap();
        let difference = differences.iter().find(|difference| difference["part"] == "instances").unwrap();
        assert_eq!(
            difference,
            &json!({ "part": "instances", "name": "reuse", "change": "added", "before": null, "after": asked["reuse"], "needsConsent": true })
        );
        let refused = admin.install("?upgrade=true", asking.clone()).await.expect_error(409, "new_permissions");
        assert_eq!(refused["newPermissions"]["instances"], json!([asked["reuse"]]));
        assert_eq!(count(&admin).await, 1, "nobody has consented");

        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", asking).await;
        assert_eq!((upgraded.status, &upgraded.data()["instances"]), (200, &asked));
        let mut counts = Vec::new();
        for _ in 0..7 {
            counts.push(count(&admin).await);
        }
        assert_eq!(counts, [1, 2, 3, 1, 2, 3, 1]);
        // Less needs no consent, and then nothing passes any more.
        install(&admin, "?upgrade=true", json!({ "version": "0.3.0" })).await;
        assert_eq!((count(&admin).await, count(&admin).await), (1, 1));
        for (reuse, path) in [
            (json!({ "calls": 1, "seconds": 30 }), "`instances.reuse.calls`"),
            (json!({ "calls": 100, "seconds": 301 }), "`instances.reuse.seconds`"),
            (json!({ "calls": 100, "seconds": 30, "asCaller": 1 }), "`instances.reuse.asCaller`"),
        ] {
            let error = file(json!({ "instances": { "reuse": reuse } })).await.unwrap_err();
            assert!(error.contains(path), "{error}");
        }
    }

    async fn a_change_of_the_block_or_its_consent_ends_its_instances(server: Server) {
        let admin = server.admin().await;
        let config = json!({ "type": "object", "properties": { "size": { "type": "integer", "default": 1 } } });
        let keys = |version: &str| {
            json!({ "version": version, "instances": reuse(), "config": config, "permissions": { "secrets": ["KEY"] } })
        };
        install(&admin, "", keys("0.1.0")).await;
        starts_anew(&admin, "the install").await;
        admin.patch("/api/v1/blocks/hostile", json!({ "config": { "size": 2 } })).await.data();
        starts_anew(&admin, "a change of the configuration").await;
        admin.post("/api/v1/blocks/hostile/secrets", json!({ "name": "KEY", "value": "hush" })).await.data();
        starts_anew(&admin, "a new secret").await;
        admin.post("/api/v1/blocks/hostile/secrets", json!({ "name": "KEY", "value": "another" })).await.data();
        starts_anew(&admin, "another value of a secret").await;
        assert_eq!(admin.delete("/api/v1/blocks/hostile/secrets/KEY").await.status, 204);
        starts_anew(&admin, "the deletion of a secret").await;
        install(&admin, "?upgrade=true", keys("0.2.0")).await;
        starts_anew(&admin, "an upgrade").await;
        admin.post("/api/v1/blocks/hostile/rollback", json!({})).await.data();
        starts_anew(&admin, "a rollback").await;
        for enabled in [false, true] {
            admin.patch("/api/v1/blocks/hostile", json!({ "enabled": enabled })).await.data();
        }
        starts_anew(&admin, "a pause").await;
        // Any other block, too. It may call the first one, or be called by it.
        let other = HandMade::default().packed_with("another", json!({})).await;
        assert_eq!(admin.install("", other).await.status, 201);
        starts_anew(&admin, "the install of another block").await;
        assert_eq!(admin.delete("/api/v1/blocks/another").await.status, 204);
        starts_anew(&admin, "the removal of another block").await;

        // Somebody else consents, and then the rights of that user change, and change back.
        let everything = json!([{ "resource": "*", "actions": ["manage"] }]);
        let role = role(&admin, "everything", everything.clone()).await;
        let (other, _) = user(&admin, "other", Some(&role)).await;
        assert_eq!(count(&admin).await, 3, "other accounts do not matter");
        other.post("/api/v1/blocks/hostile/adopt", json!({})).await.data();
        starts_anew(&admin, "an adoption").await;
        let role = format!("/api/v1/roles/{role}");
        for permissions in [json!([{ "resource": "blocks", "actions": ["manage"] }]), everything] {
            admin.patch(&role, json!({ "permissions": permissions })).await.data();
            starts_anew(&admin, "a change of the maker's rights").await;
        }
        assert_eq!(count(&admin).await, 3);
    }

    async fn actions_hooks_and_handlers_of_events_keep_apart(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let subscription = json!({ "event": "data.task.created", "consumer": "hostile:count", "handler": "count_event" });
        install(&admin, "", json!({ "instances": reuse(), "subscriptions": [subscription] })).await;
        for calls in 1..=3 {
            assert_eq!((count(&admin).await, count_by_hook(&admin).await), (calls, calls));
        }
        admin.make("task", json!({ "title": "a" })).await;
        // Until the delivery is settled, its instance may not be kept yet.
        let is_delivered = async || {
            let entries = admin.get("/api/v1/events/deliveries?pageSize=100").await.data();
            entries.as_array().unwrap().iter().any(|entry| entry["consumer"] == "hostile:count" && entry["status"] == "delivered")
        };
        until("the event is delivered", is_delivered).await;
        let event = admin.get("/api/v1/events?limit=1&topic=data.task.created").await.data()[0]["id"].clone();
        let replay = async || {
            let path = "/api/v1/blocks/hostile/handlers/count_event/replay";
            let replayed = admin.post(path, json!({ "eventId": event })).await.data();
            assert_eq!(replayed["ok"], true, "{replayed}");
            replayed["logs"][0]["message"].clone()
        };
        assert_eq!((replay().await, replay().await), (json!("counted 2"), json!("counted 3")));
        assert_eq!((count(&admin).await, count_by_hook(&admin).await), (4, 4));
        // Without reuse, nothing passes between calls of any kind.
        install(&admin, "?upgrade=true", json!({ "version": "0.2.0", "subscriptions": [subscription] })).await;
        for _ in 0..2 {
            assert_eq!((count(&admin).await, count_by_hook(&admin).await, replay().await), (1, 1, json!("counted 1")));
        }
    }

    async fn callers_keep_apart_where_a_block_acts_as_its_callers(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let permissions = json!({ "data": [{ "resource": "task", "actions": ["read"], "as": "caller" }] });
        install(&admin, "", json!({ "instances": reuse(), "permissions": permissions })).await;
        assert_eq!((count(&admin).await, count(&admin).await), (1, 1), "it does not ask for reuse as the caller");
        assert_eq!(admin.get("/api/v1/blocks/hostile").await.data()["instances"], Value::Null);

        let as_caller = json!({ "reuse": { "calls": 1000, "seconds": 300, "asCaller": true } });
        let changes = json!({ "version": "0.2.0", "instances": as_caller, "permissions": permissions });
        let asking = file(changes).await.unwrap();
        let refused = admin.install("?upgrade=true", asking.clone()).await.expect_error(409, "new_permissions");
        assert_eq!(refused["newPermissions"]["instances"], json!([as_caller["reuse"]]));
        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", asking).await;
        assert_eq!(upgraded.data()["instances"], as_caller);

        let calls = role(&admin, "calls", json!([{ "resource": "blocks", "actions": ["update"] }])).await;
        let (ann, ann_id) = user(&admin, "ann", Some(&calls)).await;
        let (by_key, _) = key(&admin, json!({ "name": "k", "roleId": "admin" })).await;
        for calls in 1..=3 {
            assert_eq!((count(&admin).await, count(&ann).await, count(&by_key).await), (calls, calls, calls));
        }
        assert_eq!((count_by_hook(&admin).await, count_by_hook(&admin).await), (1, 1), "nobody knows who calls a hook");
        let more = json!([{ "resource": "blocks", "actions": ["update", "read"] }]);
        admin.patch(&format!("/api/v1/roles/{calls}"), json!({ "permissions": more })).await.data();
        assert_eq!((count(&ann).await, count(&ann).await), (1, 2), "the caller has other rights");
        // A role without grants matters too: the block's own permissions can name the caller's roles.
        let member = role(&admin, "member", json!([])).await;
        let given = admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": member })).await;
        assert_eq!(given.status, 200, "{}", given.text);
        assert_eq!((count(&ann).await, count(&ann).await), (1, 2), "the caller has one more role");
        assert_eq!(admin.delete(&format!("/api/v1/users/{ann_id}/roles/{member}")).await.status, 204);
        assert_eq!((count(&ann).await, count(&ann).await), (1, 2), "the caller has lost the role");
        assert_eq!(count(&admin).await, 4);
        // Without "asCaller", state passes between callers too, so this needs consent again.
        let shared = file(json!({ "version": "0.3.0", "instances": reuse() })).await.unwrap();
        admin.install("?upgrade=true", shared).await.expect_error(409, "new_permissions");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_on_one_server_ends_the_instances_of_another() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let here = first.admin().await;
    let second = first.builder().start().await;
    let there = second.with_token(here.token.clone());
    let config = json!({ "type": "object", "properties": { "size": { "type": "integer", "default": 1 } } });
    let asking = file(json!({ "instances": reuse(), "config": config })).await.unwrap();
    // The other server compiles the component itself.
    there.install("?dryRun=true", asking.clone()).await.data();
    assert_eq!(here.install("", asking).await.status, 201);
    for size in 2..4 {
        until("the other server keeps an instance", async || count(&there).await > 1).await;
        here.patch("/api/v1/blocks/hostile", json!({ "config": { "size": size } })).await.data();
        until("the instance of the other server ends", async || count(&there).await == 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_or_what_a_call_leaves_behind_ends_the_instance() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let mut actions = inspect(test_block("hostile").await).await["actions"].clone();
    let spin = actions.as_array_mut().unwrap().iter_mut().find(|action| action["name"] == "spin").unwrap();
    spin["timeoutMs"] = json!(1500);
    install(&admin, "", json!({ "instances": reuse(), "actions": actions })).await;
    // These calls end as they should. Each has all limits of a call for itself.
    let log = json!({ "level": "info", "text": "x", "lines": 1, "stdout": true, "unfinished": 8000 });
    // A call may log 1 MiB. These lines are a little less, and with the last one, which has no end, they are more.
    let unfinished = json!({ "level": "info", "text": "x", "repeat": 8100, "lines": 129, "unfinished": 8100 });
    let harmless = [
        ("result", json!({ "bytes": 10, "fails": true }), 409),
        ("nap", json!({ "ms": 1 }), 200),
        ("flood", json!({ "calls": 6000, "wasi": true }), 200),
        ("flood", json!({ "calls": 6000, "wasi": false }), 200),
        ("log", log.clone(), 200),
        ("log", log, 200),
        ("fill", json!({ "megabytes": 8, "ms": 0 }), 200),
    ];
    for (calls, (action, input, status)) in (1..).zip(harmless) {
        assert_eq!(count(&admin).await, calls, "before `{action}`");
        let answer = call(&admin, &format!("hostile/actions/{action}"), input).await;
        assert_eq!(answer.status, status, "{action}: {}", answer.text);
    }
    assert_eq!(count(&admin).await, 8);
    for (action, input, status) in [
        ("descend", json!({}), 500),
        ("spin", json!({}), 504),
        ("hoard", json!({}), 500),
        ("flood", json!({ "calls": 20_000, "wasi": false }), 500),
        ("flood", json!({ "calls": 20_000, "wasi": true }), 500),
        ("result", json!({ "bytes": 4 << 20 }), 500),
        ("hold", json!({ "handles": 1 }), 200),
        ("log", unfinished, 200),
        ("fill", json!({ "megabytes": 60, "ms": 0 }), 200),
    ] {
        let answer = call(&admin, &format!("hostile/actions/{action}"), input).await;
        assert_eq!(answer.status, status, "{action}: {}", answer.text);
        starts_anew(&admin, action).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trap_of_any_kind_or_an_impossible_answer_ends_the_instance() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    // The action answers with the number of calls of its instance, a digit at 584. The digit of `{"k":0}` says what it does then.
    let block = HandMade {
        fields: r#"(func $again (result i32) (i32.add (call $again) (i32.const 1)))
                   (data (i32.const 512) "\00\00\00\00\48\02\00\00\01\00\00\00")
                   (data (i32.const 584) "0")"#
            .to_owned(),
        call: "(local $k i32)
               (i32.store8 (i32.const 584) (i32.add (i32.load8_u (i32.const 584)) (i32.const 1)))
               (local.set $k (i32.sub (i32.load8_u offset=5 (i32.load offset=60 (local.get $arguments))) (i32.const 48)))
               (if (i32.eq (local.get $k) (i32.const 1)) (then unreachable))
               (if (i32.eq (local.get $k) (i32.const 2)) (then (drop (i32.div_u (i32.const 1) (i32.const 0)))))
               (if (i32.eq (local.get $k) (i32.const 3)) (then (drop (i32.load (i32.const -8)))))
               (if (i32.eq (local.get $k) (i32.const 4)) (then (drop (call $again))))
               (if (result i32) (i32.eq (local.get $k) (i32.const 5)) (then (i32.const -16)) (else (i32.const 512)))",
        ..HandMade::default()
    };
    let installed = admin.install("", block.packed_with("traps", json!({ "instances": reuse() })).await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let go = async |k: u8| call(&admin, "traps/actions/go", json!({ "k": k })).await;
    for k in 1..=5 {
        assert_eq!((go(0).await.data(), go(0).await.data()), (json!(1), json!(2)), "before {k}");
        let failed = go(k).await;
        failed.expect_error(500, "action_failed");
    }
    assert_eq!(go(0).await.data(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_whose_tables_have_grown_much_ends() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    // The action answers with the number of calls of its instance, a digit at 584. `{"k":2}` grows a table by 20,000 elements.
    let grows = HandMade {
        fields: r#"(table $table 1 funcref)
                   (data (i32.const 512) "\00\00\00\00\48\02\00\00\01\00\00\00")
                   (data (i32.const 584) "0")"#
            .to_owned(),
        call: "(i32.store8 (i32.const 584) (i32.add (i32.load8_u (i32.const 584)) (i32.const 1)))
               (drop (table.grow $table (ref.null func) (i32.mul (i32.const 10000)
                 (i32.sub (i32.load8_u offset=5 (i32.load offset=60 (local.get $arguments))) (i32.const 48)))))
               (i32.const 512)",
        ..HandMade::default()
    };
    let installed = admin.install("", grows.packed_with("grows", json!({ "instances": reuse() })).await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let mut counts = Vec::new();
    for tens_of_thousands in [0, 1, 0, 1, 0, 2, 0] {
        counts.push(call(&admin, "grows/actions/go", json!({ "k": tens_of_thousands })).await.data());
    }
    // Two calls together have grown the table by too much, and then one call alone.
    assert_eq!(counts, [1, 2, 3, 4, 1, 2, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metric_tells_new_instances_from_kept_ones() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_TELEMETRY", "true").start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({ "instances": reuse() })).await;
    for calls in 1..=4 {
        assert_eq!(count(&admin).await, calls);
    }
    let shown = Exposition::parse(&server.call("GET", "/metrics", None).await.text);
    let of =
        |instance: &str| shown.value("svc_block_instances_total", &[("svc_block", "hostile"), ("svc_block_instance", instance)]);
    // The call during the install that listed the handlers had a new instance too.
    assert_eq!((of("new"), of("kept")), (Some(2.0), Some(3.0)), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_serves_one_call_at_a_time_and_ends_with_a_call_that_is_canceled() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({ "instances": reuse() })).await;
    assert_eq!((count(&admin).await, count(&admin).await), (1, 2));
    tokio::select! {
        ended = call(&admin, "hostile/actions/count_slowly", json!({ "ms": 25_000 })) => panic!("{}", ended.text),
        () = async {
            let runs = async || admin.get("/api/v1/blocks/hostile/logs").await.text.contains("counted 3 slowly");
            until("the slow call runs in the instance", runs).await;
            starts_anew(&admin, "a call that still runs").await;
        } => {}
    }
    // The slow call's client has hung up. A call that is canceled counts as failed.
    let is_canceled = async || {
        let usage = admin.get("/api/v1/blocks/hostile/usage").await.data();
        usage["actions"].as_array().unwrap().iter().any(|action| action["name"] == "count_slowly" && action["failed"] == 1)
    };
    until("the server has canceled the slow call", is_canceled).await;
    // The instance of the canceled call has counted further.
    for counted in 3..8 {
        assert_eq!(count(&admin).await, counted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_waits_too_long_ends() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({ "instances": { "reuse": { "calls": 1000, "seconds": 1 } } })).await;
    until("an instance serves two calls", async || count(&admin).await > 1).await;
    let deadline = Instant::now() + WAIT_MAX;
    // Each call restarts the time that the instance may wait. So the calls are further apart than this time.
    while count(&admin).await > 1 {
        assert!(Instant::now() < deadline, "the instance does not end");
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_gets_the_memory_of_kept_instances() {
    let server =
        ServerBuilder::new(Engine::Sqlite).env("SVC_BLOCK_MEMORY_MB", "64").env("SVC_BLOCK_MEMORY_TOTAL_MB", "64").start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({ "instances": reuse() })).await;
    install(&admin, "", json!({ "name": "neighbour" })).await;
    let fill = async |block: &str, megabytes: u64| {
        let filled = call(&admin, &format!("{block}/actions/fill"), json!({ "megabytes": megabytes, "ms": 0 })).await;
        assert_eq!(filled.status, 200, "{block}: {}", filled.text);
    };
    for _ in 0..3 {
        assert_eq!(count(&admin).await, 1);
        fill("hostile", 4).await;
        assert_eq!(count(&admin).await, 2, "the instance is kept, with its memory");
        fill("neighbour", 60).await;
    }
    // A call whose memory has grown much ends its own instance.
    assert_eq!(count(&admin).await, 1);
    fill("hostile", 60).await;
    assert_eq!(count(&admin).await, 1);
}
