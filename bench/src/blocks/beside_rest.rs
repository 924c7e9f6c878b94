//! An action that reads or changes one record, in every guest, beside requests by REST that do the same.

use std::sync::Arc;

use super::guests::{Guest, Guests};
use super::{Options, action_path, caller};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::fill;
use crate::load::{MakeRequest, request};
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::pick;

/// The turns of the requests by REST, and those of the action in each guest.
pub(super) struct BesideRest {
    pub(super) rest: Contender,
    pub(super) calls: Vec<(Guest, Contender)>,
}

/// Fills a server with records, and installs every guest, with new and with reused instances. Then the calls of `action` and the
/// requests by REST take turns. `part` names the measurement.
pub(super) async fn take_turns(
    options: &Options,
    guests: &Guests,
    cluster: Option<&Cluster>,
    part: &'static str,
    action: &str,
    by_rest: impl FnOnce(&Side) -> MakeRequest,
) -> BesideRest {
    let mut subject = Subject::start(&options.shared.binary, cluster, part, &[]).await;
    fill::fill(&mut subject.side, options.rows).await;
    let all = guests.new_and_reused(&guests.all);
    for guest in &all {
        eprintln!("installing {}", guest.name);
        subject.side.install(&guest.file).await;
    }
    subject.settle().await;
    let side = caller(&subject.side, &[]).await;
    tokio::time::sleep(REST).await;
    let mut contenders = vec![Contender::new(&side.address, by_rest(&side))];
    contenders.extend(all.iter().map(|guest| Contender::new(&side.address, call_with_id(&side, &guest.name, action))));
    eprintln!("{part}, {} connections", options.connections);
    take(&mut contenders, options.connections, options.seconds).await;
    subject.end().await;
    let rest = contenders.remove(0);
    BesideRest { rest, calls: all.into_iter().zip(contenders).collect() }
}

/// Calls of an action that each get the id of a record.
fn call_with_id(side: &Side, block: &str, action: &str) -> MakeRequest {
    let (side, path) = (side.clone(), action_path(block, action));
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number, side.ids.len())];
        request("POST", &path, side.token.as_deref(), Some(&format!(r#"{{"id":"{id}"}}"#)))
    })
}
