//! Conditions on so many related rows that the server uses other statements for SQLite.

use std::collections::{BTreeSet, HashMap};

use blockbase_query::End;
use blockbase_query::plan::RelatedBy;
use blockbase_query::sql::{self, KeyRows, LinkSample, Sample};
use blockbase_schema::Registry;
use blockbase_tests::{Admin, Engine, Server, on_both_engines};
use serde_json::{Value, json};

use crate::data::conditions::encoded;
use crate::data::search::{dialect, planned_in, registry, with_values};

const PROJECTS: usize = 1_200;
const TASKS: usize = 6_000;
const LABELS: usize = 12;

/// Three in four tasks have a project. The older the task, the older its project.
fn project_of(task: usize) -> Option<usize> {
    (task % 4 != 3).then_some(task * PROJECTS / TASKS)
}

fn is_labeled(task: usize, label: usize) -> bool {
    // The last label is on only a few tasks, and the others are on hundreds to thousands of tasks.
    task.is_multiple_of(if label + 1 == LABELS { 1_500 } else { label + 1 })
}

fn kind(project: usize) -> usize {
    project % 10
}

/// Whether a project has a task for which `test` is true.
fn has_task(project: usize, test: impl Fn(usize) -> bool) -> bool {
    let first = project * TASKS / PROJECTS;
    (first..first + TASKS / PROJECTS).any(|task| project_of(task) == Some(project) && test(task))
}

/// Makes records with bulk calls, and returns their ids.
pub(super) async fn make_all(admin: &Admin<'_>, object: &str, records: Vec<Value>) -> Vec<String> {
    let mut ids = Vec::new();
    for chunk in records.chunks(1000) {
        let made = admin.post(&format!("/api/v1/data/{object}/bulk"), json!({ "data": chunk })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        ids.extend(made.json()["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()));
    }
    ids
}

/// Makes the objects `task` (project, tags), `project` and `label`, and their rows. Their numbers begin with 0.
async fn fill(admin: &Admin<'_>) {
    let number = json!({ "name": "number", "type": "integer", "required": true, "indexed": true });
    let code = json!({ "name": "code", "type": "text", "isUnique": true });
    let kind_of = json!({ "name": "kind", "type": "integer", "indexed": true });
    let text = json!({ "name": "text", "type": "text" });
    admin.define("task", json!([number, code, kind_of, text])).await;
    admin.define("project", json!([number, code, kind_of, text])).await;
    admin.define("label", json!([number, text])).await;
    for (name, kind, target) in [("project", "many_to_one", "project"), ("tags", "many_to_many", "label")] {
        admin.relate(json!({ "name": name, "kind": kind, "source": "task", "target": target })).await;
    }
    let record = |object: &str, number: usize| json!({ "number": number, "code": format!("{object}{number}"), "kind": number % 10, "text": format!("{}", number % 2) });
    let projects = make_all(admin, "project", (0..PROJECTS).map(|number| record("p", number)).collect()).await;
    let task = |number: usize| {
        let mut task = record("t", number);
        task["project_id"] = json!(project_of(number).map(|project| &projects[project]));
        task
    };
    let tasks = make_all(admin, "task", (0..TASKS).map(task).collect()).await;
    let labels = make_all(
        admin,
        "label",
        (0..LABELS).map(|number| json!({ "number": number, "text": format!("{}", number % 2) })).collect(),
    )
    .await;
    for (label, id) in labels.iter().enumerate() {
        let linked: Vec<&String> = (0..TASKS).filter(|task| is_labeled(*task, label)).map(|task| &tasks[task]).collect();
        for chunk in linked.chunks(500) {
            let answer = admin.post(&format!("/api/v1/data/label/{id}/links/tags"), json!({ "ids": chunk })).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    }
}

/// For a condition that the `expected` rows meet, checks the totals, and the pages in several orders. Returns the first fault.
async fn problem(admin: &Admin<'_>, object: &str, condition: &Value, expected: &BTreeSet<usize>) -> Option<String> {
    let path = format!("/api/v1/data/{object}?select=number&where={}", encoded(&condition.to_string()));
    let aggregate = format!("/api/v1/data/{object}/aggregate?fn=count&where={}", encoded(&condition.to_string()));
    let counted = admin.get(&aggregate).await;
    if counted.status != 200 || counted.data()["value"] != expected.len() {
        return Some(format!("\n  {object} {condition}: {} expected, counted {}", expected.len(), counted.text));
    }
    let groups = admin.get(&aggregate.replace("fn=count", "fn=count&groupBy=text")).await;
    let grouped = groups.data();
    let counts = grouped.as_array().into_iter().flatten().filter_map(|group| group["count"].as_u64());
    if counts.sum::<u64>() != expected.len() as u64 {
        return Some(format!("\n  {object} {condition}: {} expected in groups, not {}", expected.len(), groups.text));
    }
    let ascending: Vec<usize> = expected.iter().copied().collect();
    let by_cursor = admin.get(&format!("{path}&sort=number&count=exact&pageSize=25&cursor=")).await;
    let pagination = &by_cursor.json()["pagination"];
    let is_right = pagination["totalCount"] == ascending.len() && pagination["hasNextPage"] == (ascending.len() > 25);
    if !is_right || !numbers(&by_cursor.json()).iter().eq(ascending.iter().take(25)) {
        return Some(format!("\n  {object} {condition}, by cursor: not {}", by_cursor.text));
    }
    for (query, offset) in [
        ("count=none&sort=number", 0),
        ("count=none&sort=number", 30),
        ("sort=number", 40),
        ("sort=number", 5_400),
        ("count=none&sort=text,number", 0),
    ] {
        let answer = admin.get(&format!("{path}&{query}&limit=25&offset={offset}")).await;
        let found: Vec<usize> = numbers(&answer.json());
        let mut ordered = ascending.clone();
        if query.contains("text") {
            ordered.sort_by_key(|number| (number % 2, *number));
        }
        let page: Vec<usize> = ordered.iter().copied().skip(offset).take(25).collect();
        let total = &answer.json()["pagination"]["totalCount"];
        let has_next = answer.json()["pagination"]["hasNextPage"] == (offset + 25 < ordered.len());
        if found != page || !has_next || !(total.is_null() || *total == ordered.len()) {
            return Some(format!("\n  {object} {condition}, {query} from {offset}: {page:?} expected, not {}", answer.text));
        }
    }
    // All pages in the usual order, which is by the time of creation.
    let newest = admin.get(&format!("{path}&count=none&limit=100")).await;
    let found = numbers(&newest.json());
    let is_full = found.len() == expected.len().min(100) && found.iter().all(|number| expected.contains(number));
    (!is_full).then(|| format!("\n  {object} {condition}: not {}", newest.text))
}

/// If a sample decides how SQLite judges a condition, returns the way that it chooses, and checks that the statements of all ways
/// find the `expected` rows.
async fn way(
    server: &Server,
    registry: &Registry,
    object: &str,
    condition: &Value,
    expected: &BTreeSet<usize>,
) -> Option<RelatedBy> {
    let (object, condition, dialect) = (registry.object(object).unwrap(), condition.to_string(), dialect(server));
    for sort in ["number", "text,number"] {
        let query = [("where", condition.as_str()), ("select", "number"), ("sort", sort), ("count", "none")];
        let mut plan = planned_in(registry, object, &query);
        sql::sample(dialect, object, &plan.selection).or_else(|| sql::link_sample(dialect, object, &plan.selection))?;
        let mut ordered: Vec<usize> = expected.iter().copied().collect();
        if sort != "number" {
            ordered.sort_by_key(|number| (number % 2, *number));
        }
        for by in [RelatedBy::List, RelatedBy::Row, RelatedBy::Link] {
            plan.selection.related_by = by;
            let total = server.sql(&with_values(dialect, sql::count(dialect, object, &plan.selection))).await;
            assert_eq!(total, [[expected.len().to_string()]], "{by:?} {condition}");
            for offset in [0, 5] {
                plan.paging.offset = offset;
                // Without a total, a page reads one more row.
                let page: Vec<String> = ordered.iter().skip(offset as usize).take(26).map(usize::to_string).collect();
                let found = server.sql(&with_values(dialect, sql::list(dialect, &plan, None))).await;
                // The id comes first.
                let numbers: Vec<&String> = found.iter().map(|row| &row[1]).collect();
                assert_eq!(numbers, page.iter().collect::<Vec<_>>(), "{by:?} {condition} {sort} {offset}");
            }
        }
    }
    let plan = planned_in(registry, object, &[("where", condition.as_str())]);
    let (of_keys, of_links) = (sql::sample(dialect, object, &plan.selection), sql::link_sample(dialect, object, &plan.selection));
    let row = server.sql(&with_values(dialect, of_keys.or(of_links)?)).await.concat();
    let row: Vec<i64> = row.iter().map(|cell| cell.parse().unwrap()).collect();
    if let [taken, links, met, reads, late, rows, related_rows] = row[..] {
        assert!(taken == 0 || taken == 48, "{condition}: {row:?}");
        assert!((0..=taken * 16).contains(&links) && (0..=links).contains(&met), "{condition}: {row:?}");
        assert!((0..=links).contains(&reads) && (0..=taken).contains(&late), "{condition}: {row:?}");
        let (tasks, labels) = (TASKS as i64, LABELS as i64);
        let sizes = if object.name() == "task" { [tasks, labels] } else { [labels, tasks] };
        assert!(rows == sizes[0] && [0, sizes[1]].contains(&related_rows), "{condition}: {row:?}");
        return Some(LinkSample { taken, links, met, reads, late, rows, related_rows }.related_by());
    }
    let [taken, met, late, rows, related_rows] = row[..] else { panic!("{row:?}") };
    assert!((1..=48).contains(&taken) && [met, late].iter().all(|part| (0..=taken).contains(part)), "{condition}: {row:?}");
    assert_eq!([rows, related_rows], [PROJECTS as i64, TASKS as i64]);
    Some(Sample { taken, met, late, rows, related_rows }.related_by())
}

/// On SQLite, counts the rows of the keys that lead to a page. Checks that more of the first rows give the same page as the
/// statement for all cases.
async fn more_first_rows_give_the_same_page(server: &Server, registry: &Registry) {
    let (task, dialect) = (registry.object("task").unwrap(), dialect(server));
    let condition = json!({ "project": { "kind": 3 } }).to_string();
    let rows = server.sql("SELECT svc_rowid, \"number\" FROM \"task\"").await;
    let numbers: HashMap<&String, &String> = rows.iter().map(|row| (&row[0], &row[1])).collect();
    for (sort, offset) in [("", 0), ("", 30), ("created_at", 0)] {
        let query = [("where", condition.as_str()), ("select", "number"), ("sort", sort), ("count", "none")];
        let mut plan = planned_in(registry, task, &query);
        let counted = server.sql(&with_values(dialect, sql::rows_of_keys(dialect, &plan).unwrap())).await.concat();
        let counted: Vec<i64> = counted.iter().map(|cell| cell.parse().unwrap()).collect();
        // Each of these projects has three or four tasks. The first 64 are counted.
        assert_eq!([counted[0], counted[2]], [PROJECTS as i64 / 10, TASKS as i64]);
        assert!((64 * 3..=64 * 4).contains(&counted[1]), "{counted:?}");
        plan.paging.offset = offset;
        let page = server.sql(&with_values(dialect, sql::list(dialect, &plan, None))).await;
        assert_eq!(page.len(), 26);
        let likely = sql::likely_of_list(dialect, &plan, KeyRows { keys: 1000, rows_of_first: 640, rows: 1_000_000 }).unwrap();
        let places = server.sql(&with_values(dialect, likely.statement)).await;
        let found: Vec<&String> = places.iter().map(|row| numbers[&row[0]]).collect();
        // The id comes first.
        assert_eq!(found, page.iter().map(|row| &row[1]).collect::<Vec<_>>(), "{sort} {offset}");
    }
}

/// On SQLite, checks that the first rows and the next rows together give the same page as the statement for all cases.
async fn next_rows_give_the_rest_of_the_page(server: &Server, registry: &Registry) {
    let dialect = dialect(server);
    for (name, condition, offsets, windows) in [
        (
            "task",
            json!({ "project": { "kind": { "lt": 1 } } }),
            [0, 10],
            [(End::First, 100, None), (End::Last, 5_000, None), (End::First, 100, Some(400)), (End::Last, 400, Some(100))],
        ),
        (
            "project",
            json!({ "task_by_project": { "some": { "kind": { "gte": 9 } } } }),
            [0, 3],
            [(End::First, 10, None), (End::Last, 1_000, None), (End::First, 10, Some(112)), (End::Last, 112, Some(10))],
        ),
    ] {
        let (object, condition) = (registry.object(name).unwrap(), condition.to_string());
        let rows = server.sql(&format!("SELECT svc_rowid, \"number\", \"id\" FROM \"{name}\"")).await;
        let numbers: HashMap<&String, &String> = rows.iter().map(|row| (&row[0], &row[1])).collect();
        let ids: HashMap<&String, &String> = rows.iter().map(|row| (&row[1], &row[2])).collect();
        let query = [("where", condition.as_str()), ("select", "number"), ("sort", "number"), ("count", "none")];
        let mut plan = planned_in(registry, object, &query);
        for offset in offsets {
            plan.paging.offset = offset;
            let page = server.sql(&with_values(dialect, sql::list(dialect, &plan, None))).await;
            assert_eq!(page.len(), 26);
            let first = sql::first_of_list(dialect, &plan).unwrap();
            let mut places = server.sql(&with_values(dialect, first.statement)).await;
            let next = sql::next_of_list(dialect, &plan, places.len()).expect("the next rows");
            assert_eq!(places.len() + next.rows, 26);
            places.extend(server.sql(&with_values(dialect, next.statement)).await);
            let found: Vec<&String> = places.iter().map(|row| numbers[&row[0]]).collect();
            // The id comes first.
            assert_eq!(found, page.iter().map(|row| &row[1]).collect::<Vec<_>>(), "{name} {offset}");
        }
        // Pages that begin after a row or before one. If they end at another row, they end before they are full.
        plan.paging.offset = 0;
        for (end, from, until) in windows {
            let position = |number: usize| {
                let text = format!("[{number},\"{}\"]", ids[&number.to_string()]);
                plan.position(&text).expect("a position")
            };
            let (begins_at, stops_at) = (position(from), until.map(position));
            let parts = plan.parts(dialect, end, Some(&begins_at), stops_at.as_ref());
            let [part] = parts.as_slice() else { panic!("{parts:?}") };
            let page = server.sql(&with_values(dialect, sql::list_part(dialect, &plan, part, 26, None))).await;
            let first = sql::first_of_part(dialect, &plan, part, 26).unwrap();
            let mut places = server.sql(&with_values(dialect, first.statement)).await;
            let next = sql::next_of_part(dialect, &plan, part, 26, places.len()).expect("the next rows");
            assert_eq!(places.len() + next.rows, 26);
            places.extend(server.sql(&with_values(dialect, next.statement)).await);
            let is_end = places.last().is_some_and(|row| row[0] == sql::END_OF_PLACES.to_string());
            assert_eq!((is_end, page.len() < 26), (until.is_some(), until.is_some()), "{name} {end:?} {from}");
            places.truncate(places.len() - usize::from(is_end));
            let found: Vec<&String> = places.iter().map(|row| numbers[&row[0]]).collect();
            assert_eq!(found, page.iter().map(|row| &row[1]).collect::<Vec<_>>(), "{name} {end:?} {from}");
        }
    }
}

/// On SQLite, checks that the different keys of a page are read only if not too many related rows meet the condition.
async fn keys_of_too_many_related_rows_are_not_read(server: &Server, registry: &Registry) {
    let (label, dialect) = (registry.object("label").unwrap(), dialect(server));
    for (test, keys, is_cut) in [
        // 100 tasks have links to the labels 0, 2, 4, 6, 8 and 10.
        (json!({ "number": { "in": (1..200).step_by(2).collect::<Vec<usize>>() } }), 6, "0"),
        // These are 1200 tasks. The statement reads one of their links, which shows that there are more.
        (json!({ "kind": { "in": [1, 2] } }), 1, "1"),
    ] {
        let condition = json!({ "tags": { "some": test } }).to_string();
        let plan = planned_in(registry, label, &[("where", condition.as_str()), ("count", "none")]);
        let read = sql::different_keys_of_page(dialect, &plan).unwrap();
        let rows = server.sql(&with_values(dialect, read.statement)).await;
        assert!(rows.len() == keys && rows.iter().all(|row| row[1] == is_cut), "{condition}: {rows:?}");
    }
}

pub(super) fn numbers(list: &Value) -> Vec<usize> {
    let rows = list["data"].as_array().map_or(&[][..], Vec::as_slice);
    rows.iter().filter_map(|row| row["number"].as_u64()).map(|number| number as usize).collect()
}

type Expected = Box<dyn Fn(usize) -> bool>;

/// Conditions on projects. For each, a function says whether the project with a number meets it.
fn of_projects() -> Vec<(Value, Expected)> {
    let tasks = |condition: Value| json!({ "task_by_project": condition });
    let row = |condition: Value, meets: fn(usize) -> bool| (condition, Box::new(meets) as Expected);
    vec![
        row(tasks(json!({ "some": {} })), |project| has_task(project, |_| true)),
        row(tasks(json!({ "none": {} })), |project| !has_task(project, |_| true)),
        // Related rows that are rare, frequent or unique, or belong only to the oldest projects.
        row(tasks(json!({ "some": { "number": { "in": [0, 17, 2000, 5999] } } })), |project| {
            has_task(project, |task| [0, 17, 2000, 5999].contains(&task))
        }),
        // More than 100 related rows belong to 30 projects, which are not among the first ones in any order.
        row(tasks(json!({ "some": { "number": { "in": (3000..3150).collect::<Vec<usize>>() } } })), |project| {
            has_task(project, |task| (3000..3150).contains(&task))
        }),
        row(tasks(json!({ "some": { "text": "0" } })), |project| has_task(project, |task| task % 2 == 0)),
        row(tasks(json!({ "none": { "text": "0" } })), |project| !has_task(project, |task| task % 2 == 0)),
        row(tasks(json!({ "some": { "code": "t4000" } })), |project| has_task(project, |task| task == 4000)),
        row(tasks(json!({ "none": { "code": "t4000" } })), |project| !has_task(project, |task| task == 4000)),
        row(tasks(json!({ "some": { "code": "t3" } })), |_| false),
        row(tasks(json!({ "none": { "code": "t3" } })), |_| true),
        row(tasks(json!({ "none": { "code": "nothing" } })), |_| true),
        row(tasks(json!({ "some": { "number": { "lt": 3000 } } })), |project| has_task(project, |task| task < 3000)),
        row(tasks(json!({ "some": { "number": { "gte": 3000 } } })), |project| has_task(project, |task| task >= 3000)),
        row(tasks(json!({ "none": { "number": { "gte": 3000 } } })), |project| !has_task(project, |task| task >= 3000)),
        row(tasks(json!({ "every": { "text": "0" } })), |project| !has_task(project, |task| task % 2 != 0)),
        // Almost all related rows meet the condition, or none does. A sample of SQLite shows this.
        row(tasks(json!({ "some": { "number": { "gte": 5 } } })), |project| has_task(project, |task| task >= 5)),
        row(tasks(json!({ "none": { "number": { "gte": 5 } } })), |project| !has_task(project, |task| task >= 5)),
        // SQLite finds at least half of the page among the first rows, and the rest among the next ones.
        row(tasks(json!({ "some": { "kind": { "gte": 9 } } })), |project| has_task(project, |task| task % 10 >= 9)),
        row(tasks(json!({ "some": { "text": "2" } })), |_| false),
        row(tasks(json!({ "none": { "text": "2" } })), |_| true),
        // These conditions are combined with tests that few or many rows meet.
        row(json!({ "code": "p7", "task_by_project": { "some": { "text": "0" } } }), |project| project == 7),
        row(json!({ "number": { "in": [5, 6, 700] }, "task_by_project": { "some": { "text": "0" } } }), |project| {
            [5, 6, 700].contains(&project) && has_task(project, |task| task % 2 == 0)
        }),
        row(json!({ "number": { "in": [5, 6, 700] }, "task_by_project": { "none": { "number": 25 } } }), |project| {
            [5, 6, 700].contains(&project) && !has_task(project, |task| task == 25)
        }),
        row(json!({ "kind": 3, "task_by_project": { "some": { "kind": 2 } } }), |project| {
            kind(project) == 3 && has_task(project, |task| task % 10 == 2)
        }),
        row(json!({ "text": "1", "task_by_project": { "some": { "kind": { "gte": 4 } } } }), |project| {
            project % 2 == 1 && has_task(project, |task| task % 10 >= 4)
        }),
        row(json!({ "text": "1", "task_by_project": { "none": { "kind": { "gte": 8 } } } }), |project| {
            project % 2 == 1 && !has_task(project, |task| task % 10 >= 8)
        }),
        row(json!({ "text": "1", "task_by_project": { "some": { "kind": 8 }, "none": { "text": "1" } } }), |project| {
            project % 2 == 1 && has_task(project, |task| task % 10 == 8) && !has_task(project, |task| task % 2 == 1)
        }),
        row(json!({ "_or": [{ "kind": 1 }, { "task_by_project": { "some": { "kind": 2 } } }] }), |project| {
            kind(project) == 1 || has_task(project, |task| task % 10 == 2)
        }),
        row(json!({ "_or": [{ "text": "1" }, { "task_by_project": { "none": { "kind": { "lt": 5 } } } }] }), |project| {
            project % 2 == 1 || !has_task(project, |task| task % 10 < 5)
        }),
        // These conditions follow two relations.
        row(tasks(json!({ "some": { "tags": { "some": { "number": 11 } } } })), |project| {
            has_task(project, |task| is_labeled(task, 11))
        }),
        row(tasks(json!({ "some": { "tags": { "some": { "number": { "lt": 5 } } } } })), |project| has_task(project, |_| true)),
        row(tasks(json!({ "none": { "tags": { "none": { "number": 1 } } } })), |project| {
            !has_task(project, |task| !is_labeled(task, 1))
        }),
    ]
}

/// Conditions on tasks.
fn of_tasks() -> Vec<(Value, Expected)> {
    let row = |condition: Value, meets: fn(usize) -> bool| (condition, Box::new(meets) as Expected);
    let is_in = |task: usize, test: fn(usize) -> bool| project_of(task).is_some_and(test);
    let in_kind = move |task| is_in(task, |project| kind(project) == 3);
    vec![
        (json!({ "project": { "kind": 3 } }), Box::new(in_kind) as Expected),
        (json!({ "project": { "kind": { "neq": 3 } } }), Box::new(move |task| !in_kind(task))),
        row(json!({ "project": { "code": "p77" } }), |task| project_of(task) == Some(77)),
        row(json!({ "project": { "code": { "neq": "p77" } } }), |task| project_of(task) != Some(77)),
        row(json!({ "project": { "code": "nothing" } }), |_| false),
        row(json!({ "project": { "code": { "neq": "nothing" } } }), |_| true),
        row(json!({ "project": { "number": { "lt": 600 } } }), |task| project_of(task).is_some_and(|project| project < 600)),
        row(json!({ "project": { "number": { "gte": 3 } } }), |task| project_of(task).is_some_and(|project| project >= 3)),
        row(json!({ "project": { "kind": { "lt": 1 } } }), |task| project_of(task).is_some_and(|project| kind(project) < 1)),
        // For a page, SQLite reads the first tasks of each of 100 projects. Of 101 projects, it lists the tasks.
        row(json!({ "project": { "number": { "lt": 100 } } }), |task| project_of(task).is_some_and(|project| project < 100)),
        row(json!({ "project": { "number": { "lt": 101 } } }), |task| project_of(task).is_some_and(|project| project < 101)),
        row(json!({ "text": "1", "project": { "number": { "lt": 100 } } }), |task| {
            task % 2 == 1 && project_of(task).is_some_and(|project| project < 100)
        }),
        row(json!({ "text": "1", "project": { "number": { "lt": 101 } } }), |task| {
            task % 2 == 1 && project_of(task).is_some_and(|project| project < 101)
        }),
        row(json!({ "project": { "number": null } }), |task| project_of(task).is_none()),
        row(json!({ "text": "1", "project": { "kind": { "neq": 3 } } }), |task| {
            task % 2 == 1 && project_of(task).is_none_or(|project| kind(project) != 3)
        }),
        row(json!({ "number": { "in": (0..40).collect::<Vec<usize>>() }, "project": { "text": "1" } }), |task| {
            task < 40 && project_of(task).is_some_and(|project| project % 2 == 1)
        }),
        row(json!({ "code": "t8", "project": { "kind": { "lt": 9 } } }), |task| task == 8),
        row(json!({ "project": { "kind": 3, "code": "p13" } }), |task| project_of(task) == Some(13)),
        row(json!({ "project": { "kind": { "lte": 5 } }, "tags": { "some": { "number": { "gte": 10 } } } }), |task| {
            project_of(task).is_some_and(|project| kind(project) <= 5) && (is_labeled(task, 10) || is_labeled(task, 11))
        }),
        row(json!({ "_or": [{ "number": 5 }, { "project": { "number": { "in": [5, 6] } } }] }), |task| {
            task == 5 || matches!(project_of(task), Some(5 | 6))
        }),
        row(json!({ "_or": [{ "kind": 5 }, { "project": { "number": { "gt": 7 } } }] }), |task| {
            task % 10 == 5 || project_of(task).is_some_and(|project| project > 7)
        }),
        row(json!({ "tags": { "some": {} } }), |_| true),
        row(json!({ "tags": { "some": { "number": 11 } } }), |task| is_labeled(task, 11)),
        row(json!({ "tags": { "none": { "number": 11 } } }), |task| !is_labeled(task, 11)),
        row(json!({ "tags": { "some": { "number": { "in": [1, 2] } } } }), |task| is_labeled(task, 1) || is_labeled(task, 2)),
        row(json!({ "tags": { "none": { "number": { "in": [1, 2] } } } }), |task| !is_labeled(task, 1) && !is_labeled(task, 2)),
        row(json!({ "tags": { "every": { "number": { "neq": 4 } } } }), |task| !is_labeled(task, 4)),
        // No index finds these labels. Each task has the first one.
        row(json!({ "tags": { "some": { "text": "0" } } }), |_| true),
        row(json!({ "tags": { "none": { "text": "0" } } }), |_| false),
        row(json!({ "tags": { "some": { "text": "1" } } }), |task| (1..LABELS).step_by(2).any(|label| is_labeled(task, label))),
        row(json!({ "tags": { "none": { "text": "1" } } }), |task| !(1..LABELS).step_by(2).any(|label| is_labeled(task, label))),
        row(json!({ "project.task_by_project": { "some": { "kind": 0 } } }), |task| {
            project_of(task).is_some_and(|project| has_task(project, |task| task % 10 == 0))
        }),
        row(json!({ "project.task_by_project": { "none": { "kind": 0 } } }), |task| {
            project_of(task).is_none_or(|project| !has_task(project, |task| task % 10 == 0))
        }),
    ]
}

/// Conditions on labels.
fn of_labels() -> Vec<(Value, Expected)> {
    let row = |condition: Value, meets: fn(usize) -> bool| (condition, Box::new(meets) as Expected);
    vec![
        row(json!({ "tags": { "some": { "kind": 1 } } }), |label| {
            (0..TASKS).any(|task| task % 10 == 1 && is_labeled(task, label))
        }),
        // More than 100 links lead to few labels.
        row(json!({ "tags": { "some": { "number": { "in": (1..200).step_by(2).collect::<Vec<usize>>() } } } }), |label| {
            (1..200).step_by(2).any(|task| is_labeled(task, label))
        }),
        row(json!({ "tags": { "none": { "code": "t4500" } } }), |label| !is_labeled(4500, label)),
        row(json!({ "tags": { "some": { "text": "0" } } }), |_| true),
        row(json!({ "tags": { "none": { "text": "1" } } }), |label| !(1..TASKS).step_by(2).any(|task| is_labeled(task, label))),
    ]
}

on_both_engines! {
    async fn conditions_on_many_related_rows_find_what_they_mean(server: Server) {
        let admin = server.admin().await;
        fill(&admin).await;
        let registry = registry(&server).await;
        let (mut wrong, mut ways) = (Vec::new(), Vec::new());
        let all = [("project", PROJECTS, of_projects()), ("task", TASKS, of_tasks()), ("label", LABELS, of_labels())];
        for (object, rows, conditions) in all {
            for (condition, meets) in conditions {
                let expected: BTreeSet<usize> = (0..rows).filter(|number| meets(*number)).collect();
                wrong.extend(problem(&admin, object, &condition, &expected).await);
                ways.extend(way(&server, &registry, object, &condition, &expected).await);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.concat());
        if server.engine() == Engine::Sqlite {
            more_first_rows_give_the_same_page(&server, &registry).await;
            next_rows_give_the_rest_of_the_page(&server, &registry).await;
            keys_of_too_many_related_rows_are_not_read(&server, &registry).await;
        }
        let chooses = [RelatedBy::List, RelatedBy::Row, RelatedBy::Link].map(|by| ways.contains(&by));
        assert_eq!(chooses, [server.engine() == Engine::Sqlite; 3], "{ways:?}");
    }
}

on_both_engines! {
    async fn a_page_with_the_rows_of_few_related_rows_counts_each_row_once(server: Server) {
        let admin = server.admin().await;
        for object in ["project", "task", "step"] {
            admin.define(object, json!([{ "name": "number", "type": "integer", "required": true }])).await;
        }
        for (name, source, target) in [("project", "task", "project"), ("task", "step", "task")] {
            admin.relate(json!({ "name": name, "kind": "many_to_one", "source": source, "target": target })).await;
        }
        let one = admin.make("project", json!({ "number": 1 })).await;
        let other = admin.make("project", json!({ "number": 2 })).await;
        // Each task is created at its own time, and has several steps.
        for number in 0..10 {
            let task = admin.make("task", json!({ "number": number, "project_id": one })).await;
            make_all(&admin, "step", vec![json!({ "number": 1, "task_id": task }); 3]).await;
        }
        // None of the newest tasks meets the condition, so the page is not among the first rows that are judged.
        make_all(&admin, "task", vec![json!({ "number": 10, "project_id": other }); 200]).await;
        let condition = json!({ "project": { "number": 1 }, "step_by_task": { "some": { "number": 1 } } });
        let path = format!("/api/v1/data/task?select=number&count=none&limit=4&where={}", encoded(&condition.to_string()));
        for (offset, page) in [(0, [9_usize, 8, 7, 6]), (3, [6, 5, 4, 3])] {
            let answer = admin.get(&format!("{path}&offset={offset}")).await;
            assert_eq!(numbers(&answer.json()), page, "{offset}: {}", answer.text);
        }
    }
}

on_both_engines! {
    async fn totals_beside_an_indexed_test_count_the_rows_that_meet_both(server: Server) {
        const ROWS: usize = 2_400;
        let admin = server.admin().await;
        let fields = json!([
            { "name": "number", "type": "integer", "required": true },
            { "name": "kind", "type": "integer", "indexed": true },
            { "name": "text", "type": "text" },
        ]);
        for object in ["team", "person"] {
            admin.define(object, fields.clone()).await;
        }
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "person", "target": "team" })).await;
        let text = |number: usize| number / 8 % 2;
        let record = |number: usize| json!({ "number": number, "kind": number % 8, "text": text(number).to_string() });
        let teams = make_all(&admin, "team", (0..ROWS).map(record).collect()).await;
        // Each team has one person, of another kind.
        let team_of = |person: usize| (person + 3) % ROWS;
        let person_of = |team: usize| (team + ROWS - 3) % ROWS;
        let person = |number: usize| {
            let mut person = record(number);
            person["team_id"] = json!(teams[team_of(number)]);
            person
        };
        make_all(&admin, "person", (0..ROWS).map(person).collect()).await;
        // For SQLite, one person in eight is few in comparison with the teams, and two in eight are not.
        for kinds in [vec![1], vec![1, 2]] {
            let total = |meets: &dyn Fn(usize) -> bool| (0..ROWS).filter(|row| kinds.contains(&(row % 8)) && meets(*row)).count();
            for (object, related, expected) in [
                ("team", json!({ "person_by_team": { "some": { "text": "0" } } }), total(&|team| text(person_of(team)) == 0)),
                ("team", json!({ "person_by_team": { "none": { "text": "0" } } }), total(&|team| text(person_of(team)) != 0)),
                ("person", json!({ "team": { "text": "0" } }), total(&|person| text(team_of(person)) == 0)),
            ] {
                let mut condition = related;
                condition["kind"] = json!({ "in": kinds });
                let condition = encoded(&condition.to_string());
                let list = admin.get(&format!("/api/v1/data/{object}?count=exact&limit=1&where={condition}")).await;
                assert_eq!(list.json()["pagination"]["totalCount"], expected, "{object} {kinds:?}: {}", list.text);
                let counted = admin.get(&format!("/api/v1/data/{object}/aggregate?fn=count&where={condition}")).await;
                assert_eq!(counted.data()["value"], expected, "{object} {kinds:?}: {}", counted.text);
            }
        }
    }
}

on_both_engines! {
    async fn a_page_is_found_after_first_rows_that_do_not_meet_the_condition(server: Server) {
        const TEAMS: usize = 150;
        const PEOPLE: usize = 6_000;
        const NEWEST: usize = 260;
        let admin = server.admin().await;
        let fields = json!([{ "name": "number", "type": "integer" }, { "name": "kind", "type": "integer", "indexed": true }]);
        for object in ["team", "person"] {
            admin.define(object, fields.clone()).await;
        }
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "person", "target": "team" })).await;
        let teams = make_all(&admin, "team", (0..TEAMS).map(|number| json!({ "number": number, "kind": 1 })).collect()).await;
        let person = |number: usize| {
            let team = (!number.is_multiple_of(7) && number + NEWEST < PEOPLE).then(|| &teams[number % TEAMS]);
            json!({ "number": number, "team_id": team })
        };
        make_all(&admin, "person", (0..PEOPLE - NEWEST).map(person).collect()).await;
        make_all(&admin, "person", (PEOPLE - NEWEST..PEOPLE).map(person).collect()).await;
        let mut expected = Vec::new();
        for offset in (0..600).step_by(100) {
            let list = admin.get(&format!("/api/v1/data/person?select=number,team_id&count=none&limit=100&offset={offset}")).await;
            let mut rows = list.json()["data"].as_array().unwrap().clone();
            rows.retain(|row| !row["team_id"].is_null());
            expected.extend(numbers(&json!({ "data": rows })));
        }

        let condition = json!({ "team": { "kind": 1 } }).to_string();
        if server.engine() == Engine::Sqlite {
            let (registry, dialect) = (registry(&server).await, dialect(&server));
            let query = [("where", condition.as_str()), ("count", "none"), ("limit", "100")];
            let plan = planned_in(&registry, registry.object("person").unwrap(), &query);
            let first = sql::first_of_list(dialect, &plan).unwrap();
            assert_eq!(server.sql(&with_values(dialect, first.statement)).await.len(), 0, "none of the first rows");
            let counted = server.sql(&with_values(dialect, sql::rows_of_keys(dialect, &plan).unwrap())).await.concat();
            let counted: Vec<i64> = counted.iter().map(|cell| cell.parse().unwrap()).collect();
            let [keys, rows_of_first, rows] = counted[..] else { panic!("{counted:?}") };
            let likely = sql::likely_of_list(dialect, &plan, KeyRows { keys, rows_of_first, rows }).expect("more first rows");
            assert_eq!(server.sql(&with_values(dialect, likely.statement)).await.len(), likely.rows);
        }
        let path = format!("/api/v1/data/person?select=number&where={}", encoded(&condition));
        for offset in [0, 100, 140] {
            let list = admin.get(&format!("{path}&count=none&limit=100&offset={offset}")).await;
            assert_eq!(numbers(&list.json()), expected[offset..offset + 100], "{offset}: {}", list.text);
        }
        let mut from = "cursor=".to_owned();
        for page in expected.chunks(100).take(2) {
            let list = admin.get(&format!("{path}&pageSize=100&{from}")).await;
            assert_eq!(numbers(&list.json()), page, "{}", list.text);
            from = format!("after={}", encoded(list.json()["pagination"]["endCursor"].as_str().unwrap()));
        }
    }
}
