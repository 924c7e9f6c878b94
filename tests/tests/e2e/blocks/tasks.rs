//! Scheduled tasks: each runs only once, no matter how many instances there are. Each has a history, and only the rights of its
//! maker.

use std::time::Duration;

use blockbase_tests::{Admin, Engine, Server, ServerBuilder, example_block, on_both_engines};
use serde_json::{Value, json};

const CLEANUP: &str = "/api/v1/tasks/anonymous-user-cleanup";

async fn runs(admin: &Admin<'_>, task: &str) -> Vec<Value> {
    admin.get(&format!("/api/v1/tasks/{task}/runs")).await.data().as_array().unwrap().clone()
}

/// Waits until a task has this many runs that have ended.
async fn ended_runs(admin: &Admin<'_>, task: &str, count: usize) -> Vec<Value> {
    let deadline = std::time::Instant::now() + blockbase_tests::WAIT_MAX;
    loop {
        let runs = runs(admin, task).await;
        if runs.iter().filter(|run| run["status"] != "running").count() >= count {
            return runs;
        }
        assert!(std::time::Instant::now() < deadline, "{task} has not run {count} times: {runs:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Makes a task due now.
async fn make_due(server: &Server, task: &str) {
    server.sql(&format!("UPDATE svc_tasks SET next_run_at = 1 WHERE name = '{task}'")).await;
}

/// Installs the block `tasks`, and makes an open task. Returns the input of the action that completes it.
async fn something_to_complete(admin: &Admin<'_>) -> Value {
    admin.make_task_object().await;
    assert_eq!(admin.install("", example_block("tasks").await).await.status, 201);
    json!({ "id": admin.make("task", json!({ "title": "t" })).await })
}

on_both_engines! {
    async fn tasks_are_shown_tuned_and_refused(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let list = admin.get("/api/v1/tasks").await.data();
        let names: Vec<_> = list.as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["event-retention", "anonymous-user-cleanup", "audit-retention"]);
        let keys: Vec<_> = list[0].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["id", "name", "type", "enabled", "schedule", "config", "lastRunAt", "lastStatus", "nextRunAt", "suspended"]);
        assert_eq!((&list[0]["type"], &list[0]["enabled"], list[0]["nextRunAt"].is_string()), (&json!("event_retention"), &json!(true), true));

        let tuned = json!({ "enabled": true, "schedule": "*/5 4 * * MON-FRI", "config": { "maxAgeDays": 7 } });
        let task = admin.patch(CLEANUP, tuned).await.data();
        assert_eq!((&task["enabled"], &task["schedule"], &task["config"]), (&json!(true), &json!("*/5 4 * * MON-FRI"), &json!({ "maxAgeDays": 7 })));
        assert!(task["nextRunAt"].as_str().unwrap().ends_with(":00.000Z"));
        assert_eq!(admin.get(&format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())).await.data(), task);
        for (body, code) in [
            (json!({ "schedule": "soon" }), "invalid_value"),
            (json!({ "schedule": "* * * * * *" }), "invalid_value"),
            (json!({ "schedule": "0 0 31 2 *" }), "invalid_value"),
            (json!({ "config": { "maxAgeDays": -1 } }), "invalid_value"),
            (json!({ "config": { "maxAgeDays": 0 } }), "invalid_value"),
            (json!({ "config": { "maxAgeDays": "old" } }), "invalid_value"),
            (json!({ "config": { "minAgeDays": 1 } }), "invalid_value"),
            (json!({ "config": 5 }), "invalid_value"),
            (json!({ "enabled": "yes" }), "invalid_request"),
            (json!({ "type": "event_retention" }), "invalid_request"),
        ] {
            admin.patch(CLEANUP, body).await.expect_error(400, code);
        }
        assert_eq!(admin.get(CLEANUP).await.data(), task);
        admin.delete(CLEANUP).await.expect_error(409, "conflict");
        admin.get("/api/v1/tasks/nothing").await.expect_error(404, "not_found");
        admin.post("/api/v1/tasks/nothing/run", json!({})).await.expect_error(404, "not_found");
        let new = |name: &str, kind: &str| json!({ "name": name, "type": kind, "schedule": "0 3 * * *", "config": { "block": "b", "action": "a" } });
        admin.post("/api/v1/tasks", new("x", "anonymous_cleanup")).await.expect_error(400, "invalid_value");
        admin.post("/api/v1/tasks", new("Capital", "block_action")).await.expect_error(400, "invalid_value");
        admin.post("/api/v1/tasks", new("event-retention", "block_action")).await.expect_error(409, "unique_violation");
        admin.post("/api/v1/tasks", new("x", "block_action")).await.expect_error(404, "not_found");
        // Changed settings survive a restart.
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        assert_eq!(admin.get(CLEANUP).await.data()["config"], json!({ "maxAgeDays": 7 }));
    }

    async fn a_task_that_is_due_runs_once_and_says_so(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        // On Postgres, three instances look for due tasks.
        let mut others = Vec::new();
        if engine == Engine::Postgres {
            others.push(server.builder().start().await);
            others.push(server.builder().start().await);
        }
        assert_eq!(admin.patch(CLEANUP, json!({ "enabled": false })).await.status, 200);
        make_due(&server, "anonymous-user-cleanup").await;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert!(runs(&admin, "anonymous-user-cleanup").await.is_empty(), "a disabled task ran");
        for round in 1..=3 {
            // Disabling and enabling a task plans its next run again. Missed runs are skipped.
            assert_eq!(admin.patch(CLEANUP, json!({ "enabled": true })).await.status, 200);
            make_due(&server, "anonymous-user-cleanup").await;
            ended_runs(&admin, "anonymous-user-cleanup", round).await;
        }
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let history = runs(&admin, "anonymous-user-cleanup").await;
        assert_eq!(history.len(), 3, "{history:?}");
        for run in &history {
            assert_eq!((&run["status"], &run["trigger"], &run["result"]), (&json!("succeeded"), &json!("schedule"), &json!({ "deleted": 0 })));
            assert!(run["finishedAt"].as_str() >= run["startedAt"].as_str());
        }
        let task = admin.get(CLEANUP).await.data();
        assert_eq!((&task["lastStatus"], &task["lastRunAt"]), (&json!("succeeded"), &history[0]["startedAt"]));
        assert!(task["nextRunAt"].as_str() > task["lastRunAt"].as_str());
        let events = server.sql("SELECT payload FROM svc_events WHERE topic = 'task.run.succeeded' ORDER BY seq").await;
        assert_eq!(events.len(), 3);
        let payload: Value = serde_json::from_str(&events[2][0]).unwrap();
        assert_eq!((&payload["runId"], &payload["task"], &payload["actor"]), (&history[0]["id"], &json!("anonymous-user-cleanup"), &Value::Null));
        // A manual run names its caller.
        assert_eq!(admin.post(&format!("{CLEANUP}/run"), json!({})).await.data()["trigger"], "manual");
        let events = server.sql("SELECT payload FROM svc_events WHERE topic = 'task.run.succeeded' ORDER BY seq").await;
        let payload: Value = serde_json::from_str(&events[3][0]).unwrap();
        assert_eq!(payload["actor"]["userId"], admin.get("/api/v1/me").await.json()["userId"]);
        let page = admin.get(&format!("{CLEANUP}/runs?pageSize=1&page=2")).await.json();
        assert_eq!((&page["data"][0]["id"], &page["pagination"]["totalCount"]), (&history[0]["id"], &json!(4)));
    }

    async fn a_run_whose_instance_died_counts_as_failed(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let id = admin.get(CLEANUP).await.data()["id"].as_str().unwrap().to_owned();
        let under_way = |lease: &str| format!(
            "INSERT INTO svc_task_runs (id, task_id, trigger_kind, status, lease_until, started_at) VALUES ('dead', '{id}', 'schedule', 'running', {lease}, 1)"
        );
        // While the lease is valid, no other process runs the task, and a due run waits.
        server.sql(&under_way("9999999999999")).await;
        admin.post(&format!("{CLEANUP}/run"), json!({})).await.expect_error(409, "conflict");
        assert_eq!(admin.patch(CLEANUP, json!({ "enabled": true })).await.status, 200);
        make_due(&server, "anonymous-user-cleanup").await;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert_eq!(runs(&admin, "anonymous-user-cleanup").await.len(), 1);
        // On SQLite, the server knows at boot that no other process runs the task. On Postgres, the lease has to expire.
        let token = admin.token.clone();
        let server = match engine {
            Engine::Sqlite => server.restart().await,
            Engine::Postgres => {
                server.sql("UPDATE svc_task_runs SET lease_until = 1 WHERE id = 'dead'").await;
                server
            }
        };
        let admin = server.with_token(token);
        let mut history = Vec::new();
        for _ in 0..150 {
            history = runs(&admin, "anonymous-user-cleanup").await;
            if history.len() == 2 && history[0]["status"] == "succeeded" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // The run that became due meanwhile is not lost.
        assert_eq!((history.len(), &history[0]["status"], &history[1]["status"]), (2, &json!("succeeded"), &json!("failed")), "{history:?}");
        assert!(history[1]["error"].as_str().unwrap().contains("instance"), "{history:?}");
        assert_eq!(server.sql("SELECT id FROM svc_events WHERE topic = 'task.run.failed'").await.len(), 1);
    }

    async fn a_block_action_runs_with_its_makers_rights(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let input = something_to_complete(&admin).await;
        let config = json!({ "block": "tasks", "action": "complete", "input": input });
        let new = |name: &str| json!({ "name": name, "type": "block_action", "schedule": "0 3 * * *", "config": config });
        let bad = json!({ "name": "bad", "type": "block_action", "schedule": "0 3 * * *", "config": { "block": "tasks", "action": "complete", "input": { "id": 5 } } });
        admin.post("/api/v1/tasks", bad).await.expect_error(400, "validation_failed");

        // A caller who may make tasks but not call the action cannot make a task that calls it, and cannot change a task so that
        // it does.
        let grants = |more: &[Value]| {
            let mut grants = vec![json!({ "resource": "tasks", "actions": ["manage"] })];
            grants.extend_from_slice(more);
            json!({ "name": "planner", "permissions": grants })
        };
        assert_eq!(admin.post("/api/v1/roles", grants(&[])).await.status, 201);
        let planner = server.with_token(server.sign_up("planner").await);
        let planner_id = planner.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{planner_id}/roles"), json!({ "roleId": "planner" })).await.status, 200);
        planner.post("/api/v1/tasks", new("mine")).await.expect_error(403, "forbidden");
        let made = admin.post("/api/v1/tasks", new("of-admin")).await;
        assert_eq!(made.status, 201, "{}", made.text);
        admin.post("/api/v1/tasks", new("of-admin")).await.expect_error(409, "unique_violation");
        planner.patch("/api/v1/tasks/of-admin", json!({ "config": config })).await.expect_error(403, "forbidden");

        // When the task is due, it runs with the maker's rights, and its events name the maker.
        make_due(&server, "of-admin").await;
        let history = ended_runs(&admin, "of-admin", 1).await;
        assert_eq!((&history[0]["status"], &history[0]["result"]["task"]["done"]), (&json!("succeeded"), &json!(true)), "{history:?}");
        let (_, event) = admin.outbox("task").await.pop().unwrap();
        assert_eq!(event["actor"]["userId"], admin.get("/api/v1/me").await.json()["userId"]);
        // A run has the effect of a call and shows its result. So both need the right to call the action.
        planner.post("/api/v1/tasks/of-admin/run", json!({})).await.expect_error(403, "forbidden");
        planner.patch("/api/v1/tasks/of-admin", json!({ "enabled": false })).await.expect_error(403, "forbidden");
        planner.delete("/api/v1/tasks/of-admin").await.expect_error(403, "forbidden");
        planner.post("/api/v1/tasks/of-admin/adopt", json!({})).await.expect_error(403, "forbidden");
        let shown = runs(&planner, "of-admin").await;
        assert_eq!((shown.len(), &shown[0]["status"], &shown[0]["result"]), (1, &json!("succeeded"), &Value::Null), "{shown:?}");
        let hidden = json!({ "block": "tasks", "action": "complete", "input": null });
        assert_eq!(planner.get("/api/v1/tasks/of-admin").await.data()["config"], hidden);
        let listed = planner.get("/api/v1/tasks").await.data();
        assert_eq!(listed.as_array().unwrap().iter().find(|task| task["name"] == "of-admin").unwrap()["config"], hidden);
        assert_eq!(admin.get("/api/v1/tasks/of-admin").await.data()["config"], config);
        // A failure affects only that run, and its event does not contain the block's message.
        let again = admin.post("/api/v1/tasks/of-admin/run", json!({})).await.data();
        assert_eq!((&again["status"], again["error"].is_string()), (&json!("failed"), true));
        assert!(runs(&planner, "of-admin").await.iter().all(|run| run["error"].is_null()));
        let told = server.sql("SELECT payload FROM svc_events WHERE topic = 'task.run.failed'").await;
        assert!(!told[0][0].contains(again["error"].as_str().unwrap()), "{told:?}");

        // With the right to call the action, the planner may run the task, until they lose this right.
        let may_call = [json!({ "resource": "blocks", "actions": ["update"] })];
        assert_eq!(admin.patch("/api/v1/roles/planner", grants(&may_call)).await.status, 200);
        assert_eq!(planner.post("/api/v1/tasks", new("mine")).await.status, 201);
        server.sql("UPDATE task SET done = FALSE").await;
        assert_eq!(admin.patch("/api/v1/roles/planner", grants(&[])).await.status, 200);
        let run = admin.post("/api/v1/tasks/mine/run", json!({})).await.data();
        assert_eq!(run["status"], "failed", "{run}");
        assert_eq!(admin.get(&format!("/api/v1/data/task/{}", input["id"].as_str().unwrap())).await.data()["done"], false);
        let task = admin.get("/api/v1/tasks/mine").await.data();
        assert_eq!((&task["suspended"]["reason"], task["suspended"]["since"].is_string()), (&json!("rights_lost"), true), "{task}");
        admin.delete(&format!("/api/v1/users/{planner_id}")).await.expect_error(409, "owns_things");
        assert_eq!(admin.delete(&format!("/api/v1/users/{planner_id}?suspend=true")).await.status, 204);
        let run = admin.post("/api/v1/tasks/mine/run", json!({})).await.data();
        assert!(run["error"].as_str().unwrap().contains("is no longer valid"), "{run}");
        let gone = admin.get("/api/v1/tasks/mine").await.data();
        assert_eq!((&gone["suspended"]["reason"], &gone["suspended"]["since"]), (&json!("maker_gone"), &task["suspended"]["since"]));
        let told = server.sql("SELECT payload FROM svc_events WHERE topic = 'tasks.suspended'").await;
        assert_eq!(told.len(), 1, "{told:?}");
        // Once adopted, the task has the rights of its new maker.
        assert_eq!(admin.post("/api/v1/tasks/mine/adopt", json!({})).await.data()["suspended"], Value::Null);
        assert_eq!(admin.post("/api/v1/tasks/mine/run", json!({})).await.data()["status"], "succeeded");
        admin.post("/api/v1/tasks/event-retention/adopt", json!({})).await.expect_error(409, "conflict");
        assert_eq!(admin.delete("/api/v1/tasks/mine").await.status, 204);
        admin.get("/api/v1/tasks/mine").await.expect_error(404, "not_found");
        assert!(server.sql("SELECT id FROM svc_task_runs WHERE task_id NOT IN (SELECT id FROM svc_tasks)").await.is_empty());
    }

    async fn deleting_guests_by_hand_takes_the_right_to_delete_users(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let tasks = json!({ "resource": "tasks", "actions": ["manage"] });
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "planner", "permissions": [tasks] })).await.status, 201);
        let planner = server.with_token(server.sign_up("planner").await);
        let planner_id = planner.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{planner_id}/roles"), json!({ "roleId": "planner" })).await.status, 200);
        let (run, tune) = (format!("{CLEANUP}/run"), json!({ "config": { "maxAgeDays": 1 } }));
        planner.patch(CLEANUP, tune.clone()).await.expect_error(403, "forbidden");
        planner.post(&run, json!({})).await.expect_error(403, "forbidden");
        let shown = admin.get(CLEANUP).await.data();
        assert_eq!((&shown["config"], &shown["lastRunAt"]), (&json!({ "maxAgeDays": 30 }), &Value::Null));
        // Task managers may change when the task runs, and may run tasks that delete no guests.
        assert_eq!(planner.patch(CLEANUP, json!({ "enabled": true, "schedule": "0 4 * * *" })).await.status, 200);
        assert_eq!(planner.post("/api/v1/tasks/event-retention/run", json!({})).await.data()["status"], "succeeded");
        let more = json!([tasks, { "resource": "users", "actions": ["delete"] }]);
        assert_eq!(admin.patch("/api/v1/roles/planner", json!({ "permissions": more })).await.status, 200);
        assert_eq!(planner.patch(CLEANUP, tune).await.data()["config"]["maxAgeDays"], 1);
        assert_eq!(planner.post(&run, json!({})).await.data()["status"], "succeeded");
    }

    async fn old_events_are_purged_when_nobody_still_has_to_get_them(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_EVENTS_RETENTION_DAYS", "2").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        for _ in 0..12 {
            let records: Vec<Value> = (0..100).map(|number| json!({ "title": format!("t{number}") })).collect();
            assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
        }
        let day = 24 * 3_600_000_i64;
        let all = server.sql("SELECT seq FROM svc_events ORDER BY seq").await;
        // The first thousand events are old. One of them is still waiting, one is dead, and one was delivered.
        let (waiting, dead, done, last_old) = (&all[10][0], &all[20][0], &all[30][0], &all[999][0]);
        server.sql(&format!("UPDATE svc_events SET occurred_at = occurred_at - {} WHERE seq <= {last_old}", 3 * day)).await;
        for (seq, status, is_dead) in [(waiting, "pending", "FALSE"), (dead, "failed", "TRUE"), (done, "delivered", "FALSE")] {
            let sql = format!("INSERT INTO svc_deliveries (event_seq, consumer, handler, status, dead, attempts) VALUES ({seq}, 'c', 'h', '{status}', {is_dead}, 1)");
            server.sql(&sql).await;
        }
        let run = admin.post("/api/v1/tasks/event-retention/run", json!({})).await.data();
        assert_eq!((&run["status"], &run["result"]), (&json!("succeeded"), &json!({ "deleted": 999 })));
        let left = server.sql("SELECT seq FROM svc_events ORDER BY seq").await;
        // The waiting event, the new ones, and the event of the run itself.
        assert_eq!((left.len(), &left[0][0]), (1 + all.len() - 1000 + 1, waiting));
        let token = admin.token.clone();
        let keeps = server.builder().env("SVC_EVENTS_RETENTION_DAYS", "0");
        drop(server);
        let server = keeps.start().await;
        let admin = server.with_token(token);
        server.sql("UPDATE svc_events SET occurred_at = 1").await;
        assert_eq!(admin.post("/api/v1/tasks/event-retention/run", json!({})).await.data()["result"], json!({ "deleted": 0 }));
    }
}
