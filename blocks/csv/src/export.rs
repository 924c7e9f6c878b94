//! `export`: records as CSV.

use std::borrow::Cow;

use blockbase_sdk::{Context, Error, JsonSchema, action, data, deadline, schemars};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cell::guarded;
use crate::record::Record;
use crate::refusal;
use crate::table;

/// Records of one page. The service returns no more.
const PAGE_SIZE: u64 = 100;
/// Bytes of the text within the answer's JSON. A call may return 4 MiB, and the rest of the answer needs some room.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024 - 1024;
/// Pages of one call. Each costs two calls of the host, and 10,000 are allowed.
const PAGES_MAX: u64 = 4_000;
/// With less time left than this, no further page is begun. A page takes milliseconds unless the database is busy.
const RESERVE_MS: u64 = 20_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Export {
    /// The object whose records are exported.
    object: String,
    /// The columns, in their order. All fields, where it is left out.
    #[schemars(length(min = 1))]
    fields: Option<Vec<String>>,
    /// Which records, as in a list.
    #[serde(default)]
    filters: Vec<Filter>,
    /// Which records, by a text that they hold.
    search: Option<String>,
    /// In which order, as in a list: `-created_at,name`. By `id`, that is by age, where it is left out.
    sort: Option<String>,
    /// Most records. All that fit, where it is left out.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// How many records to pass over: `next` of the call before.
    #[serde(default)]
    offset: u64,
    /// What stands between cells; a comma, where it is left out.
    delimiter: Option<char>,
    /// Whether texts that a spreadsheet would take for formulas get an apostrophe in front.
    #[serde(default = "yes")]
    safe: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

#[derive(Serialize)]
pub struct Exported {
    csv: String,
    rows: u64,
    /// Where a next call goes on; none where all is there.
    next: Option<u64>,
}

fn yes() -> bool {
    true
}

/// Gives records as CSV: as many as fit into an answer, and where a next call goes on.
#[action(timeout_ms = 60000, rbac(resource = "csv:use", action = "read"))]
pub fn export(_context: &Context, input: Export) -> Result<Exported, Error> {
    let mut text = Text { csv: String::new(), bytes: 0, delimiter: table::delimiter(input.delimiter)?, safe: input.safe };
    let mut columns = input.fields.clone();
    if let Some(columns) = &columns {
        text.push(columns.iter().map(|name| Cow::Borrowed(name.as_str())))?;
    }
    let (mut rows, mut pages) = (0, 0);
    let next = loop {
        let size = input.limit.map_or(PAGE_SIZE, |limit| PAGE_SIZE.min(limit - rows));
        if size == 0 {
            // The caller set this limit, so it does not matter here whether there are more records.
            break None;
        }
        if pages == PAGES_MAX || (pages > 0 && deadline::remaining_ms() < RESERVE_MS) {
            break Some(input.offset.saturating_add(rows));
        }
        pages += 1;
        let query = json!({
            "filters": input.filters,
            "search": input.search,
            "sort": input.sort.as_deref().unwrap_or("id"),
            "limit": size,
            "offset": input.offset.saturating_add(rows),
            "select": input.fields.as_ref().map(|fields| fields.join(",")),
            "count": "none",
        });
        let page = data::query::<Record>(&input.object, query).map_err(refusal::shown)?.data;
        let is_last = page.len() as u64 != size;
        let mut is_full = false;
        for record in page {
            if columns.is_none() {
                let names: Vec<String> = record.0.iter().map(|(name, _)| name.clone()).collect();
                text.push(names.iter().map(|name| Cow::Borrowed(name.as_str())))?;
                columns = Some(names);
            }
            let cells = columns.iter().flatten().map(|name| text.cell(record.raw(name).unwrap_or("null")));
            is_full = !text.push(cells.collect::<Result<Vec<_>, Error>>()?)?;
            if is_full {
                break;
            }
            rows += 1;
        }
        match (is_full, is_last) {
            (true, _) if rows == 0 => return Err(Error::invalid_request("A single record is larger than an answer may be.")),
            (true, _) => break Some(input.offset.saturating_add(rows)),
            (false, true) => break None,
            (false, false) => {}
        }
    };
    Ok(Exported { csv: text.csv, rows, next })
}

/// The CSV text so far.
struct Text {
    csv: String,
    /// Bytes of the text within JSON.
    bytes: usize,
    delimiter: u8,
    safe: bool,
}

impl Text {
    /// A record's value as a cell. Null becomes an empty cell.
    fn cell<'a>(&self, raw: &'a str) -> Result<Cow<'a, str>, Error> {
        Ok(match raw.as_bytes().first() {
            Some(b'"') => {
                let text: String = serde_json::from_str(raw)?;
                Cow::Owned(if self.safe { guarded(&text).into_owned() } else { text })
            }
            Some(b'n') => Cow::Borrowed(""),
            _ => Cow::Borrowed(raw),
        })
    }

    /// Adds a row, unless the text would be too long.
    fn push<'a>(&mut self, cells: impl IntoIterator<Item = Cow<'a, str>>) -> Result<bool, Error> {
        let terminator = csv::Terminator::CRLF;
        let mut writer = csv::WriterBuilder::new().delimiter(self.delimiter).terminator(terminator).from_writer(Vec::new());
        writer.write_record(cells.into_iter().map(|cell| cell.into_owned()))?;
        let row = String::from_utf8(writer.into_inner().map_err(|error| Error::failed(error.to_string()))?)?;
        let bytes = self.bytes + bytes_in_json(&row);
        let fits = bytes <= TEXT_BYTES_MAX;
        if fits {
            self.csv.push_str(&row);
            self.bytes = bytes;
        }
        Ok(fits)
    }
}

fn bytes_in_json(text: &str) -> usize {
    let of_byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    };
    text.bytes().map(of_byte).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Text {
        Text { csv: String::new(), bytes: 0, delimiter: b',', safe: true }
    }

    #[test]
    fn values_become_cells() {
        let text = text();
        for (raw, expected) in [
            ("null", ""),
            ("true", "true"),
            ("-12345678901234567.89", "-12345678901234567.89"),
            (r#""é\n\"""#, "é\n\""),
            (r#""-1""#, "'-1"),
            (r#"["a","b"]"#, r#"["a","b"]"#),
        ] {
            assert_eq!(text.cell(raw).expect("a cell"), expected);
        }
    }

    #[test]
    fn rows_are_written_by_rfc_4180_and_counted_as_json() {
        let mut text = text();
        assert!(text.push(["a", "b,c", "d\"e", "f\ng", ""].map(Cow::Borrowed)).expect("a row"));
        assert!(text.push([Cow::Borrowed("\u{1}\té\\\u{7f}")]).expect("a row"));
        assert_eq!(text.csv, "a,\"b,c\",\"d\"\"e\",\"f\ng\",\r\n\u{1}\té\\\u{7f}\r\n");
        assert_eq!(text.bytes, serde_json::to_string(&text.csv).expect("JSON").len() - 2);
        let large = "x".repeat(TEXT_BYTES_MAX);
        assert!(!text.push([Cow::Borrowed(large.as_str())]).expect("no error"));
        assert!(text.csv.len() < 100);
    }
}
