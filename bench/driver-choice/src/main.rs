//! Measures get-by-id of 100,000 rows by 32 tasks on two runtime threads. Each side runs for three seconds, and the sides take
//! turns, three times.
//!
//! `cargo run --release` in this folder prints the calls per second, and the ratio of sqlx to rusqlite.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
use sqlx::Row;

const ROWS: u64 = 100_000;
const TASKS: u64 = 32;
const CONNECTIONS: u32 = 4;
const TIME: Duration = Duration::from_secs(3);
const SQL: &str = "SELECT id, title, done, created_at FROM item WHERE id = ?1";

fn id(number: u64) -> String {
    format!("{number:036}")
}

/// A sequence of row numbers that costs little to compute. It is the same for both sides.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % ROWS
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bench.db");
    fill(&path)?;
    let pool = sqlx::sqlite::SqlitePoolOptions::new()
        .max_connections(CONNECTIONS)
        .connect(&format!("sqlite://{}?mode=ro", path.display()))
        .await?;
    let direct: Arc<Mutex<Vec<rusqlite::Connection>>> = Arc::new(Mutex::new(
        (0..CONNECTIONS)
            .map(|_| {
                rusqlite::Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            })
            .collect::<Result<_, _>>()?,
    ));
    for _ in 0..3 {
        let by_sqlx = {
            let pool = pool.clone();
            run(move |mut state| {
                let pool = pool.clone();
                async move {
                    let row = sqlx::query(SQL).bind(id(next(&mut state))).fetch_one(&pool).await.expect("a row");
                    assert_eq!(row.get::<String, _>(0).len(), 36);
                    state
                }
            })
            .await
        };
        let by_rusqlite = {
            let direct = direct.clone();
            run(move |mut state| {
                let direct = direct.clone();
                async move {
                    let connection = direct.lock().expect("no poison").pop().expect("as many connections as threads");
                    {
                        let mut statement = connection.prepare_cached(SQL).expect("valid SQL");
                        let length = statement
                            .query_row([id(next(&mut state))], |row| Ok(row.get_ref(0)?.as_str()?.len()))
                            .expect("a row");
                        assert_eq!(length, 36);
                    }
                    direct.lock().expect("no poison").push(connection);
                    state
                }
            })
            .await
        };
        println!("sqlx {by_sqlx:.0}/s  rusqlite {by_rusqlite:.0}/s  ratio {:.2}", by_sqlx / by_rusqlite);
    }
    Ok(())
}

fn fill(path: &std::path::Path) -> rusqlite::Result<()> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, done INTEGER, created_at TEXT); BEGIN;",
    )?;
    for number in 0..ROWS {
        connection.execute(
            "INSERT INTO item VALUES (?1, ?2, 0, '2026-01-01T00:00:00.000Z')",
            [id(number), format!("item number {number}")],
        )?;
    }
    connection.execute_batch("COMMIT")
}

async fn run<F: Future<Output = u64> + Send>(call: impl Fn(u64) -> F + Send + Sync + Clone + 'static) -> f64
where
    F: 'static,
{
    let done = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (call, done) = (call.clone(), done.clone());
            tokio::spawn(async move {
                let mut state = task;
                while start.elapsed() < TIME {
                    state = call(state).await;
                    done.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task that ends");
    }
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}
