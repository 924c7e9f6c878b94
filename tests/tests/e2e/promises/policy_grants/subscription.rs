//! A subscription of GraphQL to the events of all records.

use std::collections::BTreeSet;

use blockbase_tests::Admin;
use serde_json::{Value, json};

use super::{STREAM_AGE_MAX, STREAM_WAIT_MAX};
use crate::graphql::PATH;

/// The number of events before a subscription that it may show. On Postgres, it may begin with events from a moment before it.
const BEFORE_MAX: usize = 200;

pub(crate) struct Subscription {
    response: reqwest::Response,
    bytes: Vec<u8>,
    /// The ids of the events before the subscription.
    before: BTreeSet<String>,
}

impl Subscription {
    /// Subscribes as a caller, while nobody writes. The admin sees all events before that.
    pub(crate) async fn open(who: &Admin<'_>, admin: &Admin<'_>) -> Subscription {
        let query = "subscription { events(topics: [\"data.#\"]) { id topic occurredAt payload } }";
        let request = who.request("POST", PATH).header("accept", "text/event-stream").json(&json!({ "query": query }));
        let response = request.timeout(STREAM_AGE_MAX).send().await.expect("a response");
        assert_eq!(response.status(), 200);
        let mut subscription = Subscription { response, bytes: Vec::new(), before: BTreeSet::new() };
        assert_eq!(subscription.frame().await, ":", "the subscription opens");
        let before = admin.get(&format!("/api/v1/events?topic=data.&limit={BEFORE_MAX}")).await.data();
        let ids = before.as_array().expect("events").iter().filter_map(|event| event["id"].as_str());
        subscription.before = ids.map(str::to_owned).collect();
        subscription
    }

    /// The next frame, without its end.
    async fn frame(&mut self) -> String {
        const END: &[u8] = b"\n\n";
        loop {
            if let Some(end) = self.bytes.windows(END.len()).position(|bytes| bytes == END) {
                let frame: Vec<u8> = self.bytes.drain(..end + END.len()).take(end).collect();
                return String::from_utf8(frame).expect("UTF-8");
            }
            let chunk = self.response.chunk().await.expect("a chunk").expect("the subscription goes on");
            self.bytes.extend_from_slice(&chunk);
        }
    }

    async fn event(&mut self) -> Value {
        loop {
            let frame = self.frame().await;
            let Some(result) = frame.strip_prefix("event: next\ndata: ") else {
                assert!(frame.starts_with(':'), "{frame}");
                continue;
            };
            let mut result: Value = serde_json::from_str(result).expect("a result");
            assert!(result["errors"].is_null(), "{result}");
            let event = result["data"]["events"].take();
            if !event["id"].as_str().is_some_and(|id| self.before.contains(id)) {
                return event;
            }
        }
    }

    /// The next events, in the form of REST. There are fewer if no more come in time.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < count {
            match tokio::time::timeout(STREAM_WAIT_MAX, self.event()).await {
                Ok(event) => events.push(event),
                Err(_) => break,
            }
        }
        events
    }
}
