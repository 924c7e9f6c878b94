//! Pages with conditions on related rows. Whichever way leads to a page, it has the rows of the list, in their order.

use std::collections::HashMap;

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use super::{backward, encoded, forward, page};
use crate::accounts::roles::{role, user};

const PROJECTS: usize = 40;
const TASKS: usize = 400;
/// The first tasks have no parent. They are the parents of others.
const PARENTS: usize = 100;
/// The last label is on only a few tasks.
const LABELS: usize = 5;

/// Four in five tasks have a project.
fn project_of(task: usize) -> Option<usize> {
    (task % 5 != 4).then_some(task % PROJECTS)
}

fn parent_of(task: usize) -> Option<usize> {
    (task >= PARENTS && task.is_multiple_of(3)).then_some(task % PARENTS)
}

fn is_labeled(task: usize, label: usize) -> bool {
    task.is_multiple_of(if label + 1 == LABELS { 150 } else { label + 2 })
}

async fn make_all(admin: &Admin<'_>, object: &str, records: Vec<Value>) -> Vec<String> {
    let made = admin.post(&format!("/api/v1/data/{object}/bulk"), json!({ "data": records })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json()["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Makes the objects `task` (project, parent, tags), `project` and `label`, and their rows. Returns the ids of the projects and
/// of the tasks, in the order of their numbers.
async fn fill(admin: &Admin<'_>) -> [Vec<String>; 2] {
    let fields = json!([
        { "name": "number", "type": "integer", "required": true, "indexed": true },
        { "name": "kind", "type": "integer", "indexed": true },
        { "name": "text", "type": "text" },
        // SQLite has columns with these names in its own tables of lists.
        { "name": "key", "type": "text" },
        { "name": "value", "type": "integer" },
    ]);
    for object in ["task", "project", "label"] {
        admin.define(object, fields.clone()).await;
    }
    for (name, kind, target) in
        [("project", "many_to_one", "project"), ("parent", "many_to_one", "task"), ("tags", "many_to_many", "label")]
    {
        admin.relate(json!({ "name": name, "kind": kind, "source": "task", "target": target })).await;
    }
    let record = |number: usize| {
        let (kind, text, value) = (number % 10, format!("{}", number % 2), number % 3);
        json!({ "number": number, "kind": kind, "text": text, "key": "k", "value": value })
    };
    let projects = make_all(admin, "project", (0..PROJECTS).map(record).collect()).await;
    let mut tasks: Vec<String> = Vec::new();
    for numbers in [0..PARENTS, PARENTS..TASKS] {
        let task = |number: usize| {
            let mut task = record(number);
            task["project_id"] = json!(project_of(number).map(|project| &projects[project]));
            task["parent_id"] = json!(parent_of(number).map(|parent| &tasks[parent]));
            task
        };
        let made = make_all(admin, "task", numbers.map(task).collect()).await;
        tasks.extend(made);
    }
    for (label, id) in make_all(admin, "label", (0..LABELS).map(record).collect()).await.iter().enumerate() {
        let linked: Vec<&String> = (0..TASKS).filter(|task| is_labeled(*task, label)).map(|task| &tasks[task]).collect();
        let answer = admin.post(&format!("/api/v1/data/label/{id}/links/tags"), json!({ "ids": linked })).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    [projects, tasks]
}

type Expected = Box<dyn Fn(usize) -> bool>;

fn of_tasks() -> Vec<(Value, Expected)> {
    let row = |condition: Value, meets: fn(usize) -> bool| (condition, Box::new(meets) as Expected);
    vec![
        // Few projects that an index finds, alone and with other tests; one that has no tasks; and half of all projects.
        row(json!({ "project": { "kind": 3 } }), |task| project_of(task).is_some_and(|project| project % 10 == 3)),
        row(json!({ "project": { "number": { "in": [1, 2, 3, 5, 7, 11, 13, 17, 19, 23] } } }), |task| {
            project_of(task).is_some_and(|project| [1, 2, 3, 5, 7, 11, 13, 17, 19, 23].contains(&project))
        }),
        row(json!({ "text": "1", "project": { "kind": 3 } }), |task| {
            task % 2 == 1 && project_of(task).is_some_and(|project| project % 10 == 3)
        }),
        row(json!({ "project": { "kind": 3 }, "tags": { "some": { "text": "1" } } }), |task| {
            project_of(task).is_some_and(|project| project % 10 == 3) && (is_labeled(task, 1) || is_labeled(task, 3))
        }),
        row(json!({ "project": { "number": 4 } }), |task| project_of(task) == Some(4)),
        row(json!({ "project": { "number": 1000 } }), |_| false),
        row(json!({ "project": { "text": "1" } }), |task| project_of(task).is_some_and(|project| project % 2 == 1)),
        // A relation of an object to itself.
        row(json!({ "parent": { "kind": 2 } }), |task| parent_of(task).is_some_and(|parent| parent % 10 == 2)),
        row(json!({ "parent": { "kind": 2 }, "project": { "text": "0" } }), |task| {
            parent_of(task).is_some_and(|parent| parent % 10 == 2) && project_of(task).is_some_and(|project| project % 2 == 0)
        }),
        row(json!({ "task_by_parent": { "some": { "kind": 2 } } }), |task| {
            (0..TASKS).any(|child| child % 10 == 2 && parent_of(child) == Some(task))
        }),
        row(json!({ "task_by_parent": { "some": { "text": "1" } } }), |task| {
            (0..TASKS).any(|child| child % 2 == 1 && parent_of(child) == Some(task))
        }),
        // A label on few tasks, and labels on many.
        row(json!({ "tags": { "some": { "number": 4 } } }), |task| is_labeled(task, 4)),
        row(json!({ "tags": { "some": { "number": { "in": [0, 1, 4] } } } }), |task| {
            is_labeled(task, 0) || is_labeled(task, 1) || is_labeled(task, 4)
        }),
        row(json!({ "project.task_by_project": { "some": { "value": 2 } } }), |task| {
            project_of(task).is_some_and(|project| (0..TASKS).any(|other| other % 3 == 2 && project_of(other) == Some(project)))
        }),
    ]
}

fn of_projects() -> Vec<(Value, Expected)> {
    let row = |condition: Value, meets: fn(usize) -> bool| (condition, Box::new(meets) as Expected);
    vec![
        // Several of these tasks have the same project, and some have none.
        row(json!({ "task_by_project": { "some": { "kind": 2 } } }), |project| {
            (0..TASKS).any(|task| task % 10 == 2 && project_of(task) == Some(project))
        }),
        row(json!({ "task_by_project": { "some": { "number": { "in": [4, 6, 46, 86, 7, 9] } } } }), |project| {
            [4, 6, 46, 86, 7, 9].iter().any(|task| project_of(*task) == Some(project))
        }),
    ]
}

/// Compares the pages of a list with the ids that it has. Returns the first fault.
async fn problem(who: &Admin<'_>, object: &str, query: &str, expected: &[String]) -> Option<String> {
    let size = 26;
    if forward(who, object, query, size).await != expected {
        return Some(format!("\n  {object}?{query}: forward"));
    }
    if backward(who, object, query, size).await != expected {
        return Some(format!("\n  {object}?{query}: backward"));
    }
    // Pages by their number begin in the middle of others, with and without a total.
    for (offset, count) in [(0, ""), (0, "&count=none"), (7, "&count=none"), (33, ""), (120, "&count=none")] {
        let listed = page(who, object, &format!("{query}&limit={size}&offset={offset}{count}")).await;
        let of_page = expected.iter().skip(offset).take(size);
        let has_next = offset + size < expected.len();
        let total = &listed.pagination["totalCount"];
        let is_counted = if count.is_empty() { *total == expected.len() } else { total.is_null() };
        if !listed.ids.iter().eq(of_page) || listed.is("hasNextPage") != has_next || !is_counted {
            return Some(format!("\n  {object}?{query}: from {offset}{count}: {}", listed.pagination));
        }
    }
    None
}

on_both_engines! {
    async fn pages_of_related_rows_are_those_of_the_list(server: Server) {
        let admin = server.admin().await;
        let [projects, tasks] = fill(&admin).await;
        role(&admin, "clerk", json!([
            { "resource": "task", "actions": ["read"], "where": { "value": { "neq": 1 } } },
            { "resource": "project", "actions": ["read"] },
            { "resource": "label", "actions": ["read"] },
        ])).await;
        let (clerk, _) = user(&admin, "clerk", Some("clerk")).await;
        let mut wrong = Vec::new();
        for sort in ["select=id", "sort=created_at", "sort=-kind", "sort=id"] {
            for (object, ids, conditions) in [("task", &tasks, of_tasks()), ("project", &projects, of_projects())] {
                let numbers: HashMap<&str, usize> = ids.iter().enumerate().map(|(number, id)| (id.as_str(), number)).collect();
                let all = forward(&admin, object, sort, 100).await;
                assert_eq!(all.len(), ids.len());
                for (condition, meets) in conditions {
                    let query = format!("{sort}&where={}", encoded(&condition.to_string()));
                    let meeting: Vec<String> = all.iter().filter(|id| meets(numbers[id.as_str()])).cloned().collect();
                    wrong.extend(problem(&admin, object, &query, &meeting).await);
                    // A condition on related tasks counts only those that its caller may read, so the clerk's pages would differ.
                    let reads_tasks = condition.to_string().contains("task_by_");
                    if object == "task" && !reads_tasks && condition.get("parent").is_none() {
                        let seen: Vec<String> =
                            meeting.iter().filter(|id| numbers[id.as_str()] % 3 != 1).cloned().collect();
                        wrong.extend(problem(&clerk, object, &query, &seen).await.map(|problem| format!("{problem} (clerk)")));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.concat());
    }
}
