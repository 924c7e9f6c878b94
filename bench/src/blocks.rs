//! The cost of blocks in each language: the time that a call adds to a plain handler, also after a pause, the parts of a call, a
//! block's reads and changes of records, transfers between accounts, the memory of waiting calls and of places between calls,
//! installs, many blocks that idle or are called in turn, and the effect of spinning blocks on others. Most parts that time calls
//! also measure each block with instances that are reused.
//!
//! The compared variants take short turns in one run, in alternating order, so that a drift of the machine affects all of them.

mod added;
mod beside_rest;
mod builds;
mod data;
mod guests;
mod hostile;
mod idle;
mod install;
mod many;
mod memory;
mod paused;
mod phases;
mod resident;
mod transfers;
mod update;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::report::Table;
use crate::run::Engine;
use crate::side::Side;
use guests::{EXAMPLE_RESOURCE, Guests, Language};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// A packed echo block, taken as it is; otherwise examples/echo is built
    #[arg(long)]
    block: Option<PathBuf>,
    /// A folder with packed blocks such as bench-c.wasm, taken as they are; the others of bench/guests are built
    #[arg(long)]
    guests: Option<PathBuf>,
    /// Languages, comma-separated; all whose tools are there by default, but only Rust in `many`, which installs 64 of each
    #[arg(long, value_enum, value_delimiter = ',')]
    languages: Vec<Language>,
    /// Seconds of each measurement; `paused` takes longer where its pauses are long
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Connections, where there is more than one
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Records that `data` and `update` read
    #[arg(long, default_value_t = 10_000)]
    rows: u32,
    /// Accounts of `transfers`
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(20..))]
    accounts: u32,
    /// Connections of `transfers`
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// The larger number of calls that wait while their memory is measured; one caller can run 42 of a block at a time
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(i64::from(memory::FEWER) + 1..=42))]
    calls: u16,
    /// Blocks that are installed and idle
    #[arg(long, default_value_t = 200)]
    blocks: usize,
    /// Calls that spin; one caller can run 42 of a block at a time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=42))]
    spins: u16,
    /// Only these parts, comma-separated
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// An echo against a plain handler
    Added,
    /// The parts of a call's time, from the server's metrics
    Phases,
    /// An echo after a pause against a plain handler after the same pause
    Paused,
    /// Reading a record in a block against reading it by REST
    Data,
    /// Reading and then changing a record in a block against the same two requests by REST
    Update,
    /// Transfers between two of many accounts
    Transfers,
    /// Memory of a call that waits
    Memory,
    /// An echo on servers that keep more and less memory between calls (`SVC_BLOCK_RESIDENT_KB`), and their memory
    Resident,
    /// Time of an install
    Install,
    /// Memory of many blocks that idle
    Idle,
    /// Calls that alternate between up to 64 blocks; only in Rust unless `--languages` names others, because 64 in Python take
    /// minutes to compile
    Many,
    /// Other requests beside calls that spin
    Hostile,
}

const PARTS: [Part; 12] = [
    Part::Added,
    Part::Phases,
    Part::Paused,
    Part::Data,
    Part::Update,
    Part::Transfers,
    Part::Memory,
    Part::Resident,
    Part::Install,
    Part::Idle,
    Part::Many,
    Part::Hostile,
];
/// The parts that touch records. Only these differ from one database to the other.
const PARTS_OF_RECORDS: [Part; 3] = [Part::Data, Part::Update, Part::Transfers];

/// The input of an echo.
const ECHOED: &str = r#"{"text":"hello","number":12345,"list":[1,2,3]}"#;

pub(crate) fn run(options: &Options) {
    let guests = Guests::ready(options);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for (place, engine) in options.shared.engine.each().iter().enumerate() {
        let parts: Vec<Part> = PARTS
            .into_iter()
            .filter(|part| options.only.is_empty() || options.only.contains(part))
            .filter(|part| place == 0 || PARTS_OF_RECORDS.contains(part))
            .collect();
        if parts.is_empty() {
            continue;
        }
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        for part in parts {
            let (title, table) = runtime.block_on(measure(part, options, &guests, cluster.as_ref()));
            options.shared.print(*engine, &title, &table);
        }
    }
}

/// The table of a part, with its title.
async fn measure(part: Part, options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    match part {
        Part::Added => added::measure(options, guests, cluster).await,
        Part::Phases => phases::measure(options, guests, cluster).await,
        Part::Paused => paused::measure(options, guests, cluster).await,
        Part::Data => data::measure(options, guests, cluster).await,
        Part::Update => update::measure(options, guests, cluster).await,
        Part::Transfers => transfers::measure(options, guests, cluster).await,
        Part::Memory => memory::measure(options, guests, cluster).await,
        Part::Resident => resident::measure(options, guests, cluster).await,
        Part::Install => install::measure(options, guests, cluster).await,
        Part::Idle => idle::measure(options, guests, cluster).await,
        Part::Many => many::measure(options, guests, cluster).await,
        Part::Hostile => hostile::measure(options, guests, cluster).await,
    }
}

/// The right that the echo example requires.
fn example_right() -> Value {
    json!({ "resource": EXAMPLE_RESOURCE, "actions": ["read"] })
}

/// The caller: an API key that may call blocks, and read and change tasks. It also has the rights `more`.
async fn caller(admin: &Side, more: &[Value]) -> Side {
    let mut permissions = vec![
        json!({ "resource": "blocks", "actions": ["update"] }),
        json!({ "resource": "task", "actions": ["read", "update"] }),
    ];
    permissions.extend_from_slice(more);
    admin.post("/api/v1/roles", &json!({ "name": "caller", "permissions": permissions })).await;
    let key = admin.post("/api/v1/api-keys", &json!({ "name": "caller", "roleId": "caller" })).await;
    Side { token: Some(key["key"].as_str().unwrap().to_owned()), ..admin.clone() }
}

fn action_path(block: &str, action: &str) -> String {
    format!("/api/v1/blocks/{block}/actions/{action}")
}
