//! The parts of a call's time, as the server's own metrics show them. docs/telemetry.md describes the parts.
//!
//! Each guest has one server to itself, and takes no turns: the parts of a call are compared with each other, not with those
//! of other languages.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::net::TcpStream;

use super::guests::{GUEST_HEAD, Guests};
use super::{ECHOED, Options, action_path, caller, example_right};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::load::{exchange, request, run_after};
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::side::Side;
use crate::workloads::always;

/// The histogram of the parts in the text of `/metrics`. It ends with `_sum` and `_count`.
const FAMILY: &str = "svc_block_call_part_milliseconds";

/// The part that is usually after the answer.
const AFTER_THE_ANSWER: &str = "teardown";

/// The milliseconds in one part, and the number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spent {
    milliseconds: f64,
    calls: f64,
}

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let mut rows = Vec::new();
    for guest in &guests.new_and_reused(guests.echoes()) {
        let subject = Subject::start(&options.shared.binary, cluster, "phases", &[("SVC_TELEMETRY", "true")]).await;
        eprintln!("installing {}", guest.name);
        subject.side.install(&guest.file).await;
        let more: Vec<_> = (guest.name == guests.example.name).then(example_right).into_iter().collect();
        let side = caller(&subject.side, &more).await;
        tokio::time::sleep(REST).await;
        for connections in [1, options.connections] {
            eprintln!("phases, {}, {connections} connections", guest.name);
            let echo = always(&side, "POST", &action_path(&guest.name, "echo"), Some(ECHOED));
            let time = Duration::from_secs(options.seconds);
            // The warm-up is separate, so that the parts and the time of a request are those of the same calls.
            run_after(Duration::ZERO, &side.address, connections, time / 8, echo.clone()).await;
            let before = parts(&side, &guest.name).await;
            let measured = run_after(Duration::ZERO, &side.address, connections, time, echo).await;
            let after = parts(&side, &guest.name).await;
            let request_us = 1e6 * connections as f64 / measured.a_second;
            rows.extend(
                shown(&means(&before, &after), request_us)
                    .into_iter()
                    .map(|cells| guest.cells().into_iter().chain([connections.to_string()]).chain(cells).collect::<Vec<_>>()),
            );
        }
        subject.end().await;
    }
    let head = [GUEST_HEAD.as_slice(), &["connections", "part", "mean µs", "% of the request"]].concat();
    ("the parts of a call of echo".to_owned(), Table { head, rows })
}

/// The parts of all calls of a block since the server started. Each handler of the block has series of its own.
async fn parts(side: &Side, block: &str) -> BTreeMap<String, Spent> {
    let mut stream = TcpStream::connect(&side.address).await.unwrap();
    let mut buffer = Vec::new();
    let (status, range) = exchange(&mut stream, &request("GET", "/metrics", None, None), &mut buffer).await;
    let text = String::from_utf8_lossy(&buffer[range]);
    assert_eq!(status, 200, "{text}");
    parts_in(&text, block)
}

fn parts_in(text: &str, block: &str) -> BTreeMap<String, Spent> {
    let mut parts: BTreeMap<String, Spent> = BTreeMap::new();
    for sample in text.lines().filter_map(|line| line.strip_prefix(FAMILY)) {
        let Some((labels, value)) = sample.rsplit_once("} ") else { continue };
        let Some((suffix, labels)) = labels.split_once('{') else { continue };
        let label =
            |name: &str| labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'));
        let (Some(part), true) = (label("svc_block_part"), label("svc_block") == Some(block)) else { continue };
        let value: f64 = value.parse().expect("a number");
        match suffix {
            "_sum" => parts.entry(part.to_owned()).or_default().milliseconds += value,
            "_count" => parts.entry(part.to_owned()).or_default().calls += value,
            _ => {}
        }
    }
    parts
}

/// The mean of each part between two readings, in microseconds.
fn means(before: &BTreeMap<String, Spent>, after: &BTreeMap<String, Spent>) -> Vec<(String, f64)> {
    let mean = |(part, after): (&String, &Spent)| {
        let before = before.get(part).copied().unwrap_or_default();
        let calls = (after.calls - before.calls).max(1.0);
        (part.clone(), (after.milliseconds - before.milliseconds) * 1000.0 / calls)
    };
    after.iter().map(mean).collect()
}

/// The parts with their shares of the request, the longest first. Then what the request takes beside them, and the request.
fn shown(parts: &[(String, f64)], request_us: f64) -> Vec<[String; 3]> {
    let mut parts = parts.to_vec();
    parts.sort_by(|left, right| right.1.total_cmp(&left.1));
    let before_the_answer = parts.iter().filter(|(part, _)| part != AFTER_THE_ANSWER).map(|(_, mean)| mean).sum::<f64>();
    let rest = request_us - before_the_answer;
    parts.extend([("outside of the call".to_owned(), rest), ("the request".to_owned(), request_us)]);
    let cells = |(part, mean): (String, f64)| [part, grouped(mean), format!("{:.0}", mean * 100.0 / request_us)];
    parts.into_iter().map(cells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_one_block_are_read_from_a_scrape() {
        let text = r#"# TYPE svc_block_call_part_milliseconds histogram
svc_block_call_part_milliseconds_bucket{svc_action="echo",svc_block="echo",svc_block_part="guest",le="1"} 2
svc_block_call_part_milliseconds_sum{svc_action="echo",svc_block="echo",svc_block_part="guest"} 0.5
svc_block_call_part_milliseconds_count{svc_action="echo",svc_block="echo",svc_block_part="guest"} 2
svc_block_call_part_milliseconds_sum{svc_block="echo",svc_block_part="guest",svc_hook="paid"} 0.25
svc_block_call_part_milliseconds_count{svc_block="echo",svc_block_part="guest",svc_hook="paid"} 1
svc_block_call_part_milliseconds_sum{svc_action="echo",svc_block="other",svc_block_part="guest"} 9
svc_block_call_part_milliseconds_sum{svc_action="echo",svc_block="echo",svc_block_part="queue"} 0.1
svc_block_call_part_milliseconds_count{svc_action="echo",svc_block="echo",svc_block_part="queue"} 1
"#;
        let before = parts_in(text, "echo");
        assert_eq!(before["guest"], Spent { milliseconds: 0.75, calls: 3.0 });
        assert_eq!(before.keys().collect::<Vec<_>>(), ["guest", "queue"]);
        let after = BTreeMap::from([("guest".to_owned(), Spent { milliseconds: 1.15, calls: 5.0 })]);
        let rows = shown(&means(&before, &after), 250.0);
        let expected = [["guest", "200", "80"], ["outside of the call", "50", "20"], ["the request", "250", "100"]];
        assert_eq!(rows, expected);
    }
}
