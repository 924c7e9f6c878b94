//! A request for an aggregate, before it is checked against the schema.

use blockbase_schema::{Error, Object, Result, enumerated, json, quoted};
use serde_json::value::RawValue;

use super::function::Function;
use crate::access::Where;
use crate::cursor::CursorParameter;
use crate::filter::{Filter, FilterValue};
use crate::limits::{FUNCTIONS_MAX, GROUP_FIELDS_MAX};
use crate::operator::Operator;
use crate::parameter::ListParameter;
use crate::request::ListRequest;

/// One function, with the field that it computes over: `count`, or `sum:amount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub function: Function,
    pub field: Option<String>,
}

impl Call {
    /// `None` for an unknown function.
    pub fn named(text: &str) -> Option<Call> {
        let (function, field) = match text.split_once(':') {
            Some((function, field)) if !field.is_empty() => (function, Some(field.to_owned())),
            _ => (text, None),
        };
        Function::named(function).map(|function| Call { function, field })
    }

    /// The key of the result: `count`, or `sum_amount`.
    pub fn key(&self) -> String {
        match &self.field {
            Some(field) => format!("{}_{field}", self.function.name()),
            None => self.function.name().to_owned(),
        }
    }
}

/// A parameter that a field with its name replaces: in a query string it is then a filter on that field.
#[derive(Clone, Debug)]
pub struct Named {
    /// [`names::HAVING`] or [`names::ZONE`].
    pub name: &'static str,
    pub text: String,
    /// The number of filters in front of it. `None` if it is no parameter of a query string.
    pub filters_before: Option<usize>,
}

impl Named {
    fn is_filter(&self, object: &Object) -> bool {
        self.filters_before.is_some() && object.column_index(self.name).is_some()
    }
}

/// The filters of an aggregate of an object, and the parameters that are no filters there.
#[derive(Debug)]
pub(crate) struct Resolved<'r> {
    pub(crate) filters: Vec<Filter>,
    /// A condition on the groups, as JSON.
    pub(crate) having: Option<&'r str>,
    /// The name of the time zone of the periods.
    pub(crate) zone: Option<&'r str>,
}

/// An aggregate: its functions, the groups for which they are computed, and the list whose records count.
#[derive(Clone, Debug)]
pub struct AggregateRequest {
    pub calls: Vec<Call>,
    /// The fields of the groups, each with its period if it has one.
    pub group_by: Vec<String>,
    /// Whether the answer has groups even if there is one function and no field to group by.
    pub has_groups: bool,
    /// `having` and `tz`, in the order in which they were sent.
    pub named: Vec<Named>,
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
}

fn function_names() -> String {
    enumerated(Function::names(), "or")
}

fn missing_function() -> Error {
    Error::invalid_request(format!("`fn` is missing. Use {}.", function_names()))
}

/// Functions, or fields to group by. One item more than `most` shows that there are too many.
fn items(text: &str, most: usize) -> Vec<String> {
    text.splitn(most + 2, ',').map(|item| item.trim().to_owned()).collect()
}

impl AggregateRequest {
    /// A request with these functions, which were sent as text. `has_groups` is whether its answer has groups in any case.
    ///
    /// # Errors
    /// `invalid_request` for an unknown function, and if `field` does not belong to a single function.
    fn of(functions: &[String], field: Option<String>, group_by: Vec<String>, has_groups: bool) -> Result<AggregateRequest> {
        if functions.len() > FUNCTIONS_MAX {
            return Err(Error::invalid_request(format!("An aggregate has {FUNCTIONS_MAX} functions at most.")));
        }
        if group_by.len() > GROUP_FIELDS_MAX {
            return Err(Error::invalid_request(format!("An aggregate groups by {GROUP_FIELDS_MAX} fields at most.")));
        }
        let has_groups = has_groups || functions.len() > 1 || !group_by.is_empty();
        let call = |text: &String| {
            Call::named(text).ok_or_else(|| match has_groups {
                true => Error::invalid_request(format!("There is no function {}. Use {}.", quoted(text), function_names())),
                false => Function::unknown(text),
            })
        };
        let mut calls = functions.iter().map(call).collect::<Result<Vec<Call>>>()?;
        match (field, calls.as_mut_slice()) {
            (None, _) => {}
            (Some(field), [Call { field: of_call @ None, .. }]) => *of_call = Some(field),
            (Some(_), _) => {
                let message = "`field` belongs to a single function. Write the fields behind the functions, as in sum:amount.";
                return Err(Error::invalid_request(message).with_field(names::FIELD));
            }
        }
        Ok(AggregateRequest { calls, group_by, has_groups, named: Vec::new(), list: ListRequest::default() })
    }

    /// One function over all records of a list.
    pub fn one(function: Function, field: Option<String>, list: ListRequest) -> AggregateRequest {
        let calls = vec![Call { function, field }];
        AggregateRequest { calls, group_by: Vec::new(), has_groups: false, named: Vec::new(), list }
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
            return Err(Error::invalid_request(format!("A function is missing. Use {}.", function_names())));
        }
        let request = AggregateRequest::of(functions, None, group_by, true)?;
        Ok(AggregateRequest { named: members(having, zone), list, ..request })
    }

    /// Reads the decoded query parameters of the REST aggregate. Without groups, parameters of sort and page are ignored. Those of
    /// projection and relations are always ignored.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<AggregateRequest> {
        let (mut functions, mut field, mut group_by) = (None, None, Vec::new());
        let (mut named, mut rest, mut filters) = (Vec::new(), Vec::new(), 0);
        let mut name_it = |name: &'static str, value: &str, filters: usize| {
            named.push(Named { name, text: value.to_owned(), filters_before: Some(filters) });
        };
        for (name, value) in pairs {
            match name {
                names::FUNCTION => functions = Some(value),
                names::FIELD => field = Some(value.to_owned()).filter(|field| !field.is_empty()),
                names::GROUP_BY => group_by = if value.is_empty() { Vec::new() } else { items(value, GROUP_FIELDS_MAX) },
                names::HAVING => name_it(names::HAVING, value, filters),
                names::ZONE => name_it(names::ZONE, value, filters),
                _ => {
                    filters += usize::from(ListParameter::named(name).is_none());
                    rest.push((name, value));
                }
            }
        }
        let functions = items(functions.ok_or_else(missing_function)?, FUNCTIONS_MAX);
        let request = AggregateRequest::of(&functions, field, group_by, false)?;
        rest.retain(|(name, _)| match ListParameter::named(name) {
            None | Some(ListParameter::Search | ListParameter::Where) => true,
            // These may be fields.
            Some(ListParameter::Cursor | ListParameter::After | ListParameter::Before) => true,
            Some(ListParameter::Select | ListParameter::Expand) => false,
            Some(_) => request.has_groups,
        });
        Ok(AggregateRequest { named, list: ListRequest::from_parameters(rest)?, ..request })
    }

    /// Reads `{ fn, field?, groupBy?, having?, tz?, … }` with the members of a list, the form of blocks and MCP. With `functions`
    /// instead of `fn`, the answer has groups in any case. `fn`, `functions` and `groupBy` are text with commas, or lists.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn from_json(text: &str) -> Result<AggregateRequest> {
        let mut members_of_text = json::parse_members(text)?;
        let mut take = |name: &str| {
            let place = members_of_text.0.iter().position(|(known, _)| known == name)?;
            let (_, raw) = members_of_text.0.remove(place);
            (raw.get() != "null").then_some(raw)
        };
        let one = take(names::FUNCTION).map(|raw| functions_of(&raw)).transpose()?;
        let many = take(names::FUNCTIONS).map(|raw| texts(&raw, "The functions", FUNCTIONS_MAX)).transpose()?;
        let field = match take(names::FIELD) {
            Some(raw) => Some(serde_json::from_str(raw.get()).map_err(|error| json::malformed(&error))?),
            None => None,
        };
        let group_by = take(names::GROUP_BY).map(|raw| texts(&raw, "The fields of the groups", GROUP_FIELDS_MAX));
        let group_by = group_by.transpose()?.unwrap_or_default();
        let having = take(names::HAVING).map(|raw| raw.get().to_owned());
        let zone = match take(names::ZONE) {
            Some(raw) => Some(serde_json::from_str(raw.get()).map_err(|error| json::malformed(&error))?),
            None => None,
        };
        let has_groups = many.is_some();
        let functions = match (one, many) {
            (Some(_), Some(_)) => return Err(Error::invalid_request("Use either `fn` or `functions`.")),
            (one, many) => one.or(many).filter(|functions| !functions.is_empty()).ok_or_else(missing_function)?,
        };
        let request = AggregateRequest::of(&functions, field, group_by, has_groups)?;
        let list = ListRequest::from_json(&members_of_text.text())?;
        Ok(AggregateRequest { named: members(having, zone), list, ..request })
    }

    /// The number of bytes of its conditions.
    pub fn bytes(&self) -> usize {
        let wheres: usize = self.list.wheres.iter().map(Where::bytes).sum();
        wheres + self.named.iter().map(|named| named.text.len()).sum::<usize>()
    }

    /// Separates the filters from the other parameters.
    ///
    /// # Errors
    /// `invalid_request` for too many filters, for a parameter that occurs twice, and for cursors.
    pub(crate) fn resolve(&self, object: &Object) -> Result<Resolved<'_>> {
        let (of_fields, of_cursors): (Vec<&CursorParameter>, Vec<_>) =
            self.list.cursors.iter().partition(|sent| sent.is_filter(object));
        if let Some(sent) = of_cursors.first() {
            let name = sent.parameter.name();
            let message = format!("An aggregate takes no `{name}`. Pages of groups have numbers.");
            return Err(Error::invalid_request(message).with_field(name));
        }
        let more = self.named.iter().filter(|named| named.is_filter(object)).count() + of_fields.len();
        if more > 0 {
            self.list.check_filters(more)?;
        }
        let mut resolved = Resolved { filters: self.list.filters.clone(), having: None, zone: None };
        let mut added = 0;
        for named in &self.named {
            let Named { name, text, filters_before } = named;
            if let Some(before) = filters_before.filter(|_| named.is_filter(object)) {
                let value = FilterValue::Text(text.clone());
                let place = (before + added).min(resolved.filters.len());
                resolved.filters.insert(place, Filter { field: (*name).to_owned(), operator: Operator::DEFAULT, value });
                added += 1;
                continue;
            }
            let known = if *name == names::HAVING { &mut resolved.having } else { &mut resolved.zone };
            if known.replace(text.as_str()).is_some() {
                return Err(Error::invalid_request(format!("`{name}` occurs twice.")).with_field(*name));
            }
        }
        resolved.filters.extend(of_fields.into_iter().map(CursorParameter::filter));
        Ok(resolved)
    }
}

/// The parameters of a JSON document.
fn members(having: Option<String>, zone: Option<String>) -> Vec<Named> {
    let of = |name: &'static str, text: Option<String>| text.map(|text| Named { name, text, filters_before: None });
    of(names::HAVING, having).into_iter().chain(of(names::ZONE, zone)).collect()
}

/// Texts as one text with commas, or as a list.
fn texts(raw: &RawValue, what: &str, most: usize) -> Result<Vec<String>> {
    let refused = |_: serde_json::Error| Error::invalid_request(format!("{what} need text, or a list of texts."));
    if is_list(raw) {
        return serde_json::from_str(raw.get()).map_err(refused);
    }
    let text: String = serde_json::from_str(raw.get()).map_err(refused)?;
    Ok(if text.is_empty() { Vec::new() } else { items(&text, most) })
}

/// The functions of `fn`, which takes a single one as well.
fn functions_of(raw: &RawValue) -> Result<Vec<String>> {
    if is_list(raw) {
        return texts(raw, "The functions", FUNCTIONS_MAX);
    }
    let text: String = serde_json::from_str(raw.get()).map_err(|error| json::malformed(&error))?;
    Ok(items(&text, FUNCTIONS_MAX))
}

fn is_list(raw: &RawValue) -> bool {
    raw.get().trim_start().starts_with('[')
}

#[cfg(test)]
mod tests {
    use blockbase_schema::{Column, ColumnType, FieldType};

    use super::*;
    use crate::limits::FILTERS_MAX;

    #[test]
    fn fields_called_having_and_tz_are_filtered_where_they_stand() {
        let field = |name: &str| Column::of_result(name.to_owned(), FieldType::Text, ColumnType::Text);
        let plain = Object::of_result("plain", vec![field("a"), field("b")]);
        let stop = Object::of_result("stop", vec![field("a"), field("b"), field("having"), field("tz")]);
        let pairs =
            [("fn", "count"), ("tz", "1"), ("a", "2"), ("q", "x"), ("having", "3"), ("tz", "4"), ("b[gt]", "5"), ("tz", "6")];
        let request = AggregateRequest::from_parameters(pairs).expect("a request");
        let resolved = request.resolve(&stop).expect("filters");
        let fields: Vec<(&str, Operator)> =
            resolved.filters.iter().map(|filter| (filter.field.as_str(), filter.operator)).collect();
        let eq = Operator::Eq;
        assert_eq!(fields, [("tz", eq), ("a", eq), ("having", eq), ("tz", eq), ("b", Operator::Gt), ("tz", eq)]);
        assert_eq!((resolved.having, resolved.zone), (None, None));
        let twice = request.resolve(&plain).expect_err("two zones");
        assert_eq!((twice.message.as_str(), twice.field.as_deref()), ("`tz` occurs twice.", Some("tz")));
        // They count as filters.
        let many = |count: usize| {
            let pairs = [("fn", "count"), ("a", "1")].into_iter().chain(std::iter::repeat_n(("having", "1"), count));
            AggregateRequest::from_parameters(pairs)
                .expect("a request")
                .resolve(&stop)
                .map(|resolved| resolved.filters.len())
                .ok()
        };
        assert_eq!((many(FILTERS_MAX - 1), many(FILTERS_MAX)), (Some(FILTERS_MAX), None));
        // A condition has limits of its own.
        let beside_where = |count: usize| {
            let filters = std::iter::repeat_n(("a", "1"), count);
            AggregateRequest::from_parameters([("fn", "count"), ("where", "{}")].into_iter().chain(filters)).is_ok()
        };
        assert_eq!((beside_where(FILTERS_MAX), beside_where(FILTERS_MAX + 1)), (true, false));
        // Those of a document are no filters.
        let document =
            AggregateRequest::from_json(r#"{"functions":"count","having":{"count":1},"tz":"UTC"}"#).expect("a request");
        let resolved = document.resolve(&stop).expect("parameters");
        assert_eq!((resolved.filters.len(), resolved.having, resolved.zone), (0, Some(r#"{"count":1}"#), Some("UTC")));
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
