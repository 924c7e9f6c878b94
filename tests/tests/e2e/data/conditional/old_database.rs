//! A database from a release in which rows had no versions.

use blockbase_tests::{Engine, ServerBuilder, new_database};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{etag, patched};

const ROWS: usize = 20_000;

/// The migrations of the last release without versions.
const MIGRATIONS: [(&str, &str); 9] = [
    (
        include_str!("../../../../../migrations/sqlite/0001_system_tables.sql"),
        include_str!("../../../../../migrations/postgres/0001_system_tables.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0002_relationships.sql"),
        include_str!("../../../../../migrations/postgres/0002_relationships.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0003_identity.sql"),
        include_str!("../../../../../migrations/postgres/0003_identity.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0004_events.sql"),
        include_str!("../../../../../migrations/postgres/0004_events.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0005_block_secrets.sql"),
        include_str!("../../../../../migrations/postgres/0005_block_secrets.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0006_makers_of_keys.sql"),
        include_str!("../../../../../migrations/postgres/0006_makers_of_keys.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0007_makers.sql"),
        include_str!("../../../../../migrations/postgres/0007_makers.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0008_outbox.sql"),
        include_str!("../../../../../migrations/postgres/0008_outbox.sql"),
    ),
    (
        include_str!("../../../../../migrations/sqlite/0009_sign_in_delays.sql"),
        include_str!("../../../../../migrations/postgres/0009_sign_in_delays.sql"),
    ),
];

/// Two objects with one field, in the form of the catalogue.
const OBJECTS: [&str; 2] = ["note", "order"];

/// The statements that make the database of that release, with some rows.
fn statements(engine: Engine) -> Vec<String> {
    let is_sqlite = engine == Engine::Sqlite;
    let mut all = vec!["CREATE TABLE svc_migrations (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)".to_owned()];
    for (index, (sqlite, postgres)) in MIGRATIONS.iter().enumerate() {
        all.push(if is_sqlite { *sqlite } else { *postgres }.to_owned());
        all.push(format!("INSERT INTO svc_migrations VALUES ({}, 0)", index + 1));
    }
    for (index, name) in OBJECTS.iter().enumerate() {
        let id = index + 1;
        let definition = json!({ "name": name, "fields": [{ "name": "text", "type": "text" }] });
        all.push(format!(
            "INSERT INTO svc_objects (id, name, definition, field_keys, next_field_key) VALUES ({id}, '{name}', '{definition}', '[1]', 2)"
        ));
        let (uuid, text, instant) =
            if is_sqlite { ("TEXT", "TEXT", "TEXT") } else { ("uuid", "text COLLATE \"C\"", "timestamptz(3)") };
        let rowid = if is_sqlite { "svc_rowid INTEGER PRIMARY KEY, " } else { "" };
        all.push(format!(
            "CREATE TABLE \"{name}\" ({rowid}\"id\" {uuid} NOT NULL, \"text\" {text}, \"created_at\" {instant} NOT NULL, \
             \"updated_at\" {instant} NOT NULL, \"created_by\" {text}, \"updated_by\" {text})"
        ));
        all.push(format!("CREATE UNIQUE INDEX svc_pk_{id} ON \"{name}\" (\"id\")"));
        let rows = match is_sqlite {
            true => format!(
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {ROWS}) INSERT INTO \"{name}\" \
                 (\"id\", \"text\", \"created_at\", \"updated_at\") SELECT printf('01890000-0000-7000-8000-%012d', x), 'row ' || x, \
                 '2024-01-01T00:00:00.000Z', '2024-01-01T00:00:00.000Z' FROM n"
            ),
            false => format!(
                "INSERT INTO \"{name}\" (\"id\", \"text\", \"created_at\", \"updated_at\") SELECT \
                 ('01890000-0000-7000-8000-' || lpad(x::text, 12, '0'))::uuid, 'row ' || x, '2024-01-01Z', '2024-01-01Z' \
                 FROM generate_series(1, {ROWS}) AS x"
            ),
        };
        all.push(rows);
        all.push(format!("INSERT INTO svc_counts (object_id, rows) VALUES ({id}, {ROWS})"));
    }
    all.push("UPDATE svc_versions SET version = 2 WHERE name = 'schema'".to_owned());
    all
}

/// A builder for a server on this database.
async fn filled(engine: Engine) -> ServerBuilder {
    match engine {
        Engine::Sqlite => {
            // A data directory whose database file is replaced.
            let mut server = ServerBuilder::new(engine).start().await;
            server.kill();
            let folder = server.directory().join("svc-data");
            for file in ["svc.db", "svc.db-wal", "svc.db-shm"] {
                let _ = std::fs::remove_file(folder.join(file));
            }
            let database = rusqlite::Connection::open(folder.join("svc.db")).expect("a database");
            for statement in statements(engine) {
                database.execute_batch(&statement).unwrap_or_else(|error| panic!("{error}: {statement}"));
            }
            server.builder()
        }
        Engine::Postgres => {
            let url = new_database().await;
            let mut connection = PgConnection::connect(&url).await.expect("a connection");
            for statement in statements(engine) {
                let ran = sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut connection).await;
                ran.unwrap_or_else(|error| panic!("{error}: {statement}"));
            }
            ServerBuilder::new(engine).database(url)
        }
    }
}

blockbase_tests::on_both_engines! {
    async fn rows_of_an_older_version_get_theirs(engine: Engine) {
        let server = filled(engine).await.start().await;
        let admin = server.admin().await;
        let mut etags = std::collections::HashSet::new();
        for name in OBJECTS {
            for number in [1, 2, ROWS] {
                let path = format!("/api/v1/data/{name}/01890000-0000-7000-8000-{number:012}");
                let read = admin.get(&path).await;
                assert_eq!(read.data()["text"], format!("row {number}"));
                let first = etag(&read);
                assert!(etags.insert(first.clone()), "the ETag of {path} is another's");
                let changed = patched(&admin, &path, &first, json!({ "text": "new" })).await;
                assert_eq!(changed.data()["text"], "new");
                assert!(etags.insert(etag(&changed)));
                patched(&admin, &path, &first, json!({ "text": "newer" })).await.expect_error(412, "precondition_failed");
            }
            let rows = server.sql(&format!("SELECT CAST(count(*) AS BIGINT) FROM \"{name}\" WHERE svc_version = 0")).await;
            assert_eq!(rows, [[(ROWS - 3).to_string()]]);
            assert_eq!(admin.get(&format!("/api/v1/data/{name}?search=row+19999")).await.json()["pagination"]["totalCount"], 1);
            // The versions are kept if a field is added, and if SQLite copies the rows into a new table.
            let path = format!("/api/v1/objects/{name}/fields");
            assert_eq!(admin.post(&path, json!({ "name": "size", "type": "integer" })).await.status, 201);
            assert_eq!(admin.patch(&format!("{path}/size"), json!({ "min": 0 })).await.status, 200);
            let rows = server.sql(&format!("SELECT CAST(count(*) AS BIGINT) FROM \"{name}\" WHERE svc_version = 0")).await;
            assert_eq!(rows, [[(ROWS - 3).to_string()]]);
            assert_eq!(admin.post(&format!("/api/v1/data/{name}"), json!({ "text": "x", "size": 1 })).await.status, 201);
        }
        let server = server.restart().await;
        assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    }
}
