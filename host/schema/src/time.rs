//! Instants, dates and times of day. Each has one text form, the same on both engines.

use chrono::{Datelike, NaiveDate};

/// The number of milliseconds since 1970-01-01T00:00:00Z.
pub type Millis = i64;

/// The number of milliseconds of a minute.
pub const MINUTE_MS: Millis = 60_000;
/// The number of milliseconds of an hour.
pub const HOUR_MS: Millis = 60 * MINUTE_MS;
/// The number of milliseconds of a day.
pub const DAY_MS: Millis = 24 * HOUR_MS;
/// The number of days from 0001-01-01 (day 1 in chrono's count) to 1970-01-01.
const EPOCH_DAY_FROM_CE: i32 = 719_163;

fn two(out: &mut Vec<u8>, value: u32) {
    out.push(b'0' + (value / 10 % 10) as u8);
    out.push(b'0' + (value % 10) as u8);
}

/// Appends `YYYY-MM-DD`.
pub fn write_date(out: &mut Vec<u8>, days_since_epoch: i32) {
    let date = NaiveDate::from_num_days_from_ce_opt(days_since_epoch.saturating_add(EPOCH_DAY_FROM_CE)).unwrap_or(NaiveDate::MIN);
    let year = date.year().clamp(0, 9999) as u32;
    two(out, year / 100);
    two(out, year % 100);
    out.push(b'-');
    two(out, date.month());
    out.push(b'-');
    two(out, date.day());
}

fn write_seconds(out: &mut Vec<u8>, millis_of_day: u32) {
    let seconds = millis_of_day / 1000;
    two(out, seconds / 3600);
    out.push(b':');
    two(out, seconds / 60 % 60);
    out.push(b':');
    two(out, seconds % 60);
}

fn write_fraction(out: &mut Vec<u8>, millis_of_day: u32) {
    let fraction = millis_of_day % 1000;
    out.push(b'.');
    out.push(b'0' + (fraction / 100) as u8);
    two(out, fraction % 100);
}

/// Appends `HH:MM:SS`, and `.fff` if the milliseconds are not zero.
pub fn write_time(out: &mut Vec<u8>, millis_of_day: u32) {
    write_seconds(out, millis_of_day);
    if !millis_of_day.is_multiple_of(1000) {
        write_fraction(out, millis_of_day);
    }
}

/// Appends `YYYY-MM-DDTHH:MM:SS.fffZ`.
pub fn write_datetime(out: &mut Vec<u8>, millis: Millis) {
    let of_day = millis.rem_euclid(DAY_MS) as u32;
    write_date(out, millis.div_euclid(DAY_MS) as i32);
    out.push(b'T');
    write_seconds(out, of_day);
    write_fraction(out, of_day);
    out.push(b'Z');
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::with_capacity(24);
    write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// `YYYY-MM-DDTHH:MM:SS.fffZ`.
pub fn format_datetime(millis: Millis) -> String {
    text(|out| write_datetime(out, millis))
}

/// `YYYY-MM-DD`.
pub fn format_date(days_since_epoch: i32) -> String {
    text(|out| write_date(out, days_since_epoch))
}

/// `HH:MM:SS[.fff]`.
pub fn format_time(millis_of_day: u32) -> String {
    text(|out| write_time(out, millis_of_day))
}

/// 0001-01-01T00:00:00.000Z.
const FIRST_MILLIS: Millis = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z.
const LAST_MILLIS: Millis = 253_402_300_799_999;

/// The year and the month (1 to 12) of a day. Years before 1 and after 9999 occur too, because local time may be in another year
/// than UTC.
pub fn year_and_month(days_since_epoch: i32) -> (i32, u32) {
    let date = NaiveDate::from_num_days_from_ce_opt(days_since_epoch.saturating_add(EPOCH_DAY_FROM_CE)).unwrap_or(NaiveDate::MIN);
    (date.year(), date.month())
}

/// The first day of a month, as days since 1970-01-01.
pub fn first_day(year: i32, month: u32) -> i32 {
    NaiveDate::from_ymd_opt(year, month, 1).unwrap_or(NaiveDate::MIN).num_days_from_ce() - EPOCH_DAY_FROM_CE
}

fn in_calendar(year: i32) -> bool {
    (1..=9999).contains(&year)
}

/// Removes a number with exactly `width` digits from the beginning of `text`.
fn take_digits(text: &mut &[u8], width: usize) -> Option<u32> {
    let (digits, rest) = text.split_at_checked(width)?;
    let mut number = 0;
    for digit in digits {
        number = number * 10 + u32::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    *text = rest;
    Some(number)
}

/// Removes one of the `expected` bytes from the beginning of `text`.
fn take_one(text: &mut &[u8], expected: &[u8]) -> Option<u8> {
    let (first, rest) = text.split_first().filter(|(first, _)| expected.contains(first))?;
    *text = rest;
    Some(*first)
}

fn take_date(text: &mut &[u8]) -> Option<i32> {
    let year = take_digits(text, 4)?;
    take_one(text, b"-")?;
    let month = take_digits(text, 2)?;
    take_one(text, b"-")?;
    let day = take_digits(text, 2)?;
    let year = i32::try_from(year).ok().filter(|year| in_calendar(*year))?;
    Some(NaiveDate::from_ymd_opt(year, month, day)?.num_days_from_ce() - EPOCH_DAY_FROM_CE)
}

/// Reads `HH:MM[:SS[.fff]]` as milliseconds since midnight. No engine stores a leap second, so second 60 is refused.
fn take_time(text: &mut &[u8], needs_seconds: bool) -> Option<u32> {
    let hour = take_digits(text, 2).filter(|hour| *hour < 24)?;
    take_one(text, b":")?;
    let minute = take_digits(text, 2).filter(|minute| *minute < 60)?;
    let mut millis = (hour * 60 + minute) * 60_000;
    if take_one(text, b":").is_none() {
        return (!needs_seconds).then_some(millis);
    }
    millis += take_digits(text, 2).filter(|second| *second < 60)? * 1000;
    if take_one(text, b".").is_some() {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = text.split_at(length);
        if fraction.is_empty() {
            return None;
        }
        for (digit, worth) in fraction.iter().zip([100, 10, 1]) {
            millis += u32::from(digit - b'0') * worth;
        }
        *text = rest;
    }
    Some(millis)
}

/// Reads `YYYY-MM-DD` as days since 1970-01-01, for the years 0001 to 9999.
pub fn parse_date(text: &str) -> Option<i32> {
    let mut rest = text.as_bytes();
    take_date(&mut rest).filter(|_| rest.is_empty())
}

/// Reads `HH:MM[:SS[.fff]]` as milliseconds since midnight. Finer digits are cut off.
pub fn parse_time(text: &str) -> Option<u32> {
    let mut rest = text.as_bytes();
    take_time(&mut rest, false).filter(|_| rest.is_empty())
}

/// Reads an instant in RFC 3339 as milliseconds. It may have any offset. Without an offset, it is in UTC. Finer digits are cut
/// off.
///
/// A leap second is always refused. No engine stores a leap second, and the server must not store another instant than the caller
/// sent.
pub fn parse_datetime(text: &str) -> Option<Millis> {
    let mut rest = text.as_bytes();
    let days = take_date(&mut rest)?;
    take_one(&mut rest, b"Tt ")?;
    let of_day = take_time(&mut rest, true)?;
    let mut millis = i64::from(days) * DAY_MS + i64::from(of_day);
    if take_one(&mut rest, b"Zz").is_none()
        && let Some(sign) = take_one(&mut rest, b"+-")
    {
        let hours = take_digits(&mut rest, 2).filter(|hours| *hours < 24)?;
        take_one(&mut rest, b":")?;
        let minutes = take_digits(&mut rest, 2).filter(|minutes| *minutes < 60)?;
        let offset = i64::from(hours * 60 + minutes) * MINUTE_MS;
        millis -= if sign == b'-' { -offset } else { offset };
    }
    // The result has to be within the years 0001 to 9999 in UTC, because values are stored and shown in UTC.
    (rest.is_empty() && (FIRST_MILLIS..=LAST_MILLIS).contains(&millis)).then_some(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datetimes_come_back_in_utc_with_three_digits() {
        for (input, output) in [
            ("2026-03-04T05:06:07Z", "2026-03-04T05:06:07.000Z"),
            ("2026-03-04T05:06:07.1239+02:00", "2026-03-04T03:06:07.123Z"),
            ("2026-03-04 05:06:07.5", "2026-03-04T05:06:07.500Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(parse_datetime(input).map(format_datetime).as_deref(), Some(output), "{input}");
        }
        let long = format!("2026-03-04T05:06:07.{}Z", "9".repeat(40));
        assert_eq!(parse_datetime(&long).map(format_datetime).as_deref(), Some("2026-03-04T05:06:07.999Z"));
        assert_eq!(parse_datetime("2026-03-04t05:06:07z"), parse_datetime("2026-03-04T05:06:07"));
        assert_eq!(parse_datetime("9999-12-31T23:59:59.999Z").map(format_datetime).as_deref(), Some("9999-12-31T23:59:59.999Z"));
        for bad in [
            "",
            "2026-03-04",
            "2026-13-04T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "yesterday",
            "2026-03-04T05:06Z",
            "2026-3-4T05:06:07Z",
            "2026-03-04T5:06:07Z",
            "2026-03-04T05:06:7Z",
            "+2026-03-04T05:06:07Z",
            " 2026-03-04T05:06:07Z",
            "2026-03-04T05:06:07Z ",
            "2026-03-04T05:06:07 Z",
            "2026-03-04T05:06:07.Z",
            "2026-03-04T05:06:07,5Z",
            "2026-03-04T05:06:07+0200",
            "2026-03-04T05:06:07+02",
            "2026-03-04T05:06:07+24:00",
            "2026-03-04T05:06:07\u{2212}02:00",
            "2026-03-04T24:00:00Z",
            "2026-03-04T10:00:60Z",
            "2016-12-31T23:59:60Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(parse_datetime(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_and_times_have_one_form() {
        assert_eq!(parse_date("2024-02-29").map(format_date).as_deref(), Some("2024-02-29"));
        assert_eq!(parse_date("2023-02-29"), None);
        assert_eq!(parse_date("2023-2-9"), None);
        assert_eq!(parse_time("09:05").map(format_time).as_deref(), Some("09:05:00"));
        assert_eq!(parse_time("09:05:07.25").map(format_time).as_deref(), Some("09:05:07.250"));
        assert_eq!(parse_time("09:05:07.0009").map(format_time).as_deref(), Some("09:05:07"));
        for bad in [
            "24:00",
            "9:05",
            "12:0",
            "12:00:5",
            "12: 00",
            " 12:00",
            "12:00 ",
            "12:60",
            "12:00:60",
            "12:00:",
            "12:00:00.",
            "+12:00",
            "1200",
        ] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
        for bad in [
            "2024-1-1",
            "+2024-01-01",
            "2024-01-1",
            " 2024-01-01",
            "2024-01-01 ",
            "2024/01/01",
            "20240101",
            "0000-01-01",
            "2024-00-10",
        ] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
    }
}
