//! Files that SQLite makes for reads: for sorting, and the log.

use std::sync::atomic::{AtomicBool, Ordering};

use blockbase_tests::{Engine, Server, ServerBuilder, until};
use serde_json::{Value, json};

use super::memory;

/// The maximum memory that a sort may need, in kilobytes. The texts have 200 MB.
const GROWTH_MAX: i64 = 60_000;
/// If the log is larger than this, it is truncated.
const LOG_LARGE_BYTES: u64 = 64 * 1024 * 1024;

fn log_bytes(server: &Server) -> u64 {
    std::fs::metadata(server.directory().join("svc-data/svc.db-wal")).map_or(0, |log| log.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: memory, alone"]
async fn a_sort_of_long_texts_stays_out_of_memory() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "body", "type": "text" }])).await;
    for part in 0..40 {
        let records: Vec<Value> = (0..5)
            .map(|number| json!({ "body": format!("{:03}{}", (part * 5 + number) * 77 % 200, "x".repeat(1_000_000)) }))
            .collect();
        assert_eq!(admin.post("/api/v1/data/doc/bulk", json!({ "data": records })).await.status, 201);
    }
    let (before, is_over) = (memory(&server, "RssAnon"), AtomicBool::new(false));
    let list = async {
        let answer = admin.get("/api/v1/data/doc?sort=body&limit=1&offset=195&select=id").await;
        is_over.store(true, Ordering::Relaxed);
        answer
    };
    let watched = async {
        let mut most = before;
        while !is_over.load(Ordering::Relaxed) {
            most = most.max(memory(&server, "RssAnon"));
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        most
    };
    let (answer, most) = tokio::join!(list, watched);
    assert_eq!(answer.data().as_array().unwrap().len(), 1, "{}", answer.text);
    assert!(most - before < GROWTH_MAX, "{} kB more", most - before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the log of writes beside scans, alone"]
async fn the_log_is_cut_while_scans_overlap() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "body", "type": "text" }])).await;
    let records = json!({ "data": vec![json!({ "body": "y".repeat(300) }); 1000] });
    for _ in 0..20 {
        assert_eq!(admin.post("/api/v1/data/doc/bulk", records.clone()).await.status, 201);
    }
    let is_over = AtomicBool::new(false);
    let scans = async || {
        while !is_over.load(Ordering::Relaxed) {
            // The term has two letters. The search index covers only texts of three or more letters, so this request reads all
            // rows.
            let answer = admin.get("/api/v1/data/doc?body[ilike]=zz&limit=1").await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    };
    let writes = async {
        let text = "w".repeat(900_000);
        while !is_over.load(Ordering::Relaxed) {
            assert_eq!(admin.post("/api/v1/data/doc", json!({ "body": text })).await.status, 201);
        }
    };
    let watched = async {
        until("the log is large", async || log_bytes(&server) > LOG_LARGE_BYTES).await;
        until("the log was cut", async || log_bytes(&server) < LOG_LARGE_BYTES / 2).await;
        is_over.store(true, Ordering::Relaxed);
    };
    tokio::join!(scans(), scans(), writes, watched);
}
