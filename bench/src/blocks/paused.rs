//! The time that a block's call adds after a pause. Instances that were made ahead or kept may be gone by then, and the caches of
//! the processor have other contents. So this is the time for those who call rarely.
//!
//! A plain handler has the same pauses, because its requests take longer after a pause too, also in the benchmark itself.

use std::time::Duration;

use super::Options;
use super::added::Echoes;
use super::guests::{GUEST_HEAD, Guest, Guests};
use crate::cluster::Cluster;
use crate::load::Pace;
use crate::report::{Table, grouped};
use crate::turns::{Contender, TURNS, order, time_of_a_turn};

/// The milliseconds from an answer to the next request.
const PAUSES: [u32; 4] = [0, 10, 100, 1000];
/// The number of requests that a turn has time for at least.
const REQUESTS_MIN: u32 = 5;

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let echoes = Echoes::start(options, guests, cluster, "paused").await;
    let mut by_pause = PAUSES.map(|_| echoes.contenders());
    for turn in 0..TURNS {
        for place in order(turn, PAUSES.len()) {
            eprintln!("paused, turn {} of {TURNS}, {} ms", turn + 1, PAUSES[place]);
            let pause = Duration::from_millis(u64::from(PAUSES[place]));
            let (pace, time) = pace_and_time(pause, time_of_a_turn(options.seconds));
            let contenders = &mut by_pause[place];
            for contender in order(turn, contenders.len()) {
                contenders[contender].turn_at(pace, 1, time).await;
            }
        }
    }
    echoes.subject.end().await;
    let columns = ["pause ms", "echo p50 µs", "p99 µs", "me p50 µs", "p99 µs", "p50 +µs", "p99 +µs"];
    let head = [GUEST_HEAD.as_slice(), &columns].concat();
    let title = format!(
        "a call of echo after a pause against GET /api/v1/me after the same, 1 connection\n\nA turn has time for {REQUESTS_MIN} \
         requests at least. With fewer than 100, its p99 is its slowest request."
    );
    (title, Table { head, rows: rows(&echoes.guests, &by_pause) })
}

/// The pace of a turn with this pause, and its time, which is `least` at least.
fn pace_and_time(pause: Duration, least: Duration) -> (Pace, Duration) {
    let time = least.max(pause * REQUESTS_MIN);
    // The warm-up is longer than a pause, so it has two requests. The turns of the others may have taken so long that the block
    // is no longer hot. Then the server makes an instance ahead only after the second call.
    (Pace { warm_up: (time / 8).max(pause * 3 / 2), pause }, time)
}

/// For each guest, a row for each pause. The first of a pause's contenders is the plain handler, and the others are the guests'.
fn rows(guests: &[Guest], by_pause: &[Vec<Contender>]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (place, guest) in guests.iter().enumerate() {
        for (pause, contenders) in PAUSES.into_iter().zip(by_pause) {
            let (plain, echo) = (&contenders[0], &contenders[place + 1]);
            let mut row = guest.cells().to_vec();
            row.push(grouped(f64::from(pause)));
            for contender in [echo, plain] {
                // The rate would only show the pause.
                let [_, p50, p99] = contender.cells();
                row.extend([p50, p99]);
            }
            row.extend(echo.added(plain).map(grouped));
            rows.push(row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::blocks::guests::Language;
    use crate::load::Measured;

    #[test]
    fn a_turn_has_time_for_some_requests_after_two_that_do_not_count() {
        let of = |pause_ms: u64| {
            let (pace, time) = pace_and_time(Duration::from_millis(pause_ms), Duration::from_secs(1));
            assert_eq!(pace.pause, Duration::from_millis(pause_ms));
            (pace.warm_up.as_millis(), time.as_millis())
        };
        assert_eq!([of(0), of(10), of(100), of(1000)], [(125, 1000), (125, 1000), (150, 1000), (1500, 5000)]);
    }

    #[test]
    fn a_call_adds_the_difference_to_the_handler_after_the_same_pause() {
        let guest = |is_reused: bool| Guest { language: Language::Rust, name: String::new(), file: PathBuf::new(), is_reused };
        let turn = |p50_us: u64| Measured { a_second: 1.0, p50_us, p99_us: 2 * p50_us };
        let contender = |p50_us: u64| Contender::after(vec![turn(p50_us), turn(p50_us + 2)]);
        let by_pause = PAUSES.map(|pause| {
            let pause = u64::from(pause);
            vec![contender(20 + pause), contender(60 + 2 * pause), contender(30 + pause)]
        });
        let rows = rows(&[guest(false), guest(true)], &by_pause);
        assert_eq!(rows.len(), 2 * PAUSES.len());
        assert_eq!(rows[0], ["Rust", "new", "0", "61", "124", "21", "44", "40", "80"]);
        assert_eq!(rows[3], ["Rust", "new", "1,000", "2,061", "4,124", "1,021", "2,044", "1,040", "2,080"]);
        assert_eq!(rows[4], ["Rust", "reused", "0", "31", "64", "21", "44", "10", "20"]);
    }
}
