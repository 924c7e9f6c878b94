//! Numbers as text: they are parsed, rounded and compared with all their digits, at any length.

use std::borrow::Cow;

use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The maximum number of digits of an exact number.
pub(crate) const DECIMAL_DIGITS_MAX: u32 = 18;

/// A decimal number of any length: `0.digits * 10^point`. The digits neither begin nor end with a zero. The number zero has no digits.
#[derive(Debug, PartialEq)]
pub(crate) struct NumberText<'a> {
    is_negative: bool,
    digits: Cow<'a, str>,
    point: i64,
}

/// A number rounded to a scale.
#[derive(Debug, PartialEq)]
pub(crate) struct Scaled {
    /// The rounded value of the number times `10^scale`.
    pub(crate) scaled: i64,
    pub(crate) is_exact: bool,
}

/// The direction in which digits beyond the scale are rounded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rounding {
    HalfAwayFromZero,
    /// Towards negative infinity.
    Down,
}

impl<'a> NumberText<'a> {
    /// Reads `[+-](digits[.digits]|.digits)[e[+-]digits]`. `None` for any other text.
    pub(crate) fn parse(text: &'a str) -> Option<NumberText<'a>> {
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                let (is_small, digits) = match exponent.as_bytes().first()? {
                    b'-' => (true, &exponent[1..]),
                    b'+' => (false, &exponent[1..]),
                    _ => (false, exponent),
                };
                if digits.is_empty() || !is_digits(digits) {
                    return None;
                }
                // A power that does not fit into 32 bits exceeds every limit, as the greatest power that fits does.
                let power = i64::from(digits.parse::<u32>().unwrap_or(u32::MAX));
                (mantissa, if is_small { -power } else { power })
            }
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let all: Cow<'a, str> = match (whole, fraction) {
            (whole, "") => Cow::Borrowed(whole),
            (whole, fraction) => Cow::Owned(format!("{whole}{fraction}")),
        };
        let leading = all.bytes().take_while(|byte| *byte == b'0').count();
        let end = all.trim_end_matches('0').len().max(leading);
        let digits = match all {
            Cow::Borrowed(all) => Cow::Borrowed(&all[leading..end]),
            Cow::Owned(all) => Cow::Owned(all[leading..end].to_owned()),
        };
        let point = match digits.is_empty() {
            true => 0,
            false => exponent + whole.len() as i64 - leading as i64,
        };
        Some(NumberText { is_negative, digits, point })
    }

    fn same_number(&self, other: &NumberText<'_>) -> bool {
        let sign_counts = !self.digits.is_empty();
        self.digits == other.digits && self.point == other.point && (self.is_negative == other.is_negative || !sign_counts)
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// Whether all digits after the point are zeros.
    pub(crate) fn is_whole(&self) -> bool {
        self.digits.len() as i64 <= self.point.max(0)
    }

    /// The number as a 64-bit integer. `None` if it is not a whole number or does not fit.
    pub(crate) fn to_integer(&self) -> Option<i64> {
        if !self.is_whole() || self.point > 19 {
            return None;
        }
        let magnitude: i128 = match self.digits.is_empty() {
            true => 0,
            false => format!("{:0<width$}", self.digits, width = usize::try_from(self.point).ok()?).parse().ok()?,
        };
        i64::try_from(if self.is_negative { -magnitude } else { magnitude }).ok()
    }

    /// The number as a whole number of `10^-scale`, rounded once from all its digits. `None` if the result has more than 18 digits.
    pub(crate) fn scaled(&self, scale: u8, rounding: Rounding) -> Option<Scaled> {
        let kept = self.point + i64::from(scale);
        if kept > i64::from(DECIMAL_DIGITS_MAX) {
            return None;
        }
        let (mut magnitude, is_exact) = match usize::try_from(kept) {
            Ok(kept) if kept >= self.digits.len() => {
                let text = format!("{:0<kept$}", self.digits);
                (if text.is_empty() { 0 } else { text.parse::<i64>().ok()? }, true)
            }
            Ok(0) => (0, false),
            Ok(kept) => (self.digits[..kept].parse::<i64>().ok()?, false),
            Err(_) => (0, self.digits.is_empty()),
        };
        let goes_up = match rounding {
            Rounding::HalfAwayFromZero => {
                usize::try_from(kept).ok().and_then(|kept| self.digits.as_bytes().get(kept)).is_some_and(|digit| *digit >= b'5')
            }
            Rounding::Down => self.is_negative,
        };
        if !is_exact && goes_up {
            magnitude += 1;
        }
        let fits = magnitude < 10i64.pow(DECIMAL_DIGITS_MAX);
        fits.then_some(Scaled { scaled: if self.is_negative { -magnitude } else { magnitude }, is_exact })
    }

    /// The exact number, if it has at most 28 digits. `None` if it has more.
    pub(crate) fn to_decimal(&self) -> Option<Decimal> {
        const DIGITS_MAX: i64 = 28;
        let length = self.digits.len() as i64;
        if self.digits.is_empty() {
            return Some(Decimal::ZERO);
        }
        if self.point > DIGITS_MAX || length - self.point > DIGITS_MAX || length > DIGITS_MAX {
            return None;
        }
        let behind = u32::try_from((length - self.point).max(0)).ok()?;
        let width = usize::try_from(length.max(self.point)).ok()?;
        let magnitude: i128 = format!("{:0<width$}", self.digits).parse().ok()?;
        Decimal::try_from_i128_with_scale(if self.is_negative { -magnitude } else { magnitude }, behind).ok()
    }
}

/// Whether a reader that stores the number as a double, and prints the double's shortest digits, shows the same number.
pub fn is_double(text: &str) -> bool {
    let shown = text.parse::<f64>().ok().filter(|double| double.is_finite()).map(|double| format!("{double:e}"));
    let Some(number) = NumberText::parse(text) else { return false };
    shown.as_deref().and_then(NumberText::parse).is_some_and(|shown| shown.same_number(&number))
}

/// A number of a definition as its author wrote it. A double would keep only 17 of its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactNumber(String);

impl ExactNumber {
    /// The JSON text of the number.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The number as a decimal of at most 28 digits. `None` if it has more.
    pub(crate) fn to_decimal(&self) -> Option<Decimal> {
        NumberText::parse(&self.0)?.to_decimal()
    }
}

impl JsonSchema for ExactNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ExactNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

impl Serialize for ExactNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ExactJson(self.0.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExactNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ExactJson(text) = ExactJson::deserialize(deserializer)?;
        match text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            true => Ok(ExactNumber(text)),
            false => Err(serde::de::Error::custom(format!("invalid value: {text}, expected a number"))),
        }
    }
}

/// A JSON value of a definition, as compact text. Its numbers keep the digits that their author wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactJson(String);

impl ExactJson {
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.0.starts_with('"')
    }
}

impl Serialize for ExactJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.clone()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExactJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: Box<RawValue> = Deserialize::deserialize(deserializer)?;
        Ok(ExactJson(without_spaces(raw.get())))
    }
}

/// JSON text without the white space between its tokens.
fn without_spaces(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    json.chars()
        .filter(|character| {
            if in_string {
                let ends = *character == '"' && !is_escaped;
                is_escaped = *character == '\\' && !is_escaped;
                in_string = !ends;
                return true;
            }
            in_string = *character == '"';
            !matches!(character, ' ' | '\t' | '\n' | '\r')
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str, scale: u8, rounding: Rounding) -> Option<(i64, bool)> {
        let Scaled { scaled, is_exact } = NumberText::parse(text).expect(text).scaled(scale, rounding)?;
        Some((scaled, is_exact))
    }

    #[test]
    fn a_number_is_rounded_once_from_all_its_digits() {
        let nines = format!("1.00499{}", "9".repeat(34));
        for (text, scale, expected) in [
            (nines.as_str(), 2, Some((100, false))),
            ("1.005", 2, Some((101, false))),
            ("-1.005", 2, Some((-101, false))),
            ("1e-30", 6, Some((0, false))),
            ("-1e-999999999999999999999", 6, Some((0, false))),
            ("5e-7", 6, Some((1, false))),
            ("4.9e-7", 6, Some((0, false))),
            ("0.00", 6, Some((0, true))),
            ("0e999999999999", 6, Some((0, true))),
            ("123456789012.123456", 6, Some((123_456_789_012_123_456, true))),
            ("999999999999999999", 0, Some((999_999_999_999_999_999, true))),
            ("999999999999999999.5", 0, None),
            ("1e18", 0, None),
            ("1e99999999999999999999", 0, None),
            ("12e-1", 1, Some((12, true))),
            ("0.05", 1, Some((1, false))),
            ("0.5", 0, Some((1, false))),
            ("120", 2, Some((12_000, true))),
        ] {
            assert_eq!(scaled(text, scale, Rounding::HalfAwayFromZero), expected, "{text} at {scale}");
        }
    }

    #[test]
    fn a_filter_draws_down() {
        for (text, expected) in [
            ("1.239", Some((123, false))),
            ("-1.231", Some((-124, false))),
            ("1.23", Some((123, true))),
            ("-1e-9", Some((-1, false))),
        ] {
            assert_eq!(scaled(text, 2, Rounding::Down), expected, "{text}");
        }
    }

    #[test]
    fn whole_numbers_have_64_bits() {
        for (text, expected) in [
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1.0", Some(1)),
            ("1.5", None),
            ("1e3", Some(1000)),
            ("1000e-3", Some(1)),
            ("0.0", Some(0)),
            ("-0", Some(0)),
            ("1e400", None),
            ("007", Some(7)),
        ] {
            assert_eq!(NumberText::parse(text).expect(text).to_integer(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bad in [
            "", "+", "-", ".", "e5", "1e", "1e+", "1_000", " 1", "1 ", "0x1", "--1", "+-1", "1.2.3", "inf", "NaN", "1e1.5",
            "\u{661}",
        ] {
            assert_eq!(NumberText::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn bounds_lose_no_digit() {
        for (text, shown) in [
            ("123456789012.123456", Some("123456789012.123456")),
            ("1e3", Some("1000")),
            ("-0.10", Some("-0.1")),
            ("1e-30", None),
            ("1e40", None),
        ] {
            let bound = NumberText::parse(text).expect(text).to_decimal().map(|bound| bound.to_string());
            assert_eq!(bound.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn numbers_that_doubles_show_are_told_from_others() {
        for (text, expected) in
            [("0.1", true), ("-0", true), ("1e400", false), ("123456789012.123456", false), ("100", true), ("1.50", true)]
        {
            assert_eq!(is_double(text), expected, "{text}");
        }
    }

    #[test]
    fn definitions_keep_their_digits() {
        let text = r#"{"a":123456789012.123456,"b":"x \" y"}"#;
        let spaced: ExactJson = serde_json::from_str(r#"{ "a" : 123456789012.123456, "b": "x \" y" }"#).expect("JSON");
        assert_eq!((spaced.text(), serde_json::to_string(&spaced).expect("JSON").as_str()), (text, text));
        assert!(serde_json::from_str::<ExactNumber>("\"1\"").is_err());
        assert!(serde_json::from_str::<Option<ExactNumber>>("null").expect("none").is_none());
    }
}
