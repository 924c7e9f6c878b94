//! A record as the JSON bytes that callers get, with the place of each column's value in them.

use std::ops::Range;

use blockbase_schema::Column;

/// One record's JSON object. Cells are in the order of the columns that were selected.
#[derive(Clone, Debug)]
pub struct Record {
    pub json: Vec<u8>,
    cells: Vec<Range<usize>>,
}

impl Record {
    /// The JSON text of the `index`th selected column.
    pub fn cell(&self, index: usize) -> &[u8] {
        &self.json[self.cells[index].clone()]
    }
}

/// Writes rows as JSON objects, one after another, separated by commas.
pub(crate) struct RecordWriter {
    out: Vec<u8>,
    /// `{"id":`, `,"title":`, … made once for all rows.
    prefixes: Vec<Vec<u8>>,
    rows: usize,
    rows_max: usize,
    has_more: bool,
}

/// Records of one page.
#[derive(Debug)]
pub struct Page {
    /// The records' JSON objects, separated by commas.
    pub rows: Vec<u8>,
    /// Whether the statement gave more rows than were asked for.
    pub has_more: bool,
}

impl RecordWriter {
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = &'a Column>, capacity: usize, rows_max: usize) -> RecordWriter {
        let prefixes = columns
            .into_iter()
            .enumerate()
            .map(|(index, column)| format!("{}\"{}\":", if index == 0 { '{' } else { ',' }, column.name).into_bytes())
            .collect();
        RecordWriter { out: Vec::with_capacity(capacity), prefixes, rows: 0, rows_max, has_more: false }
    }

    /// Appends one row, unless there are enough; `cell` appends the JSON of one column.
    pub(crate) fn row<E>(&mut self, mut cell: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        if self.rows == self.rows_max {
            self.has_more = true;
            return Ok(());
        }
        if self.rows > 0 {
            self.out.push(b',');
        }
        for (index, prefix) in self.prefixes.iter().enumerate() {
            self.out.extend_from_slice(prefix);
            cell(index, &mut self.out)?;
        }
        self.out.push(b'}');
        self.rows += 1;
        Ok(())
    }

    /// As `row`, for the one row of a [`Record`].
    pub(crate) fn record<E>(mut self, mut cell: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>) -> Result<Record, E> {
        let mut cells = Vec::with_capacity(self.prefixes.len());
        for (index, prefix) in self.prefixes.iter().enumerate() {
            self.out.extend_from_slice(prefix);
            let start = self.out.len();
            cell(index, &mut self.out)?;
            cells.push(start..self.out.len());
        }
        self.out.push(b'}');
        Ok(Record { json: self.out, cells })
    }

    /// The rows without brackets around them.
    pub(crate) fn finish(self) -> Page {
        Page { rows: self.out, has_more: self.has_more }
    }
}
