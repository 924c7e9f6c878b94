//! The only list of the filter operators.
//!
//! Parsing takes names and aliases from here. The documents of REST, GraphQL and MCP, the tables in `docs/filter.md` and the
//! console's filters iterate over [`Operator::ALL`]. Every `match` is exhaustive, so the compiler reports each place where a new
//! operator has to be added.

use blockbase_schema::{ColumnType, Error, FieldType, Result, enumerated, listed};

listed! {
    /// A filter operator.
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
}

listed! {
    /// The operand that an operator takes besides its field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Operand {
        /// A value of the column's type. Null has no order.
        Ordered,
        /// A value of the column's type, or null.
        Value,
        /// A text that the column is searched for.
        Text,
        /// Several values of the column's type, nulls among them.
        List,
        /// Nothing: a value is ignored.
        Nothing,
    }
}

impl Operand {
    /// Whether columns of this type can be compared with this operand.
    pub fn fits(self, ty: ColumnType) -> bool {
        match self {
            Operand::Nothing => true,
            Operand::Value | Operand::List => ty != ColumnType::Json,
            Operand::Ordered => !matches!(ty, ColumnType::Json | ColumnType::TextList),
            Operand::Text => matches!(ty, ColumnType::Text | ColumnType::TextList),
        }
    }

    /// The field types whose columns can be compared with this operand.
    pub fn field_types(self) -> impl Iterator<Item = FieldType> {
        FieldType::ALL.into_iter().filter(move |kind| self.fits(ColumnType::of(*kind, None)))
    }

    /// The operators that take this operand, as a message names them: "`in` and `nin`".
    pub fn operators(self) -> String {
        let taking = Operator::ALL.iter().filter(|operator| operator.operand() == self);
        enumerated(taking.map(|operator| format!("`{}`", operator.name())), "and")
    }
}

impl Operator {
    /// The operator of a filter that does not name an operator.
    pub const DEFAULT: Operator = Operator::Eq;

    /// The names of all operators, without aliases.
    pub fn names() -> Vec<&'static str> {
        Operator::ALL.iter().map(|operator| operator.name()).collect()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Operator::Eq => "eq",
            Operator::Neq => "neq",
            Operator::Gt => "gt",
            Operator::Gte => "gte",
            Operator::Lt => "lt",
            Operator::Lte => "lte",
            Operator::Like => "like",
            Operator::Ilike => "ilike",
            Operator::In => "in",
            Operator::Nin => "nin",
            Operator::IsNull => "is_null",
            Operator::IsNotNull => "is_not_null",
        }
    }

    /// Further names, in lower case, because all names are read in lower case.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Operator::Eq => &["=", "=="],
            Operator::Neq => &["ne", "!=", "<>"],
            Operator::Gt => &[">"],
            Operator::Gte => &[">="],
            Operator::Lt => &["<"],
            Operator::Lte => &["<="],
            Operator::Ilike => &["contains"],
            Operator::Nin => &["notin"],
            Operator::IsNull => &["null", "isnull"],
            Operator::IsNotNull => &["notnull"],
            Operator::Like | Operator::In => &[],
        }
    }

    /// A sentence for documents: what the operator means.
    pub const fn sentence(self) -> &'static str {
        match self {
            Operator::Eq => "Equals.",
            Operator::Neq => "Does not equal, or is null.",
            Operator::Gt => "Greater than.",
            Operator::Gte => "Greater than or equal.",
            Operator::Lt => "Less than.",
            Operator::Lte => "Less than or equal.",
            Operator::Like => "Contains, case-sensitive.",
            Operator::Ilike => "Contains, case-insensitive.",
            Operator::In => "One of a comma-separated list; an item in double quotes keeps its commas.",
            Operator::Nin => "None of a comma-separated list, or null.",
            Operator::IsNull => "Is null; the value is ignored.",
            Operator::IsNotNull => "Is not null; the value is ignored.",
        }
    }

    /// The same sentence for values in JSON: lists are arrays, and no value is ignored.
    pub const fn json_sentence(self) -> &'static str {
        match self {
            Operator::In => "One of the values.",
            Operator::Nin => "None of the values, or null.",
            Operator::IsNull => "Is null.",
            Operator::IsNotNull => "Is not null.",
            Operator::Eq
            | Operator::Neq
            | Operator::Gt
            | Operator::Gte
            | Operator::Lt
            | Operator::Lte
            | Operator::Like
            | Operator::Ilike => self.sentence(),
        }
    }

    /// The words for the operator in a sentence such as "`status` is "open"". The words of the two tests for null have no value
    /// after them.
    pub const fn words(self) -> &'static str {
        match self {
            Operator::Eq => "is",
            Operator::Neq => "is not",
            Operator::Gt => "is greater than",
            Operator::Gte => "is at least",
            Operator::Lt => "is less than",
            Operator::Lte => "is at most",
            Operator::Like => "contains",
            Operator::Ilike => "contains, in any case,",
            Operator::In => "is one of",
            Operator::Nin => "is none of",
            Operator::IsNull => "is empty",
            Operator::IsNotNull => "is not empty",
        }
    }

    pub const fn operand(self) -> Operand {
        match self {
            Operator::Eq | Operator::Neq => Operand::Value,
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => Operand::Ordered,
            Operator::Like | Operator::Ilike => Operand::Text,
            Operator::In | Operator::Nin => Operand::List,
            Operator::IsNull | Operator::IsNotNull => Operand::Nothing,
        }
    }

    /// Whether the operator can compare columns of this type.
    pub fn applies_to(self, ty: ColumnType) -> bool {
        self.operand().fits(ty)
    }

    /// Reads an operator or one of its aliases, in any case.
    ///
    /// # Errors
    /// `invalid_request`, which lists the valid names.
    pub fn parse(text: &str) -> Result<Operator> {
        let wanted = text.to_ascii_lowercase();
        let is_named = |operator: &&Operator| operator.name() == wanted || operator.aliases().contains(&wanted.as_str());
        Operator::ALL.iter().find(is_named).copied().ok_or_else(|| {
            let names = enumerated(Operator::ALL.iter().map(|operator| operator.name()), "or");
            Error::invalid_request(format!("There is no filter operator {text:?}. Use {names}."))
        })
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::table_rows;

    use super::*;

    fn operand_name(operand: Operand) -> &'static str {
        match operand {
            Operand::Ordered => "ordered",
            Operand::Value => "value",
            Operand::Text => "text",
            Operand::List => "list",
            Operand::Nothing => "nothing",
        }
    }

    /// The console's list of operators.
    fn typescript() -> String {
        let mut out = String::from(
            "// Generated from the server's list of filter operators, whose test compares the two. Do not edit: run\n\
             // `BLOCKBASE_WRITE=1 cargo test -p blockbase-query operator`, and build the console.\n\
             import type { FieldType } from \"./types\";\n\n\
             /** What operators take beside their field, and the types of fields that can be compared so. */\n\
             export const OPERANDS = {\n",
        );
        for operand in Operand::ALL {
            let types: Vec<String> = operand.field_types().map(|kind| format!("{:?}", kind.name())).collect();
            out.push_str(&format!("  {}: [{}],\n", operand_name(*operand), types.join(", ")));
        }
        out.push_str("} satisfies Record<string, FieldType[]>;\n\nexport type Operand = keyof typeof OPERANDS;\n\n");
        out.push_str("/** What each operator takes. */\nexport const OPERATORS = {\n");
        for operator in Operator::ALL {
            out.push_str(&format!("  {}: {:?},\n", operator.name(), operand_name(operator.operand())));
        }
        out.push_str("} as const satisfies Record<string, Operand>;\n\nexport type Operator = keyof typeof OPERATORS;\n\n");
        out.push_str("/** Further names that the server reads, in lower case. */\n");
        out.push_str("export const ALIASES: Record<string, Operator> = {\n");
        for operator in Operator::ALL {
            for alias in operator.aliases() {
                out.push_str(&format!("  {alias:?}: {:?},\n", operator.name()));
            }
        }
        out.push_str("};\n");
        out
    }

    #[test]
    fn the_console_has_every_operator() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console/src/api/operators.ts");
        if std::env::var_os("BLOCKBASE_WRITE").is_some() {
            std::fs::write(file, typescript()).expect("a file that can be written");
        }
        let written = std::fs::read_to_string(file).expect("the console's list");
        assert_eq!(written, typescript(), "write it with BLOCKBASE_WRITE=1");
    }

    #[test]
    fn the_sdk_for_javascript_types_every_operator() {
        let types = include_str!("../../../sdk/js/index.d.ts");
        let (_, rest) = types.split_once("  interface Test {\n").expect("the type of a test");
        let (members, _) = rest.split_once("\n  }").expect("its end");
        let typed: Vec<&str> = members.lines().filter_map(|line| Some(line.trim().split_once("?:")?.0)).collect();
        assert_eq!(typed, Operator::names());
    }

    /// The text about an operator's types in the table of the documentation: "all", the types that the operator does not take, or
    /// those that it takes.
    fn types_told(operand: Operand) -> String {
        let named = |kinds: &[FieldType]| kinds.iter().map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>().join(" ");
        let (taken, lacking): (Vec<FieldType>, Vec<FieldType>) =
            FieldType::ALL.into_iter().partition(|kind| operand.field_types().any(|known| known == *kind));
        match (taken.len(), lacking.len()) {
            (_, 0) => "all".to_owned(),
            (many, few) if few < many => format!("all but {}", named(&lacking)),
            _ => named(&taken),
        }
    }

    #[test]
    fn the_documentation_has_every_operator_with_its_aliases_and_types() {
        let rows = table_rows(include_str!("../../../docs/filter.md"), "| operator | aliases |");
        let wanted: Vec<String> = Operator::ALL
            .iter()
            .map(|operator| {
                let aliases: Vec<String> = operator.aliases().iter().map(|alias| format!("`{alias}`")).collect();
                let (name, sentence) = (operator.name(), operator.sentence());
                format!("| `{name}` | {} | {sentence} | {} |", aliases.join(" "), types_told(operator.operand()))
                    .replace("|  |", "| |")
            })
            .collect();
        assert_eq!(rows, wanted, "the table of operators in docs/filter.md");
    }

    #[test]
    fn each_name_means_one_operator() {
        for operator in Operator::ALL {
            for name in operator.aliases().iter().chain([&operator.name()]) {
                assert_eq!(Operator::parse(name).ok(), Some(*operator), "{name}");
                assert_eq!(Operator::parse(&name.to_ascii_uppercase()).ok(), Some(*operator), "{name}");
            }
        }
        let error = Operator::parse("near").expect_err("no operator");
        assert!(error.message.ends_with("nin, is_null or is_not_null."), "{}", error.message);
    }
}
