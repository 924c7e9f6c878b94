//! The calls per second of an action that reads one record, compared with reads of the record by REST.

use super::Options;
use super::beside_rest::{BesideRest, take_turns};
use super::guests::{GUEST_HEAD, Guest, Guests};
use crate::cluster::Cluster;
use crate::report::{Table, grouped};
use crate::turns::Contender;
use crate::workloads::get_by_id;

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let BesideRest { rest, calls } = take_turns(options, guests, cluster, "data", "get", get_by_id).await;
    let row = |(guest, get): &(Guest, Contender)| {
        let mut row = guest.cells().to_vec();
        row.extend(get.cells());
        row.extend(rest.cells());
        row.push(get.ratio(&rest));
        row
    };
    let rows = calls.iter().map(row).collect();
    let columns = ["calls /s", "p50 µs", "p99 µs", "REST /s", "p50 µs", "p99 µs", "ratio"];
    let head = [GUEST_HEAD.as_slice(), &columns].concat();
    let count = grouped(f64::from(options.rows));
    (format!("data.get in a block against GET by id, {count} records, {} connections", options.connections), Table { head, rows })
}
