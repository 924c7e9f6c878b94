//! A function with its field, and the value that it has in the answer.

use blockbase_schema::{ColumnType, Error, Object, Result, json};

use super::function::Function;
use super::request::Call;

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
    pub(super) fn new(object: &Object, call: &Call, has_groups: bool) -> Result<Computed> {
        let Call { function, field } = call;
        let column = match field {
            Some(name) => Some(object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))?),
            None => None,
        };
        match column.map(|index| &object.columns[index]) {
            None if function.needs_field() => Err(Error::invalid_request(match (function.name(), has_groups) {
                (name, true) => format!("`{name}` needs a numeric field, as in `{name}:amount`."),
                (name, false) => format!("`{name}` needs `field`, a numeric field."),
            })),
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

/// A decimal number without zeros at the end of its fraction.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_of_a_fraction_go() {
        for (text, shown) in [("12.500000", "12.5"), ("120", "120"), ("-3.00", "-3"), ("0.000000", "0")] {
            assert_eq!(trimmed(text), shown);
        }
    }
}
