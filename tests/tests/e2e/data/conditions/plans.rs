//! The cost of a condition: indexes lead to the rows of a large table, and no statement reads all of its rows.

use blockbase_query::Dialect;
use blockbase_query::plan::RelatedBy;
use blockbase_query::sql::{self, Found};
use blockbase_schema::Registry;
use blockbase_tests::{Engine, Server, on_both_engines};
use serde_json::{Value, json};

use super::many::make_all;
use crate::data::search::{dialect, explained_statement, planned_in, registry};

const PROJECTS: usize = 2_000;
const TASKS: usize = 10_000;

/// The engine's plans of a page without its total, and of the total.
async fn explained(server: &Server, registry: &Registry, object: &str, condition: &Value) -> [String; 2] {
    let (object, condition) = (registry.object(object).unwrap(), condition.to_string());
    let plan = planned_in(registry, object, &[("where", condition.as_str()), ("count", "none")]);
    let dialect = dialect(server);
    let page = explained_statement(server, sql::list(dialect, &plan, None)).await;
    [page, explained_statement(server, sql::count(dialect, object, &plan.selection)).await]
}

/// Whether a plan reads all tasks, or all related rows.
///
/// SQLite shows aliases instead of the names of tables. The alias of related rows begins with `svc_related_`. The alias of a
/// subquery with the first rows of a page is the name of their table, so SQLite scans one more `task` for each of these.
pub(crate) fn reads_all_tasks(plan: &str) -> bool {
    let count = |end: &str| plan.lines().filter(|line| line.ends_with(end)).count();
    let subqueries = count(" CO-ROUTINE task") + count(" MATERIALIZE task");
    ["Seq Scan on task", "SCAN svc_related_"].iter().any(|scan| plan.contains(scan)) || count(" SCAN task") > subqueries
}

on_both_engines! {
    async fn indexes_lead_to_the_rows_of_a_condition(server: Server) {
        let admin = server.admin().await;
        let number = |name: &str, is_indexed: bool| json!({ "name": name, "type": "integer", "indexed": is_indexed });
        let code = json!({ "name": "code", "type": "text", "isUnique": true });
        admin.define("project", json!([number("kind", true)])).await;
        admin.define("task", json!([number("kind", true), code, number("free", false)])).await;
        for (name, kind) in [("project", "many_to_one"), ("tags", "many_to_many")] {
            admin.relate(json!({ "name": name, "kind": kind, "source": "task", "target": "project" })).await;
        }
        let projects = make_all(&admin, "project", (0..PROJECTS).map(|number| json!({ "kind": number % 500 })).collect()).await;
        let task = |number: usize| {
            let project = &projects[number % PROJECTS];
            json!({ "kind": number % 1_000, "code": format!("c{number}"), "free": number % 7, "project_id": project })
        };
        make_all(&admin, "task", (0..TASKS).map(task).collect()).await;
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"task\"").await;
            server.sql("ANALYZE \"project\"").await;
        }
        let registry = registry(&server).await;
        let index = |kind: &str, object: &str, column: &str| {
            let object = registry.object(object).unwrap();
            format!("svc_{kind}_{}_{}", object.id, object.column(column).unwrap().catalogue_key())
        };
        let (by_kind, by_code) = (index("ix", "task", "kind"), index("uq", "task", "code"));
        let (by_project, by_kind_of_project) = (index("ix", "task", "project_id"), index("ix", "project", "kind"));
        let of_tasks = |quantifier: &str, test: Value| json!({ "task_by_project": { quantifier: test } });
        for (object, condition, indexes) in [
            ("task", json!({ "_or": [{ "kind": 7 }, { "code": "c5" }] }), vec![&by_kind, &by_code]),
            ("task", json!({ "project": { "kind": 3 } }), vec![&by_kind_of_project, &by_project]),
            ("project", of_tasks("some", json!({ "kind": 7 })), vec![&by_kind]),
            ("project", of_tasks("none", json!({ "kind": 7 })), vec![&by_kind]),
        ] {
            let [page, total] = explained(&server, &registry, object, &condition).await;
            for plan in [&page, &total] {
                assert!(indexes.iter().all(|index| plan.contains(index.as_str())), "{condition}: {indexes:?}\n{plan}");
                assert!(!reads_all_tasks(plan), "{condition}\n{plan}");
            }
            // SQLite may read a page in the order of an index until the page is full. A total would read all of the index.
            assert!(!total.contains("SCAN task"), "{condition}\n{total}");
        }
        // For a total, they also lead to the tasks that a condition excludes.
        for (condition, indexes) in [
            (json!({ "project": { "kind": { "neq": 3 } } }), [&by_kind_of_project, &by_project]),
            (json!({ "kind": { "neq": 7 } }), [&by_kind; 2]),
        ] {
            let [_, total] = explained(&server, &registry, "task", &condition).await;
            assert!(indexes.iter().all(|index| total.contains(index.as_str())), "{condition}: {indexes:?}\n{total}");
            assert!(!reads_all_tasks(&total) && !total.contains("SCAN task"), "{condition}\n{total}");
        }
        if server.engine() == Engine::Sqlite {
            // The tasks of few projects are merged in the order of the page, so none of them is sorted.
            let (task, condition) = (registry.object("task").unwrap(), json!({ "project": { "kind": 3 } }).to_string());
            let plan = planned_in(&registry, task, &[("where", condition.as_str()), ("count", "none")]);
            let keys = Found::Keys(projects[..8].iter().map(|id| id.parse().unwrap()).collect());
            let merged = explained_statement(&server, sql::list(dialect(&server), &plan, Some(&keys))).await;
            assert_eq!(merged.matches(by_project.as_str()).count(), 8, "{merged}");
            assert!(!merged.contains("TEMP B-TREE") && !reads_all_tasks(&merged), "{merged}");
            // A sample reads a few tasks by their rowids, and others by their foreign keys.
            let (project, condition) = (registry.object("project").unwrap(), of_tasks("some", json!({ "free": 3 })).to_string());
            let plan = planned_in(&registry, project, &[("where", condition.as_str())]);
            let sample = sql::sample(dialect(&server), project, &plan.selection).unwrap();
            let sample = explained_statement(&server, sample).await;
            assert!(sample.contains("SEARCH svc_taken USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"), "{sample}");
            assert!(sample.contains(&format!("SEARCH svc_of_key USING INDEX {by_project} ")), "{sample}");
            let scans = |table: &str| sample.contains(&format!("SCAN {table}"));
            assert!(!["svc_taken", "svc_of_key", "task"].into_iter().any(scans), "{sample}");
            // A sample of links reads a few projects and tasks by their rowids, and others by their links.
            let condition = json!({ "tags": { "some": { "free": 3 } } }).to_string();
            let mut plan = planned_in(&registry, project, &[("where", condition.as_str())]);
            let sample = sql::link_sample(dialect(&server), project, &plan.selection).unwrap();
            let sample = explained_statement(&server, sample).await;
            for search in [
                "SEARCH svc_taken USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
                "SEARCH svc_taken_related USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
                "SEARCH svc_link USING COVERING INDEX svc_link_",
                "SEARCH svc_of_link USING INDEX svc_pk_",
            ] {
                assert!(sample.contains(search), "{search}\n{sample}");
            }
            let scans = |table: &str| sample.contains(&format!("SCAN {table}"));
            assert!(!["svc_taken", "svc_link", "svc_of_link", "task", "project"].into_iter().any(scans), "{sample}");
            // Each project finds its links by an index, and the list of the tasks is made once.
            plan.selection.related_by = RelatedBy::Link;
            let total = explained_statement(&server, sql::count(dialect(&server), project, &plan.selection)).await;
            assert!(total.contains(" USING COVERING INDEX svc_link_") && total.contains("LIST SUBQUERY"), "{total}");
            assert!(!total.contains("CORRELATED LIST"), "{total}");
        } else {
            // Each of the first rows looks for its related rows, although no index finds those that meet the condition.
            let (project, condition) = (registry.object("project").unwrap(), of_tasks("some", json!({ "free": 3 })).to_string());
            let plan = planned_in(&registry, project, &[("where", condition.as_str()), ("count", "none")]);
            let first = sql::list_of_first(Dialect::Postgres, &plan).unwrap();
            let first = explained_statement(&server, first.statement).await;
            assert!(first.contains(by_project.as_str()) && !reads_all_tasks(&first), "{first}");
            // For its values, a statement is planned without the test that makes a plan for all values expensive.
            let count = sql::count(Dialect::Postgres, project, &plan.selection);
            let mut unknown = count.clone();
            unknown.sql = unknown.sql.replace(&format!("(${} OR ", unknown.params.len()), "((SELECT true) OR ").into();
            unknown.params.pop();
            let [count, unknown] = [explained_statement(&server, count).await, explained_statement(&server, unknown).await];
            assert!(!count.contains("generate_series"), "{count}");
            assert!(unknown.contains("Function Scan on generate_series") && unknown.contains("rows=1000000000000 "), "{unknown}");
        }
        // Without an index, the engines read all tasks, and their plans show this. So the assertions above can fail.
        for (object, condition) in [("task", json!({ "free": 3 })), ("project", of_tasks("some", json!({ "free": 3 })))] {
            let [_, total] = explained(&server, &registry, object, &condition).await;
            assert!(reads_all_tasks(&total), "{condition}\n{total}");
        }
    }
}
