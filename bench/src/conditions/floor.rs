//! The floor for conditions: fixed statements on the server's own database, with one route for each condition.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Path as PathPart, State};
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde::Serialize;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Row};

use super::cases;

#[derive(Serialize)]
struct Record {
    id: String,
    title: String,
    code: String,
    kind: i32,
    state: String,
}

#[derive(Serialize)]
struct Page {
    data: Vec<Record>,
    total: Option<i64>,
}

enum Database {
    Sqlite(PathBuf, Mutex<Vec<Connection>>),
    Postgres(PgPool),
}

struct Floor {
    database: Database,
    /// The page and the total of each condition.
    statements: Vec<(String, String)>,
}

/// A connection that only reads.
pub(crate) fn connect(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.execute_batch("PRAGMA query_only=1; PRAGMA mmap_size=2147418112; PRAGMA cache_size=-16384;").unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
    connection.set_prepared_statement_cache_capacity(128);
    connection
}

fn read(connection: &Connection, page: &str, total: Option<&str>) -> Page {
    let mut statement = connection.prepare_cached(page).unwrap();
    let rows = statement.query_map([], |row| {
        Ok(Record { id: row.get(0)?, title: row.get(1)?, code: row.get(2)?, kind: row.get(3)?, state: row.get(4)? })
    });
    let data = rows.unwrap().collect::<Result<_, _>>().unwrap();
    Page { data, total: total.map(|total| connection.prepare_cached(total).unwrap().query_row([], |row| row.get(0)).unwrap()) }
}

async fn read_postgres(pool: &PgPool, page: &str, total: Option<&str>) -> Page {
    let mut connection = pool.acquire().await.unwrap();
    let rows = sqlx::query(AssertSqlSafe(page)).fetch_all(&mut *connection).await.unwrap();
    let record = |row: &sqlx::postgres::PgRow| {
        let id = row.get::<uuid::Uuid, _>(0).to_string();
        Record { id, title: row.get(1), code: row.get(2), kind: row.get(3), state: row.get(4) }
    };
    let data = rows.iter().map(record).collect();
    let Some(total) = total else { return Page { data, total: None } };
    Page { data, total: Some(sqlx::query(AssertSqlSafe(total)).fetch_one(&mut *connection).await.unwrap().get(0)) }
}

async fn list(State(floor): State<Arc<Floor>>, PathPart((case, counts)): PathPart<(usize, bool)>) -> Json<Page> {
    let (page, total) = &floor.statements[case];
    let total = counts.then_some(total.as_str());
    match &floor.database {
        Database::Sqlite(file, readers) => {
            let idle = readers.lock().pop();
            let connection = idle.unwrap_or_else(|| connect(file));
            let page = read(&connection, page, total);
            readers.lock().push(connection);
            Json(page)
        }
        Database::Postgres(pool) => Json(read_postgres(pool, page, total).await),
    }
}

/// Serves the floor on a free port and prints its address. `database` is a `postgres://` URL, or the path of the server's SQLite
/// file.
pub(crate) fn serve(database: &str, links: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let statements = cases::all().iter().map(|case| case.statements(links)).collect();
        let database = match database.starts_with("postgres://") {
            true => Database::Postgres(PgPoolOptions::new().test_before_acquire(false).connect(database).await.unwrap()),
            false => Database::Sqlite(PathBuf::from(database), Mutex::default()),
        };
        let router = Router::new().route("/{case}/{counts}", get(list)).with_state(Arc::new(Floor { database, statements }));
        serve_on_free_port(router).await;
    });
}

/// Serves on a free port and prints its address.
pub(crate) async fn serve_on_free_port(router: Router) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listens on http://{}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await.unwrap();
}
