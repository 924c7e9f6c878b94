//! Compares the events of a write with the reference: on `GET /events`, on open streams and subscriptions, and in webhooks.

use std::collections::BTreeSet;

use blockbase_tests::{Server, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::events::object_named;
use super::grants::Caller;
use super::setup::HOOK_MAKER;
use super::subscription::Subscription;
use super::writes::Emitted;
use super::{Run, STREAM_AGE_MAX, STREAM_WAIT_MAX, State};
use crate::events::Stream;
use crate::promises::conditions::model::Eyes;

impl Run<'_> {
    /// Compares the calls of the webhooks for new events with the reference, after all of them have ended. Returns the difference.
    async fn problem_of_webhooks(&mut self, all: &[Value]) -> Option<String> {
        let admin = self.server.with_token(self.callers[0].credential.clone().expect("a token"));
        for status in ["pending", "failed"] {
            let path = format!("/api/v1/events/deliveries?status={status}");
            until("the webhooks have their events", async || admin.get(&path).await.json()["pagination"]["totalCount"] == 0)
                .await;
        }
        let received = self.receiver.received();
        let new = received[self.received..].iter().map(|request| json!([request.id(), request.json()["payload"]]));
        let mut got: Vec<Value> = new.collect();
        self.received = received.len();
        let maker = &self.callers[HOOK_MAKER];
        let of_hooks = all.iter().filter(|event| self.hooked.contains(&object_named(&event["payload"]["object"])));
        let shown = of_hooks.filter_map(|event| self.state.shown(maker, event));
        let mut expected: Vec<Value> = shown.map(|event| json!([event["id"], event["payload"]])).collect();
        got.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        let differs = got != expected;
        differs.then(|| format!("the webhooks of {}:\n  expected {}\n  got      {}", maker.name, json!(expected), json!(got)))
    }

    /// Opens the stream and the subscription again, which then begin with the next event.
    pub(super) async fn listen_again(&mut self) {
        let admin = self.callers[0].credential.clone().expect("a token");
        self.stream = stream(self.server, &admin, &self.callers[self.listener]).await;
        self.subscription = subscription(self.server, &admin, &self.callers[self.subscriber]).await;
        self.problem_of_webhooks(&[]).await;
    }

    pub(super) async fn check_events(&mut self, place: &str, mut emitted: Vec<Emitted>) {
        let failures = self.failures.len();
        let path = format!("/api/v1/events?topic=data.&limit={}", emitted.len().max(1));
        let all = self.rest(&self.callers[0], ("GET", path.clone(), None)).await.json["data"].take();
        let all: Vec<Value> = all.as_array().expect("events").iter().take(emitted.len()).cloned().collect();
        let read = |event: &Value| {
            let payload = &event["payload"];
            let op = ["created", "updated", "deleted", "linked", "unlinked"].into_iter().find(|op| payload["op"] == *op);
            let links = payload["relationship"].as_str().map(|key| {
                let ids = payload["targetIds"].as_array().expect("ids").iter().filter_map(Value::as_str);
                (key.to_owned(), ids.map(str::to_owned).collect())
            });
            Emitted {
                object: object_named(&payload["object"]),
                op: op.expect("an operation"),
                id: payload["id"].as_str().expect("an id").to_owned(),
                links,
            }
        };
        let mut seen: Vec<Emitted> = all.iter().map(read).collect();
        seen.sort();
        emitted.sort();
        if seen != emitted {
            self.failures
                .push(format!("{place}\n  the events that the write emitted: expected {emitted:?}\n  got      {seen:?}"));
            return self.synchronize().await;
        }
        let listener = &self.callers[self.listener];
        let expected = by_id(all.iter().filter_map(|event| self.state.shown(listener, event)).collect());
        let mut got = Vec::new();
        for _ in 0..expected.len() {
            // Heartbeats keep the stream alive, so the wait needs its own limit.
            match tokio::time::timeout(STREAM_WAIT_MAX, self.stream.event()).await {
                Ok(event) => got.push(event),
                Err(_) => break,
            }
        }
        let got = by_id(got);
        if got != expected {
            let (name, got, expected) = (&listener.name, json!(got), json!(expected));
            self.failures.push(format!("{place}\n  the stream of {name}:\n  expected {expected}\n  got      {got}"));
        }
        let subscriber = &self.callers[self.subscriber];
        let expected = by_id(all.iter().filter_map(|event| self.state.shown(subscriber, event)).collect());
        let got = by_id(self.subscription.events(expected.len()).await);
        if got != expected {
            let (name, got, expected) = (&subscriber.name, json!(got), json!(expected));
            self.failures.push(format!("{place}\n  the subscription of {name}:\n  expected {expected}\n  got      {got}"));
        }
        if let Some(problem) = self.problem_of_webhooks(&all).await {
            self.failures.push(format!("{place}\n  {problem}"));
        }
        self.check_lists_of_events(place, &path, &all).await;
        if self.failures.len() > failures {
            self.synchronize().await;
        }
    }

    /// Compares what each caller sees of these events, which are the newest ones. `path` lists them.
    async fn check_lists_of_events(&mut self, place: &str, path: &str, all: &[Value]) {
        let new: BTreeSet<&str> = all.iter().filter_map(|event| event["id"].as_str()).collect();
        let answers = join_all(self.callers.iter().map(|caller| self.rest(caller, ("GET", path.to_owned(), None)))).await;
        for (caller, got) in self.callers.iter().zip(answers) {
            if !caller.reads_events {
                assert_eq!(got.status, caller.denied().status, "{place}\n  events of {}", caller.name);
                continue;
            }
            assert_eq!(got.status, 200, "{place}\n  events of {}: {}", caller.name, got.json);
            let got = got.json["data"].as_array().expect("events").clone();
            let got = by_id(got.into_iter().filter(|event| event["id"].as_str().is_some_and(|id| new.contains(id))).collect());
            let expected = by_id(all.iter().filter_map(|event| self.state.shown(caller, event)).collect());
            for event in &expected {
                self.tally.events += 1;
                self.tally.cut_events += usize::from(!all.contains(event));
            }
            if got != expected {
                let grants = caller.grants(&self.state.world);
                let variables = (&caller.reader.variables, &caller.reader.roles);
                let (got, expected, all) = (json!(got), json!(expected), json!(all));
                let events = format!("all      {all}\n  expected {expected}\n  got      {got}");
                self.failures.push(format!("{place}\n  events of {} with {variables:?} {grants}\n  {events}", caller.name));
            }
        }
    }
}

fn by_id(mut events: Vec<Value>) -> Vec<Value> {
    events.sort_by_key(|event| event["id"].to_string());
    events
}

/// The caller other than the admin who sees the most rows, but not all.
pub(super) fn listener(state: &State, callers: &[Caller]) -> usize {
    let seen = |caller: &Caller| {
        let view = caller.view(&state.world);
        let rows = state.world.rows.iter().enumerate();
        rows.map(|(object, rows)| rows.iter().filter(|row| view.sees(object, row)).count()).sum::<usize>()
    };
    let able = (1..callers.len()).filter(|number| callers[*number].credential.is_some());
    able.max_by_key(|number| seen(&callers[*number])).expect("a caller")
}

/// The next of the other callers who have GraphQL.
pub(super) fn subscriber(callers: &[Caller], listener: usize) -> usize {
    let mut others = (1..callers.len()).map(|step| (listener + step) % callers.len());
    others.find(|number| *number > 0 && callers[*number].has_all_surfaces()).expect("another caller")
}

/// Opens the stream of a caller, which begins with the next event.
pub(super) async fn stream(server: &Server, admin: &str, caller: &Caller) -> Stream {
    let newest = server.with_token(admin.to_owned()).get("/api/v1/events?limit=1").await.data();
    let path = format!("/api/v1/events/stream?topics=data.%23&since={}", newest[0]["id"].as_str().expect("an id"));
    let who = server.with_token(caller.credential.clone().expect("a credential"));
    Stream::of_response(who.request("GET", &path).timeout(STREAM_AGE_MAX).send().await.expect("a response")).await
}

pub(super) async fn subscription(server: &Server, admin: &str, caller: &Caller) -> Subscription {
    let who = server.with_token(caller.credential.clone().expect("a credential"));
    Subscription::open(&who, &server.with_token(admin.to_owned())).await
}
