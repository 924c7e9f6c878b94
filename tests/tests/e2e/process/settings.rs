//! The service itself: its public information, its settings, its status.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, Server, ServerBuilder, example_block, on_both_engines, until, within};
use serde_json::{Value, json};

const INSTANCE: &str = "/api/v1/instance";
const SETTINGS: &str = "/api/v1/settings";
const STATUS: &str = "/api/v1/status";

async fn instance(server: &Server) -> Value {
    let answer = server.call("GET", INSTANCE, None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// A user who may only read `settings`.
async fn operator<'s>(admin: &Admin<'s>) -> Admin<'s> {
    let grants = json!([{ "resource": "settings", "actions": ["read"] }]);
    assert_eq!(admin.post("/api/v1/roles", json!({ "name": "operator", "permissions": grants })).await.status, 201);
    let operator = admin.server.with_token(admin.server.sign_up("operator").await);
    let id = operator.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "operator" })).await.status, 200);
    operator
}

fn check<'v>(status: &'v Value, name: &str) -> &'v Value {
    status["health"].as_array().unwrap().iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("{name}: {status}"))
}

on_both_engines! {
    async fn everybody_learns_how_to_sign_in_and_nothing_more(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let fresh = json!({
            "needsAdmin": true, "setupToken": false, "signUp": true, "anonymous": false, "mail": false,
            "emailVerification": false, "methods": ["password"], "providers": [],
        });
        assert_eq!(instance(&server).await, fresh);
        server.admin().await;
        let mut known = fresh.clone();
        known["needsAdmin"] = json!(false);
        assert_eq!(instance(&server).await, known);
        // The route ignores credentials, even invalid ones.
        for credential in ["nonsense", "svc_nonsense"] {
            assert_eq!(server.call_as(Some(credential), "GET", INSTANCE, None).await.json(), known);
        }
        // To find out whether there is an admin, the server reads the accounts.
        server.sql("DELETE FROM svc_credentials").await;
        until("a wiped table is fresh", async || instance(&server).await == fresh).await;
    }

    async fn the_configuration_shows_in_what_is_open(engine: Engine) {
        let closed = ServerBuilder::new(engine).env("SVC_SETUP_TOKEN", "of-the-setup-1234").env("SVC_DISABLE_SIGNUP", "true")
            .env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let fresh = instance(&closed).await;
        assert_eq!((&fresh["needsAdmin"], &fresh["setupToken"], &fresh["signUp"]), (&json!(true), &json!(true), &json!(true)));
        assert_eq!((&fresh["anonymous"], &fresh["methods"]), (&json!(true), &json!(["password", "anonymous"])));
        // A guest is not an admin.
        assert_eq!(closed.call("POST", "/api/auth/sign-in/anonymous", None).await.status, 200);
        assert_eq!(instance(&closed).await, fresh);
        let body = json!({ "name": "a", "email": "a@example.com", "password": "correct horse battery" });
        let without = closed.call("POST", "/api/auth/sign-up/email", Some(body.clone())).await;
        assert_eq!((without.status, &instance(&closed).await), (403, &fresh));
        let first = closed.request("POST", "/api/auth/sign-up/email").header("x-setup-token", "of-the-setup-1234").json(&body);
        assert_eq!(closed.send(first).await.status, 200);
        let after = instance(&closed).await;
        assert_eq!((&after["needsAdmin"], &after["setupToken"], &after["signUp"]), (&json!(false), &json!(false), &json!(false)));

        // The account that the boot makes is an admin, even before somebody claims it. So the API's answer does not change.
        let made = ServerBuilder::new(engine).env("SVC_ADMIN_EMAIL", "boot@example.com").env("SVC_ADMIN_PASSWORD", "of the boot, long")
            .start().await;
        let known = instance(&made).await;
        assert_eq!((&known["needsAdmin"], &known["signUp"]), (&json!(false), &json!(false)));
        let body = json!({ "email": "boot@example.com", "password": "of the boot, long" });
        let token = made.call("POST", "/api/auth/sign-in/email", Some(body)).await.json()["token"].as_str().unwrap().to_owned();
        let boot = made.with_token(token);
        assert_eq!(boot.get("/api/v1/me").await.json()["pendingClaim"], true);
        assert_eq!((boot.get(STATUS).await.status, boot.get("/api/v1/objects").await.status), (200, 200));
    }

    async fn an_anonymous_question_costs_the_database_nothing(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        // Another thread reads the log. When it has read the mark, it has also read everything before the mark.
        admin.define("zebra", json!([])).await;
        assert_eq!(admin.get("/api/v1/data/zebra").await.status, 200);
        server.log_with("zebra").await;
        let began = Instant::now();
        let asked = || server.log().matches("FROM svc_credentials LIMIT 1").count();
        let before = asked();
        for _ in 0..200 {
            instance(&server).await;
        }
        // The limit is two statements, and one more for every three seconds of the test.
        let most = 2 + usize::try_from(began.elapsed().as_secs()).unwrap() / 3;
        let statements = asked() - before;
        assert!((1..=most).contains(&statements), "{statements} statements for 200 requests");
    }

    async fn settings_are_for_those_who_may_read_them(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_METRICS_TOKEN", "a-metrics-token")
            .env("SVC_SETUP_TOKEN", "a-setup-token-1234")
            .env("SVC_TELEMETRY", "true")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:an-otlp-key@127.0.0.1:9/a-path-key?key=a-query-key")
            .env("SVC_MAX_BULK", "17")
            .start()
            .await;
        let body = json!({ "name": "a", "email": "admin@example.com", "password": "correct horse battery" });
        let first = server.request("POST", "/api/auth/sign-up/email").header("x-setup-token", "a-setup-token-1234").json(&body);
        let admin = server.with_token(server.send(first).await.json()["token"].as_str().unwrap().to_owned());
        let operator = operator(&admin).await;
        let stranger = server.with_token(server.sign_up("stranger").await);
        for path in [SETTINGS, STATUS] {
            server.call("GET", path, None).await.expect_error(401, "unauthorized");
            stranger.get(path).await.expect_error(403, "forbidden");
            let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "operator" })).await.json()["key"].clone();
            assert_eq!(server.with_token(key.as_str().unwrap().to_owned()).get(path).await.status, 200);
            assert_eq!(operator.get(path).await.status, 200);
            assert_eq!(operator.post(path, json!({})).await.status, 405);
        }
        let answer = operator.get(SETTINGS).await;
        for secret in ["a-metrics-token", "a-setup-token-1234", "an-otlp-key", "a-path-key", "a-query-key", "a secret for tests"] {
            assert!(!answer.text.contains(secret), "{secret} shows");
        }
        let settings = answer.data();
        let of = |name: &str| {
            let mut setting = settings.as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap().clone();
            assert!(!setting["description"].as_str().unwrap().is_empty());
            setting.as_object_mut().unwrap().remove("description");
            setting
        };
        let setting = |name: &str, value: Value, secret: bool, is_set: bool, source: &str| {
            json!({ "name": name, "value": value, "secret": secret, "isSet": is_set, "source": source })
        };
        assert_eq!(of("SVC_METRICS_TOKEN"), setting("SVC_METRICS_TOKEN", json!(null), true, true, "environment"));
        assert_eq!(of("SVC_ADMIN_PASSWORD"), setting("SVC_ADMIN_PASSWORD", json!(null), true, false, "default"));
        assert_eq!(of("SVC_MAX_BULK"), setting("SVC_MAX_BULK", json!("17"), false, true, "environment"));
        assert_eq!(of("SVC_MAX_TEXT_BYTES"), setting("SVC_MAX_TEXT_BYTES", json!("1048576"), false, false, "default"));
        assert_eq!(of("SVC_PUBLIC_URL"), setting("SVC_PUBLIC_URL", json!(server.base), false, false, "default"));
        assert_eq!(of("OTEL_EXPORTER_OTLP_ENDPOINT")["value"], "http://127.0.0.1:9");
        let (secret, database) = (of("SVC_SECRET"), of("SVC_DATABASE_URL"));
        assert_eq!((&secret["value"], &secret["secret"], &secret["isSet"]), (&json!(null), &json!(true), &json!(true)));
        match engine {
            Engine::Sqlite => assert_eq!((&secret["source"], &database["isSet"], &database["value"]), (&json!("file"), &json!(false), &json!(null))),
            Engine::Postgres => {
                let shown = database["value"].as_str().unwrap();
                assert!(shown.starts_with("postgres://") && !shown.contains('@'), "{shown}");
                assert_eq!((&secret["source"], &database["source"]), (&json!("environment"), &json!("environment")));
            }
        }
        // Every variable is in `--help` exactly once.
        let output = tokio::task::spawn_blocking(|| {
            std::process::Command::new(blockbase_tests::blockbase()).args(["serve", "--help"]).output().unwrap()
        }).await.unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let names: Vec<&str> = settings.as_array().unwrap().iter().map(|setting| setting["name"].as_str().unwrap()).collect();
        let in_help: Vec<&str> = help
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter_map(|line| line.split(' ').next())
            .filter(|word| word.starts_with("SVC_") && !word.contains('=') || word.starts_with("OTEL_"))
            .collect();
        assert_eq!(names, in_help);
    }

    async fn the_status_counts_what_there_is(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_EVENTS_MAX_BYTES", "1000000000").start().await;
        let admin = server.admin().await;
        let operator = operator(&admin).await;
        admin.make_task_object().await;
        for number in 0..5 {
            admin.make("task", json!({ "title": format!("t{number}") })).await;
        }
        let status = operator.get(STATUS).await.data();
        assert_eq!((&status["engine"], &status["version"]), (&json!(if engine == Engine::Sqlite { "sqlite" } else { "postgres" }), &json!(env!("CARGO_PKG_VERSION"))));
        assert!(status["engineVersion"].as_str().unwrap().starts_with(|first: char| first.is_ascii_digit()), "{status}");
        assert!(status["startedAt"].as_str() <= status["now"].as_str() && status["uptimeSeconds"].as_u64().unwrap() < 600);
        let instances = status["instances"].as_array().unwrap();
        assert_eq!((instances.len(), &instances[0]["isThis"]), (1, &json!(true)));
        assert_eq!((&instances[0]["version"], instances[0]["startedAt"].as_str() <= instances[0]["seenAt"].as_str()), (&status["version"], true));
        assert!(status["database"]["sizeBytes"].as_u64().unwrap() > 50_000, "{status}");
        assert_eq!(status["database"]["freeBytes"].is_u64(), engine == Engine::Sqlite);
        assert_eq!((&status["streams"]["max"], &status["outbox"]["maxBytes"]), (&json!(10_000), &json!(1_000_000_000)));
        let of_hour = |status: &Value, name: &str| -> u64 {
            let minutes = status["activity"][name].as_array().unwrap();
            assert_eq!(minutes.len(), 60);
            minutes.iter().map(|minute| minute.as_u64().unwrap()).sum()
        };
        assert_eq!((of_hour(&status, "writes"), of_hour(&status, "errors")), (5, 0));
        let requests = of_hour(&status, "requests");
        assert!(requests >= 9, "{requests}");
        server.call("GET", "/healthz", None).await;
        server.call("GET", "/admin", None).await;
        admin.get("/api/v1/data/task").await;
        // These are the previous request, and the request for the status itself.
        assert_eq!(of_hour(&operator.get(STATUS).await.data(), "requests"), requests + 2);
        for name in ["database", "outbox", "deliveries", "blocks", "permissions", "events"] {
            assert_eq!(check(&status, name)["ok"], true, "{status}");
        }
        assert_eq!(status["health"].as_array().unwrap().iter().any(|check| check["check"] == "disk"), engine == Engine::Sqlite);
        // A background job counts the events exactly.
        let events = server.sql("SELECT count(*) FROM svc_events").await[0][0].parse::<u64>().unwrap();
        until("the outbox is counted", async || {
            let outbox = operator.get(STATUS).await.data()["outbox"].clone();
            outbox["events"] == events && outbox["sizeBytes"].as_u64().unwrap() > 0
        }).await;
        // Open streams are counted for each response. Only data from the database is cached for a few seconds.
        let stream = server.request("GET", "/api/v1/events/stream").bearer_auth(&admin.token).send().await.unwrap();
        assert_eq!(stream.status(), 200);
        assert_eq!(operator.get(STATUS).await.data()["streams"]["open"], 1);
        drop(stream);
        until("the stream is closed", async || operator.get(STATUS).await.data()["streams"]["open"] == 0).await;
    }

    async fn deliveries_that_are_given_up_show(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let subscription = json!({ "event": "data.task.created", "consumer": "log", "handler": "log_event" });
        assert_eq!(admin.post("/api/v1/events/subscriptions", subscription).await.status, 201);
        for title in ["one", "two", "three"] {
            admin.make("task", json!({ "title": title })).await;
        }
        until("they are delivered", async || admin.get(STATUS).await.data()["deliveries"]["pending"] == 0).await;
        for (seq, change) in [("min", "status = 'failed', dead = TRUE"), ("max", "status = 'failed', dead = FALSE, next_attempt_at = 9999999999999")] {
            server.sql(&format!("UPDATE svc_deliveries SET {change} WHERE consumer = 'log' AND event_seq = (SELECT {seq}(event_seq) FROM svc_deliveries WHERE consumer = 'log')")).await;
        }
        until("they show", async || {
            let deliveries = admin.get(STATUS).await.data()["deliveries"].clone();
            deliveries == json!({ "pending": 0, "failed": 1, "dead": 1, "oldestPendingAt": null })
        }).await;
        let status = admin.get(STATUS).await.data();
        assert_eq!(check(&status, "deliveries")["ok"], false, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_fails_shows_to_who_may_see_blocks() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let operator = operator(&admin).await;
    let installed = admin.install("", example_block("echo").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    assert_eq!(admin.get(STATUS).await.data()["blocks"], json!({ "installed": 1, "failing": [] }));
    admin.post("/api/v1/blocks/echo/actions/panic", json!({})).await.expect_error(500, "action_failed");
    let status = admin.get(STATUS).await.data();
    let failing = status["blocks"]["failing"].as_array().unwrap();
    assert_eq!((failing.len(), &failing[0]["name"]), (1, &json!("echo")));
    assert!(!failing[0]["error"].as_str().unwrap().is_empty() && failing[0]["at"].is_string(), "{status}");
    assert_eq!(check(&status, "blocks")["ok"], false);
    // A failed action counts as a response with 500.
    assert_eq!(status["activity"]["errors"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(), 1);
    let status = operator.get(STATUS).await.data();
    assert_eq!(status["blocks"], json!({ "installed": 1, "failing": [] }));
    assert_eq!(check(&status, "blocks")["ok"], false);
    assert_eq!(admin.post("/api/v1/blocks/echo/actions/echo", json!({})).await.status, 200);
    assert_eq!(admin.get(STATUS).await.data()["blocks"]["failing"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_know_of_each_other() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let mut other = one.builder().start().await;
    for server in [&one, &other] {
        assert_eq!(instance(server).await["needsAdmin"], true);
    }
    let admin = one.admin().await;
    assert_eq!(instance(&one).await["needsAdmin"], false);
    let began = Instant::now();
    while instance(&other).await["needsAdmin"] == true {
        assert!(
            began.elapsed() < within(Duration::from_secs(2)),
            "the first sign-up takes {:?} to hold elsewhere",
            began.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let there = other.with_token(admin.token.clone());
    let seen = async |who: &Admin<'_>| who.get(STATUS).await.data()["instances"].as_array().unwrap().clone();
    until("both see both", async || seen(&admin).await.len() == 2 && seen(&there).await.len() == 2).await;
    let (here, there) = (seen(&admin).await, seen(&there).await);
    let this = |list: &[Value]| list.iter().find(|instance| instance["isThis"] == true).unwrap()["id"].clone();
    assert_ne!(this(&here), this(&there));
    let ids = |list: &[Value]| list.iter().map(|instance| instance["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&here), ids(&there));

    // An instance that was killed is shown for a while in its last state. An instance that stops is removed at once.
    let killed = this(&there);
    other.kill();
    let third = one.builder().start().await;
    until("all three are shown", async || seen(&admin).await.len() == 3).await;
    assert!(ids(&seen(&admin).await).contains(&killed));
    one.sql(&format!(
        "UPDATE svc_instances SET seen_at = seen_at - 60000 WHERE id = {} RETURNING id",
        killed.to_string().replace('"', "'")
    ))
    .await;
    until("its silence shows", async || check(&admin.get(STATUS).await.data(), "instances")["ok"] == false).await;
    third.signal("TERM");
    assert!(third.ended().await.success());
    until("it is gone", async || seen(&admin).await.len() == 2).await;
    // Much later, the next heartbeat of another instance deletes its row.
    one.sql(&format!("UPDATE svc_instances SET seen_at = 0 WHERE id = {} RETURNING id", killed.to_string().replace('"', "'")))
        .await;
    until("the row is deleted", async || seen(&admin).await.len() == 1).await;
}
