//! Values in the form in which the reference compares them: exact numbers, texts by code point, moments as numbers.

use std::cmp::Ordering;

use chrono::{DateTime, Datelike, NaiveDate};
use serde_json::Value;

/// The value of one column of one row, or an operand of its type.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::promises) enum Cell {
    Null,
    Text(String),
    Exact(Exact),
    Float(f64),
    Flag(bool),
    /// A number of days, of milliseconds of a day, or of milliseconds since 1970.
    Moment(i64),
    /// The texts of a multi_enum.
    List(Vec<String>),
    Json,
}

/// A decimal number with all its digits: `digits` divided by ten to the power of `scale`.
#[derive(Clone, Copy, Debug)]
pub(in crate::promises) struct Exact {
    digits: i128,
    scale: i32,
}

impl Exact {
    fn read(text: &str) -> Option<Exact> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Exact { digits, scale: i32::try_from(fraction.len()).ok()? - exponent.parse::<i32>().ok()? })
    }

    fn digits_at(self, scale: i32) -> i128 {
        let power = u32::try_from(scale - self.scale).expect("a scale that is at least as large");
        10_i128.checked_pow(power).and_then(|factor| self.digits.checked_mul(factor)).expect("numbers of few digits")
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Exact {}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.digits_at(scale).cmp(&other.digits_at(scale))
    }
}

impl Cell {
    /// Reads the value of a column of this type from JSON. An operand of a multi_enum is one of its texts.
    pub(in crate::promises) fn read(kind: &str, value: &Value) -> Result<Cell, String> {
        let wrong = || format!("{value} is not a value of the type {kind}");
        Ok(match (kind, value) {
            (_, Value::Null) => Cell::Null,
            ("json", _) => Cell::Json,
            ("multi_enum", Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                Cell::List(texts.ok_or_else(wrong)?.into_iter().map(str::to_owned).collect())
            }
            ("text" | "email" | "url" | "slug" | "enum" | "multi_enum", Value::String(text)) => Cell::Text(text.clone()),
            ("float", Value::Number(number)) => Cell::Float(number.as_f64().ok_or_else(wrong)?),
            ("float", Value::String(text)) => Cell::Float(text.parse().map_err(|_| wrong())?),
            ("integer" | "big_integer" | "rating" | "decimal" | "currency" | "percentage", Value::Number(number)) => {
                Cell::Exact(Exact::read(&number.to_string()).ok_or_else(wrong)?)
            }
            ("integer" | "big_integer" | "rating" | "decimal" | "currency" | "percentage", Value::String(text)) => {
                Cell::Exact(Exact::read(text).ok_or_else(wrong)?)
            }
            ("boolean", Value::Bool(flag)) => Cell::Flag(*flag),
            ("boolean", Value::String(text)) => Cell::Flag(text.parse().map_err(|_| wrong())?),
            ("date", Value::String(text)) => {
                Cell::Moment(NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| wrong())?.num_days_from_ce().into())
            }
            ("time", Value::String(text)) => Cell::Moment(milliseconds_of_day(text).ok_or_else(wrong)?),
            ("datetime", Value::String(text)) => {
                // A moment without an offset is in UTC.
                let read = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc3339(&format!("{text}Z")));
                Cell::Moment(read.map_err(|_| wrong())?.timestamp_millis())
            }
            ("uuid", Value::String(text)) => Cell::Text(hyphenated(text).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        })
    }

    /// The order of two values of one type. Nulls, lists and JSON have no order.
    pub(in crate::promises) fn order(&self, other: &Cell) -> Option<Ordering> {
        match (self, other) {
            (Cell::Text(one), Cell::Text(other)) => Some(one.cmp(other)),
            (Cell::Exact(one), Cell::Exact(other)) => Some(one.cmp(other)),
            (Cell::Float(one), Cell::Float(other)) => one.partial_cmp(other),
            (Cell::Flag(one), Cell::Flag(other)) => Some(one.cmp(other)),
            (Cell::Moment(one), Cell::Moment(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }

    /// Whether the value equals an operand. Null equals null, and a list equals each of its texts.
    pub(in crate::promises) fn equals(&self, operand: &Cell) -> bool {
        match (self, operand) {
            (Cell::Null, Cell::Null) => true,
            (Cell::List(texts), Cell::Text(operand)) => texts.contains(operand),
            _ => self.order(operand) == Some(Ordering::Equal),
        }
    }

    /// Whether the value, or one of its texts, contains `part`.
    pub(in crate::promises) fn contains(&self, part: &str, folds_case: bool) -> bool {
        let is_in = |text: &String| if folds_case { folded(text).contains(&folded(part)) } else { text.contains(part) };
        match self {
            Cell::Text(text) => is_in(text),
            Cell::List(texts) => texts.iter().any(is_in),
            _ => false,
        }
    }
}

/// Changes texts that differ only in case, so that they become equal: `ẞ`, `ß` and `SS`, or `Σ`, `σ` and `ς`.
fn folded(text: &str) -> String {
    text.to_lowercase().to_uppercase()
}

fn milliseconds_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hours, minutes, rest) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let (seconds, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let whole = (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?) * 60 + seconds.parse::<i64>().ok()?;
    Some(whole * 1000 + format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?)
}

fn hyphenated(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_lowercase();
    let is_uuid = digits.len() == 32 && text.chars().all(|character| character.is_ascii_hexdigit() || "-{}".contains(character));
    is_uuid.then(|| [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}
