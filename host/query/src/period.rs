//! Periods of time: the years, quarters, months, weeks, days and hours by which an aggregate groups.

use blockbase_schema::time::{self, DAY_MS};
use blockbase_schema::{ColumnType, enumerated, listed};

const DAY_S: i64 = DAY_MS / 1000;
const HOUR_S: i64 = 3600;
/// The number of days from a Monday to 1970-01-01, which is a Thursday.
const MONDAY_TO_EPOCH: i32 = 3;

listed! {
    /// A period of `groupBy`. The documents and the table in `docs/data.md` follow [`Period::ALL`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Period {
        Year,
        Quarter,
        Month,
        Week,
        Day,
        Hour,
    }
}

impl Period {
    /// The name, which is also the name of the unit in Postgres' `date_trunc`.
    pub const fn name(self) -> &'static str {
        match self {
            Period::Year => "year",
            Period::Quarter => "quarter",
            Period::Month => "month",
            Period::Week => "week",
            Period::Day => "day",
            Period::Hour => "hour",
        }
    }

    pub fn named(name: &str) -> Option<Period> {
        Period::ALL.iter().copied().find(|period| period.name() == name)
    }

    /// The text "`year`, `quarter`, … or `hour`".
    pub fn enumerated() -> String {
        enumerated(Period::ALL.iter().map(|period| format!("`{}`", period.name())), "or")
    }

    /// Whether the values of columns of this type can be grouped by the period.
    pub fn fits(self, ty: ColumnType) -> bool {
        match self {
            Period::Hour => ty == ColumnType::Datetime,
            Period::Year | Period::Quarter | Period::Month | Period::Week | Period::Day => {
                matches!(ty, ColumnType::Date | ColumnType::Datetime)
            }
        }
    }

    /// The first day of the period that contains a day. Both are days since 1970-01-01.
    pub fn first_day(self, day: i32) -> i32 {
        let (year, month) = time::year_and_month(day);
        match self {
            Period::Year => time::first_day(year, 1),
            Period::Quarter => time::first_day(year, (month - 1) / 3 * 3 + 1),
            Period::Month => time::first_day(year, month),
            // Weeks begin on Monday.
            Period::Week => day - (day + MONDAY_TO_EPOCH).rem_euclid(7),
            Period::Day | Period::Hour => day,
        }
    }

    /// The first second of the period that contains a second. Both are seconds since 1970-01-01, in the same local time.
    pub(crate) fn first_second(self, seconds: i64) -> i64 {
        match self {
            Period::Hour => seconds.div_euclid(HOUR_S) * HOUR_S,
            Period::Year | Period::Quarter | Period::Month | Period::Week | Period::Day => {
                let day = i32::try_from(seconds.div_euclid(DAY_S)).unwrap_or_default();
                i64::from(self.first_day(day)) * DAY_S
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::table_rows;

    use super::*;

    #[test]
    fn the_documentation_has_every_period() {
        let rows = table_rows(include_str!("../../../docs/data.md"), "| period | for | begins |");
        assert_eq!(rows.len(), Period::ALL.len());
        for (row, period) in rows.iter().zip(Period::ALL) {
            let types = [(ColumnType::Date, "date"), (ColumnType::Datetime, "datetime")];
            let types: Vec<&str> = types.iter().filter(|(ty, _)| period.fits(*ty)).map(|(_, name)| *name).collect();
            let begin = format!("| `{}` | {} | ", period.name(), types.join(", "));
            assert!(row.starts_with(&begin), "{row} does not begin with {begin}");
        }
    }
}
