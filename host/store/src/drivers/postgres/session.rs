//! A connection on which a body runs.

use std::sync::Arc;

use blockbase_query::{SqlText, Statement};
use blockbase_quota::Place;
use blockbase_schema::Column;
use futures_util::TryStreamExt;
use sqlx::postgres::{PgQueryResult, PgRow};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::kept::{Away, Kept};
use super::statement;
use crate::error::DbError;
use crate::record::{ExtraValues, Page, Record, RecordWriter, RecordsMax, SpooledRows};
use crate::row::Row;
use crate::spool::{Spool, Unwanted};
use crate::sql_trace::trace_sql;

/// The number of bytes of rows that are rendered before other tasks of the thread get their turn.
const BYTES_A_TURN: usize = 256 * 1024;

/// The connection on which a body runs. It belongs to a pool, and may have a transaction.
pub(crate) struct Session {
    /// `None` after it was given back or closed.
    away: Option<Away>,
    /// The list in which the connection waits for the next caller. `None` if it goes back to the pool.
    kept: Option<Arc<Kept>>,
    /// Whether a statement failed. The connection may be broken, so the pool has to look at it.
    has_failed: bool,
    /// Whether the server could not be reached. Then the other connections may be broken as well.
    has_lost_server: bool,
    /// Whether a statement of the transaction failed, and was not undone. Postgres would answer its COMMIT with a rollback, and
    /// no error.
    is_aborted: bool,
    /// Whether a statement is running, or still has rows that were not read.
    is_busy: bool,
    in_transaction: bool,
    /// The statements that begin the transaction, until they are sent together with the first statement of the body.
    unsent_begin: Option<&'static str>,
    /// The caller's place. It becomes free when the connection does.
    _place: Option<Place>,
}

/// The text as the driver takes it. It is not copied.
fn for_driver(sql: SqlText) -> SqlStr {
    match sql {
        SqlText::Written(text) => AssertSqlSafe(text).into_sql_str(),
        SqlText::Kept(text) => AssertSqlSafe(text).into_sql_str(),
    }
}

/// Closes a connection if its statement or its transaction has not ended. Postgres then ends both. To give it back, the server
/// would have to wait for both.
impl Drop for Session {
    fn drop(&mut self) {
        let Some(away) = self.away.take() else { return };
        if let Some(kept) = self.kept.as_ref().filter(|_| self.has_lost_server) {
            kept.give_back_all();
        }
        if self.is_busy || self.in_transaction {
            drop(away.connection.detach());
        } else if let Some(kept) = self.kept.as_ref().filter(|_| !self.has_failed) {
            kept.keep(away);
        }
    }
}

impl Session {
    /// A connection for a body. A caller's connection waits in `kept` for the next caller afterwards.
    pub(crate) fn new(away: Away, kept: Option<Arc<Kept>>, place: Option<Place>) -> Session {
        Session {
            away: Some(away),
            kept,
            has_failed: false,
            has_lost_server: false,
            is_aborted: false,
            is_busy: false,
            in_transaction: false,
            unsent_begin: None,
            _place: place,
        }
    }

    fn driver(&mut self) -> Result<&mut sqlx::PgConnection, DbError> {
        match &mut self.away {
            Some(away) => Ok(&mut away.connection),
            None => Err(DbError::Other("the connection was given back".into())),
        }
    }

    /// Notes that a statement has ended.
    fn ended<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, DbError> {
        self.is_busy = false;
        self.has_failed |= answer.is_err();
        self.is_aborted |= answer.is_err() && self.in_transaction;
        let answer = answer.map_err(statement::db_error);
        self.has_lost_server |= matches!(answer, Err(DbError::Unavailable(_)));
        answer
    }

    /// Runs statements without parameters.
    pub(crate) async fn run(&mut self, sql: impl Into<String>) -> Result<(), DbError> {
        let sql = SqlText::Written(sql.into());
        trace_sql(&sql);
        let sql = self.after_begin(sql);
        self.send(sql).await
    }

    async fn send(&mut self, sql: SqlText) -> Result<(), DbError> {
        self.is_busy = true;
        let ran: Result<PgQueryResult, sqlx::Error> = sqlx::raw_sql(for_driver(sql)).execute(self.driver()?).await;
        self.ended(ran).map(|_| ())
    }

    /// Undoes a part of the transaction, or all of it, so that it can go on.
    pub(crate) async fn undo(&mut self, sql: impl Into<String>) -> Result<(), DbError> {
        self.run(sql).await?;
        self.is_aborted = false;
        Ok(())
    }

    /// Commits the transaction.
    pub(crate) async fn commit(&mut self, sql: String) -> Result<(), DbError> {
        match self.is_aborted {
            true => Err(DbError::Other("a statement of the transaction failed, and its body went on".into())),
            false => self.end(sql).await,
        }
    }

    async fn end(&mut self, sql: impl Into<String>) -> Result<(), DbError> {
        self.run(sql).await?;
        self.in_transaction = false;
        Ok(())
    }

    pub(crate) async fn begin(&mut self, sql: impl Into<String>) -> Result<(), DbError> {
        self.in_transaction = true;
        self.run(sql).await
    }

    /// Begins a transaction with the next statement. If that statement has no parameters, both need one round trip.
    pub(crate) fn begin_with_next(&mut self, sql: &'static str) {
        trace_sql(sql);
        self.unsent_begin = Some(sql);
    }

    /// Whether the next statement begins the transaction.
    pub(crate) fn begins_with_next(&self) -> bool {
        self.unsent_begin.is_some()
    }

    /// Begins the transaction if its first statement was not sent yet. This is for statements with parameters: Postgres takes
    /// each of them by itself.
    async fn begin_first(&mut self) -> Result<(), DbError> {
        match self.unsent_begin.take() {
            Some(sql) => {
                self.in_transaction = true;
                self.send(sql.to_owned().into()).await
            }
            None => Ok(()),
        }
    }

    /// Statements without parameters, after those that begin the transaction if they were not sent yet.
    fn after_begin(&mut self, sql: SqlText) -> SqlText {
        match self.unsent_begin.take() {
            Some(begin) => {
                self.in_transaction = true;
                SqlText::Written(format!("{begin}; {sql}"))
            }
            None => sql,
        }
    }

    /// Ends the transaction, if there is one, and gives the connection back. The caller does not wait for it.
    pub(crate) fn end_later(mut self, sql: &'static str) {
        if self.in_transaction && !self.is_busy {
            tokio::spawn(async move { self.end(sql).await });
        }
    }

    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, DbError> {
        let Statement { mut sql, params } = statement;
        let is_plain = params.is_empty();
        let arguments = statement::arguments(params)?;
        match is_plain {
            true => sql = self.after_begin(sql),
            false => self.begin_first().await?,
        }
        self.is_busy = true;
        let answer: Result<PgQueryResult, sqlx::Error> = match is_plain {
            // Definitions are not prepared, because they would only fill the statement cache.
            true => sqlx::raw_sql(for_driver(sql)).execute(self.driver()?).await,
            false => sqlx::query_with(for_driver(sql), arguments).execute(self.driver()?).await,
        };
        Ok(self.ended(answer)?.rows_affected())
    }

    /// Gives each row to `take` when it arrives, so that only few rows are in memory. If `take` fails, the rest is not read and the
    /// connection is closed.
    async fn each_row(
        &mut self,
        statement: Statement,
        mut take: impl FnMut(&PgRow) -> Result<usize, DbError>,
    ) -> Result<(), DbError> {
        let arguments = statement::arguments(statement.params)?;
        self.begin_first().await?;
        self.is_busy = true;
        let mut rows = sqlx::query_with(for_driver(statement.sql), arguments).fetch(self.driver()?);
        let mut bytes_of_turn = 0;
        loop {
            match rows.try_next().await {
                Ok(Some(row)) => bytes_of_turn += take(&row)?,
                Ok(None) => break,
                Err(error) => {
                    drop(rows);
                    return self.ended(Err(error));
                }
            }
            if bytes_of_turn > BYTES_A_TURN {
                bytes_of_turn = 0;
                tokio::task::yield_now().await;
            }
        }
        drop(rows);
        self.is_busy = false;
        Ok(())
    }

    pub(crate) async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        let mut found = Vec::new();
        self.each_row(statement, |row| {
            found.push(statement::system_row(row)?);
            Ok(0)
        })
        .await?;
        Ok(found)
    }

    /// The rows of a statement that contains its values. If it is the first one of a transaction, both need one round trip.
    pub(crate) async fn fetch_plain(&mut self, sql: String) -> Result<Vec<Row>, DbError> {
        trace_sql(&sql);
        let sql = self.after_begin(sql.into());
        self.is_busy = true;
        let found: Result<Vec<PgRow>, sqlx::Error> = sqlx::raw_sql(for_driver(sql)).fetch_all(self.driver()?).await;
        self.ended(found)?.iter().map(statement::system_row).collect()
    }

    pub(crate) async fn fetch_json(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Page, DbError> {
        let mut writer = RecordWriter::of_page(columns, rows_max, bytes_max);
        let mut is_first = true;
        self.each_row(statement, |row| {
            if is_first {
                is_first = false;
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
                writer.tail(statement::number(row, columns.len())?);
            }
            writer.row(|index, out| statement::write_cell(out, columns[index].ty, row, index))
        })
        .await?;
        Ok(writer.finish())
    }

    /// Puts rows into a spool. While the spool is full, no row is read, and the database server waits.
    pub(crate) async fn spool_rows(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        mut spooled: SpooledRows<'_>,
        spool: &Spool,
    ) -> Result<(), DbError> {
        let arguments = statement::arguments(statement.params)?;
        self.begin_first().await?;
        // The connection stays busy until all rows are read. So a failure in between closes it.
        self.is_busy = true;
        let mut rows = sqlx::query_with(for_driver(statement.sql), arguments).fetch(self.driver()?);
        let mut is_first = true;
        while let Some(row) = rows.try_next().await.map_err(statement::db_error)? {
            if std::mem::take(&mut is_first) {
                statement::check_types(Some(&row), columns.iter().map(|column| column.ty))?;
            }
            spooled.row(|index, out| statement::write_cell(out, columns[index].ty, &row, index))?;
            if let Some(bytes) = spooled.due() {
                spool.put(bytes).await.map_err(|Unwanted| DbError::Interrupted)?;
                // Rows may arrive so fast that the runtime would not run any other task.
                tokio::task::yield_now().await;
            }
        }
        drop(rows);
        self.is_busy = false;
        match spooled.rest() {
            Some(bytes) => spool.put(bytes).await.map_err(|Unwanted| DbError::Interrupted),
            None => Ok(()),
        }
    }

    pub(crate) async fn fetch_record(&mut self, statement: Statement, columns: &[Column]) -> Result<Option<Record>, DbError> {
        let writer = RecordWriter::new(columns, 1, usize::MAX);
        let mut found = None;
        self.each_row(statement, |row| {
            if found.is_none() {
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
                let extra = statement::extra(row, columns.len())?;
                found = Some(writer.record(0, extra, |index, out| statement::write_cell(out, columns[index].ty, row, index))?);
            }
            Ok(0)
        })
        .await?;
        Ok(found)
    }

    /// The record after a change and the record before it. The statement selects the columns and the version of both.
    pub(crate) async fn fetch_change(
        &mut self,
        statement: Statement,
        columns: &[Column],
    ) -> Result<Option<(Record, Record)>, DbError> {
        let writer = RecordWriter::new(columns, 1, usize::MAX);
        let mut found = None;
        self.each_row(statement, |row| {
            if found.is_none() {
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
                let record = |first: usize| -> Result<Record, DbError> {
                    let extra = ExtraValues { first: statement::number(row, first + columns.len())?, tail: None };
                    writer.record(0, extra, |index, out| statement::write_cell(out, columns[index].ty, row, first + index))
                };
                found = Some((record(0)?, record(columns.len() + 1)?));
            }
            Ok(0)
        })
        .await?;
        Ok(found)
    }

    pub(crate) async fn fetch_records(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        hidden: usize,
        most: RecordsMax,
    ) -> Result<Vec<Record>, DbError> {
        let writer = RecordWriter::new(columns.iter().copied(), 0, usize::MAX);
        let (mut records, mut bytes) = (Vec::new(), 0);
        self.each_row(statement, |row| {
            if records.is_empty() {
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
            }
            let extra = statement::extra(row, columns.len())?;
            let record = writer.record(hidden, extra, |index, out| statement::write_cell(out, columns[index].ty, row, index))?;
            let size = record.bytes();
            if records.len() < most.counted {
                bytes += size;
            }
            if bytes > most.bytes {
                return Err(DbError::AnswerTooLarge);
            }
            records.push(record);
            Ok(size)
        })
        .await?;
        Ok(records)
    }
}
