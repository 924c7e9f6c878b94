//! A request that the schema has looked at: columns instead of names, values instead of text.

use std::sync::Arc;

use blockbase_schema::json::Members;
use blockbase_schema::{
    Code, Column, ColumnType, Error, FieldType, Object, Relation, RelationShape, Result, Value, parse_filter_text, system,
};

use crate::access::{Access, Scope};
use crate::expand::ExpandPlan;
use crate::operator::Operator;
use crate::request::{Filter, FilterValue, ListRequest, Paging};

/// One test of one column; `column` is a place in `Object::columns`.
#[derive(Debug, Clone)]
pub struct Predicate {
    pub column: usize,
    pub test: Test,
}

/// What a predicate asks of its column.
#[derive(Debug, Clone)]
pub enum Test {
    /// `eq neq gt gte lt lte`, the value not null.
    Compare(Operator, Value),
    /// `in`; negated it also keeps nulls.
    In {
        values: Vec<Value>,
        negated: bool,
    },
    IsNull,
    IsNotNull,
    /// `like`, or `ilike` where case is folded.
    Contains {
        text: String,
        fold_case: bool,
    },
}

impl Test {
    /// How many values it binds.
    fn values(&self) -> usize {
        match self {
            Test::In { values, .. } => values.len(),
            Test::IsNull | Test::IsNotNull => 0,
            Test::Compare(..) | Test::Contains { .. } => 1,
        }
    }
}

/// Most values that the filters of one request bind. SQLite's own bound is 32,766, Postgres' 65,535.
const VALUES_MAX: usize = 10_000;

/// Characters of the shortest text that the search index knows.
const TRIGRAM_CHARS: usize = 3;

/// How rows that contain a text are found, where a search index can tell candidates.
#[derive(Debug, Clone, Default)]
pub enum SearchBy {
    /// By the search index.
    #[default]
    Index,
    /// Row by row in the order of the list, which is quicker where many of them match.
    Order,
    /// Among these rows of SQLite, which the search index told before.
    Rows(Vec<i64>),
}

/// Which rows, by policy and by request.
#[derive(Debug, Clone)]
pub struct Selection {
    pub scope: Scope,
    pub search: Option<String>,
    pub predicates: Vec<Predicate>,
    /// How rows that contain a text are found.
    pub search_by: SearchBy,
}

impl Selection {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with what is wrong.
    pub fn new(object: &Object, access: &Access, search: Option<String>, filters: &[Filter]) -> Result<Selection> {
        let predicates: Vec<Predicate> = filters.iter().map(|filter| predicate(object, filter)).collect::<Result<_>>()?;
        let items: usize = predicates.iter().map(|predicate| predicate.test.values()).sum();
        if items > VALUES_MAX {
            return Err(Error::invalid_request(format!("The filters of a request hold {VALUES_MAX} values at most.")));
        }
        Ok(Selection { scope: access.scope().clone(), search, predicates, search_by: SearchBy::Index })
    }

    /// The longest text that rows have to contain, if the search index can tell candidates for it.
    pub(crate) fn indexed_term(&self, object: &Object) -> Option<&str> {
        let filters = self.predicates.iter().filter_map(|predicate| match &predicate.test {
            Test::Contains { text, .. } if object.columns[predicate.column].is_searchable() => Some(text.as_str()),
            _ => None,
        });
        let terms = self.search.as_deref().into_iter().filter(|_| object.is_searchable()).chain(filters);
        terms.filter(|term| term.to_uppercase().chars().count() >= TRIGRAM_CHARS).max_by_key(|term| term.chars().count())
    }

    /// Whether it is every row of the object, so that the kept count is the answer.
    pub fn is_everything(&self) -> bool {
        self.scope == Scope::All && self.search.is_none() && self.predicates.is_empty()
    }
}

/// The list operation.
#[derive(Debug, Clone)]
pub struct ListPlan {
    pub object: Arc<Object>,
    pub selection: Selection,
    /// Columns and whether they descend; the tie-breaking `id` included.
    pub order: Vec<(usize, bool)>,
    pub paging: Paging,
    /// What the records show.
    pub columns: Vec<usize>,
    /// What is read besides, to find the related records by.
    pub hidden: Vec<usize>,
    pub expand: Vec<ExpandPlan>,
    pub with_count: bool,
}

impl ListPlan {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with what is wrong.
    pub fn new(object: &Arc<Object>, access: &Access, request: &ListRequest, expand: Vec<ExpandPlan>) -> Result<ListPlan> {
        let selection = Selection::new(object, access, request.search.clone(), &request.filters)?;
        let columns = projection(object, request.select.as_deref())?;
        let mut hidden: Vec<usize> = expand
            .iter()
            .filter_map(|expand| match expand.shape {
                RelationShape::Forward { column } if !columns.contains(&column) => Some(column),
                _ => None,
            })
            .collect();
        hidden.dedup();
        Ok(ListPlan {
            selection,
            order: order(object, &request.sort)?,
            paging: request.paging,
            columns,
            with_count: !request.without_count,
            expand,
            hidden,
            object: Arc::clone(object),
        })
    }
}

/// One record by id, read or deleted.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    pub object: Arc<Object>,
    pub scope: Scope,
    pub id: uuid::Uuid,
}

impl RecordPlan {
    pub fn new(object: &Arc<Object>, access: &Access, id: uuid::Uuid) -> RecordPlan {
        RecordPlan { object: Arc::clone(object), scope: access.scope().clone(), id }
    }
}

/// Who writes and when: what the stamps are made of.
#[derive(Debug, Clone)]
pub struct Stamp {
    pub actor_id: Option<String>,
    /// Milliseconds since the epoch.
    pub now: i64,
}

impl Stamp {
    fn actor(&self) -> Value {
        self.actor_id.clone().map_or(Value::Null, Value::Text)
    }
}

/// A new record, whole: one value a column, in the order of `Object::columns`.
#[derive(Debug, Clone)]
pub struct CreatePlan {
    pub object: Arc<Object>,
    pub id: uuid::Uuid,
    pub values: Vec<Value>,
    /// The record as JSON.
    pub json: Vec<u8>,
}

impl CreatePlan {
    /// # Errors
    /// `unknown_field`, `invalid_value`, `CONSTRAINT_VIOLATION` or `not_null_violation`, with `field`.
    pub fn new(object: &Arc<Object>, _access: &Access, body: &Members, id: uuid::Uuid, stamp: &Stamp) -> Result<CreatePlan> {
        let mut given: Vec<Option<Value>> = vec![None; object.columns.len()];
        for (index, raw) in writable(object, body)? {
            given[index] = Some(object.columns[index].value_of(raw)?);
        }
        let mut values = Vec::with_capacity(object.columns.len());
        for (column, given) in object.columns.iter().zip(given) {
            let value = match column.name.as_str() {
                system::ID if column.is_system => Value::Uuid(id),
                system::CREATED_AT | system::UPDATED_AT if column.is_system => Value::Datetime(stamp.now),
                system::CREATED_BY | system::UPDATED_BY if column.is_system => stamp.actor(),
                _ => given.or_else(|| column.default.clone()).unwrap_or(Value::Null),
            };
            if column.required && value == Value::Null {
                return Err(missing_value(column));
            }
            values.push(value);
        }
        let mut json = Vec::with_capacity(64 * values.len());
        write_record(&mut json, object.columns.iter().zip(&values));
        Ok(CreatePlan { object: Arc::clone(object), id, values, json })
    }

    /// What the search index holds of the record.
    pub fn search_document(&self) -> Option<String> {
        search_document(&self.object, self.values.iter())
    }

    /// Who the record belongs to.
    pub fn owner(&self) -> Option<&str> {
        match self.object.column_index(system::CREATED_BY).map(|index| &self.values[index]) {
            Some(Value::Text(owner)) => Some(owner),
            _ => None,
        }
    }
}

/// A record that is inserted, or updated where one with the same values of `target` is there.
#[derive(Debug, Clone)]
pub struct UpsertPlan {
    /// The record as it would be inserted.
    pub create: CreatePlan,
    /// Columns of a declared unique target.
    pub target: Vec<usize>,
    /// What a conflict overwrites: the columns that the body names.
    pub overwrites: Vec<usize>,
    /// Rows that a conflict may change.
    pub scope: Scope,
    pub stamp: Stamp,
}

impl UpsertPlan {
    /// `may_create` and `may_update` are the decisions on the two outcomes.
    ///
    /// # Errors
    /// `invalid_upsert_target` where `target` is none that the object declares or the body lacks one of its columns; else as
    /// [`CreatePlan::new`].
    pub fn new(
        object: &Arc<Object>,
        may_create: &Access,
        may_update: &Access,
        body: &Members,
        target: &[String],
        id: uuid::Uuid,
        stamp: Stamp,
    ) -> Result<UpsertPlan> {
        if !object.is_unique_target(target) {
            return Err(Error::new(
                Code::InvalidUpsertTarget,
                format!(
                    "`on_conflict` has to name a unique target of `{}`: {}.",
                    object.name(),
                    object.unique_target_names().join(" or ")
                ),
            ));
        }
        if let Some(missing) = target.iter().find(|name| !body.0.iter().any(|(given, _)| given == *name)) {
            return Err(Error::new(
                Code::InvalidUpsertTarget,
                format!("`{missing}` is a column of `on_conflict`, so the body has to have it."),
            )
            .with_field(missing.clone()));
        }
        let given_id = match target {
            [name] if name == system::ID => {
                let raw = body.0.iter().find(|(given, _)| given == name).map_or("null", |(_, raw)| raw.get());
                match column_of(object, system::ID)?.filter_value_of(raw)? {
                    Value::Uuid(id) => Some(id),
                    _ => return Err(missing_value(column_of(object, system::ID)?)),
                }
            }
            _ => None,
        };
        let create = CreatePlan::new(object, may_create, body, given_id.unwrap_or(id), &stamp)?;
        let overwrites = writable(object, body)?.into_iter().map(|(index, _)| index).collect();
        let target = target.iter().map(|name| column_index(object, name)).collect::<Result<_>>()?;
        Ok(UpsertPlan { create, target, overwrites, scope: may_update.scope().clone(), stamp })
    }

    /// Whether a record that conflicts can be there at all: null equals nothing.
    pub fn can_conflict(&self) -> bool {
        self.target.iter().all(|index| self.create.values[*index] != Value::Null)
    }
}

/// What the search index of SQLite holds of a record: its searchable values, folded, one after another; `None` where there are
/// none.
pub fn search_document<'a>(object: &Object, values: impl IntoIterator<Item = &'a Value>) -> Option<String> {
    let mut document = String::new();
    for (_, value) in object.columns.iter().zip(values).filter(|(column, _)| column.is_searchable()) {
        let texts: &[String] = match value {
            Value::Text(text) => std::slice::from_ref(text),
            Value::TextList(list) => list,
            _ => &[],
        };
        for text in texts.iter().filter(|text| !text.is_empty()) {
            if !document.is_empty() {
                document.push('\u{1f}');
            }
            document.push_str(&text.to_uppercase());
        }
    }
    Some(document).filter(|document| !document.is_empty())
}

/// Links of a many_to_many relationship, made or removed on one record.
#[derive(Debug, Clone)]
pub struct LinkPlan {
    /// The record that the links are changed on.
    pub record: RecordPlan,
    pub relation: Relation,
    /// The object on the other side, and its rows that the caller sees.
    pub target: Arc<Object>,
    pub target_scope: Scope,
    /// Distinct, in the caller's order.
    pub target_ids: Vec<uuid::Uuid>,
}

/// Appends a record's JSON object.
pub fn write_record<'a>(out: &mut Vec<u8>, cells: impl IntoIterator<Item = (&'a Column, &'a Value)>) {
    out.push(b'{');
    for (index, (column, value)) in cells.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(column.name.as_bytes());
        out.extend_from_slice(b"\":");
        value.write_json(out);
    }
    out.push(b'}');
}

/// What an update does to one column.
#[derive(Debug, Clone)]
pub enum Assignment {
    Set(Value),
    /// `field = field + value` in the statement itself.
    Add(Value),
}

/// A partial update of one record.
#[derive(Debug, Clone)]
pub struct UpdatePlan {
    pub record: RecordPlan,
    /// Empty where the body named no column: nothing is written then.
    pub assignments: Vec<(usize, Assignment)>,
    pub stamp: Stamp,
}

impl UpdatePlan {
    /// # Errors
    /// As [`CreatePlan::new`]; `INVALID_ATOMIC_OP` for an operator of a wrong shape or on a column that is not numeric.
    pub fn new(object: &Arc<Object>, access: &Access, body: &Members, id: uuid::Uuid, stamp: Stamp) -> Result<UpdatePlan> {
        let mut assignments = Vec::new();
        for (index, raw) in writable(object, body)? {
            let column = &object.columns[index];
            let assignment = match raw.trim_start().starts_with('{') && column.ty != ColumnType::Json {
                true => Assignment::Add(atomic_amount(column, raw)?),
                false => Assignment::Set(column.value_of(raw)?),
            };
            if column.required && matches!(assignment, Assignment::Set(Value::Null)) {
                return Err(missing_value(column));
            }
            assignments.push((index, assignment));
        }
        Ok(UpdatePlan { record: RecordPlan::new(object, access, id), assignments, stamp })
    }
}

/// The amount that `{ "$inc": n }` or `{ "$dec": n }` adds.
fn atomic_amount(column: &Column, raw: &str) -> Result<Value> {
    let refuse = |message: String| Error::new(Code::InvalidAtomicOp, message).with_field(column.name.clone());
    if !column.kind.is_numeric() {
        return Err(refuse(format!("`{}` is {}; atomic operators are for numeric fields.", column.name, column.kind.name())));
    }
    let shape = || refuse(format!("`{}` needs a number, or exactly one of {{\"$inc\": n}} and {{\"$dec\": n}}.", column.name));
    let members: Members = serde_json::from_str(raw).map_err(|_| shape())?;
    let [(operator, amount)] = members.0.as_slice() else { return Err(shape()) };
    if !amount.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(shape());
    }
    // The rules bound the result, not the amount; the database checks them.
    let amount = column.filter_value_of(amount.get())?;
    match operator.as_str() {
        "$inc" => Ok(amount),
        "$dec" => Ok(match amount {
            Value::Integer(number) => {
                let negated =
                    number.checked_neg().filter(|number| column.ty != ColumnType::Integer || i32::try_from(*number).is_ok());
                Value::Integer(negated.ok_or_else(|| {
                    Error::new(Code::InvalidValue, format!("`{}`: the amount is out of the type's range.", column.name))
                        .with_field(column.name.clone())
                })?)
            }
            Value::Decimal { scaled, scale } => Value::Decimal { scaled: -scaled, scale },
            Value::Float(number) => Value::Float(-number),
            other => other,
        }),
        _ => Err(shape()),
    }
}

fn missing_value(column: &Column) -> Error {
    Error::new(Code::NotNullViolation, format!("`{}` is required.", column.name)).with_field(column.name.clone())
}

/// The body's members that are columns to write. System columns are dropped silently.
fn writable<'a>(object: &Object, body: &'a Members) -> Result<Vec<(usize, &'a str)>> {
    let mut writable = Vec::with_capacity(body.0.len());
    for (name, raw) in &body.0 {
        let index = object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))?;
        if !object.columns[index].is_system {
            writable.push((index, raw.get()));
        }
    }
    Ok(writable)
}

fn column_of<'a>(object: &'a Object, name: &str) -> Result<&'a Column> {
    column_index(object, name).map(|index| &object.columns[index])
}

fn column_index(object: &Object, name: &str) -> Result<usize> {
    object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))
}

fn order(object: &Object, sort: &[(String, bool)]) -> Result<Vec<(usize, bool)>> {
    let mut order: Vec<(usize, bool)> = Vec::with_capacity(sort.len() + 1);
    for (name, descends) in sort {
        let index = column_index(object, name)?;
        if matches!(object.columns[index].kind, FieldType::Json | FieldType::MultiEnum) {
            return Err(Error::invalid_request(format!(
                "`{name}` is {}, which has no order.",
                object.columns[index].kind.name()
            )));
        }
        // A second mention of a column cannot change the order.
        if !order.iter().any(|(seen, _)| *seen == index) {
            order.push((index, *descends));
        }
    }
    if order.is_empty() {
        order.push((column_index(object, system::CREATED_AT)?, true));
    }
    let id = column_index(object, system::ID)?;
    if !order.iter().any(|(index, _)| *index == id) {
        order.push((id, order[0].1));
    }
    Ok(order)
}

fn projection(object: &Object, select: Option<&[String]>) -> Result<Vec<usize>> {
    let Some(names) = select.filter(|names| !names.is_empty()) else {
        return Ok((0..object.columns.len()).collect());
    };
    let mut columns = vec![column_index(object, system::ID)?];
    for name in names {
        columns.push(column_index(object, name)?);
    }
    columns.sort_unstable();
    columns.dedup();
    Ok(columns)
}

/// Most items of one `in` or `nin`.
const LIST_ITEMS_MAX: usize = 1000;

fn predicate(object: &Object, filter: &Filter) -> Result<Predicate> {
    let index = column_index(object, &filter.field)?;
    let column = &object.columns[index];
    let unsupported = || {
        Error::invalid_request(format!("`{}` is {}, which this operator cannot compare.", column.name, column.kind.name()))
            .with_field(column.name.clone())
    };
    let test = match filter.operator {
        Operator::IsNull => Test::IsNull,
        Operator::IsNotNull => Test::IsNotNull,
        _ if column.ty == ColumnType::Json => return Err(unsupported()),
        Operator::In | Operator::Nin => {
            let values = list_values(column, &filter.value)?;
            Test::In { values, negated: filter.operator == Operator::Nin }
        }
        Operator::Like | Operator::Ilike => {
            if !matches!(column.ty, ColumnType::Text | ColumnType::TextList) {
                return Err(unsupported());
            }
            let text = match &filter.value {
                FilterValue::Text(text) => text.clone(),
                FilterValue::Json(raw) => serde_json::from_str(raw.get()).map_err(|_| {
                    Error::new(Code::InvalidValue, format!("`{}`: like and ilike need a string.", column.name))
                        .with_field(column.name.clone())
                })?,
            };
            if text.contains('\0') {
                return Err(Error::new(Code::InvalidValue, "Text cannot hold the NUL character.").with_field(column.name.clone()));
            }
            Test::Contains { text, fold_case: filter.operator == Operator::Ilike }
        }
        operator => match (filter_value(column, &filter.value)?, operator) {
            (Value::Null, Operator::Eq) => Test::IsNull,
            (Value::Null, Operator::Neq) => Test::IsNotNull,
            (Value::Null, _) => {
                return Err(Error::new(Code::InvalidValue, format!("`{}`: null has no order.", column.name))
                    .with_field(column.name.clone()));
            }
            (_, operator) if column.ty == ColumnType::TextList && !matches!(operator, Operator::Eq | Operator::Neq) => {
                return Err(unsupported());
            }
            (Value::TextList(_), _) => {
                return Err(Error::new(Code::InvalidValue, format!("`{}` is compared with one of its elements.", column.name))
                    .with_field(column.name.clone()));
            }
            (value, operator) => Test::Compare(operator, value),
        },
    };
    Ok(Predicate { column: index, test })
}

fn filter_value(column: &Column, value: &FilterValue) -> Result<Value> {
    match value {
        FilterValue::Text(text) if text == "null" => Ok(Value::Null),
        FilterValue::Text(text) => parse_filter_text(column, text),
        FilterValue::Json(raw) => column.filter_value_of(raw.get()),
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
        return Err(Error::invalid_request(format!("`in` and `nin` take {LIST_ITEMS_MAX} items at most."))
            .with_field(column.name.clone()));
    }
    let values: Vec<Value> = raw_items.iter().map(|item| filter_value(column, item)).collect::<Result<_>>()?;
    match values.iter().any(|value| matches!(value, Value::TextList(_))) {
        true => Err(Error::new(Code::InvalidValue, format!("`{}` is compared with one of its elements.", column.name))
            .with_field(column.name.clone())),
        false => Ok(values),
    }
}

/// Splits a comma-separated list; an item in double quotes keeps its commas, and `""` in it is one quote.
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
