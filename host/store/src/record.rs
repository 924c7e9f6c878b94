//! A record as the JSON bytes that callers get, with the position of each column's value in them.

use std::ops::Range;
use std::time::{Duration, Instant};

use blockbase_schema::Column;
use bytes::Bytes;

use crate::error::DbError;

/// One record's JSON object. Cells are in the order of the selected columns.
#[derive(Clone, Debug)]
pub struct Record {
    /// The JSON object, followed by the cells that it does not show.
    text: Vec<u8>,
    json_bytes: usize,
    cells: Vec<Range<usize>>,
    extra: ExtraValues,
}

/// The size of the records that a statement may return.
#[derive(Clone, Copy, Debug)]
pub struct RecordsMax {
    /// The maximum number of bytes of the counted records.
    pub bytes: usize,
    /// The number of records whose bytes count, from the first one. A further record may only show that there are more.
    pub counted: usize,
}

impl RecordsMax {
    /// The bytes of all records count.
    pub fn bytes(bytes: usize) -> RecordsMax {
        RecordsMax { bytes, counted: usize::MAX }
    }
}

/// The values that a statement selects after its columns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExtraValues {
    /// The first of these values: the row's version, or the total of a list.
    pub(crate) first: Option<i64>,
    /// The next value: SQLite's rowid, or a flag as 0 or 1.
    pub(crate) tail: Option<i64>,
}

impl Record {
    /// The record's JSON object.
    pub fn json(&self) -> &[u8] {
        &self.text[..self.json_bytes]
    }

    pub fn into_json(mut self) -> Vec<u8> {
        self.text.truncate(self.json_bytes);
        self.text
    }

    /// The JSON text of the `index`th selected column.
    pub fn cell(&self, index: usize) -> &[u8] {
        &self.text[self.cells[index].clone()]
    }

    /// The row's version, which increases with each change of the row.
    ///
    /// # Errors
    /// If the statement did not select it.
    pub fn version(&self) -> Result<i64, DbError> {
        self.extra.first.ok_or_else(|| DbError::Other("a record was read without its version".into()))
    }

    /// The total that a list selects in place of a version. It is the same in each row.
    pub fn total(&self) -> Option<i64> {
        self.extra.first
    }

    /// SQLite's rowid, or the flag of an upsert on Postgres. `None` if the statement selected neither.
    pub fn tail(&self) -> Option<i64> {
        self.extra.tail
    }

    /// The record's approximate size in memory.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The `index`th selected column, which contains a uuid or null.
    pub fn uuid(&self, index: usize) -> Option<uuid::Uuid> {
        let text = std::str::from_utf8(self.cell(index)).ok()?;
        text.trim_matches('"').parse().ok()
    }
}

/// The number of bytes of a usual value as JSON.
const VALUE_BYTES: usize = 24;
/// The maximum memory that a page has before its rows are read.
const PAGE_BYTES: usize = 32 * 1024;

/// Writes rows as JSON objects, one after another, separated by commas.
pub(crate) struct RecordWriter {
    out: Vec<u8>,
    prefixes: Prefixes,
    rows: usize,
    rows_max: usize,
    bytes_max: usize,
    has_more: bool,
    tail: Option<i64>,
}

/// The texts before the values: `{"id":`, `,"title":` and so on, made once for all rows.
struct Prefixes {
    /// All texts, one after another.
    text: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Prefixes {
    fn new<'a>(columns: impl IntoIterator<Item = &'a Column>) -> Prefixes {
        let columns = columns.into_iter();
        let count = columns.size_hint().0;
        let mut prefixes = Prefixes { text: Vec::with_capacity(16 * count), ends: Vec::with_capacity(count) };
        for column in columns {
            prefixes.text.extend_from_slice(if prefixes.ends.is_empty() { b"{\"" } else { b",\"" });
            prefixes.text.extend_from_slice(column.name.as_bytes());
            prefixes.text.extend_from_slice(b"\":");
            prefixes.ends.push(prefixes.text.len());
        }
        prefixes
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

/// The records of one page.
#[derive(Debug)]
pub struct Page {
    /// The records' JSON objects, separated by commas.
    pub rows: Vec<u8>,
    /// The number of records.
    pub count: usize,
    /// Whether the statement returned more rows than were requested.
    pub has_more: bool,
    /// The integer that the statement selected after its columns. It is the same in each row.
    pub tail: Option<i64>,
}

impl RecordWriter {
    /// `rows_max` and `bytes_max` limit the rows that [`RecordWriter::row`] writes.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = &'a Column>, rows_max: usize, bytes_max: usize) -> RecordWriter {
        let prefixes = Prefixes::new(columns);
        RecordWriter { out: Vec::new(), prefixes, rows: 0, rows_max, bytes_max, has_more: false, tail: None }
    }

    /// The same with memory for the rows of a page.
    pub(crate) fn of_page(columns: &[&Column], rows_max: usize, bytes_max: usize) -> RecordWriter {
        let mut writer = RecordWriter::new(columns.iter().copied(), rows_max, bytes_max);
        let row_bytes = writer.prefixes.text.len() + VALUE_BYTES * columns.len();
        writer.out.reserve(row_bytes.saturating_mul(rows_max).min(PAGE_BYTES));
        writer
    }

    /// Appends one row, unless the maximum number is reached, and returns its number of bytes. `cell` appends the JSON of one
    /// column.
    ///
    /// # Errors
    /// If the rows have more bytes than allowed.
    pub(crate) fn row(&mut self, mut cell: impl FnMut(usize, &mut Vec<u8>) -> Result<(), DbError>) -> Result<usize, DbError> {
        if self.rows == self.rows_max {
            self.has_more = true;
            return Ok(0);
        }
        let begun = self.out.len();
        if self.rows > 0 {
            self.out.push(b',');
        }
        for (index, prefix) in self.prefixes.iter().enumerate() {
            self.out.extend_from_slice(prefix);
            cell(index, &mut self.out)?;
            if self.out.len() > self.bytes_max {
                return Err(DbError::AnswerTooLarge);
            }
        }
        self.out.push(b'}');
        self.rows += 1;
        Ok(self.out.len() - begun)
    }

    /// Stores the value that the statement selected after its columns.
    pub(crate) fn tail(&mut self, tail: Option<i64>) {
        self.tail = tail;
    }

    /// A row as a [`Record`] that shows all columns except the last `hidden`.
    pub(crate) fn record<E>(
        &self,
        hidden: usize,
        extra: ExtraValues,
        mut cell: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Record, E> {
        let shown = self.prefixes.ends.len() - hidden;
        let mut text = Vec::with_capacity(512);
        let mut cells = Vec::with_capacity(self.prefixes.ends.len());
        let mut json_bytes = 0;
        for (index, prefix) in self.prefixes.iter().enumerate() {
            if index < shown {
                text.extend_from_slice(prefix);
            }
            let start = text.len();
            cell(index, &mut text)?;
            cells.push(start..text.len());
            if index + 1 == shown {
                text.push(b'}');
                json_bytes = text.len();
            }
        }
        Ok(Record { text, json_bytes, cells, extra })
    }

    /// The rows without brackets around them.
    pub(crate) fn finish(self) -> Page {
        Page { rows: self.out, count: self.rows, has_more: self.has_more, tail: self.tail }
    }
}

/// The number of bytes of rows that are put into a spool at once.
const SPOOLED_BYTES: usize = 64 * 1024;
/// How long a row waits for further rows before it is put into the spool.
const SPOOLED_WAIT: Duration = Duration::from_millis(500);

/// Rows that will be put into a spool. Each is rendered by itself, and several are put into the spool at a time.
pub(crate) struct SpooledRows<'r> {
    writer: RecordWriter,
    row_bytes_max: usize,
    render: &'r (dyn Fn(&Record, &mut Vec<u8>) + Send + Sync),
    out: Vec<u8>,
    put_at: Instant,
}

impl<'r> SpooledRows<'r> {
    pub(crate) fn new(
        columns: &[&Column],
        row_bytes_max: usize,
        head: Vec<u8>,
        render: &'r (dyn Fn(&Record, &mut Vec<u8>) + Send + Sync),
    ) -> SpooledRows<'r> {
        let writer = RecordWriter::new(columns.iter().copied(), 0, usize::MAX);
        SpooledRows { writer, row_bytes_max, render, out: head, put_at: Instant::now() }
    }

    /// Renders one row and returns its number of bytes. `cell` appends the JSON of one column.
    pub(crate) fn row(&mut self, cell: impl FnMut(usize, &mut Vec<u8>) -> Result<(), DbError>) -> Result<usize, DbError> {
        let record = self.writer.record(0, ExtraValues::default(), cell)?;
        if record.bytes() > self.row_bytes_max {
            return Err(DbError::AnswerTooLarge);
        }
        (self.render)(&record, &mut self.out);
        Ok(record.bytes())
    }

    /// The rows that have to be put into the spool now, if there are any.
    pub(crate) fn due(&mut self) -> Option<Bytes> {
        (self.out.len() >= SPOOLED_BYTES || (!self.out.is_empty() && self.put_at.elapsed() >= SPOOLED_WAIT)).then(|| self.take())
    }

    /// The remaining rows at the end.
    pub(crate) fn rest(mut self) -> Option<Bytes> {
        (!self.out.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Bytes {
        self.put_at = Instant::now();
        std::mem::replace(&mut self.out, Vec::with_capacity(2 * SPOOLED_BYTES)).into()
    }
}
