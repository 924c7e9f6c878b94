//! The effect of spinning calls on other calls. A plain handler and the echo of a well-behaved block are measured without the
//! spinning calls and beside them.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::guests::Guests;
use super::{ECHOED, Options, action_path, caller, example_right};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::load::{exchange, request};
use crate::report::Table;
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, TURNS, order, time_of_a_turn};
use crate::workloads::always;

/// The example, with a long timeout, which spins.
const SPINNER: &str = "spinner";
/// The pause until the calls spin on the threads for long calls, and until the abandoned calls have ended.
const SETTLE: Duration = Duration::from_millis(300);

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let subject = Subject::start(&options.shared.binary, cluster, "hostile", &[]).await;
    subject.side.install(&guests.example.file).await;
    subject.side.install(&guests.example_as(SPINNER).file).await;
    let side = caller(&subject.side, &[example_right()]).await;
    tokio::time::sleep(REST).await;
    let mut rows = Vec::new();
    for connections in [1, options.connections] {
        eprintln!("hostile, {connections} connections");
        let contenders = || {
            [
                Contender::new(&side.address, always(&side, "GET", "/api/v1/me", None)),
                Contender::new(&side.address, always(&side, "POST", &action_path("echo", "echo"), Some(ECHOED))),
            ]
        };
        // First without the spinning calls, then beside them.
        let mut surroundings = [contenders(), contenders()];
        for turn in 0..TURNS {
            for place in order(turn, surroundings.len()) {
                let spins = if place == 1 { spin(&side, options.spins) } else { Vec::new() };
                tokio::time::sleep(SETTLE).await;
                for contender in &mut surroundings[place] {
                    contender.turn(connections, time_of_a_turn(options.seconds)).await;
                }
                for spin in spins {
                    assert!(!spin.is_finished(), "a spinning call has ended");
                    spin.abort();
                }
                tokio::time::sleep(SETTLE).await;
            }
        }
        let [alone, beside] = &surroundings;
        for (name, (alone, beside)) in ["GET /api/v1/me", "block echo"].into_iter().zip(alone.iter().zip(beside)) {
            let mut row = vec![name.to_owned(), connections.to_string()];
            row.extend(beside.cells());
            row.extend(alone.cells());
            row.push(beside.ratio(alone));
            rows.push(row);
        }
    }
    subject.end().await;
    let head = vec!["what", "connections", "beside /s", "p50 µs", "p99 µs", "alone /s", "p50 µs", "p99 µs", "ratio"];
    (format!("beside {} calls that spin", options.spins), Table { head, rows })
}

/// Calls that end together with their task, because a server stops a call for which nobody waits.
fn spin(side: &Side, count: u16) -> Vec<JoinHandle<()>> {
    (0..count)
        .map(|_| {
            let bytes = request("POST", &action_path(SPINNER, "spin"), side.token.as_deref(), Some("{}"));
            let address = side.address.clone();
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                exchange(&mut stream, &bytes, &mut Vec::new()).await;
            })
        })
        .collect()
}
