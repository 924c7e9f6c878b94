//! Statements of a schema change that read or write all rows.

use blockbase_schema::{Column, ColumnType, Object};

use super::param::{Param, Statement};
use super::writer::Writer;
use crate::ddl::{CONVERTED_COLUMN, link_table};
use crate::dialect::{Dialect, quote};

/// The rows that one statement reads, in the order of ids.
#[derive(Clone, Copy, Debug)]
pub struct RowRange {
    /// Only rows with an id after this one.
    pub after: uuid::Uuid,
    /// Only rows with an id up to this one. `None` for all later rows.
    pub until: Option<uuid::Uuid>,
    pub rows_max: i64,
}

/// One value of each row as JSON, in the order of ids.
pub fn column_page(dialect: Dialect, object: &Object, column: &Column, range: RowRange) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let after = writer.bind(Param::Uuid(Some(range.after)));
    let until = range.until.map(|until| writer.bind(Param::Uuid(Some(until))));
    let until = until.map(|until| format!(" AND \"id\" <= {until}")).unwrap_or_default();
    let most = writer.bind(Param::from(range.rows_max));
    writer.sql.push_str(&format!(
        "SELECT \"id\", {} FROM {} WHERE \"id\" > {after}{until} ORDER BY \"id\" LIMIT {most}",
        quote(&column.name),
        quote(object.name())
    ));
    writer.finish()
}

/// Finds the last of the next rows whose values of a long column ([`is_long`](super::is_long)) have at most `bytes_max` bytes
/// together. Returns its id as text. The result includes at least one row, however long its value is.
pub fn column_page_end(dialect: Dialect, object: &Object, column: &Column, range: RowRange, bytes_max: i64) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let after = writer.bind(Param::Uuid(Some(range.after)));
    let most = writer.bind(Param::from(range.rows_max));
    let bytes_max = writer.bind(Param::from(bytes_max));
    let name = quote(&column.name);
    let text = match (dialect, column.ty) {
        (Dialect::Sqlite, _) | (Dialect::Postgres, ColumnType::Text) => name,
        (Dialect::Postgres, _) => format!("{name}::text"),
    };
    writer.sql.push_str(&format!(
        "SELECT CAST(svc_sum.\"id\" AS TEXT) FROM (SELECT \"id\", sum(coalesce(svc_bytes, 0)) OVER (ORDER BY \"id\") AS svc_total, \
         row_number() OVER (ORDER BY \"id\") AS svc_place FROM (SELECT \"id\", octet_length({text}) AS svc_bytes FROM {} \
         WHERE \"id\" > {after} ORDER BY \"id\" LIMIT {most}) AS svc_page) AS svc_sum \
         WHERE svc_total <= {bytes_max} OR svc_place = 1 ORDER BY svc_sum.\"id\" DESC LIMIT 1",
        quote(object.name())
    ));
    writer.finish()
}

/// Counts all rows, and does not use the stored count.
pub fn count_all(dialect: Dialect, object: &Object) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str(&format!("SELECT count(*) FROM {}", quote(object.name())));
    writer.finish()
}

/// Counts the rows that share their values of `columns` with another row.
pub fn count_duplicates(dialect: Dialect, object: &Object, columns: &[String]) -> Statement {
    let names: Vec<String> = columns.iter().map(|name| quote(name)).collect();
    let tests: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
    let (names, tests) = (names.join(", "), tests.join(" AND "));
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str(&format!(
        "SELECT CAST(coalesce(sum(shared), 0) AS BIGINT) FROM (SELECT count(*) AS shared FROM {} WHERE {tests} GROUP BY {names} \
         HAVING count(*) > 1) AS groups",
        quote(object.name())
    ));
    writer.finish()
}

/// Counts the rows whose value of a column is null.
pub fn count_nulls(dialect: Dialect, object: &Object, column: &Column) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str(&format!("SELECT count(*) FROM {} WHERE {} IS NULL", quote(object.name()), quote(&column.name)));
    writer.finish()
}

/// Counts the links of a many_to_many relationship.
pub fn count_links(relationship_id: i64) -> Statement {
    Statement { sql: format!("SELECT count(*) FROM {}", link_table(relationship_id)).into(), params: Vec::new() }
}

/// The statement that adds the column for converted values.
pub fn add_converted_column(dialect: Dialect, object: &Object) -> String {
    let ty = if dialect == Dialect::Sqlite { "TEXT" } else { "text COLLATE \"C\"" };
    format!("ALTER TABLE {} ADD COLUMN {CONVERTED_COLUMN} {ty}", quote(object.name()))
}

/// Writes converted texts to their rows. `ids` and texts are in the same order.
pub fn write_converted(dialect: Dialect, object: &Object, ids: Vec<uuid::Uuid>, texts: Vec<String>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let table = quote(object.name());
    let sql = match dialect {
        Dialect::Sqlite => {
            let pairs: Vec<(String, String)> = ids.iter().map(ToString::to_string).zip(texts).collect();
            let pairs = writer.bind(Param::Json(serde_json::to_string(&pairs).ok()));
            format!(
                "UPDATE {table} SET {CONVERTED_COLUMN} = svc_new.text \
                 FROM (SELECT value ->> 0 AS id, value ->> 1 AS text FROM json_each({pairs})) AS svc_new WHERE {table}.\"id\" = svc_new.id"
            )
        }
        Dialect::Postgres => {
            let (ids, texts) = (writer.bind(Param::UuidList(ids)), writer.bind(Param::TextList(Some(texts))));
            format!(
                "UPDATE {table} SET {CONVERTED_COLUMN} = svc_new.text FROM unnest({ids}, {texts}) AS svc_new (id, text) \
                 WHERE {table}.\"id\" = svc_new.id"
            )
        }
    };
    writer.sql.push_str(&sql);
    writer.finish()
}
