//! The cost that a block's call adds. It compares the echo of each language with a handler of the same server, with the same credential.

use super::guests::{GUEST_HEAD, Guest, Guests, Language};
use super::{ECHOED, Options, action_path, caller, example_right};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::always;

/// A handler of the server itself.
const PLAIN: &str = "/api/v1/me";

/// A server with the echo of each language, with new and with reused instances.
pub(super) struct Echoes<'c> {
    pub(super) subject: Subject<'c>,
    pub(super) guests: Vec<Guest>,
    caller: Side,
}

impl<'c> Echoes<'c> {
    /// `part` names the measurement.
    pub(super) async fn start(
        options: &Options,
        guests: &Guests,
        cluster: Option<&'c Cluster>,
        part: &'static str,
    ) -> Echoes<'c> {
        let subject = Subject::start(&options.shared.binary, cluster, part, &[]).await;
        // The caller's right on the example's resource needs the example.
        if !guests.echoes().any(|guest| guest.name == guests.example.name) {
            subject.side.install(&guests.example.file).await;
        }
        let echoes = guests.new_and_reused(guests.echoes());
        for guest in &echoes {
            eprintln!("installing {}", guest.name);
            subject.side.install(&guest.file).await;
        }
        let caller = caller(&subject.side, &[example_right()]).await;
        tokio::time::sleep(REST).await;
        Echoes { subject, guests: echoes, caller }
    }

    /// The plain handler, and then the echo of each guest.
    pub(super) fn contenders(&self) -> Vec<Contender> {
        let side = &self.caller;
        let mut contenders = vec![Contender::new(&side.address, always(side, "GET", PLAIN, None))];
        for guest in &self.guests {
            let path = action_path(&guest.name, "echo");
            contenders.push(Contender::new(&side.address, always(side, "POST", &path, Some(ECHOED))));
        }
        contenders
    }
}

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let echoes = Echoes::start(options, guests, cluster, "added").await;
    let mut rows = Vec::new();
    for connections in [1, options.connections] {
        let mut contenders = echoes.contenders();
        eprintln!("added, {connections} connections");
        take(&mut contenders, connections, options.seconds).await;
        let (plain, measured) = contenders.split_first().unwrap();
        for (guest, echo) in echoes.guests.iter().zip(measured) {
            let mut row = guest.cells().to_vec();
            row.push(connections.to_string());
            row.extend(echo.cells());
            row.extend(plain.cells());
            row.extend(echo.added(plain).map(grouped));
            row.push(echo.ratio(plain));
            row.push(aim(guest.language, connections).to_owned());
            rows.push(row);
        }
    }
    echoes.subject.end().await;
    let columns =
        ["connections", "echo /s", "p50 µs", "p99 µs", "me /s", "p50 µs", "p99 µs", "p50 +µs", "p99 +µs", "ratio", "aim"];
    let head = [GUEST_HEAD.as_slice(), &columns].concat();
    ("a call of echo against GET /api/v1/me".to_owned(), Table { head, rows })
}

/// At one connection, the most that a call may add to the p50. At several, the least ratio.
fn aim(language: Language, connections: usize) -> &'static str {
    match (language, connections) {
        (Language::Rust | Language::C, 1) => "+20 µs",
        (Language::Js, 1) => "+120 µs",
        (Language::Go, 1) => "+250 µs",
        (Language::Python, 1) => "+400 µs",
        (Language::Rust, _) => "0.60",
        (Language::Js, _) => "0.25",
        (Language::Go, _) => "0.12",
        (Language::Python, _) => "0.08",
        (Language::C, _) => "",
    }
}
