//! The differences between the two engines in the SQL of data operations.

mod postgres;
mod sqlite;

use blockbase_schema::{Column, ColumnType, Object};

pub(crate) use postgres::{column_type as postgres_column_type, fold as postgres_fold, list_text as postgres_list_text};
pub(crate) use sqlite::{column_type as sqlite_column_type, list_text as sqlite_list_text, range_test as sqlite_range_test};

/// The engine for which a statement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// `?3` or `$3`.
    pub fn placeholder(self, number: usize) -> String {
        match self {
            Dialect::Sqlite => format!("?{number}"),
            Dialect::Postgres => format!("${number}"),
        }
    }

    /// The operator of a null-safe inequality.
    pub(crate) fn is_distinct(self) -> &'static str {
        match self {
            Dialect::Sqlite => "IS NOT",
            Dialect::Postgres => "IS DISTINCT FROM",
        }
    }

    /// SQL that tests whether `text` (SQL) contains the bound term, which is `placeholder`.
    pub fn contains(self, text: &str, placeholder: &str, fold_case: bool) -> String {
        match self {
            Dialect::Sqlite => sqlite::contains(text, placeholder, fold_case),
            Dialect::Postgres => postgres::contains(text, placeholder, fold_case),
        }
    }

    /// SQL that tests whether `text` (SQL) contains all of several bound terms. The text is read and folded only once for each
    /// row.
    pub(crate) fn contains_all(self, text: &str, placeholders: &[String], fold_case: bool) -> String {
        match self {
            Dialect::Sqlite => sqlite::contains_all(text, placeholders, fold_case),
            Dialect::Postgres => postgres::contains_all(text, placeholders, fold_case),
        }
    }

    /// SQL that tests whether any element of a list column meets `test`, which is SQL over `item`.
    pub(crate) fn any_element(self, column: &str, test: impl Fn(&str) -> String) -> String {
        match self {
            // Without a limit, SQLite would join the elements. Then an OFFSET would skip joined rows instead of rows.
            Dialect::Sqlite => {
                format!("EXISTS (SELECT 1 FROM json_each({column}) AS svc_item WHERE {} LIMIT 1)", test("svc_item.value"))
            }
            Dialect::Postgres => format!("EXISTS (SELECT 1 FROM unnest({column}) AS svc_item WHERE {})", test("svc_item")),
        }
    }

    /// A sort key. Nulls come last in ascending order, and first in descending order.
    pub(crate) fn order(self, column: &Column, name: &str, descends: bool) -> String {
        let direction = direction(descends);
        match self {
            // Postgres does this by itself. SQLite sorts nulls first, so its indexes of columns that can be null begin with the
            // test.
            Dialect::Sqlite if !column.required => format!("({name} IS NULL) {direction}, {name} {direction}"),
            _ => format!("{name} {direction}"),
        }
    }

    /// A sort key whose values are not null.
    pub(crate) fn order_of_values(self, name: &str, descends: bool) -> String {
        format!("{name} {}", direction(descends))
    }

    /// The test that has to stand before a comparison, so that SQLite uses the index of a column that can be null. `None` if no
    /// test is needed.
    pub(crate) fn index_lead(self, column: &Column, name: &str, is_null: bool) -> Option<String> {
        (self == Dialect::Sqlite && column.is_sorted && !column.required)
            .then(|| format!("({name} IS NULL) = {}", u8::from(is_null)))
    }

    /// Tests whether a uuid (SQL) is in the bound list.
    pub(crate) fn among(self, name: &str, placeholder: &str) -> String {
        match self {
            Dialect::Sqlite => format!("{name} IN (SELECT value FROM json_each({placeholder}))"),
            Dialect::Postgres => format!("{name} = ANY({placeholder})"),
        }
    }

    /// All texts that `search` looks into, as one folded text. The search index contains this text.
    pub(crate) fn search_document(self, object: &Object) -> String {
        let table = quote(object.name());
        let parts: Vec<String> = object
            .columns
            .iter()
            .filter(|column| column.is_searchable())
            .map(|column| {
                let name = quote(&column.name);
                match (self, column.ty) {
                    (Dialect::Sqlite, ColumnType::TextList) => sqlite_list_text(&format!("{table}.{name}")),
                    (Dialect::Postgres, ColumnType::TextList) => postgres_list_text(&name),
                    _ => name,
                }
            })
            .collect();
        let or_empty = |text: &String| format!("coalesce({text}, '')");
        let concatenated = |separator: &str| parts.iter().map(or_empty).collect::<Vec<_>>().join(separator);
        match self {
            Dialect::Sqlite => format!("svc_fold({})", concatenated(" || char(31) || ")),
            Dialect::Postgres => {
                let whole = match parts.len() > CONCATENATED_MAX {
                    true => or_empty(&postgres_list_text(&format!("ARRAY[{}]", parts.join(", ")))),
                    false => format!("({})", concatenated(" || chr(31) || ")),
                };
                format!("({} COLLATE \"C\")", postgres_fold(&whole))
            }
        }
    }
}

fn direction(descends: bool) -> &'static str {
    if descends { "DESC" } else { "ASC" }
}

/// The maximum number of texts that the search index of Postgres joins with one operator for each text. Postgres keeps the
/// expression of an index in one row of 8 KB. With operators for about 170 texts, the expression is longer than that. With all
/// texts in one array, it fits even if an object has the maximum number of fields.
const CONCATENATED_MAX: usize = 100;

/// An identifier of the catalogue, quoted. Names contain only letters, digits and `_`.
pub(crate) fn quote(name: &str) -> String {
    ["\"", name, "\""].concat()
}

/// Appends such an identifier to SQL.
pub(crate) fn write_quoted(sql: &mut String, name: &str) {
    sql.push('"');
    sql.push_str(name);
    sql.push('"');
}
