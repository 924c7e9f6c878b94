//! Cron schedules: five fields, in UTC.

use blockbase_schema::{Code, Error, Result};
use chrono::{DateTime, Utc};
use croner::parser::{CronParser, Seconds, Year};

/// The maximum length of a schedule, in bytes.
const SCHEDULE_BYTES_MAX: usize = 500;

/// The first instant of the schedule after `now`. Both are in milliseconds since the epoch.
///
/// # Errors
/// `invalid_value` if the text is not a schedule, or no instant matches it.
pub(super) fn next_run(schedule: &str, now: i64) -> Result<i64> {
    let invalid = |why: &str| {
        let shown: String = schedule.chars().take(80).collect();
        let message = format!("`schedule` needs a cron expression of five fields, in UTC, such as `0 3 * * *`; {shown:?} {why}.");
        Error::new(Code::InvalidValue, message).with_field("schedule")
    };
    let is_short = schedule.len() <= SCHEDULE_BYTES_MAX;
    let has_five_fields = is_short && schedule.split_ascii_whitespace().count() == 5 && schedule.is_ascii();
    let has_five_fields = has_five_fields && schedule.split_ascii_whitespace().all(is_field);
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(schedule).ok().filter(|_| has_five_fields).ok_or_else(|| invalid("is not a cron expression"))?;
    let now = DateTime::<Utc>::from_timestamp_millis(now).ok_or_else(|| invalid("cannot be computed for the present time"))?;
    let next = cron.find_next_occurrence(&now, false).map_err(|_| invalid("never matches a time in the future"))?;
    Ok(next.timestamp_millis())
}

/// Whether a field is a complete list of steps and ranges. The parser ignores missing parts: it reads `1,,` as `1`.
fn is_field(field: &str) -> bool {
    let is_atom = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'#' | b'?'))
    };
    field.split(',').all(|item| {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let (first, last) = range.split_once('-').map_or((range, None), |(first, last)| (first, Some(last)));
        is_atom(first)
            && last.is_none_or(is_atom)
            && step.is_none_or(|step| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T13:00:00Z, a Saturday.
    const NOW: i64 = 1_795_266_000_000;
    const MINUTE: i64 = 60_000;

    #[test]
    fn the_next_run_lies_strictly_ahead() {
        assert_eq!(next_run("* * * * *", NOW).ok(), Some(NOW + MINUTE));
        assert_eq!(next_run("0 3 * * *", NOW).ok(), Some(NOW + 14 * 60 * MINUTE));
        assert_eq!(next_run("*/15 * * * MON-FRI", NOW).ok(), Some(NOW + 35 * 60 * MINUTE));
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for bad in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "0 0 30 2 *",
            "soon",
            "@daily",
            "* * * * é",
            "1,, * * * *",
            ",1 * * * *",
            "1,,2 * * * *",
            "1- * * * *",
            "-1 * * * *",
            "1-2-3 * * * *",
            "*/ * * * *",
            "*/0 * * * *",
            "/5 * * * *",
            "1//2 * * * *",
            "*/+5 * * * *",
            "+1 * * * *",
            "** * * * *",
            "1* * * * *",
            "5-1/2/3 * * * *",
            "0 0 * * +MON",
        ] {
            assert!(next_run(bad, NOW).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_schedule_lies_ahead_or_is_refused() {
        use blockbase_tests::fuzz::{changed, for_a_while};

        const WORDS: [&str; 16] = ["*", "0", "59", "7", "31", "/", "-", ",", " ", "MON", "jan", "L", "#", "?", "* * ", "99"];
        for_a_while(|input| {
            let text = changed(input, "*/15 3 1-5 * MON,TUE", &WORDS)?;
            let next = next_run(&text, NOW);
            assert!(next.as_ref().is_ok_and(|next| *next > NOW) || next.is_err(), "{text}");
            Ok(next.is_ok())
        });
    }
}
