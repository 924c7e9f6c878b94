//! Subscriptions: the cases that the client of GraphQL-SSE does not cover.

use std::time::Duration;

use blockbase_tests::{Admin, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, codes, data};
use crate::blocks::hostile;

/// An open stream of results.
pub(crate) struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    pub(crate) async fn open(admin: &Admin<'_>, query: &str) -> Stream {
        let request = admin.request("POST", PATH).header("accept", "text/event-stream").json(&json!({ "query": query }));
        let response = request.timeout(Duration::from_secs(120)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        let mut stream = Stream { response, text: String::new() };
        stream.until(":\n\n").await;
        stream
    }

    /// Reads until the text contains `end`, and returns the part up to there.
    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(place) = self.text.find(end) {
                return self.text.drain(..place + end.len()).collect();
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await;
            let chunk = chunk.unwrap_or_else(|_| panic!("nothing came after {:?}", self.text)).unwrap();
            self.text.push_str(std::str::from_utf8(&chunk.unwrap_or_else(|| panic!("it ended after {:?}", self.text))).unwrap());
        }
    }

    /// The next frame that is not a heartbeat.
    async fn frame(&mut self) -> String {
        loop {
            let frame = self.until("\n\n").await;
            if !frame.starts_with(':') {
                return frame;
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let frame = self.until("\n\n").await;
            if let Some(data) = frame.strip_prefix("event: next\ndata: ") {
                return serde_json::from_str(data.trim_end()).unwrap();
            }
            assert!(frame.starts_with(':'), "{frame}");
        }
    }

    /// Waits until the stream ends by itself, and returns its remaining text.
    async fn ended(mut self) -> String {
        while let Ok(Some(chunk)) = tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await.expect("an end") {
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        self.text
    }
}

async fn somebody<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    let role = admin.post("/api/v1/roles", json!({ "name": format!("{name}s"), "permissions": permissions })).await.data();
    let client = admin.server.with_token(admin.server.sign_up(name).await);
    let id = client.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role["id"] })).await.data();
    client
}

on_both_engines! {
    async fn events_show_what_is_selected_of_what_may_be_seen(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let grants = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read", "create"], "rowPolicy": "own" }]);
        let ann = somebody(&admin, "ann", grants).await;
        let mut all = Stream::open(&admin, "subscription { events { id topic occurredAt payload __typename } }").await;
        let mut some = Stream::open(&admin, "subscription($t: [String!] = [\"data.note.#\"]) { e: events(topics: $t) { t: topic payload } }").await;
        let mut hers = Stream::open(&ann, "subscription { events(topics: [\"data.#\", \"auth.#\"]) { payload } }").await;
        admin.make("note", json!({ "text": "a" })).await;
        admin.make("task", json!({ "title": "others" })).await;
        ann.make("task", json!({ "title": "own" })).await;
        let first = all.next().await;
        let event = &first["data"]["events"];
        assert_eq!((&event["topic"], &event["__typename"], &event["payload"]["after"]["text"]), (&json!("data.note.created"), &json!("Event"), &json!("a")));
        let stored = admin.get("/api/v1/events?topic=data.note").await.data()[0].clone();
        assert_eq!(json!({ "id": event["id"], "topic": event["topic"], "payload": event["payload"], "occurredAt": event["occurredAt"] }), stored);
        for title in ["others", "own"] {
            assert_eq!(all.next().await["data"]["events"]["payload"]["after"]["title"], title);
        }
        let only = some.next().await;
        assert_eq!(only["data"]["e"].as_object().unwrap().keys().collect::<Vec<_>>(), ["t", "payload"]);
        assert_eq!(only["data"]["e"]["t"], "data.note.created");
        assert_eq!(hers.next().await["data"]["events"]["payload"]["after"]["title"], "own");

        // If a caller loses the right to the platform or the session, the stream ends. It ends without a message, so that the
        // client makes a new request and gets the reason.
        admin.patch("/api/v1/roles/anns", json!({ "permissions": [{ "resource": "task", "actions": ["read"] }] })).await.data();
        assert_eq!(hers.ended().await.replace(": heartbeat\n\n", ""), "");
        ann.server.call_as(Some(&admin.token), "POST", "/api/auth/sign-out", Some(json!({}))).await;
        assert_eq!(all.ended().await.replace(": heartbeat\n\n", ""), "");
    }

    async fn a_subscription_shows_what_its_reader_may_read(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let grants = json!([
            { "resource": "data", "actions": ["read"] },
            { "resource": "task", "actions": ["read"], "where": { "done": false }, "fields": { "read": ["title", "done"] } },
        ]);
        let ann = somebody(&admin, "ann", grants).await;
        let mut stream = Stream::open(&ann, "subscription { events(topics: [\"data.task.#\"]) { payload } }").await;
        admin.make("task", json!({ "title": "hidden", "done": true, "priority": 1 })).await;
        let seen = admin.make("task", json!({ "title": "seen", "priority": 2 })).await;
        for change in [json!({ "priority": 3 }), json!({ "done": true })] {
            admin.patch(&format!("/api/v1/data/task/{seen}"), change).await.data();
        }
        let record = json!({ "id": seen, "title": "seen", "done": false });
        for (op, before, after, diff) in [
            ("created", Value::Null, record.clone(), Value::Null),
            ("updated", record.clone(), record.clone(), json!({})),
            ("updated", record, Value::Null, Value::Null),
        ] {
            let event = stream.next().await;
            let payload = &event["data"]["events"]["payload"];
            let shown = (&payload["op"], &payload["before"], &payload["after"], &payload["diff"]);
            assert_eq!(shown, (&json!(op), &before, &after, &diff), "{event}");
        }
        // The open stream follows a change of the role: other rows and other fields.
        let grants = json!([
            { "resource": "data", "actions": ["read"] },
            { "resource": "task", "actions": ["read"], "where": { "done": true }, "fields": { "read": ["done", "priority"] } },
        ]);
        assert_eq!(admin.patch("/api/v1/roles/anns", json!({ "permissions": grants })).await.status, 200);
        admin.make("task", json!({ "title": "hidden now" })).await;
        admin.patch(&format!("/api/v1/data/task/{seen}"), json!({ "title": "renamed", "priority": 4 })).await.data();
        let event = stream.next().await;
        let payload = &event["data"]["events"]["payload"];
        let image = |priority: i64| json!({ "id": seen, "done": true, "priority": priority });
        assert_eq!((&payload["before"], &payload["after"]), (&image(3), &image(4)), "{event}");
        assert_eq!(payload["diff"], json!({ "priority": { "before": 3, "after": 4 } }), "{event}");
    }

    async fn a_single_connection_is_its_owners(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let ann = somebody(&admin, "ann", json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read"] }])).await;
        assert_eq!(server.call("PUT", PATH, None).await.status, 401);
        let reserved = server.call_as(Some(&admin.token), "PUT", PATH, None).await;
        assert_eq!((reserved.status, reserved.headers["content-type"].to_str().unwrap()), (201, "text/plain; charset=utf-8"));
        let token = reserved.text.clone();
        let operate = |who: &Admin<'_>, id: &str, query: &str| {
            let body = json!({ "query": query, "extensions": { "operationId": id } });
            who.request("POST", PATH).header("x-graphql-event-stream-token", &token).json(&body)
        };
        assert_eq!(server.send(operate(&ann, "1", "{ svc_objects }")).await.status, 404);
        let foreign = ann.request("GET", &format!("{PATH}?token={token}")).header("accept", "text/event-stream");
        assert_eq!(server.send(foreign).await.status, 404);
        let response = admin.request("GET", &format!("{PATH}?token={token}")).header("accept", "text/event-stream").timeout(Duration::from_secs(120)).send().await.unwrap();
        let mut stream = Stream { response, text: String::new() };
        stream.until(":\n\n").await;
        for (id, query, status) in [("1", "{ svc_objects }", 202), ("s", "subscription { events { topic } }", 202), ("s", "{ svc_objects }", 409), ("2", "{ nope", 400), ("2", "{ svc_schema_version: svc_objects }", 202)] {
            let answer = server.send(operate(&admin, id, query)).await;
            assert_eq!(answer.status, status, "{id}: {}", answer.text);
        }
        let without_id = admin.request("POST", PATH).header("x-graphql-event-stream-token", &token).json(&json!({ "query": "{ svc_objects }" }));
        assert_eq!(server.send(without_id).await.status, 400);
        let mut seen = Vec::new();
        while seen.len() < 4 {
            let frame = stream.until("\n\n").await;
            if frame.starts_with("event:") {
                seen.push(frame);
            }
        }
        seen.sort();
        let objects = json!(["task"]);
        assert_eq!(seen, [
            "event: complete\ndata: {\"id\":\"1\"}\n\n".to_owned(),
            "event: complete\ndata: {\"id\":\"2\"}\n\n".to_owned(),
            format!("event: next\ndata: {{\"id\":\"1\",\"payload\":{{\"data\":{{\"svc_objects\":{objects}}}}}}}\n\n"),
            format!("event: next\ndata: {{\"id\":\"2\",\"payload\":{{\"data\":{{\"svc_schema_version\":{objects}}}}}}}\n\n"),
        ]);
        // The operation may begin a moment after it was accepted.
        let mut told = String::new();
        for number in 0..50 {
            admin.make("task", json!({ "title": format!("t{number}") })).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            if number == 49 {
                told = stream.until("\n\n").await;
            }
        }
        assert!(told.contains("{\"id\":\"s\",\"payload\":{\"data\":{\"events\":{\"topic\":\"data.task.created\"}}}}"), "{told}");
        // A caller has a limited number of reservations. Other callers still get theirs.
        let mut reserved = 1;
        while server.call_as(Some(&admin.token), "PUT", PATH, None).await.status == 201 {
            reserved += 1;
        }
        assert_eq!(reserved, 20);
        assert_eq!(server.call_as(Some(&ann.token), "PUT", PATH, None).await.status, 201);
        assert_eq!(ann.delete(&format!("{PATH}?token={token}&operationId=s")).await.status, 404);
        assert_eq!(admin.delete(&format!("{PATH}?token={token}&operationId=s")).await.status, 200);
        assert_eq!(admin.delete(&format!("{PATH}?token={token}")).await.status, 400);
        // If a client disconnects, its stream and all its operations end.
        drop(stream);
        for _ in 0..1000 {
            if server.send(operate(&admin, "9", "{ svc_objects }")).await.status == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the connection stays");
    }
}

on_both_engines! {
    async fn streams_end_when_the_server_does(engine: Engine) {
        let server: Server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let stream = Stream::open(&admin, "subscription { events { id } }").await;
        server.signal("TERM");
        assert_eq!(stream.ended().await, "");
        let token = admin.token.clone();
        drop(token);
        assert!(server.ended().await.success());
    }

    async fn operations_of_a_single_connection_wait_for_their_turn_within_bounds(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ACTION_TIMEOUT_MS", "600000").start().await;
        let admin = server.admin().await;
        hostile::install(&admin, "", json!({})).await;
        let token = server.call_as(Some(&admin.token), "PUT", PATH, None).await.text;
        let path = format!("{PATH}?token={token}");
        let open = admin.request("GET", &path).header("accept", "text/event-stream").timeout(Duration::from_secs(600));
        let mut stream = Stream { response: open.send().await.unwrap(), text: String::new() };
        stream.until(":\n\n").await;
        let begin = async |id: &str, query: &str, variables: Value| {
            let body = json!({ "query": query, "variables": variables, "extensions": { "operationId": id } });
            server.send(admin.request("POST", PATH).header("x-graphql-event-stream-token", &token).json(&body)).await
        };
        let nap = async |id: &str, pad: usize| {
            let input = json!({ "ms": 600_000, "pad": "x".repeat(pad) });
            begin(id, "mutation($input: JSON) { hostile_nap(input: $input) }", json!({ "input": input })).await
        };
        assert_eq!(nap("large", 6 << 20).await.status, 202);
        let too_much = nap("larger", 6 << 20).await;
        assert_eq!(too_much.status, 409, "{}", too_much.text);
        assert!(too_much.text.contains("bytes of variables"), "{}", too_much.text);
        assert_eq!(nap("second", 0).await.status, 202);
        assert_eq!(nap("third", 0).await.status, 202);

        // Two operations are running. The one that does not get a turn gets an error.
        let frame = stream.frame().await;
        assert!(frame.contains("\"code\":\"unavailable\"") && frame.contains("Send it again."), "{frame}");
        let refused: Value = serde_json::from_str(frame.strip_prefix("event: next\ndata: ").unwrap()).unwrap();
        let refused = refused["id"].as_str().unwrap();
        assert_eq!(stream.frame().await, format!("event: complete\ndata: {{\"id\":\"{refused}\"}}\n\n"));

        // If the client ends an operation, its turn and the bytes of its variables are free for others.
        let napping: Vec<&str> = ["large", "second", "third"].into_iter().filter(|id| *id != refused).collect();
        assert_eq!(begin("none", "{ svc_objects }", Value::Null).await.status, 202);
        assert!(stream.frame().await.contains("\"code\":\"unavailable\""));
        assert_eq!(stream.frame().await, "event: complete\ndata: {\"id\":\"none\"}\n\n");
        assert_eq!(admin.delete(&format!("{path}&operationId={}", napping[0])).await.status, 200);
        assert_eq!(begin("some", "{ svc_objects }", Value::Null).await.status, 202);
        assert_eq!(stream.frame().await, "event: next\ndata: {\"id\":\"some\",\"payload\":{\"data\":{\"svc_objects\":[]}}}\n\n");
        assert_eq!(admin.delete(&format!("{path}&operationId={}", napping[1])).await.status, 200);
        assert_eq!(nap("larger", 6 << 20).await.status, 202);
    }

    async fn without_events_there_is_no_subscription(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_EVENTS_ENABLED", "false").start().await;
        let admin = server.admin().await;
        let schema = data(&admin, "{ __schema { subscriptionType { name } types { name } } }", Value::Null).await;
        assert!(schema["__schema"]["subscriptionType"].is_null());
        assert!(!schema["__schema"]["types"].as_array().unwrap().iter().any(|ty| ty["name"] == "Event"));
        assert_eq!(codes(&server, Some(&admin.token), "subscription { events { id } }", Value::Null).await, ["not_found"]);
    }
}
