//! Aggregates: functions over the rows that a list with the same filters would count, all together or in groups.

use std::sync::Arc;

use blockbase_schema::{ColumnType, Error, Object, Result, enumerated, json, listed};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::access::Access;
use crate::condition::{Reading, Where};
use crate::filter::{Filter, FilterValue};
use crate::groups::{GroupsAsked, GroupsPlan};
use crate::limits::{FUNCTIONS_MAX, GROUP_FIELDS_MAX};
use crate::operator::Operator;
use crate::parameter::ListParameter;
use crate::plan::Selection;
use crate::request::ListRequest;

listed! {
    /// The aggregate function. The documents of every surface and the table in `docs/data.md` iterate over [`Function::ALL`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Function {
        Count,
        Sum,
        Avg,
        Min,
        Max,
    }
}

impl Function {
    /// # Errors
    /// `invalid_request`, which lists the valid names.
    pub fn parse(text: &str) -> Result<Function> {
        Function::ALL
            .iter()
            .find(|function| function.name() == text)
            .copied()
            .ok_or_else(|| Error::invalid_request(format!("`fn` takes {}, not {text:?}.", enumerated(Function::names(), "or"))))
    }

    /// The names of all functions.
    pub fn names() -> Vec<&'static str> {
        Function::ALL.iter().map(|function| function.name()).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
        }
    }

    /// A sentence for documents: what the function computes.
    pub const fn sentence(self) -> &'static str {
        match self {
            Function::Count => "How many records there are; with `field`, how many of them have a value.",
            Function::Sum => "The sum of the field's values.",
            Function::Avg => "The mean of the field's values.",
            Function::Min => "The least of the field's values.",
            Function::Max => "The greatest of the field's values.",
        }
    }

    /// Whether the function needs a numeric field.
    pub const fn needs_field(self) -> bool {
        match self {
            Function::Count => false,
            Function::Sum | Function::Avg | Function::Min | Function::Max => true,
        }
    }
}

/// One function, with the field that it computes over: `count`, or `sum:amount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub function: Function,
    pub field: Option<String>,
}

impl Call {
    /// # Errors
    /// `invalid_request` for an unknown function.
    pub fn parse(text: &str) -> Result<Call> {
        match text.split_once(':') {
            Some((function, field)) if !field.is_empty() => {
                Ok(Call { function: Function::parse(function)?, field: Some(field.to_owned()) })
            }
            _ => Ok(Call { function: Function::parse(text)?, field: None }),
        }
    }

    /// The key of the result: `count`, or `sum_amount`.
    pub fn key(&self) -> String {
        match &self.field {
            Some(field) => format!("{}_{field}", self.function.name()),
            None => self.function.name().to_owned(),
        }
    }
}

/// A parameter that another parameter's name may hide: in a query string, a field with its name is filtered instead.
#[derive(Clone, Debug)]
pub enum Named {
    /// The value in the query string.
    Parameter(String),
    /// The value of the member of a JSON document.
    Member(String),
}

impl Named {
    fn text(&self) -> &str {
        match self {
            Named::Parameter(text) | Named::Member(text) => text,
        }
    }

    /// The value. `None` if the parameter is a filter on a field of `object`, which is then added to `filters`.
    fn value<'n>(asked: Option<&'n Named>, name: &str, object: &Object, filters: &mut Vec<Filter>) -> Option<&'n str> {
        match asked {
            Some(Named::Parameter(text)) if object.column_index(name).is_some() => {
                let value = FilterValue::Text(text.clone());
                filters.push(Filter { field: name.to_owned(), operator: Operator::DEFAULT, value });
                None
            }
            asked => asked.map(Named::text),
        }
    }
}

/// An aggregate: its functions, the groups for which they are computed, and the list whose records count.
#[derive(Clone, Debug)]
pub struct AggregateRequest {
    pub calls: Vec<Call>,
    /// The fields of the groups, each with its period if it has one.
    pub group_by: Vec<String>,
    /// Whether the answer has groups even if there is one function and no field to group by.
    pub has_groups: bool,
    /// A condition on the groups, as JSON.
    pub having: Option<Named>,
    /// The name of the time zone of the periods.
    pub zone: Option<Named>,
    /// The search, the filters and the condition of the records, and the order and the window of the groups.
    pub list: ListRequest,
}

/// The names of the parameters of aggregates, besides those of lists.
pub mod names {
    pub const FUNCTION: &str = "fn";
    pub const FIELD: &str = "field";
    /// The functions, in a form that always leads to groups. Query strings do not have it.
    pub const FUNCTIONS: &str = "functions";
    pub const GROUP_BY: &str = "groupBy";
    pub const HAVING: &str = "having";
    pub const ZONE: &str = "tz";

    /// The names in a query string.
    pub const IN_QUERY: [&str; 5] = [FUNCTION, FIELD, GROUP_BY, HAVING, ZONE];
}

fn missing_function() -> Error {
    Error::invalid_request(format!("`fn` is missing. Use {}.", enumerated(Function::names(), "or")))
}

/// Functions, or fields to group by, as text with commas or as a list.
fn items(text: &str) -> Vec<String> {
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

impl AggregateRequest {
    /// A request with these functions, which were sent as text.
    ///
    /// # Errors
    /// `invalid_request` for an unknown function, and if `field` does not belong to a single function.
    fn of(functions: &[String], field: Option<String>, group_by: Vec<String>) -> Result<AggregateRequest> {
        if functions.len() > FUNCTIONS_MAX {
            return Err(Error::invalid_request(format!("An aggregate has {FUNCTIONS_MAX} functions at most.")));
        }
        if group_by.len() > GROUP_FIELDS_MAX {
            return Err(Error::invalid_request(format!("`groupBy` takes {GROUP_FIELDS_MAX} fields at most.")));
        }
        let mut calls = functions.iter().map(|text| Call::parse(text)).collect::<Result<Vec<_>>>()?;
        match (field, calls.as_mut_slice()) {
            (None, _) => {}
            (Some(field), [Call { field: of_call @ None, .. }]) => *of_call = Some(field),
            (Some(_), _) => {
                let message = "`field` belongs to a single function. Write the fields behind the functions, as in sum:amount.";
                return Err(Error::invalid_request(message));
            }
        }
        let has_groups = calls.len() > 1 || !group_by.is_empty();
        Ok(AggregateRequest { calls, group_by, has_groups, having: None, zone: None, list: ListRequest::default() })
    }

    /// One function over all records of a list.
    pub fn one(function: Function, field: Option<String>, list: ListRequest) -> AggregateRequest {
        let calls = vec![Call { function, field }];
        AggregateRequest { calls, group_by: Vec::new(), has_groups: false, having: None, zone: None, list }
    }

    /// Functions for groups of the records of a list. `having` is JSON.
    ///
    /// # Errors
    /// `invalid_request` for an unknown function, and for more functions or fields than allowed.
    pub fn of_groups(
        functions: &[String],
        group_by: Vec<String>,
        having: Option<String>,
        zone: Option<String>,
        list: ListRequest,
    ) -> Result<AggregateRequest> {
        if functions.is_empty() {
            return Err(missing_function());
        }
        let request = AggregateRequest::of(functions, None, group_by)?;
        let (having, zone) = (having.map(Named::Member), zone.map(Named::Member));
        Ok(AggregateRequest { has_groups: true, having, zone, list, ..request })
    }

    /// Reads the decoded query parameters of the REST aggregate. Without groups, parameters of sort and page are ignored. Those of
    /// projection and relations are always ignored.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<AggregateRequest> {
        let (mut functions, mut field, mut group_by) = (None, None, Vec::new());
        let (mut having, mut zone, mut rest) = (None, None, Vec::new());
        for (name, value) in pairs {
            match name {
                names::FUNCTION => functions = Some(value),
                names::FIELD => field = Some(value.to_owned()).filter(|field| !field.is_empty()),
                names::GROUP_BY => group_by = if value.is_empty() { Vec::new() } else { items(value) },
                names::HAVING => having = Some(Named::Parameter(value.to_owned())),
                names::ZONE => zone = Some(Named::Parameter(value.to_owned())),
                _ => rest.push((name, value)),
            }
        }
        let functions = items(functions.ok_or_else(missing_function)?);
        let request = AggregateRequest::of(&functions, field, group_by)?;
        rest.retain(|(name, _)| match ListParameter::named(name) {
            None | Some(ListParameter::Search | ListParameter::Where) => true,
            Some(ListParameter::Select | ListParameter::Expand) => false,
            Some(_) => request.has_groups,
        });
        Ok(AggregateRequest { having, zone, list: ListRequest::from_parameters(rest)?, ..request })
    }

    /// Reads `{ fn, field?, groupBy?, having?, tz?, … }` with the members of a list, the form of blocks and MCP. With `functions`
    /// instead of `fn`, the answer has groups in any case. `fn`, `functions` and `groupBy` are text with commas, or lists.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn from_json(text: &str) -> Result<AggregateRequest> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Texts {
            One(String),
            Many(Vec<String>),
        }
        impl Texts {
            fn items(self) -> Vec<String> {
                match self {
                    Texts::One(text) if text.is_empty() => Vec::new(),
                    Texts::One(text) => items(&text),
                    Texts::Many(items) => items,
                }
            }
        }
        let mut members = json::parse_members(text)?;
        let mut take = |name: &str| {
            let place = members.0.iter().position(|(known, _)| known == name)?;
            let (_, raw) = members.0.remove(place);
            (raw.get() != "null").then_some(raw)
        };
        let texts = |name: &str, raw: Option<Box<RawValue>>| -> Result<Option<Vec<String>>> {
            let Some(raw) = raw else { return Ok(None) };
            let texts: Texts = serde_json::from_str(raw.get())
                .map_err(|_| Error::invalid_request(format!("`{name}` takes text, or a list of texts.")).with_field(name))?;
            Ok(Some(texts.items()))
        };
        let one = texts(names::FUNCTION, take(names::FUNCTION))?;
        let many = texts(names::FUNCTIONS, take(names::FUNCTIONS))?;
        let field = match take(names::FIELD) {
            Some(raw) => Some(serde_json::from_str(raw.get()).map_err(|error| json::malformed(&error))?),
            None => None,
        };
        let group_by = texts(names::GROUP_BY, take(names::GROUP_BY))?.unwrap_or_default();
        let having = take(names::HAVING).map(|raw| Named::Member(raw.get().to_owned()));
        let zone = match take(names::ZONE) {
            Some(raw) => Some(Named::Member(serde_json::from_str(raw.get()).map_err(|error| json::malformed(&error))?)),
            None => None,
        };
        let is_many = many.is_some();
        let functions = match (one, many) {
            (Some(_), Some(_)) => return Err(Error::invalid_request("Use either `fn` or `functions`.")),
            (one, many) => one.or(many).filter(|functions| !functions.is_empty()).ok_or_else(missing_function)?,
        };
        let request = AggregateRequest::of(&functions, field, group_by)?;
        let list = ListRequest::from_json(&members.text())?;
        Ok(AggregateRequest { having, zone, list, has_groups: request.has_groups || is_many, ..request })
    }
}

impl AggregateRequest {
    /// The number of bytes of its conditions.
    pub fn bytes(&self) -> usize {
        let wheres: usize = self.list.wheres.iter().map(Where::bytes).sum();
        wheres + self.having.as_ref().map_or(0, |having| having.text().len())
    }
}

/// One function that was checked against the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computed {
    pub function: Function,
    /// The index of the field in `Object::columns`.
    pub column: Option<usize>,
}

impl Computed {
    /// # Errors
    /// `unknown_field`, or `invalid_request` for a field that is missing or not numeric.
    fn new(object: &Object, call: &Call) -> Result<Computed> {
        let Call { function, field } = call;
        let column = match field {
            Some(name) => Some(object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))?),
            None => None,
        };
        match column.map(|index| &object.columns[index]) {
            None if function.needs_field() => {
                Err(Error::invalid_request(format!("`{}` needs `field`, a numeric field.", function.name())))
            }
            Some(column) if function.needs_field() && !column.kind.is_numeric() => Err(Error::invalid_request(format!(
                "`{}` is for numeric fields; `{}` is {}.",
                function.name(),
                column.name,
                column.kind.name()
            ))
            .with_field(column.name.clone())),
            _ => Ok(Computed { function: *function, column }),
        }
    }

    /// The function's value as JSON. The engines return the number of values, and their sum, least or greatest value as text.
    ///
    /// Up to this point sums are exact, and do not depend on the order of the rows. So both engines give the same bytes.
    ///
    /// # Errors
    /// `invalid_value` for a result that is out of the range of a double.
    pub fn value_json(&self, object: &Object, values: i64, text: Option<&str>) -> Result<String> {
        let column = self.column.map(|index| &object.columns[index]);
        let divisor = match self.function {
            Function::Count => return Ok(values.to_string()),
            Function::Avg => Some(values),
            Function::Sum | Function::Min | Function::Max => None,
        };
        let (Some(column), Some(text), 1..) = (column, text, values) else { return Ok("null".to_owned()) };
        let number = || text.parse::<f64>().map_err(Error::internal);
        let float = |number: f64| match number.is_finite() {
            true => {
                let mut out = Vec::new();
                json::write_float(&mut out, number);
                Ok(String::from_utf8(out).unwrap_or_default())
            }
            false => Err(Error::new(
                blockbase_schema::Code::InvalidValue,
                format!("The {} of `{}` is out of the range of a double.", self.function.name(), column.name),
            )
            .with_field(column.name.clone())),
        };
        match (divisor, column.ty) {
            (Some(divisor), _) => float(number()? / divisor as f64),
            (None, ColumnType::Float) => float(number()?),
            (None, _) => Ok(trimmed(text).to_owned()),
        }
    }
}

/// An aggregate that was checked against the schema.
#[derive(Clone, Debug)]
pub enum AggregatePlan {
    /// One function over all records of the selection.
    One(OnePlan),
    Groups(GroupsPlan),
}

/// One function over all records of a selection.
#[derive(Clone, Debug)]
pub struct OnePlan {
    pub object: Arc<Object>,
    pub selection: Selection,
    pub computed: Computed,
}

impl AggregatePlan {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with the mistake.
    pub fn new(
        object: &Arc<Object>,
        access: &Access,
        request: &AggregateRequest,
        reading: &Reading<'_>,
    ) -> Result<AggregatePlan> {
        let AggregateRequest { calls, group_by, has_groups, having, zone, list } = request;
        let computed = calls.iter().map(|call| Computed::new(object, call)).collect::<Result<Vec<_>>>()?;
        let mut filters = list.filters.clone();
        let having = Named::value(having.as_ref(), names::HAVING, object, &mut filters);
        let zone = Named::value(zone.as_ref(), names::ZONE, object, &mut filters);
        let selection = Selection::new(object, access, list.search.clone(), &filters, &list.wheres, reading)?;
        if let ([computed], false) = (computed.as_slice(), has_groups) {
            for (name, value) in [(names::HAVING, having), (names::ZONE, zone)] {
                if value.is_some() {
                    return Err(Error::invalid_request(format!("`{name}` needs groups, by `groupBy` or by several functions."))
                        .with_field(name));
                }
            }
            return Ok(AggregatePlan::One(OnePlan { object: Arc::clone(object), selection, computed: *computed }));
        }
        let functions = calls.iter().map(Call::key).zip(computed).collect();
        let asked = GroupsAsked { group_by, functions, having, zone, list };
        Ok(AggregatePlan::Groups(GroupsPlan::new(object, selection, asked, reading)?))
    }

    pub fn selection(&self) -> &Selection {
        match self {
            AggregatePlan::One(plan) => &plan.selection,
            AggregatePlan::Groups(plan) => &plan.selection,
        }
    }
}

/// A decimal number without zeros at the end of its fraction.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::table_rows;

    use super::*;

    #[test]
    fn zeros_at_the_end_of_a_fraction_go() {
        for (text, shown) in [("12.500000", "12.5"), ("120", "120"), ("-3.00", "-3"), ("0.000000", "0")] {
            assert_eq!(trimmed(text), shown);
        }
    }

    #[test]
    fn the_documentation_has_every_function() {
        let rows = table_rows(include_str!("../../../docs/data.md"), "| `fn` | value |");
        let wanted: Vec<String> =
            Function::ALL.iter().map(|function| format!("| `{}` | {} |", function.name(), function.sentence())).collect();
        assert_eq!(rows, wanted, "the table of functions in docs/data.md");
    }

    #[test]
    fn the_json_form_is_the_lists_with_a_function() {
        let request = AggregateRequest::from_json(r#"{"fn":"sum","field":"n","filters":[{"field":"a","value":1}]}"#);
        let request = request.expect("a request");
        let call = Call { function: Function::Sum, field: Some("n".to_owned()) };
        assert_eq!((request.calls, request.has_groups, request.list.filters.len()), (vec![call], false, 1));
        assert!(AggregateRequest::from_json("{}").is_err());
        assert!(AggregateRequest::from_json(r#"{"fn":"median"}"#).is_err());
        assert!(AggregateRequest::from_json(r#"{"fn":"count","colour":1}"#).is_err());
    }

    #[test]
    fn several_functions_and_group_by_lead_to_groups() {
        let read = |pairs: &[(&'static str, &'static str)]| AggregateRequest::from_parameters(pairs.iter().copied());
        for (pairs, has_groups) in [
            (vec![("fn", "count"), ("groupBy", ""), ("page", "x")], false),
            (vec![("fn", "sum:a")], false),
            (vec![("fn", "count, sum:a")], true),
            (vec![("fn", "sum"), ("field", "a"), ("groupBy", "b,c:month")], true),
        ] {
            assert_eq!(read(&pairs).map(|request| request.has_groups).ok(), Some(has_groups), "{pairs:?}");
        }
        for bad in [
            vec![("fn", "count,")],
            vec![("fn", "")],
            vec![("fn", "sum:")],
            vec![("fn", "count,sum"), ("field", "a")],
            vec![("fn", "sum:a"), ("field", "a")],
            vec![("fn", "count"), ("groupBy", "b"), ("page", "x")],
            vec![("fn", "count"), ("groupBy", "a,a,a,a,a,a,a,a,a")],
        ] {
            assert!(read(&bad).is_err(), "{bad:?}");
        }
        for (text, has_groups) in [
            (r#"{"functions":["count"]}"#, true),
            (r#"{"fn":"count","groupBy":null}"#, false),
            (r#"{"fn":["count"],"groupBy":["a"],"having":{"count":1},"sort":"-count"}"#, true),
        ] {
            assert_eq!(AggregateRequest::from_json(text).map(|request| request.has_groups).ok(), Some(has_groups), "{text}");
        }
        for bad in
            [r#"{"fn":"count","functions":"count"}"#, r#"{"functions":[]}"#, r#"{"fn":1}"#, r#"{"fn":"count","groupBy":{}}"#]
        {
            assert!(AggregateRequest::from_json(bad).is_err(), "{bad}");
        }
    }
}
