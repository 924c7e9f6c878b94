//! A connection to either engine. The body of every operation runs its statements on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use blockbase_query::ddl::SearchMerge;
use blockbase_query::plan::CreatePlan;
use blockbase_query::sql::insert_params;
use blockbase_query::{Dialect, Param, SqlText, Statement};
use blockbase_schema::{Column, Error};

use crate::commit::Commit;
use crate::committed_event::CommittedEvent;
use crate::drivers::{postgres, sqlite};
use crate::error::DbError;
use crate::record::{Page, Record, RecordsMax, SpooledRows};
use crate::row::Row;
use crate::spool::Spool;
use crate::sql_trace::trace_sql;

/// The number of pages of SQLite's search index, of 4 KB each, that one step of a merge writes. The step takes some tens of
/// milliseconds.
const MERGED_PAGES: i64 = 500;

/// A connection. Its methods are async for Postgres. On SQLite they never wait.
pub struct Connection {
    pub(crate) inner: Inner,
    pub(crate) effects: Effects,
    /// The number of savepoints and nested transactions that were made so far.
    savepoints: u32,
    /// The transaction of a read on SQLite.
    read: ReadStep,
}

/// How far a read on SQLite has come. Its transaction begins with its first statement. If that is also its last one, it needs no
/// transaction, because each statement has one snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReadStep {
    /// The connection's transaction begins and ends elsewhere.
    #[default]
    Elsewhere,
    /// No statement has run.
    Before,
    /// The transaction has begun.
    Begun,
    /// No statement has run, and the next one is the last.
    BeforeOnly,
    /// The only statement has run.
    AfterOnly,
}

/// A point of a transaction on Postgres to which the transaction can go back. Without one, a failed statement would end it.
#[derive(Debug)]
pub struct Savepoint {
    number: u32,
}

pub(crate) enum Inner {
    Sqlite(sqlite::Session),
    Postgres(postgres::Session),
}

/// The effects of a transaction besides its rows. They are applied when it commits.
#[derive(Default)]
pub(crate) struct Effects {
    /// The events for the feed.
    pub(crate) events: Vec<Arc<CommittedEvent>>,
    /// The topics of all events.
    pub(crate) topics: Vec<String>,
    /// The events that the running transaction emitted, and the bytes of their payloads. On SQLite one commit may have several
    /// transactions.
    pub(crate) emitted: Emitted,
    /// The consumer groups that get at least one of the events.
    pub(crate) consumers: BTreeSet<String>,
    /// The changes of the stored counts: object and difference.
    pub(crate) counts: Vec<(i64, i64)>,
    /// Whether a statement of the transaction was one that also changes a stored count. Only Postgres has such statements.
    pub(crate) has_counted: bool,
    /// Whether the transaction was undone before its body ended. Only transactions of Postgres are.
    pub(crate) is_undone: bool,
    /// The number of each nested transaction that is open, and the effects before it. The innermost one is last.
    nested: Vec<(u32, EffectsBefore)>,
    /// The changes of SQLite's search indexes. Postgres maintains its own indexes.
    pub(crate) search: Vec<SearchChange>,
    /// The new version of the schema, if it has changed.
    pub(crate) schema_version: Option<i64>,
}

/// The number and the size of the events that a transaction has emitted so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Emitted {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// The state of the effects before a nested transaction. It has to be given to [`Effects::commit_nested`] or
/// [`Effects::undo_nested`] when the nested transaction ends.
#[must_use]
pub(crate) struct EffectsBefore {
    events: usize,
    topics: usize,
    counts: usize,
    search: usize,
    nested: usize,
    emitted: Emitted,
    consumers: BTreeSet<String>,
    has_counted: bool,
    schema_version: Option<i64>,
}

/// A nested transaction, which [`Connection::begin_nested`] has begun. While it is open, the whole transaction cannot commit.
#[derive(Debug)]
#[must_use]
pub struct NestedTransaction {
    number: u32,
}

impl Effects {
    /// Notes the effects before a nested transaction.
    pub(crate) fn begin_nested(&mut self) -> EffectsBefore {
        EffectsBefore {
            events: self.events.len(),
            topics: self.topics.len(),
            counts: self.counts.len(),
            search: self.search.len(),
            nested: self.nested.len(),
            emitted: self.emitted,
            consumers: std::mem::take(&mut self.consumers),
            has_counted: self.has_counted,
            schema_version: self.schema_version,
        }
    }

    /// Keeps the effects of a nested transaction.
    pub(crate) fn commit_nested(&mut self, before: EffectsBefore) {
        // The nested transaction usually has fewer groups than everything before it.
        let of_nested = std::mem::replace(&mut self.consumers, before.consumers);
        self.consumers.extend(of_nested);
    }

    /// Undoes the effects of a nested transaction, and ends those within it that are still open.
    pub(crate) fn undo_nested(&mut self, before: EffectsBefore) {
        self.events.truncate(before.events);
        self.topics.truncate(before.topics);
        self.counts.truncate(before.counts);
        self.search.truncate(before.search);
        self.nested.truncate(before.nested);
        self.emitted = before.emitted;
        self.consumers = before.consumers;
        self.has_counted = before.has_counted;
        self.schema_version = before.schema_version;
    }

    /// Checks that a transaction may commit after its body succeeded.
    ///
    /// # Errors
    /// `internal` if the body has undone the transaction, or has left a nested one open.
    pub(crate) fn check_committable(&self) -> Result<(), Error> {
        if self.is_undone {
            return Err(Error::internal("the body of a transaction that was undone succeeded"));
        }
        if !self.nested.is_empty() {
            return Err(Error::internal("the body of a transaction succeeded, and has left a nested one open"));
        }
        Ok(())
    }

    /// The events that a commit announces. `None` if it wrote nothing to the outbox.
    pub(crate) fn commit(self) -> Option<Commit> {
        let Effects { events, topics, consumers, .. } = self;
        (!topics.is_empty() || !consumers.is_empty()).then_some(Commit { events, topics, consumers })
    }
}

/// The new document of one row in the search index of SQLite.
pub(crate) struct SearchChange {
    pub(crate) object_id: i64,
    pub(crate) row: i64,
    pub(crate) is_new: bool,
    /// The text of the row. `None` if the row was deleted or has no text.
    pub(crate) document: Option<String>,
}

impl Connection {
    pub(crate) fn new(inner: Inner) -> Connection {
        Connection { inner, effects: Effects::default(), savepoints: 0, read: ReadStep::Elsewhere }
    }

    /// Begins a read on SQLite, which [`Connection::end_read`] ends.
    pub(crate) fn begin_read(&mut self) {
        self.read = ReadStep::Before;
    }

    /// Ends the transaction of a read on SQLite, if it has one.
    pub(crate) fn end_read(&mut self) -> Result<(), DbError> {
        match std::mem::take(&mut self.read) {
            ReadStep::Begun => self.batch("COMMIT"),
            ReadStep::Elsewhere | ReadStep::Before | ReadStep::BeforeOnly | ReadStep::AfterOnly => Ok(()),
        }
    }

    /// Says that a read runs one more statement and then no other one. On SQLite, if no statement has run yet, it then needs no
    /// transaction, and every statement after it fails. Otherwise this does nothing.
    pub fn ends_with_next(&mut self) {
        if self.read == ReadStep::Before {
            self.read = ReadStep::BeforeOnly;
        }
    }

    /// Prepares for a statement, and logs it.
    fn before(&mut self, sql: &str) -> Result<(), DbError> {
        match self.read {
            ReadStep::Elsewhere | ReadStep::Begun => {}
            ReadStep::Before => {
                // If it cannot begin, it cannot end either, and the connection is not used again.
                self.read = ReadStep::Begun;
                self.batch("BEGIN")?;
            }
            ReadStep::BeforeOnly => self.read = ReadStep::AfterOnly,
            ReadStep::AfterOnly => return Err(DbError::Other("a read goes on after its last statement".into())),
        }
        trace_sql(sql);
        Ok(())
    }

    /// Runs a statement of SQLite that has neither parameters nor rows.
    pub(crate) fn batch(&mut self, sql: &'static str) -> Result<(), DbError> {
        trace_sql(sql);
        match &self.inner {
            Inner::Sqlite(session) => sqlite::batch(session, sql),
            Inner::Postgres(_) => Err(DbError::Other("not a SQLite connection".into())),
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self.inner {
            Inner::Sqlite(_) => Dialect::Sqlite,
            Inner::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub async fn execute(&mut self, statement: Statement) -> Result<u64, DbError> {
        self.before(&statement.sql)?;
        match &mut self.inner {
            Inner::Sqlite(connection) => sqlite::execute(connection, &statement),
            Inner::Postgres(session) => session.execute(statement).await,
        }
    }

    /// Runs a statement of fixed text with `$1`, `$2` … on a system table, and returns the number of rows that it changed.
    pub async fn run(&mut self, sql: &'static str, params: Vec<Param>) -> Result<u64, DbError> {
        self.execute(Statement { sql: self.placeholders(sql), params }).await
    }

    /// Runs a query of fixed text with `$1`, `$2` … on system tables.
    pub async fn fetch(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>, DbError> {
        let statement = Statement { sql: self.placeholders(sql), params };
        self.fetch_rows(statement).await
    }

    /// Runs a query of any text. Its columns have the types of system tables.
    pub async fn fetch_rows(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        self.before(&statement.sql)?;
        match &mut self.inner {
            Inner::Sqlite(connection) => sqlite::fetch(connection, &statement),
            Inner::Postgres(session) => session.fetch(statement).await,
        }
    }

    /// The one integer that a statement returns.
    pub async fn fetch_integer(&mut self, statement: Statement) -> Result<i64, DbError> {
        match self.fetch_rows(statement).await?.first() {
            Some(row) => row.integer(0),
            None => Err(DbError::Other("a count gave no row".into())),
        }
    }

    /// At most `rows_max` rows as JSON. `columns` are the selected columns in their order.
    ///
    /// # Errors
    /// [`DbError::AnswerTooLarge`] as soon as the rows have more than `bytes_max` bytes. The rest is not read.
    pub async fn fetch_json(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Page, DbError> {
        self.before(&statement.sql)?;
        match &mut self.inner {
            Inner::Sqlite(connection) => sqlite::fetch_json(connection, &statement, columns, rows_max, bytes_max),
            Inner::Postgres(session) => session.fetch_json(statement, columns, rows_max, bytes_max).await,
        }
    }

    /// All rows. The last `hidden` of `columns` are read but not shown.
    ///
    /// # Errors
    /// [`DbError::AnswerTooLarge`] if the counted records have more bytes than `most`.
    pub async fn fetch_records(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        hidden: usize,
        most: RecordsMax,
    ) -> Result<Vec<Record>, DbError> {
        self.before(&statement.sql)?;
        match &mut self.inner {
            Inner::Sqlite(connection) => sqlite::fetch_records(connection, &statement, columns, hidden, most),
            Inner::Postgres(session) => session.fetch_records(statement, columns, hidden, most).await,
        }
    }

    /// Puts `head` and all rows into a spool. `render` writes each row. Only few rows are in memory at a time, and each row is
    /// put into the spool soon after it was read.
    ///
    /// # Errors
    /// [`DbError::AnswerTooLarge`] if a row has more than `row_bytes_max` bytes, [`DbError::Interrupted`] if nobody reads the rows any
    /// more.
    pub async fn spool_rows(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        row_bytes_max: usize,
        head: Vec<u8>,
        render: &(dyn Fn(&Record, &mut Vec<u8>) + Send + Sync),
        spool: &Spool,
    ) -> Result<(), DbError> {
        self.before(&statement.sql)?;
        let rows = SpooledRows::new(columns, row_bytes_max, head, render);
        match &mut self.inner {
            Inner::Sqlite(connection) => sqlite::spool_rows(connection, &statement, columns, rows, spool),
            Inner::Postgres(session) => session.spool_rows(statement, columns, rows, spool).await,
        }
    }

    /// Runs the insert of one row (`sql`) for each of several new records of one object.
    ///
    /// # Errors
    /// The first failure, with the index of its record.
    pub async fn insert_each(&mut self, sql: String, plans: &[CreatePlan]) -> Result<(), (usize, DbError)> {
        let mut statement = Statement { sql: sql.into(), params: Vec::new() };
        for (index, plan) in plans.iter().enumerate() {
            statement.params.clear();
            statement.params.extend(insert_params(plan));
            trace_sql(&statement.sql);
            match &mut self.inner {
                Inner::Sqlite(connection) => {
                    sqlite::execute(connection, &statement).map_err(|error| (index, error))?;
                    self.index_new_row(plan.object.id, plan.search_document());
                }
                Inner::Postgres(session) => {
                    session.execute(statement.clone()).await.map_err(|error| (index, error))?;
                }
            }
        }
        Ok(())
    }

    /// Runs one step of a merge of SQLite's search index, and returns whether there is more to do. With `begins`, it starts a
    /// merge of the complete index, unless the index has no leftovers of deleted rows.
    pub async fn merge_search(&mut self, merge: SearchMerge, begins: bool) -> Result<bool, DbError> {
        let SearchMerge { leftovers, merge } = merge;
        if begins && self.fetch_rows(Statement { sql: leftovers.into(), params: Vec::new() }).await?.is_empty() {
            return Ok(false);
        }
        let pages = if begins { -MERGED_PAGES } else { MERGED_PAGES };
        let changes = || Statement { sql: "SELECT total_changes()".to_owned().into(), params: Vec::new() };
        let before = self.fetch_integer(changes()).await?;
        self.execute(Statement { sql: merge.into(), params: vec![pages.into()] }).await?;
        // This is how FTS5 reports the end: a step that finds nothing to merge counts as one change.
        Ok(self.fetch_integer(changes()).await? - before > 1)
    }

    /// Adds the text of the row that was just inserted to SQLite's search index.
    pub fn index_new_row(&mut self, object_id: i64, document: Option<String>) {
        if let (Inner::Sqlite(driver), Some(document)) = (&self.inner, document) {
            let row = driver.last_insert_rowid();
            self.effects.search.push(SearchChange { object_id, row, is_new: true, document: Some(document) });
        }
    }

    /// Stores a row's new text in SQLite's search index. `row` is the tail of its record.
    pub fn index_row(&mut self, object_id: i64, row: Option<i64>, document: Option<String>) {
        if let (Inner::Sqlite(_), Some(row)) = (&self.inner, row) {
            self.effects.search.push(SearchChange { object_id, row, is_new: false, document });
        }
    }

    /// Makes a savepoint before a statement that may fail. It does nothing on SQLite, where a failed statement changes nothing
    /// and does not end the transaction. To undo statements that succeeded, use [`Connection::begin_nested`].
    pub async fn savepoint(&mut self) -> Result<Savepoint, DbError> {
        self.savepoints += 1;
        let number = self.savepoints;
        self.on_postgres(&format!("SAVEPOINT svc_step_{number}")).await?;
        Ok(Savepoint { number })
    }

    /// Moves a savepoint to the present point of the transaction, or makes one there. In a loop, this is better than a savepoint for
    /// each step: Postgres keeps each of them until the end, and many of them make other transactions slower.
    pub async fn savepoint_here<'s>(&mut self, savepoint: &'s mut Option<Savepoint>) -> Result<&'s Savepoint, DbError> {
        match savepoint {
            Some(known) => {
                let number = known.number;
                self.on_postgres(&format!("RELEASE SAVEPOINT svc_step_{number}; SAVEPOINT svc_step_{number}")).await?;
                Ok(known)
            }
            None => Ok(savepoint.insert(self.savepoint().await?)),
        }
    }

    /// Undoes everything since the savepoint, also what was done since later ones.
    pub async fn back_to_savepoint(&mut self, savepoint: &Savepoint) -> Result<(), DbError> {
        match &mut self.inner {
            Inner::Sqlite(_) => Ok(()),
            Inner::Postgres(session) => session.undo(format!("ROLLBACK TO SAVEPOINT svc_step_{}", savepoint.number)).await,
        }
    }

    /// Begins a nested transaction. It can be undone while the transaction around it goes on.
    ///
    /// [`Connection::back_to_savepoint`] undoes statements on Postgres only, and no effects. [`Connection::undo_nested`] undoes
    /// statements on both engines, with their events, counts and other effects. So on SQLite a nested transaction costs two
    /// statements, or three if it is undone, where a savepoint costs none.
    pub async fn begin_nested(&mut self) -> Result<NestedTransaction, DbError> {
        self.savepoints += 1;
        let number = self.savepoints;
        // SQLite keeps its statements prepared, so the name is not a new one each time.
        self.define(format!("SAVEPOINT svc_nested_{}", self.effects.nested.len() + 1)).await?;
        let before = self.effects.begin_nested();
        self.effects.nested.push((number, before));
        Ok(NestedTransaction { number })
    }

    /// Commits a nested transaction. Its changes then belong to the transaction around it.
    ///
    /// # Errors
    /// [`DbError::Other`] if a nested transaction within it is still open, or if it was undone with one around it.
    pub async fn commit_nested(&mut self, nested: NestedTransaction) -> Result<(), DbError> {
        let depth = self.depth_of(&nested)?;
        if depth != self.effects.nested.len() {
            return Err(DbError::Other("a nested transaction has another one within it that is still open".into()));
        }
        self.define(format!("RELEASE SAVEPOINT svc_nested_{depth}")).await?;
        if let Some((_, before)) = self.effects.nested.pop() {
            self.effects.commit_nested(before);
        }
        Ok(())
    }

    /// Undoes a nested transaction, with those within it that are still open.
    ///
    /// # Errors
    /// [`DbError::Other`] if it was undone before, with one around it.
    pub async fn undo_nested(&mut self, nested: NestedTransaction) -> Result<(), DbError> {
        let depth = self.depth_of(&nested)?;
        let back = format!("ROLLBACK TO SAVEPOINT svc_nested_{depth}");
        let release = format!("RELEASE SAVEPOINT svc_nested_{depth}");
        if let Inner::Postgres(session) = &mut self.inner {
            session.undo(format!("{back}; {release}")).await?;
        } else {
            self.define(back).await?;
            self.define(release).await?;
        }
        self.effects.nested.truncate(depth);
        if let Some((_, before)) = self.effects.nested.pop() {
            self.effects.undo_nested(before);
        }
        Ok(())
    }

    /// The number of nested transactions that are open around this one, with itself.
    fn depth_of(&self, nested: &NestedTransaction) -> Result<usize, DbError> {
        let place = self.effects.nested.iter().position(|(number, _)| *number == nested.number);
        place.map(|place| place + 1).ok_or_else(|| DbError::Other("a nested transaction has ended already".into()))
    }

    async fn on_postgres(&mut self, sql: &str) -> Result<(), DbError> {
        match self.inner {
            Inner::Sqlite(_) => Ok(()),
            Inner::Postgres(_) => self.define(sql.to_owned()).await,
        }
    }

    /// The first row. `columns` are the selected columns in their order.
    pub async fn fetch_record(&mut self, statement: Statement, columns: &[Column]) -> Result<Option<Record>, DbError> {
        self.before(&statement.sql)?;
        match &mut self.inner {
            Inner::Sqlite(connection) => sqlite::fetch_record(connection, &statement, columns),
            Inner::Postgres(session) => session.fetch_record(statement, columns).await,
        }
    }

    /// Changes a record by a statement that selects the record afterwards and the record before, and returns both in this order.
    /// Only Postgres has such statements.
    pub async fn fetch_change(&mut self, statement: Statement, columns: &[Column]) -> Result<Option<(Record, Record)>, DbError> {
        self.before(&statement.sql)?;
        match &mut self.inner {
            Inner::Sqlite(_) => Err(DbError::Other("SQLite does not return the record before a change".into())),
            Inner::Postgres(session) => session.fetch_change(statement, columns).await,
        }
    }

    /// Undoes a transaction of Postgres, after one of its statements failed. Such a transaction reads nothing any more. After this,
    /// the body may read what it needs to explain the failure. It cannot succeed.
    pub async fn undo(&mut self) -> Result<(), DbError> {
        match &mut self.inner {
            Inner::Sqlite(_) => Err(DbError::Other("SQLite reads in a transaction after a failure".into())),
            Inner::Postgres(session) => {
                self.effects.is_undone = true;
                session.undo("ROLLBACK; BEGIN READ ONLY").await
            }
        }
    }

    /// Runs a definition statement (DDL), which takes no parameters.
    pub async fn define(&mut self, sql: String) -> Result<(), DbError> {
        self.execute(Statement { sql: sql.into(), params: Vec::new() }).await.map(|_| ())
    }

    /// Adds `difference` to the stored count of an object when the transaction commits.
    pub fn count_rows(&mut self, object_id: i64, difference: i64) {
        self.effects.counts.push((object_id, difference));
    }

    /// The stored count of an object. It is exact in this transaction's snapshot and needs no scan.
    pub async fn kept_count(&mut self, object_id: i64) -> Result<i64, DbError> {
        let rows = self
            .fetch("SELECT CAST(coalesce(sum(rows), 0) AS BIGINT) FROM svc_counts WHERE object_id = $1", vec![object_id.into()])
            .await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// Writes `$1` as `?1` for SQLite. System statements contain no other dollar sign.
    pub(crate) fn placeholders(&self, sql: impl Into<String>) -> SqlText {
        let sql = sql.into();
        match self.inner {
            Inner::Sqlite(_) => SqlText::Written(sql.replace('$', "?")),
            Inner::Postgres(_) => SqlText::Written(sql),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::path::Path;

    use blockbase_schema::{ColumnType, FieldType, Object, Value};
    use futures_util::FutureExt;
    use parking_lot::Mutex;
    use tracing::field::{Field, Visit};
    use tracing::{Event, Metadata, Subscriber, span};
    use uuid::Uuid;

    use super::*;

    /// Collects the statements that the log shows.
    #[derive(Clone, Default)]
    struct Statements(Arc<Mutex<Vec<String>>>);

    impl Visit for Statements {
        fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

        fn record_str(&mut self, field: &Field, value: &str) {
            if field.name() == "statement" {
                self.0.lock().push(value.to_owned());
            }
        }
    }

    impl Subscriber for Statements {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "blockbase_store::sql"
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    /// Runs a read on a new SQLite connection. Returns the statements that the log shows, and whether each of the read's own ones
    /// succeeded. `is_last` has, for each of them, whether the read says before it that it is the last one.
    fn read(is_last: &[bool]) -> (Vec<String>, Vec<bool>) {
        let session = sqlite::Session::open(Path::new(":memory:"), true).expect("a database");
        let mut connection = Connection::new(Inner::Sqlite(session));
        let (statements, mut succeeded) = (Statements::default(), Vec::new());
        tracing::subscriber::with_default(statements.clone(), || {
            connection.begin_read();
            for (number, is_last) in is_last.iter().enumerate() {
                if *is_last {
                    connection.ends_with_next();
                }
                let statement = Statement { sql: format!("SELECT {number}").into(), params: Vec::new() };
                let found = connection.fetch_integer(statement).now_or_never().expect("SQLite never waits");
                succeeded.push(found.is_ok());
            }
            connection.end_read().expect("an end");
        });
        let Inner::Sqlite(session) = &connection.inner else { panic!("the engine is SQLite") };
        assert!(session.is_autocommit(), "no transaction stays open");
        let shown = statements.0.lock().clone();
        (shown, succeeded)
    }

    #[test]
    fn only_a_read_of_several_statements_is_a_transaction() {
        assert!(read(&[]).0.is_empty(), "nothing ran");
        assert_eq!(read(&[true]), (vec!["SELECT 0".to_owned()], vec![true]));
        assert_eq!(read(&[false]), (["BEGIN", "SELECT 0", "COMMIT"].map(str::to_owned).to_vec(), vec![true]));
        // What ran before the last statement, such as a check of the reader, sees the same moment.
        let both = ["BEGIN", "SELECT 0", "SELECT 1", "COMMIT"].map(str::to_owned).to_vec();
        assert_eq!(read(&[false, true]), (both, vec![true; 2]));
        // Another statement would see another moment.
        assert_eq!(read(&[true, false, false]), (vec!["SELECT 0".to_owned()], vec![true, false, false]));
    }

    #[test]
    fn the_trace_shows_the_statement_of_each_record_of_a_bulk_insert() {
        let session = sqlite::Session::open(Path::new(":memory:"), true).expect("a database");
        session.execute_batch("CREATE TABLE t (name TEXT, version INTEGER)").expect("a table");
        let column = Column::of_result("name".to_owned(), FieldType::Text, ColumnType::Text);
        let object = Arc::new(Object::of_result("t", vec![column]));
        let plan = |name: &str| CreatePlan {
            object: Arc::clone(&object),
            id: Uuid::nil(),
            values: vec![Value::Text(name.to_owned())],
            json: Vec::new(),
            version: 1,
        };
        let (plans, sql) = ([plan("one"), plan("two")], "INSERT INTO t VALUES (?1, ?2)".to_owned());
        let mut connection = Connection::new(Inner::Sqlite(session));
        let statements = Statements::default();
        let inserted = tracing::subscriber::with_default(statements.clone(), || {
            connection.insert_each(sql.clone(), &plans).now_or_never().expect("SQLite never waits")
        });
        inserted.expect("two rows");
        assert_eq!(*statements.0.lock(), [sql.clone(), sql]);
    }
}
