//! Streams with `resume=true`: a plain `EventSource` with a cookie loses no event.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, HELD, Server, ServerBuilder, on_both_engines, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Stream;

/// A client that does what a browser's `EventSource` does: it remembers the last id, and sends it when it connects again.
struct EventSource {
    query: String,
    cookie: String,
    last_id: Option<String>,
    stream: Option<Stream>,
}

impl EventSource {
    /// An `EventSource` with the cookie of the admin.
    async fn of_admin(server: &Server, query: &str) -> EventSource {
        let body = json!({ "email": "admin@example.com", "password": "correct horse battery" });
        let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(body)).await;
        let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        EventSource { query: query.to_owned(), cookie, last_id: None, stream: None }
    }

    async fn connect(&mut self, server: &Server) {
        self.stream = Some(Stream::of(self.request(server)).await);
    }

    fn request(&self, server: &Server) -> reqwest::RequestBuilder {
        let path = format!("/api/v1/events/stream{}", self.query);
        let request = as_event_source(server.request("GET", &path)).header("cookie", &self.cookie);
        match &self.last_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        }
    }

    /// The next frame with data: its type, and its data.
    async fn message(&mut self) -> (String, Value) {
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        loop {
            assert!(Instant::now() < deadline, "no message in time");
            let frame = self.stream.as_mut().unwrap().frame().await.expect("the stream goes on");
            let mut message = ("message".to_owned(), Value::Null);
            for line in frame.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => self.last_id = Some(id.to_owned()),
                    Some(("event", kind)) => message.0 = kind.to_owned(),
                    Some(("data", data)) => message.1 = serde_json::from_str(data).unwrap(),
                    // A comment.
                    _ => assert!(line.starts_with(": "), "{line}"),
                }
            }
            if !message.1.is_null() {
                return message;
            }
        }
    }

    /// The titles of the records in the next events.
    async fn titles(&mut self, count: usize) -> Vec<String> {
        let mut titles = Vec::new();
        while titles.len() < count {
            let (kind, data) = self.message().await;
            // A position may come between two events.
            assert!(["message", "position"].contains(&kind.as_str()), "{kind}: {data}");
            // On Postgres, a stream may begin with events from a moment before it.
            if data["topic"] == "data.task.created" {
                titles.push(data["payload"]["after"]["title"].as_str().unwrap().to_owned());
            }
        }
        titles
    }

    /// The position with which a stream begins.
    async fn position(&mut self) -> String {
        let (kind, data) = self.message().await;
        assert_eq!((kind.as_str(), data), ("position", json!({})));
        self.last_id.clone().unwrap()
    }
}

async fn make(admin: &Admin<'_>, title: &str) {
    admin.make("task", json!({ "title": title })).await;
}

/// Makes a record, and waits until its event is published. On Postgres, that is a moment after the commit.
async fn make_published(admin: &Admin<'_>, title: &str) {
    let mut stream = Stream::open(admin, "").await;
    make(admin, title).await;
    while stream.event().await["payload"]["after"]["title"] != title {}
}

on_both_engines! {
    async fn an_event_source_loses_nothing_over_restarts(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "before").await;
        let mut source = EventSource::of_admin(&server, "?topics=data.task.%23&resume=true").await;
        source.connect(&server).await;
        source.position().await;
        let token = admin.token.clone();
        make(&admin, "0").await;
        assert_eq!(source.titles(1).await, ["0"]);

        let server = server.restart().await;
        let admin = server.with_token(token.clone());
        for title in ["1", "2"] {
            make(&admin, title).await;
        }
        source.connect(&server).await;
        make(&admin, "3").await;
        assert_eq!(source.titles(3).await, ["1", "2", "3"]);

        // An orderly end of the server ends the stream, and the client connects again.
        let builder = server.builder();
        server.signal("TERM");
        while let Some(frame) = source.stream.as_mut().unwrap().frame().await {
            assert!(frame.starts_with(':') || frame.starts_with("event: position\n"), "{frame}");
        }
        assert!(server.ended().await.success());
        let server = builder.start().await;
        let admin = server.with_token(token);
        make(&admin, "4").await;
        source.connect(&server).await;
        assert_eq!(source.titles(1).await, ["4"]);
    }

    async fn a_stream_that_ends_before_its_first_event_continues_where_it_began(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "before").await;
        let mut source = EventSource::of_admin(&server, "?resume=true").await;
        source.connect(&server).await;
        let position = source.position().await;
        // It reveals neither an event nor the number of events.
        assert!(position.len() > 60 && position.bytes().all(|byte| byte.is_ascii_hexdigit()), "{position}");
        // A list does not begin at it.
        admin.get(&format!("/api/v1/events?before={position}")).await.expect_error(404, "not_found");
        let (token, server) = (admin.token.clone(), server.restart().await);
        let admin = server.with_token(token);
        make(&admin, "0").await;
        source.connect(&server).await;
        make(&admin, "1").await;
        assert_eq!(source.titles(2).await, ["0", "1"]);
        // `since` takes it too.
        let mut stream = Stream::open(&admin, &format!("?topics=data.%23&since={position}")).await;
        assert_eq!(stream.event().await["payload"]["after"]["title"], "0");
    }

    async fn a_stream_of_an_empty_outbox_continues_too(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        server.sql("DELETE FROM svc_events").await;
        let mut source = EventSource::of_admin(&server, "?resume=true").await;
        source.connect(&server).await;
        let position = source.position().await;
        make(&admin, "0").await;
        source.connect(&server).await;
        assert_eq!(source.titles(1).await, ["0"]);
        assert_ne!(source.last_id, Some(position));
    }

    async fn a_purged_event_is_missing(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "before").await;
        let mut stream = Stream::open(&admin, "?resume=true").await;
        let position = stream.position().await;
        make(&admin, "0").await;
        let id = stream.event().await["id"].as_str().unwrap().to_owned();
        let ask = |query: &str, ids: &[&str]| {
            let request = admin.request("GET", &format!("/api/v1/events/stream{query}"));
            ids.iter().fold(request, |request, id| request.header("last-event-id", *id))
        };
        let mut continued = Stream::of(ask("?resume=true", &[&position])).await;
        assert_eq!(continued.event().await["id"], id.as_str());

        server.sql("DELETE FROM svc_events").await;
        for gone in [id.as_str(), &position, "nothing", "00000000-0000-7000-8000-000000000000"] {
            let refused = server.send(ask("?resume=true", &[gone])).await.expect_error(404, "not_found");
            assert!(refused["message"].as_str().unwrap().contains("no longer holds this event"), "{refused}");
        }
        // A position of another server, or a changed one, is unknown.
        let changed = format!("{}0", &position[..position.len() - 1]);
        let changed = if changed == position { format!("{}1", &position[..position.len() - 1]) } else { changed };
        server.send(ask("?resume=true", &[&changed])).await.expect_error(404, "not_found");
        for query in ["?resume=perhaps", "?resume=true&resume=true"] {
            server.send(ask(query, &[&id])).await.expect_error(400, "invalid_request");
        }
        server.send(ask("?resume=true", &[&id, &id])).await.expect_error(400, "invalid_request");
        // Without the parameter, the header has no effect.
        for query in ["", "?resume=false"] {
            let mut stream = Stream::of(ask(query, &[&id])).await;
            let title = format!("now {query}");
            make(&admin, &title).await;
            assert_eq!(stream.event().await["payload"]["after"]["title"], title);
        }
        // An empty header counts as none.
        let mut stream = Stream::of(ask("?resume=true", &[""])).await;
        stream.position().await;
    }

    async fn the_last_event_is_newer_than_the_one_in_the_url(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let since = first_event(&server).await;
        let mut source = EventSource::of_admin(&server, &format!("?topics=data.%23&resume=true&since={since}")).await;
        make(&admin, "0").await;
        make(&admin, "1").await;
        source.connect(&server).await;
        assert_eq!(source.titles(2).await, ["0", "1"]);
        make(&admin, "2").await;
        source.connect(&server).await;
        assert_eq!(source.titles(1).await, ["2"]);
    }

    async fn a_stream_with_another_right_continues_with_what_it_shows_now(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let grants = |object: &str| json!([{ "resource": object, "actions": ["read"] }]);
        let role = admin.post("/api/v1/roles", json!({ "name": "reader", "permissions": grants("task") })).await;
        assert_eq!(role.status, 201, "{}", role.text);
        let ann = server.with_token(server.sign_up("ann").await);
        let id = ann.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "reader" })).await.status, 200);
        let mut stream = Stream::open(&ann, "").await;
        make(&admin, "seen").await;
        let last = stream.event().await["id"].as_str().unwrap().to_owned();
        drop(stream);
        make(&admin, "not seen").await;
        admin.make("note", json!({ "title": "of a note" })).await;
        assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": grants("note") })).await.status, 200);
        // The last event is one that the caller may not see any more.
        let request = ann.request("GET", "/api/v1/events/stream?resume=true").header("last-event-id", last);
        let mut stream = Stream::of(request).await;
        assert_eq!(stream.event().await["payload"]["after"]["title"], "of a note");
    }

    async fn a_stream_does_not_resume_before_purged_events(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "before").await;
        server.sql("DELETE FROM svc_events").await;
        let beginning = Stream::open(&admin, "?resume=true").await.position().await;
        for number in 0..9 {
            make(&admin, &number.to_string()).await;
        }
        make_published(&admin, "9").await;
        assert_eq!(resumed(&admin, &beginning).await, 200);
        let events = server.sql("SELECT seq, id FROM svc_events WHERE topic = 'data.task.created' ORDER BY seq").await;
        assert_eq!(events.len(), 10);
        // The fifth event is still waiting for its delivery, so the purge leaves it there.
        let (waiting, waiting_id) = (&events[4][0], &events[4][1]);
        let delivery = "INSERT INTO svc_deliveries (event_seq, consumer, handler, status, dead, attempts) VALUES";
        server.sql(&format!("{delivery} ({waiting}, 'c', 'h', 'pending', FALSE, 0)")).await;
        assert_eq!(resumed(&admin, waiting_id).await, 200);
        server.sql("UPDATE svc_events SET occurred_at = 1").await;
        purge(&admin).await;
        let left = server.sql("SELECT id FROM svc_events WHERE topic = 'data.task.created'").await;
        assert_eq!(left, [[waiting_id.clone()]]);
        for gone in [&beginning, waiting_id, &events[9][1]] {
            assert_eq!(resumed(&admin, gone).await, 404, "{gone}");
            admin.get(&format!("/api/v1/events/stream?since={gone}")).await.expect_error(404, "not_found");
        }
        // A new position follows the purged events.
        make_published(&admin, "10").await;
        let now = Stream::open(&admin, "?resume=true").await.position().await;
        make(&admin, "11").await;
        let mut stream = Stream::open(&admin, &format!("?since={now}")).await;
        assert_eq!(stream.event().await["payload"]["after"]["title"], "11");
    }

    async fn a_position_after_purged_events_stays_valid(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "0").await;
        server.sql("UPDATE svc_events SET occurred_at = 1").await;
        purge(&admin).await;
        // Nothing is left but the purge's own event.
        server.sql("DELETE FROM svc_events").await;
        let now = Stream::open(&admin, "?resume=true").await.position().await;
        make(&admin, "1").await;
        let mut stream = Stream::open(&admin, &format!("?topics=data.task.%23&since={now}")).await;
        assert_eq!(stream.event().await["payload"]["after"]["title"], "1");
    }

    async fn the_length_of_a_position_reveals_nothing(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "before").await;
        server.sql("DELETE FROM svc_events").await;
        let of_none = Stream::open(&admin, "?resume=true").await.position().await;
        make_published(&admin, "one").await;
        let of_one = Stream::open(&admin, "?resume=true").await.position().await;
        let records: Vec<Value> = (0..100).map(|_| json!({ "title": "one of many" })).collect();
        assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
        make_published(&admin, "last").await;
        let of_many = Stream::open(&admin, "?resume=true").await.position().await;
        assert_eq!((of_none.len(), of_one.len()), (of_many.len(), of_many.len()));
    }

    async fn a_position_of_another_event_with_the_same_number_is_unknown(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        make_published(&admin, "before").await;
        let position = Stream::open(&admin, "?resume=true").await.position().await;
        assert_eq!(resumed(&admin, &position).await, 200);
        // So it is after a backup was restored.
        server.sql("UPDATE svc_events SET id = '00000000-0000-7000-8000-000000000001' WHERE seq = (SELECT max(seq) FROM svc_events)").await;
        assert_eq!(resumed(&admin, &position).await, 404);
    }

    async fn a_quiet_stream_gets_newer_positions(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let since = first_event(&server).await;
        make_published(&admin, "before").await;
        // After past events that it does not show.
        let mut replayed = Stream::open(&admin, &format!("?topics=data.none.%23&resume=true&since={since}")).await;
        let after_replay = replayed.position().await;
        // Before a heartbeat.
        let mut quiet = Stream::open(&admin, "?topics=data.none.%23&resume=true").await;
        let first = quiet.position().await;
        make_published(&admin, "not shown").await;
        let later = quiet.position().await;
        assert_eq!(quiet.frame().await.as_deref(), Some(": heartbeat"));
        make_published(&admin, "newest").await;
        let not_shown = "SELECT seq FROM svc_events WHERE topic = 'data.task.created' ORDER BY seq DESC LIMIT 1 OFFSET 1";
        server.sql(&format!("DELETE FROM svc_events WHERE seq < ({not_shown})")).await;
        for (position, status) in [(&after_replay, 404), (&first, 404), (&later, 200)] {
            assert_eq!(resumed(&admin, position).await, status);
        }
        let mut stream = Stream::open(&admin, &format!("?since={later}")).await;
        assert_eq!(stream.event().await["payload"]["after"]["title"], "newest");
    }
}

/// The same request, as an `EventSource` sends it.
fn as_event_source(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    request.header("accept", "text/event-stream")
}

/// Asserts that a stream with `resume=true` cannot open now, and that its client connects again by itself after at least `wait_s`
/// seconds.
async fn assert_comes_back(request: reqwest::RequestBuilder, wait_s: u64) {
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], wait_s.to_string().as_str());
    let retry_ms = Stream::unless_busy(response).await.err().expect("no stream");
    assert!((wait_s * 1000..wait_s * 2000).contains(&retry_ms), "{retry_ms}");
}

/// Connects until the stream opens.
async fn opened(request: impl Fn() -> reqwest::RequestBuilder) -> Stream {
    let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
    loop {
        let response = request().timeout(Duration::from_secs(120)).send().await.unwrap();
        if let Ok(stream) = Stream::unless_busy(response).await {
            return stream;
        }
        assert!(Instant::now() < deadline, "the stream does not open in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

on_both_engines! {
    async fn an_event_source_comes_back_when_its_user_has_room_for_a_stream_again(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_STREAMS_PER_PRINCIPAL", "2").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut source = EventSource::of_admin(&server, "?topics=data.task.%23&resume=true").await;
        source.connect(&server).await;
        source.position().await;
        make(&admin, "0").await;
        assert_eq!(source.titles(1).await, ["0"]);
        source.stream = None;
        let by_admin = || as_event_source(admin.request("GET", "/api/v1/events/stream?resume=true"));
        let others = [opened(by_admin).await, opened(by_admin).await];
        make(&admin, "1").await;
        for _ in 0..3 {
            assert_comes_back(source.request(&server), 30).await;
        }
        // Also a stream that begins now, and one with a ticket.
        assert_comes_back(by_admin(), 30).await;
        let ticket = admin.post("/api/v1/events/ticket", json!({})).await.data()["ticket"].as_str().unwrap().to_owned();
        let by_ticket = || as_event_source(server.request("GET", &format!("/api/v1/events/stream?resume=true&ticket={ticket}")));
        assert_comes_back(by_ticket(), 30).await;
        // Other clients get the usual answer, and so does a request that can never succeed.
        for (query, accept) in [
            ("", "text/event-stream"),
            ("?resume=false", "text/event-stream"),
            ("?resume=true", "*/*"),
            ("?resume=true", "application/json"),
        ] {
            let request = admin.request("GET", &format!("/api/v1/events/stream{query}")).header("accept", accept);
            let refused = server.send(request).await;
            refused.expect_error(429, "rate_limited");
            assert!(refused.headers.contains_key("retry-after"));
        }
        for query in ["?resume=true&topics=data..x", "?resume=true&colour=1", "?resume=true&resume=true"] {
            let request = as_event_source(admin.request("GET", &format!("/api/v1/events/stream{query}")));
            server.send(request).await.expect_error(400, "invalid_request");
        }
        for query in ["?resume=true", "?resume=true&colour=1"] {
            let request = as_event_source(server.request("GET", &format!("/api/v1/events/stream{query}")));
            server.send(request).await.expect_error(401, "unauthorized");
        }

        drop(others);
        source.stream = Some(opened(|| source.request(&server)).await);
        assert_eq!(source.titles(1).await, ["1"]);
        // The refused request did not use the ticket up.
        opened(by_ticket).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_source_comes_back_when_the_database_has_a_connection_again() {
    /// Of eight connections, callers have five. One caller leaves one of these to others.
    const CONNECTIONS_OF_ONE: usize = 4;
    let server = ServerBuilder::new(Engine::Postgres).env("SVC_DATABASE_MAX_CONNECTIONS", "8").start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let mut source = EventSource::of_admin(&server, "?topics=data.task.%23&resume=true").await;
    source.connect(&server).await;
    source.position().await;
    make(&admin, "0").await;
    assert_eq!(source.titles(1).await, ["0"]);
    source.stream = None;
    let path = format!("/api/v1/data/task/{}", admin.make("task", json!({ "title": "1" })).await);
    let lock = server.hold_reads("task").await;
    let refused = async {
        until("the caller's connections are in use", async || server.sql(HELD).await[0][0] == CONNECTIONS_OF_ONE.to_string())
            .await;
        let since = format!("/api/v1/events/stream?since={}", source.last_id.as_ref().unwrap());
        let (without, ()) = tokio::join!(admin.get(&since), assert_comes_back(source.request(&server), 5));
        without.expect_error(503, "unavailable");
        lock.release().await;
    };
    let (read, ()) = tokio::join!(join_all((0..CONNECTIONS_OF_ONE).map(|_| admin.get(&path))), refused);
    for answer in read {
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    source.connect(&server).await;
    assert_eq!(source.titles(1).await, ["1"]);
}

/// An event of a transaction of another program, which the feed of Postgres waits for.
const FOREIGN: &str = "INSERT INTO svc_events (id, topic, payload, depth, occurred_at) \
    VALUES ('00000000-0000-7000-8000-000000000009', 'schema.object.updated', '{\"object\":\"late\",\"op\":\"updated\",\"actor\":null}', 0, 1)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_with_positions_begins_with_the_feed() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let token = admin.token.clone();
    let lock = server.lock_rows(FOREIGN).await;
    make(&admin, "before the feed").await;
    // The feed does not begin before the transaction has ended.
    let server = server.restart().await;
    let admin = server.with_token(token);
    let mut stream = Stream::open(&admin, "?topics=data.%23,schema.%23&resume=true").await;
    lock.release().await;
    let position = stream.position().await;
    make(&admin, "0").await;
    let shown = stream.event().await;
    assert_eq!(shown["payload"]["after"]["title"], "0", "{shown}");
    let mut again = Stream::open(&admin, &format!("?topics=data.%23,schema.%23&since={position}")).await;
    assert_eq!(again.event().await["id"], shown["id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_since_an_event_shows_an_earlier_one_that_commits_later() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    make_published(&admin, "before").await;
    let lock = server.lock_rows(FOREIGN).await;
    make(&admin, "listed").await;
    make(&admin, "newest").await;
    let newest = admin.get("/api/v1/events?limit=1").await.data();
    assert_eq!(newest[0]["payload"]["after"]["title"], "newest");
    let since = newest[0]["id"].as_str().unwrap();
    let mut stream = Stream::open(&admin, &format!("?topics=data.%23,schema.%23&since={since}")).await;
    lock.release().await;
    assert_eq!(stream.event().await["payload"]["object"], "late");
    make(&admin, "after").await;
    // The listed events are not repeated.
    assert_eq!(stream.event().await["payload"]["after"]["title"], "after");
}

/// The status of the response to a stream that continues after `id`.
async fn resumed(admin: &Admin<'_>, id: &str) -> u16 {
    let request = admin.request("GET", "/api/v1/events/stream?resume=true").header("last-event-id", id);
    request.send().await.unwrap().status().as_u16()
}

/// Deletes settled events that are old.
async fn purge(admin: &Admin<'_>) {
    let run = admin.post("/api/v1/tasks/event-retention/run", json!({})).await.data();
    assert_eq!(run["status"], "succeeded", "{run}");
}

/// The oldest event of the outbox.
async fn first_event(server: &Server) -> String {
    server.sql("SELECT id FROM svc_events ORDER BY seq LIMIT 1").await[0][0].clone()
}
