//! The catalogue of objects: definitions, versions, history.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;

/// An object as stored; `definition` and `field_keys` are JSON text.
#[derive(Clone, Debug)]
pub struct ObjectRow {
    pub id: i64,
    pub definition: String,
    pub field_keys: String,
}

/// An entry of the schema's history.
#[derive(Clone, Debug)]
pub struct SchemaChangeRow {
    pub version: i64,
    /// JSON text.
    pub change: String,
    pub applied_by: Option<String>,
    /// Milliseconds since the epoch.
    pub applied_at: i64,
}

impl Connection {
    /// The version of `schema` or `blocks`.
    pub async fn version(&mut self, name: &'static str) -> Result<i64, DbError> {
        let rows = self.fetch("SELECT version FROM svc_versions WHERE name = $1", vec![name.into()]).await?;
        rows.first().ok_or_else(|| DbError::Other(format!("no version of {name}").into()))?.integer(0)
    }

    /// Raises the version of `schema` or `blocks`. Until the transaction ends, no other can.
    pub async fn raise_version(&mut self, name: &'static str) -> Result<i64, DbError> {
        let rows = self
            .fetch("UPDATE svc_versions SET version = version + 1 WHERE name = $1 RETURNING version", vec![name.into()])
            .await?;
        rows.first().ok_or_else(|| DbError::Other(format!("no version of {name}").into()))?.integer(0)
    }

    /// Holds an object against being dropped until the transaction ends. Answers the version of `blocks`, or `None` where the
    /// object is gone.
    pub async fn hold_object(&mut self, id: i64) -> Result<Option<i64>, DbError> {
        let sql = match self.dialect() {
            // The one writer runs one transaction after the other.
            Dialect::Sqlite => {
                "SELECT v.version FROM svc_objects o CROSS JOIN svc_versions v WHERE o.id = $1 AND v.name = 'blocks'"
            }
            Dialect::Postgres => {
                "SELECT v.version FROM svc_objects o CROSS JOIN svc_versions v WHERE o.id = $1 AND v.name = 'blocks' \
                 FOR KEY SHARE OF o"
            }
        };
        let rows = self.fetch(sql, vec![id.into()]).await?;
        rows.first().map(|row| row.integer(0)).transpose()
    }

    pub async fn objects(&mut self) -> Result<Vec<ObjectRow>, DbError> {
        let rows = self.fetch("SELECT id, definition, field_keys FROM svc_objects ORDER BY id", Vec::new()).await?;
        rows.iter().map(|row| Ok(ObjectRow { id: row.integer(0)?, definition: row.text(1)?, field_keys: row.text(2)? })).collect()
    }

    /// Enters an object and answers its number. Its table is made by the caller, in the same transaction.
    pub async fn insert_object(
        &mut self,
        name: &str,
        definition: String,
        field_keys: String,
        next_key: i64,
    ) -> Result<i64, DbError> {
        let rows = self
            .fetch(
                "INSERT INTO svc_objects (name, definition, field_keys, next_field_key) VALUES ($1, $2, $3, $4) RETURNING id",
                vec![name.into(), definition.into(), field_keys.into(), next_key.into()],
            )
            .await?;
        let id = rows.first().ok_or_else(|| DbError::Other("an insert gave no row".into()))?.integer(0)?;
        self.run("INSERT INTO svc_counts (object_id, rows) VALUES ($1, 0)", vec![id.into()]).await?;
        Ok(id)
    }

    pub async fn delete_object(&mut self, id: i64) -> Result<(), DbError> {
        self.run("DELETE FROM svc_counts WHERE object_id = $1", vec![id.into()]).await?;
        self.run("DELETE FROM svc_objects WHERE id = $1", vec![id.into()]).await.map(|_| ())
    }

    /// Whether a table or index of this name exists, made by whomever.
    pub async fn table_exists(&mut self, name: &str) -> Result<bool, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT 1 FROM sqlite_master WHERE name = $1",
            Dialect::Postgres => "SELECT 1 FROM pg_class WHERE relname = $1 AND relnamespace = current_schema()::regnamespace",
        };
        Ok(!self.fetch(sql, vec![name.into()]).await?.is_empty())
    }

    pub async fn record_schema_change(&mut self, row: SchemaChangeRow) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_schema_changes (version, change, applied_by, applied_at) VALUES ($1, $2, $3, $4)",
            vec![row.version.into(), row.change.into(), row.applied_by.into(), row.applied_at.into()],
        )
        .await
        .map(|_| ())
    }

    /// Newest first.
    pub async fn schema_changes(&mut self) -> Result<Vec<SchemaChangeRow>, DbError> {
        let rows = self
            .fetch("SELECT version, change, applied_by, applied_at FROM svc_schema_changes ORDER BY version DESC", Vec::new())
            .await?;
        rows.iter()
            .map(|row| {
                Ok(SchemaChangeRow {
                    version: row.integer(0)?,
                    change: row.text(1)?,
                    applied_by: row.optional_text(2)?,
                    applied_at: row.integer(3)?,
                })
            })
            .collect()
    }
}
