//! Random schemas, rows and conditions. The same seed makes the same ones.

use chrono::{DateTime, FixedOffset, SecondsFormat};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::model::{
    Column, DEPTH_MAX, End, LEAVES_MAX, LEVELS_MAX, OPERATORS, Object, Operator, Reach, Reader, Relation, Row, STEPS_MAX, World,
};

const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
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
/// The first objects have a field of each type, the others of so many.
const KINDS_OF_OTHERS: usize = 8;
/// Fields of the first types are everywhere.
const KINDS_OF_ALL: usize = 3;
/// Rows of an object. A page of a list shows them all.
const ROWS: std::ops::Range<usize> = 18..30;

pub(super) const OPTIONS: [&str; 6] = ["red", "Red", "Grün", "a,b", "null", "$free"];
const WORDS: [&str; 38] = [
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

fn pick<'a, T>(random: &mut Rng, of: &'a [T]) -> &'a T {
    &of[random.usize(..of.len())]
}

fn one_in(random: &mut Rng, times: usize) -> bool {
    random.usize(..times) == 0
}

/// A value for a field. Values repeat, and lie at the edges of their type.
fn value(random: &mut Rng, kind: &str, scale: usize) -> Value {
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

/// Objects with their fields, as definitions and as columns.
fn objects(random: &mut Rng) -> (Vec<Object>, Vec<Value>) {
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
            if !matches!(kind, "json" | "multi_enum") && one_in(random, 4) {
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

/// Every kind of relation: to itself, in a circle, and several between the same two objects.
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

/// An id that has no meaning, and no order either.
fn id(random: &mut Rng) -> String {
    let digits = format!("{:032x}", random.u128(..));
    [&digits[..8], &digits[8..12], &format!("4{}", &digits[13..16]), &format!("8{}", &digits[17..20]), &digits[20..]].join("-")
}

/// A world whose rows have every value but those that the server gives, and the definitions of its objects.
pub(super) fn world(seed: u64) -> (World, Vec<Value>) {
    let mut random = Rng::with_seed(seed);
    let (mut objects, definitions) = objects(&mut random);
    let relations = relations(&mut random);
    let mut rows = Vec::new();
    for (object, definition) in objects.iter().zip(&definitions) {
        let mut of_object = Vec::new();
        for _ in 0..random.usize(ROWS) {
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

/// References or links of one relation between random rows.
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
            // Each once.
            (false, "one_to_one") => json!(targets.swap_remove(random.usize(..targets.len()))),
            (false, _) => json!(pick(random, &targets)),
        };
        row.values.insert(relation.column(), target);
    }
}

/// Gives rows what the server would give them, for tests without a server.
pub(super) fn complete(world: &mut World) {
    for (number, row) in world.rows.iter_mut().flatten().enumerate() {
        for name in ["created_at", "updated_at"] {
            row.values.insert(name.to_owned(), json!(format!("2020-01-01T00:00:00.{number:03}Z")));
        }
        for name in ["created_by", "updated_by"] {
            row.values.insert(name.to_owned(), json!(format!("user {}", row.maker)));
        }
    }
}

/// Makes conditions that are valid.
pub(super) struct Generator<'a> {
    pub(super) random: Rng,
    pub(super) world: &'a World,
    /// How many more leaves and relation steps the condition may have.
    leaves: usize,
    steps: usize,
    /// Whether the condition is to be a large one.
    is_large: bool,
}

impl<'a> Generator<'a> {
    pub(super) fn new(seed: u64, world: &'a World) -> Generator<'a> {
        Generator { random: Rng::with_seed(seed), world, leaves: 0, steps: 0, is_large: false }
    }

    /// An admin, somebody who reads only their own rows of one object, and somebody who does not read one object at all.
    pub(super) fn reaches(&mut self) -> [Vec<Reach>; 3] {
        let mut reaches = [(); 3].map(|()| vec![Reach::All; NAMES.len()]);
        // An object that many relations lead to.
        let object = self.world.relations[0].target;
        reaches[1][object] = Reach::Own;
        reaches[2][self.random.usize(..NAMES.len())] = Reach::Nothing;
        reaches
    }

    /// A condition on an object, for somebody whose variables it may name.
    pub(super) fn condition(&mut self, object: usize, reader: &Reader) -> Value {
        self.is_large = one_in(&mut self.random, 12);
        self.leaves = if self.is_large { LEAVES_MAX } else { self.random.usize(1..7) };
        self.steps = self.random.usize(..=STEPS_MAX);
        Value::Object(self.object(object, reader, 1, 0))
    }

    fn object(&mut self, object: usize, reader: &Reader, level: usize, depth: usize) -> Map<String, Value> {
        let members = if one_in(&mut self.random, 25) { 0 } else { *pick(&mut self.random, &[1, 1, 1, 1, 1, 2, 2, 3]) };
        let mut map = Map::new();
        for _ in 0..members {
            if let Some((key, value)) = self.member(object, reader, level, depth) {
                map.insert(key, value);
            }
        }
        map
    }

    fn member(&mut self, object: usize, reader: &Reader, level: usize, depth: usize) -> Option<(String, Value)> {
        let is_deep = level >= LEVELS_MAX;
        match self.random.u8(0..100) {
            0..22 if !is_deep => {
                let name = *pick(&mut self.random, &["_and", "_or", "_or"]);
                let count = match (one_in(&mut self.random, 20), self.is_large) {
                    (true, _) => 0,
                    (false, true) => self.random.usize(2..12),
                    (false, false) => self.random.usize(1..4),
                };
                let mut items = Vec::new();
                for _ in 0..count {
                    if self.leaves > 0 {
                        items.push(Value::Object(self.object(object, reader, level + 1, depth)));
                    }
                }
                Some((name.to_owned(), Value::Array(items)))
            }
            22..32 if !is_deep => Some(("_not".to_owned(), Value::Object(self.object(object, reader, level + 1, depth)))),
            32..66 if self.steps > 0 && depth < DEPTH_MAX && level + 2 <= LEVELS_MAX => {
                let Some(end) = self.random.choice(self.world.ends(object)) else { return self.leaf(object, reader, level) };
                self.steps -= 1;
                Some(self.relation(&end, reader, level, depth + 1))
            }
            _ => self.leaf(object, reader, level),
        }
    }

    fn relation(&mut self, end: &End, reader: &Reader, level: usize, depth: usize) -> (String, Value) {
        if end.is_single {
            let mut inner = self.object(end.object, reader, level + 1, depth);
            let only = inner.keys().next().filter(|key| inner.len() == 1 && !key.starts_with('_')).cloned();
            return match only {
                Some(key) if self.random.bool() => (format!("{}.{key}", end.key), inner.remove(&key).expect("the only value")),
                _ => (end.key.clone(), Value::Object(inner)),
            };
        }
        let count = if one_in(&mut self.random, 6) { 2 } else { 1 };
        let mut map = Map::new();
        for name in self.random.choose_multiple(["some", "none", "every"], count) {
            map.insert(name.to_owned(), Value::Object(self.object(end.object, reader, level + 2, depth)));
        }
        (end.key.clone(), Value::Object(map))
    }

    fn leaf(&mut self, object: usize, reader: &Reader, level: usize) -> Option<(String, Value)> {
        let world = self.world;
        let column = pick(&mut self.random, &world.objects[object].columns);
        self.leaves = self.leaves.checked_sub(1)?;
        let is_short = level >= LEVELS_MAX || one_in(&mut self.random, 4);
        if is_short && column.kind != "json" {
            return Some((column.name.clone(), self.operand(object, column, reader, true)));
        }
        if level >= LEVELS_MAX {
            return None;
        }
        let mut operators = Map::new();
        self.operator(object, column, reader, &mut operators);
        if self.leaves > 0 && one_in(&mut self.random, 5) {
            self.leaves -= 1;
            self.operator(object, column, reader, &mut operators);
        }
        Some((column.name.clone(), Value::Object(operators)))
    }

    fn operator(&mut self, object: usize, column: &Column, reader: &Reader, operators: &mut Map<String, Value>) {
        let fitting: Vec<_> = OPERATORS.iter().filter(|(operator, _)| operator.fits(column.kind)).collect();
        let (operator, names) = **pick(&mut self.random, &fitting);
        let name = match self.random.u8(0..4) {
            0 => pick(&mut self.random, names).to_uppercase(),
            1 => (*pick(&mut self.random, names)).to_owned(),
            _ => names[0].to_owned(),
        };
        let operand = match operator {
            Operator::IsNull | Operator::IsNotNull => json!(true),
            Operator::In | Operator::Nin if column.kind == "text" && one_in(&mut self.random, 12) => {
                json!("$user.roles")
            }
            Operator::In | Operator::Nin => {
                (0..self.random.usize(0..5)).map(|_| self.operand(object, column, reader, true)).collect()
            }
            Operator::Like | Operator::Ilike => self.part(object, column),
            Operator::Eq | Operator::Neq => self.operand(object, column, reader, true),
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => self.operand(object, column, reader, false),
        };
        operators.insert(name, operand);
    }

    /// A value that a row of the object has in this column. Of lists it is one of their texts.
    fn known(&mut self, object: usize, column: &Column) -> Option<Value> {
        let rows = &self.world.rows[object];
        let value = rows[self.random.usize(..rows.len())].values[&column.name].clone();
        match value {
            Value::Null => None,
            Value::Array(texts) if column.kind == "multi_enum" => self.random.choice(texts),
            other => Some(other),
        }
    }

    fn operand(&mut self, object: usize, column: &Column, reader: &Reader, may_be_null: bool) -> Value {
        if may_be_null && one_in(&mut self.random, 12) {
            return Value::Null;
        }
        let variable = match column.name.as_str() {
            "created_by" | "updated_by" => Some("$user.id"),
            "created_at" | "updated_at" | "f_datetime" => Some("$now").filter(|_| !may_be_null),
            "f_date" => Some("$today"),
            _ => None,
        };
        if let Some(variable) = variable.filter(|name| reader.variables.contains_key(name))
            && one_in(&mut self.random, 5)
        {
            return json!(variable);
        }
        let of_a_row = (0..3).find_map(|_| self.known(object, column)).filter(|_| !one_in(&mut self.random, 8));
        let value = of_a_row.unwrap_or_else(|| match column.kind {
            "multi_enum" => json!(*pick(&mut self.random, &OPTIONS)),
            kind => value(&mut self.random, kind, 2),
        });
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match column.kind {
            "integer" | "big_integer" | "rating" => match self.random.u8(0..6) {
                0 => json!(text),
                1 if !text.starts_with('-') => json!(format!("00{text}")),
                _ => value,
            },
            "decimal" | "currency" | "percentage" => match self.random.u8(0..6) {
                // One digit more than the column has.
                0 => json!(if text.contains('.') { format!("{text}0000000005") } else { format!("{text}.0000000005") }),
                // Few enough digits for a double.
                1 | 2 if text.len() < 15 => text.parse::<f64>().map_or(value, |number| json!(number)),
                3 if text.len() < 10 && !text.contains('.') => text.parse::<i64>().map_or(value, |number| json!(number)),
                _ => value,
            },
            "float" if one_in(&mut self.random, 4) => json!(text),
            "boolean" if one_in(&mut self.random, 4) => json!(text),
            "datetime" => json!(self.spelled_moment(&text)),
            "time" => match self.random.u8(0..4) {
                0 if text.ends_with(":00") => json!(text[..5]),
                1 if text.len() == 8 => json!(format!("{text}.000")),
                _ => value,
            },
            "uuid" => match self.random.u8(0..6) {
                0 => json!(text.to_uppercase()),
                1 => json!(text.replace('-', "")),
                _ => value,
            },
            "text" | "enum" | "multi_enum" | "email" | "url" | "slug" => json!(escaped(&text)),
            _ => value,
        }
    }

    /// The same moment with another offset, or with none, which means UTC.
    fn spelled_moment(&mut self, text: &str) -> String {
        let is_at_an_edge = text.starts_with("0001") || text.starts_with("9999");
        match self.random.u8(0..4) {
            0 => text.trim_end_matches('Z').to_owned(),
            1 if !is_at_an_edge => {
                let offset = FixedOffset::east_opt(*pick(&mut self.random, &[7200, -41_400, 20_700])).expect("an offset");
                let moment = DateTime::parse_from_rfc3339(text).expect("a datetime");
                moment.with_timezone(&offset).to_rfc3339_opts(SecondsFormat::Millis, true)
            }
            _ => text.to_owned(),
        }
    }

    /// A part of a text of the column, now and then in another case.
    fn part(&mut self, object: usize, column: &Column) -> Value {
        let text = match self.known(object, column).filter(|_| !one_in(&mut self.random, 6)) {
            Some(Value::String(text)) => text,
            _ => (*pick(&mut self.random, &WORDS)).to_owned(),
        };
        let characters: Vec<char> = text.chars().collect();
        let begin = self.random.usize(..=characters.len());
        let begin = if self.random.bool() { 0 } else { begin };
        let part: String = characters[begin..self.random.usize(begin..=characters.len())].iter().collect();
        json!(escaped(&match self.random.u8(0..4) {
            0 => part.to_uppercase(),
            1 => part.to_lowercase(),
            _ => part,
        }))
    }
}

/// A text as an operand: `$` at its beginning would name a variable.
fn escaped(text: &str) -> String {
    if text.starts_with('$') { format!("${text}") } else { text.to_owned() }
}
