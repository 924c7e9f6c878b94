//! Events under the conditions of grants: every way to read an event shows the same parts of it.

use blockbase_tests::{Admin, Answer, Engine, HELD, Received, Receiver, Reply, Server, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

use super::{World, define, of_my_teams, path, world};
use crate::accounts::roles::{role, user};
use crate::events::Stream;
use crate::events::webhooks::{ledger, ledger_until, make, quick};

/// A summary of an event: the operation, the titles before and after, and whether there is a difference.
fn gist(event: &Value) -> (String, Value, Value, bool) {
    let payload = &event["payload"];
    let title = |image: &str| payload[image]["title"].clone();
    (payload["op"].as_str().unwrap_or_default().to_owned(), title("before"), title("after"), !payload["diff"].is_null())
}

/// A server that logs its statements.
async fn tracing_server(engine: Engine) -> Server {
    ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await
}

/// The topics of the streams that [`Changes`] counts for.
const TOPICS: &str = "?topics=data.task.updated,data.note.created";

/// Changes a task, and counts the reads of related rows with which open streams decide about that. The streams show tasks and
/// notes.
struct Changes<'a> {
    server: &'a Server,
    admin: &'a Admin<'a>,
    task: &'a str,
    /// The number of changes so far.
    count: usize,
    /// The number of reads that are held during each change, on Postgres, until they have run for some time.
    held: usize,
}

impl Changes<'_> {
    /// The number of reads of related rows so far.
    async fn reads(&self, mark: &str) -> usize {
        // When the log has this request, it also has everything before it.
        self.server.send(self.admin.request("GET", "/api/v1/me").header("x-request-id", mark)).await;
        let is_read = |line: &&str| line.contains("a statement runs") && line.contains("SELECT 1 FROM (SELECT");
        self.server.log_with(mark).await.lines().filter(is_read).count()
    }

    /// Changes the task, and returns the number of reads about that. Every stream shows the change, or none.
    async fn change(&mut self, streams: &mut [Stream], is_shown: bool) -> usize {
        self.count += 1;
        let title = format!("title {}", self.count);
        let before = self.reads(&format!("before-change-{}", self.count)).await;
        let hold = if self.held > 0 { Some(self.server.hold_again().await) } else { None };
        self.admin.patch(&path(self.task), json!({ "title": title })).await.data();
        self.admin.make("note", json!({ "text": title })).await;
        if let Some(hold) = hold {
            // This is longer than streams wait for others that have no connection.
            let are_slow = format!("{HELD} AND clock_timestamp() - query_start > interval '300 milliseconds'");
            until("the reads run for some time", async || {
                self.server.sql(&are_slow).await[0][0].parse::<usize>().unwrap() >= self.held
            })
            .await;
            hold.release().await;
        }
        // A stream shows the note after it has decided about the task.
        for stream in streams {
            let mut has_shown = false;
            loop {
                // On Postgres, a stream may begin with events from a moment before it.
                let event = stream.event().await;
                let after = &event["payload"]["after"];
                has_shown |= event["topic"] == "data.task.updated" && after["title"] == json!(title);
                if event["topic"] == "data.note.created" && after["text"] == json!(title) {
                    break;
                }
            }
            assert_eq!(has_shown, is_shown, "{title}");
        }
        self.reads(&format!("after-change-{}", self.count)).await - before
    }

    /// Changes the task until the streams decide with the `expected` number of reads. On a busy machine, some streams may read by
    /// themselves. They never need fewer reads than `least`.
    async fn until_decided_by(&mut self, streams: &mut [Stream], is_shown: bool, least: usize, expected: usize) {
        until("the streams read as little as they can", async || {
            let reads = self.change(streams, is_shown).await;
            assert!(reads >= least, "{reads} reads of {} streams", streams.len());
            reads == expected
        })
        .await;
    }
}

pub(super) async fn recent(caller: &Admin<'_>) -> Vec<Value> {
    recent_of(caller, "task").await
}

/// The events of an object that a caller sees, the oldest first.
async fn recent_of(caller: &Admin<'_>, object: &str) -> Vec<Value> {
    let answer: Answer = caller.get(&format!("/api/v1/events?object={object}&limit=100")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut events = answer.data().as_array().unwrap().clone();
    events.reverse();
    events
}

/// A server on which a failed delivery waits until somebody retries it.
async fn patient_server(engine: Engine) -> Server {
    quick(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await
}

/// The id of the newest event.
async fn newest(admin: &Admin<'_>) -> String {
    admin.get("/api/v1/events?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned()
}

/// A grant to read an object, with more members.
fn reading(object: &str, more: &Value) -> Value {
    let mut grant = json!({ "resource": object, "actions": ["read"] });
    grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grant
}

/// Grants with those of somebody who makes webhooks.
fn watching(grants: impl IntoIterator<Item = Value>) -> Value {
    let platform = ["events", "webhooks"].map(|resource| json!({ "resource": resource, "actions": ["manage"] }));
    grants.into_iter().chain(platform).collect()
}

/// Makes a webhook that sends a name with each event. Returns its consumer group.
async fn hook(maker: &Admin<'_>, name: &str, receiver: &Receiver, topics: &[String]) -> String {
    let body = json!({ "url": receiver.url, "topics": topics, "headers": { "X-Reader": name } });
    format!("webhook:{}", make(maker, body).await.0)
}

/// Waits until the first attempts of a group's deliveries have failed. `count` is their number.
async fn until_failed(admin: &Admin<'_>, consumer: &str, count: usize) {
    let are_failed = |entries: &[Value]| entries.len() == count && entries.iter().all(|entry| entry["status"] == "failed");
    ledger_until(admin, &format!("consumer={consumer}"), are_failed).await;
}

/// Retries the deliveries of a group, and returns their entries when they are settled.
async fn retried(admin: &Admin<'_>, consumer: &str) -> Vec<Value> {
    let group = format!("consumer={consumer}");
    for entry in ledger(admin, &group).await {
        let retry = json!({ "eventId": entry["eventId"], "consumer": consumer });
        let answer = admin.post("/api/v1/events/deliveries/retry", retry).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    ledger_until(admin, &group, |entries| entries.iter().all(|entry| entry["status"] == "delivered")).await
}

on_both_engines! {
    async fn a_stream_shows_what_its_reader_may_read(server: Server) {
        let World { admin, ann, ann_id, teams: [one, two], tasks: [a, b, c] } = world(&server).await;
        role(&admin, "watcher", json!([{ "resource": "events", "actions": ["read"] }])).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": "watcher" })).await.status, 200);
        let start = admin.get("/api/v1/events?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
        let mut stream = Stream::open(&ann, &format!("?topics=data.task.%23&since={start}")).await;

        admin.patch(&path(&c), json!({ "title": "hidden" })).await.data();
        admin.patch(&path(&b), json!({ "title": "seen" })).await.data();
        // One task enters her view, and one leaves it.
        admin.patch(&path(&c), json!({ "team_id": one, "title": "came" })).await.data();
        admin.patch(&path(&a), json!({ "team_id": two, "title": "left" })).await.data();
        admin.make("task", json!({ "title": "none", "team_id": two })).await;
        let made = admin.make("task", json!({ "title": "made", "team_id": one })).await;
        assert_eq!(admin.delete(&path(&a)).await.status, 204);
        assert_eq!(admin.delete(&path(&made)).await.status, 204);
        let expected = [
            ("updated", json!("b"), json!("seen"), true),
            ("updated", Value::Null, json!("came"), false),
            ("updated", json!("a"), Value::Null, false),
            ("created", Value::Null, json!("made"), false),
            ("deleted", json!("made"), Value::Null, false),
        ]
        .map(|(op, before, after, diff)| (op.to_owned(), before, after, diff));
        for event in &expected {
            let shown = stream.event().await;
            assert_eq!(gist(&shown), *event, "{shown}");
        }
        let shown = recent(&ann).await;
        let after_start: Vec<_> = shown.iter().map(gist).collect();
        assert_eq!(after_start[after_start.len() - 5..], expected);
        // A stream that begins in the past shows the same events.
        let mut replayed = Stream::open(&ann, &format!("?topics=data.task.%23&since={start}")).await;
        for event in &expected {
            assert_eq!(gist(&replayed.event().await), *event);
        }
        // A single event shows only the images that she may see.
        for event in &shown {
            let id = event["id"].as_str().unwrap();
            assert_eq!(ann.get(&format!("/api/v1/events/{id}")).await.data(), *event);
        }
        let all = recent(&admin).await;
        let seen: Vec<&Value> = shown.iter().map(|event| &event["id"]).collect();
        for event in all.iter().filter(|event| !seen.contains(&&event["id"])) {
            let id = event["id"].as_str().unwrap();
            ann.get(&format!("/api/v1/events/{id}")).await.expect_error(404, "not_found");
            ann.get(&format!("/api/v1/events?before={id}")).await.expect_error(404, "not_found");
        }
        // Conditions use the current related rows: a user who leaves the team no longer sees its events.
        let member = admin.get("/api/v1/data/member").await.data()[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(admin.delete(&format!("/api/v1/data/member/{member}")).await.status, 204);
        admin.patch(&path(&b), json!({ "title": "b" })).await.data();
        assert_eq!(recent(&ann).await, Vec::<Value>::new());
        admin.make("member", json!({ "user_id": ann_id, "team_id": one })).await;
        let last = admin.make("task", json!({ "title": "last", "team_id": one })).await;
        loop {
            let shown = stream.event().await;
            // The server may check the change in between only after the new membership.
            if shown["payload"]["id"] == json!(last) {
                break;
            }
            assert_eq!(shown["payload"]["id"], json!(b), "{shown}");
        }
    }

    async fn an_event_shows_its_actor_and_time_whatever_fields_are_hidden(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "reader", json!([
            { "resource": "task", "actions": ["read"], "fields": { "read": ["title"] } },
            { "resource": "events", "actions": ["read"] },
        ])).await;
        let (reader, _) = user(&admin, "reader", Some("reader")).await;
        let task = admin.make("task", json!({ "title": "a" })).await;
        reader.get("/api/v1/data/task?created_by%5Bis_null%5D=false").await.expect_error(400, "unknown_field");
        let events = recent(&reader).await;
        assert_eq!(events.len(), 1, "{events:?}");
        let event = &events[0];
        let maker = admin.get("/api/v1/me").await.json()["userId"].clone();
        assert_eq!(event["payload"]["after"], json!({ "id": task, "title": "a" }), "{event}");
        assert_eq!((&event["payload"]["actor"]["userId"], event["occurredAt"].is_string()), (&maker, true), "{event}");
    }

    async fn each_event_is_decided_anew_for_all_streams_of_a_policy(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let notes = json!({ "resource": "note", "actions": ["read"] });
        for team in ["one", "two"] {
            let tasks = json!({ "resource": "task", "actions": ["read"], "where": { "team": { "name": team } } });
            role(&admin, team, json!([notes, tasks])).await;
        }
        let own = json!({ "resource": "task", "actions": ["read"], "where": of_my_teams(), "fields": { "read": { "except": ["points"] } } });
        role(&admin, "member", json!([notes, own])).await;
        let (ann, _) = user(&admin, "ann", Some("one")).await;
        let (bob, _) = user(&admin, "bob", Some("one")).await;
        let (cid, _) = user(&admin, "cid", Some("two")).await;
        let (dan, dan_id) = user(&admin, "dan", Some("member")).await;
        let (eve, eve_id) = user(&admin, "eve", Some("member")).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let membership = admin.make("member", json!({ "user_id": dan_id, "team_id": team })).await;
        let task = admin.make("task", json!({ "title": "first", "team_id": team, "points": 3 })).await;
        let mut streams = Vec::new();
        for who in [&ann, &bob, &cid, &dan, &eve] {
            streams.push(Stream::open(who, "?topics=data.%23").await);
        }
        // On Postgres, a stream may begin with events from a moment before it.
        admin.make("note", json!({ "text": "begin" })).await;
        for stream in &mut streams {
            while stream.event().await["topic"] != "data.note.created" {}
        }
        // Changes the task, and returns for each stream whether it shows that, and whether with the points. Every stream shows the note
        // after it, so the change has been decided by then.
        let mut changed = async |title: &str| {
            admin.patch(&path(&task), json!({ "title": title })).await.data();
            admin.make("note", json!({ "text": title })).await;
            let mut shown = Vec::new();
            for stream in &mut streams {
                let (mut of_task, mut event) = ("hidden", stream.event().await);
                if event["topic"] == "data.task.updated" {
                    assert_eq!(event["payload"]["after"]["title"], json!(title), "{event}");
                    of_task = if event["payload"]["after"]["points"] == json!(3) { "whole" } else { "cut" };
                    event = stream.event().await;
                }
                assert_eq!((&event["topic"], &event["payload"]["after"]["text"]), (&json!("data.note.created"), &json!(title)), "{event}");
                shown.push(of_task);
            }
            shown
        };
        let rename = async |name: &str| {
            admin.patch(&format!("/api/v1/data/team/{team}"), json!({ "name": name })).await.data();
        };
        assert_eq!(changed("a").await, ["whole", "whole", "hidden", "cut", "hidden"]);
        rename("none").await;
        assert_eq!(changed("b").await, ["hidden", "hidden", "hidden", "cut", "hidden"]);
        rename("two").await;
        assert_eq!(admin.delete(&format!("/api/v1/data/member/{membership}")).await.status, 204);
        admin.make("member", json!({ "user_id": eve_id, "team_id": team })).await;
        assert_eq!(changed("c").await, ["hidden", "hidden", "whole", "hidden", "cut"]);
        rename("one").await;
        assert_eq!(changed("d").await, ["whole", "whole", "hidden", "hidden", "cut"]);
        // The condition of a role changes, and the streams of its users follow it.
        let other = json!([notes, { "resource": "task", "actions": ["read"], "where": { "team": { "name": "two" } } }]);
        assert_eq!(admin.patch("/api/v1/roles/one", json!({ "permissions": other })).await.status, 200);
        assert_eq!(changed("e").await, ["hidden", "hidden", "hidden", "hidden", "cut"]);
        rename("two").await;
        assert_eq!(changed("f").await, ["whole", "whole", "whole", "hidden", "cut"]);
    }

    async fn events_of_links_list_what_can_be_read(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "open", "type": "boolean" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let grants = json!([
            { "resource": "task", "actions": ["read"], "where": { "open": true } },
            { "resource": "label", "actions": ["read"], "where": { "text": { "neq": "secret" } } },
        ]);
        role(&admin, "reader", grants).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        let (open, shut) = (admin.make("task", json!({ "open": true })).await, admin.make("task", json!({ "open": false })).await);
        let (plain, secret) = (admin.make("label", json!({ "text": "plain" })).await, admin.make("label", json!({ "text": "secret" })).await);
        let mut stream = Stream::open(&ann, "?topics=data.task.linked").await;
        let link = async |task: &str, labels: Value| {
            assert_eq!(admin.post(&format!("{}/links/labels", path(task)), json!({ "ids": labels })).await.status, 200);
        };
        link(&shut, json!([plain])).await;
        link(&open, json!([secret])).await;
        link(&open, json!([plain])).await;
        let shown = stream.event().await;
        assert_eq!((&shown["payload"]["id"], &shown["payload"]["targetIds"]), (&json!(open), &json!([plain])), "{shown}");
        assert_eq!(admin.post(&format!("{}/links/labels", path(&open)), json!({ "ids": [plain, secret] })).await.status, 200);
        let (third, fourth) = (admin.make("label", json!({ "text": "third" })).await, admin.make("label", json!({ "text": "secret" })).await);
        link(&open, json!([fourth, third])).await;
        let shown = stream.event().await;
        assert_eq!(shown["payload"]["targetIds"], json!([third]), "{shown}");
    }

    async fn events_of_links_need_read_on_their_record(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "assignee", "type": "text" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let readers = [
            json!({ "created_by": "$user.id" }),
            json!({ "assignee": "$user.email" }),
            json!({ "_or": [] }),
            json!({ "_not": { "assignee": { "neq": "$user.id" } } }),
        ];
        let mut streams = Vec::new();
        for (number, condition) in readers.into_iter().enumerate() {
            let name = format!("reader{number}");
            let grants = json!([
                { "resource": "task", "actions": ["read", "create"], "where": condition, "check": {} },
                { "resource": "label", "actions": ["read"] },
                { "resource": "events", "actions": ["read"] },
            ]);
            role(&admin, &name, grants).await;
            let (reader, _) = user(&admin, &name, Some(&name)).await;
            streams.push((Stream::open(&reader, "?topics=data.task.linked,data.label.created").await, reader));
        }
        let (task, label) = (admin.make("task", json!({})).await, admin.make("label", json!({})).await);
        assert_eq!(admin.post(&format!("{}/links/labels", path(&task)), json!({ "ids": [label] })).await.status, 200);
        let last = admin.make("label", json!({ "text": "last" })).await;
        for (stream, reader) in &mut streams {
            loop {
                let event = stream.event().await;
                assert_eq!(event["topic"], "data.label.created", "{event}");
                if event["payload"]["id"] == json!(last) {
                    break;
                }
            }
            assert_eq!(recent(reader).await, Vec::<Value>::new());
        }
    }

    async fn the_removed_links_of_a_deleted_record_are_shown_to_those_who_may_read_all_its_fields(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "note", "type": "text" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let fields = json!({ "read": { "except": ["note"] } });
        let readers = [
            json!({}),
            json!({ "rowPolicy": "own" }),
            json!({ "fields": fields }),
            json!({ "rowPolicy": "own", "fields": fields }),
            json!({ "where": { "created_by": { "neq": "$user.id" } } }),
            json!({ "where": { "_or": [{ "created_by": "$user.id" }, { "title": "x" }] } }),
        ];
        let label = admin.make("label", json!({})).await;
        let mut shown = Vec::new();
        for (number, part) in readers.into_iter().enumerate() {
            let name = format!("reader{number}");
            let mut reads = json!({ "resource": "task", "actions": ["read"] });
            reads.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            let others = ["label", "events"].map(|name| json!({ "resource": name, "actions": ["read"] }));
            let creates = json!({ "resource": "task", "actions": ["create"] });
            role(&admin, &name, json!([reads, creates, others[0], others[1]])).await;
            let (reader, _) = user(&admin, &name, Some(&name)).await;
            let mut of_makers = Vec::new();
            for maker in [&reader, &admin] {
                let task = maker.make("task", json!({ "title": "x" })).await;
                assert_eq!(admin.post(&format!("{}/links/labels", path(&task)), json!({ "ids": [label] })).await.status, 200);
                assert_eq!(admin.delete(&path(&task)).await.status, 204);
                let events = reader.get("/api/v1/events?topic=data.task.unlinked").await.data();
                of_makers.push(events.as_array().unwrap().iter().any(|event| event["payload"]["id"] == json!(task)));
            }
            shown.push(of_makers);
        }
        let (both, one, none) = ([true, true], [true, false], [false, false]);
        assert_eq!(shown, [both, one, both, none, none, none]);
    }

    async fn an_image_without_its_related_rows_is_not_decided(server: Server) {
        let admin = server.admin().await;
        admin.define("project", json!([{ "name": "secret", "type": "boolean" }])).await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.relate(json!({ "name": "project", "kind": "many_to_one", "source": "task", "target": "project", "onDelete": "cascade" })).await;
        let events = json!({ "resource": "events", "actions": ["read"] });
        let tasks = json!({ "resource": "task", "actions": ["read"], "where": { "project": { "_not": { "secret": true } } } });
        let projects = json!({ "resource": "project", "actions": ["read"], "where": { "task_by_project": { "none": { "title": "hidden" } } } });
        role(&admin, "reader", json!([events, tasks, projects])).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        let secret = admin.make("project", json!({ "secret": true })).await;
        let plain = admin.make("project", json!({ "secret": false })).await;
        admin.make("task", json!({ "title": "hidden", "project_id": secret })).await;
        let seen = admin.make("task", json!({ "title": "seen", "project_id": plain })).await;
        let free = admin.make("task", json!({ "title": "free" })).await;
        assert_eq!(admin.delete(&format!("/api/v1/data/project/{secret}")).await.status, 204);
        let ids: Vec<Value> = recent(&ann).await.iter().map(|event| event["payload"]["id"].clone()).collect();
        assert_eq!(ids, [json!(seen), json!(free)]);
        let of_projects = ann.get("/api/v1/events?object=project&limit=100").await.data();
        let ids: Vec<&Value> = of_projects.as_array().unwrap().iter().map(|event| &event["payload"]["id"]).collect();
        assert_eq!(ids, [&json!(plain)]);
    }

    async fn another_part_of_a_condition_decides_an_image_without_its_related_rows(server: Server) {
        let admin = server.admin().await;
        admin.define("project", json!([{ "name": "open", "type": "boolean" }])).await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "state", "type": "text" }])).await;
        admin.relate(json!({ "name": "project", "kind": "many_to_one", "source": "task", "target": "project", "onDelete": "cascade" })).await;
        let either = json!({ "_or": [{ "title": "for all" }, { "state": "public" }, { "project": { "open": true } }] });
        let events = json!({ "resource": "events", "actions": ["read"] });
        role(&admin, "reader", json!([events, { "resource": "task", "actions": ["read"], "where": either }])).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        let (gone, kept) = (admin.make("project", json!({ "open": true })).await, admin.make("project", json!({ "open": true })).await);
        let task = async |title: &str, state: &str, project: &str| {
            admin.make("task", json!({ "title": title, "state": state, "project_id": project })).await
        };
        let expected = [task("for all", "", &gone).await, task("by state", "public", &gone).await, task("by project", "", &kept).await];
        task("unknown", "", &gone).await;
        assert_eq!(admin.delete(&format!("/api/v1/data/project/{gone}")).await.status, 204);
        let created = async || {
            let events = recent(&ann).await;
            let created = events.iter().filter(|event| event["payload"]["op"] == "created");
            created.map(|event| event["payload"]["id"].clone()).collect::<Vec<Value>>()
        };
        assert_eq!(created().await, expected.each_ref().map(|id| json!(id)));
        // The images have no column with the new name, so the test of this field counts as failed. The other parts of the
        // condition still work.
        let renamed = admin.patch("/api/v1/objects/task/fields/state", json!({ "name": "phase" })).await;
        assert_eq!(renamed.status, 200, "{}", renamed.text);
        assert_eq!(created().await, [json!(expected[0]), json!(expected[2])]);
    }

    async fn what_an_image_does_not_tell_is_not_shown(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "state", "type": "text" }])).await;
        let task = admin.make("task", json!({ "title": "a", "state": "open" })).await;
        role(&admin, "events", json!([{ "resource": "events", "actions": ["read"] }, { "resource": "task", "actions": ["read"], "where": { "_not": { "state": "secret" } } }])).await;
        let (ann, _) = user(&admin, "ann", Some("events")).await;
        assert_eq!(recent(&ann).await.len(), 1);
        // The images from before the rename have no column with the new name. A missing value must not count as a value that is
        // not secret.
        let renamed = admin.patch("/api/v1/objects/task/fields/state", json!({ "name": "phase" })).await;
        assert_eq!(renamed.status, 200, "{}", renamed.text);
        assert_eq!(ann.get(&path(&task)).await.status, 200);
        assert_eq!(recent(&ann).await, Vec::<Value>::new());
        admin.patch(&path(&task), json!({ "phase": "secret" })).await.data();
        let shown = recent(&ann).await;
        assert_eq!(shown.iter().map(gist).collect::<Vec<_>>(), [("updated".to_owned(), json!("a"), Value::Null, false)]);
    }

    async fn links_of_an_earlier_relationship_are_not_shown(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        let labels = json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" });
        let id = admin.relate(labels.clone()).await;
        let grants = |fields: Value| {
            let tasks = reading("task", &json!({ "fields": { "read": fields } }));
            json!([{ "resource": "events", "actions": ["read"] }, tasks, reading("label", &json!({}))])
        };
        role(&admin, "reader", grants(json!(["title"]))).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        let (task, label) = (admin.make("task", json!({ "title": "a" })).await, admin.make("label", json!({})).await);
        let link = async || {
            let linked = admin.post(&format!("{}/links/labels", path(&task)), json!({ "ids": [label] })).await;
            assert_eq!(linked.status, 200, "{}", linked.text);
        };
        let topics = async || recent(&ann).await.iter().map(|event| event["topic"].clone()).collect::<Vec<Value>>();
        link().await;
        assert_eq!(topics().await, ["data.task.created"]);
        // She may read the links of another relationship with the same name, but not those of the first one.
        assert_eq!(admin.delete(&format!("/api/v1/relationships/{id}")).await.status, 204);
        admin.relate(labels).await;
        let listed = admin.patch("/api/v1/roles/reader", json!({ "permissions": grants(json!(["title", "labels"])) })).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        assert_eq!(topics().await, ["data.task.created"]);
        link().await;
        assert_eq!(topics().await, ["data.task.created", "data.task.linked"]);
        assert_eq!(recent(&admin).await.len(), 3);
    }

    async fn a_field_of_another_type_is_not_in_older_events(server: Server) {
        let admin = server.admin().await;
        let fields = ["title", "state", "points"].map(|name| json!({ "name": name, "type": "text" }));
        admin.define("task", fields.into_iter().collect()).await;
        let grant = reading("task", &json!({ "fields": { "read": { "except": ["state"] } } }));
        role(&admin, "reader", watching([grant])).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        let task = admin.make("task", json!({ "title": "a", "state": "open", "points": "many" })).await;
        assert_eq!(admin.delete(&path(&task)).await.status, 204);
        // The titles and points in the image of each of the first two events, the creation and the deletion.
        let images = |events: &[Value]| {
            [(0, "after"), (1, "before")].map(|(place, image)| {
                let image = &events[place]["payload"][image];
                (image["title"].clone(), image.get("points").cloned())
            })
        };
        let with = |points: Option<&str>| [0, 1].map(|_| (json!("a"), points.map(|points| json!(points))));
        assert_eq!(images(&recent(&ann).await), with(Some("many")));
        // Without records, a field can get any type. The deletion is the last event before this change.
        let retyped = admin.patch("/api/v1/objects/task/fields/points", json!({ "type": "integer" })).await;
        assert_eq!(retyped.status, 200, "{}", retyped.text);
        assert_eq!(images(&recent(&ann).await), with(None));
        assert_eq!(images(&recent(&admin).await), with(Some("many")));
        admin.make("task", json!({ "title": "b", "points": 3 })).await;
        let shown = recent(&ann).await;
        assert_eq!((shown.len(), &shown[2]["payload"]["after"]["points"]), (3, &json!(3)));
    }
}

on_both_engines! {
    async fn a_retyped_field_hides_no_event(engine: Engine) {
        let server = patient_server(engine).await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(503));
        let admin = server.admin().await;
        let fields = [("title", "text"), ("state", "text"), ("points", "integer")];
        admin.define("task", fields.map(|(name, kind)| json!({ "name": name, "type": kind })).into_iter().collect()).await;
        let start = newest(&admin).await;
        let mut readers = Vec::new();
        for (name, more) in [
            ("open", json!({ "where": { "state": "open" } })),
            ("titles", json!({ "fields": { "read": ["title"] } })),
            ("points", json!({ "where": { "state": "open" }, "fields": { "read": { "except": ["state"] } } })),
        ] {
            role(&admin, name, watching([reading("task", &more)])).await;
            let (reader, _) = user(&admin, name, Some(name)).await;
            let consumer = hook(&reader, name, &receiver, &["data.task.#".to_owned()]).await;
            readers.push((name, reader, consumer));
        }
        let task = admin.make("task", json!({ "title": "a", "state": "open", "points": 3 })).await;
        admin.patch(&path(&task), json!({ "title": "b", "points": 4 })).await.data();
        let mut shown_before = Vec::new();
        for (_, reader, consumer) in &readers {
            until_failed(&admin, consumer, 2).await;
            shown_before.push(recent(reader).await);
        }
        let points = shown_before.iter().map(|events| &events[1]["payload"]["after"]["points"]).collect::<Vec<_>>();
        assert_eq!(points, [&json!(4), &Value::Null, &json!(4)]);
        let retyped = admin.patch("/api/v1/objects/task/fields/points", json!({ "type": "text" })).await;
        assert_eq!(retyped.status, 200, "{}", retyped.text);

        // The events are shown as before, with the values of their time.
        receiver.answer(|_, _| Reply::Status(200));
        let failed = receiver.count();
        for ((name, reader, consumer), events) in readers.iter().zip(&shown_before) {
            assert_eq!((events.len(), recent(reader).await), (2, events.clone()), "{name}");
            let mut stream = Stream::open(reader, &format!("?topics=data.task.%23&since={start}")).await;
            for event in events {
                assert_eq!(stream.event().await, *event, "{name}");
            }
            assert_eq!(ledger(reader, &format!("consumer={consumer}")).await.len(), 2, "{name}");
            let settled = retried(&admin, consumer).await;
            assert!(settled.iter().all(|entry| entry["skipped"] == false), "{name}: {settled:#?}");
            let received = receiver.received();
            let of_reader = received[failed..].iter().filter(|received| received.header("x-reader") == *name);
            let mut sent: Vec<Value> = of_reader.map(Received::json).collect();
            sent.sort_by_key(|event| event["topic"].to_string());
            assert_eq!(sent, *events, "{name}");
        }
        // A value that does not fit its field now fails every test, also one that null would meet.
        role(&admin, "tests", watching([reading("task", &json!({ "where": { "points": { "neq": "7" } } }))])).await;
        let (tester, _) = user(&admin, "tester", Some("tests")).await;
        assert_eq!(recent(&tester).await, Vec::<Value>::new());
        admin.patch(&path(&task), json!({ "points": "5" })).await.data();
        let shown = recent(&tester).await;
        assert_eq!(shown.iter().map(gist).collect::<Vec<_>>(), [("updated".to_owned(), json!("b"), json!("b"), true)]);
    }

    async fn a_reused_name_tells_nothing_of_the_field_that_had_it(engine: Engine) {
        const OBJECTS: [&str; 4] = ["renamed", "exchanged", "replaced", "again"];
        const HIDDEN: [&str; 2] = ["confidential", "confidential too"];
        let server = patient_server(engine).await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(503));
        let admin = server.admin().await;
        let fields: Value = ["title", "pay", "bonus"].map(|name| json!({ "name": name, "type": "text" })).into_iter().collect();
        for object in OBJECTS {
            admin.define(object, fields.clone()).await;
        }
        let start = newest(&admin).await;
        let listed = |object: &str, fields: &[&str]| reading(object, &json!({ "fields": { "read": fields } }));
        let tested = |field: &str| {
            let condition = json!({ "where": { field: { "in": HIDDEN } } });
            watching(OBJECTS.map(|object| reading(object, &condition)))
        };
        role(&admin, "lists", watching(OBJECTS.map(|object| listed(object, &["title", "bonus"])))).await;
        role(&admin, "tests", tested("bonus")).await;
        let of_maker = |object: &str| json!({ "resource": object, "actions": ["read", "create"], "rowPolicy": "own" });
        role(&admin, "own", watching(OBJECTS.map(of_maker))).await;
        let ((lists, _), (tests, _)) = (user(&admin, "lists", Some("lists")).await, user(&admin, "tests", Some("tests")).await);
        let (own, _) = user(&admin, "own", Some("own")).await;
        let consumer = hook(&lists, "lists", &receiver, &OBJECTS.map(|object| format!("data.{object}.#"))).await;
        let mut ids = Vec::new();
        for object in OBJECTS {
            let id = own.make(object, json!({ "title": "a", "pay": HIDDEN[0], "bonus": "none" })).await;
            admin.patch(&format!("/api/v1/data/{object}/{id}"), json!({ "title": "b", "pay": HIDDEN[1] })).await.data();
            ids.push(id);
        }
        until_failed(&admin, &consumer, 8).await;
        let mut whole = Vec::new();
        for object in OBJECTS {
            assert_eq!((recent_of(&lists, object).await.len(), recent_of(&tests, object).await.len()), (2, 0), "{object}");
            whole.push(recent_of(&admin, object).await);
        }

        let rename = async |object: &str, field: &str, name: &str| {
            let renamed = admin.patch(&format!("/api/v1/objects/{object}/fields/{field}"), json!({ "name": name })).await;
            assert_eq!(renamed.status, 200, "{}", renamed.text);
        };
        let add_pay = async |object: &str| {
            let added = admin.post(&format!("/api/v1/objects/{object}/fields"), json!({ "name": "pay", "type": "text" })).await;
            assert_eq!(added.status, 201, "{}", added.text);
        };
        rename("renamed", "pay", "wage").await;
        add_pay("renamed").await;
        for (field, name) in [("pay", "other"), ("bonus", "pay"), ("other", "bonus")] {
            rename("exchanged", field, name).await;
        }
        for path in ["/api/v1/objects/replaced/fields/pay", "/api/v1/objects/again"] {
            let gone = admin.delete(path).await;
            assert_eq!(gone.status, 204, "{path}: {}", gone.text);
        }
        add_pay("replaced").await;
        admin.define("again", fields).await;
        // The field that is called `pay` now may be read and tested. In `exchanged`, that is the former `bonus`.
        let fields_of = |object: &str| if object == "exchanged" { vec!["title", "pay"] } else { vec!["title", "bonus", "pay"] };
        let lists_pay = watching(OBJECTS.map(|object| listed(object, &fields_of(object))));
        for (name, permissions) in [("lists", lists_pay), ("tests", tested("pay")), ("own", watching(OBJECTS.map(of_maker)))] {
            let changed = admin.patch(&format!("/api/v1/roles/{name}"), json!({ "permissions": permissions })).await;
            assert_eq!(changed.status, 200, "{}", changed.text);
        }

        let mut shown = Vec::new();
        for ((object, id), whole) in OBJECTS.iter().zip(&ids).zip(&whole) {
            let events = recent_of(&lists, object).await;
            let image = |title: &str| match *object {
                "exchanged" => json!({ "id": id, "title": title }),
                _ => json!({ "id": id, "title": title, "bonus": "none" }),
            };
            let images = events.iter().map(|event| ["before", "after", "diff"].map(|part| event["payload"][part].clone()));
            let diff = json!({ "title": { "before": "a", "after": "b" } });
            let expected = match *object {
                "again" => Vec::new(),
                _ => vec![[Value::Null, image("a"), Value::Null], [image("a"), image("b"), diff]],
            };
            assert_eq!(images.collect::<Vec<_>>(), expected, "{object}");
            shown.extend(events);
            assert_eq!(recent_of(&tests, object).await, Vec::<Value>::new(), "{object}");
            // Who reads every record with all its fields, or made this one, sees the events as they were.
            for reader in [&admin, &own] {
                assert_eq!(recent_of(reader, object).await, *whole, "{object}");
            }
            assert_eq!(whole[1]["payload"]["diff"]["pay"], json!({ "before": HIDDEN[0], "after": HIDDEN[1] }), "{object}");
        }
        let mut stream = Stream::open(&lists, &format!("?topics=data.%23&since={start}")).await;
        for event in &shown {
            assert_eq!(stream.event().await, *event);
        }
        assert_eq!(ledger(&lists, &format!("consumer={consumer}")).await.len(), shown.len());
        receiver.answer(|_, _| Reply::Status(200));
        let failed = receiver.count();
        let settled = retried(&admin, &consumer).await;
        assert_eq!(settled.iter().filter(|entry| entry["skipped"] == true).count(), settled.len() - shown.len(), "{settled:#?}");
        let received = receiver.received();
        let mut sent: Vec<Value> = received[failed..].iter().map(Received::json).collect();
        sent.sort_by_key(|event| shown.iter().position(|shown| shown["id"] == event["id"]));
        assert_eq!(sent, shown);
        let bodies = received.iter().map(|received| String::from_utf8_lossy(&received.body).into_owned());
        assert!(!bodies.chain(shown.iter().map(Value::to_string)).any(|text| text.contains(HIDDEN[0])));

        // In newer events, the name means the field that has it now.
        let mut tests_stream = Stream::open(&tests, &format!("?topics=data.%23&since={start}")).await;
        for object in OBJECTS {
            let id = admin.make(object, json!({ "title": "new", "pay": HIDDEN[0] })).await;
            for stream in [&mut stream, &mut tests_stream] {
                let payload = stream.event().await["payload"].clone();
                assert_eq!((&payload["id"], &payload["after"]["pay"]), (&json!(id), &json!(HIDDEN[0])), "{object}");
            }
            assert_eq!(recent_of(&tests, object).await.len(), 1, "{object}");
        }
    }
}

on_both_engines! {
    async fn one_stream_reads_the_related_rows_for_all_streams_of_a_policy(engine: Engine) {
        let server = tracing_server(engine).await;
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let task = admin.make("task", json!({ "title": "first", "team_id": team })).await;
        admin.relate(json!({ "name": "helpers", "kind": "many_to_many", "source": "task", "target": "member" })).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        // Two of the conditions depend on the reader, and one does not.
        role(&admin, "reader", json!([
            { "resource": "task", "actions": ["read"], "where": { "team": { "name": "one" } } },
            { "resource": "task", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "task", "actions": ["read"], "where": { "helpers": { "some": { "user_id": "$user.id" } } } },
            { "resource": "note", "actions": ["read"] },
        ])).await;
        let (mut streams, mut ids) = (Vec::new(), Vec::new());
        for name in ["ann", "bob", "cid", "dan", "eve"] {
            let (reader, id) = user(&admin, name, Some("reader")).await;
            streams.push(Stream::open(&reader, TOPICS).await);
            ids.push(id);
        }
        // The streams need a decision about the image before the change and one about the image after it.
        let mut changes = Changes { server: &server, admin: &admin, task: &task, count: 0, held: 0 };
        changes.until_decided_by(&mut streams, true, 2, 2).await;
        // If the common condition is false, the conditions of each reader decide. Each stream shows the note after it has decided
        // about the task.
        admin.patch(&format!("/api/v1/data/team/{team}"), json!({ "name": "two" })).await.data();
        let helper = admin.make("member", json!({ "user_id": ids[3] })).await;
        let linked = admin.post(&format!("{}/links/helpers", path(&task)), json!({ "ids": [helper] })).await;
        assert_eq!(linked.status, 200, "{}", linked.text);
        admin.patch(&path(&task), json!({ "title": "for the helper" })).await.data();
        admin.make("note", json!({ "text": "end" })).await;
        for (stream, id) in streams.iter_mut().zip(&ids) {
            let mut event = stream.event().await;
            if *id == ids[3] {
                assert_eq!(event["payload"]["after"]["title"], "for the helper", "{event}");
                event = stream.event().await;
            }
            assert_eq!(event["topic"], "data.note.created", "{event}");
        }
    }

    async fn the_related_rows_of_a_reader_are_read_once_for_all_their_streams(engine: Engine) {
        let server = tracing_server(engine).await;
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let task = admin.make("task", json!({ "title": "first", "team_id": team })).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        role(&admin, "reader", json!([
            { "resource": "task", "actions": ["read"], "where": of_my_teams() },
            { "resource": "note", "actions": ["read"] },
        ])).await;
        let mut streams = Vec::new();
        for name in ["ann", "bob"] {
            let (reader, id) = user(&admin, name, Some("reader")).await;
            admin.make("member", json!({ "user_id": id, "team_id": team })).await;
            for _ in 0..3 {
                streams.push(Stream::open(&reader, TOPICS).await);
            }
        }
        // Each of the two readers needs a decision about the image before the change and one about the image after it.
        let mut changes = Changes { server: &server, admin: &admin, task: &task, count: 0, held: 0 };
        changes.until_decided_by(&mut streams, true, 4, 4).await;
    }

    async fn no_stream_of_a_role_reads_while_another_one_is_reading(engine: Engine) {
        const ROLES: usize = 3;
        const USERS_OF_A_ROLE: usize = 2;
        const STREAMS_OF_A_USER: usize = 10;
        let server = tracing_server(engine).await;
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let task = admin.make("task", json!({ "title": "first", "team_id": team })).await;
        admin.make("member", json!({ "user_id": "somebody", "team_id": team })).await;
        let mut streams = Vec::new();
        for number in 0..ROLES {
            let (name, other) = (format!("role{number}"), format!("nobody{number}"));
            let condition = json!({ "team": { "member_by_team": { "some": { "user_id": { "neq": other } } } } });
            role(&admin, &name, json!([
                { "resource": "task", "actions": ["read"], "where": condition },
                { "resource": "note", "actions": ["read"] },
            ])).await;
            for user_number in 0..USERS_OF_A_ROLE {
                let (reader, _) = user(&admin, &format!("{name}user{user_number}"), Some(&name)).await;
                for _ in 0..STREAMS_OF_A_USER {
                    streams.push(Stream::open(&reader, TOPICS).await);
                }
            }
        }
        // On Postgres, the reads of members are held for longer than a stream waits for its turn. On SQLite, no stream waits.
        let held = match server.engine() {
            Engine::Sqlite => 0,
            Engine::Postgres => {
                server.hold_reads("member").await.release().await;
                ROLES
            }
        };
        let mut changes = Changes { server: &server, admin: &admin, task: &task, count: 0, held };
        // Each role needs a decision about the image before the change and one about the image after it.
        changes.until_decided_by(&mut streams, true, 2 * ROLES, 2 * ROLES).await;
    }

    async fn the_common_part_of_a_condition_is_read_by_itself_only_for_several_streams(engine: Engine) {
        let server = tracing_server(engine).await;
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "two" })).await;
        let task = admin.make("task", json!({ "title": "first", "team_id": team })).await;
        admin.relate(json!({ "name": "helpers", "kind": "many_to_many", "source": "task", "target": "member" })).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let helps = json!({ "helpers": { "some": { "user_id": "$user.id" } } });
        // Neither common part decides: the one of the AND is true, and the one of the OR is false.
        let undecided = [
            json!({ "_and": [{ "team": { "name": "two" } }, helps] }),
            json!({ "_or": [{ "team": { "name": "one" } }, helps] }),
        ];
        role(&admin, "reader", json!([])).await;
        let mut streams = Vec::new();
        let mut changes = Changes { server: &server, admin: &admin, task: &task, count: 0, held: 0 };
        for names in [&["ann"][..], &["bob", "cid", "dan"][..]] {
            for name in names {
                let (reader, _) = user(&admin, name, Some("reader")).await;
                streams.push(Stream::open(&reader, TOPICS).await);
            }
            for condition in &undecided {
                let grants = json!([
                    { "resource": "task", "actions": ["read"], "where": condition },
                    { "resource": "note", "actions": ["read"] },
                ]);
                assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": grants })).await.status, 200);
                // Each stream reads the complete condition for both images. With several streams, one of them also reads the
                // common part. On a busy machine, some streams may read it by themselves. The first round after a change of the
                // role decides twice.
                let complete = 2 * streams.len();
                let expected = if streams.len() == 1 { complete } else { complete + 2 };
                // An event that comes late is decided without the common part.
                changes.until_decided_by(&mut streams, false, complete, expected).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_that_change_during_the_check_of_an_event_count_for_it() {
    const WAITING: &str = "SELECT count(*)::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
        WHERE c.relname = 'svc_sessions' AND NOT l.granted";
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.define("team", json!([{ "name": "name", "type": "text" }])).await;
    admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "note", "type": "text" }])).await;
    admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "task", "target": "team" })).await;
    let events = json!({ "resource": "events", "actions": ["read"] });
    let some = json!({ "resource": "task", "actions": ["read"], "where": { "team.name": "a" }, "fields": { "read": ["title"] } });
    role(&admin, "reader", json!([some, events])).await;
    let (reader, _) = user(&admin, "reader", Some("reader")).await;
    let mut stream = Stream::open(&reader, "?topics=data.task.%23").await;
    let team = admin.make("team", json!({ "name": "a" })).await;
    let task = admin.make("task", json!({ "title": "1", "note": "n", "team_id": team })).await;
    let shown = stream.event().await;
    assert_eq!((&shown["payload"]["after"]["title"], &shown["payload"]["after"]["note"]), (&json!("1"), &Value::Null));
    // The check of this event has the earlier rights, and waits for the team.
    let reads = server.hold_reads("team").await;
    admin.patch(&path(&task), json!({ "title": "2" })).await.data();
    until("the check reads the team", async || server.sql(HELD).await[0][0] != "0").await;
    let whole = json!([{ "resource": "task", "actions": ["read"] }, events]);
    assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": whole })).await.status, 200);
    // The stream finds its reader again before the check ends.
    let sessions = server.lock_table("svc_sessions").await;
    until("the stream looks for its reader", async || server.sql(WAITING).await[0][0] != "0").await;
    sessions.release().await;
    until("the stream has found its reader", async || server.sql(WAITING).await[0][0] == "0").await;
    reads.release().await;
    let shown = stream.event().await;
    assert_eq!((&shown["payload"]["after"]["title"], &shown["payload"]["after"]["note"]), (&json!("2"), &json!("n")), "{shown}");
}
