//! Resident memory of a server with many blocks that nobody calls.

use std::time::Duration;

use serde_json::json;

use super::guests::Guests;
use super::{Options, action_path};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::report::Table;

/// How long a server idles before it is measured.
const IDLE: Duration = Duration::from_secs(5);

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let mut subject = Subject::start(&options.shared.binary, cluster, "idle", &[]).await;
    let without = restarted(&mut subject).await;
    let names: Vec<String> = (0..options.blocks).map(|number| format!("echo-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        subject.side.install(&guests.example_as(name).file).await;
        if (number + 1).is_multiple_of(20) {
            eprintln!("idle, {} blocks installed", number + 1);
        }
    }
    let installed = restarted(&mut subject).await;
    for name in &names {
        subject.side.post(&action_path(name, "echo"), &json!({})).await;
    }
    tokio::time::sleep(IDLE).await;
    let called = resident(&subject);
    subject.end().await;
    let row = |what: &str, (resident, own): (f64, f64), aim: &str| {
        let [more, own_more] = [resident - without.0, own - without.1];
        let a_block = own_more * 1024.0 / options.blocks.max(1) as f64;
        let numbers = [resident, more, own, own_more, a_block].map(|number| format!("{number:.0}"));
        [vec![what.to_owned()], numbers.to_vec(), vec![aim.to_owned()]].concat()
    };
    let rows =
        vec![row("no blocks", without, ""), row("installed, restarted", installed, "100"), row("each called once", called, "")];
    let head = vec!["server", "resident MiB", "more", "its own MiB", "more", "KiB a block", "aim"];
    (format!("{} blocks that idle", options.blocks), Table { head, rows })
}

/// The memory of an idle server that has just started.
async fn restarted(subject: &mut Subject<'_>) -> (f64, f64) {
    subject.stop();
    subject.start_again();
    tokio::time::sleep(IDLE).await;
    resident(subject)
}

fn resident(subject: &Subject<'_>) -> (f64, f64) {
    (subject.memory_mib().0, subject.proportional_mib())
}
