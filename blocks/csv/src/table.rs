//! Reads the text of a CSV file as rows with their lines, by RFC 4180.

use blockbase_sdk::Error;

/// A row that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The line of the file on which the row begins, from 1.
    pub line: u64,
    pub cells: Vec<String>,
}

/// The delimiter as a byte.
pub fn delimiter(given: Option<char>) -> Result<u8, Error> {
    let delimiter = given.unwrap_or(',');
    u8::try_from(delimiter)
        .ok()
        .filter(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | b'\0'))
        .ok_or_else(|| Error::invalid_request(format!("{delimiter:?} cannot separate cells; use `,`, `;`, a tab or the like.")))
}

/// Reads all rows. A byte order mark and blank lines are skipped.
pub fn rows(text: &str, delimiter: u8) -> Result<Vec<Row>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // After a quote that is not closed, the reader would treat the rest of the file as one cell.
    if text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1 {
        let message = "A quote of the CSV is not closed. One that belongs to a cell's text stands twice, in a cell in quotes.";
        return Err(Error::invalid_request(message));
    }
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let (line, start) = record.position().map_or((1, 0), |position| (position.line(), position.byte()));
        // The reader's position is before the blank lines that it skips.
        let before = text.as_bytes().get(usize::try_from(start)?..).unwrap_or_default();
        let blank = before.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).filter(|byte| **byte == b'\n').count();
        rows.push(Row { line: line + u64::try_from(blank)?, cells: record.iter().map(str::to_owned).collect() });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u64, Vec<String>)> {
        rows(text, b',').expect("rows").into_iter().map(|row| (row.line, row.cells)).collect()
    }

    fn row(line: u64, cells: &[&str]) -> (u64, Vec<String>) {
        (line, cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn quotes_newlines_and_a_mark_are_read() {
        let text = "\u{feff}a,b\r\n\"x \"\"y\"\"\",\"1,\r\n2\"\r\n\r\n\nlast, space \n\"\",\n";
        let expected = [row(1, &["a", "b"]), row(2, &["x \"y\"", "1,\r\n2"]), row(6, &["last", " space "]), row(7, &["", ""])];
        assert_eq!(read(text), expected);
        assert_eq!(read(""), []);
        assert_eq!(read("\n\na"), [row(3, &["a"])]);
    }

    #[test]
    fn a_quote_that_is_not_closed_is_refused() {
        for text in ["a\n\"b\nc\n", "a\n5\" pipe\n"] {
            assert_eq!(rows(text, b',').expect_err("refused").code, "invalid_request");
        }
    }

    #[test]
    fn a_delimiter_is_one_byte() {
        assert_eq!(delimiter(None).expect("a comma"), b',');
        assert_eq!(delimiter(Some('\t')).expect("a tab"), b'\t');
        for wrong in ['"', '\n', '\r', '\0', 'é', '→'] {
            assert_eq!(delimiter(Some(wrong)).expect_err("refused").code, "invalid_request");
        }
    }
}
