//! The rows of a request: the row policy, the filters, the condition and the search.

use std::sync::Arc;

use blockbase_schema::{Code, Column, ColumnType, Error, Hint, Object, Result, Value, excerpt, fold, parse_filter_text};

use super::column_index;
use crate::access::{Access, Scope};
use crate::condition::{self, Condition, Reading, Where};
use crate::limits::{FILTER_VALUES_MAX, LIST_ITEMS_MAX};
use crate::operator::{Operand, Operator};
use crate::request::{FOREIGN_FILTER, Filter, FilterValue};

/// One test of one column. `column` is an index into `Object::columns`.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    pub column: usize,
    pub test: Test,
}

/// How a column is compared with one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    /// Not equal, or null.
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// The test of a predicate on its column.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// A comparison with a value that is not null.
    Compare(Comparison, Value),
    /// `in`, or `nin` if negated. `nin` is also true for nulls, unless null is among the values.
    In {
        values: Vec<Value>,
        negated: bool,
    },
    IsNull,
    IsNotNull,
    /// `like`, or `ilike` if case is folded: the column contains each of the texts.
    Contains {
        texts: Vec<String>,
        fold_case: bool,
    },
}

impl Test {
    /// Whether the test is true for null.
    pub(crate) fn holds_on_null(&self) -> bool {
        match self {
            Test::IsNull | Test::Compare(Comparison::NotEqual, _) => true,
            Test::In { values, negated } => values.contains(&Value::Null) != *negated,
            Test::IsNotNull | Test::Compare(..) | Test::Contains { .. } => false,
        }
    }

    /// The number of values that the test binds.
    pub(crate) fn values(&self) -> usize {
        match self {
            Test::In { values, .. } => values.len(),
            Test::IsNull | Test::IsNotNull => 0,
            Test::Contains { texts, .. } => texts.len(),
            Test::Compare(..) => 1,
        }
    }
}

/// The number of characters of the shortest text that the search index can find.
const TRIGRAM_CHARS: usize = 3;

/// The way to find rows that contain a text, if a search index can find candidates.
#[derive(Debug, Clone, Default)]
pub enum SearchBy {
    /// With the search index.
    #[default]
    Index,
    /// Row by row, in the order of the list. This is quicker if many rows match.
    Order,
    /// Among these rows of SQLite, which the search index has already found.
    Rows(Vec<i64>),
}

/// The rows that both the row policy and the request select.
#[derive(Debug, Clone)]
pub struct Selection {
    pub scope: Scope,
    pub search: Option<String>,
    /// The filters and the condition. A row has to meet all of these.
    pub conditions: Vec<Condition>,
    /// The way to find rows that contain a text.
    pub search_by: SearchBy,
}

impl Selection {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with the mistake; `forbidden` for a relation to an object that the
    /// caller may not read.
    pub fn new(
        object: &Object,
        access: &Access,
        search: Option<String>,
        filters: &[Filter],
        wheres: &[Where],
        reading: &Reading<'_>,
    ) -> Result<Selection> {
        Selection::counted(object, access, search, filters, wheres, reading).map(|(selection, _)| selection.with_policy())
    }

    /// Does the same, but without the condition of a row policy. Also returns the number of tests in the request.
    fn counted(
        object: &Object,
        access: &Access,
        search: Option<String>,
        filters: &[Filter],
        wheres: &[Where],
        reading: &Reading<'_>,
    ) -> Result<(Selection, usize)> {
        let (named, wheres) = condition::split(object, wheres)?;
        let filters = filters.iter().chain(&named);
        let predicates: Vec<Predicate> = filters.map(|filter| predicate(object, filter)).collect::<Result<_>>()?;
        let mut tests = predicates.len();
        let mut items: usize = predicates.iter().map(|predicate| predicate.test.values()).sum();
        let mut conditions: Vec<Condition> = gathered(predicates).into_iter().map(Condition::Test).collect();
        if let Some(asked) = wheres {
            let (asked, leaves) = condition::read_counted(object, asked, reading)?;
            tests += leaves;
            items += asked.values();
            conditions = match Condition::all(conditions.into_iter().chain([asked]).collect()) {
                Condition::All(parts) => parts,
                one => vec![one],
            };
        }
        if items > FILTER_VALUES_MAX {
            return Err(Error::invalid_request(format!("The filters of a request hold {FILTER_VALUES_MAX} values at most.")));
        }
        Ok((Selection { scope: access.scope().clone(), search, conditions, search_by: SearchBy::Index }, tests))
    }

    /// The same selection, with the condition of a row policy among the conditions. So statements can use either of them to find
    /// rows.
    fn with_policy(mut self) -> Selection {
        if let Scope::Where(policy) = &self.scope {
            let all = Condition::all(std::iter::once(policy.as_ref().clone()).chain(self.conditions).collect());
            self.conditions = match all {
                Condition::All(parts) => parts,
                one => vec![one],
            };
            self.scope = Scope::All;
        }
        self
    }

    /// The rows of a write.
    ///
    /// # Errors
    /// The errors of [`Selection::new`]; `invalid_request` for a condition that every record meets, or that tests nothing.
    pub fn to_write(object: &Object, access: &Access, wheres: &[Where], reading: &Reading<'_>) -> Result<Selection> {
        let (selection, tests) = Selection::counted(object, access, None, &[], wheres, reading)?;
        match (tests, selection.conditions.is_empty()) {
            (1.., false) => Ok(selection.with_policy()),
            (0, _) => Err(Error::invalid_request("The condition of a call for many records has to test a field.")),
            (_, true) => {
                Err(Error::invalid_request("Every record meets the condition. A call for many records needs a narrower one."))
            }
        }
    }

    /// The tests that every selected row meets.
    fn tests(&self) -> impl Iterator<Item = &Predicate> {
        self.conditions.iter().filter_map(|condition| match condition {
            Condition::Test(predicate) => Some(predicate),
            Condition::Not(_) | Condition::All(_) | Condition::Any(_) | Condition::Related(_) => None,
        })
    }

    /// The longest of the texts that rows have to contain, among those for which the search index can find candidates.
    pub(crate) fn indexed_term(&self, object: &Object) -> Option<&str> {
        let filters = self.tests().flat_map(|predicate| match &predicate.test {
            Test::Contains { texts, .. } if object.columns[predicate.column].is_searchable() => texts.as_slice(),
            _ => &[],
        });
        if !object.has_search_index() {
            return None;
        }
        let terms = self.search.as_deref().into_iter();
        let terms = terms.chain(filters.map(String::as_str));
        terms.filter(|term| fold(term).chars().count() >= TRIGRAM_CHARS).max_by_key(|term| term.chars().count())
    }

    /// Whether the selection searches through complete texts. The engine's count of steps does not include the length of these
    /// texts.
    pub fn reads_texts(&self) -> bool {
        self.search.is_some() || self.scope.reads_texts() || self.conditions.iter().any(Condition::reads_texts)
    }

    /// Whether it selects every row of the object, so that the stored count is the total.
    pub fn is_everything(&self) -> bool {
        self.scope == Scope::All && self.search.is_none() && self.conditions.is_empty()
    }

    /// The other objects whose rows the selection reads.
    pub fn related_objects(&self) -> Vec<Arc<Object>> {
        let mut objects = Vec::new();
        self.scope.objects_into(&mut objects);
        self.conditions.iter().for_each(|condition| condition.objects_into(&mut objects));
        objects
    }
}

/// A filter as a test of a column.
pub(crate) fn predicate(object: &Object, filter: &Filter) -> Result<Predicate> {
    let index = column_index(object, &filter.field).map_err(|error| match (filter.field.as_str(), &filter.value) {
        (FOREIGN_FILTER, FilterValue::Text(_)) => error.with_hint(Hint::FilterByField),
        _ => error,
    })?;
    let column = &object.columns[index];
    if !filter.operator.applies_to(column.ty) {
        let message = format!("`{}` is {}, which this operator cannot compare.", column.name, column.kind.name());
        return Err(Error::invalid_request(message).with_field(column.name.clone()));
    }
    let test = match filter.operator {
        Operator::IsNull => Test::IsNull,
        Operator::IsNotNull => Test::IsNotNull,
        Operator::In => Test::In { values: list_values(column, &filter.value)?, negated: false },
        Operator::Nin => Test::In { values: list_values(column, &filter.value)?, negated: true },
        Operator::Like => Test::Contains { texts: vec![search_text(column, &filter.value)?], fold_case: false },
        Operator::Ilike => Test::Contains { texts: vec![search_text(column, &filter.value)?], fold_case: true },
        Operator::Eq => match one_value(column, &filter.value).map_err(|error| spelled(error, column, &filter.value))? {
            Value::Null => Test::IsNull,
            value => Test::Compare(Comparison::Equal, value),
        },
        Operator::Neq => match one_value(column, &filter.value)? {
            Value::Null => Test::IsNotNull,
            value => Test::Compare(Comparison::NotEqual, value),
        },
        Operator::Gt => Test::Compare(Comparison::Greater, ordered_value(column, &filter.value)?),
        Operator::Gte => Test::Compare(Comparison::GreaterOrEqual, ordered_value(column, &filter.value)?),
        Operator::Lt => Test::Compare(Comparison::Less, ordered_value(column, &filter.value)?),
        Operator::Lte => Test::Compare(Comparison::LessOrEqual, ordered_value(column, &filter.value)?),
    };
    Ok(Predicate { column: index, test })
}

/// The error of a value. `priority=gte.2`, a form of other products, gets the right spelling.
fn spelled(error: Error, column: &Column, value: &FilterValue) -> Error {
    let FilterValue::Text(text) = value else { return error };
    // A text may begin like this.
    let Some((name, operand)) = text.split_once('.').filter(|_| column.ty != ColumnType::Text) else { return error };
    if operand.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return error;
    }
    let Ok(operator) = Operator::parse(name) else { return error };
    let operand = match operator.operand() {
        Operand::List => operand.strip_prefix('(').and_then(|items| items.strip_suffix(')')).unwrap_or(operand),
        Operand::Ordered | Operand::Value => operand,
        Operand::Text | Operand::Nothing => return error,
    };
    match operator.applies_to(column.ty) {
        true => {
            let (field, value) = (column.name.clone(), excerpt(operand).into_owned());
            error.with_hint(Hint::Filter { field, operator: operator.name(), value })
        }
        false => error,
    }
}

/// The same tests without duplicates. All texts that a column has to contain are in one test, so that the column's text is folded
/// only once for each row.
fn gathered(predicates: Vec<Predicate>) -> Vec<Predicate> {
    let mut kept: Vec<Predicate> = Vec::with_capacity(predicates.len());
    for predicate in predicates {
        let Test::Contains { texts, fold_case } = &predicate.test else {
            if !kept.contains(&predicate) {
                kept.push(predicate);
            }
            continue;
        };
        let of_column = kept.iter_mut().find_map(|known| match &mut known.test {
            Test::Contains { texts, fold_case: folds } if known.column == predicate.column && folds == fold_case => Some(texts),
            _ => None,
        });
        match of_column {
            Some(known) => {
                for text in texts {
                    if !known.contains(text) {
                        known.push(text.clone());
                    }
                }
            }
            None => kept.push(predicate),
        }
    }
    kept
}

fn filter_value(column: &Column, value: &FilterValue) -> Result<Value> {
    match value {
        FilterValue::Text(text) if text == "null" => Ok(Value::Null),
        FilterValue::Text(text) => parse_filter_text(column, text),
        FilterValue::Json(raw) => column.filter_value_of(raw.get()),
    }
}

fn invalid(column: &Column, message: impl Into<String>) -> Error {
    Error::new(Code::InvalidValue, message).with_field(column.name.clone())
}

/// A value, or null. A list is compared with one of its elements.
fn one_value(column: &Column, value: &FilterValue) -> Result<Value> {
    element(column, filter_value(column, value)?)
}

fn element(column: &Column, value: Value) -> Result<Value> {
    match value {
        Value::TextList(_) => Err(invalid(column, format!("`{}` is a list. Compare it with one element.", column.name))),
        value => Ok(value),
    }
}

fn ordered_value(column: &Column, value: &FilterValue) -> Result<Value> {
    match one_value(column, value)? {
        Value::Null => Err(invalid(column, format!("`{}`: null has no order.", column.name))),
        value => Ok(value),
    }
}

/// The text to search for in a column.
fn search_text(column: &Column, value: &FilterValue) -> Result<String> {
    let text = match value {
        FilterValue::Text(text) => text.clone(),
        FilterValue::Json(raw) => serde_json::from_str(raw.get())
            .map_err(|_| invalid(column, format!("`{}`: like and ilike need a string.", column.name)))?,
    };
    match text.contains('\0') {
        true => Err(invalid(column, "Text cannot hold the NUL character.")),
        false => Ok(text),
    }
}

fn list_values(column: &Column, value: &FilterValue) -> Result<Vec<Value>> {
    let raw_items: Vec<FilterValue> = match value {
        FilterValue::Text(text) => split_list(text).into_iter().map(FilterValue::Text).collect(),
        FilterValue::Json(raw) => match raw.get().trim_start().as_bytes().first() {
            Some(b'[') => serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(raw.get())
                .map_err(|error| Error::invalid_request(format!("The list of `{}` is not JSON: {error}.", column.name)))?
                .into_iter()
                .map(FilterValue::Json)
                .collect(),
            Some(b'"') => {
                let text: String = serde_json::from_str(raw.get())
                    .map_err(|error| Error::invalid_request(format!("The list of `{}` is not JSON: {error}.", column.name)))?;
                split_list(&text).into_iter().map(FilterValue::Text).collect()
            }
            _ => vec![value.clone()],
        },
    };
    if raw_items.len() > LIST_ITEMS_MAX {
        let message = format!("{} take {LIST_ITEMS_MAX} items at most.", Operand::List.operators());
        return Err(Error::invalid_request(message).with_field(column.name.clone()));
    }
    let values: Vec<Value> = raw_items.iter().map(|item| filter_value(column, item)).collect::<Result<_>>()?;
    values.into_iter().map(|value| element(column, value)).collect()
}

/// Splits a comma-separated list. An item in double quotes keeps its commas, and `""` in it means one quote.
fn split_list(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                item.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if item.is_empty() => quoted = true,
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            _ => item.push(character),
        }
    }
    items.push(item);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_items_may_be_quoted() {
        assert_eq!(split_list("a,b"), ["a", "b"]);
        assert_eq!(split_list(r#""a,b",c"#), ["a,b", "c"]);
        assert_eq!(split_list(r#""say ""hi""",x"#), [r#"say "hi""#, "x"]);
        assert_eq!(split_list(""), [""]);
    }
}
