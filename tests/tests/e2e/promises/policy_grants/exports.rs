//! Exports: the rows of a list as a file, each with the cells that the caller may read.

use std::collections::{BTreeMap, BTreeSet};

use blockbase_tests::until;
use serde_json::{Value, json};

use super::grants::Caller;
use super::reads::Read;
use super::worlds::OBJECTS;
use super::{Expected, Got, Refusal, Run, State};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Export {
    /// Whether the file is CSV. Otherwise it has one record on each line, as JSON.
    pub(super) is_csv: bool,
    /// The relation keys whose records are written as their `code`.
    pub(super) names: Vec<String>,
}

/// A file by its columns: the text of each cell. `None` for null.
type Table = (BTreeSet<String>, Vec<BTreeMap<String, Option<String>>>);

impl State {
    /// The columns of an export.
    fn header(&self, caller: &Caller, read: &Read, export: &Export) -> BTreeSet<String> {
        let is_selected = |name: &str| name == "id" || read.select.iter().flatten().any(|other| other == name);
        let columns = self.columns(caller, read.object).filter(|name| read.select.is_none() || is_selected(name));
        let mut header: BTreeSet<String> = columns.map(str::to_owned).collect();
        for key in &export.names {
            header.remove(&self.column_of(read.object, key));
            header.insert(format!("{key}.code"));
        }
        header
    }

    /// The column with the references of a relation key.
    fn column_of(&self, object: usize, key: &str) -> String {
        self.world.relations[self.end(object, key).expect("a relation key").relation].column()
    }

    /// The records of an export. The error has all reasons to refuse it.
    fn exported(&self, caller: &Caller, read: &Read, export: &Export) -> Result<Vec<Value>, Vec<Refusal>> {
        let view = caller.view(&self.world);
        let (begin, size) = read.window.map_or((0, usize::MAX), |window| window.place());
        let mut records = Vec::new();
        for row in self.listed(caller, &view, read)?.into_iter().skip(begin).take(size) {
            let mut record = self.record((caller, &view), read.object, row, read.select.as_deref(), &[]);
            let members = record.as_object_mut().expect("a record");
            for key in &export.names {
                let column = self.column_of(read.object, key);
                members.remove(&column);
                let end = self.end(read.object, key).expect("a relation key");
                let related = self.world.related(&view, &end, read.object, row);
                let code = related.first().map_or(&Value::Null, |other| view.value(end.object, other, "code"));
                // A record that the caller does not see, or that has no code, is written as its id.
                let id = view.value(read.object, row, &column);
                members.insert(format!("{key}.code"), if code.is_null() { id.clone() } else { code.clone() });
            }
            records.push(record);
        }
        Ok(records)
    }
}

/// The rows of a file of CSV by RFC 4180. A cell without text and without quotes is null.
fn rows_of_csv(file: &str) -> Vec<Vec<Option<String>>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut is_inside, mut is_quoted) = (false, false);
    let mut characters = file.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_inside && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => (is_inside, is_quoted) = (!is_inside, true),
            ',' | '\n' if !is_inside => {
                let text = std::mem::take(&mut cell);
                row.push((is_quoted || !text.is_empty()).then_some(text));
                is_quoted = false;
                if character == '\n' {
                    rows.push(std::mem::take(&mut row));
                }
            }
            '\r' if !is_inside => {}
            other => cell.push(other),
        }
    }
    rows
}

fn table_of_csv(file: &str) -> Table {
    let mut rows = rows_of_csv(file).into_iter();
    let header: Vec<String> = rows.next().unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect();
    let rows = rows.map(|row| header.iter().cloned().zip(row).collect()).collect();
    (header.into_iter().collect(), rows)
}

/// The file that is expected of these records.
fn table_of_records(header: BTreeSet<String>, records: &[Value]) -> Table {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let rows = records.iter().map(|record| {
        let members = record.as_object().expect("a record").iter();
        members.map(|(name, value)| (name.clone(), text(value))).collect()
    });
    (header, rows.collect())
}

impl Run<'_> {
    /// Compares an export with the reference. Returns the difference.
    pub(super) async fn problem_of_export(&self, caller: &Caller, read: &Read, export: &Export) -> Option<String> {
        let (_, path, _) = read.rest(OBJECTS[read.object], false);
        let mut answer = None;
        // A caller has two exports at a time. The server may notice the end of one a moment after its client.
        until("an export has its turn", async || {
            self.count(1);
            let sent = self.server.call_as(caller.credential.as_deref(), "GET", &path, None).await;
            let is_busy = [429, 503].contains(&sent.status);
            answer = Some(sent);
            !is_busy
        })
        .await;
        let answer = answer.expect("an answer");
        let records = match self.state.exported(caller, read, export) {
            Ok(records) => records,
            Err(refusals) if answer.status >= 300 => {
                return Got::from(answer).problem(&Expected::Refused(refusals));
            }
            Err(refusals) => return Some(format!("expected one of {refusals:?}\n  got      {} {}", answer.status, answer.text)),
        };
        let is_right = match export.is_csv {
            _ if answer.status != 200 => false,
            true => table_of_csv(&answer.text) == table_of_records(self.state.header(caller, read, export), &records),
            false => {
                let lines = answer.text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
                lines.collect::<Vec<_>>() == records
            }
        };
        (!is_right).then(|| format!("expected {}\n  got      {} {}", json!(records), answer.status, answer.text))
    }
}

#[test]
fn cells_of_csv_are_read() {
    let cell = |text: &str| Some(text.to_owned());
    let rows = rows_of_csv("a,b\r\n\"say \"\"x\"\", y\",\r\n,\"\"\r\n");
    assert_eq!(rows, [vec![cell("a"), cell("b")], vec![cell("say \"x\", y"), None], vec![None, cell("")]]);
}
