//! Aggregates: one function over the rows that a list with the same filters would count.

use std::sync::Arc;

use blockbase_schema::{ColumnType, Error, Object, Result, enumerated, json, listed};

use crate::access::Access;
use crate::condition::{Reading, Where};
use crate::filter::Filter;
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

/// `fn` and `field`, and the list's search, filters and condition.
#[derive(Clone, Debug)]
pub struct AggregateRequest {
    pub function: Function,
    pub field: Option<String>,
    pub search: Option<String>,
    pub filters: Vec<Filter>,
    pub wheres: Vec<Where>,
}

fn missing_function() -> Error {
    Error::invalid_request(format!("`fn` is missing. Use {}.", enumerated(Function::names(), "or")))
}

impl AggregateRequest {
    /// Reads the decoded query parameters of the REST aggregate. Parameters of sort, page and projection are ignored.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<AggregateRequest> {
        let (mut function, mut field, mut rest) = (None, None, Vec::new());
        for (name, value) in pairs {
            match (name, ListParameter::named(name)) {
                ("fn", _) => function = Some(Function::parse(value)?),
                ("field", _) => field = Some(value.to_owned()).filter(|field| !field.is_empty()),
                (_, None | Some(ListParameter::Search | ListParameter::Where)) => rest.push((name, value)),
                (_, Some(_)) => {}
            }
        }
        let function = function.ok_or_else(missing_function)?;
        let ListRequest { search, filters, wheres, .. } = ListRequest::from_parameters(rest)?;
        Ok(AggregateRequest { function, field, search, filters, wheres })
    }

    /// Reads `{ fn, field?, search?, filters?, where? }`, the form of blocks, GraphQL and MCP.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn from_json(text: &str) -> Result<AggregateRequest> {
        let mut members = json::parse_members(text)?;
        let mut take = |name: &str| -> Result<Option<String>> {
            let place = members.0.iter().position(|(known, _)| known == name);
            let Some((_, raw)) = place.map(|place| members.0.remove(place)) else { return Ok(None) };
            serde_json::from_str(raw.get()).map_err(|error| json::malformed(&error))
        };
        let function = take("fn")?.ok_or_else(missing_function)?;
        let function = Function::parse(&function)?;
        let field = take("field")?;
        let ListRequest { search, filters, wheres, .. } = ListRequest::from_json(&members.text())?;
        Ok(AggregateRequest { function, field, search, filters, wheres })
    }
}

/// An aggregate that was checked against the schema.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    pub object: Arc<Object>,
    pub selection: Selection,
    pub function: Function,
    /// The index of the field in `Object::columns`.
    pub column: Option<usize>,
}

impl AggregatePlan {
    /// # Errors
    /// `unknown_field`, `invalid_value`, or `invalid_request` for a field that is missing or not numeric.
    pub fn new(object: &Arc<Object>, access: &Access, request: AggregateRequest, reading: &Reading<'_>) -> Result<AggregatePlan> {
        let AggregateRequest { function, field, search, filters, wheres } = request;
        let column = match &field {
            Some(name) => Some(object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))?),
            None => None,
        };
        match column.map(|index| &object.columns[index]) {
            None if function.needs_field() => {
                return Err(Error::invalid_request(format!("`{}` needs `field`, a numeric field.", function.name())));
            }
            Some(column) if function.needs_field() && !column.kind.is_numeric() => {
                return Err(Error::invalid_request(format!(
                    "`{}` is for numeric fields; `{}` is {}.",
                    function.name(),
                    column.name,
                    column.kind.name()
                ))
                .with_field(column.name.clone()));
            }
            _ => {}
        }
        let selection = Selection::new(object, access, search, &filters, &wheres, reading)?;
        Ok(AggregatePlan { object: Arc::clone(object), selection, function, column })
    }

    /// The function's value as JSON. The engines return the number of values, and their sum, least or greatest value as text.
    ///
    /// Up to this point sums are exact, and do not depend on the order of the rows. So both engines give the same bytes.
    ///
    /// # Errors
    /// `invalid_value` for a result that is out of the range of a double.
    pub fn value_json(&self, values: i64, text: Option<&str>) -> Result<String> {
        let column = self.column.map(|index| &self.object.columns[index]);
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
        assert_eq!((request.function, request.field.as_deref(), request.filters.len()), (Function::Sum, Some("n"), 1));
        assert!(AggregateRequest::from_json("{}").is_err());
        assert!(AggregateRequest::from_json(r#"{"fn":"median"}"#).is_err());
        assert!(AggregateRequest::from_json(r#"{"fn":"count","colour":1}"#).is_err());
    }
}
