//! The workloads, each on both sides in turn, and the table that they make.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::load::{MakeRequest, Measured, exchange, request, run as run_load};
use crate::server::{Process, blockbase, floor};

pub(crate) struct Options {
    pub(crate) binary: PathBuf,
    pub(crate) block: PathBuf,
    pub(crate) rows: u32,
    pub(crate) seconds: u64,
    pub(crate) connections: usize,
    pub(crate) only: String,
}

/// One side: where it listens, how its paths look, the ids of its rows.
struct Side {
    address: String,
    token: Option<String>,
    items: &'static str,
    echo: &'static str,
    ids: Arc<Vec<String>>,
}

async fn call(side: &Side, method: &str, path: &str, body: Option<String>) -> Value {
    let mut stream = TcpStream::connect(&side.address).await.unwrap();
    let mut buffer = Vec::new();
    let bytes = request(method, path, side.token.as_deref(), body.as_deref());
    let (status, range) = exchange(&mut stream, &bytes, &mut buffer).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {}", String::from_utf8_lossy(&buffer));
    serde_json::from_slice(&buffer[range]).unwrap_or_default()
}

fn record(number: u32) -> String {
    format!(r#"{{"title":"a task with a title of usual length, number {number}","priority":{}}}"#, number % 1000)
}

/// Creates the rows over HTTP, many connections at once.
async fn fill(side: &mut Side, rows: u32) {
    const WRITERS: u32 = 128;
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (address, token, items) = (side.address.clone(), side.token.clone(), side.items);
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let mut buffer = Vec::new();
                let mut ids = Vec::new();
                for number in (writer..rows).step_by(WRITERS as usize) {
                    let bytes = request("POST", items, token.as_deref(), Some(&record(number)));
                    let (status, range) = exchange(&mut stream, &bytes, &mut buffer).await;
                    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&buffer));
                    let answer: Value = serde_json::from_slice(&buffer[range]).unwrap();
                    ids.push(answer["data"]["id"].as_str().unwrap().to_owned());
                }
                ids
            })
        })
        .collect();
    let mut ids = Vec::new();
    for task in tasks {
        ids.extend(task.await.unwrap());
    }
    side.ids = Arc::new(ids);
}

async fn prepare_blockbase(process: &Process, block: &Path) -> Side {
    let mut side = Side {
        address: process.address.clone(),
        token: None,
        items: "/api/v1/data/task",
        echo: "/api/v1/blocks/echo/actions/echo",
        ids: Arc::default(),
    };
    let account = json!({ "name": "bench", "email": "bench@example.com", "password": "correct horse" });
    let signed = call(&side, "POST", "/api/auth/sign-up/email", Some(account.to_string())).await;
    side.token = Some(signed["token"].as_str().unwrap().to_owned());
    let object = json!({ "name": "task", "fields": [
        { "name": "title", "type": "text", "required": true, "max": 200 },
        { "name": "done", "type": "boolean", "default": false },
        { "name": "priority", "type": "integer", "indexed": true, "min": 0 },
    ] });
    call(&side, "POST", "/api/v1/objects", Some(object.to_string())).await;
    let file = std::fs::read(block).expect("the packed echo block: blockbase block build examples/echo");
    let mut upload = format!(
        "POST /api/v1/blocks HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\ncontent-type: application/wasm\r\ncontent-length: {}\r\n\r\n",
        side.token.as_deref().unwrap(),
        file.len()
    )
    .into_bytes();
    upload.extend_from_slice(&file);
    let mut stream = TcpStream::connect(&side.address).await.unwrap();
    let mut buffer = Vec::new();
    let (status, _) = exchange(&mut stream, &upload, &mut buffer).await;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&buffer));
    side
}

type Workload = (&'static str, fn(&Side) -> MakeRequest, usize);

/// Cheap numbers that differ from request to request.
fn pick(connection: usize, number: usize, of: usize) -> usize {
    (connection.wrapping_mul(2_654_435_761) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) % of
}

fn get_by_id(side: &Side) -> MakeRequest {
    let (ids, token, items) = (side.ids.clone(), side.token.clone(), side.items);
    Arc::new(move |connection, number| {
        let id = &ids[pick(connection, number, ids.len())];
        request("GET", &format!("{items}/{id}"), token.as_deref(), None)
    })
}

fn list(side: &Side) -> MakeRequest {
    let bytes = request("GET", side.items, side.token.as_deref(), None);
    Arc::new(move |_, _| bytes.clone())
}

fn list_filtered(side: &Side) -> MakeRequest {
    let (token, items) = (side.token.clone(), side.items);
    Arc::new(move |connection, number| {
        request("GET", &format!("{items}?priority={}", pick(connection, number, 1000)), token.as_deref(), None)
    })
}

fn create(side: &Side) -> MakeRequest {
    let (token, items) = (side.token.clone(), side.items);
    Arc::new(move |_, number| request("POST", items, token.as_deref(), Some(&record(number as u32))))
}

fn patch(side: &Side) -> MakeRequest {
    let (ids, token, items) = (side.ids.clone(), side.token.clone(), side.items);
    Arc::new(move |connection, number| {
        let id = &ids[pick(connection, number, ids.len())];
        let body = if number % 2 == 0 { r#"{"done":true}"# } else { r#"{"done":false}"# };
        request("PATCH", &format!("{items}/{id}"), token.as_deref(), Some(body))
    })
}

fn echo(side: &Side) -> MakeRequest {
    let bytes = request("POST", side.echo, side.token.as_deref(), Some(r#"{"text":"hello","number":12345,"list":[1,2,3]}"#));
    Arc::new(move |_, _| bytes.clone())
}

fn print_row(name: &str, ours: &Measured, floor: &Measured) {
    println!(
        "{name:<24} {:>9.0} {:>7} {:>7}   {:>9.0} {:>7} {:>7}   {:>5.2}",
        ours.requests_a_second,
        ours.p50_us,
        ours.p99_us,
        floor.requests_a_second,
        floor.p50_us,
        floor.p99_us,
        ours.requests_a_second / floor.requests_a_second
    );
}

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure(options));
}

async fn measure(options: &Options) {
    let (ours_directory, floor_directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ours_process = blockbase(&options.binary, ours_directory.path());
    println!("cold start to ready: {} ms", ours_process.started_in.as_millis());
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("idle memory: {:.1} MiB", ours_process.memory_mib().0);
    let floor_process = floor(floor_directory.path());

    let mut ours = prepare_blockbase(&ours_process, &options.block).await;
    let mut base =
        Side { address: floor_process.address.clone(), token: None, items: "/items", echo: "/echo", ids: Arc::default() };
    fill(&mut ours, options.rows).await;
    fill(&mut base, options.rows).await;

    let many = options.connections;
    let workloads: [Workload; 7] = [
        ("get by id", get_by_id, many),
        ("list 25 newest first", list, many),
        ("list filtered", list_filtered, many),
        ("create with event", create, many),
        ("patch", patch, many),
        ("block echo", echo, many),
        ("block echo, 1 conn.", echo, 1),
    ];
    println!("\n{} rows, {} connections; requests a second, p50 and p99 in µs", options.rows, many);
    println!("{:<24} {:>9} {:>7} {:>7}   {:>9} {:>7} {:>7}   {:>5}", "", "ours", "p50", "p99", "floor", "p50", "p99", "ratio");
    let half = Duration::from_millis(options.seconds * 500);
    for (name, make, connections) in workloads.into_iter().filter(|(name, ..)| name.contains(&options.only)) {
        // Each side twice and in turn, so that a drift of the machine meets both.
        let mut results = Vec::new();
        for _ in 0..2 {
            let one = run_load(&ours.address, connections, half, make(&ours)).await;
            let other = run_load(&base.address, connections, half, make(&base)).await;
            results.push((one, other));
        }
        let mean = |side: fn(&(Measured, Measured)) -> &Measured| Measured {
            requests_a_second: results.iter().map(|pair| side(pair).requests_a_second).sum::<f64>() / 2.0,
            p50_us: results.iter().map(|pair| side(pair).p50_us).sum::<u64>() / 2,
            p99_us: results.iter().map(|pair| side(pair).p99_us).max().unwrap_or(0),
        };
        let (one, other) = (mean(|pair| &pair.0), mean(|pair| &pair.1));
        print_row(name, &one, &other);
        if connections == 1 {
            println!("{:<24} {:>9} µs added by a block call at one connection", "", one.p50_us as i64 - other.p50_us as i64);
        }
    }
    println!("\npeak memory: ours {:.1} MiB, floor {:.1} MiB", ours_process.memory_mib().1, floor_process.memory_mib().1);
}
