//! Contenders that take turns.

use std::time::Duration;

use crate::identity::median;
use crate::load::{MakeRequest, Measured, Pace, run as run_load, run_at};
use crate::report::grouped;

/// The number of turns of each contender.
pub(crate) const TURNS: u32 = 6;

pub(crate) struct Contender {
    address: String,
    make: MakeRequest,
    turns: Vec<Measured>,
}

impl Contender {
    pub(crate) fn new(address: &str, make: MakeRequest) -> Contender {
        Contender { address: address.to_owned(), make, turns: Vec::new() }
    }

    pub(crate) async fn turn(&mut self, connections: usize, time: Duration) {
        self.turns.push(run_load(&self.address, connections, time, self.make.clone()).await);
    }

    /// A turn at another pace.
    pub(crate) async fn turn_at(&mut self, pace: Pace, connections: usize, time: Duration) {
        self.turns.push(run_at(pace, &self.address, connections, time, self.make.clone()).await);
    }

    /// All turns as one measurement.
    pub(crate) fn mean(&self) -> Measured {
        Measured::mean(&self.turns, 1)
    }

    /// The requests per second, the p50 and the p99, for a table.
    pub(crate) fn cells(&self) -> [String; 3] {
        let all = self.mean();
        [all.a_second, all.p50_us as f64, all.p99_us as f64].map(grouped)
    }

    /// Compares each turn with the other contender's turn of the same number, and returns the median.
    pub(crate) fn beside(&self, other: &Contender, compare: impl Fn(&Measured, &Measured) -> f64) -> f64 {
        median(self.turns.iter().zip(&other.turns).map(|(ours, theirs)| compare(ours, theirs)).collect())
    }

    /// The ratio of its requests per second to those of the other contender.
    pub(crate) fn ratio(&self, other: &Contender) -> String {
        format!("{:.2}", self.beside(other, |ours, theirs| ours.a_second / theirs.a_second))
    }

    /// The differences of its p50 and p99 from those of the other contender.
    pub(crate) fn added(&self, other: &Contender) -> [f64; 2] {
        [
            self.beside(other, |ours, theirs| ours.p50_us as f64 - theirs.p50_us as f64),
            self.beside(other, |ours, theirs| ours.p99_us as f64 - theirs.p99_us as f64),
        ]
    }
}

#[cfg(test)]
impl Contender {
    /// A contender that has had these turns.
    pub(crate) fn after(turns: Vec<Measured>) -> Contender {
        Contender { address: String::new(), make: std::sync::Arc::new(|_, _| Vec::new()), turns }
    }
}

/// The duration of one turn, so that all turns take `seconds`.
pub(crate) fn time_of_a_turn(seconds: u64) -> Duration {
    Duration::from_millis(seconds * 1000) / TURNS
}

/// The order of `count` contenders in this turn. It alternates between forward and backward.
pub(crate) fn order(turn: u32, count: usize) -> Vec<usize> {
    let forth = 0..count;
    if turn.is_multiple_of(2) { forth.collect() } else { forth.rev().collect() }
}

/// Runs the turns of all contenders.
pub(crate) async fn take(contenders: &mut [Contender], connections: usize, seconds: u64) {
    for turn in 0..TURNS {
        for place in order(turn, contenders.len()) {
            contenders[place].turn(connections, time_of_a_turn(seconds)).await;
        }
    }
}
