//! The tables at the end of a run: plain, or as Markdown for the files in `bench/results`.

use std::time::Duration;

use crate::load::Measured;
use crate::run::Engine;
use crate::workloads::{ALL, ONE_BLOCK_CALL};

/// A workload on both sides.
pub(crate) struct Compared {
    pub(crate) name: &'static str,
    pub(crate) ours: Measured,
    pub(crate) floor: Measured,
}

/// The results for one row count. Each pair contains the value of this server and that of the floor.
pub(crate) struct Round {
    pub(crate) rows: u32,
    pub(crate) started_in: Duration,
    pub(crate) filled_in: (Duration, Duration),
    pub(crate) idle_mib: f64,
    pub(crate) peaks_mib: (f64, f64),
    pub(crate) compared: Vec<Compared>,
}

pub(crate) struct Table {
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.ours.a_second / self.floor.a_second
    }
}

/// A line with the result of a workload, for the running output.
pub(crate) fn line(compared: &Compared) -> String {
    let (ours, floor) = (&compared.ours, &compared.floor);
    format!(
        "{:<33} ours {:>7}/s {:>6} {:>6} µs   floor {:>7}/s {:>6} {:>6} µs   {:.2}",
        compared.name,
        grouped(ours.a_second),
        grouped(ours.p50_us as f64),
        grouped(ours.p99_us as f64),
        grouped(floor.a_second),
        grouped(floor.p50_us as f64),
        grouped(floor.p99_us as f64),
        compared.ratio()
    )
}

pub(crate) fn print(engine: Engine, connections: usize, rounds: &[Round], as_markdown: bool) {
    let title = format!("{}, {connections} connections", engine.name());
    println!("{}{title}\n", if as_markdown { "## " } else { "" });
    for table in [workloads(rounds), processes(rounds)] {
        println!("{}", table.text(as_markdown));
    }
    let echo = rounds.iter().flat_map(|round| &round.compared).find(|compared| compared.name == ONE_BLOCK_CALL);
    if let Some(echo) = echo {
        let added = echo.ours.p50_us as i64 - echo.floor.p50_us as i64;
        println!(
            "A block call adds {added} µs at one connection to a plain axum handler, authentication and validation included.\n"
        );
    }
}

/// Each workload at each row count, and the growth of its p50 from the smallest count to the largest.
fn workloads(rounds: &[Round]) -> Table {
    let head =
        vec!["workload", "rows", "ours /s", "p50 µs", "p99 µs", "floor /s", "p50 µs", "p99 µs", "ratio", "growth", "floor's"];
    let mut rows = Vec::new();
    for workload in &ALL {
        let at: Vec<(u32, &Compared)> = rounds
            .iter()
            .filter_map(|round| Some((round.rows, round.compared.iter().find(|compared| compared.name == workload.name)?)))
            .collect();
        for (place, (count, compared)) in at.iter().enumerate() {
            let (ours, floor) = (&compared.ours, &compared.floor);
            let mut row = vec![workload.name.to_owned(), grouped(f64::from(*count))];
            for side in [ours, floor] {
                row.extend([grouped(side.a_second), grouped(side.p50_us as f64), grouped(side.p99_us as f64)]);
            }
            row.push(format!("{:.2}", compared.ratio()));
            let first = at[0].1;
            match place > 0 && place + 1 == at.len() {
                true => row.extend([growth(&first.ours, ours), growth(&first.floor, floor)]),
                false => row.extend([String::new(), String::new()]),
            }
            rows.push(row);
        }
    }
    Table { head, rows }
}

fn growth(smallest: &Measured, greatest: &Measured) -> String {
    format!("{:.2}", greatest.p50_us as f64 / (smallest.p50_us as f64).max(1.0))
}

fn processes(rounds: &[Round]) -> Table {
    let head = vec!["rows", "cold start ms", "idle MiB", "filled at /s", "floor's", "peak MiB", "floor's"];
    let cells = |round: &Round| {
        let filled = |time: Duration| grouped(f64::from(round.rows) / time.as_secs_f64());
        vec![
            grouped(f64::from(round.rows)),
            round.started_in.as_millis().to_string(),
            format!("{:.0}", round.idle_mib),
            filled(round.filled_in.0),
            filled(round.filled_in.1),
            format!("{:.0}", round.peaks_mib.0),
            format!("{:.0}", round.peaks_mib.1),
        ]
    };
    Table { head, rows: rounds.iter().map(cells).collect() }
}

impl Table {
    pub(crate) fn text(&self, as_markdown: bool) -> String {
        if as_markdown { self.markdown() } else { self.plain() }
    }

    fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        let mut text = line(&mut self.head.iter().copied());
        text.push_str(&format!("|{}\n", "---|".repeat(self.head.len())));
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }

    /// Aligns the first column to the left, and numbers to the right.
    fn plain(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded: Vec<String> = cells
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
                .collect();
            format!("{}\n", padded.join("  ").trim_end())
        };
        let mut text = line(&mut self.head.iter().copied());
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }
}

/// A whole number with separators between the thousands.
pub(crate) fn grouped(number: f64) -> String {
    let rounded = format!("{number:.0}");
    let (sign, digits) = rounded.strip_prefix('-').map_or(("", rounded.as_str()), |digits| ("-", digits));
    let mut text = String::with_capacity(rounded.len() + rounded.len() / 3);
    text.push_str(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_and_a_sign_is_no_digit() {
        let numbers = [0.0, 999.4, 1000.0, 1_234_567.0, -12.0, -123.0, -1234.0];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "1,234,567", "-12", "-123", "-1,234"]);
    }
}
