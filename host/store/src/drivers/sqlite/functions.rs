//! Functions that SQLite lacks: folding letters, searching in a long text, adding without rounding, and periods of local time.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockbase_query::sql::TINY;
use blockbase_query::{Period, Zone};
use blockbase_schema::{fold, time};
use num_bigint::BigInt;
use rusqlite::Connection as Driver;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};

use super::contains;
use super::meter::Meter;
use crate::topic_match;

/// Registers `svc_fold(text)`, `svc_contains(text, folds, term, …)`, `svc_number_text(number, scale)`, the aggregate
/// `svc_sum(number, scale)`, and for aggregates of groups `svc_exact_number(sum)`, `svc_exact_rank(sum)`, `svc_mean(sum, count)` and
/// `svc_period(value, period, zone)`.
pub(super) fn register(driver: &Driver, meter: &Arc<Meter>) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    driver.create_scalar_function("svc_fold", 1, flags, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Text(text) => Some(fold(&String::from_utf8_lossy(text))),
            _ => None,
        })
    })?;
    let of_connection = Arc::clone(meter);
    driver.create_scalar_function("svc_contains", -1, flags, move |context| contains::call(context, &of_connection))?;
    driver.create_scalar_function("svc_number_text", 2, flags, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Integer(number) => Some(scaled_text(i128::from(number), context.get(1)?)),
            ValueRef::Real(number) => Some(format!("{number:e}")),
            _ => None,
        })
    })?;
    driver.create_scalar_function("svc_exact_number", 1, flags, |context| exact_number(context.get_raw(0)))?;
    driver.create_scalar_function("svc_exact_rank", 1, flags, |context| exact_rank(context.get_raw(0)))?;
    driver.create_scalar_function("svc_mean", 2, flags, mean)?;
    driver.create_scalar_function("svc_period", 3, flags, period)?;
    topic_match::register(driver)?;
    driver.create_aggregate_function("svc_sum", 2, flags, ExactSum)
}

/// `mantissa / 10^scale` with all digits of the fraction, in the format of Postgres' type `numeric`.
fn scaled_text(mantissa: i128, scale: u8) -> String {
    let sign = if mantissa < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

/// The digits of an exact sum, without its point. `None` if the value is not a text.
fn digits(value: ValueRef<'_>) -> rusqlite::Result<Option<i128>> {
    let ValueRef::Text(text) = value else { return Ok(None) };
    let text = String::from_utf8_lossy(text).replace('.', "");
    text.parse().map(Some).map_err(|error: std::num::ParseIntError| rusqlite::Error::UserFunctionError(error.into()))
}

/// An exact sum in the form of a column of its type. If it has more than 64 bits, it becomes a real, which compares with every
/// 64-bit integer as the sum does.
fn exact_number(value: ValueRef<'_>) -> rusqlite::Result<Option<Value>> {
    Ok(digits(value)?.map(|number| i64::try_from(number).map_or(Value::Real(number as f64), Value::Integer)))
}

/// An exact sum as bytes in the same order.
fn exact_rank(value: ValueRef<'_>) -> rusqlite::Result<Option<Vec<u8>>> {
    // With the sign bit flipped, negative numbers come first.
    Ok(digits(value)?.map(|number| ((number as u128) ^ (1 << 127)).to_be_bytes().to_vec()))
}

/// A sum divided by a count, as the double that the answer shows.
fn mean(context: &Context<'_>) -> rusqlite::Result<Option<f64>> {
    let ValueRef::Text(text) = context.get_raw(0) else { return Ok(None) };
    let number = |text: &str| text.parse::<f64>().map_err(|error| rusqlite::Error::UserFunctionError(error.into()));
    let (sum, tiny) = (number(&String::from_utf8_lossy(text))?, number(TINY)?);
    Ok(Some(if sum.abs() < tiny { 0.0 } else { sum / context.get::<i64>(1)? as f64 }))
}

/// The begin of the period of a date or of an instant, in the same form. Without a zone, local time is UTC.
fn period(context: &Context<'_>) -> rusqlite::Result<Option<String>> {
    let ValueRef::Text(text) = context.get_raw(0) else { return Ok(None) };
    let text = String::from_utf8_lossy(text);
    let invalid = |what: &str| rusqlite::Error::UserFunctionError(format!("{what} cannot make periods").into());
    let period: String = context.get(1)?;
    let period = Period::named(&period).ok_or_else(|| invalid(&period))?;
    if let Some(day) = time::parse_date(&text) {
        return Ok(Some(time::format_date(period.first_day(day))));
    }
    // SQLite keeps the zone from row to row.
    let zone = context.get_or_create_aux(2, |name| -> rusqlite::Result<Arc<Zone>> {
        let name = name.as_str_or_null()?.unwrap_or("UTC");
        Zone::named(name).map_err(|error| rusqlite::Error::UserFunctionError(error.into()))
    })?;
    let millis = time::parse_datetime(&text).ok_or_else(|| invalid(&text))?;
    Ok(Some(time::format_datetime(zone.first_instant(period, millis.div_euclid(1000)) * 1000)))
}

/// Adds numbers without rounding. Doubles are added as decimal numbers with their shortest digits. So the order of the rows does
/// not matter.
struct ExactSum;

#[derive(Default)]
struct Sum {
    integers: i128,
    scale: u8,
    /// The mantissas. The key is the exponent of ten.
    reals: BTreeMap<i32, i128>,
    values: u64,
}

impl std::panic::UnwindSafe for Sum {}
impl std::panic::RefUnwindSafe for Sum {}

impl Aggregate<Sum, Option<String>> for ExactSum {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Sum> {
        Ok(Sum::default())
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut Sum) -> rusqlite::Result<()> {
        match context.get_raw(0) {
            ValueRef::Integer(number) => sum.integers += i128::from(number),
            ValueRef::Real(number) => {
                let text = format!("{number:e}");
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
                let exponent = exponent.parse::<i32>().unwrap_or(0) - fraction.len() as i32;
                *sum.reals.entry(exponent).or_insert(0) += format!("{whole}{fraction}").parse::<i128>().unwrap_or(0);
            }
            _ => return Ok(()),
        }
        sum.scale = context.get(1)?;
        sum.values += 1;
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<Sum>) -> rusqlite::Result<Option<String>> {
        Ok(sum.filter(|sum| sum.values > 0).map(|sum| match sum.reals.keys().next() {
            None => scaled_text(sum.integers, sum.scale),
            Some(least) => {
                let ten = BigInt::from(10);
                let total: BigInt =
                    sum.reals.iter().map(|(exponent, mantissa)| mantissa * ten.pow(exponent.abs_diff(*least))).sum();
                format!("{total}e{least}")
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_in_any_order() {
        let driver = Driver::open_in_memory().expect("a database");
        register(&driver, &Arc::default()).expect("functions");
        let sum = |values: &str, scale: u8| -> Option<String> {
            let sql = format!("SELECT svc_sum(value, {scale}) FROM json_each('[{values}]')");
            driver.query_row(&sql, [], |row| row.get(0)).expect("a row")
        };
        assert_eq!(sum("9223372036854775807, 9223372036854775807", 0).as_deref(), Some("18446744073709551614"));
        assert_eq!(sum("150, -5", 2).as_deref(), Some("1.45"));
        assert_eq!(sum("-5", 2).as_deref(), Some("-0.05"));
        assert_eq!(sum("", 2), None);
        assert_eq!(sum("null", 2), None);
        for order in ["1e300, 0.1, -1e300", "0.1, 1e300, -1e300"] {
            let text = sum(order, 0).expect("a sum");
            assert_eq!(text.parse::<f64>(), Ok(0.1), "{text}");
        }
    }
}
