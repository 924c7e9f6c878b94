//! The catalogue of objects: definitions, versions, history.

use blockbase_query::Dialect;

use crate::connection::{Connection, Inner};
use crate::error::DbError;

/// An object as stored. `definition`, `field_keys` and `names_since` are JSON text.
#[derive(Clone, Debug)]
pub struct ObjectRow {
    pub id: i64,
    pub revision: i64,
    pub definition: String,
    pub field_keys: String,
    pub names_since: String,
}

/// The state of an object and of the subscriptions, on which a transaction that has locked the object writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectState {
    pub revision: i64,
    pub subscriptions_version: i64,
}

/// A relationship as stored. `definition` is JSON text.
#[derive(Clone, Debug)]
pub struct RelationshipRow {
    pub id: i64,
    pub definition: String,
}

/// An entry of the schema's history.
#[derive(Clone, Debug)]
pub struct SchemaChangeRow {
    pub version: i64,
    /// The change as JSON text.
    pub change: String,
    pub applied_by: Option<String>,
    /// Milliseconds since the epoch.
    pub applied_at: i64,
}

/// The versions of the data that instances keep in memory. Each change raises its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub schema: i64,
    pub blocks: i64,
    pub subscriptions: i64,
    /// The version of users, roles, keys and sessions. It is raised only if there may be other instances.
    pub accounts: i64,
}

impl Connection {
    /// All versions, read with one short statement.
    pub async fn versions(&mut self) -> Result<Versions, DbError> {
        let mut versions = Versions::default();
        for row in self.fetch("SELECT name, version FROM svc_versions", Vec::new()).await? {
            let version = row.integer(1)?;
            match row.text(0)?.as_str() {
                "schema" => versions.schema = version,
                "blocks" => versions.blocks = version,
                "subscriptions" => versions.subscriptions = version,
                "accounts" => versions.accounts = version,
                _ => {}
            }
        }
        Ok(versions)
    }

    /// The version of `schema`, `blocks`, `subscriptions` or `accounts`.
    pub async fn version(&mut self, name: &'static str) -> Result<i64, DbError> {
        let rows = self.fetch("SELECT version FROM svc_versions WHERE name = $1", vec![name.into()]).await?;
        rows.first().ok_or_else(|| DbError::Other(format!("no version of {name}").into()))?.integer(0)
    }

    /// The version of the accounts. 0 on SQLite, where only this process changes them.
    pub async fn accounts_version(&mut self) -> Result<i64, DbError> {
        match self.dialect() {
            Dialect::Sqlite => Ok(0),
            Dialect::Postgres => self.version("accounts").await,
        }
    }

    /// The version of `schema`, `blocks`, `subscriptions` or `accounts`. No other transaction can raise it until this one ends.
    pub async fn keep_version(&mut self, name: &'static str) -> Result<i64, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT version FROM svc_versions WHERE name = $1",
            Dialect::Postgres => "SELECT version FROM svc_versions WHERE name = $1 FOR SHARE",
        };
        let rows = self.fetch(sql, vec![name.into()]).await?;
        rows.first().ok_or_else(|| DbError::Other(format!("no version of {name}").into()))?.integer(0)
    }

    /// Raises the version of `schema`, `blocks`, `subscriptions` or `accounts`. No other transaction can raise it until this one ends.
    pub async fn raise_version(&mut self, name: &'static str) -> Result<i64, DbError> {
        let rows = self
            .fetch("UPDATE svc_versions SET version = version + 1 WHERE name = $1 RETURNING version", vec![name.into()])
            .await?;
        let version = rows.first().ok_or_else(|| DbError::Other(format!("no version of {name}").into()))?.integer(0)?;
        if name == "schema" {
            self.effects.schema_version = Some(version);
        }
        Ok(version)
    }

    /// Prevents that an object is dropped or altered until the transaction ends. `None` if the object is gone.
    ///
    /// Most writes begin with this. So on Postgres it can be sent in the same round trip as the begin of the transaction.
    pub async fn hold_object(&mut self, id: i64) -> Result<Option<ObjectState>, DbError> {
        let rows = if let Inner::Postgres(session) = &mut self.inner
            && session.begins_with_next()
        {
            session.fetch_plain(format!("SELECT revision, subscriptions_version FROM svc_hold_object({id})")).await?
        } else {
            let sql = match self.dialect() {
                // SQLite's only writer runs one transaction after the other, so there is nothing to lock.
                Dialect::Sqlite => {
                    "SELECT o.revision, v.version FROM svc_objects o CROSS JOIN svc_versions v \
                     WHERE o.id = $1 AND v.name = 'subscriptions'"
                }
                Dialect::Postgres => "SELECT revision, subscriptions_version FROM svc_hold_object($1)",
            };
            self.fetch(sql, vec![id.into()]).await?
        };
        rows.first().map(|row| Ok(ObjectState { revision: row.integer(0)?, subscriptions_version: row.integer(1)? })).transpose()
    }

    /// Waits for the writes that have locked an object, and keeps others from locking it until the transaction ends.
    pub async fn lock_object(&mut self, id: i64) -> Result<(), DbError> {
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self.fetch("SELECT 1::bigint FROM svc_lock($1)", vec![id.into()]).await.map(|_| ()),
        }
    }

    pub async fn objects(&mut self) -> Result<Vec<ObjectRow>, DbError> {
        let sql = "SELECT id, revision, definition, field_keys, names_since FROM svc_objects ORDER BY id";
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                Ok(ObjectRow {
                    id: row.integer(0)?,
                    revision: row.integer(1)?,
                    definition: row.text(2)?,
                    field_keys: row.text(3)?,
                    names_since: row.text(4)?,
                })
            })
            .collect()
    }

    /// Stores the next revision of an object. `fields_added` is the number of field numbers that it used.
    pub async fn update_object(&mut self, row: ObjectRow, fields_added: i64) -> Result<(), DbError> {
        self.run(
            "UPDATE svc_objects SET revision = $2, definition = $3, field_keys = $4, next_field_key = next_field_key + $5, \
             names_since = $6 WHERE id = $1",
            vec![
                row.id.into(),
                row.revision.into(),
                row.definition.into(),
                row.field_keys.into(),
                fields_added.into(),
                row.names_since.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The number that the next field of an object gets.
    pub async fn next_field_key(&mut self, id: i64) -> Result<i64, DbError> {
        let rows = self.fetch("SELECT next_field_key FROM svc_objects WHERE id = $1", vec![id.into()]).await?;
        rows.first().ok_or_else(|| DbError::Other("an object is gone".into()))?.integer(0)
    }

    /// All relationships, in the order of their numbers.
    pub async fn relationships(&mut self) -> Result<Vec<RelationshipRow>, DbError> {
        let rows = self.fetch("SELECT id, definition FROM svc_relationships ORDER BY id", Vec::new()).await?;
        rows.iter().map(|row| Ok(RelationshipRow { id: row.integer(0)?, definition: row.text(1)? })).collect()
    }

    /// Stores a relationship and returns its number.
    pub async fn insert_relationship(&mut self, definition: String) -> Result<i64, DbError> {
        let rows =
            self.fetch("INSERT INTO svc_relationships (definition) VALUES ($1) RETURNING id", vec![definition.into()]).await?;
        rows.first().ok_or_else(|| DbError::Other("an insert gave no row".into()))?.integer(0)
    }

    pub async fn delete_relationship(&mut self, id: i64) -> Result<(), DbError> {
        self.run("DELETE FROM svc_relationships WHERE id = $1", vec![id.into()]).await.map(|_| ())
    }

    /// Stores an object and returns its number. The caller creates its table in the same transaction.
    pub async fn insert_object(
        &mut self,
        name: &str,
        definition: String,
        field_keys: String,
        next_key: i64,
        names_since: String,
    ) -> Result<i64, DbError> {
        let rows = self
            .fetch(
                "INSERT INTO svc_objects (name, definition, field_keys, next_field_key, names_since) VALUES ($1, $2, $3, $4, $5) \
                 RETURNING id",
                vec![name.into(), definition.into(), field_keys.into(), next_key.into(), names_since.into()],
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

    /// Whether a table or index with this name exists. It need not be a table of this server.
    pub async fn table_exists(&mut self, name: &str) -> Result<bool, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT 1 FROM sqlite_master WHERE name = $1",
            Dialect::Postgres => "SELECT 1 FROM pg_class WHERE relname = $1 AND relnamespace = current_schema()::regnamespace",
        };
        Ok(!self.fetch(sql, vec![name.into()]).await?.is_empty())
    }

    /// Stores an entry of the history, and the objects that it changed.
    pub async fn record_schema_change(
        &mut self,
        row: SchemaChangeRow,
        objects: impl IntoIterator<Item = String> + Send,
    ) -> Result<(), DbError> {
        let version = row.version;
        self.run(
            "INSERT INTO svc_schema_changes (version, change, applied_by, applied_at) VALUES ($1, $2, $3, $4)",
            vec![version.into(), row.change.into(), row.applied_by.into(), row.applied_at.into()],
        )
        .await?;
        let objects: Vec<String> = objects.into_iter().collect();
        for object in objects {
            self.run(
                "INSERT INTO svc_schema_change_objects (object, version) VALUES ($1, $2)",
                vec![object.into(), version.into()],
            )
            .await?;
        }
        Ok(())
    }

    /// Entries of the history below the version `before`, the newest first. If an object is named, only the entries about it.
    pub async fn schema_changes(
        &mut self,
        object: Option<String>,
        before: i64,
        limit: i64,
    ) -> Result<Vec<SchemaChangeRow>, DbError> {
        let rows = match object {
            None => {
                let sql = "SELECT version, change, applied_by, applied_at FROM svc_schema_changes WHERE version < $1 \
                           ORDER BY version DESC LIMIT $2";
                self.fetch(sql, vec![before.into(), limit.into()]).await?
            }
            Some(object) => {
                let sql = "SELECT c.version, c.change, c.applied_by, c.applied_at FROM svc_schema_change_objects o \
                           JOIN svc_schema_changes c ON c.version = o.version WHERE o.object = $1 AND o.version < $2 \
                           ORDER BY o.version DESC LIMIT $3";
                self.fetch(sql, vec![object.into(), before.into(), limit.into()]).await?
            }
        };
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
