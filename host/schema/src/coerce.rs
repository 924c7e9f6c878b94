//! The values that each type of column accepts.

use std::borrow::Cow;
use std::cmp::Ordering;

use rust_decimal::Decimal;

use crate::code::Code;
use crate::column::{Column, ColumnType};
use crate::error::{Error, Result};
use crate::field::FieldType;
use crate::number::{DECIMAL_DIGITS_MAX, NumberText, Rounding};
use crate::quote::excerpt_of;
use crate::value::{TextBounds, Value};
use crate::{json, time};

/// The maximum number of bytes of one character.
const CHARACTER_BYTES_MAX: u64 = 4;

/// A JSON value before it is read as a type.
enum Input<'a> {
    Null,
    Boolean(bool),
    /// The number's text with all its digits.
    Number(&'a str),
    Text(Cow<'a, str>),
    /// An object or an array, as text.
    Composite(&'a str),
}

fn read(raw: &str) -> Result<Input<'_>, String> {
    let raw = raw.trim();
    Ok(match raw.as_bytes().first() {
        Some(b'n') => Input::Null,
        Some(b't') => Input::Boolean(true),
        Some(b'f') => Input::Boolean(false),
        Some(b'"') => {
            let text: Cow<'_, str> = match &raw[1..raw.len().saturating_sub(1)] {
                plain if !plain.contains('\\') => Cow::Borrowed(plain),
                _ => Cow::Owned(serde_json::from_str(raw).map_err(|error| error.to_string())?),
            };
            if text.contains('\0') {
                return Err("text cannot hold the NUL character".to_owned());
            }
            Input::Text(text)
        }
        Some(b'{' | b'[') => Input::Composite(raw),
        _ => Input::Number(raw),
    })
}

/// Reads a filter's text value (a query parameter) as a value of `column`. The column's rules are not checked.
///
/// The column's type decides how the text is read: `007` stays `007` on a text column and is 7 on an integer column.
pub fn parse_filter_text(column: &Column, text: &str) -> Result<Value> {
    if text.contains('\0') {
        return Err(column.invalid("text cannot hold the NUL character"));
    }
    column.coerce(Input::Text(Cow::Borrowed(text)), false)
}

impl Column {
    /// Reads the text of a JSON value as a value of this column, and checks the column's rules.
    ///
    /// # Errors
    /// `invalid_value` if the value does not fit the type, `CONSTRAINT_VIOLATION` if it breaks a rule. `field` is set.
    pub fn value_of(&self, raw: &str) -> Result<Value> {
        let input = read(raw).map_err(|why| self.invalid(&why))?;
        if self.ty == ColumnType::Json {
            return self.json_value(raw, input);
        }
        self.coerce(input, true)
    }

    /// Reads the amount of `$inc` or `$dec`. It is rounded like a value, but not checked against the column's rules.
    pub fn amount_of(&self, raw: &str) -> Result<Value> {
        let input = read(raw).map_err(|why| self.invalid(&why))?;
        match self.ty {
            ColumnType::Decimal { scale } => self.decimal_value(&input, scale, Rounding::HalfAwayFromZero),
            _ => self.coerce(input, false),
        }
    }

    /// Reads one JSON value of a filter. The column's rules are not checked.
    pub fn filter_value_of(&self, raw: &str) -> Result<Value> {
        self.coerce(read(raw).map_err(|why| self.invalid(&why))?, false)
    }

    /// Whether a number of a filter is greater or less than every value of the column's type. `None` if it is neither, or if the text
    /// is no number for this column.
    pub fn out_of_type(&self, raw: &str) -> Option<Ordering> {
        let input = read(raw).ok()?;
        let number = self.number(&input).ok()?;
        let fits = match self.ty {
            ColumnType::Integer => !number.is_whole() || number.to_integer().is_some_and(|whole| i32::try_from(whole).is_ok()),
            ColumnType::BigInteger => !number.is_whole() || number.to_integer().is_some(),
            ColumnType::Decimal { scale } => number.scaled(scale, Rounding::Down).is_some(),
            ColumnType::Float => self.number_text(&input).ok()?.parse::<f64>().is_ok_and(f64::is_finite),
            ColumnType::Text
            | ColumnType::TextList
            | ColumnType::Boolean
            | ColumnType::Date
            | ColumnType::Datetime
            | ColumnType::Time
            | ColumnType::Json
            | ColumnType::Uuid => true,
        };
        match (fits, number.is_negative()) {
            (true, _) => None,
            (false, true) => Some(Ordering::Less),
            (false, false) => Some(Ordering::Greater),
        }
    }

    /// Reads a stored value from a record's JSON. The column's rules are not checked, because the value follows the rules that
    /// were in force when it was written.
    ///
    /// # Errors
    /// `invalid_value` if the value does not fit the type.
    pub fn stored_value_of(&self, raw: &str) -> Result<Value> {
        match self.ty {
            ColumnType::Json if raw.trim() == "null" => Ok(Value::Null),
            ColumnType::Json => Ok(Value::Json(raw.to_owned())),
            _ => self.filter_value_of(raw),
        }
    }

    fn invalid(&self, why: &str) -> Error {
        Error::new(Code::InvalidValue, format!("`{}` ({}): {why}.", self.name, self.kind.name())).with_field(self.name.clone())
    }

    fn violation(&self, rule: &str, why: &str) -> Error {
        Error::new(Code::ConstraintViolation, format!("`{}` breaks its rule `{rule}`: {why}.", self.name))
            .with_field(self.name.clone())
    }

    fn json_value(&self, raw: &str, input: Input<'_>) -> Result<Value> {
        let compact = |text: &str| {
            let compact = json::compact(text).map_err(|error| self.invalid(&format!("not JSON: {}", excerpt_of(&error))))?;
            // Postgres stores no NUL in text, and both engines must accept the same values.
            match json::holds_nul(&compact) {
                true => Err(self.invalid("text cannot hold the NUL character")),
                false => Ok(compact),
            }
        };
        Ok(match input {
            Input::Null => Value::Null,
            Input::Text(text) => Value::Json(compact(&text)?),
            _ => Value::Json(compact(raw)?),
        })
    }

    fn coerce(&self, input: Input<'_>, with_rules: bool) -> Result<Value> {
        if matches!(input, Input::Null) {
            return Ok(Value::Null);
        }
        let value = match self.ty {
            ColumnType::Text => {
                let Input::Text(text) = input else { return Err(self.invalid("needs a string")) };
                Value::Text(text.into_owned())
            }
            ColumnType::TextList => match input {
                Input::Composite(raw) => {
                    Value::TextList(serde_json::from_str(raw).map_err(|_| self.invalid("needs an array of strings"))?)
                }
                Input::Text(text) if !with_rules => Value::Text(text.into_owned()),
                _ => return Err(self.invalid("needs an array of strings")),
            },
            ColumnType::Integer | ColumnType::BigInteger => {
                let number = self.number(&input)?;
                if !number.is_whole() {
                    return Err(self.invalid("needs a whole number"));
                }
                let whole = number.to_integer().ok_or_else(|| self.invalid("is out of the type's range"))?;
                if self.ty == ColumnType::Integer && i32::try_from(whole).is_err() {
                    return Err(self.invalid("is out of the 32-bit range"));
                }
                Value::Integer(whole)
            }
            ColumnType::Decimal { scale } => {
                // A filter compares the exact value. It must not find values that are only equal after rounding.
                let rounding = if with_rules { Rounding::HalfAwayFromZero } else { Rounding::Down };
                self.decimal_value(&input, scale, rounding)?
            }
            ColumnType::Float => {
                self.number(&input)?;
                let number: f64 = self.number_text(&input)?.parse().map_err(|_| self.invalid("needs a number"))?;
                if !number.is_finite() {
                    return Err(self.invalid("is out of the range of a double"));
                }
                Value::Float(if number == 0.0 { 0.0 } else { number })
            }
            ColumnType::Boolean => match &input {
                Input::Boolean(value) => Value::Boolean(*value),
                Input::Text(text) if text == "true" => Value::Boolean(true),
                Input::Text(text) if text == "false" => Value::Boolean(false),
                _ => return Err(self.invalid("needs true or false")),
            },
            ColumnType::Date => {
                self.text_as(&input, "needs a date like 2026-01-31", |text| time::parse_date(text).map(Value::Date))?
            }
            ColumnType::Datetime => self.text_as(&input, "needs an RFC 3339 instant like 2026-01-31T12:00:00Z", |text| {
                time::parse_datetime(text).map(Value::Datetime)
            })?,
            ColumnType::Time => {
                self.text_as(&input, "needs a time like 12:00 or 12:00:00.500", |text| time::parse_time(text).map(Value::Time))?
            }
            ColumnType::Uuid => self.text_as(&input, "needs a UUID", |text| text.parse().ok().map(Value::Uuid))?,
            ColumnType::Json => return Err(self.invalid("a json column cannot be compared")),
        };
        if with_rules {
            self.check_rules(&value)?;
        }
        Ok(value)
    }

    fn text_as(&self, input: &Input<'_>, need: &str, parse: impl Fn(&str) -> Option<Value>) -> Result<Value> {
        match input {
            Input::Text(text) => parse(text).ok_or_else(|| self.invalid(need)),
            _ => Err(self.invalid(need)),
        }
    }

    /// The text of a number, or of a string that contains one. Other forms are refused, such as `inf`, hexadecimal numbers and
    /// spaces.
    fn number_text<'a>(&self, input: &'a Input<'_>) -> Result<&'a str> {
        match input {
            Input::Number(text) => Ok(text),
            Input::Text(text) => Ok(text),
            _ => Err(self.invalid("needs a number")),
        }
    }

    fn number<'a>(&self, input: &'a Input<'_>) -> Result<NumberText<'a>> {
        NumberText::parse(self.number_text(input)?).ok_or_else(|| self.invalid("needs a number"))
    }

    /// A number with `scale` digits after the point. If it is rounded down and not exact, the result lies between two values.
    fn decimal_value(&self, input: &Input<'_>, scale: u8, rounding: Rounding) -> Result<Value> {
        let number = self.number(input)?.scaled(scale, rounding).ok_or_else(|| self.invalid("has more than 18 digits"))?;
        let scaled = number.scaled;
        Ok(match rounding {
            Rounding::Down if !number.is_exact => Value::DecimalBetween { below: scaled, scale },
            _ => Value::Decimal { scaled, scale },
        })
    }

    /// The error of a result that does not fit the column's type.
    pub fn out_of_range(&self) -> Error {
        Error::new(Code::InvalidValue, format!("`{}` ({}): the result is out of the type's range.", self.name, self.kind.name()))
            .with_field(self.name.clone())
    }

    /// Checks the result of an atomic operator.
    ///
    /// # Errors
    /// `invalid_value` if the result does not fit the type, `CONSTRAINT_VIOLATION` if it breaks a rule.
    pub fn check_sum(&self, before: &Value, amount: &Value) -> Result<()> {
        const DECIMAL_MAX: i128 = 10i128.pow(DECIMAL_DIGITS_MAX);
        let bounds = match self.ty {
            ColumnType::Integer => i128::from(i32::MIN)..=i128::from(i32::MAX),
            ColumnType::Decimal { .. } => 1 - DECIMAL_MAX..=DECIMAL_MAX - 1,
            _ => i128::from(i64::MIN)..=i128::from(i64::MAX),
        };
        let (sum, scale) = match (before, amount) {
            (Value::Integer(before), Value::Integer(amount)) => (i128::from(*before) + i128::from(*amount), 0),
            (Value::Decimal { scaled: before, scale }, Value::Decimal { scaled: amount, .. }) => {
                (i128::from(*before) + i128::from(*amount), u32::from(*scale))
            }
            (Value::Float(before), Value::Float(amount)) => {
                let sum = before + amount;
                return if sum.is_finite() { self.check_float(sum) } else { Err(self.out_of_range()) };
            }
            // Null stays null.
            _ => return Ok(()),
        };
        match bounds.contains(&sum) {
            true => self.check_bounds(Decimal::from_i128_with_scale(sum, scale), ""),
            false => Err(self.out_of_range()),
        }
    }

    /// Checks that a text is not too long for a new value. Stored values may be longer, because the limit is a setting.
    ///
    /// # Errors
    /// `CONSTRAINT_VIOLATION` with `field`.
    pub fn check_bytes(&self, value: &Value, bounds: TextBounds) -> Result<()> {
        let Value::Text(text) = value else { return Ok(()) };
        let own = self.rules.max.and_then(|most| u64::try_from(most).ok()).unwrap_or(0).saturating_mul(CHARACTER_BYTES_MAX);
        let most = bounds.plain.max(bounds.most.min(usize::try_from(own).unwrap_or(usize::MAX)));
        match self.is_system || text.len() <= most {
            true => Ok(()),
            false => {
                Err(self.violation("max", &format!("a text has {most} bytes at most; the field's own `max` can allow more")))
            }
        }
    }

    fn check_rules(&self, value: &Value) -> Result<()> {
        match value {
            Value::Text(text) => {
                self.check_form(text)?;
                if self.index_bytes_max.is_some_and(|most| text.len() > most) {
                    let most = self.index_bytes_max.unwrap_or_default();
                    return Err(self.violation("max", &format!("an indexed field holds {most} bytes at most")));
                }
                if self.rules.min.is_some() || self.rules.max.is_some() {
                    self.check_bounds(Decimal::from(text.chars().count() as u64), " characters")?;
                }
                if let Some(pattern) = &self.rules.pattern
                    && !pattern.is_match(text)
                {
                    return Err(self.violation("pattern", &format!("it does not match {}", pattern.as_str())));
                }
                self.check_option(text)
            }
            Value::TextList(list) => {
                for (index, item) in list.iter().enumerate() {
                    self.check_option(item)?;
                    if list[..index].contains(item) {
                        return Err(self.violation("enum", &format!("the option {item:?} is listed twice")));
                    }
                }
                Ok(())
            }
            Value::Integer(number) => self.check_bounds(Decimal::from(*number), ""),
            Value::Decimal { scaled, scale } => self.check_bounds(Decimal::new(*scaled, u32::from(*scale)), ""),
            Value::Float(number) => self.check_float(*number),
            _ => Ok(()),
        }
    }

    fn check_bounds(&self, number: Decimal, unit: &str) -> Result<()> {
        match (self.rules.min, self.rules.max) {
            (Some(min), _) if number < min => Err(self.violation("min", &format!("the least is {min}{unit}"))),
            (_, Some(max)) if number > max => Err(self.violation("max", &format!("the most is {max}{unit}"))),
            _ => Ok(()),
        }
    }

    fn check_float(&self, number: f64) -> Result<()> {
        match (self.rules.min, self.rules.max) {
            (Some(min), _) if number < nearest_double(min) => Err(self.violation("min", &format!("the least is {min}"))),
            (_, Some(max)) if number > nearest_double(max) => Err(self.violation("max", &format!("the most is {max}"))),
            _ => Ok(()),
        }
    }

    fn check_option(&self, text: &str) -> Result<()> {
        match &self.rules.options {
            Some(options) if !options.iter().any(|option| option == text) => {
                Err(self.violation("enum", &format!("the options are {}", options.join(", "))))
            }
            _ => Ok(()),
        }
    }

    fn check_form(&self, text: &str) -> Result<()> {
        let (fits, form) = match self.kind {
            FieldType::Email => (is_email(text), "an e-mail address"),
            FieldType::Url => (is_url(text), "an absolute http or https URL"),
            FieldType::Slug => (is_slug(text), "lower-case words of letters and digits joined by single hyphens"),
            _ => return Ok(()),
        };
        match fits {
            true => Ok(()),
            false => Err(self.violation("pattern", &format!("it needs to be {form}"))),
        }
    }
}

/// The double for a bound. Values of a float column are compared with it, also in checks of the database.
fn nearest_double(bound: Decimal) -> f64 {
    // The double is parsed from text, because the crate's conversion sometimes differs by one bit.
    bound.to_string().parse().unwrap_or(f64::NAN)
}

/// The rule of browsers for `<input type=email>`, but the domain must have a dot.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let local_fits = !local.is_empty()
        && local.len() <= 64
        && local.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte));
    let labels: Vec<&str> = domain.split('.').collect();
    local_fits
        && domain.len() <= 253
        && labels.len() >= 2
        && labels.iter().all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// Whether the text is a complete http or https URL. Browsers also accept and repair mistakes such as `http:a.b`, backslashes and
/// spaces.
pub fn is_url(text: &str) -> bool {
    let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
        let head = text.get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
    });
    after_scheme.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
        && !text.bytes().any(|byte| byte <= b' ' || byte == b'\\' || byte == 0x7f)
        && url::Url::parse(text).is_ok_and(|url| url.host().is_some())
}

fn is_slug(text: &str) -> bool {
    !text.is_empty()
        && text
            .split('-')
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_a_type_are_greater_or_less_than_all_its_values() {
        let of = |kind, ty, raw: &str| Column::of_result("a".to_owned(), kind, ty).out_of_type(raw);
        let (less, greater) = (Some(Ordering::Less), Some(Ordering::Greater));
        for (raw, expected) in [("2147483647", None), ("2147483648", greater), ("-2147483649", less), ("\"1e30\"", greater)] {
            assert_eq!(of(FieldType::Integer, ColumnType::Integer, raw), expected, "{raw}");
        }
        for (raw, expected) in [("9223372036854775807", None), ("9223372036854775808", greater), ("1.5", None), ("null", None)] {
            assert_eq!(of(FieldType::BigInteger, ColumnType::BigInteger, raw), expected, "{raw}");
        }
        for (raw, expected) in [("9999999999999999.999", None), ("1e16", greater), ("-1e16", less), ("1e-400", None)] {
            assert_eq!(of(FieldType::Currency, ColumnType::Decimal { scale: 2 }, raw), expected, "{raw}");
        }
        for (raw, expected) in [("1e308", None), ("1e309", greater), ("-1e309", less), ("[1]", None)] {
            assert_eq!(of(FieldType::Float, ColumnType::Float, raw), expected, "{raw}");
        }
        assert_eq!(of(FieldType::Text, ColumnType::Text, "\"1e999\""), None);
    }

    #[test]
    fn urls_are_absolute_as_they_stand() {
        for good in
            ["http://a.b", "HTTPS://a.b/x?y#z", "http://[::1]:8080/", "https://user@a.b", "http://b\u{fc}cher.example/\u{fc}"]
        {
            assert!(is_url(good), "{good}");
        }
        for bad in [
            "http:a.b",
            "http:/a.b",
            "http:///a.b",
            "http://",
            "http:\\\\a.b",
            "http://a\\b",
            "http://a b",
            " http://a.b",
            "http://a.b\n",
            "//a.b",
            "ftp://a.b",
            "a.b",
            "http://?x",
            "https://a.b:99999",
        ] {
            assert!(!is_url(bad), "{bad}");
        }
    }
}
