//! The stamps of records: who created them, and who changed them last. A guest's upgrade moves them to another user, and an
//! erasure removes them. Each transaction handles some records.

use blockbase_query::sql;
use blockbase_schema::{Object, Result};
use blockbase_store::Connection;

/// The result of one transaction on the stamps of one object's records.
pub(crate) struct Restamped {
    pub(crate) changed: u64,
    /// Whether there are more records with these stamps. The number of changed records does not show this: on Postgres a step
    /// waits for deletions, and then finds that some of its records are deleted.
    pub(crate) has_rest: bool,
}

/// Replaces `from` by `to`, or by nobody, in the stamps of some records: in at most `limit` records that `from` created, and in
/// at most `limit` other records that `from` changed last.
pub(crate) async fn restamp(
    connection: &mut Connection,
    object: &Object,
    (from, to): (&str, Option<&str>),
    limit: usize,
) -> Result<Restamped> {
    let statements = sql::restamp(connection.dialect(), object, limit);
    let changed = connection.restamp(statements, from, to).await.map_err(|error| error.on(object))?;
    let rest = sql::any_stamped(connection.dialect(), object);
    Ok(Restamped { changed, has_rest: !connection.ids_created_by(rest, from).await?.is_empty() })
}
