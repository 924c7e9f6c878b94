//! Streams with `resume=true`: a plain `EventSource` with a cookie loses no event.

use blockbase_tests::{Admin, Server, on_both_engines};
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
        let path = format!("/api/v1/events/stream{}", self.query);
        let mut request = server.request("GET", &path).header("cookie", &self.cookie).header("accept", "text/event-stream");
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
        }
        self.stream = Some(Stream::of(request).await);
    }

    /// The next frame with data: its type, and its data.
    async fn message(&mut self) -> (String, Value) {
        loop {
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
            assert_eq!(kind, "message", "{data}");
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
    assert_eq!(stream.event().await["payload"]["after"]["title"], title);
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
        assert!(source.stream.as_mut().unwrap().frame().await.is_none_or(|frame| frame.starts_with(':')));
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
        let mut stream = Stream::open(&admin, "?resume=true").await;
        let position = stream.frame().await.unwrap();
        let position = position.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
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
        assert!(stream.frame().await.unwrap().starts_with("event: position\nid: "));
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
}

/// The oldest event of the outbox.
async fn first_event(server: &Server) -> String {
    server.sql("SELECT id FROM svc_events ORDER BY seq LIMIT 1").await[0][0].clone()
}
