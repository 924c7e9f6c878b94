//! The cost of conditions on related rows. It compares this server with SQL that is written by hand for each condition, on the
//! same database.
//!
//! The server creates the rows. Then the server and a small server with the fixed statements ([`floor`]) take short turns on that
//! database, in alternating order. Before that, an earlier build of the server can be measured on the same rows.

mod cases;
pub(crate) mod floor;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::report::Table;
use crate::run::{Engine, REST};
use crate::server::{Process, blockbase};
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::always;
use cases::Case;

/// The number of records in one bulk request.
const BULK: usize = 1000;
const LABELS: usize = 1000;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// The binary of an earlier build, to be measured on the same rows
    #[arg(long)]
    before: Option<PathBuf>,
    /// Tasks; there are a tenth as many projects
    #[arg(long, default_value_t = 100_000)]
    rows: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Connections
    #[arg(long, default_value_t = 2)]
    connections: usize,
    /// Only conditions whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// The ways in which the tasks are distributed over the projects.
const SHAPES: [&str; 2] = ["uniform", "skewed"];

/// The project of a task. It is the same in each run. If the distribution is skewed, three tasks in ten have no project, and nine
/// in ten of the others belong to one project in a hundred.
fn project_of(task: usize, projects: usize, shape: &str) -> Option<usize> {
    let mixed = task.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    match (shape == SHAPES[0], mixed % 10, mixed / 10 % 10) {
        (true, _, _) => Some(mixed % projects),
        (false, ..3, _) => None,
        (false, _, ..9) => Some(mixed / 100 % (projects / 100).max(1) * 100),
        (false, _, _) => Some(mixed / 100 % projects),
    }
}

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        for shape in SHAPES {
            let table = runtime.block_on(measure(options, cluster.as_ref(), shape));
            options.shared.print(*engine, shape, &table);
        }
    }
}

async fn measure(options: &Options, cluster: Option<&Cluster>, shape: &str) -> Table {
    let directory = tempfile::tempdir().unwrap();
    let url = match cluster {
        Some(cluster) => Some(cluster.new_database(shape).await),
        None => None,
    };
    let start = |binary: &Path| blockbase(binary, directory.path(), url.as_deref(), &[]);
    let binaries: Vec<&PathBuf> = options.before.iter().chain([&options.shared.binary]).collect();
    let process = start(binaries[0]);
    let mut side = Side::floor(&process.address);
    let links = define(&mut side).await;
    fill(&side, options.rows, shape).await;
    if let Some(cluster) = cluster {
        cluster.settle(shape).await;
    }
    process.stop();

    let file = directory.path().join("svc-data/svc.db");
    let cases = cases::all();
    let chosen = || cases.iter().enumerate().filter(|(_, case)| case.name.contains(&options.only));
    let contests = || chosen().flat_map(|(number, case)| [false, true].map(|counts| (number, case, counts)));
    let title = |case: &Case, counts| format!("{}{}", case.name, if counts { ", total" } else { "" });
    let mut rows: Vec<Vec<String>> = contests().map(|(_, case, counts)| vec![title(case, counts)]).collect();
    for binary in binaries {
        let process = start(binary);
        side.address.clone_from(&process.address);
        let floor = start_floor(url.as_deref().unwrap_or(file.to_str().unwrap()), &links);
        let base = Side::floor(&floor.address);
        tokio::time::sleep(REST).await;
        for ((number, case, counts), row) in contests().zip(&mut rows) {
            let (path, floor_path) = (case.path(counts), format!("/{number}/{counts}"));
            agree(&side, &path, &base, &floor_path).await;
            let mut contenders = [(&side, &path), (&base, &floor_path)]
                .map(|(side, path)| Contender::new(&side.address, always(side, "GET", path, None)));
            take(&mut contenders, options.connections, options.seconds).await;
            row.extend(contenders.iter().map(|contender| contender.mean().p50_us.to_string()));
            row.push(contenders[0].ratio(&contenders[1]));
            eprintln!("{row:?}");
        }
        process.stop();
    }
    if let Some(cluster) = cluster {
        cluster.drop_database(shape).await;
    }
    let mut head = vec!["condition"];
    if options.before.is_some() {
        head.extend(["before p50 µs", "floor", "ratio"]);
    }
    head.extend(["p50 µs", "floor", "ratio"]);
    Table { head, rows }
}

fn start_floor(database: &str, links: &str) -> Process {
    Process::start(Command::new(std::env::current_exe().unwrap()).arg("conditions-floor").arg(database).arg(links))
}

/// Checks that both sides find the same records, before they are measured.
async fn agree(side: &Side, path: &str, base: &Side, floor_path: &str) {
    let get = |side: &Side, path: &str| crate::load::request("GET", path, side.token.as_deref(), None);
    let (found, expected) = (side.send(&get(side, path)).await, base.send(&get(base, floor_path)).await);
    assert_eq!((&found["data"], &found["pagination"]["totalCount"]), (&expected["data"], &expected["total"]), "{path}");
}

/// Makes an account and the objects. Returns the table of the links.
async fn define(side: &mut Side) -> String {
    let account = json!({ "name": "bench", "email": "bench@example.com", "password": "correct horse" });
    side.token = side.post("/api/auth/sign-up/email", &account).await["token"].as_str().map(str::to_owned);
    // The kind is required, because the index of a field that can be null begins with a test for null on SQLite. The handwritten SQL
    // would have to repeat this test to use the index.
    for object in ["task", "project", "person", "label"] {
        let fields = json!([
            { "name": "title", "type": "text" },
            { "name": "code", "type": "text", "isUnique": true },
            { "name": "kind", "type": "integer", "indexed": true, "required": true },
            { "name": "state", "type": "text" },
        ]);
        side.post("/api/v1/objects", &json!({ "name": object, "fields": fields })).await;
    }
    let mut links = String::new();
    for (name, kind, target) in
        [("project", "many_to_one", "project"), ("owner", "many_to_one", "person"), ("tags", "many_to_many", "label")]
    {
        let relationship = json!({ "name": name, "kind": kind, "source": "task", "target": target });
        let made = side.post("/api/v1/relationships", &relationship).await;
        links = format!("svc_link_{}", made["data"]["id"]);
    }
    links
}

async fn fill(side: &Side, rows: usize, shape: &str) {
    let (projects, people) = (rows / 10, rows / 100);
    let named = |object: &'static str| {
        move |number: usize| {
            let state = if number.is_multiple_of(2) { "open" } else { "closed" };
            json!({ "title": format!("{object} {number}"), "code": format!("{object}{number}"), "kind": number % 100, "state": state })
        }
    };
    let projects = make(side, "project", projects, named("project")).await;
    let people = make(side, "person", people, named("person")).await;
    let labels = make(side, "label", LABELS, named("label")).await;
    let tasks = make(side, "task", rows, |number| {
        let project = project_of(number, projects.len(), shape).map(|project| &projects[project]);
        let state = if number % 5000 == 7 { "rare" } else { ["open", "closed"][number % 2] };
        json!({
            "title": format!("a task with a title of usual length, number {number}"), "code": format!("task{number}"),
            "kind": number % 1000, "state": state, "project_id": project, "owner_id": people[number * 7 % people.len()],
        })
    })
    .await;
    for (label, id) in labels.iter().enumerate() {
        // Each task has two links.
        let firsts = [label * 31 % LABELS, label * 37 % LABELS].into_iter();
        let linked: Vec<&String> = firsts.flat_map(|first| tasks.iter().skip(first).step_by(LABELS)).collect();
        for chunk in linked.chunks(BULK / 2) {
            side.post(&format!("/api/v1/data/label/{id}/links/tags"), &json!({ "ids": chunk })).await;
        }
    }
}

async fn make(side: &Side, object: &str, rows: usize, record: impl Fn(usize) -> Value) -> Arc<Vec<String>> {
    let mut ids = Vec::with_capacity(rows);
    for first in (0..rows).step_by(BULK) {
        let data: Vec<Value> = (first..rows.min(first + BULK)).map(&record).collect();
        let made = side.post(&format!("/api/v1/data/{object}/bulk"), &json!({ "data": data })).await;
        ids.extend(serde_json::from_value::<Vec<String>>(made["ids"].clone()).unwrap());
    }
    Arc::new(ids)
}
