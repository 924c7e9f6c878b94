//! SpacetimeDB's keynote workload: transfers of money between two of many accounts. Each is an action in Rust that changes both
//! accounts by one `data.batch`: durable, with an event for each account.
//!
//! The parts of its time are contenders too: a plain handler, a call that only echoes, the same batch without a block, a batch of
//! one change, and the batch on a server without events. At the end, the accounts must have as much money as at the beginning.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::guests::{Guest, Guests, Language};
use super::{ECHOED, Options, action_path, caller};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::fill::BULK_RECORDS;
use crate::load::{MakeRequest, request};
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::{always, pick};

/// The money of each account at the beginning.
const BALANCE: u32 = 1_000_000;
/// The number of accounts that most transfers are between, if they are not spread evenly.
const HOT_ACCOUNTS: usize = 20;
const AIM: &str = "15,000 /s";

/// The accounts that transfers are between.
#[derive(Clone, Copy)]
enum Spread {
    /// Each account as often as any other
    Uniform,
    /// In four of five transfers, two of the hot accounts
    Hot,
}

impl Spread {
    fn name(self) -> &'static str {
        match self {
            Spread::Uniform => "uniform",
            Spread::Hot => "80 % on 20",
        }
    }

    /// The indexes of the two accounts of a transfer, which differ. `count` is the number of accounts.
    fn pair(self, connection: usize, number: usize, count: usize) -> (usize, usize) {
        let of = match self {
            Spread::Hot if !number.is_multiple_of(5) => HOT_ACCOUNTS,
            Spread::Uniform | Spread::Hot => count,
        };
        let from = pick(connection, 2 * number, of);
        let to = pick(connection, 2 * number + 1, of);
        if from == to { (from, (to + 1) % of) } else { (from, to) }
    }
}

/// A server with accounts, and a caller who may transfer their money.
struct Bank<'c> {
    subject: Subject<'c>,
    caller: Side,
    ids: Arc<Vec<Uuid>>,
    money: i64,
}

impl<'c> Bank<'c> {
    /// `blocks` are installed too.
    async fn open(
        options: &Options,
        cluster: Option<&'c Cluster>,
        name: &'static str,
        environment: &[(&'static str, &'static str)],
        blocks: &[&Guest],
    ) -> Bank<'c> {
        let subject = Subject::start(&options.shared.binary, cluster, name, environment).await;
        let fields = json!([{ "name": "balance", "type": "integer", "required": true }]);
        subject.side.post("/api/v1/objects", &json!({ "name": "account", "fields": fields })).await;
        let ids = open_accounts(&subject.side, options.accounts as usize).await;
        for block in blocks {
            subject.side.install(&block.file).await;
        }
        subject.settle().await;
        let caller = caller(&subject.side, &[right()]).await;
        let money = total(&caller).await;
        Bank { subject, caller, ids, money }
    }

    /// Batches that each change accounts. `body` gets the ids of the two accounts.
    fn batches(&self, spread: Spread, body: fn(Uuid, Uuid) -> String) -> MakeRequest {
        transfers(&self.caller, &self.ids, spread, "/api/v1/batch".to_owned(), body)
    }

    async fn close(self) {
        assert_eq!(total(&self.caller).await, self.money, "the money of all accounts");
        self.subject.end().await;
    }
}

/// The right that a transfer needs.
fn right() -> Value {
    json!({ "resource": "account", "actions": ["read", "update"] })
}

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let count = grouped(f64::from(options.accounts));
    let title = format!("transfers between two of {count} accounts, {} connections", options.clients);
    let head = vec!["what", "accounts", "/s", "p50 µs", "p99 µs", "µs each", "aim"];
    let Some(guest) = guests.all.iter().find(|guest| guest.language == Language::Rust) else {
        return (title, Table { head, rows: Vec::new() });
    };
    let permit = |manifest: &mut Value| manifest["permissions"]["data"].as_array_mut().unwrap().push(right());
    let new = guests.packed_as(guest, "transfers", permit);
    let reused = guests.reused(&new);
    let bank = Bank::open(options, cluster, "transfers", &[], &[&new, &reused]).await;
    let silent = Bank::open(options, cluster, "silent_transfers", &[("SVC_EVENTS_ENABLED", "false")], &[]).await;
    tokio::time::sleep(REST).await;

    let side = &bank.caller;
    let echo = |block: &str| always(side, "POST", &action_path(block, "echo"), Some(ECHOED));
    let mut rows = measured(
        options,
        "",
        vec![
            ("GET /api/v1/me", "", side, always(side, "GET", "/api/v1/me", None)),
            ("a call that echoes, new instances", "", side, echo(&new.name)),
            ("a call that echoes, reused instances", "", side, echo(&reused.name)),
        ],
    )
    .await;
    for spread in [Spread::Uniform, Spread::Hot] {
        let call = |block: &str| transfers(side, &bank.ids, spread, action_path(block, "transfer"), input_of);
        let contenders = vec![
            ("a batch of one change", "", side, bank.batches(spread, change_of)),
            ("the batch without a block", "", side, bank.batches(spread, batch_of)),
            ("the batch without a block and without events", "", &silent.caller, silent.batches(spread, batch_of)),
            ("a transfer, new instances", AIM, side, call(&new.name)),
            ("a transfer, reused instances", AIM, side, call(&reused.name)),
        ];
        rows.extend(measured(options, spread.name(), contenders).await);
    }
    bank.close().await;
    silent.close().await;
    (title, Table { head, rows })
}

/// A name, an aim, a server, and the requests to it.
type Named<'a> = (&'a str, &'a str, &'a Side, MakeRequest);

/// Takes turns, and returns a row for each contender.
async fn measured(options: &Options, accounts: &str, named: Vec<Named<'_>>) -> Vec<Vec<String>> {
    eprintln!("transfers {accounts}, {} connections", options.clients);
    let mut contenders: Vec<_> = named.iter().map(|(_, _, side, make)| Contender::new(&side.address, make.clone())).collect();
    take(&mut contenders, options.clients, options.seconds).await;
    let row = |((name, aim, ..), contender): (&Named<'_>, &Contender)| {
        let mut row = vec![(*name).to_owned(), accounts.to_owned()];
        row.extend(contender.cells());
        // The server is busy all the time, so the rates show the cost of a request.
        row.push(format!("{:.1}", 1e6 / contender.mean().a_second));
        row.push((*aim).to_owned());
        row
    };
    named.iter().zip(&contenders).map(row).collect()
}

/// Creates the accounts, and returns their ids.
async fn open_accounts(side: &Side, count: usize) -> Arc<Vec<Uuid>> {
    let mut ids: Vec<Uuid> = Vec::with_capacity(count);
    while ids.len() < count {
        let accounts = vec![json!({ "balance": BALANCE }); (count - ids.len()).min(BULK_RECORDS as usize)];
        let made = side.post("/api/v1/data/account/bulk", &json!({ "data": accounts })).await;
        ids.extend(serde_json::from_value::<Vec<Uuid>>(made["ids"].clone()).unwrap());
    }
    Arc::new(ids)
}

/// The money of all accounts.
async fn total(side: &Side) -> i64 {
    let path = "/api/v1/data/account/aggregate?fn=sum&field=balance";
    let sum = side.send(&request("GET", path, side.token.as_deref(), None)).await;
    sum["data"]["value"].as_i64().unwrap()
}

/// Requests that each transfer something. `body` gets the ids of the two accounts.
fn transfers(side: &Side, ids: &Arc<Vec<Uuid>>, spread: Spread, path: String, body: fn(Uuid, Uuid) -> String) -> MakeRequest {
    let (ids, token) = (Arc::clone(ids), side.token.clone());
    Arc::new(move |connection, number| {
        let (from, to) = spread.pair(connection, number, ids.len());
        request("POST", &path, token.as_deref(), Some(&body(ids[from], ids[to])))
    })
}

/// The input of the action.
fn input_of(from: Uuid, to: Uuid) -> String {
    format!(r#"{{"from":"{from}","to":"{to}","amount":1}}"#)
}

/// An operation of a batch that changes an account.
fn operation(id: Uuid, operator: &str, amount: u32) -> String {
    format!(r#"{{"op":"update","object":"account","id":"{id}","values":{{"balance":{{"{operator}":{amount}}}}}}}"#)
}

/// One of the two changes. Its amount is 0, so that no money is made.
fn change_of(from: Uuid, _: Uuid) -> String {
    format!(r#"{{"operations":[{}]}}"#, operation(from, "$dec", 0))
}

/// What the action does, as a batch. The lower id comes first there too.
fn batch_of(from: Uuid, to: Uuid) -> String {
    let (first, second) = match from < to {
        true => (operation(from, "$dec", 1), operation(to, "$inc", 1)),
        false => (operation(to, "$inc", 1), operation(from, "$dec", 1)),
    };
    format!(r#"{{"operations":[{first},{second}]}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_transfers_are_between_hot_accounts_if_asked() {
        for (spread, least, most) in [(Spread::Uniform, 0, 50), (Spread::Hot, 7900, 8100)] {
            let pairs: Vec<_> = (0..10_000).map(|number| spread.pair(number % 64, number / 64, 100_000)).collect();
            assert!(pairs.iter().all(|(from, to)| from != to && (*from).max(*to) < 100_000));
            let hot = pairs.iter().filter(|(from, to)| (*from).max(*to) < HOT_ACCOUNTS).count();
            assert!((least..=most).contains(&hot), "{}: {hot}", spread.name());
        }
    }

    #[test]
    fn a_change_alone_makes_no_money() {
        let batch: Value = serde_json::from_str(&change_of(Uuid::from_u128(1), Uuid::from_u128(2))).unwrap();
        let change =
            json!({ "op": "update", "object": "account", "id": Uuid::from_u128(1), "values": { "balance": { "$dec": 0 } } });
        assert_eq!(batch, json!({ "operations": [change] }));
    }

    #[test]
    fn a_batch_changes_the_lower_id_first() {
        let (low, high) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for (from, to, operators) in [(low, high, ["$dec", "$inc"]), (high, low, ["$inc", "$dec"])] {
            let batch: Value = serde_json::from_str(&batch_of(from, to)).unwrap();
            for (place, (id, operator)) in [low, high].into_iter().zip(operators).enumerate() {
                let operation = &batch["operations"][place];
                assert_eq!((&operation["id"], &operation["values"]), (&json!(id), &json!({ "balance": { operator: 1 } })));
            }
        }
    }
}
