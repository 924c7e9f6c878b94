//! The cost of calls that alternate between many blocks. The blocks do the same under as many names. Their files differ, so the
//! server compiles and keeps each on its own.

use std::sync::Arc;

use serde_json::json;

use super::guests::{Guest, Guests};
use super::{ECHOED, Options, action_path, caller};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::load::{MakeRequest, request};
use crate::report::Table;
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};

/// The numbers of blocks. All of a language are installed on one server, and the first of them are called.
const COUNTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const MOST: usize = COUNTS[COUNTS.len() - 1];

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let echoes: Vec<&Guest> = if options.languages.is_empty() { vec![&guests.example] } else { guests.echoes().collect() };
    let mut rows = Vec::new();
    for guest in echoes {
        let language = guest.language.name();
        let subject = Subject::start(&options.shared.binary, cluster, "many", &[]).await;
        let names: Vec<String> = (0..MOST).map(|number| format!("{}-{number}", guest.name)).collect();
        for (number, name) in names.iter().enumerate() {
            let copy = guests.copy_as(guest, name);
            subject.side.install(&copy.file).await;
            // A block in Python or Go has many MiB, and the server has a copy.
            std::fs::remove_file(&copy.file).unwrap();
            if (number + 1).is_multiple_of(16) {
                eprintln!("many, {language}, {} blocks installed", number + 1);
            }
        }
        let side = caller(&subject.side, &[]).await;
        // The first call of a block loads its code, which is not measured here.
        for name in &names {
            side.post(&action_path(name, "echo"), &json!({})).await;
        }
        tokio::time::sleep(REST).await;
        for connections in [1, options.connections] {
            let mut contenders = COUNTS.map(|count| Contender::new(&side.address, in_turn(&side, &names[..count])));
            eprintln!("many, {language}, {connections} connections");
            take(&mut contenders, connections, options.seconds).await;
            rows.extend(rows_of(language, connections, &contenders));
        }
        subject.end().await;
    }
    let head = vec!["block in", "blocks", "connections", "echo /s", "p50 µs", "p99 µs", "ratio"];
    ("calls of echo that alternate between blocks, the ratio to one block".to_owned(), Table { head, rows })
}

/// Calls of these blocks, one after the other.
fn in_turn(side: &Side, names: &[String]) -> MakeRequest {
    let call = |name: &String| request("POST", &action_path(name, "echo"), side.token.as_deref(), Some(ECHOED));
    let calls: Vec<Vec<u8>> = names.iter().map(call).collect();
    Arc::new(move |connection, number| calls[called(connection, number, calls.len())].clone())
}

/// The place of the block that a connection calls. Each connection begins with another block, so that they do not all call the
/// same one at a time.
fn called(connection: usize, number: usize, count: usize) -> usize {
    (connection + number) % count
}

/// A row for each number of blocks. The first of them is one block.
fn rows_of(language: &str, connections: usize, contenders: &[Contender]) -> Vec<Vec<String>> {
    let row = |(count, contender): (usize, &Contender)| {
        let mut row = vec![language.to_owned(), count.to_string(), connections.to_string()];
        row.extend(contender.cells());
        row.push(contender.ratio(&contenders[0]));
        row
    };
    COUNTS.into_iter().zip(contenders).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Measured;

    #[test]
    fn each_connection_calls_all_blocks_in_turn() {
        for count in COUNTS {
            for connection in [0, 1, 31] {
                let mut places: Vec<usize> = (0..count).map(|number| called(connection, number, count)).collect();
                assert_eq!(called(connection, count, count), places[0], "after the last comes the first");
                places.sort_unstable();
                assert_eq!(places, (0..count).collect::<Vec<_>>());
            }
        }
        assert_eq!([0, 1, 2, 3].map(|connection| called(connection, 5, 4)), [1, 2, 3, 0]);
    }

    #[test]
    fn each_number_of_blocks_is_compared_with_one_block() {
        assert_eq!((COUNTS[0], MOST), (1, 64));
        let turn = |a_second: f64, p50_us: u64| Measured { a_second, p50_us, p99_us: 2 * p50_us };
        let mut rate = 4000.0;
        let contenders = COUNTS.map(|_| {
            let contender = Contender::after(vec![turn(rate, 100), turn(rate / 2.0, 300)]);
            rate /= 2.0;
            contender
        });
        let rows = rows_of("Go", 1, &contenders);
        assert_eq!(rows.len(), COUNTS.len());
        assert_eq!(rows[0], ["Go", "1", "1", "3,000", "200", "600", "1.00"]);
        assert_eq!(rows[1], ["Go", "2", "1", "1,500", "200", "600", "0.50"]);
        assert_eq!(rows[2], ["Go", "4", "1", "750", "200", "600", "0.25"]);
    }
}
