//! The audit log: rows of administrative acts, and counts of failed sign-ins.

use blockbase_query::{Dialect, Param, Statement};

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// Replaces the texts about a deleted user. The migration's index of network addresses contains the same text.
pub const REPLACED: &str = "deleted";

/// A row of the audit log. `before` and `after` are JSON objects as text.
#[derive(Clone, Debug)]
pub struct AuditRow {
    pub id: String,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// `user:<id>`, `shell:<uid>`, `shell` if the user of the operating system is unknown, `anonymous` or `service`.
    pub actor: String,
    /// `session:<id>` or `api_key:<id>`.
    pub credential: Option<String>,
    /// The network address of the client.
    pub address: Option<String>,
    pub action: String,
    pub resource: String,
    /// `None` for failed sign-ins without an account.
    pub target: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub request_id: Option<String>,
    /// The id of the user whom the row is about, until the texts about the user are replaced.
    pub subject: Option<String>,
    /// The key under which the row is counted. If a row with this key exists, its count rises instead. `None` for most rows.
    pub counted: Option<String>,
    pub times: i64,
}

/// The requested rows. Members that are left out match every row.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub resource: Option<String>,
    pub target: Option<String>,
    /// The first instant, in milliseconds since the epoch.
    pub since: Option<i64>,
    /// The first instant after the period.
    pub until: Option<i64>,
}

macro_rules! audit_columns {
    () => {
        "id, acted_at, actor, credential, address, action, resource, target, state_before, state_after, request_id, subject, \
         counted, times"
    };
}

fn audit_row(row: &Row) -> Result<AuditRow, DbError> {
    Ok(AuditRow {
        id: row.text(0)?,
        at: row.integer(1)?,
        actor: row.text(2)?,
        credential: row.optional_text(3)?,
        address: row.optional_text(4)?,
        action: row.text(5)?,
        resource: row.text(6)?,
        target: row.optional_text(7)?,
        before: row.optional_text(8)?,
        after: row.optional_text(9)?,
        request_id: row.optional_text(10)?,
        subject: row.optional_text(11)?,
        counted: row.optional_text(12)?,
        times: row.integer(13)?,
    })
}

impl Connection {
    /// Stores a row. If a row is counted under the same key, adds to its count.
    pub async fn insert_audit(&mut self, row: AuditRow) -> Result<(), DbError> {
        self.run(
            concat!(
                "INSERT INTO svc_audit (",
                audit_columns!(),
                ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
                 ON CONFLICT (counted) DO UPDATE SET times = svc_audit.times + excluded.times"
            ),
            vec![
                row.id.into(),
                row.at.into(),
                row.actor.into(),
                row.credential.into(),
                row.address.into(),
                row.action.into(),
                row.resource.into(),
                row.target.into(),
                row.before.into(),
                row.after.into(),
                row.request_id.into(),
                row.subject.into(),
                row.counted.into(),
                row.times.into(),
            ],
        )
        .await
        .map(drop)
    }

    /// A page of the rows that match, the newest first, and the number of all that match.
    pub async fn audit(&mut self, filter: &AuditFilter, limit: i64, offset: i64) -> Result<(Vec<AuditRow>, i64), DbError> {
        let mut conditions = vec!["TRUE".to_owned()];
        let mut params: Vec<Param> = Vec::new();
        let AuditFilter { actor, action, resource, target, since, until } = filter;
        for (column, text) in [("actor", actor), ("action", action), ("resource", resource), ("target", target)] {
            if let Some(text) = text {
                params.push(text.clone().into());
                conditions.push(format!("{column} = ${}", params.len()));
            }
        }
        for (operator, bound) in [(">=", since), ("<", until)] {
            if let Some(bound) = bound {
                params.push((*bound).into());
                conditions.push(format!("acted_at {operator} ${}", params.len()));
            }
        }
        let conditions = conditions.join(" AND ");
        let sql = format!("SELECT count(*) FROM svc_audit WHERE {conditions}");
        let total = self.fetch_integer(Statement { sql: self.placeholders(sql), params: params.clone() }).await?;
        params.extend([limit.into(), offset.into()]);
        let (limit, offset) = (params.len() - 1, params.len());
        let sql = format!(
            "SELECT {} FROM svc_audit WHERE {conditions} ORDER BY acted_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}",
            audit_columns!(),
        );
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        Ok((rows.iter().map(audit_row).collect::<Result<_, _>>()?, total))
    }

    /// At most `limit` rows that are about a user and whose texts are not replaced yet.
    pub async fn audit_about(&mut self, subject: &str, limit: i64) -> Result<Vec<AuditRow>, DbError> {
        const ABOUT: &str = concat!("SELECT ", audit_columns!(), " FROM svc_audit WHERE subject = $1 ORDER BY id LIMIT $2");
        let rows = self.fetch(ABOUT, vec![subject.into(), limit.into()]).await?;
        rows.iter().map(audit_row).collect()
    }

    /// Replaces `before` and `after` of a row about a user. The row is then not about a user any more.
    pub async fn forget_audit_states(&mut self, id: &str, before: Option<String>, after: Option<String>) -> Result<(), DbError> {
        let sql = "UPDATE svc_audit SET state_before = $2, state_after = $3, subject = NULL WHERE id = $1";
        self.run(sql, vec![id.into(), before.into(), after.into()]).await.map(drop)
    }

    /// Replaces the network addresses in at most `limit` rows of an actor. Returns the number of rows.
    pub async fn replace_audit_addresses(&mut self, actor: &str, limit: i64) -> Result<u64, DbError> {
        // With the same text as the index, the rows that are replaced already are not read.
        let sql = format!(
            "UPDATE svc_audit SET address = '{REPLACED}' WHERE id IN \
             (SELECT id FROM svc_audit WHERE actor = $1 AND address <> '{REPLACED}' ORDER BY id LIMIT $2)"
        );
        self.execute(Statement { sql: self.placeholders(sql), params: vec![actor.into(), limit.into()] }).await
    }

    /// Replaces the network addresses in at most `limit` counted rows about a user. These rows are not counted any more, and are
    /// not about a user. Returns the number of rows.
    pub async fn replace_audit_counted(&mut self, subject: &str, limit: i64) -> Result<u64, DbError> {
        let sql = format!(
            "UPDATE svc_audit SET address = CASE WHEN address IS NOT NULL THEN '{REPLACED}' END, subject = NULL, counted = NULL \
             WHERE id IN (SELECT id FROM svc_audit WHERE subject = $1 AND counted IS NOT NULL ORDER BY id LIMIT $2)"
        );
        self.execute(Statement { sql: self.placeholders(sql), params: vec![subject.into(), limit.into()] }).await
    }

    /// The last id of the page of `limit` rows after the id `after`. `None` if no row follows.
    pub async fn audit_page_end(&mut self, after: &str, limit: i64) -> Result<Option<String>, DbError> {
        let sql = "SELECT max(id) FROM (SELECT id FROM svc_audit WHERE id > $1 ORDER BY id LIMIT $2) page";
        let rows = self.fetch(sql, vec![after.into(), limit.into()]).await?;
        rows.first().map_or(Ok(None), |row| row.optional_text(0))
    }

    /// The rows with ids in `(after, up_to]` that contain a text in `before` or `after`. Case does not matter.
    pub async fn audit_containing(&mut self, text: &str, after: &str, up_to: &str) -> Result<Vec<AuditRow>, DbError> {
        let dialect = self.dialect();
        let holds = |column: &str| dialect.contains(&format!("coalesce({column}, '')"), "$1", true);
        let sql = format!(
            "SELECT {} FROM svc_audit WHERE id > $2 AND id <= $3 AND ({} OR {}) ORDER BY id",
            audit_columns!(),
            holds("state_before"),
            holds("state_after"),
        );
        let params = vec![text.into(), after.into(), up_to.into()];
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        rows.iter().map(audit_row).collect()
    }

    /// Replaces `before` and `after` of a row.
    pub async fn set_audit_states(&mut self, id: &str, before: Option<String>, after: Option<String>) -> Result<(), DbError> {
        let sql = "UPDATE svc_audit SET state_before = $2, state_after = $3 WHERE id = $1";
        self.run(sql, vec![id.into(), before.into(), after.into()]).await.map(drop)
    }

    /// Deletes at most `limit` rows from before an instant, the oldest first.
    pub async fn purge_audit(&mut self, before: i64, limit: i64) -> Result<u64, DbError> {
        let sql = format!(
            "DELETE FROM svc_audit WHERE id IN (SELECT id FROM svc_audit WHERE acted_at < $1 ORDER BY acted_at, id LIMIT $2{})",
            match self.dialect() {
                Dialect::Sqlite => "",
                // The deletion of a user may hold some of the rows. This does not wait for it, so neither can block the other.
                Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
            }
        );
        self.execute(Statement { sql: self.placeholders(sql), params: vec![before.into(), limit.into()] }).await
    }
}
