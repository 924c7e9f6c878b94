//! Filter operators and their aliases.

use blockbase_schema::{Error, Result};

/// One of the twelve filter operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    Eq,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
    Like,
    Ilike,
    In,
    Nin,
    IsNull,
    IsNotNull,
}

impl Operator {
    /// Reads an operator or one of its aliases, in any case.
    pub fn parse(text: &str) -> Result<Operator> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "eq" | "=" | "==" => Operator::Eq,
            "neq" | "ne" | "!=" | "<>" => Operator::Neq,
            "gt" | ">" => Operator::Gt,
            "gte" | ">=" => Operator::Gte,
            "lt" | "<" => Operator::Lt,
            "lte" | "<=" => Operator::Lte,
            "like" => Operator::Like,
            "ilike" | "contains" => Operator::Ilike,
            "in" => Operator::In,
            "nin" | "notin" => Operator::Nin,
            "is_null" | "null" | "isnull" => Operator::IsNull,
            "is_not_null" | "notnull" => Operator::IsNotNull,
            _ => {
                return Err(Error::invalid_request(format!(
                    "There is no filter operator {text:?}. Use eq, neq, gt, gte, lt, lte, like, ilike, in, nin, is_null or is_not_null."
                )));
            }
        })
    }
}
