//! Writes the parts of statements: columns, tests, the row policy, bound values.

use std::sync::Arc;

use blockbase_schema::{Column, ColumnType, Object, RelationShape, Value, system};

use super::param::{Param, Statement};
use super::search::{like_pattern, trigram_query};
use crate::access::{Scope, Seen};
use crate::condition::Condition;
use crate::ddl::{VERSION_COLUMN, search_table};
use crate::dialect::{Dialect, postgres_fold, quote, write_quoted};
use crate::plan::{CreatePlan, NamePlan, RecordPlan, SearchBy, Selection};
use crate::predicate::{Comparison, Predicate, Test};
use crate::request::Paging;

pub(super) struct Writer {
    pub(super) dialect: Dialect,
    pub(super) sql: String,
    pub(super) params: Vec<Param>,
    /// The number of tables of related rows that have a name in the statement so far.
    pub(super) related_tables: usize,
    /// The way in which conditions on related rows are written.
    pub(super) way: Way,
    /// Whether the statement reads only few rows, no matter how many rows the conditions exclude.
    pub(super) looks_at_few: bool,
    /// Whether the tested row is an image of a record that may no longer exist.
    pub(super) judges_image: bool,
    /// The test of the rows at which the statement begins. `None` if it begins with the first row.
    pub(super) beginning: Option<String>,
    /// The number of rows that the statement skips.
    skipped: i64,
    /// The aliases of the sources in which some cells cannot be read.
    seen: Vec<(String, Arc<Seen>)>,
    /// Tables that the statement creates first, in its `WITH`, each with a name and a SELECT.
    tables: Vec<(&'static str, String)>,
}

/// The way in which the SQL of conditions on related rows is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ByRow,
    /// By row, in a form that Postgres does not turn into a list.
    OnlyByRow,
    /// By row, but links look for their related rows in a list of those that meet the condition.
    ByLink,
    ByList,
    /// By list, but the list does not lead to the rows.
    TestedByList,
    /// By row for the rows of the probe `svc_first`, and by list for all others.
    FirstByRow,
    /// The same for a page. But a condition on a foreign key is tested by row, because finding one row takes no longer than
    /// looking into a list.
    Page,
}

/// A column that leads to rows, and a function that writes the test of this column from its name in SQL.
pub(super) type Lead<'a> = (usize, &'a dyn Fn(&str) -> String);

/// Whether the values of a column can be so long that only some of them should be in memory at the same time.
pub fn is_long(column: &Column) -> bool {
    matches!(column.ty, ColumnType::Text | ColumnType::TextList | ColumnType::Json)
}

/// `SELECT …`: the value of `column` in the last one of `rows` rows, which `select` reads. No row if `select` has fewer rows. The
/// other rows are skipped outside of `select`, so its tests can have an EXISTS without a limit.
pub(super) fn in_last_row(column: &str, select: &str, rows: &str) -> String {
    format!("SELECT {column} FROM ({select} LIMIT {rows}) LIMIT 1 OFFSET {rows} - 1")
}

/// The name of the column that replaces the id in look-ups of links that can be read only in some rows.
fn link_column(relationship_id: i64, is_source: bool) -> String {
    format!("svc_link_{relationship_id}_{}", if is_source { "source" } else { "target" })
}

/// The table whose columns a condition names, and the form of these names.
pub(super) struct Place<'a> {
    pub(super) object: &'a Object,
    /// The table's name in the statement.
    pub(super) table: String,
    /// Whether columns need the table's name.
    is_inside: bool,
}

impl<'a> Place<'a> {
    /// The statement's own object.
    pub(super) fn of(object: &'a Object) -> Place<'a> {
        Place { object, table: quote(object.name()), is_inside: false }
    }

    /// The same, but always with the table's name, because other tables may have columns with the same names.
    pub(super) fn qualified(object: &'a Object) -> Place<'a> {
        Place { is_inside: true, ..Place::of(object) }
    }

    /// The place of related rows in a subquery.
    pub(super) fn inside(object: &'a Object, alias: &str) -> Place<'a> {
        Place { object, table: alias.to_owned(), is_inside: true }
    }

    fn column(&self, column: &Column) -> String {
        // `json_each` has its own columns, for example `type` and `value`.
        match self.is_inside || column.ty == ColumnType::TextList {
            true => self.outside(&column.name),
            false => quote(&column.name),
        }
    }

    /// A column as a subquery names it.
    pub(super) fn outside(&self, column: &str) -> String {
        format!("{}.{}", self.table, quote(column))
    }
}

impl Writer {
    /// A statement on `object`. On Postgres its text names the object's number and revision, so that Postgres never uses the
    /// cached plan of a dropped or altered object for another object with the same name.
    pub(super) fn new(dialect: Dialect, object: &Object) -> Writer {
        let mut sql = String::with_capacity(512);
        if dialect == Dialect::Postgres {
            sql.push_str(&format!("/* {}.{} */ ", object.id, object.revision));
        }
        Writer {
            dialect,
            sql,
            params: Vec::new(),
            related_tables: 0,
            way: Way::ByRow,
            looks_at_few: false,
            judges_image: false,
            beginning: None,
            skipped: 0,
            seen: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// A statement on `object` that reads a page. The writer has to know which rows the page skips before it writes tests: SQLite
    /// joins the rows of an EXISTS that has no limit, and an OFFSET beside it would skip joined rows instead of rows.
    pub(super) fn of_page(dialect: Dialect, object: &Object, paging: Paging) -> Writer {
        Writer { skipped: i64::try_from(paging.offset).unwrap_or(i64::MAX), ..Writer::new(dialect, object) }
    }

    /// The number of rows that the page skips.
    pub(super) fn skipped(&self) -> i64 {
        self.skipped
    }

    /// ` OFFSET …` for the rows that the page skips. Only this function and the next one write an OFFSET beside tests.
    pub(super) fn offset(&mut self) -> String {
        let offset = self.bind(Param::from(self.skipped));
        format!(" OFFSET {offset}")
    }

    /// The same, with the number in the text.
    pub(super) fn offset_in_text(&self) -> String {
        format!(" OFFSET {}", self.skipped)
    }

    /// What comes after the tests of an EXISTS.
    pub(super) fn end_of_exists(&self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite if self.skipped > 0 => " LIMIT 1",
            // Postgres never turns a subquery with OFFSET into a list.
            Dialect::Postgres if self.way == Way::OnlyByRow => " OFFSET 0",
            _ => "",
        }
    }

    pub(super) fn bind(&mut self, param: Param) -> String {
        let is_json = matches!(param, Param::Json(_));
        self.params.push(param);
        let placeholder = self.dialect.placeholder(self.params.len());
        match (self.dialect, is_json) {
            // The value is bound as text, which keeps it byte for byte.
            (Dialect::Postgres, true) => format!("{placeholder}::json"),
            _ => placeholder,
        }
    }

    pub(super) fn finish(self) -> Statement {
        if self.tables.is_empty() {
            return Statement { sql: self.sql.into(), params: self.params };
        }
        let tables: Vec<String> = self.tables.iter().map(|(name, select)| format!("{name} AS MATERIALIZED ({select})")).collect();
        Statement { sql: format!("WITH {} {}", tables.join(", "), self.sql).into(), params: self.params }
    }

    /// Adds a table that the statement creates first, in its `WITH`.
    pub(super) fn add_table(&mut self, name: &'static str, select: String) {
        self.tables.push((name, select));
    }

    /// `(SELECT …)`: the stored number of an object's rows.
    pub(super) fn stored_count(&mut self, object: &Object) -> String {
        let id = self.bind(Param::from(object.id));
        format!("(SELECT coalesce(sum(rows), 0) FROM svc_counts WHERE object_id = {id})")
    }

    /// Writes all columns, then the row's version.
    pub(super) fn versioned_columns(&mut self, object: &Object) {
        self.columns(object, 0..object.columns.len());
        self.sql.push_str(", ");
        self.sql.push_str(VERSION_COLUMN);
    }

    /// Writes the same columns, and on SQLite also the rowid, by which the search index refers to the row.
    pub(super) fn record_columns(&mut self, object: &Object) {
        self.versioned_columns(object);
        if self.dialect == Dialect::Sqlite {
            self.sql.push_str(", svc_rowid");
        }
    }

    /// An expression for the number of bytes of all values that can be long. `None` if no column can have such values. To compute
    /// it, neither engine reads values that are stored outside of the rows, except lists and documents on Postgres. The rendered
    /// JSON has at least as many bytes.
    pub(super) fn long_bytes(&self, object: &Object) -> Option<String> {
        let bytes = |column: &Column| {
            let name = quote(&column.name);
            let text = match (self.dialect, column.ty) {
                (Dialect::Sqlite, _) | (Dialect::Postgres, ColumnType::Text) => name,
                (Dialect::Postgres, _) => format!("{name}::text"),
            };
            format!("coalesce(octet_length({text}), 0)")
        };
        let columns: Vec<String> = object.columns.iter().filter(|column| is_long(column)).map(bytes).collect();
        let sum = columns.join(" + ");
        (!columns.is_empty()).then(|| format!("CAST(coalesce(sum({sum}), 0) AS BIGINT)"))
    }

    pub(super) fn insert(&mut self, object: &Object, rows: &[&CreatePlan]) {
        self.sql.push_str("INSERT INTO ");
        write_quoted(&mut self.sql, object.name());
        self.sql.push_str(" (");
        self.versioned_columns(object);
        self.sql.push_str(") VALUES ");
        for (row, plan) in rows.iter().enumerate() {
            self.sql.push_str(if row > 0 { ", (" } else { "(" });
            for (column, value) in object.columns.iter().zip(&plan.values) {
                let placeholder = self.bind(Param::of(column.ty, value.clone()));
                self.sql.push_str(&placeholder);
                self.sql.push_str(", ");
            }
            let version = self.bind(Param::from(plan.version));
            self.sql.push_str(&version);
            self.sql.push(')');
        }
    }

    pub(super) fn columns(&mut self, object: &Object, columns: impl IntoIterator<Item = usize>) {
        for (place, index) in columns.into_iter().enumerate() {
            if place > 0 {
                self.sql.push_str(", ");
            }
            write_quoted(&mut self.sql, &object.columns[index].name);
        }
    }

    /// ` WHERE …`: the row policy first, then the conditions of the request.
    pub(super) fn selection(&mut self, object: &Object, selection: &Selection) {
        let tests = self.selection_tests(object, selection);
        self.where_clause(&tests);
    }

    pub(super) fn selection_tests(&mut self, object: &Object, selection: &Selection) -> Vec<String> {
        let mut tests = self.scope_and_beginning(object, selection);
        tests.extend(self.conditions(object, selection));
        if let Some(term) = &selection.search {
            tests.push(self.search(object, term));
        }
        tests.extend(self.candidates(object, selection));
        tests
    }

    /// The tests of the row policy, and of the rows at which the statement begins.
    pub(super) fn scope_and_beginning(&mut self, object: &Object, selection: &Selection) -> Vec<String> {
        let mut tests = self.scope(object, &selection.scope);
        tests.extend(self.beginning.clone());
        tests
    }

    pub(super) fn record(&mut self, plan: &RecordPlan) {
        let tests = self.record_tests(plan);
        self.where_clause(&tests);
    }

    pub(super) fn record_tests(&mut self, plan: &RecordPlan) -> Vec<String> {
        let id = self.bind(Param::Uuid(Some(plan.id)));
        let mut tests = vec![format!("\"id\" = {id}")];
        tests.extend(self.scope(&plan.object, &plan.scope));
        tests
    }

    pub(super) fn where_clause(&mut self, tests: &[String]) {
        for (place, test) in tests.iter().enumerate() {
            self.sql.push_str(if place > 0 { " AND " } else { " WHERE " });
            self.sql.push_str(test);
        }
    }

    /// `, (SELECT …)`: the unique field of the record that a foreign key of `object` leads to, if the caller sees it. The related
    /// object can be `object` itself, so its table has its own alias. The value has its own alias too. If two columns had the
    /// same name, Postgres would not know by which of them to sort.
    pub(super) fn name(&mut self, object: &Object, name: &NamePlan, number: usize) {
        let key = quote(&object.columns[name.key].name);
        let source = self.source(&name.object, &name.scope, Some("svc_named"));
        let mut tests = vec![format!("svc_named.\"id\" = {}.{key}", quote(object.name()))];
        tests.extend(self.scope_at(&Place::inside(&name.object, "svc_named"), &name.scope));
        if self.dialect == Dialect::Postgres {
            self.sql.push_str(&format!(" /* {}.{} */", name.object.id, name.object.revision));
        }
        let field = quote(&name.column().name);
        self.sql.push_str(&format!(", (SELECT svc_named.{field} FROM {source}"));
        self.where_clause(&tests);
        self.sql.push_str(&format!(") AS svc_name_{number}"));
    }

    /// The source after FROM for the rows of a scope, under the object's name or under `alias`. Usually the tests of the scope
    /// belong in WHERE. But if some cells of the rows cannot be read, the source contains the tests, because WHERE only sees
    /// cells that can be read.
    pub(super) fn source(&mut self, object: &Object, scope: &Scope, alias: Option<&str>) -> String {
        self.source_led_by(object, scope, alias, None)
    }

    /// Does the same if a column of the object leads to the rows. The source then tests the column itself, because an index
    /// cannot find rows by an expression that hides cells.
    pub(super) fn source_led_by(
        &mut self,
        object: &Object,
        scope: &Scope,
        alias: Option<&str>,
        lead: Option<Lead<'_>>,
    ) -> String {
        let name = quote(object.name());
        match (scope, alias) {
            (Scope::Seen(seen), alias) => {
                let rows = self.seen_rows(seen, lead);
                let alias = alias.unwrap_or(&name).to_owned();
                let source = format!("({rows}) AS {alias}");
                self.seen.push((alias, Arc::clone(seen)));
                source
            }
            (_, Some(alias)) => format!("{name} AS {alias}"),
            (_, None) => name,
        }
    }

    /// `SELECT …`: the rows, with null in the cells that cannot be read.
    fn seen_rows(&mut self, seen: &Seen, lead: Option<Lead<'_>>) -> String {
        // The rules are about the table itself, even if the statement already reads its rows under the same name without some cells.
        let outside = std::mem::take(&mut self.seen);
        let rows = self.rows_by_rules(seen, lead);
        self.seen = outside;
        rows
    }

    fn rows_by_rules(&mut self, seen: &Seen, lead: Option<Lead<'_>>) -> String {
        let place = Place::qualified(&seen.whole);
        // Each condition is written once, even if it applies to several cells.
        let mut written: Vec<(*const Condition, String)> = Vec::new();
        let mut readable = |writer: &mut Writer, condition: &Arc<Condition>, value: &str, name: &str| {
            let known = written.iter().find(|(known, _)| *known == Arc::as_ptr(condition)).map(|(_, test)| test.clone());
            let test = known.unwrap_or_else(|| {
                let test = writer.by(Way::ByRow, |writer| writer.condition(&place, condition));
                written.push((Arc::as_ptr(condition), test.clone()));
                test
            });
            format!("CASE WHEN {test} THEN {value} END AS {}", quote(name))
        };
        let mut cells = Vec::with_capacity(seen.cells.len() + 2);
        for (index, condition) in &seen.cells {
            let name = &seen.whole.columns[*index].name;
            let value = place.outside(name);
            cells.push(match condition {
                None => value,
                Some(condition) => readable(self, condition, &value, name),
            });
        }
        for (relationship_id, is_source, condition) in seen.masked_links() {
            let id = place.outside(system::ID);
            cells.push(readable(self, condition, &id, &link_column(relationship_id, is_source)));
        }
        cells.push(format!("{}.{VERSION_COLUMN}", quote(seen.whole.name())));
        if self.dialect == Dialect::Sqlite {
            cells.push(format!("{}.svc_rowid", quote(seen.whole.name())));
        }
        let mut tests = self.by(Way::ByRow, |writer| writer.scope(&seen.whole, &seen.rows));
        if let Some((column, test)) = lead
            && let Some((index, Some(_))) = seen.cells.get(column)
        {
            tests.push(test(&place.outside(&seen.whole.columns[*index].name)));
        }
        let tests = if tests.is_empty() { String::new() } else { format!(" WHERE {}", tests.join(" AND ")) };
        format!("SELECT {} FROM {}{tests}", cells.join(", "), quote(seen.whole.name()))
    }

    /// The column that replaces the id of the rows at `place` in look-ups of links, if the links can be read only in some rows.
    /// It is null in rows whose links cannot be read.
    pub(super) fn masked_links(&self, place: &Place<'_>, shape: RelationShape) -> Option<String> {
        let RelationShape::Linked { relationship_id, is_source } = shape else { return None };
        let (_, seen) = self.seen.iter().rev().find(|(alias, _)| *alias == place.table)?;
        seen.readable_links(shape).map(|_| place.outside(&link_column(relationship_id, is_source)))
    }

    pub(super) fn scope(&mut self, object: &Object, scope: &Scope) -> Vec<String> {
        self.scope_at(&Place::qualified(object), scope)
    }

    pub(super) fn scope_at(&mut self, place: &Place<'_>, scope: &Scope) -> Vec<String> {
        match scope {
            Scope::All => Vec::new(),
            Scope::Own(actor) => {
                let actor = self.bind(Param::Text(Some(actor.clone())));
                vec![format!("{} = {actor}", place.outside(system::CREATED_BY))]
            }
            Scope::Where(condition) => vec![self.condition(place, condition)],
            // `source` has already written the tests for this alias.
            Scope::Seen(_) if self.seen.iter().any(|(alias, _)| *alias == place.table) => Vec::new(),
            // A statement that does not read from `source` would show every cell. So it must not find these rows.
            Scope::Nothing | Scope::Seen(_) => vec!["1 = 0".to_owned()],
        }
    }

    /// The test with the search index. All matching rows pass it, and perhaps also some others.
    fn candidates(&mut self, object: &Object, selection: &Selection) -> Option<String> {
        let term = match &selection.search_by {
            SearchBy::Index => selection.indexed_term(object)?,
            SearchBy::Order => return None,
            SearchBy::Rows(rows) => {
                let list = self.bind(Param::IntegerList(rows.clone()));
                return Some(format!("svc_rowid IN (SELECT value FROM json_each({list}))"));
            }
        };
        Some(match self.dialect {
            Dialect::Sqlite => {
                let index = search_table(object);
                let placeholder = self.bind(Param::Text(Some(trigram_query(term))));
                format!("svc_rowid IN (SELECT rowid FROM {index} WHERE {index} MATCH {placeholder})")
            }
            Dialect::Postgres => {
                let placeholder = self.bind(Param::Text(Some(like_pattern(term))));
                let document = self.dialect.search_document(object);
                format!("{document} LIKE ({} COLLATE \"C\")", postgres_fold(&format!("{placeholder}::text")))
            }
        })
    }

    fn search(&mut self, object: &Object, term: &str) -> String {
        let placeholder = self.bind(Param::Text(Some(term.to_owned())));
        let dialect = self.dialect;
        let table = quote(object.name());
        let tests: Vec<String> = object
            .columns
            .iter()
            .filter(|column| column.is_searchable())
            .map(|column| {
                let name = quote(&column.name);
                match column.ty {
                    ColumnType::TextList => {
                        dialect.any_element(&format!("{table}.{name}"), |item| dialect.contains(item, &placeholder, true))
                    }
                    _ => dialect.contains(&name, &placeholder, true),
                }
            })
            .collect();
        match tests.is_empty() {
            // The term stays bound, so that the statement always has the same number of parameters.
            true => format!("({placeholder} IS NULL)"),
            false => format!("({})", tests.join(" OR ")),
        }
    }

    /// A condition, in parentheses if it has more than one test.
    pub(super) fn condition(&mut self, place: &Place<'_>, condition: &Condition) -> String {
        match condition {
            Condition::Test(predicate) => self.predicate(place, predicate),
            // In SQL, a test of a null value is unknown. Here it counts as false, so its complement is true.
            Condition::Not(predicate) => format!("({}) IS NOT TRUE", self.predicate(place, predicate)),
            Condition::All(parts) => self.joined(place, parts, " AND ", "1 = 1"),
            Condition::Any(parts) => self.joined(place, parts, " OR ", "1 = 0"),
            Condition::Related(related) => self.related(place, related),
        }
    }

    fn joined(&mut self, place: &Place<'_>, parts: &[Condition], by: &str, none: &str) -> String {
        let tests: Vec<String> = parts.iter().map(|part| self.condition(place, part)).collect();
        if tests.is_empty() { none.to_owned() } else { format!("({})", tests.join(by)) }
    }

    fn predicate(&mut self, place: &Place<'_>, predicate: &Predicate) -> String {
        let column = &place.object.columns[predicate.column];
        let name = place.column(column);
        let dialect = self.dialect;
        let lead = match &predicate.test {
            Test::Compare(Comparison::NotEqual, _) => None,
            Test::Compare(..) => dialect.index_lead(column, &name, false),
            Test::In { negated: false, values } if !values.contains(&Value::Null) => dialect.index_lead(column, &name, false),
            Test::In { .. } | Test::IsNull | Test::IsNotNull | Test::Contains { .. } => None,
        };
        let test = self.test(column, &name, &predicate.test);
        match lead {
            Some(lead) => format!("{lead} AND {test}"),
            None => test,
        }
    }

    fn test(&mut self, column: &Column, name: &str, test: &Test) -> String {
        let is_list = column.ty == ColumnType::TextList;
        let dialect = self.dialect;
        match test {
            Test::IsNull => dialect.index_lead(column, name, true).unwrap_or_else(|| format!("{name} IS NULL")),
            Test::IsNotNull => dialect.index_lead(column, name, false).unwrap_or_else(|| format!("{name} IS NOT NULL")),
            Test::Compare(comparison, Value::DecimalBetween { below, scale }) => {
                let operator = match comparison {
                    Comparison::Greater | Comparison::GreaterOrEqual => ">",
                    Comparison::Less | Comparison::LessOrEqual => "<=",
                    // No value of the column is equal to a value that the column cannot have.
                    Comparison::NotEqual => return "1 = 1".to_owned(),
                    Comparison::Equal => return "1 = 0".to_owned(),
                };
                let value = self.bind(Param::Decimal(Some((*below, *scale))));
                format!("{name} {operator} {value}")
            }
            Test::Compare(comparison, value) => {
                let value = self.bind(Param::of(column.ty, value.clone()));
                match comparison {
                    Comparison::Equal if is_list => dialect.any_element(name, |item| format!("{item} = {value}")),
                    Comparison::NotEqual if is_list => {
                        format!("NOT {}", dialect.any_element(name, |item| format!("{item} = {value}")))
                    }
                    Comparison::Equal => format!("{name} = {value}"),
                    Comparison::NotEqual => format!("{name} {} {value}", dialect.is_distinct()),
                    Comparison::Greater => format!("{name} > {value}"),
                    Comparison::GreaterOrEqual => format!("{name} >= {value}"),
                    Comparison::Less => format!("{name} < {value}"),
                    Comparison::LessOrEqual => format!("{name} <= {value}"),
                }
            }
            Test::In { values, negated } => self.in_list(name, column.ty, values, *negated),
            Test::Contains { texts, fold_case } => {
                let terms: Vec<String> = texts.iter().map(|text| self.bind(Param::Text(Some(text.clone())))).collect();
                match (is_list, terms.as_slice()) {
                    (true, _) => {
                        let any = |term: &String| dialect.any_element(name, |item| dialect.contains(item, term, *fold_case));
                        terms.iter().map(any).collect::<Vec<_>>().join(" AND ")
                    }
                    (false, [term]) => dialect.contains(name, term, *fold_case),
                    (false, _) => dialect.contains_all(name, &terms, *fold_case),
                }
            }
        }
    }

    /// No value of the column is equal to a number with more digits than the column has. If null is among the items, `in` also
    /// finds nulls. `nin` keeps nulls unless null is among the items.
    fn in_list(&mut self, name: &str, ty: ColumnType, values: &[Value], negated: bool) -> String {
        let with_null = values.contains(&Value::Null);
        let placeholders: Vec<String> = values
            .iter()
            .filter(|value| !matches!(value, Value::Null | Value::DecimalBetween { .. }))
            .map(|value| self.bind(Param::of(ty, value.clone())))
            .collect();
        let list = placeholders.join(", ");
        let matches = match (placeholders.is_empty(), ty) {
            (true, _) => "1 = 0".to_owned(),
            (false, ColumnType::TextList) => self.dialect.any_element(name, |item| format!("{item} IN ({list})")),
            (false, _) => format!("{name} IN ({list})"),
        };
        match (negated, with_null) {
            (false, false) => matches,
            (false, true) => format!("({matches} OR {name} IS NULL)"),
            (true, false) => format!("(NOT {matches} OR {name} IS NULL)"),
            (true, true) => format!("(NOT {matches} AND {name} IS NOT NULL)"),
        }
    }
}
