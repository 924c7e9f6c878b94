//! The GraphQL types of objects: the types of their columns, and the input types.

use std::collections::HashSet;
use std::sync::Arc;

use blockbase_app::condition::NamedQuantifier;
use blockbase_app::schema::{Column, ColumnType, FieldType, Object, Registry, pascal_case, system};
use blockbase_app::{AggregateFunction, Operand, Operator};

/// The values of the GraphQL enum for sort directions.
pub(crate) const SORT_DIRECTIONS: [&str; 2] = ["asc", "desc"];

/// The only field of an otherwise empty input object, because GraphQL does not allow empty ones.
pub(crate) const PLACEHOLDER: &str = "_";

/// A leaf of an answer or of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Int,
    Float,
    Boolean,
    Id,
    /// The text of an instant in ISO 8601.
    DateTime,
    /// Any JSON value.
    Json,
}

impl Scalar {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scalar::String => "String",
            Scalar::Int => "Int",
            Scalar::Float => "Float",
            Scalar::Boolean => "Boolean",
            Scalar::Id => "ID",
            Scalar::DateTime => "DateTime",
            Scalar::Json => "JSON",
        }
    }
}

/// The objects that a view shows. Conditions can only lead to these objects.
#[derive(Debug)]
pub(crate) struct VisibleObjects {
    pub(crate) registry: Arc<Registry>,
    pub(crate) names: HashSet<String>,
}

/// An object in a view.
#[derive(Clone, Debug)]
pub(crate) struct Related {
    pub(crate) object: Arc<Object>,
    pub(crate) shown: Arc<VisibleObjects>,
}

impl Related {
    /// The members of a condition: `_and`, `_or` and `_not`, the columns, and the relations that the view shows.
    fn members(&self) -> Vec<(String, Input)> {
        let own = || Input::Where(self.clone());
        let mut members = vec![
            ("_and".to_owned(), own().required().list()),
            ("_or".to_owned(), own().required().list()),
            ("_not".to_owned(), own()),
        ];
        let columns = self.object.columns.iter();
        members.extend(columns.map(|column| (column.name.clone(), Input::Test(Test::of(column)))));
        let VisibleObjects { registry, names } = &*self.shown;
        for relation in registry.relations_of(self.object.name()).iter().filter(|relation| names.contains(&relation.related)) {
            let Some(object) = registry.object(&relation.related) else { continue };
            let related = Related { object: Arc::clone(object), shown: Arc::clone(&self.shown) };
            let input = if relation.shape.is_single() { Input::Where(related) } else { Input::WhereMany(related) };
            members.push((relation.key.clone(), input));
        }
        members
    }
}

/// The kinds of columns, by the type of their values. Columns of one kind can be tested in the same ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    String,
    /// The options of a `multi_enum`.
    Options,
    Int,
    Float,
    Boolean,
    Id,
    /// A UUID that identifies no record. It is text, but it cannot be searched for a part.
    Uuid,
    DateTime,
    Json,
}

impl Test {
    pub(crate) const ALL: [Test; 9] =
        [Test::String, Test::Options, Test::Int, Test::Float, Test::Boolean, Test::Id, Test::Uuid, Test::DateTime, Test::Json];

    /// A test takes the scalar that the column has in records. It takes the options of an enum as strings, because `like` takes
    /// any text.
    fn of(column: &Column) -> Test {
        match (scalar_of(column), column.ty) {
            (Scalar::String, ColumnType::TextList) => Test::Options,
            (Scalar::String, ColumnType::Uuid) => Test::Uuid,
            (Scalar::String, _) => Test::String,
            (Scalar::Int, _) => Test::Int,
            (Scalar::Float, _) => Test::Float,
            (Scalar::Boolean, _) => Test::Boolean,
            (Scalar::Id, _) => Test::Id,
            (Scalar::DateTime, _) => Test::DateTime,
            (Scalar::Json, _) => Test::Json,
        }
    }

    /// A column type of this kind, and the scalar for its values.
    fn column(self) -> (ColumnType, Scalar) {
        match self {
            Test::String => (ColumnType::Text, Scalar::String),
            Test::Options => (ColumnType::TextList, Scalar::String),
            Test::Int => (ColumnType::Integer, Scalar::Int),
            Test::Float => (ColumnType::Float, Scalar::Float),
            Test::Boolean => (ColumnType::Boolean, Scalar::Boolean),
            Test::Id => (ColumnType::Uuid, Scalar::Id),
            Test::Uuid => (ColumnType::Uuid, Scalar::String),
            Test::DateTime => (ColumnType::Datetime, Scalar::DateTime),
            Test::Json => (ColumnType::Json, Scalar::Json),
        }
    }

    /// The name begins with `Svc`, so no object has it.
    fn name(self) -> String {
        match self {
            Test::Options => "SvcOptionsWhere".to_owned(),
            Test::Uuid => "SvcUuidWhere".to_owned(),
            other => format!("Svc{}Where", other.column().1.name()),
        }
    }

    /// The operators that apply to these columns, with the types of their values.
    fn members(self) -> Vec<(String, Input)> {
        let (ty, scalar) = self.column();
        let operand = |operator: Operator| match operator.operand() {
            Operand::Ordered | Operand::Value => Input::Scalar(scalar),
            Operand::Text => Input::Scalar(Scalar::String),
            Operand::List => Input::Scalar(scalar).list(),
            Operand::Nothing => Input::Scalar(Scalar::Boolean),
        };
        let fitting = Operator::ALL.iter().filter(|operator| operator.applies_to(ty));
        fitting.map(|operator| (operator.name().to_owned(), operand(*operator))).collect()
    }
}

/// The type of an argument, of a variable, or of a field of an input object.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Scalar(Scalar),
    /// The name of the enum, and its values.
    Enum(String, Vec<String>),
    Filter,
    Sort,
    /// A condition on records of an object.
    Where(Related),
    /// A condition on the records that a to-many relation leads to.
    WhereMany(Related),
    /// The tests of a column.
    Test(Test),
    Create(Arc<Object>),
    Update(Arc<Object>),
    Increment(Arc<Object>),
    List(Box<Input>),
    Required(Box<Input>),
}

/// One field of an input object.
#[derive(Clone, Debug)]
pub(crate) struct InputField {
    pub(crate) name: String,
    pub(crate) input: Input,
    /// The default, which is the name of an enum value.
    pub(crate) default: Option<&'static str>,
    pub(crate) description: Option<String>,
}

impl Input {
    pub(crate) fn required(self) -> Input {
        Input::Required(Box::new(self))
    }

    pub(crate) fn list(self) -> Input {
        Input::List(Box::new(self))
    }

    fn fixed(name: &str, values: &[&str]) -> Input {
        Input::Enum(name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
    }

    pub(crate) fn filter_operator() -> Input {
        Input::fixed("FilterOperator", &Operator::names())
    }

    pub(crate) fn sort_direction() -> Input {
        Input::fixed("SortDirection", &SORT_DIRECTIONS)
    }

    pub(crate) fn aggregate_function() -> Input {
        Input::fixed("AggregateFunction", &AggregateFunction::names())
    }

    /// The name of the type, without lists and exclamation marks.
    pub(crate) fn name(&self) -> String {
        match self {
            Input::Scalar(scalar) => scalar.name().to_owned(),
            Input::Enum(name, _) => name.clone(),
            Input::Filter => "FilterInput".to_owned(),
            Input::Sort => "SortInput".to_owned(),
            // Types that belong to columns have names of the same form, but no upper-case letter follows the `_`.
            Input::Where(related) => format!("{}_Where", pascal_case(related.object.name())),
            Input::WhereMany(related) => format!("{}_WhereMany", pascal_case(related.object.name())),
            Input::Test(test) => test.name(),
            Input::Create(object) => format!("{}CreateInput", pascal_case(object.name())),
            Input::Update(object) => format!("{}UpdateInput", pascal_case(object.name())),
            Input::Increment(object) => format!("{}IncrementInput", pascal_case(object.name())),
            Input::List(inner) | Input::Required(inner) => inner.name(),
        }
    }

    /// The object whose records a condition tests. `None` for any other input.
    pub(crate) fn object(&self) -> Option<&Arc<Object>> {
        match self {
            Input::Where(related) | Input::WhereMany(related) => Some(&related.object),
            Input::List(inner) | Input::Required(inner) => inner.object(),
            Input::Scalar(_)
            | Input::Enum(..)
            | Input::Filter
            | Input::Sort
            | Input::Test(_)
            | Input::Create(_)
            | Input::Update(_)
            | Input::Increment(_) => None,
        }
    }

    /// The fields of an input object. `None` for any other input.
    pub(crate) fn fields(&self) -> Option<Vec<InputField>> {
        let field = |name: &str, input: Input| InputField { name: name.to_owned(), input, default: None, description: None };
        let fields = match self {
            Input::Filter => {
                let operator = field("operator", Input::filter_operator().required());
                vec![
                    field("field", Input::Scalar(Scalar::String).required()),
                    InputField { default: Some(Operator::DEFAULT.name()), ..operator },
                    field("value", Input::Scalar(Scalar::Json)),
                ]
            }
            Input::Sort => {
                let direction = field("direction", Input::sort_direction().required());
                let direction = InputField { default: Some("asc"), ..direction };
                vec![field("field", Input::Scalar(Scalar::String).required()), direction]
            }
            Input::Where(related) => related.members().into_iter().map(|(name, input)| field(&name, input)).collect(),
            Input::WhereMany(related) => {
                NamedQuantifier::ALL.iter().map(|quantifier| field(quantifier.name(), Input::Where(related.clone()))).collect()
            }
            Input::Test(test) => test.members().into_iter().map(|(name, input)| field(&name, input)).collect(),
            Input::Create(object) | Input::Update(object) => {
                let creates = matches!(self, Input::Create(_));
                let columns = object.columns.iter();
                let columns = columns.filter(|column| !column.is_system || (creates && column.name == system::ID));
                columns
                    .map(|column| InputField {
                        description: describe(object, column, creates),
                        ..field(&column.name, input_of(object, column))
                    })
                    .collect()
            }
            Input::Increment(object) => {
                let columns = object.columns.iter().filter(|column| is_numeric(column));
                columns.map(|column| field(&column.name, input_of(object, column))).collect()
            }
            Input::Scalar(_) | Input::Enum(..) | Input::List(_) | Input::Required(_) => return None,
        };
        match fields.is_empty() {
            false => Some(fields),
            true => Some(vec![InputField {
                description: Some("This object has no field to set.".to_owned()),
                ..field(PLACEHOLDER, Input::Scalar(Scalar::Boolean))
            }]),
        }
    }
}

/// Whether a column of an answer has a value in every row. If the caller may not read all fields of the object, only `id`
/// certainly has a value.
pub(crate) fn is_never_null(object: &Object, column: &Column) -> bool {
    column.required && (!object.is_partial || column.name == system::ID)
}

/// Whether atomic operators apply to a column.
pub(crate) fn is_numeric(column: &Column) -> bool {
    !column.is_system && column.reference.is_none() && column.kind.is_numeric()
}

/// The scalar of a column without an enum. For a list, the scalar of its items.
pub(crate) fn scalar_of(column: &Column) -> Scalar {
    if column.reference.is_some() || column.name == system::ID {
        return Scalar::Id;
    }
    match column.kind {
        FieldType::Integer => Scalar::Int,
        FieldType::BigInteger
        | FieldType::Decimal
        | FieldType::Currency
        | FieldType::Percentage
        | FieldType::Rating
        | FieldType::Float => Scalar::Float,
        FieldType::Boolean => Scalar::Boolean,
        FieldType::Date | FieldType::Datetime | FieldType::Time => Scalar::DateTime,
        FieldType::Json => Scalar::Json,
        FieldType::Text
        | FieldType::Email
        | FieldType::Url
        | FieldType::Slug
        | FieldType::Enum
        | FieldType::MultiEnum
        | FieldType::Uuid => Scalar::String,
    }
}

/// The options of an enum column, if all of them can be names in GraphQL.
pub(crate) fn enum_values(column: &Column) -> Option<&[String]> {
    let is_name = |option: &String| {
        let bytes = option.as_bytes();
        bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && !option.starts_with("__")
            // If a name begins like this, the parser reads it as the literal.
            && !["true", "false", "null"].iter().any(|literal| option.starts_with(literal))
    };
    let options = column.rules.options.as_deref().filter(|_| column.kind.has_options())?;
    options.iter().all(is_name).then_some(options)
}

/// The name of a column's enum. Type names of objects have no underscore, so the name does not clash with them.
pub(crate) fn enum_name(object: &Object, column: &Column) -> String {
    format!("{}_{}", pascal_case(object.name()), column.name)
}

/// The name of the type of a list's page.
pub(crate) fn page_name(object: &Object) -> String {
    format!("{}_Page", pascal_case(object.name()))
}

/// The name of the type of a connection. The Relay specification requires the ending.
pub(crate) fn connection_name(object: &Object) -> String {
    format!("{}_Connection", pascal_case(object.name()))
}

/// The name of the type of an edge of a connection.
pub(crate) fn edge_name(object: &Object) -> String {
    format!("{}_Edge", pascal_case(object.name()))
}

/// The name of the type of a page of groups. It begins with `Svc`, so no object has it.
pub(crate) const GROUPS: &str = "SvcGroups";

/// The name of the type of an upsert's result.
pub(crate) fn upserted_name(object: &Object) -> String {
    format!("{}_Upserted", pascal_case(object.name()))
}

/// The input type of a column. It is always nullable, because the operation checks for required values. So a missing value has
/// the same error on every surface.
pub(crate) fn input_of(object: &Object, column: &Column) -> Input {
    let item = match enum_values(column) {
        Some(values) => Input::Enum(enum_name(object, column), values.to_vec()),
        None => Input::Scalar(scalar_of(column)),
    };
    match column.kind {
        FieldType::MultiEnum => item.required().list(),
        _ => item,
    }
}

fn describe(object: &Object, column: &Column, creates: bool) -> Option<String> {
    if column.name == system::ID {
        return Some("Used only by an upsert whose target is `id`. Otherwise the server makes the id.".to_owned());
    }
    let described = description_of(object, column);
    match (creates && column.required && column.default.is_none(), described) {
        (true, Some(text)) => Some(format!("{text} Required.")),
        (true, None) => Some("Required.".to_owned()),
        (false, text) => text,
    }
}

/// The description of a column in its definition.
pub(crate) fn description_of(object: &Object, column: &Column) -> Option<String> {
    let field = object.definition.fields.iter().find(|field| field.name == column.name)?;
    field.description.clone().or_else(|| field.label.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_tested_as_the_scalar_of_its_column() {
        let field = |kind: FieldType| Column::of_result("x".to_owned(), kind, ColumnType::of(kind, None));
        let id = Column::of_result(system::ID.to_owned(), FieldType::Uuid, ColumnType::Uuid);
        for column in FieldType::ALL.into_iter().map(field).chain([id]) {
            let test = Test::of(&column);
            let (ty, scalar) = test.column();
            assert_eq!(scalar, scalar_of(&column), "{}", column.kind.name());
            for operator in Operator::ALL {
                assert_eq!(operator.applies_to(ty), operator.applies_to(column.ty), "{} {}", column.kind.name(), operator.name());
            }
        }
        assert_eq!(Test::of(&field(FieldType::Rating)), Test::Float);
        assert_eq!(Test::of(&field(FieldType::Uuid)), Test::Uuid);
    }
}
