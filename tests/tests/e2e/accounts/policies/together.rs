//! Streams of readers whose policies name them: few statements decide for many readers, and each sees what their own policy shows.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use super::events::{Changes, TOPICS, recent, tracing_server};
use super::{define, of_my_teams, path};
use crate::accounts::roles::{role, user};
use crate::events::Stream;

/// The number of readers, each with a stream.
const READERS: usize = 40;
/// The maximum number of statements for the questions of all readers about both images of a change. One by one, they would need two
/// for each reader.
const STATEMENTS_MAX: usize = READERS / 2;

/// Gives the role `reader` these rights on tasks.
async fn give(admin: &Admin<'_>, condition: &Value) {
    let grants = json!([
        { "resource": "task", "actions": ["read"], "where": condition },
        { "resource": "note", "actions": ["read"] },
        { "resource": "events", "actions": ["read"] },
    ]);
    let given = admin.patch("/api/v1/roles/reader", json!({ "permissions": grants })).await;
    assert_eq!(given.status, 200, "{condition}: {}", given.text);
}

/// The events of tasks that a stream shows before the note with this text.
async fn shown_before(stream: &mut Stream, note: &str) -> Vec<Value> {
    let mut shown = Vec::new();
    loop {
        let event = stream.event().await;
        if event["topic"] == "data.note.created" {
            assert_eq!(event["payload"]["after"]["text"], note, "{event}");
            return shown;
        }
        shown.push(event);
    }
}

/// The parts of events that a stream and the list of events have in common.
fn parts(events: &[Value]) -> Vec<(&Value, &Value, &Value)> {
    events.iter().map(|event| (&event["id"], &event["topic"], &event["payload"])).collect()
}

/// A condition for tasks whose team has a membership of the reader with more properties.
fn of_membership(more: Value) -> Value {
    let mut member = json!({ "user_id": "$user.id" });
    member.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "team": { "member_by_team": { "some": member } } })
}

/// Conditions that name their reader or the present moment, for the world of the test below.
fn conditions() -> Vec<Value> {
    vec![
        of_my_teams(),
        json!({ "team": { "member_by_team": { "none": { "user_id": "$user.id" } } } }),
        json!({ "_not": { "team": { "member_by_team": { "every": { "user_id": "$user.id" } } } } }),
        json!({ "team": { "owner": "$user.id" } }),
        json!({ "team": { "owner": { "neq": "$user.id" } } }),
        json!({ "_not": { "team": { "owner": { "gt": "$user.id" } } } }),
        json!({ "_or": [{ "title": { "is_null": true } }, { "team": { "owner": "$user.id", "open": false } }] }),
        of_membership(json!({ "share": { "gt": 1.005 } })),
        of_membership(json!({ "since": { "lte": "2026-01-01T01:00:00+02:00" } })),
        of_membership(json!({ "since": { "lt": "$now" } })),
        of_membership(json!({ "share": { "is_null": true } })),
        // The questions of these conditions are not asked together.
        json!({ "team": { "owner": { "ilike": "$user.id" } } }),
        json!({ "team": { "owner": { "in": ["$user.id"] } } }),
    ]
}

on_both_engines! {
    async fn one_statement_decides_for_many_readers(engine: Engine) {
        let server = tracing_server(engine).await;
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        role(&admin, "reader", json!([])).await;
        give(&admin, &of_my_teams()).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let task = admin.make("task", json!({ "title": "first", "team_id": team })).await;
        // Neighbors differ, so a swapped answer is noticed.
        let is_member = |number: usize| number % 3 == 1;
        let mut streams = Vec::new();
        for number in 0..READERS {
            let (reader, id) = user(&admin, &format!("reader{number}"), Some("reader")).await;
            if is_member(number) {
                admin.make("member", json!({ "user_id": id, "team_id": team })).await;
            }
            streams.push(Stream::open(&reader, TOPICS).await);
        }
        let mut changes = Changes { server: &server, admin: &admin, task: &task, count: 0, held: 0 };
        changes.until_decided_within(&mut streams, &is_member, STATEMENTS_MAX).await;
        // Streams that end take no answer away from others.
        let mut number = 0;
        let (ended, mut others): (Vec<_>, Vec<_>) = streams.into_iter().partition(|_| {
            number += 1;
            number % 2 == 0
        });
        drop(ended);
        changes.until_decided_within(&mut others, &|place| is_member(2 * place), STATEMENTS_MAX).await;
    }
}

on_both_engines! {
    async fn streams_asked_together_show_what_each_reader_is_shown_alone(server: Server) {
        let admin = server.admin().await;
        admin.define("team", json!([{ "name": "owner", "type": "text" }, { "name": "open", "type": "boolean" }])).await;
        admin.define("member", json!([
            { "name": "user_id", "type": "text" },
            { "name": "share", "type": "decimal", "scale": 2 },
            { "name": "since", "type": "datetime" },
        ])).await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        for source in ["member", "task"] {
            admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": source, "target": "team" })).await;
        }
        role(&admin, "reader", json!([])).await;
        let (mut streams, mut readers) = (Vec::new(), Vec::new());
        for name in ["ann", "bob", "cid", "dan", "eve"] {
            readers.push(user(&admin, name, Some("reader")).await);
        }
        // By its id, the owner is in the middle of all readers.
        readers.sort_by(|(_, one), (_, other)| one.cmp(other));
        let ids: Vec<String> = readers.iter().map(|(_, id)| id.clone()).collect();
        let owner = &ids[2];
        let mut teams = Vec::new();
        for team in [
            json!({ "owner": owner, "open": false }),
            // The case of letters counts.
            json!({ "owner": owner.to_uppercase(), "open": true }),
            json!({ "owner": null }),
        ] {
            teams.push(admin.make("team", team).await);
        }
        for (team, reader, share, since) in [
            (0, 0, json!(1.01), json!("2026-01-01T00:00:00Z")),
            (0, 1, json!(1), json!("2025-12-31T23:00:00Z")),
            (0, 4, json!(null), json!(null)),
            (1, 2, json!(1.01), json!("2025-12-31T22:59:59.999Z")),
            (1, 4, json!(-1.01), json!("2999-01-01T00:00:00Z")),
        ] {
            let member = json!({ "user_id": ids[reader], "team_id": teams[team], "share": share, "since": since });
            admin.make("member", member).await;
        }
        for (reader, _) in &readers {
            streams.push(Stream::open(reader, "?topics=data.task.%23,data.note.created").await);
        }
        for (number, condition) in conditions().iter().enumerate() {
            give(&admin, condition).await;
            let round = format!("round {number}");
            let task = admin.make("task", json!({ "title": round, "team_id": teams[0] })).await;
            for team in [json!(teams[1]), json!(teams[2]), json!(null)] {
                admin.patch(&path(&task), json!({ "team_id": team })).await.data();
            }
            assert_eq!(admin.delete(&path(&task)).await.status, 204);
            admin.make("note", json!({ "text": round })).await;
            let mut count = 0;
            for (stream, (reader, _)) in streams.iter_mut().zip(&readers) {
                let shown = shown_before(stream, &round).await;
                let mut alone = recent(reader).await;
                alone.retain(|event| event["payload"]["id"] == json!(task));
                assert_eq!(parts(&shown), parts(&alone), "{condition}");
                count += shown.len();
            }
            // Some readers are shown something, and not all are shown everything.
            assert!((1..5 * readers.len()).contains(&count), "{condition}: {count} events");
        }
    }
}
