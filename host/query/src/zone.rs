//! Time zones: the offsets of local time from UTC, from the table in the binary.
//!
//! Neither engine uses a table of its own. Postgres gets the offsets of one zone as bound arrays, and SQLite calls
//! [`Zone::first_instant`]. A zone's rules repeat with the calendar, every 400 years. So the arrays end with the year 2499, and a later
//! time has the offset of the same time in an earlier cycle.

use std::sync::Arc;

use blockbase_schema::time::DAY_MS;
use blockbase_schema::{Error, Hint, Result, excerpt};
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use crate::period::Period;

/// The number of seconds of the 400 years after which the calendar repeats, with the same days of the week.
pub(crate) const CYCLE_S: i64 = 146_097 * (DAY_MS / 1000);
/// 2100-01-01T00:00:00Z. From here on, every zone follows rules that repeat each year.
pub(crate) const CYCLE_BEGINS_S: i64 = 4_102_444_800;
/// 2500-01-01T00:00:00Z. Later times use the offsets of the cycle before.
pub(crate) const CYCLE_ENDS_S: i64 = CYCLE_BEGINS_S + CYCLE_S;
/// The offsets are known for a year more, because a period that begins before the end of the cycle in local time may begin after it
/// in UTC.
const TABLE_ENDS_S: i64 = CYCLE_ENDS_S + 366 * (DAY_MS / 1000);
/// The start of the first offset.
pub(crate) const BEFORE_ALL_S: i64 = -(1 << 50);
/// The maximum length of a zone's name. The table's longest name has 32 characters.
const NAME_BYTES_MAX: usize = 64;

/// A time zone. The vectors have one entry for each span of time with one offset. All values are seconds.
#[derive(Debug)]
pub struct Zone {
    name: String,
    /// The begin of each span in UTC. The first one is [`BEFORE_ALL_S`].
    pub(crate) begins: Vec<i64>,
    /// The offset of each span. Local time is UTC plus the offset.
    pub(crate) offsets: Vec<i64>,
    /// For each span, the latest local time that any clock has shown up to its end. The last span has none.
    pub(crate) reached: Vec<i64>,
}

impl Zone {
    /// The zone with this name of the IANA table, in any case.
    ///
    /// # Errors
    /// `invalid_request` if the table has no such zone.
    pub fn named(name: &str) -> Result<Arc<Zone>> {
        let unknown = || {
            let error = Error::invalid_request(format!(
                "There is no time zone `{}`. `tz` takes a name of the IANA table, such as Europe/Berlin or UTC.",
                excerpt(name)
            ));
            let error = error.with_field("tz");
            if name.contains(' ') { error.with_hint(Hint::EncodePlus) } else { error }
        };
        if name.len() > NAME_BYTES_MAX {
            return Err(unknown());
        }
        let zone = TimeZoneDatabase::bundled().get(name).map_err(|_| unknown())?;
        let name = zone.iana_name().ok_or_else(unknown)?.to_owned();
        let mut begins = vec![BEFORE_ALL_S];
        let mut offsets = vec![i64::from(zone.to_offset(Timestamp::MIN).seconds())];
        for transition in zone.following(Timestamp::MIN) {
            let (begin, offset) = (transition.timestamp().as_second(), i64::from(transition.offset().seconds()));
            if begin >= TABLE_ENDS_S {
                break;
            }
            // Some transitions only change the name of the time.
            if offsets.last() != Some(&offset) {
                begins.push(begin);
                offsets.push(offset);
            }
        }
        let mut reached = Vec::with_capacity(begins.len());
        let mut latest = i64::MIN;
        for (end, offset) in begins.iter().skip(1).zip(&offsets) {
            latest = latest.max(end + offset);
            reached.push(latest);
        }
        Ok(Arc::new(Zone { name, begins, offsets, reached }))
    }

    /// The name as the table writes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The offset, if it never changes.
    pub(crate) fn fixed_offset(&self) -> Option<i64> {
        match self.offsets.as_slice() {
            [offset] => Some(*offset),
            _ => None,
        }
    }

    /// The index of the span of a time in UTC. The time is before the end of the table.
    fn span(&self, seconds: i64) -> usize {
        self.begins.partition_point(|begin| *begin <= seconds).saturating_sub(1)
    }

    /// The first instant of the period that contains `seconds`, a time in UTC. Periods are those of local time.
    ///
    /// A period may begin later than its name says if the clocks go forward then. If the clocks go back within an hour, the hour is
    /// two periods, one with each offset. A longer period is always one group.
    pub fn first_instant(&self, period: Period, seconds: i64) -> i64 {
        let (known, cycles) = folded(seconds);
        let span = self.span(known);
        let local = period.first_second(known + self.offsets[span]);
        if period == Period::Hour {
            return self.begins[span].max(local - self.offsets[span]) + cycles;
        }
        // The begin in local time may be in another cycle.
        let (local, more) = folded(local);
        let span = self.reached.partition_point(|reached| *reached <= local);
        self.begins[span].max(local - self.offsets[span]) + cycles + more
    }
}

/// A time within the table that has the same offset, and the seconds between it and the given one.
fn folded(seconds: i64) -> (i64, i64) {
    if seconds < CYCLE_ENDS_S {
        return (seconds, 0);
    }
    let known = CYCLE_BEGINS_S + (seconds - CYCLE_BEGINS_S) % CYCLE_S;
    (known, seconds - known)
}

#[cfg(test)]
mod tests {
    use blockbase_schema::time::{format_datetime, parse_datetime};

    use super::*;

    fn begins(zone: &str, period: Period, instant: &str) -> String {
        let zone = Zone::named(zone).expect("a zone");
        let seconds = parse_datetime(instant).expect("an instant").div_euclid(1000);
        format_datetime(zone.first_instant(period, seconds) * 1000)
    }

    #[test]
    fn periods_begin_with_the_local_clock() {
        for (zone, period, instant, begin) in [
            ("UTC", Period::Week, "2026-11-29T23:59:59Z", "2026-11-23T00:00:00.000Z"),
            ("Europe/Berlin", Period::Year, "2025-12-31T23:00:00Z", "2025-12-31T23:00:00.000Z"),
            ("Europe/Berlin", Period::Quarter, "2026-06-30T21:59:59Z", "2026-03-31T22:00:00.000Z"),
            ("Europe/Berlin", Period::Month, "2026-03-31T21:59:59Z", "2026-02-28T23:00:00.000Z"),
            // The hour from 2 to 3 occurs twice, and does not occur in spring.
            ("Europe/Berlin", Period::Hour, "2026-10-25T00:30:00Z", "2026-10-25T00:00:00.000Z"),
            ("Europe/Berlin", Period::Hour, "2026-10-25T01:30:00Z", "2026-10-25T01:00:00.000Z"),
            ("Europe/Berlin", Period::Hour, "2026-03-29T01:30:00Z", "2026-03-29T01:00:00.000Z"),
            ("Europe/Berlin", Period::Day, "2026-10-25T22:59:59Z", "2026-10-24T22:00:00.000Z"),
            // The clocks go back by half an hour.
            ("Australia/Lord_Howe", Period::Hour, "2026-04-04T14:45:00Z", "2026-04-04T14:00:00.000Z"),
            ("Australia/Lord_Howe", Period::Hour, "2026-04-04T15:15:00Z", "2026-04-04T15:00:00.000Z"),
            // The day begins at 1 o'clock.
            ("America/Sao_Paulo", Period::Day, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00.000Z"),
            // There was no 30 December.
            ("Pacific/Apia", Period::Day, "2011-12-30T10:30:00Z", "2011-12-30T10:00:00.000Z"),
            // Local mean time.
            ("europe/berlin", Period::Day, "1890-01-01T12:00:00Z", "1889-12-31T23:06:32.000Z"),
            ("Europe/Berlin", Period::Hour, "9999-07-01T00:30:00Z", "9999-07-01T00:00:00.000Z"),
            ("Europe/Berlin", Period::Month, "9999-07-31T22:00:00Z", "9999-07-31T22:00:00.000Z"),
            ("Europe/Berlin", Period::Year, "2499-12-31T23:30:00Z", "2499-12-31T23:00:00.000Z"),
            ("America/New_York", Period::Year, "2500-01-01T01:00:00Z", "2499-01-01T05:00:00.000Z"),
            ("Pacific/Kiritimati", Period::Year, "9999-12-31T12:00:00Z", "9999-12-31T10:00:00.000Z"),
            ("America/New_York", Period::Week, "0001-01-01T00:00:00Z", "0000-12-25T04:56:02.000Z"),
        ] {
            assert_eq!(begins(zone, period, instant), begin, "{zone} {period:?} {instant}");
        }
    }

    #[test]
    fn rules_repeat_with_each_cycle() {
        let zone = Zone::named("Europe/Berlin").expect("a zone");
        for year in [2100, 2200, 2399] {
            let begin = i64::from(blockbase_schema::time::first_day(year, 1)) * 86_400;
            for hour in 0..366 * 24 {
                let seconds = begin + hour * 3600;
                for period in Period::ALL {
                    let (one, later) = (zone.first_instant(*period, seconds), zone.first_instant(*period, seconds + CYCLE_S));
                    assert_eq!(one + CYCLE_S, later, "{period:?} {seconds}");
                }
            }
        }
    }

    #[test]
    fn no_hour_has_more_than_one_change() {
        let names: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect();
        assert!(names.len() > 400, "{}", names.len());
        for name in names {
            let zone = Zone::named(&name).expect(&name);
            for pair in zone.begins.windows(2) {
                assert!(pair[1] - pair[0] > 2 * 3600, "{name}: {pair:?}");
            }
            assert!(zone.offsets.iter().all(|offset| offset.abs() <= 26 * 3600), "{name}");
        }
    }

    #[test]
    fn unknown_zones_are_refused() {
        assert_eq!(Zone::named("Etc/GMT 5").expect_err("a space").hint.as_deref(), Some(&Hint::EncodePlus));
        for name in ["", "Mars/Olympus", "+02:00", "CET-1CEST", &"x".repeat(100), "../etc/passwd"] {
            assert_eq!(Zone::named(name).expect_err(name).field.as_deref(), Some("tz"), "{name}");
        }
    }
}
