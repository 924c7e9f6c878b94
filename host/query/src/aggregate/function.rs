//! The functions of aggregates.

use blockbase_schema::{Error, Result, enumerated, listed, quoted};

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
        Function::named(text).ok_or_else(|| Function::unknown(text))
    }

    /// The error of a text that is no function.
    pub(super) fn unknown(text: &str) -> Error {
        Error::invalid_request(format!("`fn` takes {}, not {}.", enumerated(Function::names(), "or"), quoted(text)))
    }

    /// The function with this name.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL.iter().find(|function| function.name() == name).copied()
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

#[cfg(test)]
mod tests {
    use blockbase_schema::table_rows;

    use super::*;

    #[test]
    fn the_documentation_has_every_function() {
        let rows = table_rows(include_str!("../../../../docs/data.md"), "| `fn` | value |");
        let wanted: Vec<String> =
            Function::ALL.iter().map(|function| format!("| `{}` | {} |", function.name(), function.sentence())).collect();
        assert_eq!(rows, wanted, "the table of functions in docs/data.md");
    }
}
