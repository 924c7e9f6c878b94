//! The event stream: each commit appears once and in order. Callers only get the commits that they may see.

pub(crate) mod deliveries;
pub(crate) mod delivery_faults;
pub(crate) mod lookups;
pub(crate) mod outbox;
pub(crate) mod resumed;
pub(crate) mod stripe;
pub(crate) mod subscriptions;
pub(crate) mod tickets;
pub(crate) mod topics;
pub(crate) mod webhooks;

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// An open stream, read frame by frame.
pub(crate) struct Stream {
    bytes: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl Stream {
    pub(crate) async fn open(who: &Admin<'_>, query: &str) -> Stream {
        Stream::of(who.request("GET", &format!("/api/v1/events/stream{query}"))).await
    }

    /// Opens a stream by any request.
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Stream {
        Stream::of_response(request.timeout(Duration::from_secs(120)).send().await.unwrap()).await
    }

    pub(crate) async fn of_response(response: reqwest::Response) -> Stream {
        Stream::unless_busy(response).await.expect("the stream opens")
    }

    /// Reads the response to a stream with `resume=true`. If the stream cannot open now, returns the time after which its client
    /// connects again, in milliseconds.
    pub(crate) async fn unless_busy(response: reqwest::Response) -> Result<Stream, u64> {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let mut stream = Stream { bytes: Box::pin(response.bytes_stream()), text: String::new() };
        let first = stream.frame().await.expect("a frame");
        if first == ": open" {
            return Ok(stream);
        }
        let (reason, retry_ms) = first.split_once("\nretry: ").unwrap_or_else(|| panic!("{first}"));
        assert!(reason.starts_with(": ") && reason.to_lowercase().contains("try again later"), "{first}");
        assert_eq!(stream.frame().await, None, "the stream ends");
        Err(retry_ms.parse().unwrap())
    }

    /// The next frame. `None` when the stream has ended.
    pub(crate) async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let frame = frame.to_owned();
                self.text = rest.to_owned();
                return Some(frame);
            }
            let chunk =
                tokio::time::timeout(blockbase_tests::WAIT_MAX, self.bytes.next()).await.expect("a frame in time")?.ok()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The id of the next frame with a position. The stream shows no event before it.
    pub(crate) async fn position(&mut self) -> String {
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        loop {
            assert!(Instant::now() < deadline, "no position in time");
            let frame = self.frame().await.expect("the stream goes on");
            match frame.strip_prefix("event: position\nid: ").and_then(|rest| rest.strip_suffix("\ndata: {}")) {
                Some(position) => return position.to_owned(),
                None => assert!(frame.starts_with(':'), "{frame}"),
            }
        }
    }

    /// The next event's envelope, checked against its frame's id.
    pub(crate) async fn event(&mut self) -> Value {
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        loop {
            assert!(Instant::now() < deadline, "no event in time");
            let frame = self.frame().await.expect("the stream goes on");
            // On Postgres, a stream may begin with events from a moment before it. Here these are the events of the sign-ups.
            if frame.starts_with(':') || frame.starts_with("event: position\n") || frame.contains("\"topic\":\"auth.") {
                continue;
            }
            let (id, data) = frame.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(event["id"], id);
            return event;
        }
    }
}

on_both_engines! {
    async fn the_stream_shows_each_change_as_it_commits(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut stream = Stream::open(&admin, "").await;
        let created = admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
        let path = format!("/api/v1/data/task/{}", created["id"].as_str().unwrap());
        let updated = admin.patch(&path, json!({ "title": "b", "done": false })).await.data();
        admin.patch(&path, json!({})).await.data();
        assert_eq!(admin.delete(&path).await.status, 204);

        let user = admin.get("/api/v1/me").await.json()["userId"].clone();
        let actor = json!({ "userId": user, "apiKeyId": null, "via": "session" });
        let event = stream.event().await;
        assert_eq!(event["topic"], "data.task.created");
        assert_eq!(
            event["payload"],
            json!({ "object": "task", "id": created["id"], "op": "created", "before": null, "after": created, "diff": null, "actor": actor })
        );
        let event = stream.event().await;
        assert_eq!(event["topic"], "data.task.updated");
        assert_eq!(event["payload"]["diff"], json!({ "title": { "before": "a", "after": "b" } }));
        assert_eq!((&event["payload"]["before"], &event["payload"]["after"]), (&created, &updated));
        let event = stream.event().await;
        assert_eq!(event["topic"], "data.task.deleted");
        assert_eq!((&event["payload"]["before"], &event["payload"]["after"]), (&updated, &Value::Null));
        assert_eq!(server.sql("SELECT topic FROM svc_events WHERE topic LIKE 'data.%' ORDER BY seq").await.len(), 3);
    }

    async fn topics_choose_and_permissions_hide(server: Server) {
        let admin = server.admin().await;
        let mut early = Stream::open(&admin, "?topics=%23").await;
        admin.make_task_object().await;
        server.sql("INSERT INTO svc_roles VALUES ('r-own', 'own', NULL, '[{\"resource\":\"task\",\"actions\":[\"manage\"],\"rowPolicy\":\"own\"}]', 0, 0)").await;
        let token = server.sign_up("ann").await;
        server.sql("INSERT INTO svc_user_roles SELECT id, 'r-own' FROM svc_users WHERE name = 'ann'").await;
        let ann = server.with_token(token);
        let stranger = server.with_token(server.sign_up("stranger").await);
        // On Postgres an event is published a moment after its commit. A stream that began in between would show it.
        assert_eq!(early.event().await["topic"], "schema.object.created");
        let mut everything = Stream::open(&admin, "?topics=%23").await;
        let mut deletions = Stream::open(&admin, "?topics=data.*.deleted,schema.%23").await;
        let mut own = Stream::open(&ann, "").await;
        let mut nothing = Stream::open(&stranger, "?topics=%23").await;

        admin.post("/api/v1/data/task", json!({ "title": "of admin" })).await.data();
        let made = ann.post("/api/v1/data/task", json!({ "title": "of ann" })).await.data();
        assert_eq!(ann.delete(&format!("/api/v1/data/task/{}", made["id"].as_str().unwrap())).await.status, 204);
        assert_eq!(admin.post("/api/v1/objects", json!({ "name": "note" })).await.status, 201);

        for topic in ["data.task.created", "data.task.created", "data.task.deleted", "schema.object.created"] {
            assert_eq!(everything.event().await["topic"], topic);
        }
        for topic in ["data.task.deleted", "schema.object.created"] {
            assert_eq!(deletions.event().await["topic"], topic);
        }
        assert_eq!(own.event().await["payload"]["after"]["title"], "of ann");
        assert_eq!(own.event().await["topic"], "data.task.deleted");
        // A caller who may read nothing gets only heartbeats.
        assert!(tokio::time::timeout(Duration::from_millis(300), nothing.frame()).await.is_err());

        server.call("GET", "/api/v1/events/stream", None).await.expect_error(401, "unauthorized");
        admin.get("/api/v1/events/stream?topics=data..x").await.expect_error(400, "invalid_request");
    }

    async fn a_stream_ends_with_its_session(server: Server) {
        let admin = server.admin().await;
        let mut stream = Stream::open(&admin, "").await;
        let out = server.send(server.request("POST", "/api/auth/sign-out").bearer_auth(&admin.token)).await;
        assert_eq!(out.status, 200);
        assert_eq!(stream.frame().await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_on_one_postgres_share_schema_and_events() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = first.admin().await;
    let second = first.builder().start().await;
    let there = second.with_token(admin.token.clone());
    admin.make_task_object().await;
    let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
    while there.get("/api/v1/data/task").await.status != 200 {
        assert!(Instant::now() < deadline, "the other instance does not follow");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (mut here_stream, mut there_stream) = (Stream::open(&admin, "").await, Stream::open(&there, "").await);
    let writes = (0..40).map(|number| {
        let who = if number % 2 == 0 { &admin } else { &there };
        who.post("/api/v1/data/task", json!({ "title": format!("task {number}") }))
    });
    for answer in futures_util::future::join_all(writes).await {
        assert_eq!(answer.status, 201);
    }
    let mut seen_here = Vec::new();
    let mut seen_there = Vec::new();
    for _ in 0..40 {
        seen_here.push(here_stream.event().await["id"].as_str().unwrap().to_owned());
        seen_there.push(there_stream.event().await["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen_here, seen_there);
    let distinct: std::collections::HashSet<_> = seen_here.iter().collect();
    assert_eq!(distinct.len(), 40);
}

#[tokio::test]
async fn with_events_off_writes_leave_none() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_EVENTS_ENABLED", "false").start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
    assert_eq!(server.sql("SELECT count(*) FROM svc_events").await, [["0"]]);
}
