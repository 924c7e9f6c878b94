//! Definition statements: tables, indexes, links, and changes from one version of an object to the next.
//!
//! The names of constraints and indexes are made of catalogue numbers, so that a violation leads back to its columns on both
//! engines: `svc_ck_<object>_<padded key>_<rule>`, `svc_uq_<object>_<key>`, `svc_fk_<relationship>`.

use blockbase_schema::{Column, ColumnType, Object, OnDelete, Relationship, Value};

use crate::dialect::{Dialect, postgres_column_type, quote, sqlite_column_type, sqlite_range_test};

/// The name of the table that SQLite builds as the next version of another table.
const REBUILD_TABLE: &str = "svc_rebuild";
/// The column for converted values, until they replace the original values.
pub const CONVERTED_COLUMN: &str = "svc_converted";

/// The column with a number that increases by one with each change of a row. No surface shows it, but ETags are made from it.
pub const VERSION_COLUMN: &str = "svc_version";

/// An index: its name, its shape in catalogue numbers, and the statement that creates it.
struct Index {
    name: String,
    shape: String,
    sql: String,
}

/// The statements that create an object's table with its checks and indexes, but without the search index.
pub fn create_table(dialect: Dialect, object: &Object) -> Vec<String> {
    let mut statements = vec![table(dialect, object, object.name())];
    statements.extend(indexes(dialect, object).into_iter().map(|index| index.sql));
    statements
}

/// The statement that drops an object's table.
pub fn drop_table(object: &Object) -> String {
    format!("DROP TABLE {}", quote(object.name()))
}

/// The name of the table of a many_to_many relationship: `(source_id, target_id)`.
pub fn link_table(relationship_id: i64) -> String {
    format!("svc_link_{relationship_id}")
}

/// The statements that make the table of a many_to_many relationship.
pub fn create_link_table(dialect: Dialect, relationship: &Relationship) -> Vec<String> {
    let definition = &relationship.definition;
    let table = link_table(relationship.id);
    let ty = if dialect == Dialect::Sqlite { "TEXT" } else { "uuid" };
    let on_delete = match definition.on_delete() {
        OnDelete::Restrict => "",
        _ => " ON DELETE CASCADE",
    };
    let side = |name: &str, object: &str| format!("{name} {ty} NOT NULL REFERENCES {} (\"id\"){on_delete}", quote(object));
    let tail = if dialect == Dialect::Sqlite { " WITHOUT ROWID" } else { "" };
    vec![
        format!(
            "CREATE TABLE {table} ({}, {}, PRIMARY KEY (source_id, target_id)){tail}",
            side("source_id", &definition.source),
            side("target_id", &definition.target)
        ),
        format!("CREATE INDEX {table}_target ON {table} (target_id, source_id)"),
    ]
}

pub fn drop_link_table(relationship_id: i64) -> String {
    format!("DROP TABLE {}", link_table(relationship_id))
}

/// The name of SQLite's full-text table of an object.
pub(crate) fn search_table(object: &Object) -> String {
    format!("svc_ft_{}", object.id)
}

/// The statements that make an object's search index and fill it.
pub fn create_search_index(dialect: Dialect, object: &Object) -> Vec<String> {
    if !object.is_searchable() {
        return Vec::new();
    }
    let (table, document) = (quote(object.name()), dialect.search_document(object));
    match dialect {
        Dialect::Sqlite => {
            let index = search_table(object);
            vec![
                // The index stores only trigrams, without their positions. It finds candidates, and each search checks these
                // again.
                format!(
                    "CREATE VIRTUAL TABLE {index} USING fts5(document, content='', contentless_delete=1, detail=none, \
                     tokenize='trigram case_sensitive 1')"
                ),
                format!("INSERT INTO {index} (rowid, document) SELECT svc_rowid, {document} FROM {table}"),
            ]
        }
        Dialect::Postgres => {
            vec![format!("CREATE INDEX svc_sf_{} ON {table} USING gin ({document} gin_trgm_ops)", object.id)]
        }
    }
}

pub fn drop_search_index(dialect: Dialect, object: &Object) -> Vec<String> {
    match dialect {
        Dialect::Sqlite => vec![format!("DROP TABLE IF EXISTS {}", search_table(object))],
        Dialect::Postgres => vec![format!("DROP INDEX IF EXISTS svc_sf_{}", object.id)],
    }
}

/// The statements that remove leftovers of deleted rows from a search index of SQLite.
#[derive(Clone, Debug)]
pub struct SearchMerge {
    /// Finds a row if the index still contains parts of deleted rows.
    pub leftovers: String,
    /// Merges the bound number of pages. A negative number begins a merge of the complete index.
    pub merge: String,
}

/// The first id of a page of an FTS5 table that can contain marks of deleted rows. The format numbers the segments of these marks
/// from 65,536, and a page's id has the number of its segment above the lowest 37 bits.
const FIRST_MARK_OF_DELETED: i64 = 65_536 << 37;

/// The statements that merge an object's search index. `None` if there is nothing to merge. In a contentless table, FTS5 only
/// marks a deleted row, and keeps its trigrams until a merge. Its option `secure-delete` cannot remove them, because it needs the
/// row's text. A table with the text made an update take 16 times as long.
pub fn merge_search_index(dialect: Dialect, object: &Object) -> Option<SearchMerge> {
    if dialect == Dialect::Postgres || !object.is_searchable() {
        return None;
    }
    let index = search_table(object);
    Some(SearchMerge {
        leftovers: format!("SELECT 1 FROM {index}_data WHERE id >= {FIRST_MARK_OF_DELETED} LIMIT 1"),
        merge: format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', ?1)"),
    })
}

/// Drops an old search index, which contains the text in upper case and not folded by [`blockbase_schema::fold`]. The present
/// index has another name, so an index with another folding is never used.
pub fn drop_upper_case_index(dialect: Dialect, object: &Object) -> String {
    match dialect {
        Dialect::Sqlite => format!("DROP TABLE IF EXISTS svc_fts_{}", object.id),
        Dialect::Postgres => format!("DROP INDEX IF EXISTS svc_se_{}", object.id),
    }
}

/// The name of the search index among the engine's tables and indexes.
pub fn search_index_name(dialect: Dialect, object: &Object) -> String {
    match dialect {
        Dialect::Sqlite => search_table(object),
        Dialect::Postgres => format!("svc_sf_{}", object.id),
    }
}

/// The changes that turn an object's table into its next version.
#[derive(Debug, Default)]
pub struct Alteration {
    pub statements: Vec<String>,
    /// Whether the search index has to be rebuilt.
    pub moves_search: bool,
}

/// The statements that turn the table of `old` into the table of `new`. If the values of a column were converted beforehand,
/// `converted` is the column's name in `new`, and the converted values are in [`CONVERTED_COLUMN`].
pub fn alter_table(dialect: Dialect, old: &Object, new: &Object, converted: Option<&str>) -> Alteration {
    let searched = |object: &Object| -> Vec<String> {
        object.columns.iter().filter(|column| column.is_searchable()).map(Column::catalogue_key).collect()
    };
    let moves_search = searched(old) != searched(new) || converted.is_some();
    let statements = match dialect {
        Dialect::Sqlite => alter_sqlite(old, new, converted),
        Dialect::Postgres => alter_postgres(old, new, converted),
    };
    Alteration { statements, moves_search }
}

fn alter_sqlite(old: &Object, new: &Object, converted: Option<&str>) -> Vec<String> {
    let dialect = Dialect::Sqlite;
    let is_kept = |column: &Column| {
        new.same_column(column).is_some_and(|next| {
            next.ty == column.ty
                && next.required == column.required
                && checks(dialect, old.id, column, "x") == checks(dialect, new.id, next, "x")
        })
    };
    // SQLite can add and rename columns. Every other change needs a new table.
    let is_additive = converted.is_none()
        && old.columns.iter().all(is_kept)
        && new
            .columns
            .iter()
            .filter(|column| old.same_column(column).is_none())
            .all(|column| !column.required || (column.default.is_some() && column.reference.is_none()));
    if !is_additive {
        return rebuild(old, new, converted);
    }
    let table = quote(new.name());
    let mut statements = dropped_indexes(dialect, old, new);
    for column in &new.columns {
        match old.same_column(column) {
            Some(before) if before.name != column.name => {
                statements.push(format!("ALTER TABLE {table} RENAME COLUMN {} TO {}", quote(&before.name), quote(&column.name)))
            }
            Some(_) => {}
            None => {
                let default =
                    column.default.as_ref().map(|value| format!(" DEFAULT {}", literal(dialect, value))).unwrap_or_default();
                statements.push(format!("ALTER TABLE {table} ADD COLUMN {}{default}", column_line(dialect, new, column)));
            }
        }
    }
    statements.extend(added_indexes(dialect, old, new));
    statements
}

fn rebuild(old: &Object, new: &Object, converted: Option<&str>) -> Vec<String> {
    let dialect = Dialect::Sqlite;
    let (names, values): (Vec<String>, Vec<String>) = new
        .columns
        .iter()
        .map(|column| {
            let name = quote(&column.name);
            let value = match old.same_column(column) {
                _ if converted == Some(&column.name) => CONVERTED_COLUMN.to_owned(),
                Some(before) => widened(&quote(&before.name), before.ty, column.ty),
                None => column.default.as_ref().map_or_else(|| "NULL".to_owned(), |value| literal(dialect, value)),
            };
            (name, value)
        })
        .unzip();
    let (table_name, names, values) = (quote(new.name()), names.join(", "), values.join(", "));
    let mut statements = vec![
        table(dialect, new, REBUILD_TABLE),
        format!(
            "INSERT INTO {REBUILD_TABLE} (svc_rowid, {VERSION_COLUMN}, {names}) \
             SELECT svc_rowid, {VERSION_COLUMN}, {values} FROM {table_name}"
        ),
        format!("DROP TABLE {table_name}"),
        format!("ALTER TABLE {REBUILD_TABLE} RENAME TO {table_name}"),
    ];
    statements.extend(indexes(dialect, new).into_iter().map(|index| index.sql));
    statements
}

/// SQL that converts a stored number of SQLite to another type of number.
fn widened(name: &str, from: ColumnType, to: ColumnType) -> String {
    let power = |digits: u8| 10i64.pow(u32::from(digits));
    match (from, to) {
        (ColumnType::Integer | ColumnType::BigInteger, ColumnType::Decimal { scale }) => format!("{name} * {}", power(scale)),
        (ColumnType::Decimal { scale: from }, ColumnType::Decimal { scale: to }) if from < to => {
            format!("{name} * {}", power(to - from))
        }
        (ColumnType::Decimal { scale: from }, ColumnType::Decimal { scale: to }) if from > to => {
            format!("{name} / {}", power(from - to))
        }
        (ColumnType::Integer | ColumnType::BigInteger, ColumnType::Float) => format!("CAST({name} AS REAL)"),
        _ => name.to_owned(),
    }
}

fn alter_postgres(old: &Object, new: &Object, converted: Option<&str>) -> Vec<String> {
    let dialect = Dialect::Postgres;
    let table = quote(new.name());
    let mut statements = dropped_indexes(dialect, old, new);
    for column in old.columns.iter().filter(|column| new.same_column(column).is_none()) {
        // When Postgres drops a column, it also drops every index that contains it. The new version of such an index has another
        // shape, so it is created below.
        statements.push(format!("ALTER TABLE {table} DROP COLUMN {}", quote(&column.name)));
    }
    for column in &new.columns {
        let name = quote(&column.name);
        let Some(before) = old.same_column(column) else {
            let default = column.default.as_ref().map(|value| literal(dialect, value));
            let clause = default.as_ref().map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
            statements.push(format!("ALTER TABLE {table} ADD COLUMN {}{clause}", column_line(dialect, new, column)));
            if default.is_some() {
                statements.push(format!("ALTER TABLE {table} ALTER COLUMN {name} DROP DEFAULT"));
            }
            continue;
        };
        let (old_checks, new_checks) = (checks(dialect, old.id, before, &name), checks(dialect, new.id, column, &name));
        let same_checks = checks(dialect, old.id, before, "x") == checks(dialect, new.id, column, "x");
        if converted == Some(&column.name) {
            statements.push(format!("ALTER TABLE {table} DROP COLUMN {}", quote(&before.name)));
            statements.push(format!("ALTER TABLE {table} RENAME COLUMN {CONVERTED_COLUMN} TO {name}"));
            if column.required {
                statements.push(format!("ALTER TABLE {table} ALTER COLUMN {name} SET NOT NULL"));
            }
            statements
                .extend(new_checks.iter().map(|(check, test)| format!("ALTER TABLE {table} ADD CONSTRAINT {check} {test}")));
            continue;
        }
        if before.name != column.name {
            statements.push(format!("ALTER TABLE {table} RENAME COLUMN {} TO {name}", quote(&before.name)));
        }
        if !same_checks {
            statements
                .extend(old_checks.iter().map(|(check, _)| format!("ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {check}")));
        }
        if before.ty != column.ty {
            let ty = postgres_column_type(column);
            let plain = ty.split(" COLLATE").next().unwrap_or(&ty);
            statements.push(format!("ALTER TABLE {table} ALTER COLUMN {name} TYPE {ty} USING {name}::{plain}"));
        }
        if before.required != column.required {
            let verb = if column.required { "SET" } else { "DROP" };
            statements.push(format!("ALTER TABLE {table} ALTER COLUMN {name} {verb} NOT NULL"));
        }
        if !same_checks {
            statements
                .extend(new_checks.iter().map(|(check, test)| format!("ALTER TABLE {table} ADD CONSTRAINT {check} {test}")));
        }
    }
    let converted_key = converted.and_then(|name| new.column(name)).map(Column::catalogue_key);
    for index in indexes(dialect, new) {
        // Dropping the old column also dropped its indexes.
        let is_lost = converted_key.as_ref().is_some_and(|key| index.shape.split(' ').any(|part| part == key));
        if is_lost || !indexes(dialect, old).iter().any(|before| before.shape == index.shape) {
            statements.push(index.sql);
        }
    }
    statements
}

fn dropped_indexes(dialect: Dialect, old: &Object, new: &Object) -> Vec<String> {
    let next = indexes(dialect, new);
    indexes(dialect, old)
        .into_iter()
        .filter(|index| !next.iter().any(|kept| kept.shape == index.shape))
        .map(|index| format!("DROP INDEX IF EXISTS {}", index.name))
        .collect()
}

fn added_indexes(dialect: Dialect, old: &Object, new: &Object) -> Vec<String> {
    let before = indexes(dialect, old);
    indexes(dialect, new)
        .into_iter()
        .filter(|index| !before.iter().any(|kept| kept.shape == index.shape))
        .map(|index| index.sql)
        .collect()
}

fn table(dialect: Dialect, object: &Object, name: &str) -> String {
    let mut lines = Vec::with_capacity(object.columns.len() + 2);
    if dialect == Dialect::Sqlite {
        // A rowid that VACUUM does not change, so that full-text indexes can refer to it.
        lines.push("svc_rowid INTEGER PRIMARY KEY".to_owned());
    }
    // The default 0 is the value in tables that are older than this column.
    let integer = if dialect == Dialect::Sqlite { "INTEGER" } else { "bigint" };
    lines.push(format!("{VERSION_COLUMN} {integer} NOT NULL DEFAULT 0"));
    lines.extend(object.columns.iter().map(|column| column_line(dialect, object, column)));
    format!("CREATE TABLE {} ({})", quote(name), lines.join(", "))
}

/// A column, with the constraints that concern only this column.
fn column_line(dialect: Dialect, object: &Object, column: &Column) -> String {
    let name = quote(&column.name);
    let ty = match dialect {
        Dialect::Sqlite => sqlite_column_type(column),
        Dialect::Postgres => postgres_column_type(column),
    };
    let mut line = format!("{name} {ty}");
    if column.required {
        line.push_str(" NOT NULL");
    }
    for (check, test) in checks(dialect, object.id, column, &name) {
        line.push_str(&format!(" CONSTRAINT {check} {test}"));
    }
    if let Some(reference) = &column.reference {
        let action = match reference.on_delete {
            OnDelete::Restrict => "",
            OnDelete::Cascade => " ON DELETE CASCADE",
            OnDelete::SetNull => " ON DELETE SET NULL",
        };
        line.push_str(&format!(
            " CONSTRAINT svc_fk_{} REFERENCES {} (\"id\"){action}",
            reference.relationship_id,
            quote(&reference.target)
        ));
    }
    line
}

/// The checks of the numeric rules. The database has to check them, because concurrent atomic operators together must not break
/// them. Each item has the name and `CHECK (…)`.
fn checks(dialect: Dialect, object_id: i64, column: &Column, name: &str) -> Vec<(String, String)> {
    let mut checks = Vec::new();
    if !column.kind.is_numeric() {
        return checks;
    }
    // The number is padded, because Postgres tests checks in the order of their names, and SQLite in the order of the columns.
    let key = format!("{:0>5}", column.catalogue_key());
    // The range comes first, as with Postgres' own types. So a value that cannot be stored is reported as out of range, and not
    // as a broken rule.
    if dialect == Dialect::Sqlite {
        checks.push((format!("svc_ck_{object_id}_{key}_range"), format!("CHECK ({})", sqlite_range_test(column, name))));
    }
    for (rule, operator, limit) in [("min", ">=", &column.rules.min), ("max", "<=", &column.rules.max)] {
        if let Some(limit) = limit {
            let bound = bounds::bound(column.ty, limit, rule == "min");
            let limit = match dialect {
                Dialect::Sqlite => bound.scaled,
                Dialect::Postgres => bound.plain,
            };
            checks.push((format!("svc_ck_{object_id}_{key}_{rule}"), format!("CHECK ({name} {operator} {limit})")));
        }
    }
    checks
}

/// A column in the form in which indexes sort it. SQLite sorts nulls first. So for a column that can be null, the index begins
/// with the test for null.
fn sort_column(dialect: Dialect, column: &Column) -> String {
    let name = quote(&column.name);
    match dialect {
        Dialect::Sqlite if !column.required => format!("({name} IS NULL), {name}"),
        _ => name,
    }
}

/// SQL that tests whether the last editor of a row is not its creator.
pub(crate) fn edited_by_another(dialect: Dialect) -> String {
    format!("\"updated_by\" {} \"created_by\"", dialect.is_distinct())
}

fn indexes(dialect: Dialect, object: &Object) -> Vec<Index> {
    let (id, table) = (object.id, quote(object.name()));
    let mut indexes = Vec::new();
    let mut index = |name: String, unique: bool, columns: &[&Column], sql: String| {
        let keys: Vec<String> = columns
            .iter()
            .map(|column| format!("{}{}", column.catalogue_key(), if unique || column.required { "" } else { " ?" }))
            .collect();
        let word = if unique { "UNIQUE INDEX" } else { "INDEX" };
        indexes.push(Index {
            shape: format!("{name} {}", keys.join(" ")),
            sql: format!("CREATE {word} {name} ON {table} ({sql})"),
            name,
        });
    };
    index(format!("svc_pk_{id}"), true, &[], "\"id\"".to_owned());
    index(format!("svc_ix_{id}_created"), false, &[], "\"created_at\", \"id\"".to_owned());
    index(format!("svc_ix_{id}_owner"), false, &[], "\"created_by\", \"created_at\", \"id\"".to_owned());
    for column in object.columns.iter().filter(|column| !column.is_system) {
        let (key, name) = (column.catalogue_key(), quote(&column.name));
        if column.unique {
            index(format!("svc_uq_{id}_{key}"), true, &[column], name.clone());
        } else if column.reference.is_some() {
            index(format!("svc_ix_{id}_{key}"), false, &[column], format!("{name}, \"created_at\", \"id\""));
        }
    }
    for field in object.definition.fields.iter().filter(|field| field.indexed) {
        // If a unique column is never null, its unique index already has this order.
        if let Some(column) = object.column(&field.name).filter(|column| !(column.unique && column.required)) {
            let sql = format!("{}, \"id\"", sort_column(dialect, column));
            index(format!("svc_ix_{id}_{}", column.catalogue_key()), false, &[column], sql);
        }
    }
    for (groups, unique) in [(&object.definition.constraints.unique_together, true), (&object.definition.indexes, false)] {
        for group in groups {
            let columns: Vec<&Column> = group.iter().filter_map(|name| object.column(name)).collect();
            let keys: Vec<String> = columns.iter().map(|column| column.catalogue_key()).collect();
            let prefix = if unique { "uq" } else { "ix" };
            let mut sql: Vec<String> =
                columns.iter().map(|column| if unique { quote(&column.name) } else { sort_column(dialect, column) }).collect();
            if !unique && !group.iter().any(|name| name == "id") {
                sql.push("\"id\"".to_owned());
            }
            index(format!("svc_{prefix}_{id}_g_{}", keys.join("_")), unique, &columns, sql.join(", "));
        }
    }
    // An index of the few rows whose last editor is not their creator.
    let name = format!("svc_ix_{id}_editor");
    let sql = format!("CREATE INDEX {name} ON {table} (\"updated_by\") WHERE {}", edited_by_another(dialect));
    indexes.push(Index { shape: name.clone(), sql, name });
    indexes
}

/// The columns of the unique index `name` of an object. Empty if the object has no such index.
pub fn unique_index_columns(object: &Object, name: &str) -> Vec<String> {
    if name == format!("svc_pk_{}", object.id) {
        return vec!["id".to_owned()];
    }
    let Some(rest) = name.strip_prefix(&format!("svc_uq_{}_", object.id)) else { return Vec::new() };
    let keys: Vec<&str> = match rest.strip_prefix("g_") {
        Some(keys) => keys.split('_').collect(),
        None => vec![rest],
    };
    keys.into_iter()
        .filter_map(|key| object.columns.iter().find(|column| column.catalogue_key() == key))
        .map(|column| column.name.clone())
        .collect()
}

/// A value as a literal of the engine. Text contains no NUL character, and its quotes are doubled.
fn literal(dialect: Dialect, value: &Value) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let json = || {
        let mut out = Vec::new();
        value.write_json(&mut out);
        String::from_utf8(out).unwrap_or_default()
    };
    match (value, dialect) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Text(text), _) => quoted(text),
        (Value::TextList(list), Dialect::Postgres) => {
            let items: Vec<String> = list.iter().map(|item| quoted(item)).collect();
            format!("ARRAY[{}]::text[]", items.join(", "))
        }
        (Value::TextList(_) | Value::Json(_), _) => quoted(&json()),
        (Value::Decimal { scaled, .. }, Dialect::Sqlite) => scaled.to_string(),
        (Value::Float(number), _) => format!("{number:e}"),
        (Value::Boolean(value), Dialect::Sqlite) => u8::from(*value).to_string(),
        (Value::Date(_) | Value::Datetime(_) | Value::Time(_) | Value::Uuid(_), _) => quoted(json().trim_matches('"')),
        _ => json(),
    }
}

/// The bounds of rules as literals of each engine.
mod bounds {
    use blockbase_schema::ColumnType;

    /// A bound as a plain number, and in the scaled integers of SQLite.
    pub(super) struct Bound {
        pub(super) plain: String,
        pub(super) scaled: String,
    }

    pub(super) fn bound(ty: ColumnType, limit: impl std::fmt::Display, is_min: bool) -> Bound {
        let plain = limit.to_string();
        match ty {
            ColumnType::Decimal { scale } => Bound { scaled: scale_text(&plain, scale, is_min), plain },
            // SQLite reads a literal with a fraction as a double.
            ColumnType::Integer | ColumnType::BigInteger => {
                let whole = scale_text(&plain, 0, is_min);
                Bound { plain: whole.clone(), scaled: whole }
            }
            // The same double with which values are compared before they are written.
            _ => {
                let double = format!("{:e}", plain.parse::<f64>().unwrap_or(f64::NAN));
                Bound { plain: double.clone(), scaled: double }
            }
        }
    }

    /// `plain * 10^scale` as a whole number. If the bound has more digits than the scale, it is rounded inwards.
    fn scale_text(plain: &str, scale: u8, is_min: bool) -> String {
        let (negative, digits) = match plain.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, plain),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let scale = usize::from(scale);
        let kept: String = fraction.chars().chain(std::iter::repeat('0')).take(scale).collect();
        let mut number: i128 = format!("{whole}{kept}").parse().unwrap_or(i128::MAX / 4);
        let is_finer = fraction.chars().skip(scale).any(|digit| digit != '0');
        // The removed digits moved the bound towards zero. For a positive minimum and for a negative maximum, this is outwards.
        if is_finer && is_min != negative {
            number += 1;
        }
        (if negative { -number } else { number }).to_string()
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn bounds_finer_than_the_scale_are_drawn_inwards() {
            for (plain, is_min, scaled) in [
                ("1.5", true, "150"),
                ("1.234", true, "124"),
                ("1.234", false, "123"),
                ("-1.234", true, "-123"),
                ("-1.234", false, "-124"),
                ("123456789012345678901234567.8", false, "12345678901234567890123456780"),
            ] {
                assert_eq!(super::scale_text(plain, 2, is_min), scaled, "{plain}");
            }
            assert_eq!(super::scale_text("9007199254740993.5", 0, false), "9007199254740993");
            assert_eq!(super::scale_text("-9007199254740993.5", 0, true), "-9007199254740993");
        }
    }
}
