//! Checks the rows of an object for a change: the number of rows that break a new rule, and their values in a new type.

use blockbase_query::{Action, sql};
use blockbase_schema::{Code, Column, ColumnType, Error, Object, Result, Value, json};
use blockbase_store::{Connection, Record, RecordsMax};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::base::offload::run_offloaded;
use crate::caller::Caller;

/// The maximum number of rows that are checked together.
const PAGE: usize = 1000;
/// The maximum number of bytes of the values on one page. A single larger value is checked by itself.
const PAGE_BYTES_MAX: i64 = 8 * 1024 * 1024;

/// A new rule that stored rows break. It contains no values of rows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Broken {
    /// `required`, `isUnique`, `uniqueTogether`, or those of `type`, `scale`, `min`, `max`, `pattern`, `options` and `length`
    /// that become stricter, separated by commas.
    pub rule: String,
    pub object: String,
    pub field: String,
    pub rows: i64,
    pub message: String,
}

/// The reaction of a check to rules that rows break.
pub(super) enum Findings {
    /// The change is refused at the first broken rule.
    Refuse,
    /// All broken rules are collected in a list.
    Collect(Vec<Broken>),
}

impl Findings {
    fn add(&mut self, broken: Broken) -> Result<()> {
        match self {
            Findings::Refuse => Err(Error::new(Code::InvalidSchemaChange, broken.message).with_field(broken.field)),
            Findings::Collect(list) => {
                list.push(broken);
                Ok(())
            }
        }
    }

    pub(super) fn collected(self) -> Vec<Broken> {
        match self {
            Findings::Refuse => Vec::new(),
            Findings::Collect(list) => list,
        }
    }
}

/// Counts the rows of an object. The stored count is not used, because this transaction may have changed it.
async fn row_count(connection: &mut Connection, object: &Object) -> Result<i64> {
    let statement = sql::count_all(connection.dialect(), object);
    connection.fetch_integer(statement).await.map_err(|error| error.on(object))
}

fn rows_text(rows: i64) -> String {
    if rows == 1 { "1 row breaks".to_owned() } else { format!("{rows} rows break") }
}

/// The rows of an object, for callers who may read all of them. The result of a check reveals something about the rows. So every
/// check calls [`Rows::read`], which requires the right, even if there are no rows.
pub(super) struct Rows<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) caller: &'a Caller,
    /// The object before the change.
    pub(super) object: &'a Object,
}

impl<'a> Rows<'a> {
    fn read(&mut self) -> Result<(&mut Connection, &'a Object)> {
        let allowed = self.caller.require(self.object.name(), Action::Read);
        allowed.map_err(|error| error.within("The change is checked against the existing rows"))?;
        Ok((self.connection, self.object))
    }

    pub(super) async fn count(&mut self) -> Result<i64> {
        let (connection, object) = self.read()?;
        row_count(connection, object).await
    }

    async fn nulls(&mut self, column: &Column) -> Result<i64> {
        let (connection, object) = self.read()?;
        let statement = sql::count_nulls(connection.dialect(), object, column);
        connection.fetch_integer(statement).await.map_err(|error| error.on(object))
    }

    /// The number of rows that have a value in a column.
    pub(super) async fn values(&mut self, column: &Column) -> Result<i64> {
        Ok(self.count().await? - self.nulls(column).await?)
    }

    fn broken_rule(&self, rule: &str, field: &str, rows: i64, message: String) -> Broken {
        Broken { rule: rule.to_owned(), object: self.object.name().to_owned(), field: field.to_owned(), rows, message }
    }

    async fn duplicates(&mut self, columns: &[String]) -> Result<i64> {
        let (connection, object) = self.read()?;
        let statement = sql::count_duplicates(connection.dialect(), object, columns);
        connection.fetch_integer(statement).await.map_err(|error| error.on(object))
    }

    /// The number of values in a column that the altered column would not accept unchanged.
    async fn broken(&mut self, before: &Column, column: &Column) -> Result<i64> {
        let (connection, object) = self.read()?;
        let (mut broken, mut pages) = (0, Pages::default());
        while let Some(page) = pages.next(connection, object, before).await? {
            let bytes = page.iter().map(|record| record.cell(1).len()).sum();
            let is_broken =
                |cell: &String| !column.value_of(&converted_cell(column, cell)).is_ok_and(|value| keeps(column, cell, &value));
            broken += run_offloaded(bytes, || page.iter().filter_map(cell).filter(is_broken).count()) as i64;
        }
        Ok(broken)
    }
}

/// The number of links of a relationship, for callers who may read all rows of both objects.
pub(super) async fn links<'a>(
    connection: &'a mut Connection,
    caller: &'a Caller,
    sides: impl Iterator<Item = &'a std::sync::Arc<Object>>,
    relationship_id: i64,
) -> Result<i64> {
    for object in sides {
        Rows { connection: &mut *connection, caller, object }.read()?;
    }
    let statement = sql::count_links(relationship_id);
    Ok(connection.fetch_integer(statement).await?)
}

/// Finds rows that break a rule of a change. The findings contain no values of rows.
///
/// # Errors
/// `invalid_schema_change` with the rule and the number of rows, if findings refuse the change. `forbidden` if rows have to be
/// read and the caller may not read all of them.
pub(super) async fn check(rows: &mut Rows<'_>, new: &Object, findings: &mut Findings) -> Result<()> {
    let old = rows.object;
    let mut kept = Vec::new();
    for (before, column) in replaced(old, new) {
        let count = rows.count().await?;
        if count > 0 {
            let message = format!(
                "`{}` cannot become {} from {}: `{}` has rows ({count}). If there are rows, a type can only widen: integer to \
                big_integer to decimal, integer to float, any single value to text. Without rows it can become any type.",
                before.name,
                column.kind.name(),
                before.kind.name(),
                old.name()
            );
            findings.add(rows.broken_rule("type", &before.name, count, message))?;
            kept.push(column.catalogue_key());
        }
    }
    for column in new.columns.iter().filter(|column| !kept.contains(&column.catalogue_key())) {
        match old.same_column(column) {
            None => check_new(rows, column, findings).await?,
            Some(before) => check_altered(rows, before, column, findings).await?,
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
        let broken = rows.duplicates(&names).await?;
        if broken > 0 {
            let columns = group.join(", ");
            let message = format!("{} `uniqueTogether` of {columns}: their values are not unique.", rows_text(broken));
            findings.add(rows.broken_rule("uniqueTogether", &group[0], broken, message))?;
        }
    }
    Ok(())
}

/// The fields that get a new column, because the stored values are not valid for their new type. Each has its old and its new
/// column.
pub(super) fn replaced<'a>(old: &'a Object, new: &'a Object) -> impl Iterator<Item = (&'a Column, &'a Column)> {
    let (before, after) = (&old.definition.fields, &new.definition.fields);
    // The number of fields differs if fields are added or dropped. Then no field was altered.
    let is_altered = before.len() == after.len();
    let places = old.keys.iter().zip(&new.keys).enumerate().filter(move |(_, (old, new))| is_altered && old != new);
    places.filter_map(move |(place, _)| Some((old.column(&before[place].name)?, new.column(&after[place].name)?)))
}

async fn check_new(rows: &mut Rows<'_>, column: &Column, findings: &mut Findings) -> Result<()> {
    let needs_no_rows = column.required && column.default.is_none();
    let needs_one_row = column.unique && column.default.is_some();
    if !needs_no_rows && !needs_one_row {
        return Ok(());
    }
    let count = rows.count().await?;
    let (name, object) = (&column.name, rows.object.name());
    if needs_no_rows && count > 0 {
        let way = match column.reference {
            Some(_) => "Create an optional relationship and fill it",
            None => "Give it a default",
        };
        let message = format!("`{name}` is required, and `{object}` has rows ({count}) without it. {way}.");
        findings.add(rows.broken_rule("required", name, count, message))?;
    }
    if needs_one_row && count > 1 {
        let message = format!("{} `isUnique` of `{name}`: all of them would get the default.", rows_text(count));
        findings.add(rows.broken_rule("isUnique", name, count, message))?;
    }
    Ok(())
}

async fn check_altered(rows: &mut Rows<'_>, before: &Column, column: &Column, findings: &mut Findings) -> Result<()> {
    let name = &column.name;
    if column.required && !before.required {
        let broken = rows.nulls(before).await?;
        if broken > 0 {
            let message = format!("{} `required` of `{name}`: they have no value.", rows_text(broken));
            findings.add(rows.broken_rule("required", name, broken, message))?;
        }
    }
    if column.unique && !before.unique {
        let broken = rows.duplicates(std::slice::from_ref(&before.name)).await?;
        if broken > 0 {
            let message = format!("{} `isUnique` of `{name}`: their values are not unique.", rows_text(broken));
            findings.add(rows.broken_rule("isUnique", name, broken, message))?;
        }
    }
    let tightened = tightened(before, column);
    if tightened.is_empty() {
        return Ok(());
    }
    match rows.broken(before, column).await? {
        0 => Ok(()),
        broken => {
            let rules: Vec<&str> = tightened.iter().map(|tightened| tightened.rule).collect();
            let words: Vec<&str> = tightened.iter().map(|tightened| tightened.words).collect();
            let words = words.join(", ");
            let message = format!("{} the change of `{name}`: their values do not match its new {words}.", rows_text(broken));
            findings.add(rows.broken_rule(&rules.join(", "), name, broken, message))
        }
    }
}

/// A rule that may refuse a value that was valid before.
struct Tightened {
    rule: &'static str,
    words: &'static str,
}

/// The rules of a column that may refuse a value that was valid before.
fn tightened(before: &Column, after: &Column) -> Vec<Tightened> {
    let (old, new) = (&before.rules, &after.rules);
    let pattern = |column: &Column| column.rules.pattern.as_ref().map(|pattern| pattern.as_str().to_owned());
    let options_shrank = match (&old.options, &new.options) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => old.iter().any(|option| !new.contains(option)),
    };
    let is_shorter = after.index_bytes_max.is_some_and(|most| before.index_bytes_max.is_none_or(|before| most < before));
    [
        ("type", "`type`", before.kind != after.kind),
        ("scale", "`scale`", before.kind == after.kind && before.ty != after.ty),
        ("min", "`min`", new.min.is_some_and(|min| old.min.is_none_or(|before| min > before))),
        ("max", "`max`", new.max.is_some_and(|max| old.max.is_none_or(|before| max < before))),
        ("pattern", "`pattern`", new.pattern.is_some() && pattern(before) != pattern(after)),
        ("options", "`options`", options_shrank),
        ("length", "length, which an index bounds", is_shorter),
    ]
    .into_iter()
    .filter_map(|(rule, words, may_refuse)| may_refuse.then_some(Tightened { rule, words }))
    .collect()
}

/// Whether a number stays the same in its new type. The new type may have fewer decimal places, and a double has only 53 bits.
fn keeps(column: &Column, cell: &str, value: &Value) -> bool {
    if !column.kind.is_numeric() {
        return true;
    }
    let mut out = Vec::new();
    value.write_json(&mut out);
    out == cell.as_bytes()
}

/// A stored value in the form that the new column reads.
fn converted_cell(column: &Column, cell: &str) -> String {
    match column.ty == ColumnType::Text && !cell.starts_with('"') {
        true => format!("\"{cell}\""),
        false => cell.to_owned(),
    }
}

/// If a column becomes text, writes its values as text into a second column, and returns the name of that column.
///
/// The database converts numbers to a wider type of number.
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

/// The JSON of the value. `None` if there is no value.
fn cell(record: &Record) -> Option<String> {
    let text = String::from_utf8_lossy(record.cell(1)).into_owned();
    (text != "null").then_some(text)
}

/// Reads the rows page by page.
#[derive(Default)]
struct Pages {
    after: Uuid,
    ended: bool,
}

impl Pages {
    async fn next(&mut self, connection: &mut Connection, object: &Object, column: &Column) -> Result<Option<Vec<Record>>> {
        let Some(id) = object.columns.first().filter(|_| !self.ended) else { return Ok(None) };
        let dialect = connection.dialect();
        let mut range = sql::RowRange { after: self.after, until: None, rows_max: i64::try_from(PAGE).unwrap_or(i64::MAX) };
        if sql::is_long(column) {
            let statement = sql::column_page_end(dialect, object, column, range, PAGE_BYTES_MAX);
            let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(object))?;
            let Some(row) = rows.first() else { return Ok(None) };
            range.until = Some(row.text(0)?.parse().map_err(Error::internal)?);
        }
        let statement = sql::column_page(dialect, object, column, range);
        let page = connection
            .fetch_records(statement, &[id, column], 0, RecordsMax::bytes(usize::MAX))
            .await
            .map_err(|error| error.on(object))?;
        // If the limit of bytes ended this page, there may be further rows.
        self.ended = page.len() < PAGE && range.until.is_none();
        match page.last().and_then(|record| record.uuid(0)) {
            Some(last) => self.after = last,
            None => return Ok(None),
        }
        Ok(Some(page))
    }
}
