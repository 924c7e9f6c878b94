//! The floor: axum with direct SQLite calls on one fixed table. No dynamics, no auth, no events beyond the row it must write.
//!
//! It is what a developer would write by hand for this one table: the same columns and indexes, prepared statements, a pool
//! of readers, one writer that commits what has gathered at once with `synchronous=FULL`, an outbox row with each write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Path as PathPart, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::Mutex;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

#[derive(Serialize)]
struct Item {
    id: String,
    title: String,
    done: bool,
    priority: Option<i64>,
    created_at: String,
    updated_at: String,
    created_by: Option<String>,
    updated_by: Option<String>,
}

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    Ok(Item {
        id: row.get(0)?,
        title: row.get(1)?,
        done: row.get(2)?,
        priority: row.get(3)?,
        created_at: row.get(4)?,
        updated_at: row.get(5)?,
        created_by: row.get(6)?,
        updated_by: row.get(7)?,
    })
}

const COLUMNS: &str = "id, title, done, priority, created_at, updated_at, created_by, updated_by";

type Write = (Box<dyn FnOnce(&Connection) -> Option<Item> + Send>, oneshot::Sender<Option<Item>>);

struct Floor {
    file: PathBuf,
    readers: Mutex<Vec<Connection>>,
    writer: mpsc::Sender<Write>,
}

fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA mmap_size=268435456; PRAGMA cache_size=-16384;")
        .unwrap();
    connection.set_prepared_statement_cache_capacity(64);
    connection
}

impl Floor {
    fn read<T>(&self, body: impl FnOnce(&Connection) -> T) -> T {
        let connection = self.readers.lock().pop().unwrap_or_else(|| open(&self.file));
        let answer = body(&connection);
        self.readers.lock().push(connection);
        answer
    }

    async fn write(&self, body: impl FnOnce(&Connection) -> Option<Item> + Send + 'static) -> Option<Item> {
        let (reply, answer) = oneshot::channel();
        self.writer.send((Box::new(body), reply)).await.ok()?;
        answer.await.ok()?
    }
}

fn write_loop(connection: &Connection, mut jobs: mpsc::Receiver<Write>) {
    let mut gathered = Vec::new();
    while jobs.blocking_recv_many(&mut gathered, 256) > 0 {
        connection.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
        let answers: Vec<_> = gathered.drain(..).map(|(body, reply)| (body(connection), reply)).collect();
        connection.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
        for (answer, reply) in answers {
            let _ = reply.send(answer);
        }
    }
}

fn emit(connection: &Connection, topic: &str, payload: &str) {
    let mut insert =
        connection.prepare_cached("INSERT INTO events (id, topic, payload, occurred_at) VALUES (?, ?, ?, ?)").unwrap();
    insert.execute(params![uuid::Uuid::now_v7().to_string(), topic, payload, chrono_now()]).unwrap();
}

fn chrono_now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let instant = chrono::DateTime::from_timestamp_millis(i64::try_from(since.as_millis()).unwrap()).unwrap();
    instant.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[derive(Serialize)]
struct One {
    data: Item,
}

async fn get_item(State(floor): State<Arc<Floor>>, PathPart(id): PathPart<String>) -> Response {
    let found = floor.read(|connection| {
        let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM task WHERE id = ?")).unwrap();
        statement.query_row([id], item).ok()
    });
    match found {
        Some(data) => Json(One { data }).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[derive(Deserialize)]
struct ListQuery {
    priority: Option<i64>,
}

#[derive(Serialize)]
struct Pagination {
    page: u32,
    #[serde(rename = "pageSize")]
    page_size: u32,
}

#[derive(Serialize)]
struct Page {
    data: Vec<Item>,
    pagination: Pagination,
}

/// Without a total: a floor may leave out what costs.
async fn list_items(State(floor): State<Arc<Floor>>, Query(query): Query<ListQuery>) -> Response {
    let data = floor.read(|connection| {
        let rows = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| {
            let mut statement = connection.prepare_cached(sql).unwrap();
            statement.query_map(parameters, item).unwrap().collect::<Result<Vec<_>, _>>().unwrap()
        };
        match query.priority {
            Some(priority) => rows(
                &format!("SELECT {COLUMNS} FROM task WHERE priority = ? ORDER BY created_at DESC, id DESC LIMIT 25"),
                &[&priority],
            ),
            None => rows(&format!("SELECT {COLUMNS} FROM task ORDER BY created_at DESC, id DESC LIMIT 25"), &[]),
        }
    });
    Json(Page { data, pagination: Pagination { page: 1, page_size: 25 } }).into_response()
}

#[derive(Deserialize)]
struct Body {
    title: String,
    priority: Option<i64>,
}

async fn create_item(State(floor): State<Arc<Floor>>, Json(body): Json<Body>) -> Response {
    let created = floor.write(move |connection| {
        let now = chrono_now();
        let new = Item {
            id: uuid::Uuid::now_v7().to_string(),
            title: body.title,
            done: false,
            priority: body.priority,
            created_at: now.clone(),
            updated_at: now,
            created_by: None,
            updated_by: None,
        };
        let mut insert =
            connection.prepare_cached(&format!("INSERT INTO task ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")).unwrap();
        insert
            .execute(params![
                new.id,
                new.title,
                new.done,
                new.priority,
                new.created_at,
                new.updated_at,
                new.created_by,
                new.updated_by
            ])
            .unwrap();
        emit(connection, "task.created", &serde_json::to_string(&new).unwrap());
        Some(new)
    });
    match created.await {
        Some(data) => (StatusCode::CREATED, Json(One { data })).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[derive(Deserialize)]
struct Changes {
    done: bool,
}

async fn update_item(State(floor): State<Arc<Floor>>, PathPart(id): PathPart<String>, Json(changes): Json<Changes>) -> Response {
    let updated = floor.write(move |connection| {
        let mut update = connection
            .prepare_cached(&format!("UPDATE task SET done = ?, updated_at = ? WHERE id = ? RETURNING {COLUMNS}"))
            .unwrap();
        let changed = update.query_row(params![changes.done, chrono_now(), id], item).ok()?;
        emit(connection, "task.updated", &serde_json::to_string(&changed).unwrap());
        Some(changed)
    });
    match updated.await {
        Some(data) => Json(One { data }).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn echo(Json(input): Json<serde_json::Value>) -> Response {
    Json(serde_json::json!({ "data": input })).into_response()
}

/// Serves the floor on a free port and prints its address.
pub(crate) fn serve(file: &Path) {
    let connection = open(file);
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS task (row INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, done INTEGER, priority INTEGER,
               created_at TEXT NOT NULL, updated_at TEXT NOT NULL, created_by TEXT, updated_by TEXT);
             CREATE UNIQUE INDEX IF NOT EXISTS task_id ON task (id);
             CREATE INDEX IF NOT EXISTS task_created ON task (created_at, id);
             CREATE INDEX IF NOT EXISTS task_owner ON task (created_by, created_at, id);
             CREATE INDEX IF NOT EXISTS task_priority ON task (priority, id);
             CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, topic TEXT, payload TEXT, occurred_at TEXT);
             CREATE UNIQUE INDEX IF NOT EXISTS events_id ON events (id);",
        )
        .unwrap();
    let (writer, jobs) = mpsc::channel(4096);
    std::thread::spawn(move || write_loop(&connection, jobs));
    let floor = Arc::new(Floor { file: file.to_owned(), readers: Mutex::default(), writer });
    let router = Router::new()
        .route("/items", get(list_items).post(create_item))
        .route("/items/{id}", get(get_item).patch(update_item))
        .route("/echo", post(echo))
        .with_state(floor);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("listens on http://{}", listener.local_addr().unwrap());
        use axum::serve::ListenerExt;
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await.unwrap();
    });
}
