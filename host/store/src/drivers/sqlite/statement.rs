//! Statements on SQLite: binding of values, rows as JSON, and the table of its errors.

use std::sync::Arc;

use blockbase_query::{Param, Statement};
use blockbase_schema::{Column, ColumnType, json, time};
use rusqlite::types::{ToSqlOutput, Value as Bound, ValueRef};
use rusqlite::{Connection as Driver, ErrorCode, Rows, ffi};

use crate::error::DbError;
use crate::record::{ExtraValues, Page, Record, RecordWriter, RecordsMax, SpooledRows};
use crate::row::{Cell, Row};
use crate::spool::{Spool, Unwanted};

use super::meter::{RowBytes, Spent};
use super::session::Session;

/// Maps SQLite's errors. Their messages name columns as `table.column`, and checks by their names.
pub(crate) fn db_error(error: rusqlite::Error) -> DbError {
    let rusqlite::Error::SqliteFailure(code, message) = &error else { return DbError::Other(error.into()) };
    let detail = message.as_deref().and_then(|message| message.split_once("constraint failed: ")).map(|(_, detail)| detail);
    let columns = || -> Vec<String> {
        detail
            .into_iter()
            .flat_map(|detail| detail.split(", "))
            .filter_map(|column| column.split_once('.').map(|(_, name)| name.to_owned()))
            .collect()
    };
    match (code.code, code.extended_code) {
        (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => {
            DbError::Unique { columns: columns(), index: None }
        }
        (_, ffi::SQLITE_CONSTRAINT_NOTNULL) => DbError::NotNull { column: columns().into_iter().next() },
        (_, ffi::SQLITE_CONSTRAINT_CHECK) => DbError::Check { name: detail.unwrap_or_default().to_owned() },
        (_, ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => DbError::ForeignKey { relationship: None },
        (ErrorCode::OperationInterrupted, _) => DbError::Interrupted,
        (ErrorCode::DiskFull, _) => DbError::StorageFull(error.into()),
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen, _) => {
            DbError::Unavailable(error.into())
        }
        (ErrorCode::Unknown, _)
            if message.as_deref().is_some_and(|message| message.starts_with("too many levels of trigger")) =>
        {
            DbError::TooDeep
        }
        (ErrorCode::Unknown, _)
            if message.as_deref().is_some_and(|message| message.starts_with("no such ") || message.contains("has no column")) =>
        {
            DbError::SchemaMoved(error.into())
        }
        _ => DbError::Other(error.into()),
    }
}

impl From<Spent> for DbError {
    fn from(_: Spent) -> Self {
        DbError::Interrupted
    }
}

fn bind(param: &Param) -> Result<ToSqlOutput<'_>, DbError> {
    let text = |text: String| ToSqlOutput::Owned(Bound::Text(text));
    let null = ToSqlOutput::Owned(Bound::Null);
    Ok(match param {
        Param::Text(Some(value)) | Param::Json(Some(value)) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
        Param::Bytes(Some(bytes)) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        Param::UuidList(ids) => {
            let mut list = String::with_capacity(ids.len() * 39 + 2);
            for id in ids {
                list.push_str(if list.is_empty() { "[\"" } else { ",\"" });
                list.push_str(id.hyphenated().encode_lower(&mut [0; 36]));
                list.push('"');
            }
            list.push_str(if list.is_empty() { "[]" } else { "]" });
            text(list)
        }
        Param::IntegerList(list) => text(serde_json::to_string(list).map_err(|error| DbError::Other(error.into()))?),
        Param::OptionalBytesList(_) => return Err(DbError::Other("SQLite binds no lists of bytes".into())),
        Param::OptionalTextList(list) => text(serde_json::to_string(list).map_err(|error| DbError::Other(error.into()))?),
        Param::TextList(Some(list)) => text(serde_json::to_string(list).map_err(|error| DbError::Other(error.into()))?),
        Param::Integer(Some(number)) => ToSqlOutput::Owned(Bound::Integer(i64::from(*number))),
        Param::BigInteger(Some(number)) | Param::Decimal(Some((number, _))) => ToSqlOutput::Owned(Bound::Integer(*number)),
        Param::Float(Some(number)) => ToSqlOutput::Owned(Bound::Real(*number)),
        Param::Boolean(Some(value)) => ToSqlOutput::Owned(Bound::Integer(i64::from(*value))),
        Param::Date(Some(days)) => text(time::format_date(*days)),
        Param::Datetime(Some(millis)) => text(time::format_datetime(*millis)),
        Param::Time(Some(millis)) => text(time::format_time(*millis)),
        Param::Uuid(Some(id)) => text(id.hyphenated().to_string()),
        Param::Text(None)
        | Param::Json(None)
        | Param::Bytes(None)
        | Param::TextList(None)
        | Param::Integer(None)
        | Param::BigInteger(None)
        | Param::Decimal(None)
        | Param::Float(None)
        | Param::Boolean(None)
        | Param::Date(None)
        | Param::Datetime(None)
        | Param::Time(None)
        | Param::Uuid(None) => null,
    })
}

fn query<T>(
    session: &mut Session,
    statement: &Statement,
    read: impl FnOnce(&mut Rows<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let meter = Arc::clone(&session.meter);
    if meter.watches_sorts() && !meter.begin_statement(sorts(session, &statement.sql).map_err(db_error)?) {
        return Err(DbError::NoRoomToSort);
    }
    match query_now(session, statement, read) {
        Err(DbError::Interrupted) if meter.is_out_of_room() => Err(DbError::NoRoomToSort),
        answer => answer,
    }
}

/// Texts in the steps of a plan that put rows into a temporary table.
const SORTING_STEPS: [&str; 3] = ["TEMP B-TREE", "MATERIALIZE ", "AUTOMATIC "];

/// Whether a statement puts rows into a temporary table, which may become a file. Bound values do not change the plan.
fn sorts(driver: &Driver, sql: &str) -> rusqlite::Result<bool> {
    // SQLite prepares the kept statement again after the schema has changed.
    let mut plan = driver.prepare_cached(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let mut steps = plan.raw_query();
    while let Some(step) = steps.next()? {
        let step = step.get_ref("detail")?.as_str()?;
        if SORTING_STEPS.iter().any(|sorting| step.contains(sorting)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn query_now<T>(
    driver: &mut Driver,
    statement: &Statement,
    read: impl FnOnce(&mut Rows<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let mut prepared = driver.prepare_cached(&statement.sql).map_err(db_error)?;
    for (index, param) in statement.params.iter().enumerate() {
        prepared.raw_bind_parameter(index + 1, bind(param)?).map_err(db_error)?;
    }
    let mut rows = prepared.raw_query();
    read(&mut rows)
}

/// Runs a statement without parameters and without rows.
pub(crate) fn batch(driver: &Driver, sql: &'static str) -> Result<(), DbError> {
    driver.prepare_cached(sql).and_then(|mut statement| statement.raw_execute()).map(|_| ()).map_err(db_error)
}

pub(crate) fn execute(session: &mut Session, statement: &Statement) -> Result<u64, DbError> {
    query(session, statement, |rows| {
        while rows.next().map_err(db_error)?.is_some() {}
        Ok(())
    })?;
    Ok(session.changes())
}

pub(crate) fn fetch(session: &mut Session, statement: &Statement) -> Result<Vec<Row>, DbError> {
    query(session, statement, |rows| {
        let mut found = Vec::new();
        let width = width_of(rows);
        while let Some(row) = rows.next().map_err(db_error)? {
            let mut cells = Vec::with_capacity(width);
            for index in 0..width {
                cells.push(match row.get_ref(index).map_err(db_error)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(number) => Cell::Integer(number),
                    ValueRef::Real(_) => return Err(DbError::Other("a real in a system row".into())),
                    // Bytes that are not UTF-8 stay bytes, so that the code that reads the row can detect them.
                    ValueRef::Text(text) => match std::str::from_utf8(text) {
                        Ok(text) => Cell::Text(text.to_owned()),
                        Err(_) => Cell::Bytes(text.to_owned()),
                    },
                    ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_owned()),
                });
            }
            found.push(Row { cells });
        }
        Ok(found)
    })
}

pub(crate) fn fetch_json(
    session: &mut Session,
    statement: &Statement,
    columns: &[&Column],
    rows_max: usize,
    bytes_max: usize,
) -> Result<Page, DbError> {
    let meter = Arc::clone(&session.meter);
    query(session, statement, |rows| {
        let mut tail = tail_of(rows, columns.len());
        let mut writer = RecordWriter::of_page(columns, rows_max, bytes_max);
        let mut read = RowBytes::new(&meter);
        while let Some(row) = rows.next().map_err(db_error)? {
            let bytes = writer.row(|index, out| {
                let value = row.get_ref(index).map_err(db_error)?;
                if bytes_of(value) > LONG_VALUE_BYTES {
                    meter.bytes(bytes_of(value))?;
                }
                write_cell(out, columns[index].ty, value)
            })?;
            read.add(bytes)?;
            // The integer is the same in each row, so it is read once.
            if let Some(index) = tail.take() {
                writer.tail(Some(row.get(index).map_err(db_error)?));
            }
        }
        read.end()?;
        Ok(writer.finish())
    })
}

/// Values larger than this are counted before they are rendered. All others are counted with their row.
const LONG_VALUE_BYTES: usize = 64 * 1024;

/// The number of bytes of a value that are copied to render it.
fn bytes_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

pub(crate) fn fetch_record(session: &mut Session, statement: &Statement, columns: &[Column]) -> Result<Option<Record>, DbError> {
    query(session, statement, |rows| {
        let width = width_of(rows);
        let Some(row) = rows.next().map_err(db_error)? else { return Ok(None) };
        let writer = RecordWriter::new(columns, 1, usize::MAX);
        let record = record_of(&writer, row, 0, width, columns.len(), |index| columns[index].ty)?;
        // An `UPDATE … RETURNING` takes effect only after all its rows were read.
        while rows.next().map_err(db_error)?.is_some() {}
        Ok(Some(record))
    })
}

pub(crate) fn fetch_records(
    session: &mut Session,
    statement: &Statement,
    columns: &[&Column],
    hidden: usize,
    most: RecordsMax,
) -> Result<Vec<Record>, DbError> {
    let meter = Arc::clone(&session.meter);
    query(session, statement, |rows| {
        let width = width_of(rows);
        let writer = RecordWriter::new(columns.iter().copied(), 0, usize::MAX);
        let (mut records, mut bytes, mut read) = (Vec::new(), 0, RowBytes::new(&meter));
        while let Some(row) = rows.next().map_err(db_error)? {
            let record = record_of(&writer, row, hidden, width, columns.len(), |index| columns[index].ty)?;
            read.add(record.bytes())?;
            if records.len() < most.counted {
                bytes += record.bytes();
            }
            if bytes > most.bytes {
                return Err(DbError::AnswerTooLarge);
            }
            records.push(record);
        }
        read.end()?;
        Ok(records)
    })
}

/// Puts rows into a spool, on a thread that may wait for the client.
pub(crate) fn spool_rows(
    session: &mut Session,
    statement: &Statement,
    columns: &[&Column],
    mut spooled: SpooledRows<'_>,
    spool: &Spool,
) -> Result<(), DbError> {
    let meter = Arc::clone(&session.meter);
    let put = |bytes| spool.put_blocking(bytes).map_err(|Unwanted| DbError::Interrupted);
    query(session, statement, |rows| {
        while let Some(row) = rows.next().map_err(db_error)? {
            let bytes = spooled.row(|index, out| write_cell(out, columns[index].ty, row.get_ref(index).map_err(db_error)?))?;
            meter.bytes(bytes)?;
            if let Some(bytes) = spooled.due() {
                put(bytes)?;
            }
        }
        spooled.rest().map_or(Ok(()), put)
    })
}

/// The number of columns in a statement's result.
fn width_of(rows: &Rows<'_>) -> usize {
    rows.as_ref().map_or(0, |statement| statement.column_count())
}

/// The index of the integer that a list selects after its columns.
fn tail_of(rows: &Rows<'_>, columns: usize) -> Option<usize> {
    Some(columns).filter(|place| *place < width_of(rows))
}

/// Makes a record from a row. The row has `width` columns, of which the record has `columns`.
fn record_of(
    writer: &RecordWriter,
    row: &rusqlite::Row<'_>,
    hidden: usize,
    width: usize,
    columns: usize,
    ty: impl Fn(usize) -> ColumnType,
) -> Result<Record, DbError> {
    let number = |place: usize| (place < width).then(|| row.get::<_, i64>(place)).transpose().map_err(db_error);
    let extra = ExtraValues { first: number(columns)?, tail: number(columns + 1)? };
    writer.record(hidden, extra, |index, out| write_cell(out, ty(index), row.get_ref(index).map_err(db_error)?))
}

fn utf8(text: &[u8]) -> Result<&str, DbError> {
    std::str::from_utf8(text).map_err(|error| DbError::Other(error.into()))
}

/// Appends one value as JSON. Dates, times and ids are stored as canonical text, so they only need quotes.
fn write_cell(out: &mut Vec<u8>, ty: ColumnType, value: ValueRef<'_>) -> Result<(), DbError> {
    match (ty, value) {
        (_, ValueRef::Null) => out.extend_from_slice(b"null"),
        (ColumnType::Text, ValueRef::Text(text)) => json::write_string(out, utf8(text)?),
        (ColumnType::Json | ColumnType::TextList, ValueRef::Text(text)) => out.extend_from_slice(text),
        (ColumnType::Uuid | ColumnType::Date | ColumnType::Datetime | ColumnType::Time, ValueRef::Text(text)) => {
            out.push(b'"');
            out.extend_from_slice(text);
            out.push(b'"');
        }
        (ColumnType::Integer | ColumnType::BigInteger, ValueRef::Integer(number)) => json::write_integer(out, number),
        (ColumnType::Decimal { scale }, ValueRef::Integer(number)) => json::write_decimal(out, number, scale),
        (ColumnType::Float, ValueRef::Real(number)) => json::write_float(out, number),
        (ColumnType::Boolean, ValueRef::Integer(number)) => {
            out.extend_from_slice(if number == 0 { b"false" } else { b"true" });
        }
        // The column was altered after the statement was planned.
        (ty, value) => return Err(DbError::SchemaMoved(format!("a {ty:?} column holds {:?}", value.data_type()).into())),
    }
    Ok(())
}
