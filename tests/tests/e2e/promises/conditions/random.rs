//! Random valid conditions. The same seed makes the same conditions.

use chrono::{DateTime, FixedOffset, SecondsFormat};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::model::{Column, DEPTH_MAX, End, LEAVES_MAX, LEVELS_MAX, OPERATORS, Operator, Reach, Reader, STEPS_MAX, World};
use super::worlds::{NAMES, OPTIONS, WORDS, one_in, pick, value};

/// Makes valid conditions.
pub(in crate::promises) struct Generator<'a> {
    pub(in crate::promises) random: Rng,
    pub(in crate::promises) world: &'a World,
    /// The number of further tests and relation steps that the condition may have.
    leaves: usize,
    steps: usize,
    /// Whether the condition should be large.
    is_large: bool,
}

impl<'a> Generator<'a> {
    pub(in crate::promises) fn new(seed: u64, world: &'a World) -> Generator<'a> {
        Generator { random: Rng::with_seed(seed), world, leaves: 0, steps: 0, is_large: false }
    }

    /// Three readers: an admin, one who reads only their own rows of one object, and one who may not read one object at all.
    pub(in crate::promises) fn reaches(&mut self) -> [Vec<Reach>; 3] {
        let mut reaches = [(); 3].map(|()| vec![Reach::All; NAMES.len()]);
        // An object to which many relations lead.
        let object = self.world.relations[0].target;
        reaches[1][object] = Reach::Own;
        reaches[2][self.random.usize(..NAMES.len())] = Reach::Nothing;
        reaches
    }

    /// A condition on an object, for a reader whose variables it may use.
    pub(in crate::promises) fn condition(&mut self, object: usize, reader: &Reader) -> Value {
        self.is_large = one_in(&mut self.random, 12);
        self.leaves = if self.is_large { LEAVES_MAX } else { self.random.usize(1..7) };
        self.steps = self.random.usize(..=STEPS_MAX);
        Value::Object(self.object(object, reader, 1, 0))
    }

    /// A condition that is large only rarely.
    pub(in crate::promises) fn modest(&mut self, object: usize, reader: &Reader) -> Value {
        self.is_large = false;
        (self.leaves, self.steps) = (self.random.usize(1..5), self.random.usize(..=3));
        Value::Object(self.object(object, reader, 1, 0))
    }

    /// A condition with one test of the rows that one relation leads to. The server has the most ways to find its rows.
    pub(in crate::promises) fn leading(&mut self, object: usize, reader: &Reader) -> Value {
        let world = self.world;
        let Some(end) = self.random.choice(world.ends(object)) else { return self.modest(object, reader) };
        self.is_large = false;
        (self.leaves, self.steps) = (2, 0);
        let column = pick(&mut self.random, &world.objects[end.object].columns);
        let test = match column.kind != "json" && self.random.bool() {
            // An index may lead to equal values.
            true => Some((column.name.clone(), self.operand(end.object, column, reader, true))),
            false => self.leaf(end.object, reader, 3),
        };
        let test: Map<String, Value> = test.into_iter().collect();
        if end.is_single { json!({ end.key: test }) } else { json!({ end.key: { "some": test } }) }
    }

    /// A condition that is small enough for a grant.
    pub(in crate::promises) fn policy(&mut self, object: usize, reader: &Reader) -> Value {
        self.is_large = false;
        (self.leaves, self.steps) = (self.random.usize(1..4), self.random.usize(..=2));
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
                if one_in(&mut self.random, 6)
                    && let Some(items) = self.on_one_row(object, reader, level, depth)
                {
                    return Some((name.to_owned(), Value::Array(items)));
                }
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

    /// Two conditions on the row that one to-one relation leads to. The server makes one condition of them. `None` if the object
    /// has no such relation, or if the condition may not have two more steps and tests.
    fn on_one_row(&mut self, object: usize, reader: &Reader, level: usize, depth: usize) -> Option<Vec<Value>> {
        if self.steps < 2 || self.leaves < 2 || depth >= DEPTH_MAX || level + 3 > LEVELS_MAX {
            return None;
        }
        let ends: Vec<End> = self.world.ends(object).into_iter().filter(|end| end.is_single).collect();
        let end = self.random.choice(ends)?;
        self.steps -= 2;
        let mut items = Vec::new();
        for _ in 0..2 {
            let (key, value) = self.relation(&end, reader, level + 1, depth + 1);
            items.push(json!({ key: value }));
        }
        Some(items)
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

    /// A value from a row of the object in this column, if there is one. For a list, one of its texts.
    fn known(&mut self, object: usize, column: &Column) -> Option<Value> {
        let value = self.random.choice(&self.world.rows[object])?.values[&column.name].clone();
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
                // A number with more digits than the column.
                0 | 5 => json!(if text.contains('.') { format!("{text}0000000005") } else { format!("{text}.0000000005") }),
                // A number with few enough digits for a double.
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

    /// The same moment with another offset, or without one, which means UTC.
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

    /// A part of a text in the column, sometimes in another case.
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

/// A text as an operand. If it begins with `$`, this is escaped, because it would otherwise name a variable.
fn escaped(text: &str) -> String {
    if text.starts_with('$') { format!("${text}") } else { text.to_owned() }
}
