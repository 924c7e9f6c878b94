//! Random schemas and rows. The same seed makes the same world.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::model::{Column, Object, Relation, Row, World};

pub(in crate::promises) const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
const KINDS: [&str; 19] = [
    "text",
    "integer",
    "multi_enum",
    "decimal",
    "email",
    "url",
    "slug",
    "enum",
    "big_integer",
    "float",
    "percentage",
    "currency",
    "rating",
    "boolean",
    "date",
    "datetime",
    "time",
    "json",
    "uuid",
];
/// The first object of a world has a field of each type. Each other object has fields of this many types besides the first ones
/// ([`KINDS_OF_ALL`]).
const KINDS_OF_OTHERS: usize = 8;
/// All objects have fields of the first types.
const KINDS_OF_ALL: usize = 3;
/// The number of rows of an object. One page of a list shows all of them.
const ROWS: std::ops::Range<usize> = 18..30;
/// The number of rows of the large object of a large world. The first rows in the order of a page, which the server judges first
/// on SQLite and on Postgres, are less than half of them.
const ROWS_OF_LARGE: usize = 600;

pub(in crate::promises) const OPTIONS: [&str; 6] = ["red", "Red", "Grün", "a,b", "null", "$free"];
pub(in crate::promises) const WORDS: [&str; 38] = [
    "",
    "a",
    "A",
    "abc",
    "ABC",
    "Äbc",
    "Straße",
    "STRASSE",
    "strasse",
    "STRAẞE",
    "é",
    "É",
    "e\u{301}",
    "e",
    "İstanbul",
    "istanbul",
    "ISTANBUL",
    "ıstanbul",
    "ΟΔΟΣ",
    "οδος",
    "οδοσ",
    "100%",
    "100_",
    "a_b",
    "axb",
    "null",
    "true",
    "007",
    "$x",
    "$user.id",
    "$$",
    "😀",
    "a😀b",
    "back\\slash \"quoted\"",
    "O'Brien",
    "{\"a\": 1}",
    "admin",
    "reader_ann",
];

pub(in crate::promises) fn pick<'a, T>(random: &mut Rng, of: &'a [T]) -> &'a T {
    &of[random.usize(..of.len())]
}

pub(in crate::promises) fn one_in(random: &mut Rng, times: usize) -> bool {
    random.usize(..times) == 0
}

/// A value for a field. Values repeat, and some are at the limits of their type.
pub(in crate::promises) fn value(random: &mut Rng, kind: &str, scale: usize) -> Value {
    match kind {
        "text" => {
            let words: Vec<&str> = (0..random.usize(1..4)).map(|_| *pick(random, &WORDS)).collect();
            json!(if random.bool() { words[0].to_owned() } else { words.join(" ") })
        }
        "email" => json!(*pick(random, &["ann@example.com", "Ann@Example.com", "bob_1@example.com", "c.d@example.org"])),
        "url" => json!(*pick(
            random,
            &["https://example.com/", "https://example.com/A%20b", "https://example.com/a%20b", "http://a.b/?c_d"]
        )),
        "slug" => json!(*pick(random, &["a", "a-b", "b", "abc-1", "100"])),
        "enum" => json!(*pick(random, &OPTIONS)),
        "multi_enum" => {
            let count = random.usize(0..4);
            json!(random.choose_multiple(OPTIONS.iter(), count))
        }
        "integer" => json!(*pick(random, &[0, 1, -1, 7, 7, 12, i32::MAX, i32::MIN])),
        "big_integer" => json!(*pick(random, &[0, 1, -1, 7, 9_007_199_254_740_993, 9_007_199_254_740_992, i64::MAX, i64::MIN])),
        "decimal" | "currency" | "percentage" => {
            let nines = "9".repeat(scale);
            let last = format!("{}1", "0".repeat(scale.saturating_sub(1)));
            let fraction = *pick(random, &["", "", "5", &nines, &last]);
            let whole = *pick(random, &["0", "1", "-1", "7", "-0", "123456789", "-123456789"]);
            json!(if fraction.is_empty() || scale == 0 { whole.to_owned() } else { format!("{whole}.{fraction}") })
        }
        "float" => json!(*pick(random, &[0.0, -0.0, 0.1, 0.2, 0.1 + 0.2, 3.0, -7.5, 1e300, -1e300, 5e-324])),
        "rating" => json!(random.u8(0..6)),
        "boolean" => json!(random.bool()),
        "date" => json!(*pick(
            random,
            &["1969-12-31", "1970-01-01", "1999-12-31", "2000-01-01", "2000-02-29", "0001-01-01", "9999-12-31"]
        )),
        "datetime" => json!(*pick(
            random,
            &[
                "1969-12-31T23:59:59.999Z",
                "1970-01-01T00:00:00.000Z",
                "1970-01-01T00:00:00.001Z",
                "1999-12-31T23:59:59.999Z",
                "2000-01-01T00:00:00.000Z",
                "2000-02-29T12:00:00.500Z",
                "0001-01-01T00:00:00.000Z",
                "9999-12-31T23:59:59.999Z",
            ]
        )),
        "time" => json!(*pick(random, &["00:00:00", "00:00:00.001", "12:00:00", "12:00:00.500", "12:30:00", "23:59:59.999"])),
        "json" => pick(random, &[json!({ "a": null }), json!([]), json!(false), json!({})]).clone(),
        _ => json!(format!("2000000{}-0000-4000-8000-00000000000a", random.u8(0..4))),
    }
}

/// Objects with their fields, both as definitions and as columns. One field in `indexed_one_in` has an index.
fn objects(random: &mut Rng, indexed_one_in: usize) -> (Vec<Object>, Vec<Value>) {
    let mut objects = Vec::new();
    let mut definitions = Vec::new();
    for (place, name) in NAMES.iter().enumerate() {
        let mut kinds: Vec<&str> = KINDS[..KINDS_OF_ALL].to_vec();
        let others = &KINDS[KINDS_OF_ALL..];
        let count = if place == 0 { others.len() } else { KINDS_OF_OTHERS };
        kinds.extend(random.choose_multiple(others.iter().copied(), count));
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for kind in kinds {
            let name = format!("f_{kind}");
            let mut field = json!({ "name": name, "type": kind });
            if matches!(kind, "enum" | "multi_enum") {
                field["options"] = json!(OPTIONS);
            }
            if kind == "decimal" {
                field["scale"] = json!(random.u8(0..9));
            }
            if !matches!(kind, "json" | "multi_enum") && one_in(random, indexed_one_in) {
                field["indexed"] = json!(true);
            }
            columns.push(Column { name, kind: KINDS.iter().find(|known| **known == kind).expect("a known type") });
            fields.push(field);
        }
        objects.push(Object { name: (*name).to_owned(), columns });
        definitions.push(json!({ "name": name, "fields": fields }));
    }
    (objects, definitions)
}

/// Every kind of relation: to the object itself, in a circle, and several between the same two objects.
fn relations(random: &mut Rng) -> Vec<Relation> {
    let mut places: Vec<usize> = (0..NAMES.len()).collect();
    random.shuffle(&mut places);
    let [one, two, three, _] = places[..] else { unreachable!("four objects") };
    let mut any = || random.usize(..NAMES.len());
    let (boss, twin, kids, friends) = (any(), any(), any(), any());
    [
        ("up", "many_to_one", one, two),
        ("further", "many_to_one", two, three),
        ("around", "many_to_one", three, one),
        ("first", "many_to_one", any(), one),
        ("second", "many_to_one", one, two),
        ("boss", "many_to_one", boss, boss),
        ("mate", "one_to_one", any(), any()),
        ("twin", "one_to_one", twin, twin),
        ("parts", "one_to_many", any(), any()),
        ("kids", "one_to_many", kids, kids),
        ("tags", "many_to_many", one, two),
        ("marks", "many_to_many", two, one),
        ("labels", "many_to_many", any(), any()),
        ("friends", "many_to_many", friends, friends),
    ]
    .map(|(name, kind, source, target)| Relation { name: name.to_owned(), kind, source, target })
    .into()
}

/// A random id. Ids have no order.
fn id(random: &mut Rng) -> String {
    let digits = format!("{:032x}", random.u128(..));
    [&digits[..8], &digits[8..12], &format!("4{}", &digits[13..16]), &format!("8{}", &digits[17..20]), &digits[20..]].join("-")
}

/// A world with the definitions of its objects. The rows have all values except those that the server sets.
pub(in crate::promises) fn world(seed: u64) -> (World, Vec<Value>) {
    random_world(seed, false)
}

/// A world in which one object has many rows ([`large_object`]), and more fields have indexes. So the server finds the rows of a
/// page in more ways.
pub(in crate::promises) fn large_world(seed: u64) -> (World, Vec<Value>) {
    random_world(seed, true)
}

/// The object of a large world that has many rows. Some relations lead from it, and others to it.
pub(in crate::promises) fn large_object(world: &World) -> usize {
    large_among(&world.relations)
}

fn large_among(relations: &[Relation]) -> usize {
    relations[0].source
}

fn random_world(seed: u64, is_large: bool) -> (World, Vec<Value>) {
    let mut random = Rng::with_seed(seed);
    let (mut objects, definitions) = objects(&mut random, if is_large { 2 } else { 4 });
    let relations = relations(&mut random);
    let large = is_large.then(|| large_among(&relations));
    let mut rows = Vec::new();
    for (place, (object, definition)) in objects.iter().zip(&definitions).enumerate() {
        let mut of_object = Vec::new();
        let count = if large == Some(place) { ROWS_OF_LARGE } else { random.usize(ROWS) };
        for _ in 0..count {
            let id = id(&mut random);
            let mut values = Map::from_iter([("id".to_owned(), json!(id))]);
            for (column, field) in object.columns.iter().zip(definition["fields"].as_array().expect("fields")) {
                let scale = field["scale"].as_u64().map_or(if column.kind == "currency" { 2 } else { 4 }, |scale| scale as usize);
                let is_null = random.u8(..) < 90;
                let value = if is_null { Value::Null } else { value(&mut random, column.kind, scale) };
                values.insert(column.name.clone(), value);
            }
            of_object.push(Row { id, maker: random.usize(0..2), values });
        }
        rows.push(of_object);
    }
    let mut world = World { relations, rows, ..World::default() };
    for place in 0..world.relations.len() {
        relate(&mut random, &mut world, place);
    }
    for (place, object) in objects.iter_mut().enumerate() {
        let system = [
            ("id", "uuid"),
            ("created_at", "datetime"),
            ("updated_at", "datetime"),
            ("created_by", "text"),
            ("updated_by", "text"),
        ];
        let references = world.relations.iter().filter(|relation| !relation.is_links() && relation.sides().0 == place);
        let references = references.map(|relation| Column { name: relation.column(), kind: "uuid" });
        object.columns.extend(system.map(|(name, kind)| Column { name: name.to_owned(), kind }).into_iter().chain(references));
    }
    world.objects = objects;
    (world, definitions)
}

/// Makes references or links of one relation between random rows.
fn relate(random: &mut Rng, world: &mut World, place: usize) {
    let relation = world.relations[place].clone();
    let ids = |object: usize| world.rows[object].iter().map(|row| row.id.clone()).collect::<Vec<_>>();
    if relation.is_links() {
        let (sources, targets) = (ids(relation.source), ids(relation.target));
        for _ in 0..sources.len() * 3 / 2 {
            world.links.insert((place, pick(random, &sources).clone(), pick(random, &targets).clone()));
        }
        return;
    }
    let (holder, referred) = relation.sides();
    let mut targets = ids(referred);
    for row in &mut world.rows[holder] {
        let is_null = targets.is_empty() || random.u8(..) < 85;
        let target = match (is_null, relation.kind) {
            (true, _) => Value::Null,
            // Each target is used once.
            (false, "one_to_one") => json!(targets.swap_remove(random.usize(..targets.len()))),
            (false, _) => json!(pick(random, &targets)),
        };
        row.values.insert(relation.column(), target);
    }
}

/// Sets the values that the server would set, for tests without a server.
pub(in crate::promises) fn complete(world: &mut World) {
    for (number, row) in world.rows.iter_mut().flatten().enumerate() {
        for name in ["created_at", "updated_at"] {
            row.values.insert(name.to_owned(), json!(format!("2020-01-01T00:00:00.{number:03}Z")));
        }
        for name in ["created_by", "updated_by"] {
            row.values.insert(name.to_owned(), json!(format!("user {}", row.maker)));
        }
    }
}
