//! Reads of the service's own tables use the caller's permits. An unknown id costs one look-up.

use std::time::Duration;

use blockbase_tests::{Admin, Engine, HELD, Server, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

use super::{id_of, user_with};

/// The `data:` lines of a stream, as the numbers of their records.
struct Numbers {
    response: reqwest::Response,
    unread: String,
    seen: Vec<i64>,
}

impl Numbers {
    async fn since(who: &Admin<'_>, query: &str) -> Numbers {
        let request = who.request("GET", &format!("/api/v1/events/stream?{query}")).timeout(Duration::from_secs(600));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Numbers { response, unread: String::new(), seen: Vec::new() }
    }

    async fn read(&mut self) {
        let chunk = self.response.chunk().await.unwrap().expect("the stream goes on");
        self.unread.push_str(&String::from_utf8_lossy(&chunk));
        while let Some(end) = self.unread.find("\n\n") {
            let frame: String = self.unread.drain(..end + 2).collect();
            let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let event: Value = serde_json::from_str(data).unwrap();
            self.seen.push(event["payload"]["after"]["number"].as_i64().unwrap());
        }
    }

    async fn until(&mut self, count: usize) {
        while self.seen.len() < count {
            tokio::time::timeout(blockbase_tests::WAIT_MAX, self.read()).await.expect("an event in time");
        }
    }
}

/// The id of the newest event.
async fn newest(server: &Server) -> String {
    server.sql("SELECT id FROM svc_events ORDER BY seq DESC LIMIT 1").await[0][0].clone()
}

/// The number of rows in the outbox between two events of the rare object. One statement looks at fewer rows.
const COMMON: usize = 10_500;

on_both_engines! {
    async fn a_stream_that_begins_in_the_past_shows_all_that_it_asks_for_and_goes_on(server: Server) {
        let admin = server.admin().await;
        for object in ["rare", "common", "other"] {
            admin.define(object, json!([{ "name": "number", "type": "integer" }])).await;
        }
        let since = newest(&server).await;
        admin.make("rare", json!({ "number": 1 })).await;
        admin.make("other", json!({ "number": 2 })).await;
        for first in (0..COMMON).step_by(1000) {
            let records: Vec<Value> = (first..COMMON.min(first + 1000)).map(|_| json!({ "number": 0 })).collect();
            assert_eq!(admin.post("/api/v1/data/common/bulk", json!({ "data": records })).await.status, 201);
        }
        let rare = admin.make("rare", json!({ "number": 3 })).await;
        admin.make("other", json!({ "number": 4 })).await;
        admin.patch(&format!("/api/v1/data/rare/{rare}"), json!({ "number": 5 })).await.data();
        let grants = json!([{ "resource": "rare", "actions": ["read"] }, { "resource": "other", "actions": ["read", "create"], "rowPolicy": "own" }]);
        let weak = user_with(&admin, "weak", grants).await;
        let cases: [(&Admin<'_>, &str, &[i64]); 5] = [
            (&admin, "data.rare.%23", &[1, 3, 5]),
            (&admin, "data.rare.updated", &[5]),
            (&admin, "data.rare.%23,data.other.created", &[1, 2, 3, 4, 5]),
            (&weak, "data.%23", &[1, 3, 5]),
            (&weak, "%23.updated", &[5]),
        ];
        let mut open = Vec::new();
        for (who, topics, expected) in cases {
            let mut stream = Numbers::since(who, &format!("since={since}&topics={topics}")).await;
            stream.until(expected.len()).await;
            assert_eq!(stream.seen, expected, "{topics}");
            open.push((stream, topics, expected.len()));
        }
        let mut all = Numbers::since(&admin, &format!("since={since}")).await;
        all.until(COMMON + 5).await;
        assert_eq!(all.seen.iter().filter(|number| **number != 0).copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        // From now on the stream sends new events.
        admin.patch(&format!("/api/v1/data/rare/{rare}"), json!({ "number": 6 })).await.data();
        for (mut stream, topics, count) in open {
            stream.until(count + 1).await;
            assert_eq!((stream.seen.len(), stream.seen.last()), (count + 1, Some(&6)), "{topics}");
        }
    }

    async fn an_unknown_thing_is_missing_and_a_known_one_is_shown(server: Server) {
        let admin = server.admin().await;
        let (id, _) = crate::events::webhooks::make(&admin, json!({ "url": "https://webhook.invalid/", "topics": ["data.#"] })).await;
        for path in ["webhooks", "tasks", "blocks"] {
            admin.get(&format!("/api/v1/{path}/01890000-0000-7000-8000-000000000000")).await.expect_error(404, "not_found");
        }
        assert_eq!(admin.get(&format!("/api/v1/webhooks/{id}")).await.data()["suspended"], Value::Null);
    }
}

/// The number of times that all tasks were read.
fn looks_through_tasks(server: &Server) -> usize {
    server.log().matches("FROM svc_tasks ORDER BY").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspensions_are_looked_after_once_for_each_state_of_the_accounts() {
    const LOOKS: usize = 60;
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
    let admin = server.admin().await;
    let grants = json!([{ "resource": "webhooks", "actions": ["manage"] }, { "resource": "events", "actions": ["read"] }]);
    let weak = user_with(&admin, "weak", grants).await;
    let (id, _) = crate::events::webhooks::make(&weak, json!({ "url": "https://webhook.invalid/", "topics": ["auth.#"] })).await;
    let known = format!("/api/v1/webhooks/{id}");
    let before = looks_through_tasks(&server);
    for _ in 0..LOOKS {
        weak.get("/api/v1/webhooks/unknown").await.expect_error(404, "not_found");
        assert_eq!(weak.get(&known).await.status, 200);
    }
    // The background work also reads the tasks from time to time.
    let looks = looks_through_tasks(&server) - before;
    assert!(looks < LOOKS / 2, "{looks}");
    // The next request shows that a right was lost.
    assert_eq!(
        admin
            .patch("/api/v1/roles/of%20weak", json!({ "permissions": [{ "resource": "webhooks", "actions": ["read"] }] }))
            .await
            .status,
        200
    );
    assert_eq!(admin.get(&known).await.data()["suspended"]["reason"], "rights_lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_whose_scans_are_used_up_is_refused_and_others_read_on() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "number", "type": "integer" }, { "name": "text", "type": "text" }])).await;
    let resources = ["doc", "webhooks", "tasks", "events", "roles", "api_keys", "blocks", "objects", "users", "settings"];
    let grants: Vec<Value> = resources.iter().map(|resource| json!({ "resource": resource, "actions": ["read"] })).collect();
    let eve = user_with(&admin, "eve", json!(grants)).await;
    let eve_id = id_of(&eve).await;
    let since = newest(&server).await;
    admin.make("doc", json!({ "number": 1 })).await;
    let paths = [
        "/api/v1/webhooks".to_owned(),
        "/api/v1/tasks".to_owned(),
        "/api/v1/tasks/event-retention/runs".to_owned(),
        "/api/v1/events/subscriptions".to_owned(),
        "/api/v1/events/deliveries".to_owned(),
        "/api/v1/roles".to_owned(),
        "/api/v1/api-keys".to_owned(),
        "/api/v1/blocks".to_owned(),
        "/api/v1/schema/migrations".to_owned(),
        "/api/v1/users".to_owned(),
        "/api/v1/audit".to_owned(),
        format!("/api/v1/users/{eve_id}/sessions"),
        "/api/auth/list-sessions".to_owned(),
    ];
    for path in &paths {
        assert_eq!(eve.get(path).await.status, 200, "{path}");
    }
    // The scans wait until the test lets them continue.
    let lock = server.hold_reads("doc").await;
    let slow = || eve.get("/api/v1/data/doc?text[ilike]=x");
    let released = async {
        until("both scans run", async || server.sql(HELD).await[0][0] == "2").await;
        let mut past = Numbers::since(&eve, &format!("since={since}&topics=data.doc.%23")).await;
        let refused = futures_util::future::join_all(paths.iter().map(|path| eve.get(path))).await;
        for (path, refused) in paths.iter().zip(refused) {
            assert_eq!((refused.status, refused.headers.get("retry-after").is_some()), (503, true), "{path}: {}", refused.text);
        }
        for path in &paths {
            assert_eq!(admin.get(path).await.status, 200, "{path}");
        }
        // A read by an index needs no permit.
        eve.get("/api/v1/webhooks/unknown").await.expect_error(404, "not_found");
        assert!(past.seen.is_empty(), "it catches up in the caller's places");
        lock.release().await;
        past.until(1).await;
        assert_eq!(past.seen, [1]);
    };
    let (first, second, ()) = tokio::join!(slow(), slow(), released);
    assert_eq!((first.status, second.status), (200, 200));
}
