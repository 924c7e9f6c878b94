//! Random operations. Each has at most one fault, so all surfaces find the same fault first.

use fastrand::Rng;
use serde_json::json;

use super::operation::{Action, Filter, FilterValue, Increment, Members, Operation, Query, plain, quoted};
use super::schema::{Kind, LABEL, OBJECTS, OPTIONS, PERSON, SYSTEM_COLUMNS, TASK, columns, required};

/// An id that no record has.
const MISSING: &str = "20000000-0000-4000-8000-000000000000";
const WORDS: [&str; 12] =
    ["red fox", "Red", "hen", "É", "été", "ß", "100%", "a_b", "say \"hi\", you", "back\\slash", "007", "日本 😀"];
const TERMS: [&str; 8] = ["re", "RED", "é", "%", "_", "hi\", y", "\\", "nothing like it"];
/// Each operator, with one of its aliases.
const OPERATORS: [(&str, &str); 17] = [
    ("eq", "eq"),
    ("eq", "=="),
    ("neq", "neq"),
    ("neq", "<>"),
    ("gt", "gt"),
    ("gt", ">"),
    ("gte", "GTE"),
    ("lt", "lt"),
    ("lte", "<="),
    ("like", "like"),
    ("ilike", "ilike"),
    ("ilike", "Contains"),
    ("in", "in"),
    ("nin", "notin"),
    ("nin", "nin"),
    ("is_null", "is_null"),
    ("is_not_null", "notnull"),
];

/// The state from which operations are drawn.
pub(super) struct Draw {
    random: Rng,
    /// A separate generator for conditions, so that an operation is the same with and without a condition.
    of_conditions: Rng,
    /// The numbers of each object's records, by the object's index in [`OBJECTS`].
    made: [Vec<usize>; OBJECTS.len()],
    /// The numbers of deleted records.
    gone: Vec<usize>,
    count: usize,
}

fn pick<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

/// Conditions on the records of an object. They use each kind of relation.
fn conditions(object: &str) -> &'static [&'static str] {
    match object {
        TASK => &[
            r#"{"_or":[{"rank":{"gte":2}},{"title":{"ilike":"RE"}}]}"#,
            r#"{"_not":{"_and":[{"done":{"eq":true}},{"price":{"lt":0.5}}]}}"#,
            r#"{"owner":{"name":{"neq":"Red"}},"kinds":{"in":["open",null]}}"#,
            r#"{"_not":{"keeper":{"task_by_keeper":{"title":{"is_null":true}}}}}"#,
            r#"{"labels":{"every":{"code":{"like":"-1"}},"some":{}}}"#,
            r#"{"labels":{"none":{"labels":{"some":{"status":{"eq":"open"}}}}}}"#,
            r#"{"created_by":{"eq":"$user.id"}}"#,
            r#"{"size":{"in":[9007199254740993,0]}}"#,
            r#"{"rank":{}}"#,
            r#"{"labels":{}}"#,
        ],
        PERSON => &[
            r#"{"task_by_owner":{"some":{"_or":[{"rank":{"is_null":true}},{"done":{"neq":true}}]}}}"#,
            r#"{"task_by_owner":{"every":{"labels":{"some":{"name":{"ilike":"e"}}}}}}"#,
            r#"{"_or":[]}"#,
        ],
        _ => &[r#"{"labels":{"none":{"owner":{"name":{"like":"e"}}}}}"#, r#"{"_not":{"name":{"nin":["hen",null]}}}"#],
    }
}

fn place(object: &str) -> usize {
    OBJECTS.iter().position(|known| *known == object).unwrap()
}

impl Draw {
    pub(super) fn new(seed: u64) -> Draw {
        Draw {
            random: Rng::with_seed(seed),
            of_conditions: Rng::with_seed(!seed),
            made: Default::default(),
            gone: Vec::new(),
            count: 0,
        }
    }

    /// The caller of the operation, by index.
    pub(super) fn caller(&mut self) -> usize {
        self.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5])
    }

    /// Remembers that a record was made.
    pub(super) fn remember(&mut self, object: &str) {
        self.made[place(object)].push(self.count);
        self.count += 1;
    }

    /// Remembers which records were deleted.
    pub(super) fn forget<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        let numbers = ids.into_iter().filter_map(|id| id.trim_matches('#').parse::<usize>().ok());
        for number in numbers {
            self.made.iter_mut().for_each(|made| made.retain(|known| *known != number));
            self.gone.push(number);
        }
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.random.u32(..count) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        pick(&mut self.random, of)
    }

    /// The number of a record. Sometimes it is a deleted one, or an id that no record has.
    fn id(&mut self, object: &str) -> String {
        let from = match self.random.u8(..24) {
            0 => &[],
            1 => self.gone.as_slice(),
            _ => self.made[place(object)].as_slice(),
        };
        match self.random.choice(from) {
            Some(number) => format!("#{number}#"),
            None => MISSING.to_owned(),
        }
    }

    fn ids(&mut self, object: &str) -> Vec<String> {
        (0..self.random.usize(1..4)).map(|_| self.id(object)).collect()
    }

    fn object(&mut self) -> &'static str {
        self.pick(&[TASK, TASK, TASK, TASK, PERSON, LABEL])
    }

    /// JSON of a valid value for a column of this kind.
    fn value(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Text => quoted(self.pick(&WORDS)),
            Kind::Email => quoted(self.pick(&["ann@example.com", "Bob@example.com"])),
            Kind::Slug => format!("\"code-{}\"", self.random.u8(..25)),
            Kind::Enum => quoted(self.pick(&OPTIONS)),
            Kind::MultiEnum => {
                let count = self.random.usize(..3);
                json!(self.random.choose_multiple(OPTIONS, count)).to_string()
            }
            Kind::Integer => self.pick(&["-5", "0", "1", "2", "3", "17", "48", "\"12\""]).to_owned(),
            Kind::BigInteger => {
                self.pick(&["0", "-7", "9007199254740993", "\"9007199254740995\"", "-9223372036854775808"]).to_owned()
            }
            Kind::Decimal => {
                self.pick(&["0", "-2.50", "123456789012.345678", "0.0000005", "\"99999999999.123456\"", "1e3"]).to_owned()
            }
            Kind::Float => self.pick(&["0.1", "-0.0", "5e-324", "1e300", "3", "\"0.25\""]).to_owned(),
            Kind::Boolean => self.pick(&["true", "false", "\"true\""]).to_owned(),
            Kind::Datetime => {
                let (month, offset) = (self.random.u8(1..13), self.pick(&["Z", "+02:00", ".5-11:30", ""]));
                format!("\"2001-{month:02}-03T04:05:06{offset}\"")
            }
            Kind::Json => {
                self.pick(&["{\"b\":[1,1.5,null],\"a\":\"é\"}", "[]", "5", "\"{\\\"a\\\":1}\"", "{\"$inc\":1}"]).to_owned()
            }
            Kind::Reference(object) => quoted(&self.id(object)),
        }
    }

    /// JSON of an invalid value for a column of this kind.
    fn wrong(&mut self, kind: Kind) -> String {
        let of: &[&str] = match kind {
            Kind::Text => &["5", "true", "[\"a\"]", "{}", "\"a\\u0000\""],
            Kind::Email => &["5", "\"nobody\""],
            Kind::Slug => &["7", "\"A b\"", "\"\""],
            Kind::Enum => &["\"none\"", "5", "[\"open\"]"],
            Kind::MultiEnum => &["[\"none\"]", "[\"open\",\"open\"]", "5", "[1]", "{}"],
            Kind::Integer => &["1.5", "2147483648", "\"x\"", "true", "51", "[1]"],
            Kind::BigInteger => &["1.5", "9223372036854775808", "\"x\"", "{}"],
            Kind::Decimal => &["1e18", "\"x\"", "false", "-1000000001"],
            Kind::Float => &["\"x\"", "1e999", "[]"],
            Kind::Boolean => &["1", "\"yes\"", "{}"],
            Kind::Datetime => &["5", "\"yesterday\"", "\"2001-02-30T00:00:00Z\""],
            Kind::Json => &["\"{\""],
            Kind::Reference(_) => &["\"x\"", "5", "true"],
        };
        self.pick(of).to_owned()
    }

    /// Columns with values. If `faulty` is true, one of the columns is invalid, missing or unknown.
    fn record(&mut self, object: &str, is_patch: bool, faulty: bool) -> Members {
        let fault = if faulty { self.random.u8(..6) } else { u8::MAX };
        let all = columns(object);
        let wrong = if fault < 4 { self.random.usize(..all.len()) } else { usize::MAX };
        let mut record = Members::default();
        for (at, (name, kind)) in all.iter().enumerate() {
            let is_needed = *name == required(object) && !is_patch;
            match (is_needed, at == wrong) {
                (_, true) => {
                    let json = self.wrong(*kind);
                    record.set(name, json);
                }
                (true, _) if fault == 4 && self.random.bool() => {}
                (true, _) if fault == 4 => record.set(name, "null"),
                (true, _) => {
                    let json = self.value(*kind);
                    record.set(name, json);
                }
                _ if self.one_in(2) => {}
                // Most references are to existing records. Otherwise most writes would fail.
                _ if matches!(kind, Kind::Reference(_)) && self.one_in(2) => record.set(name, "null"),
                _ if *name != required(object) && self.one_in(8) => record.set(name, "null"),
                _ => {
                    let json = self.value(*kind);
                    record.set(name, json);
                }
            }
        }
        if fault == 5 {
            let name = self.pick(&["nothing", "created_by", "owner", "ID"]);
            record.set(name, "\"x\"");
        }
        record
    }

    fn filter(&mut self, object: &str) -> Filter {
        if self.one_in(12) {
            let id = quoted(&self.id(object));
            return Filter { field: "id".to_owned(), operator: ("neq", "!="), value: FilterValue::One(id) };
        }
        let (name, kind) = self.pick(columns(object));
        let operator = loop {
            let operator = self.pick(&OPERATORS);
            if kind.takes(operator.0) {
                break operator;
            }
        };
        // To filter a list, the value is one of its items.
        let kind = if kind == Kind::MultiEnum { Kind::Enum } else { kind };
        let value = match operator.0 {
            "is_null" | "is_not_null" => FilterValue::None,
            "like" | "ilike" => FilterValue::One(quoted(self.pick(&TERMS))),
            "in" | "nin" => {
                let mut items: Vec<String> = (0..self.random.usize(1..4)).map(|_| self.value(kind)).collect();
                match self.random.bool() {
                    true => {
                        // A null in an array is null on every surface. In a text with commas, an item `null` is null in a query
                        // string, and a text in JSON. A query string cannot search for null, so no `like` has one either.
                        items.extend(self.one_in(4).then(|| "null".to_owned()));
                        FilterValue::List(items)
                    }
                    false => FilterValue::Joined(items),
                }
            }
            "eq" | "neq" if self.one_in(6) => FilterValue::One("null".to_owned()),
            _ => FilterValue::One(self.value(kind)),
        };
        Filter { field: name.to_owned(), operator, value }
    }

    /// A filter with an unknown field or operator, an operator that does not apply to the column, or an invalid value.
    fn wrong_filter(&mut self, object: &str) -> Filter {
        let (name, kind) = self.pick(columns(object));
        let value = FilterValue::One(self.value(kind));
        let (name, operator, value) = match self.random.u8(..5) {
            0 => ("nothing", ("eq", "eq"), value),
            1 => (name, ("near", "near"), value),
            2 if object == TASK => {
                let (name, operator) = self.pick(&[("rank", ("like", "like")), ("extra", ("eq", "=")), ("kinds", ("gt", ">"))]);
                (name, operator, FilterValue::One("\"a\"".to_owned()))
            }
            3 => (name, ("gt", ">"), FilterValue::One("null".to_owned())),
            _ => (name, ("lt", "<"), FilterValue::One(self.pick(&["\"x\"", "\"1,2\"", "\"1e400\""]).to_owned())),
        };
        Filter { field: name.to_owned(), operator, value }
    }

    /// Search and filters.
    fn selection(&mut self, object: &str, faulty: bool) -> Query {
        let mut query = Query::default();
        if faulty {
            query.filters.push(self.wrong_filter(object));
        } else {
            for _ in 0..self.pick(&[0, 0, 0, 1, 1, 2]) {
                let filter = self.filter(object);
                query.filters.push(filter);
            }
        }
        if self.one_in(5) {
            query.search = Some(self.pick(&TERMS).to_owned());
        }
        if !faulty && self.of_conditions.u8(..4) == 0 {
            query.condition = Some(pick(&mut self.of_conditions, conditions(object)));
        }
        query
    }

    fn column(&mut self, object: &str) -> String {
        let all = columns(object);
        match self.one_in(4) {
            true => self.pick(&SYSTEM_COLUMNS).to_owned(),
            false => self.pick(all).0.to_owned(),
        }
    }

    fn expand(&mut self, object: &str) -> Vec<String> {
        let keys: &[&str] = match object {
            TASK => {
                &["owner", "keeper", "labels", "owner.task_by_owner", "labels.labels.owner", "owner.task_by_keeper", "nothing"]
            }
            PERSON => &["task_by_owner", "task_by_keeper", "task_by_owner.labels"],
            _ => &["labels", "labels.keeper"],
        };
        let count = self.random.usize(1..3);
        self.random.choose_multiple(keys.iter(), count).into_iter().map(|key| (*key).to_owned()).collect()
    }

    fn list(&mut self, object: &str) -> Query {
        let fault = if self.one_in(6) { self.random.u8(..4) } else { u8::MAX };
        let mut query = self.selection(object, fault == 0);
        for _ in 0..self.pick(&[0, 1, 1, 2]) {
            let key = (self.column(object), self.random.bool());
            query.sort.push(key);
        }
        if fault == 1 {
            query.sort.push(("nothing".to_owned(), false));
        }
        query.window = match self.random.u8(..5) {
            _ if fault == 2 => vec![self.pick(&[("page", 0), ("page", -1), ("pageSize", 0), ("limit", 0), ("offset", -3)])],
            0 => vec![("page", self.random.i64(1..4)), ("pageSize", self.random.i64(1..7))],
            1 => vec![("pageSize", self.pick(&[2, 100, 500]))],
            2 => vec![("limit", self.random.i64(1..7)), ("offset", self.random.i64(0..9))],
            3 => vec![("page", 2), ("offset", self.random.i64(0..3))],
            _ => Vec::new(),
        };
        if self.one_in(4) || fault == 3 {
            let mut select: Vec<String> = (0..self.random.usize(1..4)).map(|_| self.column(object)).collect();
            if fault == 3 {
                select.push("nothing".to_owned());
            }
            query.select = Some(select);
        }
        if fault == u8::MAX && self.one_in(3) {
            query.expand = self.expand(object);
        }
        query.without_count = self.one_in(5);
        query
    }

    fn aggregate(&mut self, object: &str) -> Action {
        let fault = if self.one_in(8) { self.random.u8(..2) } else { u8::MAX };
        let query = self.selection(object, fault == 0);
        let numeric: Vec<&str> = columns(object).iter().filter(|(_, kind)| kind.is_numeric()).map(|(name, _)| *name).collect();
        let (function, field) = match self.random.u8(..5) {
            _ if fault == 1 => self.pick(&[("median", None), ("sum", None), ("sum", Some("title")), ("max", Some("nothing"))]),
            0 => ("count", None),
            1 => ("count", Some(self.pick(columns(object)).0)),
            _ if numeric.is_empty() => ("count", None),
            _ => (self.pick(&["sum", "avg", "min", "max"]), Some(self.pick(&numeric))),
        };
        Action::Aggregate { function, field: field.map(str::to_owned), query }
    }

    fn update(&mut self, object: &str) -> Action {
        let (values, increments) = self.changes(object);
        Action::Update { id: self.id(object), values, increments }
    }

    fn update_many(&mut self, object: &str) -> Action {
        let (values, increments) = self.changes(object);
        Action::UpdateMany { ids: self.ids(object), values, increments }
    }

    fn changes(&mut self, object: &str) -> (Members, Vec<Increment>) {
        let faulty = self.one_in(6);
        let mut values = self.record(object, true, faulty);
        let mut increments = Vec::new();
        if object == TASK && !faulty && self.one_in(3) {
            for name in ["rank", "size", "price", "ratio"] {
                if self.one_in(2) {
                    values.0.retain(|(known, _)| known != name);
                    let operator = self.pick(&["$inc", "$inc", "$dec"]);
                    let amount = self.pick(&["1", "-3", "40"]).to_owned();
                    increments.push(Increment { field: name.to_owned(), operator, amount });
                }
            }
            if self.one_in(6) {
                let (name, operator, amount) = self.pick(&[
                    ("title", "$inc", "1"),
                    ("status", "$dec", "1"),
                    ("due", "$inc", "1"),
                    ("rank", "$mul", "2"),
                    ("rank", "$inc", "0.5"),
                    ("price", "$inc", "\"x\""),
                    ("nothing", "$inc", "1"),
                ]);
                (values, increments) = (Members::default(), Vec::new());
                increments.push(Increment { field: name.to_owned(), operator, amount: amount.to_owned() });
            }
        }
        (values, increments)
    }

    fn upsert(&mut self, object: &str) -> Action {
        let faulty = self.one_in(10);
        let mut values = self.record(object, false, faulty);
        let targets: &[&[&str]] = match object {
            TASK => &[
                &["code"],
                &["code"],
                &["code"],
                &["place", "rank"],
                &["rank", "place"],
                &["keeper_id"],
                &["id"],
                &["title"],
                &["nothing"],
            ],
            LABEL => &[&["code"], &["code"], &["name"]],
            _ => &[&["id"], &["id"], &["email"]],
        };
        let target = if faulty { targets[0] } else { self.pick(targets) }.to_vec();
        for (name, kind) in columns(object) {
            if target.contains(name) && !values.names(name) && (faulty || !self.one_in(8)) {
                let json = self.value(*kind);
                values.set(name, json);
            }
        }
        if target == ["id"] {
            let id = quoted(&self.id(object));
            values.set("id", id);
        }
        let order = |name: &str| columns(object).iter().position(|(known, _)| *known == name);
        values.0.sort_by_key(|(name, _)| order(name).unwrap_or(usize::MAX));
        Action::Upsert { values, target }
    }

    fn link(&mut self) -> Operation {
        let object = self.pick(&[TASK, LABEL]);
        let related = if object == TASK { LABEL } else { TASK };
        let relation = if self.one_in(15) { self.pick(&["owner", "nothing"]) } else { "labels" };
        let (id, ids, adds) = (self.id(object), self.ids(related), self.random.u8(..3) > 0);
        Operation { object, action: Action::Link { id, relation, ids, adds } }
    }

    /// An operation for a caller. The caller may run most of them.
    pub(super) fn operation(&mut self, caller: &str) -> Operation {
        // At the beginning there is nothing to read.
        let object = if self.count < 4 { OBJECTS[self.count % 3] } else { self.object() };
        let kind = match caller {
            _ if self.count < 8 => self.random.u8(..30),
            "creator" if self.random.bool() => 0,
            "reader" | "stranger" | "nobody" if self.random.bool() => self.random.u8(64..100),
            _ => self.random.u8(..100),
        };
        let action = match kind {
            0..22 => {
                let faulty = self.one_in(6);
                Action::Create(self.record(object, false, faulty))
            }
            22..30 => self.upsert(object),
            30..34 => {
                let faulty = self.one_in(3);
                let mut records = vec![self.record(object, false, false), self.record(object, false, faulty)];
                if self.one_in(4) {
                    records.clear();
                }
                Action::CreateMany(records)
            }
            34..45 => self.update(object),
            45..48 => self.update_many(object),
            48..53 => Action::Delete { id: self.id(object) },
            53..56 => Action::DeleteMany { ids: self.ids(object) },
            56..64 => return self.link(),
            64..70 => {
                let expand = if self.random.bool() { self.expand(object) } else { Vec::new() };
                Action::Get { id: self.id(object), expand }
            }
            70..78 => self.aggregate(object),
            78..79 => return Operation { object: "nowhere", action: Action::List(Query::default()) },
            79..80 => Action::Get { id: self.pick(&["x", "1 2", "é"]).to_owned(), expand: Vec::new() },
            _ => Action::List(self.list(object)),
        };
        Operation { object, action }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_query::Operator;
    use blockbase_schema::ColumnType;

    use super::*;

    #[test]
    fn every_operator_is_drawn_for_the_columns_that_it_compares() {
        for operator in Operator::ALL {
            assert!(OPERATORS.iter().any(|(name, _)| *name == operator.name()), "{operator:?} is never drawn");
        }
        for (name, alias) in OPERATORS {
            let operator = Operator::parse(name).expect("an operator");
            assert_eq!(Operator::parse(alias).ok(), Some(operator), "{alias}");
            for (kind, ty) in [
                (Kind::Text, ColumnType::Text),
                (Kind::MultiEnum, ColumnType::TextList),
                (Kind::Integer, ColumnType::Integer),
                (Kind::Boolean, ColumnType::Boolean),
                (Kind::Json, ColumnType::Json),
                (Kind::Reference(PERSON), ColumnType::Uuid),
            ] {
                assert_eq!(kind.takes(name), operator.applies_to(ty), "{name} {ty:?}");
            }
        }
    }

    #[test]
    fn texts_mean_the_same_in_a_parameter_and_in_json() {
        for text in WORDS.iter().chain(&TERMS).chain(&OPTIONS) {
            assert!(!matches!(*text, "null" | "true" | "false") && !text.contains('#'), "{text}");
            assert_eq!(plain(&quoted(text)), *text);
        }
    }
}
