//! A run. Each engine and row count is a round on new databases. In a round, each workload runs on both sides in turn.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::load::{Measured, run as run_load};
use crate::report::{self, Compared, Round, grouped};
use crate::server::{Process, blockbase, floor};
use crate::side::Side;
use crate::workloads::{ALL, Workload};
use crate::{Options, fill};

/// How long the sides idle after their rows were created.
pub(crate) const REST: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Sqlite => "SQLite",
            Engine::Postgres => "Postgres",
        }
    }
}

pub(crate) fn run(mut options: Options) {
    options.rows.sort_unstable();
    options.rows.dedup();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        let mut rounds = Vec::new();
        for rows in &options.rows {
            let workloads = selected(&options, *engine, *rows);
            if !workloads.is_empty() {
                rounds.push(runtime.block_on(round(&options, cluster.as_ref(), *rows, &workloads)));
            }
        }
        report::print(*engine, options.connections, &rounds, options.shared.markdown);
    }
}

fn selected(options: &Options, engine: Engine, rows: u32) -> Vec<&'static Workload> {
    let is_smallest = options.rows.first() == Some(&rows);
    ALL.iter()
        .filter(|workload| workload.name.contains(&options.only))
        .filter(|workload| rows >= workload.rows_min)
        .filter(|workload| !workload.is_block_call || (engine == Engine::Sqlite && is_smallest))
        .collect()
}

async fn round(options: &Options, cluster: Option<&Cluster>, rows: u32, workloads: &[&Workload]) -> Round {
    let (ours_directory, floor_directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let databases = match cluster {
        Some(cluster) => Some((cluster.new_database("ours").await, cluster.new_database("floor").await)),
        None => None,
    };
    let (ours_url, floor_url) = databases.as_ref().map(|(ours, floor)| (ours.as_str(), floor.as_str())).unzip();

    let ours_process = blockbase(&options.shared.binary, ours_directory.path(), ours_url, &[]);
    tokio::time::sleep(REST).await;
    let idle_mib = ours_process.memory_mib().0;
    let floor_process = floor(floor_directory.path(), floor_url);

    let block = workloads.iter().any(|workload| workload.is_block_call).then_some(options.block.as_path());
    let mut ours = Side::blockbase(&ours_process.address, block).await;
    let mut base = Side::floor(&floor_process.address);
    eprintln!("{} rows", grouped(f64::from(rows)));
    let ours_filled_in = fill::fill(&mut ours, rows).await;
    let floor_filled_in = fill::fill(&mut base, rows).await;
    if let Some(cluster) = cluster {
        // This brings the statistics and the visibility map to the state of an older table, on both sides.
        cluster.settle("ours").await;
        cluster.settle("floor").await;
    }
    tokio::time::sleep(REST).await;

    let mut compared = Vec::new();
    for workload in workloads {
        agree(workload, &ours, &base).await;
        let began = Instant::now();
        let one = compare(options, workload, &ours, &base).await;
        eprintln!("{:>4} s  {}", began.elapsed().as_secs(), report::line(&one));
        compared.push(one);
    }
    let round = Round {
        rows,
        started_in: ours_process.started_in,
        filled_in: (ours_filled_in, floor_filled_in),
        idle_mib,
        peaks_mib: (ours_process.memory_mib().1, floor_process.memory_mib().1),
        compared,
    };
    stop(ours_process, floor_process, cluster).await;
    round
}

/// Stops both sides before the next round.
async fn stop(ours: Process, floor: Process, cluster: Option<&Cluster>) {
    drop((ours, floor));
    if let Some(cluster) = cluster {
        cluster.drop_database("ours").await;
        cluster.drop_database("floor").await;
    }
}

/// Checks that both sides return the same data, before they are measured.
async fn agree(workload: &Workload, ours: &Side, base: &Side) {
    if workload.is_read {
        let found = ours.send(&(workload.make)(ours)(0, 0)).await;
        let expected = base.send(&(workload.make)(base)(0, 0)).await;
        assert_eq!(gist(&found), gist(&expected), "{}: {found} is not {expected}", workload.name);
    }
}

/// The parts of a response that must be the same on both sides: the number of records, the number of expanded ones, and their
/// sum.
fn gist(answer: &Value) -> (usize, usize, Option<i64>) {
    let data = &answer["data"];
    let records = data.as_array().map_or(&[][..], Vec::as_slice);
    let expanded = records.iter().filter(|record| record["project"]["name"].is_string()).count();
    (records.len(), expanded, data["value"].as_i64())
}

/// Measures each side twice and in turn, so that a drift of the machine affects both sides.
async fn compare(options: &Options, workload: &Workload, ours: &Side, base: &Side) -> Compared {
    let half = Duration::from_millis(options.seconds * 500);
    let connections = workload.connections.unwrap_or(options.connections);
    let (mut our_halves, mut floor_halves) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        our_halves.push(run_load(&ours.address, connections, half, (workload.make)(ours)).await);
        floor_halves.push(run_load(&base.address, connections, half, (workload.make)(base)).await);
    }
    Compared {
        name: workload.name,
        ours: Measured::mean(&our_halves, workload.records),
        floor: Measured::mean(&floor_halves, workload.records),
    }
}
