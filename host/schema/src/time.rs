//! Instants, dates and times of day: one text form each, the same on both engines.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Millis = i64;

const MILLIS_A_DAY: i64 = 86_400_000;
/// Days from 0001-01-01 (day 1 in chrono's count) to 1970-01-01.
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

/// Appends `HH:MM:SS`, and `.fff` where the milliseconds are not zero.
pub fn write_time(out: &mut Vec<u8>, millis_of_day: u32) {
    write_seconds(out, millis_of_day);
    if !millis_of_day.is_multiple_of(1000) {
        write_fraction(out, millis_of_day);
    }
}

/// Appends `YYYY-MM-DDTHH:MM:SS.fffZ`.
pub fn write_datetime(out: &mut Vec<u8>, millis: Millis) {
    let of_day = millis.rem_euclid(MILLIS_A_DAY) as u32;
    write_date(out, millis.div_euclid(MILLIS_A_DAY) as i32);
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

fn in_calendar(year: i32) -> bool {
    (1..=9999).contains(&year)
}

/// Reads `YYYY-MM-DD` into days since 1970-01-01; years 0001 to 9999.
pub fn parse_date(text: &str) -> Option<i32> {
    if text.len() != 10 {
        return None;
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    in_calendar(date.year()).then(|| date.num_days_from_ce() - EPOCH_DAY_FROM_CE)
}

/// Reads `HH:MM[:SS[.fff]]` into milliseconds since midnight. Finer digits are cut off.
pub fn parse_time(text: &str) -> Option<u32> {
    let time = NaiveTime::parse_from_str(text, "%H:%M:%S%.f").or_else(|_| NaiveTime::parse_from_str(text, "%H:%M")).ok()?;
    // A leap second (`:60`) is a nanosecond count past 10^9 in chrono; no engine stores it.
    let nanos = time.nanosecond();
    (nanos < 1_000_000_000 && text.as_bytes().get(2) == Some(&b':'))
        .then(|| time.num_seconds_from_midnight() * 1000 + nanos / 1_000_000)
}

/// Reads RFC 3339 with any offset, or without one (UTC then), into milliseconds. Finer digits are cut off.
pub fn parse_datetime(text: &str) -> Option<Millis> {
    let instant: DateTime<Utc> = match DateTime::parse_from_rfc3339(text) {
        Ok(instant) => instant.with_timezone(&Utc),
        Err(_) => ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"]
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())?
            .and_utc(),
    };
    (in_calendar(instant.year()) && text.as_bytes().get(4) == Some(&b'-')).then(|| instant.timestamp_millis())
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
        for bad in ["", "2026-03-04", "2026-13-04T00:00:00Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "yesterday"] {
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
        assert_eq!(parse_time("24:00"), None);
        assert_eq!(parse_time("9:05"), None);
    }
}
