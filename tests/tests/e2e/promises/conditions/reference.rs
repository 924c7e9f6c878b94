//! Tests of only the reference and the generator, without a server.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::model::{Column, Everything, Object, Reach, Reader, Relation, Row, Size, Verdict, World};
use super::random::Generator;
use super::{shrink, worlds};

const WORLDS: std::ops::Range<u64> = 0..4;
const CONDITIONS: usize = 300;

fn reader(reads: Vec<Reach>, user: usize) -> Reader {
    let variables = BTreeMap::from([("$user.id", format!("user {user}")), ("$now", "2026-01-01T00:00:00Z".to_owned())]);
    Reader { name: "reader", user, reads, variables, roles: Some(vec!["admin".to_owned()]) }
}

/// Random worlds with random conditions. `check` gets the world, the reader, the object and the condition.
fn for_many(mut check: impl FnMut(&World, &Reader, usize, &Value)) {
    for seed in WORLDS {
        let (mut world, _) = worlds::world(seed);
        worlds::complete(&mut world);
        let mut generator = Generator::new(seed, &world);
        let reads = generator.reaches();
        for number in 0..CONDITIONS {
            let reader = reader(reads[number % 2].clone(), 1);
            let object = generator.random.usize(..world.objects.len());
            let condition = generator.condition(object, &reader);
            check(&world, &reader, object, &condition);
        }
    }
}

fn found(world: &World, reader: &Reader, object: usize, condition: &Value) -> (BTreeSet<String>, Size) {
    match world.judge(reader, object, condition) {
        Ok((Verdict::Found(ids), size)) => (ids, size),
        other => panic!("{other:?}: {condition}"),
    }
}

/// The same condition without dotted keys and short forms. The fields are those of the generator.
fn long(json: &Value) -> Value {
    let members = json.as_object().expect("an object").iter().map(|(key, value)| match (key.as_str(), value) {
        ("_not" | "some" | "none" | "every", value) => (key.clone(), long(value)),
        ("_and" | "_or", Value::Array(items)) => (key.clone(), items.iter().map(long).collect()),
        (dotted, value) if dotted.contains('.') => {
            let (first, rest) = dotted.split_once('.').expect("a dot");
            (first.to_owned(), long(&json!({ rest: value })))
        }
        (field, Value::Object(_)) if is_field(field) => (key.clone(), value.clone()),
        (_, Value::Object(_)) => (key.clone(), long(value)),
        (_, value) => (key.clone(), json!({ "eq": value })),
    });
    // Two keys may become the same key. They then count as several conditions.
    let mut map = Map::new();
    let mut others = Vec::new();
    for (key, value) in members {
        match map.contains_key(&key) {
            true => others.push(json!({ key: value })),
            false => drop(map.insert(key, value)),
        }
    }
    if others.is_empty() {
        return Value::Object(map);
    }
    others.insert(0, Value::Object(map));
    json!({ "_and": others })
}

fn is_field(name: &str) -> bool {
    let system = ["id", "created_at", "updated_at", "created_by", "updated_by"];
    name.starts_with("f_") || name.ends_with("_id") || system.contains(&name)
}

#[test]
fn random_conditions_are_within_the_bounds_and_telling() {
    let (mut all, mut telling, mut most) = (0, 0, Size::default());
    for_many(|world, reader, object, condition| {
        let (ids, size) = found(world, reader, object, condition);
        all += 1;
        telling += usize::from(!ids.is_empty() && ids.len() < world.rows[object].len());
        most = Size {
            leaves: most.leaves.max(size.leaves),
            levels: most.levels.max(size.levels),
            steps: most.steps.max(size.steps),
            depth: most.depth.max(size.depth),
        };
    });
    assert!(telling * 3 > all, "{telling} of {all}");
    assert!(most.leaves > 90 && most.levels == 8 && most.steps > 8 && most.depth == 3, "{most:?}");
}

#[test]
fn a_condition_and_its_negation_divide_the_rows() {
    let mut tried = 0;
    for_many(|world, reader, object, condition| {
        let (ids, size) = found(world, reader, object, condition);
        let (all, _) = found(world, reader, object, &json!({}));
        if size.levels < 8 {
            let (others, _) = found(world, reader, object, &json!({ "_not": condition }));
            assert!(ids.is_disjoint(&others) && &ids | &others == all, "{condition}");
            tried += 1;
        }
    });
    assert!(tried > 100, "{tried}");
}

#[test]
fn short_and_long_forms_find_the_same() {
    let mut tried = 0;
    for_many(|world, reader, object, condition| {
        let long = long(condition);
        // The long form of a test has one more level.
        if let Ok((verdict, size)) = world.judge(reader, object, &long) {
            let (ids, short) = found(world, reader, object, condition);
            assert_eq!(
                (verdict, size.leaves, size.steps, size.depth),
                (Verdict::Found(ids), short.leaves, short.steps, short.depth)
            );
            tried += usize::from(long != *condition);
        }
    });
    assert!(tried > 100, "{tried}");
}

#[tokio::test]
async fn a_condition_shrinks_to_what_is_wrong_with_it() {
    let condition = json!({ "_or": [{ "a": 1, "b": { "in": [1, 2, 3] } }, { "_not": { "c.d": { "some": { "e": { "gt": 1, "like": "x" } } } } }] });
    let smallest = shrink::shrunk(&condition, async |candidate| candidate.to_string().contains("like")).await;
    assert_eq!(smallest, json!({ "c.d": { "some": { "e": { "like": "x" } } } }));
    let smallest = shrink::shrunk(&condition, async |candidate| candidate.to_string().contains('2')).await;
    assert_eq!(smallest, json!({ "b": { "in": [2] } }));
}

#[test]
fn noted_rows_are_the_related_rows() {
    let mut related = 0;
    for seed in WORLDS {
        let (world, _) = worlds::world(seed);
        let mut noted = world.clone();
        noted.note_related();
        for (object, rows) in world.rows.iter().enumerate() {
            for (row, end) in rows.iter().flat_map(|row| world.ends(object).into_iter().map(move |end| (row, end))) {
                let ids = |world: &World| -> Vec<String> {
                    let rows = world.related(&Everything, &end, object, row);
                    let mut ids: Vec<String> = rows.into_iter().map(|other| other.id.clone()).collect();
                    ids.sort();
                    ids
                };
                let expected = ids(&world);
                assert_eq!(ids(&noted), expected, "seed {seed}, {end:?}");
                related += expected.len();
            }
        }
    }
    assert!(related > 1000, "{related}");
}

#[test]
fn rows_have_the_order_of_a_list() {
    let columns = [("id", "text"), ("created_at", "datetime"), ("title", "text"), ("amount", "integer")];
    let columns = columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).into();
    let row = |id: &str, day: usize, title: Value, amount: Value| {
        let created_at = format!("2026-01-0{day}T00:00:00.000Z");
        let values = json!({ "id": id, "created_at": created_at, "title": title, "amount": amount });
        Row { id: id.to_owned(), maker: 0, values: values.as_object().expect("an object").clone() }
    };
    let rows = vec![row("a", 1, json!("Z"), json!(2)), row("b", 2, json!("a"), json!(null)), row("c", 2, json!(null), json!(2))];
    let ids: BTreeSet<String> = rows.iter().map(|row| row.id.clone()).collect();
    let objects = vec![Object { name: "task".to_owned(), columns }];
    let world = World { objects, rows: vec![rows], ..World::default() };
    for (sort, expected) in [
        (None, ["c", "b", "a"]),
        (Some("title"), ["a", "b", "c"]),
        (Some("-title"), ["c", "b", "a"]),
        (Some("amount"), ["a", "c", "b"]),
        (Some("-amount"), ["b", "c", "a"]),
        (Some("amount,-id"), ["c", "a", "b"]),
    ] {
        assert_eq!(world.sorted(0, sort, &ids), expected, "{sort:?}");
    }
}

/// A small world: `task` with a project and tags, and `project`. The tests name rows by their titles.
struct Small(World);

impl Small {
    fn new() -> Small {
        let column = |(name, kind): (&str, &'static str)| Column { name: name.to_owned(), kind };
        let relation = |name: &str, kind| Relation { name: name.to_owned(), kind, source: 0, target: 1 };
        let objects = vec![
            Object {
                name: "task".to_owned(),
                columns: [
                    ("title", "text"),
                    ("amount", "decimal"),
                    ("float", "float"),
                    ("kinds", "multi_enum"),
                    ("at", "datetime"),
                    ("project_id", "uuid"),
                ]
                .map(column)
                .into(),
            },
            Object { name: "project".to_owned(), columns: [("name", "text")].map(column).into() },
        ];
        let relations = vec![relation("project", "many_to_one"), relation("tags", "many_to_many")];
        let row = |id: &str, maker, values: Value| Row {
            id: id.to_owned(),
            maker,
            values: values.as_object().expect("an object").clone(),
        };
        let tasks = vec![
            row(
                "one",
                0,
                json!({ "title": "Straße 100%", "amount": "1.10", "float": -0.0, "kinds": ["a", "b"], "at": "1970-01-01T00:00:00.000Z", "project_id": "x" }),
            ),
            row(
                "two",
                0,
                json!({ "title": "$x", "amount": "-2", "float": 0.1, "kinds": [], "at": "1969-12-31T23:59:59.999Z", "project_id": "y" }),
            ),
            row(
                "none",
                0,
                json!({ "title": null, "amount": null, "float": null, "kinds": null, "at": null, "project_id": null }),
            ),
        ];
        let projects = vec![row("x", 0, json!({ "name": "x" })), row("y", 1, json!({ "name": null }))];
        let link = |source: &str, target: &str| (1, source.to_owned(), target.to_owned());
        let links = BTreeSet::from([link("one", "x"), link("one", "y"), link("two", "y")]);
        let mut world = World { objects, relations, rows: vec![tasks, projects], links, ..World::default() };
        // This test compares references as texts, so that it can use readable ids.
        world.objects[0].columns[5].kind = "text";
        Small(world)
    }

    #[track_caller]
    fn expect(&self, reads: [Reach; 2], object: usize, condition: Value, expected: &[&str]) {
        let (ids, _) = found(&self.0, &reader(reads.into(), 0), object, &condition);
        let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(ids, expected, "{condition}");
    }
}

#[test]
fn the_reference_follows_the_examples_of_the_specification() {
    let small = Small::new();
    for (condition, expected) in [
        (json!({}), ["one", "two", "none"].as_slice()),
        (json!({ "_and": [] }), &["one", "two", "none"]),
        (json!({ "_or": [] }), &[]),
        (json!({ "_not": {} }), &[]),
        (json!({ "title": null }), &["none"]),
        (json!({ "title": { "neq": null } }), &["one", "two"]),
        (json!({ "title": "$$x" }), &["two"]),
        (json!({ "title": { "neq": "$$x" } }), &["one", "none"]),
        (json!({ "title": { "in": [] } }), &[]),
        (json!({ "title": { "nin": [] } }), &["one", "two", "none"]),
        (json!({ "title": { "in": [null, "$$x"] } }), &["two", "none"]),
        (json!({ "title": { "ILIKE": "STRASSE 1" } }), &["one"]),
        (json!({ "title": { "like": "strasse" } }), &[]),
        (json!({ "title": { "like": "%" } }), &["one"]),
        (json!({ "_not": { "title": { "like": "%" } } }), &["two", "none"]),
        (json!({ "amount": 1.1 }), &["one"]),
        (json!({ "amount": "1.10000000001" }), &[]),
        (json!({ "amount": { "lt": "1.10000000001" } }), &["one", "two"]),
        (json!({ "amount": { "gt": "1.09999999999" } }), &["one"]),
        (json!({ "float": 0 }), &["one"]),
        (json!({ "kinds": "a" }), &["one"]),
        (json!({ "kinds": { "neq": "a" } }), &["two", "none"]),
        (json!({ "kinds": null }), &["none"]),
        (json!({ "kinds": { "contains": "A" } }), &["one"]),
        (json!({ "at": { "lt": "1970-01-01T02:00:00+02:00" } }), &["two"]),
        (json!({ "project": {} }), &["one", "two", "none"]),
        (json!({ "project.name": null }), &["two", "none"]),
        (json!({ "project": { "name": { "neq": "x" } } }), &["two", "none"]),
        (json!({ "project.tags": { "every": { "title": "nothing" } } }), &["none"]),
        (json!({ "project.tags": { "some": { "title": "$$x" } } }), &["two"]),
        (json!({ "tags": { "some": {} } }), &["one", "two"]),
        (json!({ "tags": { "none": {} } }), &["none"]),
        (json!({ "tags": { "every": { "name": "x" } } }), &["none"]),
        (json!({ "tags": { "some": { "name": "x" }, "none": { "name": "z" } } }), &["one"]),
    ] {
        small.expect([Reach::All, Reach::All], 0, condition, expected);
    }
    for (condition, expected) in [
        (json!({ "project.name": null }), ["two", "none"].as_slice()),
        (json!({ "project_id": "y" }), &["two"]),
        (json!({ "tags": { "every": { "name": "x" } } }), &["one", "two", "none"]),
        (json!({ "tags": { "some": {} } }), &["one"]),
    ] {
        small.expect([Reach::All, Reach::Own], 0, condition, expected);
    }
    small.expect([Reach::All, Reach::All], 1, json!({ "task_by_project": { "some": { "title": "$$x" } } }), &["y"]);
    let nobody = reader(vec![Reach::All, Reach::Nothing], 0);
    assert_eq!(small.0.judge(&nobody, 0, &json!({ "_or": [{ "project": {} }] })).expect("a verdict").0, Verdict::Forbidden);
}

#[test]
fn the_reference_counts_and_refuses() {
    let world = Small::new().0;
    let all = reader(vec![Reach::All, Reach::All], 0);
    let size = |json: Value| world.judge(&all, 0, &json).expect("a valid condition").1;
    let sized = |leaves, levels, steps, depth| Size { leaves, levels, steps, depth };
    assert_eq!(size(json!({ "amount": { "gte": 1, "lt": 2 } })), sized(2, 2, 0, 0));
    assert_eq!(size(json!({ "project.task_by_project": { "some": { "title": "a" } } })), sized(1, 4, 2, 2));
    assert_eq!(size(json!({ "project": { "task_by_project": { "some": { "title": "a" } } } })), sized(1, 4, 2, 2));
    assert_eq!(size(json!({ "_or": [{ "project.name": "a" }, { "project.name": "b" }] })), sized(2, 3, 2, 1));
    let mut random = Rng::with_seed(1);
    for wrong in [
        json!([]),
        json!({ "_or": {} }),
        json!({ "_not": [] }),
        json!({ "_xor": [] }),
        json!({ "nothing": 1 }),
        json!({ "title": {} }),
        json!({ "title": 1 }),
        json!({ "title": "$x" }),
        json!({ "title": { "in": "a" } }),
        json!({ "amount": { "gt": null } }),
        json!({ "amount": { "like": "1" } }),
        json!({ "project": null }),
        json!({ "tags": {} }),
        json!({ "tags": { "name": "x" } }),
        json!({ "tags.name": "x" }),
        json!({ "title": { "is_null": false } }),
        json!({ "_or": vec![json!({ "title": "a" }); 101] }),
    ] {
        assert!(world.judge(&all, 0, &wrong).is_err(), "{wrong}");
        let place = random.usize(0..3);
        let nested = [
            json!({ "_not": wrong }),
            json!({ "_and": [{}, wrong] }),
            json!({ "tags": { "none": { "tags": { "some": wrong } } } }),
        ];
        assert!(world.judge(&all, 0, &nested[place]).is_err(), "{}", nested[place]);
    }
}
