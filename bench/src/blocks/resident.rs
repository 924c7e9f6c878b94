//! The cost and the gain of memory that places keep between calls (`SVC_BLOCK_RESIDENT_KB`): calls of `echo` with new instances
//! on servers that differ in this variable only, and the memory of these servers after the calls.
//!
//! Each language has servers of its own, so that calls of other blocks have not left memory there.

use serde_json::{Value, json};

use super::guests::{Guest, Guests};
use super::memory::{Memory, settle};
use super::{ECHOED, Options, action_path, caller, example_right};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::report::Table;
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::always;

/// The values of the variable, each with the name of its server.
const SERVERS: [(&str, &str); 5] = [
    ("0", "resident_0"),
    ("64", "resident_64"),
    ("1024", "resident_1024"),
    ("4096", "resident_4096"),
    ("16384", "resident_16384"),
];
/// The place of the server with which the others are compared: the one with 64.
const COMPARED: usize = 1;

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let mut rows = Vec::new();
    for guest in guests.echoes() {
        let language = guest.language.name();
        let path = action_path(&guest.name, "echo");
        let mut servers = Vec::new();
        for (kilobytes, name) in SERVERS {
            eprintln!("resident, {language}, the server with {kilobytes}");
            servers.push(start(options, guests, guest, cluster, name, kilobytes).await);
        }
        tokio::time::sleep(REST).await;
        for connections in [1, options.connections] {
            let echo = |side: &Side| Contender::new(&side.address, always(side, "POST", &path, Some(ECHOED)));
            let mut contenders: Vec<Contender> = servers.iter().map(|(_, side)| echo(side)).collect();
            eprintln!("resident, {language}, {connections} connections");
            take(&mut contenders, connections, options.seconds).await;
            let mut memories = Vec::new();
            let input = json!({ "text": "hello" });
            for (subject, side) in &servers {
                settle(side, &path, &input, &input).await;
                memories.push(Memory::of(subject));
            }
            rows.extend(rows_of(language, connections, &contenders, &memories));
        }
        for (subject, _) in servers {
            subject.end().await;
        }
    }
    let head =
        vec!["block in", "SVC_BLOCK_RESIDENT_KB", "connections", "echo /s", "p50 µs", "resident MiB", "its own MiB", "ratio"];
    let title = format!("echo with new instances by SVC_BLOCK_RESIDENT_KB, the ratio to {}", SERVERS[COMPARED].0);
    (title, Table { head, rows })
}

/// A server with this value of the variable and with the block, and a caller of the block.
async fn start<'c>(
    options: &Options,
    guests: &Guests,
    guest: &Guest,
    cluster: Option<&'c Cluster>,
    name: &'static str,
    kilobytes: &'static str,
) -> (Subject<'c>, Side) {
    let environment = [("SVC_BLOCK_RESIDENT_KB", kilobytes)];
    let mut subject = Subject::start(&options.shared.binary, cluster, name, &environment).await;
    subject.side.install(&guest.file).await;
    // The server restarts. Otherwise its memory would contain what the sign-up and the install have left.
    subject.stop();
    subject.start_again();
    let more: Vec<Value> = (guest.name == guests.example.name).then(example_right).into_iter().collect();
    let side = caller(&subject.side, &more).await;
    (subject, side)
}

/// A row for each server, with its turns and its memory after them.
fn rows_of(language: &str, connections: usize, contenders: &[Contender], memories: &[Memory]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (place, (kilobytes, _)) in SERVERS.into_iter().enumerate() {
        let (contender, memory) = (&contenders[place], memories[place]);
        let [a_second, p50, _] = contender.cells();
        rows.push(vec![
            language.to_owned(),
            kilobytes.to_owned(),
            connections.to_string(),
            a_second,
            p50,
            format!("{:.0}", memory.resident),
            format!("{:.0}", memory.own),
            contender.ratio(&contenders[COMPARED]),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Measured;

    #[test]
    fn each_server_is_compared_with_the_one_with_64() {
        assert_eq!(SERVERS[COMPARED].0, "64");
        let turn = |a_second: f64| Measured { a_second, p50_us: 500, p99_us: 900 };
        let rates = [600.0, 1000.0, 1500.0, 2000.0, 2500.0];
        let contenders = rates.map(|rate| Contender::after(vec![turn(rate), turn(rate * 2.0)]));
        let memories = [80.0, 81.0, 90.0, 120.0, 240.0].map(|resident| Memory { resident, own: resident - 2.0 });
        let rows = rows_of("C", 32, &contenders, &memories);
        assert_eq!(rows.len(), SERVERS.len());
        assert_eq!(rows[0], ["C", "0", "32", "900", "500", "80", "78", "0.60"]);
        assert_eq!(rows[1], ["C", "64", "32", "1,500", "500", "81", "79", "1.00"]);
        assert_eq!(rows[4], ["C", "16384", "32", "3,750", "500", "240", "238", "2.50"]);
    }
}
