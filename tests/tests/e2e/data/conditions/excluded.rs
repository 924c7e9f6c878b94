//! Totals of conditions that exclude rows. For these the server often counts the excluded rows, and an aggregate always counts the
//! rows that are left.

use std::collections::BTreeSet;

use blockbase_tests::{Admin, on_both_engines};
use fastrand::Rng;
use serde_json::{Value, json};

use super::many::make_all;
use super::{encoded, user};

const PROJECTS: usize = 40;
const LABELS: usize = 15;
const TASKS: usize = 300;
/// The number of tasks of a user who sees only these.
const OWN: usize = 30;
const KINDS: u8 = 6;
const STATES: [&str; 3] = ["alpha", "beta", "gamma"];
/// The number of random conditions before and after tasks are deleted.
const CONDITIONS: usize = 30;
/// The number of tasks that are deleted.
const DELETED: usize = 20;

/// A record whose values are random. One value in four is null.
fn record(random: &mut Rng, name: &str, number: usize) -> Value {
    let mut is_there = || random.u8(..4) > 0;
    let (has_kind, has_state) = (is_there(), is_there());
    json!({
        "code": format!("{name}{number}"),
        "kind": has_kind.then(|| random.u8(..KINDS)),
        "state": has_state.then(|| STATES[random.usize(..STATES.len())]),
    })
}

/// Makes the objects `task` (project, tags, assignee), `project` and `label`, and their rows. Only the admin is an assignee. Returns
/// the ids of the tasks.
async fn fill(admin: &Admin<'_>, random: &mut Rng) -> Vec<String> {
    let fields = json!([
        { "name": "code", "type": "text", "isUnique": true },
        { "name": "kind", "type": "integer", "indexed": true },
        { "name": "state", "type": "text" },
    ]);
    for object in ["task", "project", "label"] {
        admin.define(object, fields.clone()).await;
    }
    for (name, kind, target) in
        [("project", "many_to_one", "project"), ("tags", "many_to_many", "label"), ("assignee", "many_to_one", "users")]
    {
        admin.relate(json!({ "name": name, "kind": kind, "source": "task", "target": target })).await;
    }
    let records = (0..PROJECTS).map(|number| record(random, "project", number)).collect();
    let projects = make_all(admin, "project", records).await;
    let records = (0..LABELS).map(|number| record(random, "label", number)).collect();
    let labels = make_all(admin, "label", records).await;
    let assignee = admin.get("/api/v1/me").await.json()["userId"].take();
    let mut records = Vec::with_capacity(TASKS);
    for number in 0..TASKS {
        let mut task = record(random, "task", number);
        // Some projects have no task, and some tasks have no project.
        task["assignee_id"] = if random.bool() { assignee.clone() } else { Value::Null };
        task["project_id"] = json!(projects.get(random.usize(..PROJECTS * 2 / 3)).filter(|_| random.u8(..4) > 0));
        records.push(task);
    }
    let tasks = make_all(admin, "task", records).await;
    for label in &labels {
        let linked: Vec<&String> = tasks.iter().filter(|_| random.u8(..12) == 0).collect();
        let answer = admin.post(&format!("/api/v1/data/label/{label}/links/tags"), json!({ "ids": linked })).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    tasks
}

/// A random test of a record.
fn leaf(random: &mut Rng, object: &str) -> Value {
    let (kind, state) = (random.u8(..KINDS), STATES[random.usize(..STATES.len())]);
    match random.u8(..7) {
        0 => json!({ "kind": kind }),
        1 => json!({ "kind": { "gt": kind } }),
        2 => json!({ "kind": { "neq": kind } }),
        3 => json!({ "kind": { "in": [kind, null] } }),
        4 => json!({ "state": state }),
        5 => json!({ "state": null }),
        _ => json!({ "code": format!("{object}{}", random.usize(..LABELS)) }),
    }
}

/// A random condition that excludes rows, and its object.
fn excluding(random: &mut Rng) -> (&'static str, Value) {
    let (kind, state) = (random.u8(..KINDS), STATES[random.usize(..STATES.len())]);
    match random.u8(..9) {
        0 => ("task", json!({ "_not": leaf(random, "task") })),
        1 => ("task", json!({ "_not": { "project": leaf(random, "project") } })),
        2 => ("task", json!({ "project": { "kind": { "neq": kind } } })),
        3 => ("task", json!({ "project.code": { "neq": format!("project{kind}") } })),
        4 => ("task", json!({ "tags": { "none": leaf(random, "label") } })),
        5 => ("task", json!({ "tags": { "every": leaf(random, "label") } })),
        6 => ("task", json!({ "_not": { "state": state, "project": leaf(random, "project") } })),
        7 => ("project", json!({ "task_by_project": { "none": leaf(random, "task") } })),
        _ => ("task", json!({ "_not": { "project": { "task_by_project": { "some": leaf(random, "task") } } } })),
    }
}

/// The number of rows that a request finds: the total of a list, and an aggregate.
async fn counts(who: &Admin<'_>, object: &str, condition: &Value, more: &str) -> [u64; 2] {
    let query = format!("where={}{more}", encoded(&condition.to_string()));
    let list = who.get(&format!("/api/v1/data/{object}?pageSize=1&{query}")).await;
    let aggregate = who.get(&format!("/api/v1/data/{object}/aggregate?fn=count&{query}")).await;
    let numbers = [list.json()["pagination"]["totalCount"].as_u64(), aggregate.data()["value"].as_u64()];
    numbers.map(|number| number.unwrap_or_else(|| panic!("{condition}{more}: {} {}", list.text, aggregate.text)))
}

on_both_engines! {
    async fn totals_of_excluding_conditions_are_those_of_the_rows_left(server: Server) {
        let admin = server.admin().await;
        let mut random = Rng::with_seed(7);
        let tasks = fill(&admin, &mut random).await;
        let related = ["project", "label"].map(|object| json!({ "resource": object, "actions": ["read"] }));
        let [of_projects, of_labels] = &related;
        let of_own = json!({ "resource": "task", "actions": ["read", "create"], "rowPolicy": "own" });
        let of_kinds = json!({ "resource": "task", "actions": ["read"], "where": { "kind": { "neq": 1 } } });
        let own = user(&admin, "own", json!([of_own, of_projects, of_labels])).await;
        let some = user(&admin, "some", json!([of_kinds, of_projects, of_labels])).await;
        let of_some_projects = json!({
            "resource": "project",
            "actions": ["read"],
            "where": { "kind": { "neq": 2 } },
            "fields": { "read": ["code", "kind"] },
        });
        // The user reads the codes of the other projects. Their kinds are null.
        let of_others = json!({
            "resource": "project",
            "actions": ["read"],
            "where": { "kind": 2 },
            "fields": { "read": ["code"] },
        });
        let all_tasks = json!({ "resource": "task", "actions": ["read"] });
        let cut = user(&admin, "cut", json!([all_tasks, of_some_projects, of_others, of_labels])).await;
        make_all(&own, "task", (0..OWN).map(|number| record(&mut random, "own", number)).collect()).await;
        // All tasks that a user sees, without a condition of the request.
        assert_eq!(counts(&own, "task", &json!({}), "").await, [OWN as u64; 2]);
        let [total, counted] = counts(&some, "task", &json!({}), "").await;
        assert!(total == counted && total > 0, "{total} {counted}");

        let mut totals = BTreeSet::new();
        for round in 0..2 {
            for _ in 0..CONDITIONS {
                let (object, condition) = excluding(&mut random);
                for (name, who, more) in [
                    ("admin", &admin, ""),
                    ("admin", &admin, "&state=alpha"),
                    ("admin", &admin, "&search=beta"),
                    ("own", &own, ""),
                    ("some", &some, ""),
                    ("cut", &cut, ""),
                ] {
                    // This user reads only the codes and kinds of projects, so they cannot test a state.
                    if name == "cut" && condition.pointer("/_not/project/state").is_some() {
                        continue;
                    }
                    let [total, counted] = counts(who, object, &condition, more).await;
                    assert_eq!(total, counted, "{name}, round {round}: {object} {condition}{more}");
                    totals.insert(total);
                }
            }
            // The stored number of all rows follows the writes.
            for id in tasks.iter().skip(round * DELETED).take(DELETED) {
                assert_eq!(admin.delete(&format!("/api/v1/data/task/{id}")).await.status, 204);
            }
        }
        assert!(totals.len() > CONDITIONS, "{totals:?}");

        // Users are counted like records. The admin is the only assignee.
        let [users, _] = counts(&admin, "users", &json!({}), "").await;
        let unassigned = json!({ "task_by_assignee": { "none": { "state": "alpha" } } });
        assert_eq!(counts(&admin, "users", &unassigned, "").await, [users - 1; 2]);
        // Nearly all tasks are excluded.
        admin.make("task", json!({ "code": "last", "kind": KINDS })).await;
        let kinds: Vec<Value> = (0..KINDS).map(|kind| json!(kind)).chain([Value::Null]).collect();
        let last = json!({ "_not": { "kind": { "in": kinds } } });
        for who in [&admin, &some, &cut] {
            assert_eq!(counts(who, "task", &last, "").await, [1; 2]);
        }
        assert_eq!(counts(&own, "task", &last, "").await, [0; 2]);
    }
}
