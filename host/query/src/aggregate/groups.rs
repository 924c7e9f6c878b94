//! Aggregates of groups: the fields that make the groups, the functions of each group, and the condition, the order and the window
//! of the groups.

use std::sync::Arc;

use blockbase_schema::{Code, Column, ColumnType, Error, FieldType, Object, Registry, Result, enumerated, excerpt, quoted};

use super::computed::Computed;
use super::function::Function;
use super::request::names;
use crate::access::reading::{OfResult, Reading, read_at};
use crate::condition::Condition;
use crate::period::Period;
use crate::plan::Selection;
use crate::predicate::column_index;
use crate::request::{ListRequest, Paging};
use crate::zone::Zone;

/// The parts of a request of groups.
pub(super) struct GroupsRequest<'a> {
    pub(super) group_by: &'a [String],
    /// The functions, with the keys of their results.
    pub(super) functions: Vec<(String, Computed)>,
    pub(super) having: Option<&'a str>,
    pub(super) zone: Option<&'a str>,
    pub(super) list: &'a ListRequest,
}

/// A field by whose values records are grouped.
#[derive(Clone, Copy, Debug)]
pub struct GroupField {
    /// The index of the field in `Object::columns`.
    pub column: usize,
    /// The period to which the values belong. `None` for the values themselves.
    pub period: Option<Period>,
}

/// The functions of a group of records, for each group.
#[derive(Clone, Debug)]
pub struct GroupsPlan {
    pub object: Arc<Object>,
    pub selection: Selection,
    pub fields: Vec<GroupField>,
    pub functions: Vec<Computed>,
    /// The result as an object: one column for each field, then one for each function. Their names are the keys of the result.
    pub result: Arc<Object>,
    /// The time zone of the periods of instants. `None` for UTC, and if no period needs it.
    pub zone: Option<Arc<Zone>>,
    /// A condition on the columns of `result`.
    pub having: Condition,
    /// The columns of `result`, each with whether its order is descending.
    pub order: Vec<(usize, bool)>,
    pub paging: Paging,
    pub with_count: bool,
}

impl GroupsPlan {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with the mistake.
    pub(super) fn new(
        object: &Arc<Object>,
        selection: Selection,
        request: GroupsRequest<'_>,
        reading: &Reading<'_>,
    ) -> Result<GroupsPlan> {
        let GroupsRequest { group_by, functions, having, zone, list } = request;
        list.check_sort()?;
        let mut fields = Vec::with_capacity(group_by.len());
        let mut columns = Vec::with_capacity(group_by.len() + functions.len());
        for text in group_by {
            let (field, column) = group_field(object, text)?;
            if columns.iter().any(|known: &Column| known.name == column.name) {
                return Err(Error::invalid_request(format!("The groups name `{text}` twice.")).with_field(text));
            }
            fields.push(field);
            columns.push(column);
        }
        for (place, (key, computed)) in functions.iter().enumerate() {
            if functions[..place].iter().any(|(known, _)| known == key) {
                return Err(Error::invalid_request(format!("The functions name `{key}` twice.")).with_field(key));
            }
            columns.push(result_column(object, key, *computed));
        }
        let zone = zone.map(Zone::named).transpose()?;
        let needs_zone =
            fields.iter().any(|field| field.period.is_some() && object.columns[field.column].ty == ColumnType::Datetime);
        let result = Arc::new(Object::of_result(&format!("groups of {}", object.name()), columns));
        let having = match having {
            Some(text) => {
                let registry = Registry::default();
                let Reading { decide, variables, bounds, .. } = *reading;
                let is_bounded = |index: usize| {
                    let computed = index.checked_sub(fields.len()).and_then(|place| functions.get(place));
                    computed.is_none_or(|(_, computed)| has_range(object, *computed))
                };
                let of = OfResult { parameter: names::HAVING, unknown: unknown_key, is_bounded: &is_bounded };
                read_at(&of, &result, text, &Reading { registry: &registry, decide, variables, bounds })?
            }
            None => Condition::TRUE,
        };
        Ok(GroupsPlan {
            object: Arc::clone(object),
            selection,
            zone: zone.filter(|zone| needs_zone && zone.fixed_offset() != Some(0)),
            order: order(&result, fields.len(), &list.sort)?,
            fields,
            functions: functions.into_iter().map(|(_, computed)| computed).collect(),
            result,
            having,
            paging: list.paging,
            with_count: list.count.unwrap_or(true),
        })
    }

    /// Whether the plan searches through complete texts, or compares the texts of all records to make groups. The engine's count of
    /// steps does not include the length of these texts.
    pub(super) fn reads_texts(&self) -> bool {
        let is_text = |field: &GroupField| {
            let column = &self.object.columns[field.column];
            column.ty == ColumnType::Text && column.kind != FieldType::Enum
        };
        self.selection.reads_texts() || self.having.reads_texts() || self.fields.iter().any(is_text)
    }

    /// The column of `result` that contains a function's value.
    pub fn function_column(&self, place: usize) -> usize {
        self.fields.len() + place
    }
}

/// Reads a field of `groupBy`, such as `status` or `created_at:month`.
fn group_field(object: &Object, text: &str) -> Result<(GroupField, Column)> {
    let (name, period) = match text.split_once(':') {
        Some((name, period)) => (name, Some(period)),
        None => (text, None),
    };
    let index = column_index(object, name)?;
    let column = &object.columns[index];
    let refused = |message: String| Err(Error::invalid_request(message).with_field(name));
    if !column.kind.makes_groups() {
        return refused(format!("`{name}` is {}, which cannot make groups.", column.kind.name()));
    }
    let period = match period {
        None => None,
        Some(period) => match Period::named(period) {
            None => return refused(format!("A period is {}, not {}.", Period::enumerated(), quoted(period))),
            Some(Period::Hour) if column.ty == ColumnType::Date => {
                return refused(format!("`hour` needs a datetime; `{name}` is a date."));
            }
            Some(period) if !period.fits(column.ty) => {
                return refused(format!("Periods are for dates and datetimes; `{name}` is {}.", column.kind.name()));
            }
            Some(period) => Some(period),
        },
    };
    Ok((GroupField { column: index, period }, Column::of_result(text.to_owned(), column.kind, column.ty)))
}

/// Whether every result of the function is within the range of its column's type. Sums can be greater than any value of the field,
/// except those of 32-bit numbers.
fn has_range(object: &Object, computed: Computed) -> bool {
    let is_integer = computed.column.is_some_and(|index| object.columns[index].ty == ColumnType::Integer);
    computed.function != Function::Sum || is_integer
}

/// The error of a key that `result` does not have, or that does not lead to one column.
fn unknown_key(result: &Object, name: &str) -> Error {
    let keys = || enumerated(result.columns.iter().map(|column| format!("`{}`", column.name)), "and");
    let message = match result.columns.iter().any(|column| column.name == name) {
        true => format!("A field and a function of the groups have the key `{name}`, so it leads to neither of them."),
        false => format!("The groups have no key `{}`. They have {}.", excerpt(name), keys()),
    };
    Error::new(Code::UnknownField, message).with_field(name)
}

/// The column of a function's result. Sums of exact numbers are exact, and may be greater than any value of the column's type.
fn result_column(object: &Object, key: &str, computed: Computed) -> Column {
    let of = computed.column.map(|index| &object.columns[index]);
    let (kind, ty) = match (computed.function, of) {
        (Function::Count, _) | (_, None) => (FieldType::BigInteger, ColumnType::BigInteger),
        (Function::Avg, _) => (FieldType::Float, ColumnType::Float),
        (Function::Sum, Some(column)) => match column.ty {
            ColumnType::Integer | ColumnType::BigInteger => (FieldType::BigInteger, ColumnType::BigInteger),
            ty => (column.kind, ty),
        },
        (Function::Min | Function::Max, Some(column)) => (column.kind, column.ty),
    };
    Column::of_result(key.to_owned(), kind, ty)
}

/// The order of the groups: the requested keys, then the fields of the groups, so that it is always the same.
fn order(result: &Object, fields: usize, sort: &[(String, bool)]) -> Result<Vec<(usize, bool)>> {
    let mut order: Vec<(usize, bool)> = Vec::with_capacity(sort.len() + fields);
    for (name, descends) in sort {
        let index = result.column_index(name).ok_or_else(|| unknown_key(result, name))?;
        if !order.iter().any(|(known, _)| *known == index) {
            order.push((index, *descends));
        }
    }
    for field in 0..fields {
        if !order.iter().any(|(known, _)| *known == field) {
            order.push((field, false));
        }
    }
    Ok(order)
}
