//! Plans written as SQL with bound values.

use blockbase_schema::{ColumnType, Object, Value, system};

use crate::access::Scope;
use crate::dialect::{Dialect, quote};
use crate::operator::Operator;
use crate::plan::{Assignment, CreatePlan, ListPlan, Predicate, RecordPlan, Selection, Test, UpdatePlan};

/// A bound value; the variant says the type even where the value is null, as Postgres asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Text(Option<String>),
    TextList(Option<Vec<String>>),
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
    fn of(ty: ColumnType, value: Value) -> Param {
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
    /// A statement on `object`. On Postgres its text names the object's number, so that a plan cached for an object that was
    /// dropped is never used for another of its name.
    fn new(dialect: Dialect, object: &Object) -> Writer {
        let mut sql = String::with_capacity(256);
        if dialect == Dialect::Postgres {
            sql.push_str(&format!("/* {} */ ", object.id));
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
        let mut tests = self.scope(&selection.scope);
        for predicate in &selection.predicates {
            let test = self.predicate(object, predicate);
            tests.push(test);
        }
        if let Some(term) = &selection.search {
            tests.push(self.search(object, term));
        }
        self.wherever(&tests);
    }

    fn record(&mut self, plan: &RecordPlan) {
        let id = self.bind(Param::Uuid(Some(plan.id)));
        let mut tests = vec![format!("\"id\" = {id}")];
        tests.extend(self.scope(&plan.scope));
        self.wherever(&tests);
    }

    fn wherever(&mut self, tests: &[String]) {
        if !tests.is_empty() {
            self.sql.push_str(" WHERE ");
            self.sql.push_str(&tests.join(" AND "));
        }
    }

    fn scope(&mut self, scope: &Scope) -> Vec<String> {
        match scope {
            Scope::All => Vec::new(),
            Scope::Own(actor) => {
                let actor = self.bind(Param::Text(Some(actor.clone())));
                vec![format!("{} = {actor}", quote(system::CREATED_BY))]
            }
            Scope::Nothing => vec!["1 = 0".to_owned()],
        }
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
        match &predicate.test {
            Test::IsNull => format!("{name} IS NULL"),
            Test::IsNotNull => format!("{name} IS NOT NULL"),
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
                    Operator::Eq if is_list => dialect.any_element(&name, |item| format!("{item} = {value}")),
                    Operator::Neq if is_list => {
                        format!("NOT {}", dialect.any_element(&name, |item| format!("{item} = {value}")))
                    }
                    Operator::Neq => format!("{name} {} {value}", dialect.is_distinct()),
                    Operator::Gt => format!("{name} > {value}"),
                    Operator::Gte => format!("{name} >= {value}"),
                    Operator::Lt => format!("{name} < {value}"),
                    Operator::Lte => format!("{name} <= {value}"),
                    _ => format!("{name} = {value}"),
                }
            }
            Test::In { values, negated } => self.in_list(&name, column.ty, values, *negated),
            Test::Contains { text, fold_case } => {
                let term = self.bind(Param::Text(Some(text.clone())));
                match is_list {
                    true => dialect.any_element(&name, |item| dialect.contains(item, &term, *fold_case)),
                    false => dialect.contains(&name, &term, *fold_case),
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
    writer.columns(&plan.object, plan.columns.iter().copied());
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

/// The record, all columns; `for_update` locks its row where the engine has row locks.
pub fn get(dialect: Dialect, plan: &RecordPlan, for_update: bool) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    writer.sql.push_str("SELECT ");
    writer.columns(&plan.object, 0..plan.object.columns.len());
    writer.sql.push_str(" FROM ");
    writer.sql.push_str(&quote(plan.object.name()));
    writer.record(plan);
    if for_update && dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// The new row.
pub fn insert(dialect: Dialect, plan: &CreatePlan) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    writer.sql.push_str("INSERT INTO ");
    writer.sql.push_str(&quote(plan.object.name()));
    writer.sql.push_str(" (");
    writer.columns(&plan.object, 0..plan.object.columns.len());
    writer.sql.push_str(") VALUES (");
    for (place, (column, value)) in plan.object.columns.iter().zip(&plan.values).enumerate() {
        if place > 0 {
            writer.sql.push_str(", ");
        }
        let placeholder = writer.bind(Param::of(column.ty, value.clone()));
        writer.sql.push_str(&placeholder);
    }
    writer.sql.push(')');
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
    writer.columns(object, 0..object.columns.len());
    writer.finish()
}

/// The removal of one record.
pub fn delete(dialect: Dialect, plan: &RecordPlan) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    writer.sql.push_str("DELETE FROM ");
    writer.sql.push_str(&quote(plan.object.name()));
    writer.record(plan);
    writer.finish()
}
