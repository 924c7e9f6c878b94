//! The stamps of records: who created them, and who changed them last. They move with a guest's upgrade and go with an erasure, some records
//! in each transaction.

use blockbase_query::sql;
use blockbase_schema::{Object, Result};
use blockbase_store::Connection;

/// What one transaction did with the stamps of one object's records.
pub(crate) struct Restamped {
    pub(crate) changed: u64,
    /// Whether records with such stamps are left. The number of changed ones does not tell: on Postgres a step waits for deletions, and
    /// then changes none of the records that those took.
    pub(crate) has_rest: bool,
}

/// Puts `to`, or nobody, in the place of `from` in the stamps of at most `limit` records.
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
