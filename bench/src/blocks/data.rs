//! The calls per second of an action that reads one record, compared with reads of the record by REST.

use std::sync::Arc;

use super::guests::{GUEST_HEAD, Guest, Guests};
use super::{Options, action_path, caller};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::fill;
use crate::load::{MakeRequest, request};
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::{get_by_id, pick};

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let mut subject = Subject::start(&options.shared.binary, cluster, "data", &[]).await;
    fill::fill(&mut subject.side, options.rows).await;
    let all = guests.new_and_reused(&guests.all);
    for guest in &all {
        eprintln!("installing {}", guest.name);
        subject.side.install(&guest.file).await;
    }
    subject.settle().await;
    let side = caller(&subject.side, &[]).await;
    tokio::time::sleep(REST).await;
    let mut contenders = vec![Contender::new(&side.address, get_by_id(&side))];
    contenders.extend(all.iter().map(|guest| Contender::new(&side.address, get_in(&side, &guest.name))));
    eprintln!("data, {} connections", options.connections);
    take(&mut contenders, options.connections, options.seconds).await;
    let (rest, gets) = contenders.split_first().unwrap();
    let row = |(guest, get): (&Guest, &Contender)| {
        let mut row = guest.cells().to_vec();
        row.extend(get.cells());
        row.extend(rest.cells());
        row.push(get.ratio(rest));
        row
    };
    let rows = all.iter().zip(gets).map(row).collect();
    subject.end().await;
    let columns = ["calls /s", "p50 µs", "p99 µs", "REST /s", "p50 µs", "p99 µs", "ratio"];
    let head = [GUEST_HEAD.as_slice(), &columns].concat();
    let count = grouped(f64::from(options.rows));
    (format!("data.get in a block against GET by id, {count} records, {} connections", options.connections), Table { head, rows })
}

/// Calls that each read one record. REST reads the same records.
fn get_in(side: &Side, block: &str) -> MakeRequest {
    let (side, path) = (side.clone(), action_path(block, "get"));
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number, side.ids.len())];
        request("POST", &path, side.token.as_deref(), Some(&format!(r#"{{"id":"{id}"}}"#)))
    })
}
