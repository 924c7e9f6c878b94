//! The floor for groups: fixed statements on the server's own database, with one route for each of them.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Row};

use super::groups;
use crate::conditions::floor::{connect, serve_on_free_port};
use crate::run::Engine;

enum Database {
    Sqlite(PathBuf, Mutex<Vec<Connection>>),
    Postgres(PgPool),
}

struct Floor {
    database: Database,
    statements: Vec<String>,
}

fn read(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare_cached(sql).unwrap();
    let columns = statement.column_count();
    let value = |value: ValueRef<'_>| match value {
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
    };
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get_ref(column).map(value)).collect());
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

async fn groups(State(floor): State<Arc<Floor>>, Path(case): Path<usize>) -> Response {
    let sql = &floor.statements[case];
    match &floor.database {
        Database::Sqlite(file, readers) => {
            let idle = readers.lock().pop();
            let connection = idle.unwrap_or_else(|| connect(file));
            let rows = read(&connection, sql);
            readers.lock().push(connection);
            Json(rows).into_response()
        }
        Database::Postgres(pool) => {
            let row = sqlx::query(AssertSqlSafe(sql.as_str())).fetch_one(pool).await.unwrap();
            ([(CONTENT_TYPE, "application/json")], row.get::<String, _>(0)).into_response()
        }
    }
}

/// Serves the floor on a free port and prints its address. `database` is a `postgres://` URL, or the path of the server's SQLite
/// file.
pub(crate) fn serve(database: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let is_postgres = database.starts_with("postgres://");
        let engine = if is_postgres { Engine::Postgres } else { Engine::Sqlite };
        let mut statements = groups::statements(engine);
        let database = match is_postgres {
            true => {
                // One text with all rows, whose values are of several types.
                for sql in &mut statements {
                    let columns = "SELECT json_agg(value ORDER BY place) FROM json_each(to_json(t)) WITH ORDINALITY AS e(key, value, place)";
                    *sql = format!("SELECT coalesce(json_agg(({columns})), '[]')::text FROM ({sql}) t");
                }
                Database::Postgres(PgPoolOptions::new().test_before_acquire(false).connect(database).await.unwrap())
            }
            false => Database::Sqlite(PathBuf::from(database), Mutex::default()),
        };
        let router = Router::new().route("/{case}", get(groups)).with_state(Arc::new(Floor { database, statements }));
        serve_on_free_port(router).await;
    });
}
