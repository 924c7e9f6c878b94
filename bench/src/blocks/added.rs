//! The cost that a block's call adds. It compares the echo of each language with a handler of the same server, with the same credential.

use super::guests::{EXAMPLE_RESOURCE, Guests, Language};
use super::{ECHOED, Options, action_path, caller};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::turns::{Contender, take};
use crate::workloads::always;

/// A handler of the server itself.
const PLAIN: &str = "/api/v1/me";

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let subject = Subject::start(&options.shared.binary, cluster, "added", &[]).await;
    subject.side.install(&guests.example.file).await;
    for guest in guests.all.iter().filter(|guest| guest.language != Language::Rust) {
        eprintln!("installing {}", guest.name);
        subject.side.install(&guest.file).await;
    }
    let side = caller(&subject.side, Some(EXAMPLE_RESOURCE)).await;
    tokio::time::sleep(REST).await;
    let mut rows = Vec::new();
    for connections in [1, options.connections] {
        let mut contenders = vec![Contender::new(&side.address, always(&side, "GET", PLAIN, None))];
        for guest in guests.echoes() {
            let path = action_path(&guest.name, "echo");
            contenders.push(Contender::new(&side.address, always(&side, "POST", &path, Some(ECHOED))));
        }
        eprintln!("added, {connections} connections");
        take(&mut contenders, connections, options.seconds).await;
        let (plain, echoes) = contenders.split_first().unwrap();
        for (guest, echo) in guests.echoes().zip(echoes) {
            let mut row = vec![guest.language.name().to_owned(), connections.to_string()];
            row.extend(echo.cells());
            row.extend(plain.cells());
            row.extend(echo.added(plain).map(grouped));
            row.push(echo.ratio(plain));
            row.push(aim(guest.language, connections).to_owned());
            rows.push(row);
        }
    }
    subject.end().await;
    let head = vec![
        "block in",
        "connections",
        "echo /s",
        "p50 µs",
        "p99 µs",
        "me /s",
        "p50 µs",
        "p99 µs",
        "p50 +µs",
        "p99 +µs",
        "ratio",
        "aim",
    ];
    ("a call of echo against GET /api/v1/me".to_owned(), Table { head, rows })
}

fn aim(language: Language, connections: usize) -> &'static str {
    match (language, connections) {
        (Language::Rust, 1) => "p50 +60 µs",
        (Language::Rust, _) => "15,000 /s",
        (Language::Js, 1) => "p50 +400 µs",
        _ => "",
    }
}
