//! The cost of groups, of pages by cursors, and of batches.
//!
//! Groups are compared with SQL that is written by hand for each of them, on the same database ([`floor`]). A late page by cursors is
//! compared with the first two pages, and a batch of creates with a bulk create of the same records. The sides take short turns in
//! alternating order.

pub(crate) mod floor;
mod groups;

use std::process::Command;

use serde_json::{Value, json};

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::report::Table;
use crate::run::{Engine, REST};
use crate::server::{Process, blockbase};
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::always;

/// The number of records in one bulk request, and of operations in one batch.
const BULK: usize = 1000;
const OBJECT: &str = "sale";
const PAGE_SIZE: usize = 25;
/// The number of the late page, if there are enough rows. Otherwise the late page is in the middle.
const LATE_PAGE: usize = 10_000;
/// The number of records of a page on the way to the late one.
const STEP: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// Records of the object
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Connections
    #[arg(long, default_value_t = 2)]
    connections: usize,
}

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        for (title, table) in runtime.block_on(measure(options, cluster.as_ref())) {
            options.shared.print(*engine, title, &table);
        }
    }
}

async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(&'static str, Table)> {
    let directory = tempfile::tempdir().unwrap();
    let url = match cluster {
        Some(cluster) => Some(cluster.new_database("lists").await),
        None => None,
    };
    let process = blockbase(&options.shared.binary, directory.path(), url.as_deref(), &[]);
    let mut side = Side::floor(&process.address);
    define(&mut side).await;
    for first in (0..options.rows).step_by(BULK) {
        let data: Vec<Value> = (first..options.rows.min(first + BULK)).map(sale).collect();
        side.post(&format!("/api/v1/data/{OBJECT}/bulk"), &json!({ "data": data })).await;
    }
    if let Some(cluster) = cluster {
        cluster.settle("lists").await;
    }
    let file = directory.path().join("svc-data/svc.db");
    let floor = Process::start(
        Command::new(std::env::current_exe().unwrap()).arg("lists-floor").arg(url.as_deref().unwrap_or(file.to_str().unwrap())),
    );
    tokio::time::sleep(REST).await;
    let tables = vec![
        ("groups", groups::measure(options, &side, &Side::floor(&floor.address)).await),
        ("pages by cursors", pages(options, &side).await),
        ("batches", batches(options, &side).await),
    ];
    process.stop();
    tables
}

async fn define(side: &mut Side) {
    let account = json!({ "name": "bench", "email": "bench@example.com", "password": "correct horse" });
    side.token = side.post("/api/auth/sign-up/email", &account).await["token"].as_str().map(str::to_owned);
    let fields = json!([
        { "name": "title", "type": "text" },
        { "name": "state", "type": "text" },
        { "name": "shop", "type": "integer", "indexed": true },
        { "name": "customer", "type": "integer" },
        { "name": "units", "type": "integer" },
        { "name": "at", "type": "datetime", "indexed": true },
    ]);
    side.post("/api/v1/objects", &json!({ "name": OBJECT, "fields": fields })).await;
}

/// A record. It is the same in each run.
fn sale(number: usize) -> Value {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let (month, day) = (mixed % 36, mixed / 36 % 28);
    let state = ["open", "paid", "sent", "returned"][mixed % 4];
    json!({
        "title": format!("a sale with a title of usual length, number {number}"),
        "state": state,
        "shop": mixed / 4 % 1000,
        "customer": mixed / 4000 % 100_000,
        "units": mixed % 17,
        "at": format!("{:04}-{:02}-{:02}T{:02}:00:00Z", 2024 + month / 12, month % 12 + 1, day + 1, mixed / 1008 % 24),
    })
}

/// A late page by cursors beside the first two, in several orders. The same page by its offset is beside it.
///
/// On the first page the server need not look whether there is a page before. So the second page is the one that does the same work
/// as a late one.
async fn pages(options: &Options, side: &Side) -> Table {
    let late = LATE_PAGE.min(options.rows / PAGE_SIZE / 2);
    let mut rows = Vec::new();
    for sort in ["", "at", "-shop"] {
        let path = |rest: &str| format!("/api/v1/data/{OBJECT}?sort={sort}&count=none&{rest}");
        let end_of = async |limit: usize, after: &str| {
            let page = path(&format!("select=id&limit={limit}&after={after}"));
            let page = side.send(&crate::load::request("GET", &page, side.token.as_deref(), None)).await;
            page["pagination"]["endCursor"].as_str().unwrap().to_owned()
        };
        let end_of_first = end_of(PAGE_SIZE, "").await;
        let mut cursor = String::new();
        for _ in 0..(late * PAGE_SIZE / STEP) {
            cursor = end_of(STEP, &cursor).await;
        }
        let paths = [
            path(&format!("limit={PAGE_SIZE}&after=")),
            path(&format!("limit={PAGE_SIZE}&after={end_of_first}")),
            path(&format!("limit={PAGE_SIZE}&after={cursor}")),
            path(&format!("limit={PAGE_SIZE}&offset={}", late * PAGE_SIZE)),
        ];
        let mut contenders = paths.map(|path| Contender::new(&side.address, always(side, "GET", &path, None)));
        take(&mut contenders, options.connections, options.seconds).await;
        let [first, second, late, offset] = &contenders;
        let name = if sort.is_empty() { "the default" } else { sort };
        let p50 = |contender: &Contender| contender.mean().p50_us.to_string();
        let row = vec![name.to_owned(), p50(first), p50(second), p50(late), late.ratio(first), late.ratio(second), p50(offset)];
        eprintln!("{row:?}");
        rows.push(row);
    }
    let head =
        vec!["order", "page 1, p50 µs", "page 2", "late page", "ratio to page 1", "ratio to page 2", "late page by its offset"];
    Table { head, rows }
}

/// A batch of creates beside a bulk create of the same records.
async fn batches(options: &Options, side: &Side) -> Table {
    let records: Vec<Value> = (0..BULK).map(sale).collect();
    let operations: Vec<Value> =
        records.iter().map(|values| json!({ "op": "create", "object": OBJECT, "values": values })).collect();
    let batch = json!({ "operations": operations }).to_string();
    let bulk = json!({ "data": records }).to_string();
    let mut contenders = [("/api/v1/batch".to_owned(), batch), (format!("/api/v1/data/{OBJECT}/bulk"), bulk)]
        .map(|(path, body)| Contender::new(&side.address, always(side, "POST", &path, Some(&body))));
    take(&mut contenders, options.connections, options.seconds).await;
    let [batch, bulk] = &contenders;
    let a_second = |contender: &Contender| crate::report::grouped(contender.mean().a_second * BULK as f64);
    let row = vec![crate::report::grouped(BULK as f64), a_second(batch), a_second(bulk), batch.ratio(bulk)];
    Table { head: vec!["records", "batch, records/s", "bulk create", "ratio"], rows: vec![row] }
}
