//! The calls per second of an action that reads a record and then changes it, compared with the same two requests by REST.

use std::sync::Arc;

use super::Options;
use super::beside_rest::{BesideRest, take_turns};
use super::guests::{GUEST_HEAD, Guest, Guests};
use crate::cluster::Cluster;
use crate::load::{MakeRequest, request};
use crate::report::{Table, grouped};
use crate::side::Side;
use crate::turns::Contender;
use crate::workloads::pick;

/// The number of requests by REST that do what one call does.
const REQUESTS: f64 = 2.0;
const AIM: &str = "1.50";

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let BesideRest { rest, calls } = take_turns(options, guests, cluster, "update", "increase", get_and_patch).await;
    let pairs = grouped(rest.mean().a_second / REQUESTS);
    let row = |(guest, call): &(Guest, Contender)| {
        let mut row = guest.cells().to_vec();
        row.extend(call.cells());
        row.push(pairs.clone());
        row.push(format!("{:.2}", call.beside(&rest, |ours, theirs| ours.a_second * REQUESTS / theirs.a_second)));
        row.push(AIM.to_owned());
        row
    };
    let rows = calls.iter().map(row).collect();
    let head = [GUEST_HEAD.as_slice(), &["calls /s", "p50 µs", "p99 µs", "GET and PATCH, pairs /s", "ratio", "aim"]].concat();
    let count = grouped(f64::from(options.rows));
    let title = format!(
        "data.get and data.update in a block against GET and PATCH, {count} records, {} connections",
        options.connections
    );
    (title, Table { head, rows })
}

/// In turn, a request that reads a record, and one that changes it as `increase` does.
fn get_and_patch(side: &Side) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number / 2, side.ids.len())];
        let path = format!("{}/{id}", side.items);
        match number.is_multiple_of(2) {
            true => request("GET", &path, side.token.as_deref(), None),
            false => request("PATCH", &path, side.token.as_deref(), Some(r#"{"priority":{"$inc":1}}"#)),
        }
    })
}
