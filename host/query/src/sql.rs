//! Plans written as SQL with bound values.

use blockbase_schema::{Column, ColumnType, Object, RelationShape, Value, system};

use crate::access::Scope;
use crate::aggregate::{AggregatePlan, Function};
use crate::ddl::{CONVERTED_COLUMN, link_table, search_table};
use crate::dialect::{Dialect, quote};
use crate::expand::ExpandPlan;
use crate::operator::Operator;
use crate::plan::{
    Assignment, CreatePlan, LinkPlan, ListPlan, Predicate, RecordPlan, SearchBy, Selection, Test, UpdatePlan, UpsertPlan,
};

/// A bound value; the variant says the type even where the value is null, as Postgres asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Text(Option<String>),
    TextList(Option<Vec<String>>),
    OptionalTextList(Vec<Option<String>>),
    Integer(Option<i32>),
    BigInteger(Option<i64>),
    /// Scaled value and scale.
    Decimal(Option<(i64, u8)>),
    Float(Option<f64>),
    Boolean(Option<bool>),
    /// Days since 1970-01-01.
    Date(Option<i32>),
    /// Milliseconds since the epoch.
    Datetime(Option<i64>),
    /// Milliseconds since midnight.
    Time(Option<u32>),
    Json(Option<String>),
    Uuid(Option<uuid::Uuid>),
    UuidList(Vec<uuid::Uuid>),
    /// Rows of SQLite.
    IntegerList(Vec<i64>),
    Bytes(Option<Vec<u8>>),
}

impl From<&str> for Param {
    fn from(text: &str) -> Self {
        Param::Text(Some(text.to_owned()))
    }
}

impl From<String> for Param {
    fn from(text: String) -> Self {
        Param::Text(Some(text))
    }
}

impl From<Option<String>> for Param {
    fn from(text: Option<String>) -> Self {
        Param::Text(text)
    }
}

impl From<i64> for Param {
    fn from(number: i64) -> Self {
        Param::BigInteger(Some(number))
    }
}

impl From<Option<i64>> for Param {
    fn from(number: Option<i64>) -> Self {
        Param::BigInteger(number)
    }
}

impl From<bool> for Param {
    fn from(value: bool) -> Self {
        Param::Boolean(Some(value))
    }
}

impl From<Vec<u8>> for Param {
    fn from(bytes: Vec<u8>) -> Self {
        Param::Bytes(Some(bytes))
    }
}

impl Param {
    /// `value` as a parameter for a column of type `ty`.
    pub fn of(ty: ColumnType, value: Value) -> Param {
        match (ty, value) {
            (ColumnType::Text, Value::Text(text)) => Param::Text(Some(text)),
            // A filter compares a list column's elements.
            (ColumnType::TextList, Value::Text(text)) => Param::Text(Some(text)),
            (ColumnType::TextList, Value::TextList(list)) => Param::TextList(Some(list)),
            (ColumnType::Integer, Value::Integer(number)) => Param::Integer(i32::try_from(number).ok()),
            (ColumnType::BigInteger, Value::Integer(number)) => Param::BigInteger(Some(number)),
            (ColumnType::Decimal { .. }, Value::Decimal { scaled, scale }) => Param::Decimal(Some((scaled, scale))),
            (ColumnType::Float, Value::Float(number)) => Param::Float(Some(number)),
            (ColumnType::Boolean, Value::Boolean(value)) => Param::Boolean(Some(value)),
            (ColumnType::Date, Value::Date(days)) => Param::Date(Some(days)),
            (ColumnType::Datetime, Value::Datetime(millis)) => Param::Datetime(Some(millis)),
            (ColumnType::Time, Value::Time(millis)) => Param::Time(Some(millis)),
            (ColumnType::Json, Value::Json(text)) => Param::Json(Some(text)),
            (ColumnType::Uuid, Value::Uuid(id)) => Param::Uuid(Some(id)),
            (ty, _) => Param::null(ty),
        }
    }

    fn null(ty: ColumnType) -> Param {
        match ty {
            ColumnType::Text => Param::Text(None),
            ColumnType::TextList => Param::TextList(None),
            ColumnType::Integer => Param::Integer(None),
            ColumnType::BigInteger => Param::BigInteger(None),
            ColumnType::Decimal { .. } => Param::Decimal(None),
            ColumnType::Float => Param::Float(None),
            ColumnType::Boolean => Param::Boolean(None),
            ColumnType::Date => Param::Date(None),
            ColumnType::Datetime => Param::Datetime(None),
            ColumnType::Time => Param::Time(None),
            ColumnType::Json => Param::Json(None),
            ColumnType::Uuid => Param::Uuid(None),
        }
    }
}

/// SQL text and what is bound to it.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: String,
    pub params: Vec<Param>,
}

struct Writer {
    dialect: Dialect,
    sql: String,
    params: Vec<Param>,
}

impl Writer {
    /// A statement on `object`. On Postgres its text names the object's number and revision, so that a plan cached for an object
    /// that was dropped or altered is never used for another of its name.
    fn new(dialect: Dialect, object: &Object) -> Writer {
        let mut sql = String::with_capacity(256);
        if dialect == Dialect::Postgres {
            sql.push_str(&format!("/* {}.{} */ ", object.id, object.revision));
        }
        Writer { dialect, sql, params: Vec::new() }
    }

    fn bind(&mut self, param: Param) -> String {
        let is_json = matches!(param, Param::Json(_));
        self.params.push(param);
        let placeholder = self.dialect.placeholder(self.params.len());
        match (self.dialect, is_json) {
            // Bound as text, since that keeps it byte for byte.
            (Dialect::Postgres, true) => format!("{placeholder}::json"),
            _ => placeholder,
        }
    }

    fn finish(self) -> Statement {
        Statement { sql: self.sql, params: self.params }
    }

    /// All columns, and on SQLite the rowid that the search index knows the row by.
    fn record_columns(&mut self, object: &Object) {
        self.columns(object, 0..object.columns.len());
        if self.dialect == Dialect::Sqlite {
            self.sql.push_str(", svc_rowid");
        }
    }

    fn insert(&mut self, object: &Object, rows: &[&CreatePlan]) {
        self.sql.push_str("INSERT INTO ");
        self.sql.push_str(&quote(object.name()));
        self.sql.push_str(" (");
        self.columns(object, 0..object.columns.len());
        self.sql.push_str(") VALUES ");
        for (row, plan) in rows.iter().enumerate() {
            self.sql.push_str(if row > 0 { ", (" } else { "(" });
            for (place, (column, value)) in object.columns.iter().zip(&plan.values).enumerate() {
                if place > 0 {
                    self.sql.push_str(", ");
                }
                let placeholder = self.bind(Param::of(column.ty, value.clone()));
                self.sql.push_str(&placeholder);
            }
            self.sql.push(')');
        }
    }

    fn columns(&mut self, object: &Object, columns: impl IntoIterator<Item = usize>) {
        for (place, index) in columns.into_iter().enumerate() {
            if place > 0 {
                self.sql.push_str(", ");
            }
            self.sql.push_str(&quote(&object.columns[index].name));
        }
    }

    /// ` WHERE …`: the row policy first, then what the caller asked for.
    fn selection(&mut self, object: &Object, selection: &Selection) {
        let mut tests = self.scope(object, &selection.scope);
        for predicate in &selection.predicates {
            let test = self.predicate(object, predicate);
            tests.push(test);
        }
        if let Some(term) = &selection.search {
            tests.push(self.search(object, term));
        }
        tests.extend(self.candidates(object, selection));
        self.wherever(&tests);
    }

    fn record(&mut self, plan: &RecordPlan) {
        let id = self.bind(Param::Uuid(Some(plan.id)));
        let mut tests = vec![format!("\"id\" = {id}")];
        tests.extend(self.scope(&plan.object, &plan.scope));
        self.wherever(&tests);
    }

    fn wherever(&mut self, tests: &[String]) {
        if !tests.is_empty() {
            self.sql.push_str(" WHERE ");
            self.sql.push_str(&tests.join(" AND "));
        }
    }

    fn scope(&mut self, object: &Object, scope: &Scope) -> Vec<String> {
        match scope {
            Scope::All => Vec::new(),
            Scope::Own(actor) => {
                let actor = self.bind(Param::Text(Some(actor.clone())));
                vec![format!("{}.{} = {actor}", quote(object.name()), quote(system::CREATED_BY))]
            }
            Scope::Nothing => vec!["1 = 0".to_owned()],
        }
    }

    /// What the search index takes for the rows: all that match, and perhaps some that do not.
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
                format!("{document} LIKE (upper({placeholder}::text COLLATE \"und-x-icu\") COLLATE \"C\")")
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
            // The term stays bound, so that the shape has one number of parameters.
            true => format!("({placeholder} IS NULL)"),
            false => format!("({})", tests.join(" OR ")),
        }
    }

    fn predicate(&mut self, object: &Object, predicate: &Predicate) -> String {
        let column = &object.columns[predicate.column];
        let is_list = column.ty == ColumnType::TextList;
        let name = match is_list {
            // `json_each` has columns of its own, `type` and `value` among them.
            true => format!("{}.{}", quote(object.name()), quote(&column.name)),
            false => quote(&column.name),
        };
        let dialect = self.dialect;
        let lead = match &predicate.test {
            Test::Compare(Operator::Neq, _) => None,
            Test::Compare(..) => dialect.index_lead(column, &name, false),
            Test::In { negated: false, values } if !values.contains(&Value::Null) => dialect.index_lead(column, &name, false),
            _ => None,
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
            Test::Compare(operator, Value::DecimalBetween { below, scale }) => {
                let (operator, scaled) = match operator {
                    Operator::Gt | Operator::Gte => (">", *below),
                    Operator::Lt | Operator::Lte => ("<=", *below),
                    // No value is equal to one that the column cannot hold.
                    Operator::Neq => return "1 = 1".to_owned(),
                    _ => return "1 = 0".to_owned(),
                };
                let value = self.bind(Param::Decimal(Some((scaled, *scale))));
                format!("{name} {operator} {value}")
            }
            Test::Compare(operator, value) => {
                let value = self.bind(Param::of(column.ty, value.clone()));
                match operator {
                    Operator::Eq if is_list => dialect.any_element(name, |item| format!("{item} = {value}")),
                    Operator::Neq if is_list => {
                        format!("NOT {}", dialect.any_element(name, |item| format!("{item} = {value}")))
                    }
                    Operator::Neq => format!("{name} {} {value}", dialect.is_distinct()),
                    Operator::Gt => format!("{name} > {value}"),
                    Operator::Gte => format!("{name} >= {value}"),
                    Operator::Lt => format!("{name} < {value}"),
                    Operator::Lte => format!("{name} <= {value}"),
                    _ => format!("{name} = {value}"),
                }
            }
            Test::In { values, negated } => self.in_list(name, column.ty, values, *negated),
            Test::Contains { text, fold_case } => {
                let term = self.bind(Param::Text(Some(text.clone())));
                match is_list {
                    true => dialect.any_element(name, |item| dialect.contains(item, &term, *fold_case)),
                    false => dialect.contains(name, &term, *fold_case),
                }
            }
        }
    }

    /// `in` with nulls among the items also finds nulls; `nin` keeps nulls unless they are among the items.
    fn in_list(&mut self, name: &str, ty: ColumnType, values: &[Value], negated: bool) -> String {
        let with_null = values.contains(&Value::Null);
        let placeholders: Vec<String> =
            values.iter().filter(|value| **value != Value::Null).map(|value| self.bind(Param::of(ty, value.clone()))).collect();
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

/// The page's rows; where no total is asked for, one more, which tells whether there is a next page.
pub fn list(dialect: Dialect, plan: &ListPlan) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    writer.sql.push_str("SELECT ");
    writer.columns(&plan.object, plan.columns.iter().chain(&plan.hidden).copied());
    writer.sql.push_str(" FROM ");
    writer.sql.push_str(&quote(plan.object.name()));
    writer.selection(&plan.object, &plan.selection);
    let keys: Vec<String> = plan
        .order
        .iter()
        .map(|(index, descends)| {
            let column = &plan.object.columns[*index];
            dialect.order(column, &quote(&column.name), *descends)
        })
        .collect();
    writer.sql.push_str(" ORDER BY ");
    writer.sql.push_str(&keys.join(", "));
    let limit = writer.bind(Param::from(i64::try_from(plan.paging.limit).unwrap_or(i64::MAX - 1) + i64::from(!plan.with_count)));
    let offset = writer.bind(Param::from(i64::try_from(plan.paging.offset).unwrap_or(i64::MAX)));
    writer.sql.push_str(&format!(" LIMIT {limit} OFFSET {offset}"));
    writer.finish()
}

/// How many rows the selection has: one row of one big integer.
pub fn count(dialect: Dialect, object: &Object, selection: &Selection) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str("SELECT count(*) FROM ");
    writer.sql.push_str(&quote(object.name()));
    writer.selection(object, selection);
    writer.finish()
}

/// The rows that the search index of SQLite takes for matches, `most` at most; `None` where there is no such question.
pub fn candidates(dialect: Dialect, object: &Object, selection: &Selection, most: i64) -> Option<Statement> {
    let (Dialect::Sqlite, SearchBy::Index) = (dialect, &selection.search_by) else { return None };
    let term = selection.indexed_term(object)?;
    let index = search_table(object);
    let mut writer = Writer::new(dialect, object);
    let query = writer.bind(Param::Text(Some(trigram_query(term))));
    let most = writer.bind(Param::from(most));
    writer.sql.push_str(&format!("SELECT rowid FROM {index} WHERE {index} MATCH {query} LIMIT {most}"));
    Some(writer.finish())
}

/// Most trigrams that one look into the search index asks for. They only have to be telling enough; each row is looked at again.
const TRIGRAMS_MAX: usize = 12;

/// The full-text query for rows that may contain `term`: some of its trigrams, all of which such a row has.
fn trigram_query(term: &str) -> String {
    let characters: Vec<char> = term.to_uppercase().chars().collect();
    let last = characters.len().saturating_sub(3);
    let step = (last / TRIGRAMS_MAX).max(1);
    let mut places: Vec<usize> = (0..=last).step_by(step).collect();
    if places.last() != Some(&last) {
        places.push(last);
    }
    let trigrams: Vec<String> = places
        .into_iter()
        .map(|place| {
            let trigram: String = characters[place..].iter().take(3).collect();
            format!("\"{}\"", trigram.replace('"', "\"\""))
        })
        .collect();
    trigrams.join(" AND ")
}

/// A LIKE pattern for texts that contain `term`, whatever characters it has.
fn like_pattern(term: &str) -> String {
    let mut pattern = String::with_capacity(term.len() + 2);
    pattern.push('%');
    for character in term.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// One row: how many rows the selection has, how many of them have a value, and the sum, least or greatest value as text.
pub fn aggregate(dialect: Dialect, plan: &AggregatePlan) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    let column = plan.column.map(|index| &plan.object.columns[index]);
    let name = column.map(|column| quote(&column.name));
    let value = match (&name, column) {
        (Some(name), Some(column)) => aggregate_value(dialect, plan.function, name, column.ty),
        _ => "NULL".to_owned(),
    };
    let counted = name.unwrap_or_else(|| "*".to_owned());
    let cast = if dialect == Dialect::Postgres { "::text" } else { "" };
    writer.sql.push_str(&format!("SELECT count(*), count({counted}), ({value}){cast} FROM {}", quote(plan.object.name())));
    writer.selection(&plan.object, &plan.selection);
    writer.finish()
}

fn aggregate_value(dialect: Dialect, function: Function, name: &str, ty: ColumnType) -> String {
    let scale = match ty {
        ColumnType::Decimal { scale } => scale,
        _ => 0,
    };
    match (function, dialect) {
        (Function::Count, _) => "NULL".to_owned(),
        // Exact whatever the order of the rows: doubles by their shortest digits.
        (Function::Sum | Function::Avg, Dialect::Sqlite) => format!("svc_sum({name}, {scale})"),
        (Function::Sum | Function::Avg, Dialect::Postgres) => match ty {
            ColumnType::Float => format!("sum({name}::text::numeric)"),
            _ => format!("sum({name})"),
        },
        (Function::Min | Function::Max, Dialect::Sqlite) => format!("svc_number_text({}({name}), {scale})", function.name()),
        (Function::Min | Function::Max, Dialect::Postgres) => format!("{}({name})", function.name()),
    }
}

/// Related records: all columns of those that `keys` lead to, in the list's default order. What `keys` are depends on the
/// shape: ids of the related records, or ids of the records that they belong to. For links one more column leads, the
/// record's id on the near side.
pub fn related(dialect: Dialect, plan: &ExpandPlan, keys: Vec<uuid::Uuid>) -> Statement {
    let object = &plan.object;
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(keys));
    let most = writer.bind(Param::from(i64::try_from(crate::expand::RECORDS_MAX).unwrap_or(i64::MAX) + 1));
    let table = quote(object.name());
    let order = format!("ORDER BY {table}.\"created_at\" DESC, {table}.\"id\" DESC LIMIT {most}");
    let columns: Vec<String> = object.columns.iter().map(|column| format!("{table}.{}", quote(&column.name))).collect();
    let columns = columns.join(", ");
    let (head, test) = match plan.shape {
        RelationShape::Forward { .. } => (format!("SELECT {columns} FROM {table}"), dialect.among("\"id\"", &list)),
        RelationShape::Reverse { column, .. } => {
            (format!("SELECT {columns} FROM {table}"), dialect.among(&quote(&object.columns[column].name), &list))
        }
        RelationShape::Linked { relationship_id, is_source } => {
            let (near, far) = link_sides(is_source);
            let links = link_table(relationship_id);
            (
                format!("SELECT {columns}, {links}.{near} FROM {links} JOIN {table} ON {table}.\"id\" = {links}.{far}"),
                dialect.among(&format!("{links}.{near}"), &list),
            )
        }
    };
    let mut tests = vec![test];
    tests.extend(writer.scope(object, &plan.scope));
    writer.sql.push_str(&head);
    writer.wherever(&tests);
    writer.sql.push_str(&format!(" {order}"));
    writer.finish()
}

fn link_sides(is_source: bool) -> (&'static str, &'static str) {
    match is_source {
        true => ("source_id", "target_id"),
        false => ("target_id", "source_id"),
    }
}

/// Which of the records that are to be linked the caller sees: their ids.
pub fn visible(dialect: Dialect, object: &Object, scope: &Scope, ids: Vec<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str(&format!("SELECT \"id\" FROM {}", quote(object.name())));
    writer.wherever(&tests);
    writer.finish()
}

/// Adds links, or removes them; answers with the far ids of those that were not there, or were.
pub fn change_links(dialect: Dialect, plan: &LinkPlan, adds: bool) -> Option<Statement> {
    let RelationShape::Linked { relationship_id, is_source } = plan.relation.shape else { return None };
    let (near, far) = link_sides(is_source);
    let links = link_table(relationship_id);
    let mut writer = Writer::new(dialect, &plan.record.object);
    let id = writer.bind(Param::Uuid(Some(plan.record.id)));
    let list = writer.bind(Param::UuidList(plan.target_ids.clone()));
    let sql = match (adds, dialect) {
        (true, Dialect::Sqlite) => format!(
            "INSERT INTO {links} ({near}, {far}) SELECT {id}, value FROM json_each({list}) WHERE true ON CONFLICT DO NOTHING RETURNING {far}"
        ),
        (true, Dialect::Postgres) => format!(
            "INSERT INTO {links} ({near}, {far}) SELECT {id}, far FROM unnest({list}) AS far ON CONFLICT DO NOTHING RETURNING {far}"
        ),
        (false, _) => {
            format!("DELETE FROM {links} WHERE {near} = {id} AND {} RETURNING {far}", dialect.among(far, &list))
        }
    };
    writer.sql.push_str(&sql);
    Some(writer.finish())
}

/// Records that refer to others by a foreign key, all columns; locked where the engine has row locks.
pub fn referring(dialect: Dialect, object: &Object, column: usize, ids: Vec<uuid::Uuid>, most: i64) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let most = writer.bind(Param::from(most));
    writer.sql.push_str("SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    let test = dialect.among(&quote(&object.columns[column].name), &list);
    writer.wherever(&[test]);
    writer.sql.push_str(&format!(" ORDER BY \"id\" LIMIT {most}"));
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// One value of each row as JSON, in the order of ids: the rows after `after`, `most` of them.
pub fn column_page(dialect: Dialect, object: &Object, column: &Column, after: uuid::Uuid, most: i64) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let after = writer.bind(Param::Uuid(Some(after)));
    let most = writer.bind(Param::from(most));
    writer.sql.push_str(&format!(
        "SELECT \"id\", {} FROM {} WHERE \"id\" > {after} ORDER BY \"id\" LIMIT {most}",
        quote(&column.name),
        quote(object.name())
    ));
    writer.finish()
}

/// How many rows share their values of `columns` with another row.
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

/// Whether another row than `besides` has these values: a row or none.
pub fn duplicate(dialect: Dialect, object: &Object, values: &[(usize, &Value)], besides: Option<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let mut tests: Vec<String> = values
        .iter()
        .map(|(index, value)| {
            let column = &object.columns[*index];
            let value = writer.bind(Param::of(column.ty, (*value).clone()));
            format!("{} = {value}", quote(&column.name))
        })
        .collect();
    if let Some(id) = besides {
        let id = writer.bind(Param::Uuid(Some(id)));
        tests.push(format!("\"id\" <> {id}"));
    }
    writer.sql.push_str(&format!("SELECT \"id\" FROM {}", quote(object.name())));
    writer.wherever(&tests);
    writer.sql.push_str(" LIMIT 1");
    writer.finish()
}

/// How many rows there are, counted.
pub fn count_all(dialect: Dialect, object: &Object) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str(&format!("SELECT count(*) FROM {}", quote(object.name())));
    writer.finish()
}

/// How many rows have no value of a column.
pub fn count_nulls(dialect: Dialect, object: &Object, column: &Column) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str(&format!("SELECT count(*) FROM {} WHERE {} IS NULL", quote(object.name()), quote(&column.name)));
    writer.finish()
}

/// The statement that adds the column for converted values.
pub fn add_converted_column(dialect: Dialect, object: &Object) -> String {
    let ty = if dialect == Dialect::Sqlite { "TEXT" } else { "text COLLATE \"C\"" };
    format!("ALTER TABLE {} ADD COLUMN {CONVERTED_COLUMN} {ty}", quote(object.name()))
}

/// Writes converted texts to their rows.
pub fn write_converted(dialect: Dialect, object: &Object, ids: Vec<uuid::Uuid>, texts: Vec<String>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let ids = writer.bind(Param::UuidList(ids));
    let texts = writer.bind(Param::TextList(Some(texts)));
    let table = quote(object.name());
    writer.sql.push_str(&match dialect {
        Dialect::Sqlite => format!(
            "UPDATE {table} SET {CONVERTED_COLUMN} = new.text FROM (SELECT ids.value AS id, texts.value AS text FROM json_each({ids}) AS ids \
             JOIN json_each({texts}) AS texts ON ids.key = texts.key) AS new WHERE {table}.\"id\" = new.id"
        ),
        Dialect::Postgres => format!(
            "UPDATE {table} SET {CONVERTED_COLUMN} = new.text FROM unnest({ids}, {texts}) AS new (id, text) WHERE {table}.\"id\" = new.id"
        ),
    });
    writer.finish()
}

/// The record, all columns; `for_update` locks its row where the engine has row locks.
pub fn get(dialect: Dialect, plan: &RecordPlan, for_update: bool) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    writer.sql.push_str("SELECT ");
    match for_update {
        true => writer.record_columns(&plan.object),
        false => writer.columns(&plan.object, 0..plan.object.columns.len()),
    }
    writer.sql.push_str(" FROM ");
    writer.sql.push_str(&quote(plan.object.name()));
    writer.record(plan);
    if for_update && dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// The new rows, all of one object, in one statement.
pub fn insert(dialect: Dialect, object: &Object, rows: &[&CreatePlan]) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.insert(object, rows);
    writer.finish()
}

/// The values of a new row, to be bound to the statement that [`insert`] makes of one row.
pub fn insert_params(plan: &CreatePlan) -> impl Iterator<Item = Param> {
    plan.object.columns.iter().zip(&plan.values).map(|(column, value)| Param::of(column.ty, value.clone()))
}

/// The new row, or the change of the one that it conflicts with; answers with the row as it is afterwards, and on Postgres
/// with one more boolean: whether it was changed. No row where the policy hides it.
pub fn upsert(dialect: Dialect, plan: &UpsertPlan) -> Statement {
    let object = &plan.create.object;
    let mut writer = Writer::new(dialect, object);
    writer.insert(object, &[&plan.create]);
    let names = |columns: &[usize]| columns.iter().map(|index| quote(&object.columns[*index].name)).collect::<Vec<_>>();
    let mut sets: Vec<String> = names(&plan.overwrites).iter().map(|name| format!("{name} = excluded.{name}")).collect();
    for name in [system::UPDATED_AT, system::UPDATED_BY].map(quote) {
        sets.push(format!("{name} = excluded.{name}"));
    }
    writer.sql.push_str(&format!(" ON CONFLICT ({}) DO UPDATE SET {}", names(&plan.target).join(", "), sets.join(", ")));
    let tests = writer.scope(object, &plan.scope);
    writer.wherever(&tests);
    writer.sql.push_str(" RETURNING ");
    writer.record_columns(object);
    if dialect == Dialect::Postgres {
        writer.sql.push_str(", xmax <> 0");
    }
    writer.finish()
}

/// The record that an upsert would change, locked where the engine has row locks.
pub fn conflicting(dialect: Dialect, plan: &UpsertPlan) -> Statement {
    let object = &plan.create.object;
    let mut writer = Writer::new(dialect, object);
    let tests: Vec<String> = plan
        .target
        .iter()
        .map(|index| {
            let column = &object.columns[*index];
            let value = writer.bind(Param::of(column.ty, plan.create.values[*index].clone()));
            format!("{} = {value}", quote(&column.name))
        })
        .collect();
    writer.sql.push_str("SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    writer.wherever(&tests);
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// The change, answering with the row as it is afterwards.
pub fn update(dialect: Dialect, plan: &UpdatePlan) -> Statement {
    let object = &plan.record.object;
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str("UPDATE ");
    writer.sql.push_str(&quote(object.name()));
    writer.sql.push_str(" SET ");
    for (index, assignment) in &plan.assignments {
        let column = &object.columns[*index];
        let name = quote(&column.name);
        let text = match assignment {
            Assignment::Set(value) => {
                let value = writer.bind(Param::of(column.ty, value.clone()));
                format!("{name} = {value}, ")
            }
            Assignment::Add(amount) => {
                let amount = writer.bind(Param::of(column.ty, amount.clone()));
                format!("{name} = {name} + {amount}, ")
            }
        };
        writer.sql.push_str(&text);
    }
    let now = writer.bind(Param::Datetime(Some(plan.stamp.now)));
    let actor = writer.bind(Param::Text(plan.stamp.actor_id.clone()));
    writer.sql.push_str(&format!("{} = {now}, {} = {actor}", quote(system::UPDATED_AT), quote(system::UPDATED_BY)));
    writer.record(&plan.record);
    writer.sql.push_str(" RETURNING ");
    writer.record_columns(object);
    writer.finish()
}

/// Records by id, all columns; locked where the engine has row locks.
pub fn get_many(dialect: Dialect, object: &Object, scope: &Scope, ids: Vec<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str("SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    writer.wherever(&tests);
    // In one order, so that two that lock the same rows do not wait for each other.
    writer.sql.push_str(" ORDER BY \"id\"");
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// The removal of records that were looked at before.
pub fn delete_many(dialect: Dialect, object: &Object, ids: Vec<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let test = dialect.among("\"id\"", &list);
    writer.sql.push_str(&format!("DELETE FROM {}", quote(object.name())));
    writer.wherever(&[test]);
    writer.finish()
}
