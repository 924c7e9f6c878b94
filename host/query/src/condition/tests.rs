use std::collections::HashMap;
use std::hash::DefaultHasher;

use blockbase_schema::json::parse_members;
use blockbase_schema::{Code, ColumnType, Registry, Relationship, Result, StoredObject, Value};
use blockbase_tests::fuzz::{self, Unstructured, changed, for_a_while};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::access::reading::read;
use crate::access::{Access, Action, Bounds, Clause, Decision, Grant, GrantContext, Permissions, Reading, Shapes};
use crate::operator::{Operand, Operator};
use crate::plan::ListPlan;
use crate::predicate::Test;
use crate::{Dialect, ListRequest, Param, sql};

fn registry() -> Registry {
    let object = |id: i64, definition: serde_json::Value| StoredObject {
        id,
        revision: 1,
        keys: definition["fields"].as_array().into_iter().flatten().zip(1..).map(|(_, number)| number).collect(),
        definition: serde_json::from_value(definition).expect("a definition"),
        since: Default::default(),
    };
    let objects = vec![
        object(
            1,
            json!({ "name": "task", "fields": [
                { "name": "title", "type": "text" }, { "name": "amount", "type": "decimal", "scale": 2 },
                { "name": "count", "type": "integer" }, { "name": "done", "type": "boolean" },
                { "name": "due", "type": "date" }, { "name": "at", "type": "datetime" }, { "name": "extra", "type": "json" },
                { "name": "labels", "type": "multi_enum", "options": ["a", "b", "c"] }] }),
        ),
        object(2, json!({ "name": "project", "fields": [{ "name": "name", "type": "text" }] })),
        object(3, json!({ "name": "person", "fields": [{ "name": "name", "type": "text" }] })),
    ];
    let relationship = |id, name: &str, kind: &str, source: &str, target: &str| Relationship {
        id,
        definition: serde_json::from_value(json!({ "name": name, "kind": kind, "source": source, "target": target }))
            .expect("a definition"),
    };
    let relationships = vec![
        relationship(1, "project", "many_to_one", "task", "project"),
        relationship(2, "owner", "many_to_one", "project", "person"),
        relationship(3, "helpers", "many_to_many", "task", "person"),
        relationship(4, "parent", "many_to_one", "task", "task"),
    ];
    Registry::new(1, objects, relationships).expect("a registry")
}

fn read_on(registry: &Registry, object: &str, text: &str) -> Result<Condition> {
    let access = |_: &_| -> Result<Access> {
        Permissions::unrestricted()
            .decide("any", Action::Read)
            .and_then(Decision::plain)
            .ok_or_else(|| blockbase_schema::Error::internal("no right"))
    };
    let variables = || Variables { user_id: Some("u1".to_owned()), roles: Some(vec!["lead".to_owned()]), ..Variables::default() };
    let object = registry.object(object).expect("an object");
    read(object, text, &Reading { registry, decide: &access, variables: &variables, bounds: Bounds::of_request() })
}

fn task(text: &str) -> Result<Condition> {
    read_on(&registry(), "task", text)
}

/// The code and the path of the refusal.
fn refusal(text: &str) -> (Code, String) {
    let error = task(text).expect_err(text);
    let path = error.message.split('`').nth(1).unwrap_or_default().to_owned();
    (error.code, path)
}

#[test]
fn what_is_malformed_is_refused_by_its_path() {
    let invalid = |path: &str| (Code::InvalidRequest, path.to_owned());
    for (text, path) in [
        ("[]", "where"),
        ("1", "where"),
        (r#"{"title":1,"title":2}"#, "where"),
        (r#"{"_or":{}}"#, "where._or"),
        (r#"{"_or":[1]}"#, "where._or[0]"),
        (r#"{"_not":[]}"#, "where._not"),
        (r#"{"_xor":[]}"#, "where._xor"),
        (r#"{"_and":[{},{"amount":{}}]}"#, "where._and[1].amount"),
        (r#"{"amount":{"near":1}}"#, "where.amount.near"),
        (r#"{"amount":{"is_null":false}}"#, "where.amount.is_null"),
        (r#"{"amount":{"in":1}}"#, "where.amount.in"),
        (r#"{"amount":{"in":"1,2"}}"#, "where.amount.in"),
        (r#"{"extra":{"eq":"{}"}}"#, "where.extra.eq"),
        (r#"{"project":1}"#, "where.project"),
        (r#"{"project":{"owner":null}}"#, "where.project.owner"),
        (r#"{"project.name.first":1}"#, "where.project.name.first"),
        (r#"{"title.x":1}"#, "where.title.x"),
        (r#"{"helpers":{"name":"x"}}"#, "where.helpers.name"),
        (r#"{"helpers":{}}"#, "where.helpers"),
        (r#"{"helpers.name":"x"}"#, "where.helpers.name"),
        (r#"{"title":"$user.name"}"#, "where.title"),
        (r#"{"title":"$user.roles"}"#, "where.title"),
        (r#"{"title":{"in":["a","$nobody"]}}"#, "where.title.in[1]"),
    ] {
        assert_eq!(refusal(text), invalid(path), "{text}");
    }
    assert_eq!(refusal(r#"{"nothing":1}"#), (Code::UnknownField, "where.nothing".to_owned()));
    assert_eq!(refusal(r#"{"count":{"gt":"x"}}"#), (Code::InvalidValue, "where.count.gt".to_owned()));
    assert_eq!(refusal(r#"{"count":{"gt":null}}"#), (Code::InvalidValue, "where.count.gt".to_owned()));
    assert_eq!(refusal(r#"{"title":"$user.email"}"#), (Code::InvalidValue, "where.title".to_owned()));
}

/// A condition with this many tests, each nested in the previous one.
fn tests(count: usize) -> String {
    let parts: Vec<String> = (0..count).map(|number| format!(r#"{{"count":{number}}}"#)).collect();
    format!(r#"{{"_or":[{}]}}"#, parts.join(","))
}

#[test]
fn each_bound_is_the_last_that_is_taken() {
    let refused = |text: &str, path: &str, limit: &str| {
        let error = task(text).expect_err(path);
        assert_eq!(error.code, Code::InvalidRequest, "{}", error.message);
        assert!(error.message.starts_with(&format!("`{path}`: ")), "{path}: {}", error.message);
        assert!(error.message.contains(limit), "{limit}: {}", error.message);
    };
    let below = |levels: usize, rest: &str| format!("where{}{rest}", "._not".repeat(levels));

    assert!(task(&tests(LEAVES_MAX)).is_ok());
    // One more test, in a second object, because the length of a list is limited too.
    let more = format!(r#"{{"_and":[{},{{"count":7}}]}}"#, tests(LEAVES_MAX));
    refused(&more, "where._and[1].count", "100 tests");
    refused(&tests(PARTS_MAX + 1), "where._or", "100 items");

    let nested = |levels: usize| format!("{}{}{}", r#"{"_not":"#.repeat(levels - 1), "{}", "}".repeat(levels - 1));
    assert!(task(&nested(LEVELS_MAX)).is_ok());
    refused(&nested(LEVELS_MAX + 1), &below(8, ""), "8 levels");
    assert!(task(&nested(1000)).is_err());
    // The object of the operators is a level, and each dot of a path counts as a level.
    let with_operators =
        |levels: usize| format!("{}{}{}", r#"{"_not":"#.repeat(levels - 2), r#"{"count":{"gt":1}}"#, "}".repeat(levels - 2));
    assert!(task(&with_operators(LEVELS_MAX)).is_ok());
    refused(&with_operators(LEVELS_MAX + 1), &below(7, ".count"), "8 levels");
    let dotted = |levels: usize| {
        format!("{}{}{}", r#"{"_not":"#.repeat(levels - 3), r#"{"project.owner.name":"x"}"#, "}".repeat(levels - 3))
    };
    assert!(task(&dotted(LEVELS_MAX)).is_ok());
    refused(&dotted(LEVELS_MAX + 1), &below(6, ".project.owner.name"), "8 levels");

    let empty = |lists: usize| {
        let list = format!(r#"{{"_and":[{}]}}"#, vec!["{}"; PARTS_MAX - 1].join(","));
        format!(r#"{{"_or":[{}]}}"#, vec![list.as_str(); lists].join(","))
    };
    assert!(task(&empty(9)).is_ok());
    // The outermost object is one as well, so the last one is too many.
    refused(&empty(10), "where._or[9]._and[98]", "1000 objects");
    let values = |lists: usize| {
        let items: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let parts: Vec<String> = (0..lists).map(|_| format!(r#"{{"count":{{"nin":[{}]}}}}"#, items.join(","))).collect();
        format!(r#"{{"_or":[{}]}}"#, parts.join(","))
    };
    assert!(task(&values(10)).is_ok());
    refused(&values(11), "where._or[10].count.nin", "10000 values");

    assert!(task(r#"{"parent.parent.parent.count":1}"#).is_ok());
    refused(r#"{"parent.parent.parent.parent.count":1}"#, "where.parent.parent.parent.parent.count", "3 relations deep");
    let parents = r#"{"parent":{"_or":[{},{"parent.parent":{"parent":{}}}]}}"#;
    refused(parents, "where.parent._or[1].parent.parent.parent", "3 relations deep");
    let steps = |count: usize| {
        let parts: Vec<String> = (0..count).map(|number| format!(r#"{{"project.name":"{number}"}}"#)).collect();
        format!(r#"{{"_or":[{}]}}"#, parts.join(","))
    };
    assert!(task(&steps(STEPS_MAX)).is_ok());
    refused(&steps(STEPS_MAX + 1), "where._or[10].project.name", "10 relation keys");
}

#[test]
fn equal_meanings_have_one_form() {
    let same = |one: &str, two: &str| assert_eq!(task(one).expect(one), task(two).expect(two), "{one} and {two}");
    same(r#"{"title":"a"}"#, r#"{"title":{"eq":"a"}}"#);
    same(r#"{"title":null}"#, r#"{"title":{"is_null":true}}"#);
    same(r#"{"title":{"!=":"a"}}"#, r#"{"_not":{"title":"a"}}"#);
    same(r#"{"project.owner.name":"a"}"#, r#"{"project":{"owner":{"name":{"eq":"a"}}}}"#);
    same(r#"{"_not":{"_or":[{"title":"a"},{"count":1}]}}"#, r#"{"title":{"neq":"a"},"count":{"neq":1}}"#);
    same(r#"{"_and":[{"title":"a"},{"_and":[{"title":"a"}]}]}"#, r#"{"title":"a"}"#);
    same(r#"{"_or":[{"title":"a"},{}]}"#, "{}");
    same(r#"{"_and":[{"title":"a"},{"_or":[]}]}"#, r#"{"_or":[]}"#);
    same(r#"{"helpers":{"every":{"name":"a"}}}"#, r#"{"_not":{"helpers":{"some":{"name":{"neq":"a"}}}}}"#);
    same(r#"{"project":{"name":"a"},"_and":[{"project.name":{"like":"b"}}]}"#, r#"{"project":{"name":{"eq":"a","like":"b"}}}"#);
    same(r#"{"_not":{"_not":{"count":{"gt":1}}}}"#, r#"{"count":{"gt":1}}"#);
    same(r#"{"title":"$user.id"}"#, r#"{"title":"u1"}"#);
    same(r#"{"title":{"in":"$user.roles"}}"#, r#"{"title":{"in":["lead"]}}"#);
    same("{\"title\":\"\\u0024user.id\"}", r#"{"title":"u1"}"#);
    same(r#"{"at":"$now"}"#, r#"{"at":"1970-01-01T00:00:00Z"}"#);
    same(r#"{"due":"$today"}"#, r#"{"due":"1970-01-01"}"#);
    let literal = task(r#"{"title":"$$user.id"}"#).expect("a condition");
    let Condition::Test(Predicate { test: Test::Compare(_, Value::Text(text)), .. }) = &literal else { panic!("{literal:?}") };
    assert_eq!(text, "$user.id");
}

#[test]
fn conditions_on_one_related_row_are_one_condition() {
    let registry = registry();
    let joined = |key: &str| format!(r#"{{"{key}":[{{"project.name":"a"}},{{"project":{{"name":"b"}}}}]}}"#);
    let read = |text: &str| read_on(&registry, "task", text).expect(text);
    for key in ["_or", "_and"] {
        let inside = format!(r#"{{"project":{{"{key}":[{{"name":"a"}},{{"name":"b"}}]}}}}"#);
        assert_eq!(read(&joined(key)), read(&inside), "{key}");
    }
    // In an OR, one of the two is enough.
    let [task, project] = ["task", "project"].map(|name| registry.object(name).expect("an object"));
    let nothing: Image = task.columns.iter().map(|_| Value::Null).collect();
    for (name, expected) in [("a", [true, false]), ("b", [true, false]), ("c", [false, false])] {
        let mut row: Image = project.columns.iter().map(|_| Value::Null).collect();
        row[project.column_index("name").expect("a column")] = Value::Text(name.to_owned());
        let related = HashMap::from([("project", vec![row])]);
        let is_met = |key: &str| holds(&read(&joined(key)), &nothing, &related);
        assert_eq!(["_or", "_and"].map(is_met), expected, "{name}");
    }
}

/// A random condition on tasks. It may exceed the limits.
fn random(input: &mut Unstructured<'_>, object: &str, levels: usize) -> fuzz::Result<serde_json::Value> {
    let value = |input: &mut Unstructured<'_>, field: &str| -> fuzz::Result<serde_json::Value> {
        Ok(match field {
            "title" | "name" => json!(*input.choose(&["a", "b", "A", "$$a", "ab", "ß"])?),
            "amount" => json!(*input.choose(&[1.0, 1.25, 1.255, -3.5])?),
            "count" => json!(*input.choose(&[0, 1, 2])?),
            "done" => json!(*input.choose(&[true, false])?),
            "due" => json!(*input.choose(&["2026-01-01", "1969-12-31"])?),
            _ => json!(*input.choose(&["a", "b", "c"])?),
        })
    };
    let list = |input: &mut Unstructured<'_>| -> fuzz::Result<Vec<serde_json::Value>> {
        (0..input.int_in_range(0..=2)?).map(|_| random(input, object, levels - 1)).collect()
    };
    if levels > 1 {
        match input.int_in_range(0..=6)? {
            0 => return Ok(json!({ "_and": list(input)? })),
            1 => return Ok(json!({ "_or": list(input)? })),
            2 => return Ok(json!({ "_not": random(input, object, levels - 1)? })),
            3 if object == "task" => return Ok(json!({ "project": random(input, "project", levels - 1)? })),
            4 if object == "task" => {
                let quantifier = *input.choose(&["some", "none", "every"])?;
                return Ok(json!({ "helpers": { quantifier: random(input, "person", levels - 1)? } }));
            }
            _ => {}
        }
    }
    let field = match object {
        "task" => *input.choose(&["title", "amount", "count", "done", "due", "labels"])?,
        _ => "name",
    };
    let operator = *input.choose(&["eq", "neq", "gt", "gte", "lt", "lte", "in", "nin", "like", "ilike", "is_null"])?;
    let operand = match operator {
        "in" | "nin" => {
            let (one, two) = (value(input, field)?, value(input, field)?);
            json!([one, *input.choose(&[serde_json::Value::Null, two].each_ref())?])
        }
        "is_null" => json!(true),
        "eq" | "neq" if input.ratio(1, 4)? => json!(null),
        _ => value(input, field)?,
    };
    Ok(json!({ field: { operator: operand } }))
}

/// Related rows by the key of the relation.
type Rows = HashMap<&'static str, Vec<Image>>;

/// Whether a condition is true for a row.
fn holds(condition: &Condition, row: &[Value], related: &Rows) -> bool {
    match condition {
        Condition::Test(_) | Condition::Not(_) => condition.clone().left_for(row).is_true(),
        Condition::All(parts) => parts.iter().all(|part| holds(part, row, related)),
        Condition::Any(parts) => parts.iter().any(|part| holds(part, row, related)),
        Condition::Related(one) => {
            let rows = related.get(one.key.as_str()).map_or(&[][..], Vec::as_slice);
            let meets = |row: &Image| holds(&one.condition, row, related);
            match one.quantifier {
                Quantifier::One => rows.first().map_or_else(|| one.condition.holds_on_nothing(), meets),
                Quantifier::Some => rows.iter().any(meets),
                Quantifier::None => !rows.iter().any(meets),
            }
        }
    }
}

#[test]
fn a_condition_and_its_complement_share_no_row_and_leave_none_out() {
    let registry = registry();
    let rows_of = |object: &str, records: &[serde_json::Value]| -> Vec<Image> {
        let object = registry.object(object).expect("an object");
        records
            .iter()
            .map(|record| image(object, &parse_members(&record.to_string()).expect("a record")))
            .map(|cells| cells.into_iter().map(|cell| cell.unwrap_or(Value::Null)).collect())
            .collect()
    };
    let tasks = rows_of(
        "task",
        &[
            json!({}),
            json!({ "title": "a", "amount": 1.25, "count": 1, "done": true, "due": "2026-01-01", "labels": ["a", "b"] }),
            json!({ "title": "ẞ", "amount": -3.5, "count": 0, "done": false, "due": "1969-12-31", "labels": [] }),
            json!({ "title": "$a", "amount": 1.26, "labels": ["c"], "extra": { "x": 1 } }),
        ],
    );
    let people = rows_of("person", &[json!({ "name": "a" }), json!({}), json!({ "name": "AB" })]);
    let projects = rows_of("project", &[json!({ "name": "ab" })]);
    for_a_while(|input| {
        let text = random(input, "task", 4)?.to_string();
        let Ok(condition) = read_on(&registry, "task", &text) else { return Ok(false) };
        let complement = condition.clone().complement();
        assert_eq!(complement.clone().complement(), condition, "{text}");
        let task = registry.object("task").expect("an object");
        let printed = condition.to_json(task);
        let again = read_on(&registry, "task", &printed);
        assert_eq!(again.as_ref().ok(), Some(&condition), "{text} is printed as {printed}: {again:?}");
        let related = HashMap::from([
            ("helpers", people[..input.int_in_range(0..=people.len())?].to_vec()),
            ("project", projects[..input.int_in_range(0..=1)?].to_vec()),
        ]);
        let nothing: Image = task.columns.iter().map(|_| Value::Null).collect();
        for row in &tasks {
            let is_met = holds(&condition, row, &related);
            assert!(is_met != holds(&complement, row, &related), "{text} on {row:?}");
            // The conditions on related rows that are left say the same, and the row's own values are no longer needed.
            let left = condition.clone().left_for(row);
            assert_eq!(holds(&left, &nothing, &related), is_met, "{text} on {row:?}");
            if let Some((common, Some(decisive))) = left.common_part()
                && holds(&common, &nothing, &related) == decisive
            {
                assert_eq!(is_met, decisive, "{text} on {row:?}");
            }
        }
        assert_eq!(holds(&condition, &nothing, &HashMap::new()), condition.holds_on_nothing(), "{text}");
        Ok(true)
    });
}

#[test]
fn a_value_of_another_type_is_missing_in_an_image() {
    let registry = registry();
    let task = registry.object("task").expect("an object");
    let members = parse_members(r#"{"title":3,"count":"three","done":null,"amount":1.5}"#).expect("a record");
    let cells = image(task, &members);
    let cell = |name: &str| cells[task.column_index(name).expect("a column")].clone();
    assert_eq!((cell("title"), cell("count"), cell("due")), (None, None, None));
    assert_eq!((cell("done"), cell("amount")), (Some(Value::Null), Some(Value::Decimal { scaled: 150, scale: 2 })));
}

#[test]
fn any_text_is_read_or_refused() {
    const WORDS: [&str; 30] = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"_and\"",
        "\"_or\"",
        "\"_not\"",
        "\"title\"",
        "\"count\"",
        "\"project\"",
        "\"helpers\"",
        "\"some\"",
        "\"every\"",
        "\"eq\"",
        "\"in\"",
        "\"is_null\"",
        "true",
        "null",
        "1",
        "\"$now\"",
        "\"$$\"",
        "\"project.owner.name\"",
        "\"a\"",
        " ",
        "{}",
        "[]",
        "\\",
        "\"title\":",
    ];
    let registry = registry();
    for_a_while(|input| {
        let begun = random(input, "task", 4)?.to_string();
        let text = changed(input, &begun, &WORDS)?;
        Ok(read_on(&registry, "task", &text).is_ok())
    });
}

#[test]
fn numbers_between_two_values_have_their_place() {
    let registry = registry();
    let object = registry.object("task").expect("an object");
    let place = object.column_index("amount").expect("a column");
    assert_eq!(object.columns[place].ty, ColumnType::Decimal { scale: 2 });
    let mut row: Image = object.columns.iter().map(|_| Value::Null).collect();
    for (scaled, expected) in [(125, [false, false, true, true, false, true]), (126, [true, true, false, false, false, true])] {
        row[place] = Value::Decimal { scaled, scale: 2 };
        let is_met = |operator: &str| {
            let condition = read_on(&registry, "task", &format!(r#"{{"amount":{{"{operator}":1.255}}}}"#)).expect("a condition");
            condition.left_for(&row).is_true()
        };
        assert_eq!(["gt", "gte", "lt", "lte", "eq", "neq"].map(is_met), expected, "{scaled}");
    }
    row[0] = Value::Uuid(Uuid::nil());
    let condition = read_on(&registry, "task", r#"{"id":"00000000-0000-0000-0000-000000000000"}"#).expect("a condition");
    assert!(condition.left_for(&row).is_true());
}

#[test]
fn each_condition_on_related_rows_is_personal_by_itself() {
    let audience = |text: &str| task(text).expect("a condition").audience();
    for text in [
        r#"{"title":"$user.id"}"#,
        r#"{"title":"$user.id","project":{"name":"a"}}"#,
        r#"{"helpers":{"some":{"name":{"in":"$user.roles"}}},"project":{"name":"$$user.id"}}"#,
        r#"{"parent":{"due":{"lt":"$today"}}}"#,
    ] {
        assert_eq!(audience(text), Audience::ManyCallers, "{text}");
    }
    for text in [
        r#"{"project":{"name":"$user.id"}}"#,
        r#"{"project.owner.name":"$user.id"}"#,
        r#"{"_not":{"helpers":{"every":{"_or":[{"name":"a"},{"name":{"in":["b","\u0024user.id"]}}]}}}}"#,
        // The moment is in a test of the row itself, which is decided in memory.
        r#"{"at":{"lt":"$now"},"project":{"name":"$user.id"}}"#,
        // Both are conditions on one row, so they are one condition.
        r#"{"_or":[{"project":{"name":"a"}},{"project":{"name":"$user.id"}}]}"#,
    ] {
        assert_eq!(audience(text), Audience::OneCaller, "{text}");
    }
    for text in [
        r#"{"helpers":{"none":{"created_at":{"gt":"$now"}}}}"#,
        r#"{"project":{"name":"$user.id","owner":{"created_at":{"lt":"$now"}}}}"#,
        r#"{"helpers":{"some":{"name":"$user.id"}},"parent":{"at":{"gt":"$now"}}}"#,
    ] {
        assert_eq!(audience(text), Audience::OneRequest, "{text}");
    }
    let common = |text: &str| {
        let condition = task(text).expect("a condition");
        let of_test = registry();
        let object = of_test.object("task").expect("an object");
        condition.common_part().map(|(common, decisive)| (common.to_json(object), decisive))
    };
    let team = r#"{"project":{"name":{"eq":"a"}}}"#;
    assert_eq!(common(r#"{"project":{"name":"a"}}"#), Some((team.to_owned(), None)));
    let mine = r#"{"helpers":{"some":{"name":"$user.id"}}}"#;
    assert_eq!(common(&format!(r#"{{"_or":[{{"project":{{"name":"a"}}}},{mine}]}}"#)), Some((team.to_owned(), Some(true))));
    assert_eq!(common(&format!(r#"{{"_and":[{{"project":{{"name":"a"}}}},{mine}]}}"#)), Some((team.to_owned(), Some(false))));
    assert_eq!(common(mine), None);
    assert_eq!(common(&format!(r#"{{"_or":[{mine},{{"parent":{{"title":"$user.id"}}}}]}}"#)), None);
}

#[test]
fn the_documentation_has_every_limit() {
    let rows = blockbase_schema::table_rows(include_str!("../../../../docs/filter.md"), "| limit of a condition |");
    let wanted = [
        format!("| tests: one for each field and operator | {LEAVES_MAX} |"),
        format!("| levels of objects, the outermost included. Each dot of a name counts as one | {LEVELS_MAX} |"),
        format!("| relation keys | {STEPS_MAX} |"),
        format!("| relations inside each other | {DEPTH_MAX} |"),
        format!("| conditions of one `_and` or `_or` | {PARTS_MAX} |"),
        format!("| objects, those of operators and quantifiers included | {OBJECTS_MAX} |"),
    ];
    assert_eq!(rows, wanted, "the table of limits in docs/filter.md");
}

#[test]
fn the_console_knows_the_limits() {
    let file = include_str!("../../../../console/src/screens/records/filters/sendable.ts");
    for line in [
        format!("export const OF_REQUEST: Bounds = {{ leaves: {LEAVES_MAX}, steps: {STEPS_MAX} }};"),
        format!("export const OF_GRANT: Bounds = {{ leaves: {POLICY_LEAVES_MAX}, steps: {POLICY_STEPS_MAX} }};"),
        format!("export const LEVELS_MAX = {LEVELS_MAX};"),
        format!("export const DEPTH_MAX = {DEPTH_MAX};"),
        format!("export const PARTS_MAX = {PARTS_MAX};"),
    ] {
        assert!(file.lines().any(|known| known == line), "sendable.ts lacks: {line}");
    }
}

/// The names of the members of the object that begins in the line `start`.
fn members_after<'t>(file: &'t str, start: &str) -> Vec<&'t str> {
    let lines = file.lines().skip_while(|line| line.trim() != start).skip(1);
    let members = lines.map(str::trim).take_while(|line| !line.starts_with('}'));
    members.filter_map(|line| Some(line.split_once(':')?.0.trim_end_matches('?').trim_matches('"'))).collect()
}

#[test]
fn the_documentation_and_the_console_have_every_variable() {
    let rows = blockbase_schema::table_rows(include_str!("../../../../docs/filter.md"), "| variable | value |");
    let wanted = Variable::ALL.iter().map(|variable| format!("| `\"{}\"` | {} |", variable.name(), variable.sentence()));
    assert_eq!(rows, wanted.collect::<Vec<_>>(), "the table of variables in docs/filter.md");
    let file = include_str!("../../../../console/src/screens/records/filters/variables.ts");
    let names: Vec<&str> = Variable::ALL.iter().map(|variable| variable.name()).collect();
    assert_eq!(members_after(file, "const MEANINGS = {"), names, "variables.ts of the console");
    for variable in Variable::ALL {
        let line = format!("  \"{}\": \"{}\",", variable.name(), variable.words());
        assert!(file.lines().any(|known| known == line), "variables.ts lacks: {line}");
    }
}

#[test]
fn the_console_and_the_sdk_have_every_quantifier() {
    let names: Vec<&str> = NamedQuantifier::ALL.iter().map(|quantifier| quantifier.name()).collect();
    let file = include_str!("../../../../console/src/screens/records/filters/tree.ts");
    let line = format!("export const QUANTIFIERS = {} as const;", json!(names).to_string().replace(',', ", "));
    assert!(file.lines().any(|known| known == line), "tree.ts lacks: {line}");
    let types = include_str!("../../../../sdk/js/index.d.ts");
    assert_eq!(members_after(types, "interface Quantified {"), names, "index.d.ts of the SDK");
}

/// The statement of a list of tasks for a caller who reads all of them, with its values.
fn listed_by(registry: &Registry, dialect: Dialect, parameters: &[(&str, &str)]) -> (String, Vec<Param>) {
    let object = registry.object("task").expect("an object");
    let all = Permissions::unrestricted().decide("task", Action::Read).and_then(Decision::plain).expect("a right");
    let request = ListRequest::from_parameters(parameters.iter().copied()).expect("a request");
    let reading =
        Reading { registry, decide: &|_| Ok(all.clone()), variables: &Variables::default, bounds: Bounds::of_request() };
    let plan = ListPlan::new(object, &all, &request, &reading, Vec::new()).expect("a plan");
    let statement = sql::list(dialect, &plan, None);
    (statement.sql.into(), statement.params)
}

#[test]
fn filters_have_the_statement_of_their_condition() {
    // The filters as a query string, the condition, and the tests of both on SQLite and on Postgres.
    let cases = [
        ("title=a", r#"{"title":"a"}"#, r#""title" = ?1"#, r#""title" = $1"#),
        ("title=null", r#"{"title":null}"#, r#""title" IS NULL"#, r#""title" IS NULL"#),
        (
            "title[neq]=a&count[gte]=1&count[lt]=9",
            r#"{"title":{"ne":"a"},"count":{">=":1,"lt":9}}"#,
            r#""title" IS NOT ?1 AND "count" >= ?2 AND "count" < ?3"#,
            r#""title" IS DISTINCT FROM $1 AND "count" >= $2 AND "count" < $3"#,
        ),
        (
            "count[in]=1,2&amount[nin]=1.5",
            r#"{"count":{"in":[1,2]},"amount":{"nin":[1.5]}}"#,
            r#""count" IN (?1, ?2) AND (NOT "amount" IN (?3) OR "amount" IS NULL)"#,
            r#""count" IN ($1, $2) AND (NOT "amount" IN ($3) OR "amount" IS NULL)"#,
        ),
        // Numbers with more digits than the column.
        (
            "amount[gte]=1.255&amount[lt]=9.999",
            r#"{"amount":{"gte":1.255,"lt":9.999}}"#,
            r#""amount" > ?1 AND "amount" <= ?2"#,
            r#""amount" > $1 AND "amount" <= $2"#,
        ),
        (
            "title[ilike]=ab&due[is_null]=",
            r#"{"_and":[{"title":{"ilike":"ab"}},{"due":{"is_null":true}}]}"#,
            r#"svc_contains("title", 1, ?1) AND "due" IS NULL"#,
            concat!(
                r#"strpos(upper(lower("title" COLLATE "und-x-icu")), upper(lower($1::text COLLATE "und-x-icu"))) > 0"#,
                r#" AND "due" IS NULL"#
            ),
        ),
        (
            "labels=a&done[neq]=true",
            r#"{"labels":"a","done":{"neq":true}}"#,
            concat!(
                r#"EXISTS (SELECT 1 FROM json_each("task"."labels") AS svc_item WHERE svc_item.value = ?1 LIMIT 1)"#,
                r#" AND "done" IS NOT ?2"#
            ),
            r#"EXISTS (SELECT 1 FROM unnest("task"."labels") AS svc_item WHERE svc_item = $1) AND "done" IS DISTINCT FROM $2"#,
        ),
    ];
    let registry = registry();
    for (filters, condition, on_sqlite, on_postgres) in cases {
        let filters: Vec<(&str, &str)> = filters.split('&').filter_map(|filter| filter.split_once('=')).collect();
        for (dialect, tests) in [(Dialect::Sqlite, on_sqlite), (Dialect::Postgres, on_postgres)] {
            let statement = listed_by(&registry, dialect, &filters);
            assert_eq!(statement, listed_by(&registry, dialect, &[("where", condition)]), "{condition}");
            assert_ne!(statement, listed_by(&registry, dialect, &[]), "{condition}");
            let (_, after) = statement.0.split_once(" WHERE ").expect("tests");
            assert_eq!(after.split(" ORDER BY ").next(), Some(tests), "{}", statement.0);
        }
    }
    let (_, params) = listed_by(&registry, Dialect::Postgres, &[("count[in]", "1,2"), ("amount[nin]", "1.5")]);
    assert_eq!(params[..3], [Param::Integer(Some(1)), Param::Integer(Some(2)), Param::Decimal(Some((150, 2)))]);
}

#[test]
fn own_rows_are_a_condition_like_any_other() {
    let registry = registry();
    let object = registry.object("task").expect("an object");
    let shapes = Shapes::default();
    let scope = |grant: serde_json::Value| {
        let grant: Grant = serde_json::from_value(grant).expect("a grant");
        let subject = Variables { user_id: Some("u1".to_owned()), ..Variables::default() };
        let decision = Permissions::of_subject(vec![grant], subject).decide("task", Action::Read).expect("a right");
        decision.on(&GrantContext { registry: &registry, now: 0, shapes: &shapes }, object).scope().clone()
    };
    let own = scope(json!({ "resource": "task", "actions": ["read"], "rowPolicy": "own" }));
    assert_eq!(own, Scope::Own("u1".to_owned()));
    for condition in [json!({ "created_by": "$user.id" }), json!({ "_and": [{ "created_by": { "eq": "$user.id" } }, {}] })] {
        let named = scope(json!({ "resource": "task", "actions": ["read"], "where": condition }));
        assert_eq!(named.condition(object), own.condition(object), "{condition}");
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn equal_values_have_the_same_hash() {
    assert_eq!(Value::Float(0.0), Value::Float(-0.0));
    assert_eq!(hash_of(&Value::Float(0.0)), hash_of(&Value::Float(-0.0)));
    for (one, other) in [
        (Value::Integer(1), Value::Datetime(1)),
        (Value::Text("a".to_owned()), Value::Json("a".to_owned())),
        (Value::Decimal { scaled: 1, scale: 2 }, Value::Decimal { scaled: 1, scale: 3 }),
    ] {
        assert_ne!(hash_of(&one), hash_of(&other), "{one:?} {other:?}");
    }
    let hash = |text: &str| hash_of(&task(text).expect("a condition"));
    for (one, other) in [
        (r#"{"project":{"name":"a"}}"#, r#"{"project":{"name":"b"}}"#),
        (r#"{"helpers":{"some":{"name":"a"}}}"#, r#"{"helpers":{"none":{"name":"a"}}}"#),
        (r#"{"title":"a"}"#, r#"{"title":{"neq":"a"}}"#),
        (r#"{"count":1,"title":"a"}"#, r#"{"_or":[{"count":1},{"title":"a"}]}"#),
    ] {
        assert_ne!(hash(one), hash(other), "{one} {other}");
    }
}

#[test]
fn a_stored_condition_reads_back_and_follows_renames() {
    let registry = registry();
    for_a_while(|input| {
        let text = random(input, "task", 3)?.to_string();
        let Ok(condition) = task(&text) else { return Ok(false) };
        let object = registry.object("task").expect("an object");
        let stored = Clause::new(&text).numbered(&registry, object).expect("a stored form");
        let named = stored.named(&registry, object).expect("names");
        let same = task(named.text()).expect("the same condition");
        assert_eq!(same, condition, "{text}\n{}", stored.text());
        assert_eq!(hash_of(&same), hash_of(&condition), "{text}");
        Ok(true)
    });
    let object = registry.object("task").expect("an object");
    let stored = |text: &str| Clause::new(text).numbered(&registry, object).map(|clause| clause.text().to_owned());
    let text = r#"{"title":"x","project_id":null,"created_by":"u","project.owner.name":{"in":["a"]},"_or":[{"helpers":{"some":{"name":"b"}}}]}"#;
    let expected =
        r##"{"#1:1":"x","#@1":null,"created_by":"u","@1>.@2>.#3:1":{"in":["a"]},"_or":[{"@3>":{"some":{"#3:1":"b"}}}]}"##;
    assert_eq!(stored(text).as_deref(), Some(expected));
    assert_eq!(stored(r#"{"nothing":1}"#), None);
    for gone in [r##"{"#1:99":1}"##, r##"{"#2:1":1}"##, r#"{"@9>":{}}"#, r#"{"title":1}"#, "[]", r#"{"_and":{}}"#] {
        assert_eq!(Clause::new(gone).named(&registry, object), None, "{gone}");
    }
}

#[test]
fn each_test_knows_the_operator_that_makes_it() {
    for operator in Operator::ALL {
        let (field, operand) = match operator.operand() {
            Operand::Ordered | Operand::Value => ("count", "1"),
            Operand::Text => ("title", "\"a\""),
            Operand::List => ("count", "[1]"),
            Operand::Nothing => ("count", "true"),
        };
        let name = operator.name();
        let condition = task(&format!(r#"{{"{field}":{{"{name}":{operand}}}}}"#)).expect("a condition");
        let Condition::Test(predicate) = condition else { panic!("{name} makes {condition:?}") };
        assert_eq!(predicate.test.operator(), *operator);
    }
}
