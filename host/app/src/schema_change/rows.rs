//! What the rows say to a change: how many break a new rule, and how they look in a new type.

use blockbase_query::sql;
use blockbase_schema::{Code, Column, ColumnType, Error, Object, Result, Value, json};
use blockbase_store::{Connection, Record};
use uuid::Uuid;

use super::apply::row_count;

/// Rows that are looked at together.
const PAGE: usize = 1000;

fn refused(field: &str, message: String) -> Error {
    Error::new(Code::InvalidSchemaChange, message).with_field(field)
}

fn rows_text(rows: i64) -> String {
    if rows == 1 { "1 row breaks".to_owned() } else { format!("{rows} rows break") }
}

/// Refuses a change that rows of `old` break.
///
/// # Errors
/// `invalid_schema_change` saying how many rows break which rule.
pub(super) async fn check(connection: &mut Connection, old: &Object, new: &Object) -> Result<()> {
    for column in &new.columns {
        match old.same_column(column) {
            None => check_new(connection, old, column).await?,
            Some(before) => check_altered(connection, old, before, column).await?,
        }
    }
    for group in &new.definition.constraints.unique_together {
        let keys = |object: &Object, group: &[String]| -> Vec<String> {
            group.iter().filter_map(|name| object.column(name)).map(Column::catalogue_key).collect()
        };
        let shape = keys(new, group);
        if old.definition.constraints.unique_together.iter().any(|known| keys(old, known) == shape) {
            continue;
        }
        let names: Vec<String> =
            group.iter().filter_map(|name| old.same_column(new.column(name)?).map(|column| column.name.clone())).collect();
        let rows = duplicates(connection, old, &names).await?;
        if rows > 0 {
            let columns = group.join(", ");
            return Err(refused(
                &group[0],
                format!("{} `uniqueTogether` of {columns}: they share their values.", rows_text(rows)),
            ));
        }
    }
    Ok(())
}

async fn check_new(connection: &mut Connection, old: &Object, column: &Column) -> Result<()> {
    if !column.required && !column.unique {
        return Ok(());
    }
    let rows = row_count(connection, old).await?;
    let name = &column.name;
    if column.required && column.default.is_none() && rows > 0 {
        let way = match column.reference {
            Some(_) => "Make it optional, fill it, and then require it with another relationship",
            None => "Give it a default",
        };
        return Err(refused(name, format!("`{name}` is required, and `{}` has rows ({rows}) without it. {way}.", old.name())));
    }
    if column.unique && column.default.is_some() && rows > 1 {
        return Err(refused(name, format!("{} `isUnique` of `{name}`: all would get its default.", rows_text(rows))));
    }
    Ok(())
}

async fn check_altered(connection: &mut Connection, old: &Object, before: &Column, column: &Column) -> Result<()> {
    let dialect = connection.dialect();
    let name = &column.name;
    if column.required && !before.required {
        let nulls = sql::count_nulls(dialect, old, before);
        let rows = connection.fetch_integer(nulls).await.map_err(|error| error.on(old))?;
        if rows > 0 {
            return Err(refused(name, format!("{} `required` of `{name}`: they have no value.", rows_text(rows))));
        }
    }
    if column.unique && !before.unique {
        let rows = duplicates(connection, old, std::slice::from_ref(&before.name)).await?;
        if rows > 0 {
            return Err(refused(name, format!("{} `isUnique` of `{name}`: they share their values.", rows_text(rows))));
        }
    }
    if !tightens(before, column) {
        return Ok(());
    }
    let (mut broken, mut first): (i64, Option<Error>) = (0, None);
    let mut pages = Pages::default();
    while let Some(page) = pages.next(connection, old, before).await? {
        for record in page {
            let Some(cell) = cell(&record) else { continue };
            let judged = column.value_of(&converted_cell(column, &cell)).and_then(|value| match keeps(column, &cell, &value) {
                true => Ok(()),
                false => Err(Error::new(Code::InvalidValue, format!("`{name}`: the value {cell} would change"))),
            });
            if let Err(error) = judged {
                broken += 1;
                first.get_or_insert(error);
            }
        }
    }
    match first {
        None => Ok(()),
        Some(error) => Err(refused(name, format!("{} the change. The first: {}", rows_text(broken), error.message))),
    }
}

/// Whether a value that was good before may not be so any more.
fn tightens(before: &Column, after: &Column) -> bool {
    let (old, new) = (&before.rules, &after.rules);
    let pattern = |column: &Column| column.rules.pattern.as_ref().map(|pattern| pattern.as_str().to_owned());
    let options_shrank = match (&old.options, &new.options) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => old.iter().any(|option| !new.contains(option)),
    };
    before.kind != after.kind
        || before.ty != after.ty
        || (new.min.is_some() && new.min != old.min)
        || (new.max.is_some() && new.max != old.max)
        || (after.rules.pattern.is_some() && pattern(before) != pattern(after))
        || options_shrank
        || after.index_bytes_max.is_some_and(|most| before.index_bytes_max.is_none_or(|before| most < before))
}

/// Whether a number is the same in its new type: its scale may have fewer digits, and a double has 53 bits.
fn keeps(column: &Column, cell: &str, value: &Value) -> bool {
    if !column.kind.is_numeric() {
        return true;
    }
    let mut out = Vec::new();
    value.write_json(&mut out);
    out == cell.as_bytes()
}

/// A stored value as the new column would be given it.
fn converted_cell(column: &Column, cell: &str) -> String {
    match column.ty == ColumnType::Text && !cell.starts_with('"') {
        true => format!("\"{cell}\""),
        false => cell.to_owned(),
    }
}

async fn duplicates(connection: &mut Connection, object: &Object, columns: &[String]) -> Result<i64> {
    let statement = sql::count_duplicates(connection.dialect(), object, columns);
    connection.fetch_integer(statement).await.map_err(|error| error.on(object))
}

/// Where a column becomes text, writes the text of its values beside them; answers the column's new name.
///
/// Numbers that become wider numbers are left to the engine.
pub(super) async fn convert(connection: &mut Connection, old: &Object, new: &Object) -> Result<Option<String>> {
    let becomes_text =
        |column: &&Column| old.same_column(column).is_some_and(|before| before.ty != column.ty && column.ty == ColumnType::Text);
    let Some(column) = new.columns.iter().find(becomes_text) else { return Ok(None) };
    let Some(before) = old.same_column(column) else { return Ok(None) };
    let dialect = connection.dialect();
    connection.define(sql::add_converted_column(dialect, old)).await?;
    let mut pages = Pages::default();
    while let Some(page) = pages.next(connection, old, before).await? {
        let (mut ids, mut texts) = (Vec::with_capacity(page.len()), Vec::with_capacity(page.len()));
        for record in page {
            if let (Some(id), Some(cell)) = (record.uuid(0), cell(&record)) {
                ids.push(id);
                texts.push(serde_json::from_str(&converted_cell(column, &cell)).map_err(|error| json::malformed(&error))?);
            }
        }
        let statement = sql::write_converted(dialect, old, ids, texts);
        connection.execute(statement).await.map_err(|error| error.on(old))?;
    }
    Ok(Some(column.name.clone()))
}

/// The JSON of the value, if there is one.
fn cell(record: &Record) -> Option<String> {
    let text = String::from_utf8_lossy(record.cell(1)).into_owned();
    (text != "null").then_some(text)
}

/// Goes through the rows page by page.
#[derive(Default)]
struct Pages {
    after: Uuid,
    ended: bool,
}

impl Pages {
    async fn next(&mut self, connection: &mut Connection, object: &Object, column: &Column) -> Result<Option<Vec<Record>>> {
        let Some(id) = object.columns.first().filter(|_| !self.ended) else { return Ok(None) };
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let statement = sql::column_page(connection.dialect(), object, column, self.after, most);
        let page = connection.fetch_records(statement, &[id, column], 0).await.map_err(|error| error.on(object))?;
        self.ended = page.len() < PAGE;
        match page.last().and_then(|record| record.uuid(0)) {
            Some(last) => self.after = last,
            None => return Ok(None),
        }
        Ok(Some(page))
    }
}
