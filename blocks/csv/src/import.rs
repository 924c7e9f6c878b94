//! `import`: CSV to records.

use std::collections::{BTreeMap, HashMap};

use blockbase_sdk::{Context, Error, JsonSchema, action, config, data, schemars};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::cell::unguarded;
use crate::refusal;
use crate::table::{self, Row};

/// Failed rows that a message names. With a wrong delimiter, every row of a file fails.
const FAILURES_SHOWN: usize = 5;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Import {
    /// The object that gets the records.
    object: String,
    /// The text of the file.
    csv: String,
    /// What stands between cells; a comma, where it is left out.
    delimiter: Option<char>,
    /// Whether the first row names the columns. Without it they are named by their numbers, from 1.
    #[serde(default = "yes")]
    header: bool,
    /// The fields of columns that are not named as theirs; an empty name leaves a column out.
    #[serde(default)]
    mapping: BTreeMap<String, String>,
    /// Fields that together tell which record a row is: there, it is updated; else a record is made. Their object should have
    /// them unique. A row without a value in one of them makes a record.
    #[serde(default)]
    on_conflict: Vec<String>,
    /// Tells what would be done, and does nothing.
    #[serde(default)]
    dry_run: bool,
    /// Writes row by row: those that fail are listed, the others stay.
    #[serde(default)]
    partial: bool,
    /// Whether an apostrophe before what would be a formula is taken away, as an export puts it there.
    #[serde(default = "yes")]
    safe: bool,
    /// What an empty cell is.
    #[serde(default)]
    empty_cells: EmptyCells,
    /// Fields whose cells are JSON, such as the `["a","b"]` of a multi_enum.
    #[serde(default)]
    json: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum EmptyCells {
    /// Null.
    #[default]
    Null,
    /// Not there: a new record gets the field's default, a known one keeps its value.
    Omit,
    /// The text without characters.
    Text,
}

#[derive(Serialize)]
pub struct Imported {
    inserted: usize,
    updated: usize,
    failed: Vec<Failure>,
}

#[derive(Serialize)]
struct Failure {
    /// The line of the file that the row begins on.
    line: u64,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    rows_max: usize,
}

/// A row that becomes a record.
struct Entry {
    line: u64,
    values: Map<String, Value>,
    /// The id of the record to update. `None` if a record is created.
    id: Option<String>,
}

fn yes() -> bool {
    true
}

/// Makes records of the rows of a CSV file, or updates those that are there: all rows or none, unless `partial` is set.
#[action(timeout_ms = 60000, rbac(resource = "csv:use", action = "create"))]
pub fn import(_context: &Context, input: Import) -> Result<Imported, Error> {
    let settings: Settings = config::get()?;
    let mut rows = table::rows(&input.csv, table::delimiter(input.delimiter)?)?.into_iter();
    let header = if input.header { rows.next() } else { None };
    let rows: Vec<Row> = rows.collect();
    if rows.len() > settings.rows_max {
        return Err(Error::invalid_request(format!(
            "The file has {} rows; one call imports {} at most. Nothing was imported: split the file.",
            rows.len(),
            settings.rows_max
        )));
    }
    let fields = fields(&input, header.as_ref(), rows.first())?;
    if rows.is_empty() {
        return Ok(Imported { inserted: 0, updated: 0, failed: Vec::new() });
    }
    if input.dry_run {
        check_fields(&input.object, &fields)?;
    }
    let (entries, failed) = read(&input, &fields, rows)?;
    match (input.dry_run, input.partial) {
        (true, _) => Ok(told(&entries, failed)),
        (false, true) => write_each(&input.object, &entries, failed),
        (false, false) if failed.is_empty() => write_all(&input, entries),
        (false, false) => Err(refused(&failed)),
    }
}

/// The field of each column. `None` for a column that is left out.
fn fields(input: &Import, header: Option<&Row>, first: Option<&Row>) -> Result<Vec<Option<String>>, Error> {
    let columns: Vec<String> = match header {
        Some(header) => header.cells.iter().map(|name| name.trim().to_owned()).collect(),
        None => (1..=first.map_or(0, |row| row.cells.len())).map(|number| number.to_string()).collect(),
    };
    if let (Some(unknown), false) = (input.mapping.keys().find(|column| !columns.contains(column)), columns.is_empty()) {
        let known = columns.join(", ");
        return Err(Error::invalid_request(format!("`mapping` names the column {unknown:?}; the file has {known}.")));
    }
    let mut fields: Vec<Option<String>> = Vec::with_capacity(columns.len());
    for column in columns {
        let field = match (input.mapping.get(&column), input.header) {
            (Some(field), _) => Some(field.clone()).filter(|field| !field.is_empty()),
            (None, true) => Some(column),
            (None, false) => None,
        };
        match &field {
            Some(field) if field.is_empty() => {
                return Err(Error::invalid_request("A column has no name; name it, or leave it out by `mapping`."));
            }
            Some(name) if fields.contains(&field) => {
                return Err(Error::invalid_request(format!("Two columns are of the field `{name}`.")));
            }
            _ => fields.push(field),
        }
    }
    let is_there = |name: &&String| fields.iter().flatten().any(|field| field == *name);
    if let (Some(missing), false) = (input.on_conflict.iter().find(|name| !is_there(name)), fields.is_empty()) {
        return Err(Error::invalid_request(format!("`onConflict` names `{missing}`, which no column is of.")));
    }
    if !fields.is_empty() && fields.iter().all(Option::is_none) {
        return Err(Error::invalid_request("No column is of a field; without a header `mapping` says which are."));
    }
    Ok(fields)
}

/// Makes the service check the names of the fields.
fn check_fields(object: &str, fields: &[Option<String>]) -> Result<(), Error> {
    let select = fields.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(",");
    let query = json!({ "select": select, "limit": 1, "count": "none" });
    data::query::<Value>(object, query).map(|_| ()).map_err(refusal::shown)
}

/// The records that the rows become, and the rows that fail.
fn read(input: &Import, fields: &[Option<String>], rows: Vec<Row>) -> Result<(Vec<Entry>, Vec<Failure>), Error> {
    let mut entries = Vec::with_capacity(rows.len());
    let mut failed = Vec::new();
    let mut lines_of_keys: HashMap<Vec<String>, u64> = HashMap::new();
    for Row { line, cells } in rows {
        let read = match cells.len() == fields.len() {
            true => values(input, fields, &cells),
            false => Err(format!("The row has {} cells where the file has {} columns.", cells.len(), fields.len())),
        };
        let values = match read {
            Ok(values) => values,
            Err(message) => {
                failed.push(Failure { line, message });
                continue;
            }
        };
        let id = match key(input, &values) {
            None => None,
            Some(key) => {
                let text = key.iter().map(|(_, value)| value.to_string()).collect();
                if let Some(other) = lines_of_keys.insert(text, line) {
                    failed.push(Failure { line, message: format!("Line {other} is of the same record.") });
                    continue;
                }
                match known(&input.object, &key) {
                    Ok(id) => id,
                    Err(error) if refusal::is_of_all(&error) => return Err(refusal::shown(error)),
                    Err(error) => {
                        failed.push(Failure { line, message: error.message });
                        continue;
                    }
                }
            }
        };
        entries.push(Entry { line, values, id });
    }
    Ok((entries, failed))
}

/// The values of a row. The service reads text as the field's type.
fn values(input: &Import, fields: &[Option<String>], cells: &[String]) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    for (field, cell) in fields.iter().zip(cells) {
        let Some(field) = field else { continue };
        let value = match (cell.is_empty(), input.empty_cells) {
            (true, EmptyCells::Omit) => continue,
            (true, EmptyCells::Null) => Value::Null,
            _ if input.json.contains(field) => {
                serde_json::from_str(cell).map_err(|error| format!("`{field}` is not valid JSON: {error}."))?
            }
            _ => Value::String(if input.safe { unguarded(cell) } else { cell }.to_owned()),
        };
        values.insert(field.clone(), value);
    }
    Ok(values)
}

/// The key that identifies the record of a row. `None` if a part of it has no value, or no key was requested.
fn key<'a>(input: &'a Import, values: &'a Map<String, Value>) -> Option<Vec<(&'a str, &'a Value)>> {
    if input.on_conflict.is_empty() {
        return None;
    }
    let value = |name: &'a String| Some((name.as_str(), values.get(name).filter(|value| !value.is_null())?));
    input.on_conflict.iter().map(value).collect()
}

/// The id of the record with this key.
fn known(object: &str, key: &[(&str, &Value)]) -> Result<Option<String>, Error> {
    #[derive(Deserialize)]
    struct Found {
        id: String,
    }
    let filters: Vec<Value> = key.iter().map(|(field, value)| json!({ "field": field, "value": value })).collect();
    // Two records are enough to see that the key is not unique.
    let found = data::query::<Found>(object, json!({ "filters": filters, "select": "id", "limit": 2, "count": "none" }))?;
    match (found.data.as_slice(), key) {
        ([], [("id", id)]) => Err(Error::invalid_request(format!("There is no record with the id {id}."))),
        ([], _) => Ok(None),
        ([one], _) => Ok(Some(one.id.clone())),
        _ => Err(Error::invalid_request("More than one record has these values.")),
    }
}

fn told(entries: &[Entry], failed: Vec<Failure>) -> Imported {
    let updated = entries.iter().filter(|entry| entry.id.is_some()).count();
    Imported { inserted: entries.len() - updated, updated, failed }
}

/// Writes all rows in one transaction.
fn write_all(input: &Import, entries: Vec<Entry>) -> Result<Imported, Error> {
    let written = match input.on_conflict.is_empty() {
        true => {
            let values: Vec<&Map<String, Value>> = entries.iter().map(|entry| &entry.values).collect();
            data::create_many(&input.object, &values).map(|_| Vec::new())
        }
        false => {
            let operation = |entry: &Entry| match &entry.id {
                Some(id) => json!({ "op": "update", "object": input.object, "id": id, "values": entry.values }),
                None => json!({ "op": "create", "object": input.object, "values": entry.values }),
            };
            data::batch(entries.iter().map(operation).collect::<Vec<_>>())
        }
    };
    let records = written.map_err(|error| {
        let at_fault = match refusal::place(&error.message) {
            Some((place, rest)) => entries.get(place).map(|entry| (entry.line, rest)),
            // The error of a transaction with one row names no index.
            None if entries.len() == 1 && !refusal::is_of_all(&error) => Some((entries[0].line, error.message.as_str())),
            None => None,
        };
        let message = match at_fault {
            Some((line, why)) => format!("Line {line}: {why} Nothing was imported."),
            None => format!("{} Nothing was imported.", error.message),
        };
        refusal::shown(Error { message, ..error })
    })?;
    // The record may have been deleted since it was found, or the caller may read it but not change it. Neither fails the transaction.
    let is_missing = |place: usize| records.get(place).is_some_and(Value::is_null);
    let (missing, written): (Vec<_>, Vec<_>) = entries.into_iter().enumerate().partition(|(place, _)| is_missing(*place));
    let failed = missing.into_iter().map(|(_, entry)| Failure { line: entry.line, message: out_of_reach() }).collect();
    Ok(told(&written.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(), failed))
}

/// Writes each row in its own transaction.
fn write_each(object: &str, entries: &[Entry], failed: Vec<Failure>) -> Result<Imported, Error> {
    let mut imported = Imported { inserted: 0, updated: 0, failed };
    for Entry { line, values, id } in entries {
        let (written, count) = match id {
            Some(id) => (data::update::<Value>(object, id, values), &mut imported.updated),
            None => (data::create::<Value>(object, values), &mut imported.inserted),
        };
        match written {
            Ok(_) => *count += 1,
            Err(error) if error.code == "not_found" && id.is_some() => {
                imported.failed.push(Failure { line: *line, message: out_of_reach() });
            }
            // An error of the whole object at the first row fails the call. After that, the written rows have to be reported.
            Err(error) if refusal::is_of_all(&error) && imported.inserted + imported.updated == 0 => {
                return Err(refusal::shown(error));
            }
            Err(error) => imported.failed.push(Failure { line: *line, message: error.message }),
        }
    }
    imported.failed.sort_by_key(|failure| failure.line);
    Ok(imported)
}

fn out_of_reach() -> String {
    "The record is gone, or you may not change it.".to_owned()
}

fn refused(failed: &[Failure]) -> Error {
    let mut message = String::new();
    for Failure { line, message: why } in failed.iter().take(FAILURES_SHOWN) {
        message.push_str(&format!("Line {line}: {why} "));
    }
    if failed.len() > FAILURES_SHOWN {
        message.push_str(&format!("And {} lines more. ", failed.len() - FAILURES_SHOWN));
    }
    Error::invalid_request(message + "Nothing was imported.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(changes: Value) -> Import {
        let mut input = json!({ "object": "task", "csv": "" });
        for (key, value) in changes.as_object().expect("an object") {
            input[key] = value.clone();
        }
        serde_json::from_value(input).expect("an input")
    }

    fn row(cells: &[&str]) -> Row {
        Row { line: 1, cells: cells.iter().map(|cell| (*cell).to_owned()).collect() }
    }

    fn named(changes: Value, header: &[&str]) -> Result<Vec<Option<String>>, Error> {
        fields(&input(changes), Some(&row(header)), None)
    }

    #[test]
    fn columns_are_of_fields() {
        let some = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(named(json!({}), &["a", " b "]).expect("fields"), some(&["a", "b"]));
        assert_eq!(named(json!({ "mapping": { "A": "a" } }), &["A", "b"]).expect("fields"), some(&["a", "b"]));
        assert_eq!(named(json!({ "mapping": { "b": "" } }), &["a", "b"]).expect("fields"), [Some("a".to_owned()), None]);
        let numbered = input(json!({ "header": false, "mapping": { "2": "a" } }));
        assert_eq!(fields(&numbered, None, Some(&row(&["x", "y"]))).expect("fields"), [None, Some("a".to_owned())]);
        for (changes, header) in [
            (json!({ "mapping": { "C": "a" } }), ["a", "b"]),
            (json!({ "mapping": { "b": "a" } }), ["a", "b"]),
            (json!({ "onConflict": ["c"] }), ["a", "b"]),
            (json!({ "mapping": { "a": "", "b": "" } }), ["a", "b"]),
            (json!({}), ["a", "a"]),
            (json!({}), ["a", " "]),
        ] {
            assert_eq!(named(changes.clone(), &header).expect_err("refused").code, "invalid_request", "{changes}");
        }
    }

    #[test]
    fn cells_become_values() {
        let fields = ["a", "b", "c"].map(|name| Some(name.to_owned()));
        let cells = ["", "'=1", "[1]"].map(str::to_owned);
        let read = |changes: Value| values(&input(changes), &fields, &cells).map(Value::Object);
        assert_eq!(read(json!({})).expect("values"), json!({ "a": null, "b": "=1", "c": "[1]" }));
        let all = json!({ "emptyCells": "omit", "safe": false, "json": ["c"] });
        assert_eq!(read(all).expect("values"), json!({ "b": "'=1", "c": [1] }));
        assert_eq!(read(json!({ "emptyCells": "text" })).expect("values")["a"], "");
        assert!(read(json!({ "json": ["b"] })).expect_err("no JSON").starts_with("`b` is not valid JSON"));
    }
}
