//! Streams of readers whose policies name them: one statement decides for several readers, and each sees what their own policy
//! shows.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use super::events::{Changes, Reads, TOPICS, recent, tracing_server};
use super::{define, of_my_teams, path};
use crate::accounts::roles::{role, user};
use crate::events::Stream;

/// The number of rounds in which a statement gets the chance to have the questions of several readers. On a busy machine, they may
/// come one by one. After trouble, questions with the same SQL are not asked together for a minute, so each round has other SQL.
const ROUNDS_MAX: usize = 6;

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

/// Values that no user and no team has.
fn nobody(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("nobody {number}"))
}

/// A round with several readers.
struct Round<'a, 'b> {
    changes: &'a mut Changes<'b>,
    streams: &'a mut [Stream],
    /// Whether the stream at a place shows the change.
    is_shown: &'a (dyn Fn(usize) -> bool + Sync),
}

impl Round<'_, '_> {
    /// Gives all readers a condition, and changes the task. Returns the reads about that.
    async fn under(&mut self, condition: &Value) -> Reads {
        give(self.changes.admin, condition).await;
        self.changes.change(self.streams, self.is_shown).await
    }

    /// Changes the task until the reads are as expected. `condition` makes a condition of the same meaning for each round.
    async fn until(&mut self, are_expected: impl Fn(Reads) -> bool, condition: impl Fn(usize) -> Value) {
        let mut seen = Vec::new();
        for round in 0..ROUNDS_MAX {
            let reads = self.under(&condition(round)).await;
            if are_expected(reads) {
                return;
            }
            seen.push(reads);
        }
        panic!("no round had the expected reads: {seen:?}");
    }
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

/// Conditions that name their reader or the present moment, for the world of the test below. The questions of different readers
/// about them are asked together.
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
        json!({ "team": { "owner": { "in": ["$user.id", "nobody"] } } }),
    ]
}

/// Such conditions with a search through texts, or with many values. Each reader asks about them alone.
fn conditions_asked_alone() -> Vec<Value> {
    let values: Vec<String> = std::iter::once("$user.id".to_owned()).chain(nobody(16)).collect();
    vec![json!({ "team": { "owner": { "ilike": "$user.id" } } }), json!({ "team": { "owner": { "in": values } } })]
}

/// The same condition in other words: its SQL is different in each round.
fn in_words_of(round: usize, condition: &Value) -> Value {
    match round {
        0 => condition.clone(),
        _ => json!({ "_or": [condition, { "team": { "owner": { "in": nobody(round).collect::<Vec<String>>() } } }] }),
    }
}

on_both_engines! {
    async fn one_statement_decides_for_many_readers(engine: Engine) {
        const READERS: usize = 40;
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
        let with_others = |count: usize| {
            let ids: Vec<String> = std::iter::once("$user.id".to_owned()).chain(nobody(count)).collect();
            json!({ "team": { "member_by_team": { "some": { "user_id": { "in": ids } } } } })
        };
        let mut changes = Changes { server: &server, admin: &admin, task: &task, count: 0, held: 0 };
        let mut all = Round { changes: &mut changes, streams: &mut streams, is_shown: &is_member };
        all.until(Reads::are_together, with_others).await;
        // Streams that end take no answer away from others.
        let mut number = 0;
        let (ended, mut others): (Vec<_>, Vec<_>) = streams.into_iter().partition(|_| {
            number += 1;
            number % 2 == 0
        });
        drop(ended);
        let mut half = Round { changes: &mut changes, streams: &mut others, is_shown: &|place| is_member(2 * place) };
        half.until(Reads::are_together, |round| with_others(ROUNDS_MAX + round)).await;
    }
}

on_both_engines! {
    async fn streams_asked_together_show_what_each_reader_is_shown_alone(engine: Engine) {
        let server = tracing_server(engine).await;
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
        let of_both = conditions().into_iter().map(|condition| (condition, true));
        let of_both = of_both.chain(conditions_asked_alone().into_iter().map(|condition| (condition, false)));
        for (number, (condition, is_asked_together)) in of_both.enumerate() {
            let rounds = if is_asked_together { ROUNDS_MAX } else { 1 };
            let mut were_together = false;
            for round in 0..rounds {
                let condition = in_words_of(round, &condition);
                give(&admin, &condition).await;
                let before = Reads::so_far(&admin, &format!("before-{number}-{round}")).await;
                let title = format!("round {round} of {number}");
                let task = admin.make("task", json!({ "title": title, "team_id": teams[0] })).await;
                for team in [json!(teams[1]), json!(teams[2]), json!(null)] {
                    admin.patch(&path(&task), json!({ "team_id": team })).await.data();
                }
                assert_eq!(admin.delete(&path(&task)).await.status, 204);
                admin.make("note", json!({ "text": title })).await;
                let mut shown = Vec::new();
                for stream in &mut streams {
                    shown.push(shown_before(stream, &title).await);
                }
                let reads = Reads::so_far(&admin, &format!("after-{number}-{round}")).await.since(before);
                for (shown, (reader, _)) in shown.iter().zip(&readers) {
                    let mut alone = recent(reader).await;
                    alone.retain(|event| event["payload"]["id"] == json!(task));
                    assert_eq!(parts(shown), parts(&alone), "{condition}");
                }
                // Some readers are shown something, and not all are shown everything.
                let count: usize = shown.iter().map(Vec::len).sum();
                assert!((1..5 * readers.len()).contains(&count), "{condition}: {count} events");
                assert!(is_asked_together || !reads.are_together(), "{condition}: {reads:?}");
                were_together = reads.are_together();
                if were_together {
                    break;
                }
            }
            assert_eq!(were_together, is_asked_together, "no statement had several questions about {condition}");
        }
    }
}
