//! The log of SQL statements.

/// Logs the text of a statement, but never its values. It does so only with a setting such as
/// `SVC_LOG=info,blockbase_store::sql=trace`.
pub(crate) fn trace_sql(sql: &str) {
    tracing::trace!(target: "blockbase_store::sql", statement = sql, "a statement runs");
}
