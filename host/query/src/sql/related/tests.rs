use std::sync::Arc;

use blockbase_schema::{Registry, Relationship, StoredObject};
use serde_json::{Value, json};

use super::{is_indexed, is_range};
use crate::access::{Action, Bounds, Decision, Permissions};
use crate::condition::Variables;
use crate::plan::ListPlan;
use crate::{Dialect, ListRequest, Reading, sql};

fn stored(id: i64, definition: Value) -> StoredObject {
    let fields = definition["fields"].as_array().map_or(0, Vec::len);
    StoredObject {
        id,
        revision: 1,
        keys: (1..).take(fields).collect(),
        definition: serde_json::from_value(definition).expect("a definition"),
        since: Default::default(),
    }
}

pub(in crate::sql) fn registry() -> Registry {
    let fields = json!([
        { "name": "code", "type": "text", "isUnique": true },
        { "name": "kind", "type": "integer", "indexed": true },
        { "name": "state", "type": "text" },
    ]);
    let object = |id: i64, name: &str| stored(id, json!({ "name": name, "fields": fields }));
    let relationship = |id, source: &str, name: &str, kind: &str, target: &str| Relationship {
        id,
        definition: serde_json::from_value(json!({ "name": name, "kind": kind, "source": source, "target": target }))
            .expect("a definition"),
    };
    let objects = vec![object(1, "task"), object(2, "project"), object(3, "label"), object(4, "step")];
    let relationships = vec![
        relationship(1, "task", "project", "many_to_one", "project"),
        relationship(2, "task", "tags", "many_to_many", "label"),
        relationship(3, "step", "task", "many_to_one", "task"),
    ];
    Registry::new(1, objects, relationships).expect("a registry")
}

/// The plan of a list without a total.
pub(in crate::sql) fn planned(object: &str, condition: Value, sort: &str) -> ListPlan {
    planned_in(&registry(), object, condition, sort)
}

fn planned_in(registry: &Registry, object: &str, condition: Value, sort: &str) -> ListPlan {
    let access = Permissions::unrestricted().decide("any", Action::Read).and_then(Decision::plain).expect("a right");
    let condition = condition.to_string();
    let request =
        ListRequest::from_parameters([("where", condition.as_str()), ("sort", sort), ("count", "none")]).expect("a request");
    let reading =
        Reading { registry, decide: &|_| Ok(access.clone()), variables: &Variables::default, bounds: Bounds::of_request() };
    let object = Arc::clone(registry.object(object).expect("an object"));
    ListPlan::new(&object, &access, &request, &reading, Vec::new()).expect("a plan")
}

/// The statements of a list and of its total.
fn written(dialect: Dialect, object: &str, condition: Value, sort: &str) -> [String; 2] {
    let plan = planned(object, condition, sort);
    [sql::list(dialect, &plan, None), sql::count(dialect, &plan.object, &plan.selection)]
        .map(|statement| bound(dialect, statement))
}

/// The text of a statement that binds as many values as it names.
pub(in crate::sql) fn bound(dialect: Dialect, statement: sql::Statement) -> String {
    for number in 1..=statement.params.len() {
        assert!(statement.sql.contains(&dialect.placeholder(number)), "{number} of {}", statement.sql);
    }
    assert!(!statement.sql.contains(&dialect.placeholder(statement.params.len() + 1)), "{}", statement.sql);
    statement.sql.into()
}

#[test]
fn one_related_row_is_compared_by_its_key() {
    let of_project = r#""task"."project_id" = (SELECT svc_related_1."id""#;
    let of_task = r#""project"."id" = (SELECT svc_related_1."project_id""#;
    // A total counts the rows that a negated condition excludes.
    for (object, condition, parts) in [
        ("task", json!({ "project.code": "x" }), [of_project; 2]),
        ("task", json!({ "project": { "code": "x", "kind": 1 } }), [of_project; 2]),
        ("task", json!({ "project.id": "20000000-0000-4000-8000-00000000000a" }), [r#""task"."project_id" = (SELECT"#; 2]),
        (
            "task",
            json!({ "project.code": { "neq": "x" } }),
            [r#"("task"."project_id" IS NULL OR "task"."project_id" IS NOT (SELECT"#, of_project],
        ),
        ("project", json!({ "task_by_project": { "some": { "code": "x" } } }), [of_task; 2]),
        ("project", json!({ "task_by_project": { "none": { "code": "x" } } }), [r#""project"."id" IS NOT (SELECT"#, of_task]),
    ] {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            for (statement, sqlite) in written(dialect, object, condition.clone(), "").iter().zip(parts) {
                let expected = match dialect {
                    Dialect::Sqlite => sqlite.to_owned(),
                    Dialect::Postgres => sqlite.replace("IS NOT (", "IS DISTINCT FROM (").replace("(SELECT", "(SELECT /* "),
                };
                let expected = expected.split("/* ").next().expect("a part");
                assert!(statement.contains(expected) && !statement.contains("WITH"), "{expected}: {statement}");
                assert!(!statement.contains("generate_series"), "{statement}");
            }
        }
    }
    // These conditions can match several rows: a row can have many links, and many rows can have the same value if it is not
    // unique, or if it is not compared with one value.
    for condition in [
        json!({ "tags": { "some": { "code": "x" } } }),
        json!({ "project": { "kind": 1 } }),
        json!({ "project": { "code": { "in": ["x", "y"] } } }),
        json!({ "project": { "_or": [{ "code": "x" }, { "code": "y" }] } }),
        json!({ "project": { "code": { "gt": "x" } } }),
    ] {
        for statement in written(Dialect::Sqlite, "task", condition, "") {
            assert!(!statement.contains("= (SELECT"), "{statement}");
        }
    }
}

#[test]
fn an_index_leads_to_the_rows_with_a_value_in_its_first_column() {
    const NAMES: [&str; 5] = ["shelf", "place", "maker", "number", "color"];
    const MOMENT: &str = "2026-01-31T12:00:00Z";
    let part = json!({
        "name": "part",
        "fields": NAMES.map(|name| json!({ "name": name, "type": "text" })).as_slice(),
        "indexes": [["shelf", "place"], ["color"]],
        "constraints": { "uniqueTogether": [["maker", "number"]] },
    });
    let registry = Registry::new(1, vec![stored(1, part)], Vec::new()).expect("a registry");
    let indexed = NAMES.map(|name| {
        let plan = planned_in(&registry, "part", json!({ name: "x" }), "");
        is_indexed(&plan.object, &plan.selection.conditions[0])
    });
    assert_eq!(indexed, [true, false, false, false, true]);
    // An index of a unique group has the rows with a value of its first column one after the other, but they may be many.
    let ranges = NAMES.map(|name| {
        let plan = planned_in(&registry, "part", json!({ name: { "gt": "x" } }), "");
        is_range(&plan.object, &plan.selection.conditions[0])
    });
    assert_eq!(ranges, [true, false, true, false, true]);
    let system = [("created_at", MOMENT), ("updated_at", MOMENT), ("created_by", "x"), ("updated_by", "x")];
    let ranges = system.map(|(name, value)| {
        let plan = planned_in(&registry, "part", json!({ name: { "gt": value } }), "");
        is_range(&plan.object, &plan.selection.conditions[0])
    });
    assert_eq!(ranges, [true, false, true, false]);
    // Only an index of one column has the rows in the order of this column and of the id.
    let sorted = NAMES.map(|name| planned_in(&registry, "part", json!({}), name).follows_index());
    assert_eq!(sorted, [false, false, false, false, true]);
}

#[test]
fn an_index_leads_to_the_rows_of_a_creator() {
    let is_indexed_on_tasks = |condition: Value| {
        let plan = planned("task", condition, "");
        plan.selection.conditions.iter().all(|part| is_indexed(&plan.object, part))
    };
    assert!(is_indexed_on_tasks(json!({ "created_by": "x" })));
    assert!(is_indexed_on_tasks(json!({ "created_by": { "in": ["x", "y"] } })));
    // No index has all rows of an editor, and none has those that others created.
    for condition in [
        json!({ "updated_by": "x" }),
        json!({ "created_by": { "neq": "x" } }),
        json!({ "created_by": { "nin": ["x", "y"] } }),
        json!({ "created_by": null }),
        json!({ "state": "x" }),
    ] {
        assert!(!is_indexed_on_tasks(condition.clone()), "{condition}");
    }
    // The creator leads to the rows of a total. No list of related rows is made before the first rows are judged.
    let tagged = json!({ "some": { "state": "x" } });
    let [_, total] = written(Dialect::Sqlite, "task", json!({ "created_by": "x", "tags": tagged }), "");
    assert!(total.contains("CASE WHEN svc_rowid IN (SELECT svc_place FROM svc_first) THEN EXISTS"), "{total}");
    // Of two conditions on related rows, the one on the creator of these rows leads.
    let [_, total] = written(Dialect::Sqlite, "task", json!({ "tags": tagged, "project": { "created_by": "x" } }), "");
    assert!(total.contains(r#"+"task"."id" IN (SELECT"#) && total.contains(r#" AND "task"."project_id" IN (SELECT"#), "{total}");
}

#[test]
fn postgres_has_no_lists_and_no_probes() {
    // If an index leads to linked rows, the statement is not planned for its values.
    for (condition, planned) in [
        (json!({ "project": { "kind": 1 } }), 1),
        (json!({ "project": { "kind": { "neq": 1 } } }), 1),
        (json!({ "tags": { "some": { "kind": 1 } } }), 0),
        (json!({ "kind": 1, "project": { "state": "x" } }), 1),
        (json!({ "kind": 1, "tags": { "some": { "kind": 1 }, "none": { "kind": 2 } } }), 0),
    ] {
        for statement in written(Dialect::Postgres, "task", condition, "") {
            assert!(statement.contains("EXISTS (SELECT /* ") && !statement.contains(" IN ("), "{statement}");
            assert!(!statement.contains("svc_f") && !statement.contains("+("), "{statement}");
            assert_eq!(statement.matches(" OR (SELECT count(*) FROM generate_series(").count(), planned, "{statement}");
            // Postgres may turn EXISTS into a list.
            assert!(!statement.contains(" OFFSET 0"), "{statement}");
        }
    }
}

#[test]
fn no_offset_of_sqlite_is_beside_an_exists_without_a_limit() {
    let mut plan = planned("task", json!({ "project": { "state": "x" }, "tags": { "some": {} } }), "");
    let page = |plan: &ListPlan| bound(Dialect::Sqlite, sql::list(Dialect::Sqlite, plan, None));
    // A page that skips no rows skips the first rows of each key, but outside of the tests.
    let first = page(&plan);
    assert!(first.contains("svc_bound AS MATERIALIZED (SELECT max((SELECT svc_at FROM (SELECT "), "{first}");
    assert!(first.contains("EXISTS (") && !first.contains(" LIMIT 1)"), "{first}");
    plan.paging.offset = 2;
    let second = page(&plan);
    let count = |part: &str| second.matches(part).count();
    assert!(count("EXISTS (") > 0 && count("EXISTS (") == count(" LIMIT 1)"), "{second}");
}

#[test]
fn sqlite_makes_lists_for_totals_and_probes_for_pages() {
    let some = json!({ "task_by_project": { "some": { "state": "x" } } });
    let list = r#""project"."id" IN (SELECT svc_related_1."project_id""#;
    let [page, total] = written(Dialect::Sqlite, "project", some.clone(), "");
    assert!(total.contains(list) && !total.contains("EXISTS") && !total.contains("WITH"), "{total}");
    for probe in ["svc_found", "svc_few", "svc_first"] {
        assert!(page.contains(&format!("{probe} AS MATERIALIZED")), "{probe}: {page}");
    }
    assert!(page.contains("EXISTS") && page.contains(" IN (SELECT"), "{page}");
    // All rows have to be sorted, so the page reads as many rows as the total.
    let [sorted, _] = written(Dialect::Sqlite, "project", some, "state");
    assert!(sorted.contains(list) && !sorted.contains("WITH"), "{sorted}");

    // The index of a foreign key has its rows in the order of their creation.
    let to_one = json!({ "project": { "kind": 1 } });
    for (sort, has_heads) in [("", true), ("created_at", true), ("kind", false), ("id", false)] {
        let [page, total] = written(Dialect::Sqlite, "task", to_one.clone(), sort);
        assert_eq!(
            (page.contains("svc_heads AS MATERIALIZED"), page.contains("FROM svc_heads UNION")),
            (has_heads, has_heads),
            "{page}"
        );
        assert!(page.contains("svc_few AS MATERIALIZED") && !total.contains("svc_heads"), "{page} {total}");
    }

    // Other tests may leave few rows, which are tested one by one.
    let beside = json!({ "kind": 1, "task_by_project": { "some": { "state": "x" } } });
    let [_, total] = written(Dialect::Sqlite, "project", beside, "");
    assert!(total.contains("CASE WHEN svc_rowid IN (SELECT svc_place FROM svc_first) THEN EXISTS"), "{total}");

    // If the list reads all related rows, more rows are few in comparison with it.
    let of_own = r#"svc_own CROSS JOIN "task" AS svc_of_own ON svc_of_own."project_id" = svc_own.svc_key LIMIT (SELECT "#;
    let some = json!({ "some": { "state": "x" } });
    for (object, condition, is_compared, is_counted) in [
        ("project", json!({ "kind": 1, "task_by_project": some }), true, true),
        ("project", json!({ "kind": 1, "task_by_project": { "none": { "state": "x" } } }), true, true),
        ("task", json!({ "kind": 1, "project": { "state": "x" } }), true, false),
        // A range of an index may have few related rows.
        ("project", json!({ "kind": 1, "task_by_project": { "some": { "kind": { "gt": 5 } } } }), false, false),
        (
            "project",
            json!({ "kind": 1, "task_by_project": { "some": { "created_at": { "gt": "2026-01-01T00:00:00Z" } } } }),
            false,
            false,
        ),
        ("task", json!({ "kind": 1, "project": { "kind": { "gte": 5 } } }), false, false),
        // An index has no range of these.
        ("project", json!({ "kind": 1, "task_by_project": { "some": { "kind": { "neq": 5 } } } }), true, true),
        // An index finds the related rows, or links lead to them, or there are several conditions.
        ("task", json!({ "kind": 1, "project": { "kind": 2 } }), false, false),
        ("task", json!({ "kind": 1, "tags": some }), false, false),
        ("task", json!({ "kind": 1, "project": { "task_by_project": some } }), false, false),
        ("task", json!({ "kind": 1, "project": { "state": "x" }, "tags": some }), false, false),
        // The list leads to the rows.
        ("project", json!({ "state": "x", "task_by_project": some }), false, false),
    ] {
        let [_, total] = written(Dialect::Sqlite, object, condition, "");
        assert_eq!((total.contains("svc_own AS MATERIALIZED ("), total.contains(of_own)), (is_compared, is_counted), "{total}");
        let of_own = "+ 1, 250)), svc_first AS MATERIALIZED (SELECT svc_place FROM svc_own LIMIT CASE WHEN (SELECT count(*) ";
        let first = match (is_compared, is_counted) {
            (true, true) => format!(" / 32 {of_own}"),
            (true, false) => format!(" / 8 {of_own}"),
            (false, _) => " LIMIT 250) SELECT count(*) FROM ".to_owned(),
        };
        assert!(total.contains(&first) && total.contains("svc_first AS MATERIALIZED ("), "{total}");
    }

    // Only one list leads to rows. It is the one that an index of the related object makes.
    let two = json!({ "tags": { "some": { "state": "x" } }, "project": { "kind": 1 } });
    let [_, total] = written(Dialect::Sqlite, "task", two, "");
    assert!(total.contains(r#"+"task"."id" IN (SELECT"#) && total.contains(r#" AND "task"."project_id" IN (SELECT"#), "{total}");

    // For rows that must not exist, there is no probe.
    let none = json!({ "task_by_project": { "none": { "state": "x" } } });
    let [page, total] = written(Dialect::Sqlite, "project", none.clone(), "");
    assert!(page.contains("svc_first") && !page.contains("svc_few"), "{page}");
    assert!(total.contains(list) && !total.contains("NOT IN"), "{total}");
    let [sorted, _] = written(Dialect::Sqlite, "project", none, "state");
    assert!(sorted.contains("NOT IN (SELECT svc_key FROM ") && sorted.contains("+svc_key IS NOT NULL"), "{sorted}");

    // Conditions with very many values are written once.
    let values: Vec<u32> = (0..1000).collect();
    let many = json!({ "project": { "_or": [{ "kind": { "in": values } }, { "kind": { "gt": 5000 } }] } });
    let [page, _] = written(Dialect::Sqlite, "task", many, "");
    assert!(!page.contains("WITH"), "{page}");
}
