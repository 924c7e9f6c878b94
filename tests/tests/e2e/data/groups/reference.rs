//! A plain reference for aggregates of groups: it groups rows in memory, and knows the clocks of Berlin by their rule.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use blockbase_query::Function;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, Weekday};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A record, in the units of its columns.
#[derive(Clone, Debug)]
pub(super) struct Sale {
    status: Option<&'static str>,
    item: Option<&'static str>,
    count: Option<i64>,
    big: Option<i64>,
    cents: Option<i64>,
    quarters: Option<i64>,
    /// Whether a weight of 0 is sent as -0.
    is_minus: bool,
    paid: Option<bool>,
    day: Option<NaiveDate>,
    at: Option<NaiveDateTime>,
    /// The seconds since midnight.
    hour: Option<u32>,
    shop: Option<String>,
}

const INSTANT: &str = "%Y-%m-%dT%H:%M:%S%.3fZ";

fn instant(text: &str) -> NaiveDateTime {
    NaiveDateTime::parse_from_str(text, INSTANT).expect("an instant")
}

/// A value, or sometimes none.
fn some<T>(random: &mut fastrand::Rng, value: impl FnOnce(&mut fastrand::Rng) -> T) -> Option<T> {
    let value = value(random);
    (random.u8(0..8) > 0).then_some(value)
}

impl Sale {
    pub(super) fn random(random: &mut fastrand::Rng, shops: &[String]) -> Sale {
        // Many instants are close to a change of the clocks, or to the end of a year.
        let near =
            ["2026-03-29T01:00:00.000Z", "2026-10-25T01:00:00.000Z", "2499-12-31T23:00:00.000Z", "2500-10-31T01:00:00.000Z"];
        let at = match random.u8(0..4) {
            0 => instant("1997-01-01T00:00:00.000Z") + TimeDelta::seconds(random.i64(0..250_000_000_000)),
            _ => instant(near[random.usize(0..near.len())]) + TimeDelta::milliseconds(random.i64(-20_000_000..20_000_000)),
        };
        let day = NaiveDate::from_ymd_opt(1, 1, 1).expect("a day");
        let day = match random.u8(0..3) {
            0 => day + TimeDelta::days(random.i64(0..3_652_058)),
            _ => at.date() + TimeDelta::days(random.i64(-40..40)),
        };
        Sale {
            status: some(random, |random| ["open", "paid", "lost"][random.usize(0..3)]),
            item: some(random, |random| ["a", "A", "ä", "b", "", "10", "9"][random.usize(0..7)]),
            count: some(random, |random| random.i64(-3..4)),
            big: some(random, |random| [i64::MAX, i64::MIN, 0, 1][random.usize(0..4)]),
            cents: some(random, |random| random.i64(-500..500)),
            quarters: some(random, |random| random.i64(-9..9)),
            is_minus: random.bool(),
            paid: some(random, |random| random.bool()),
            day: some(random, |_| day),
            at: some(random, |_| at),
            hour: some(random, |random| [0, 32_400, 32_401, 86_399][random.usize(0..4)]),
            shop: some(random, |random| shops[random.usize(0..shops.len())].clone()),
        }
    }

    pub(super) fn record(&self) -> Value {
        json!({
            "status": self.status, "item": self.item, "count": self.count, "big": self.big,
            "amount": self.cents.map(|cents| decimal(i128::from(cents))), "weight": self.weight(),
            "paid": self.paid, "day": self.day.map(|day| day.to_string()), "at": self.at.map(|at| at.format(INSTANT).to_string()),
            "hour": self.hour.map(time), "shop_id": self.shop,
        })
    }

    fn weight(&self) -> Option<f64> {
        self.quarters.map(|quarters| if quarters == 0 && self.is_minus { -0.0 } else { quarters as f64 / 4.0 })
    }

    /// The key of the sale's group by one field.
    fn key(&self, field: &str, berlin: bool) -> Cell {
        let text = |text: Option<String>| -> Cell { text.map(Ordered::Text).into() };
        let (name, period) = field.split_once(':').unwrap_or((field, ""));
        match name {
            "status" => text(self.status.map(str::to_owned)),
            "item" => text(self.item.map(str::to_owned)),
            "shop_id" => text(self.shop.clone()),
            "count" => self.count.map(|count| Ordered::Whole(i128::from(count))).into(),
            "big" => self.big.map(|big| Ordered::Whole(i128::from(big))).into(),
            "amount" => self.cents.map(i128::from).map_or_else(|| None.into(), amount),
            "weight" => self.quarters.map(|quarters| Ordered::Real(quarters as f64 / 4.0)).into(),
            "hour" => text(self.hour.map(time)),
            "paid" => Cell(self.paid.map(|paid| Ordered::Text(paid.to_string())), json!(self.paid)),
            "day" => text(self.day.map(|day| begin(day, period).to_string())),
            "at" if period.is_empty() => text(self.at.map(|at| at.format(INSTANT).to_string())),
            "at" => text(self.at.map(|at| first_instant(at, period, berlin).format(INSTANT).to_string())),
            _ => panic!("no field {field}"),
        }
    }

    /// A numeric value in the smallest unit of its column.
    fn number(&self, field: &str) -> Option<i128> {
        match field {
            "count" => self.count,
            "big" => self.big,
            "amount" => self.cents,
            "weight" => self.quarters,
            _ => panic!("no number {field}"),
        }
        .map(i128::from)
    }
}

/// The first day of a period.
fn begin(day: NaiveDate, period: &str) -> NaiveDate {
    let first = |month: u32| NaiveDate::from_ymd_opt(day.year(), month, 1).expect("a month");
    match period {
        "year" => first(1),
        "quarter" => first([1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10][day.month0() as usize]),
        "month" => first(day.month()),
        "week" => day.week(Weekday::Mon).first_day(),
        "" | "day" => day,
        _ => panic!("no period {period}"),
    }
}

/// The hours that Berlin is ahead of UTC, since 1996: one more from the last Sunday of March to the last Sunday of October, each at 1
/// o'clock in UTC.
fn berlin_hours(at: NaiveDateTime) -> i64 {
    let changes = |month: u32| {
        let last = NaiveDate::from_ymd_opt(at.year(), month, 31).expect("a day");
        let sunday = last - TimeDelta::days(i64::from(last.weekday().num_days_from_sunday()));
        sunday.and_hms_opt(1, 0, 0).expect("a time")
    };
    if at >= changes(3) && at < changes(10) { 2 } else { 1 }
}

fn first_instant(at: NaiveDateTime, period: &str, berlin: bool) -> NaiveDateTime {
    let hours = |at: NaiveDateTime| TimeDelta::hours(if berlin { berlin_hours(at) } else { 0 });
    let local = at + hours(at);
    if period == "hour" {
        let seconds = local.and_utc().timestamp().rem_euclid(3600);
        let hour = local.and_utc().timestamp() - seconds;
        return DateTime::from_timestamp(hour, 0).expect("an hour").naive_utc() - hours(at);
    }
    let begin = begin(local.date(), period).and_hms_opt(0, 0, 0).expect("midnight");
    // The clocks never change at midnight.
    (0..=2).rev().map(|ahead| begin - TimeDelta::hours(ahead)).find(|at| *at + hours(*at) == begin).expect("a midnight")
}

/// A value that can be ordered.
#[derive(Clone, Debug, PartialEq)]
enum Ordered {
    Whole(i128),
    Real(f64),
    Text(String),
}

/// A value as it is ordered and as it is shown. `None` is null, which comes last.
#[derive(Clone, Debug)]
struct Cell(Option<Ordered>, Value);

impl From<Option<Ordered>> for Cell {
    fn from(value: Option<Ordered>) -> Cell {
        let shown = match &value {
            None => Value::Null,
            Some(Ordered::Whole(number)) => serde_json::from_str(&number.to_string()).expect("a number"),
            Some(Ordered::Real(number)) => json!(number),
            Some(Ordered::Text(text)) => json!(text),
        };
        Cell(value, shown)
    }
}

fn compared(one: &Cell, other: &Cell) -> Ordering {
    match (&one.0, &other.0) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(Ordered::Whole(one)), Some(Ordered::Whole(other))) => one.cmp(other),
        (Some(Ordered::Real(one)), Some(Ordered::Real(other))) => one.partial_cmp(other).expect("numbers"),
        (Some(Ordered::Text(one)), Some(Ordered::Text(other))) => one.cmp(other),
        pair => panic!("{pair:?}"),
    }
}

fn time(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Cents as an amount. The order of cents is that of the amounts.
fn amount(cents: i128) -> Cell {
    Cell(Some(Ordered::Whole(cents)), json!(decimal(cents).parse::<f64>().expect("a number")))
}

/// The text of a number that is shown with all its digits. `None` for doubles and for values that are no numbers.
fn exact(column: &str, cell: &Cell) -> Option<String> {
    match (column, &cell.0) {
        ("amount", Some(Ordered::Whole(cents))) => {
            let text = decimal(*cents);
            Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
        }
        (_, Some(Ordered::Whole(number))) => Some(number.to_string()),
        _ => None,
    }
}

fn decimal(cents: i128) -> String {
    format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
}

const FIELDS: [&str; 22] = [
    "status",
    "item",
    "shop_id",
    "count",
    "big",
    "amount",
    "weight",
    "hour",
    "paid",
    "day",
    "day:year",
    "day:quarter",
    "day:month",
    "day:week",
    "at",
    "at:year",
    "at:quarter",
    "at:month",
    "at:week",
    "at:day",
    "at:hour",
    "day:day",
];
const FUNCTIONS: [&str; 12] = [
    "count",
    "count:item",
    "sum:count",
    "sum:big",
    "sum:amount",
    "sum:weight",
    "avg:amount",
    "avg:weight",
    "min:amount",
    "max:weight",
    "max:count",
    "min:big",
];

/// A request for groups.
#[derive(Clone, Debug)]
pub(super) struct Question {
    group_by: Vec<&'static str>,
    functions: Vec<&'static str>,
    /// A key and whether it descends.
    sort: Option<(String, bool)>,
    /// The least number of records, and the number that `sum_amount` has to exceed.
    having: (Option<i64>, Option<i64>),
    berlin: bool,
}

impl Question {
    pub(super) fn random(random: &mut fastrand::Rng) -> Question {
        let fields = random.usize(0..4);
        let mut group_by = random.choose_multiple(FIELDS, fields);
        let mut functions = random.choose_multiple(FUNCTIONS, 4);
        functions.truncate(random.usize(1..5));
        if group_by.is_empty() && functions.len() == 1 {
            group_by.push("status");
        }
        // The names of the field and of the function would be the same.
        if group_by.contains(&"count") {
            functions.retain(|function| *function != "count");
            if functions.is_empty() {
                functions.push("count:item");
            }
        }
        let keys: Vec<String> =
            group_by.iter().map(|field| (*field).to_owned()).chain(functions.iter().map(|name| name.replace(':', "_"))).collect();
        let sort = (random.u8(0..3) > 0).then(|| (keys[random.usize(0..keys.len())].clone(), random.bool()));
        let has = |function: &str| functions.contains(&function);
        let least = (has("count") && random.bool()).then(|| random.i64(0..6));
        let above = (has("sum:amount") && random.bool()).then(|| random.i64(-4..4));
        Question { group_by, functions, sort, having: (least, above), berlin: random.bool() }
    }

    /// The parameters without those of the page.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let mut parameters = vec![("fn".to_owned(), self.functions.join(","))];
        if !self.group_by.is_empty() {
            parameters.push(("groupBy".to_owned(), self.group_by.join(",")));
        }
        if let Some((key, descends)) = &self.sort {
            parameters.push(("sort".to_owned(), format!("{}{key}", if *descends { "-" } else { "" })));
        }
        let mut having = json!({});
        if let Some(least) = self.having.0 {
            having["count"] = json!({ "gte": least });
        }
        if let Some(above) = self.having.1 {
            having["sum_amount"] = json!({ "gt": above });
        }
        if self.having != (None, None) {
            parameters.push(("having".to_owned(), having.to_string()));
        }
        if self.berlin {
            parameters.push(("tz".to_owned(), "Europe/Berlin".to_owned()));
        }
        parameters
    }

    /// All groups, in their order.
    pub(super) fn answer(&self, sales: &[Sale]) -> Vec<Row> {
        let mut groups: Vec<(Vec<Cell>, Vec<&Sale>)> = Vec::new();
        if self.group_by.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for sale in sales {
            let keys: Vec<Cell> = self.group_by.iter().map(|field| sale.key(field, self.berlin)).collect();
            let is_same = |known: &[Cell]| known.iter().zip(&keys).all(|(known, key)| known.1 == key.1);
            match groups.iter_mut().find(|(known, _)| is_same(known)) {
                Some((_, members)) => members.push(sale),
                None => groups.push((keys, vec![sale])),
            }
        }
        let mut rows: Vec<(Vec<Cell>, Vec<Cell>)> = groups
            .into_iter()
            .map(|(keys, members)| (keys, self.functions.iter().map(|function| computed(function, &members)).collect()))
            .collect();
        rows.retain(|(_, values)| {
            let value =
                |function: &str| self.functions.iter().position(|known| *known == function).map(|place| values[place].1.clone());
            let (least, above) = self.having;
            let count = value("count").and_then(|count| count.as_i64());
            let sum = value("sum:amount").and_then(|sum| sum.as_f64());
            least.is_none_or(|least| count.is_some_and(|count| count >= least))
                && above.is_none_or(|above| sum.is_some_and(|sum| sum > above as f64))
        });
        let place = |key: &str| {
            let of_function = |function: &&str| function.replace(':', "_") == key;
            let field = self.group_by.iter().position(|field| *field == key);
            field.or_else(|| Some(self.group_by.len() + self.functions.iter().position(of_function)?)).expect("a key")
        };
        let sort = self.sort.as_ref().map(|(key, descends)| (place(key), *descends));
        rows.sort_by(|one, other| {
            let cell =
                |row: &(Vec<Cell>, Vec<Cell>), place: usize| row.0.iter().chain(&row.1).nth(place).expect("a cell").clone();
            let asked = sort.map_or(Ordering::Equal, |(place, descends)| {
                let order = compared(&cell(one, place), &cell(other, place));
                if descends { order.reverse() } else { order }
            });
            let by_keys = one.0.iter().zip(&other.0).map(|(one, other)| compared(one, other));
            by_keys.fold(asked, Ordering::then)
        });
        let shown = |(keys, values): (Vec<Cell>, Vec<Cell>)| {
            let mut row = Row { shown: json!({ "group": {} }), exact: Vec::new() };
            for (field, key) in self.group_by.iter().zip(keys) {
                row.exact.extend(exact(field, &key).map(|text| (true, (*field).to_owned(), text)));
                row.shown["group"][field] = key.1;
            }
            for (function, value) in self.functions.iter().zip(values) {
                let key = function.replace(':', "_");
                let column = function.split_once(':').filter(|(name, _)| *name != "count").map_or("", |(_, column)| column);
                row.exact.extend(exact(column, &value).map(|text| (false, key.clone(), text)));
                row.shown[key] = value.1;
            }
            row
        };
        rows.into_iter().map(shown).collect()
    }
}

fn computed(function: &str, sales: &[&Sale]) -> Cell {
    let Some((function, field)) = function.split_once(':') else {
        return Some(Ordered::Whole(sales.len() as i128)).into();
    };
    if function == "count" {
        return Some(Ordered::Whole(sales.iter().filter(|sale| sale.item.is_some()).count() as i128)).into();
    }
    let values: Vec<i128> = sales.iter().filter_map(|sale| sale.number(field)).collect();
    let sum: i128 = values.iter().sum();
    let whole = match function {
        "sum" | "avg" => Some(sum).filter(|_| !values.is_empty()),
        "min" => values.iter().min().copied(),
        "max" => values.iter().max().copied(),
        _ => panic!("no function {function}"),
    };
    let Some(whole) = whole else { return None.into() };
    let shown: f64 = match field {
        "amount" => decimal(whole).parse().expect("a number"),
        "weight" => whole as f64 / 4.0,
        _ => whole as f64,
    };
    match (function, field) {
        ("avg", _) => Some(Ordered::Real(shown / values.len() as f64)).into(),
        (_, "weight") => Some(Ordered::Real(shown)).into(),
        (_, "amount") => amount(whole),
        _ => Some(Ordered::Whole(whole)).into(),
    }
}

/// A group with its results.
pub(super) struct Row {
    shown: Value,
    /// The texts of exact numbers, each with whether it is a key of the group, and with its name.
    exact: Vec<(bool, String, String)>,
}

type Members = BTreeMap<String, Box<RawValue>>;

/// The groups of an answer, as text.
pub(super) fn texts(answer: &str) -> Vec<Box<RawValue>> {
    let members: Members = serde_json::from_str(answer).expect("an answer");
    serde_json::from_str(members["data"].get()).expect("groups")
}

/// Compares groups. Exact numbers are compared with all their digits, and doubles by their values.
#[track_caller]
pub(super) fn assert_same(found: &[Box<RawValue>], expected: &[Row], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        let shown: Value = serde_json::from_str(found.get()).expect("a group");
        assert!(is_same(&shown, &expected.shown), "{what}\nplace {place}: {found}\nexpected: {}", expected.shown);
        let row: Members = serde_json::from_str(found.get()).expect("a group");
        let group: Members = serde_json::from_str(row["group"].get()).expect("keys");
        for (is_key, name, text) in &expected.exact {
            let found = if *is_key { &group[name] } else { &row[name] };
            assert_eq!(found.get(), text, "{what}\nplace {place}: {name}");
        }
    }
}

fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            found.len() == expected.len()
                && expected.iter().all(|(key, value)| found.get(key).is_some_and(|found| is_same(found, value)))
        }
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}

#[test]
fn every_function_is_compared() {
    for function in Function::ALL {
        let is_asked = FUNCTIONS.iter().any(|asked| asked.split(':').next() == Some(function.name()));
        assert!(is_asked, "{function:?} is never asked for");
    }
}
