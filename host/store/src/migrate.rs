//! System tables: numbered statements of `migrations/`, applied in order at boot.
//!
//! The runner is in this file. sqlx's migrator would need sqlx's SQLite driver, which the store does not use.

use rusqlite::{Connection as Driver, TransactionBehavior};
use sqlx::{AssertSqlSafe, PgPool, Row};

struct Migration {
    version: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($version:literal, $file:literal) => {
        Migration {
            version: $version,
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $file)),
            postgres: include_str!(concat!("../../../migrations/postgres/", $file)),
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_system_tables.sql"),
    migration!(2, "0002_relationships.sql"),
    migration!(3, "0003_identity.sql"),
    migration!(4, "0004_events.sql"),
    migration!(5, "0005_block_secrets.sql"),
    migration!(6, "0006_makers_of_keys.sql"),
    migration!(7, "0007_makers.sql"),
    migration!(8, "0008_outbox.sql"),
    migration!(9, "0009_sign_in_delays.sql"),
    migration!(10, "0010_record_versions.sql"),
    migration!(11, "0011_console.sql"),
    migration!(12, "0012_event_lookups.sql"),
    migration!(13, "0013_administration.sql"),
    migration!(14, "0014_carry_overs.sql"),
    migration!(15, "0015_delivery_attempts.sql"),
    migration!(16, "0016_users_as_data.sql"),
    migration!(17, "0017_account_tokens.sql"),
    migration!(18, "0018_mail.sql"),
    migration!(19, "0019_changes_of_oneself.sql"),
    migration!(20, "0020_window_counts.sql"),
    migration!(21, "0021_stream_tickets.sql"),
    migration!(22, "0022_audit.sql"),
    migration!(23, "0023_names_since.sql"),
];

const TABLE: &str = "CREATE TABLE IF NOT EXISTS svc_migrations (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)";

/// The lock that instances wait for if they boot at the same time. The number is the text "blockbase".
const POSTGRES_LOCK: i64 = 0x626c_6f63_6b62;

/// The placeholder for an object's name in a migration. The file of a migration does not know the objects. So a migration with
/// this placeholder runs once for each object's table.
const OBJECT: &str = "{object}";

/// The statements of a migration, for the existing objects.
fn statements<'a>(sql: &'static str, objects: &'a [String]) -> impl Iterator<Item = String> + 'a {
    let for_each = sql.contains(OBJECT);
    // Names of objects consist of lower-case letters, digits and underscores, so they cannot end the quotes around them.
    let each = objects.iter().filter(move |_| for_each).map(move |object| sql.replace(OBJECT, object));
    let once = (!for_each).then(|| sql.to_owned());
    once.into_iter().chain(each)
}

const OBJECTS: &str = "SELECT name FROM svc_objects ORDER BY id";

fn newest() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

fn check_known(applied: i64) -> Result<(), String> {
    match applied <= newest() {
        true => Ok(()),
        false => Err(format!(
            "The database was migrated to version {applied} by a newer blockbase; this one knows version {}. Run the newer binary.",
            newest()
        )),
    }
}

pub(crate) fn sqlite(driver: &mut Driver) -> Result<(), String> {
    let explain = |error: rusqlite::Error| format!("The system tables cannot be migrated: {error}");
    let transaction = driver.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
    transaction.execute_batch(TABLE).map_err(explain)?;
    let applied: i64 =
        transaction.query_row("SELECT coalesce(max(version), 0) FROM svc_migrations", [], |row| row.get(0)).map_err(explain)?;
    check_known(applied)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > applied) {
        let objects = match migration.sqlite.contains(OBJECT) {
            true => transaction
                .prepare(OBJECTS)
                .and_then(|mut objects| objects.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>())
                .map_err(explain)?,
            false => Vec::new(),
        };
        for sql in statements(migration.sqlite, &objects) {
            transaction.execute_batch(&sql).map_err(explain)?;
        }
        transaction
            .execute("INSERT INTO svc_migrations VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER))", [migration.version])
            .map_err(explain)?;
    }
    transaction.commit().map_err(explain)
}

pub(crate) async fn postgres(pool: &PgPool) -> Result<(), String> {
    let explain = |error: sqlx::Error| format!("The system tables cannot be migrated: {error}");
    let mut transaction = pool.begin().await.map_err(explain)?;
    // The lock is held until the transaction ends. If several instances boot at once, one migrates, and the others then find
    // nothing left to do.
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(POSTGRES_LOCK).execute(&mut *transaction).await.map_err(explain)?;
    sqlx::raw_sql(TABLE).execute(&mut *transaction).await.map_err(explain)?;
    let applied: i64 = sqlx::query("SELECT coalesce(max(version), 0) FROM svc_migrations")
        .fetch_one(&mut *transaction)
        .await
        .map_err(explain)?
        .get(0);
    check_known(applied)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > applied) {
        let objects: Vec<String> = match migration.postgres.contains(OBJECT) {
            true => sqlx::query_scalar(OBJECTS).fetch_all(&mut *transaction).await.map_err(explain)?,
            false => Vec::new(),
        };
        for sql in statements(migration.postgres, &objects) {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await.map_err(explain)?;
        }
        sqlx::query("INSERT INTO svc_migrations VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)")
            .bind(migration.version)
            .execute(&mut *transaction)
            .await
            .map_err(explain)?;
    }
    transaction.commit().await.map_err(explain)
}

/// Installs the extension that search indexes need, in a separate transaction, because not every role of the database may do so.
///
/// If several instances run `CREATE EXTENSION IF NOT EXISTS` at once, one succeeds and the others fail. So they take the same
/// lock as for the migrations, one after the other.
pub(crate) async fn postgres_trigrams(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(POSTGRES_LOCK).execute(&mut *transaction).await?;
    sqlx::raw_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm").execute(&mut *transaction).await?;
    transaction.commit().await
}
