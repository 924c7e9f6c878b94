//! Parts of SQL that the engines spell differently.

use blockbase_query::Dialect;

/// The time by the engine's clock, as SQL. It is in milliseconds since the epoch.
pub(crate) fn database_now(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        Dialect::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    }
}

/// The version of the schema in the snapshot of a statement, as SQL. A statement that reads events selects it. An event of the
/// snapshot was written on this version or on an earlier one, because its writer began after the change of the schema had ended.
/// On SQLite, only this process changes the schema, so nothing is read there.
pub(crate) fn schema_in_snapshot(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "0",
        Dialect::Postgres => "(SELECT version FROM svc_versions WHERE name = 'schema')",
    }
}

/// The version of the accounts in the snapshot of a statement, as SQL. A statement that reads events selects it too. It includes
/// every change of rights that was committed before an event of the snapshot. On SQLite, only this process changes accounts, so
/// nothing is read there.
pub(crate) fn accounts_in_snapshot(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "0",
        Dialect::Postgres => "(SELECT version FROM svc_versions WHERE name = 'accounts')",
    }
}

/// SQL for the condition that `column` is in the list that is bound as `$place`.
pub(crate) fn among(dialect: Dialect, column: &str, place: usize) -> String {
    match dialect {
        Dialect::Sqlite => format!("{column} IN (SELECT value FROM json_each(${place}))"),
        Dialect::Postgres => format!("{column} = ANY(${place})"),
    }
}
