//! The schemas of conditions, for each kind of column and for each object.

use blockbase_app::condition::{NamedQuantifier, PARTS_MAX, Variable};
use blockbase_app::limits::LIST_ITEMS_MAX;
use blockbase_app::schema::{Column, ColumnType, Object};
use blockbase_app::{CURSOR_CHARACTERS_MAX, ListParameter, Operand, Operator};
use serde_json::{Map, Value, json};

use super::records_document::Related;
use crate::openapi::components::{Components, NUMERIC_TEXT, members, schema};

/// Kinds of columns. Conditions on columns of one kind have the same form.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    TextList,
    Integer,
    Number,
    Boolean,
    Date,
    Datetime,
    Time,
    Uuid,
    Json,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Text,
        Kind::TextList,
        Kind::Integer,
        Kind::Number,
        Kind::Boolean,
        Kind::Date,
        Kind::Datetime,
        Kind::Time,
        Kind::Uuid,
        Kind::Json,
    ];

    fn of(ty: ColumnType) -> Kind {
        match ty {
            ColumnType::Text => Kind::Text,
            ColumnType::TextList => Kind::TextList,
            ColumnType::Integer | ColumnType::BigInteger => Kind::Integer,
            ColumnType::Decimal { .. } | ColumnType::Float => Kind::Number,
            ColumnType::Boolean => Kind::Boolean,
            ColumnType::Date => Kind::Date,
            ColumnType::Datetime => Kind::Datetime,
            ColumnType::Time => Kind::Time,
            ColumnType::Uuid => Kind::Uuid,
            ColumnType::Json => Kind::Json,
        }
    }

    /// The type that stands for the columns of this kind.
    fn column_type(self) -> ColumnType {
        match self {
            Kind::Text => ColumnType::Text,
            Kind::TextList => ColumnType::TextList,
            Kind::Integer => ColumnType::Integer,
            Kind::Number => ColumnType::Float,
            Kind::Boolean => ColumnType::Boolean,
            Kind::Date => ColumnType::Date,
            Kind::Datetime => ColumnType::Datetime,
            Kind::Time => ColumnType::Time,
            Kind::Uuid => ColumnType::Uuid,
            Kind::Json => ColumnType::Json,
        }
    }

    fn schema_name(self) -> &'static str {
        match self {
            Kind::Text => "SvcWhereText",
            Kind::TextList => "SvcWhereOptions",
            Kind::Integer => "SvcWhereInteger",
            Kind::Number => "SvcWhereNumber",
            Kind::Boolean => "SvcWhereBoolean",
            Kind::Date => "SvcWhereDate",
            Kind::Datetime => "SvcWhereDatetime",
            Kind::Time => "SvcWhereTime",
            Kind::Uuid => "SvcWhereUuid",
            Kind::Json => "SvcWhereJson",
        }
    }

    /// A value of such a column, or the name of a variable.
    fn value(self) -> Value {
        let or_variable = |value: Value| json!({ "anyOf": [value, { "type": "string", "pattern": "^\\$" }] });
        let digits = json!({ "type": "string", "pattern": NUMERIC_TEXT });
        match self {
            // A text with the form of a variable is a variable.
            Kind::Text | Kind::TextList | Kind::Json => json!({ "type": "string" }),
            Kind::Integer => json!({ "anyOf": [{ "type": "integer" }, digits, { "type": "string", "pattern": "^\\$" }] }),
            Kind::Number => json!({ "anyOf": [{ "type": "number" }, digits, { "type": "string", "pattern": "^\\$" }] }),
            // No variable has such a value.
            Kind::Boolean => json!({ "anyOf": [{ "type": "boolean" }, { "type": "string", "enum": ["true", "false"] }] }),
            Kind::Date => or_variable(json!({ "type": "string", "format": "date" })),
            Kind::Datetime => or_variable(json!({ "type": "string", "format": "date-time" })),
            Kind::Time => or_variable(json!({ "type": "string" })),
            Kind::Uuid => or_variable(json!({ "type": "string", "format": "uuid" })),
        }
    }

    /// Whether a value of such a column can be the name of a role. These names begin with a letter, and are no UUIDs. A boolean
    /// could only be the name of a role called `true` or `false`, which does not count.
    fn can_be_role(self) -> bool {
        match self {
            Kind::Text | Kind::TextList => true,
            Kind::Integer | Kind::Number | Kind::Boolean | Kind::Date | Kind::Datetime | Kind::Time | Kind::Uuid | Kind::Json => {
                false
            }
        }
    }

    fn operand(self, operator: Operator) -> Value {
        let or_null = |value: Value| json!({ "anyOf": [value, { "type": "null" }] });
        let mut operand = match operator.operand() {
            Operand::Ordered => self.value(),
            Operand::Value => or_null(self.value()),
            Operand::Text => json!({ "type": "string" }),
            Operand::List => {
                let list = json!({ "type": "array", "items": or_null(self.value()), "maxItems": LIST_ITEMS_MAX });
                match self.can_be_role() {
                    true => json!({ "anyOf": [list, { "type": "string", "const": Variable::UserRoles.name() }] }),
                    false => list,
                }
            }
            Operand::Nothing => json!({ "type": "boolean", "const": true }),
        };
        operand["description"] = json!(operator.json_sentence());
        operand
    }

    fn schema(self) -> Value {
        let ty = self.column_type();
        let operators: Map<String, Value> = Operator::ALL
            .iter()
            .filter(|operator| operator.applies_to(ty))
            .map(|operator| (operator.name().to_owned(), self.operand(*operator)))
            .collect();
        let mut asked = members(&[], Value::Object(operators));
        asked["minProperties"] = json!(1);
        match Operator::DEFAULT.applies_to(ty) {
            true => json!({ "anyOf": [self.value(), { "type": "null" }, asked] }),
            false => asked,
        }
    }
}

/// The schemas of conditions on a column, one for each kind of column.
pub(crate) fn schemas() -> Value {
    Value::Object(Kind::ALL.into_iter().map(|kind| (kind.schema_name().to_owned(), kind.schema())).collect())
}

/// The name of the schema of an object's conditions. Type names contain no `_`, so no other schema has this name.
fn schema_name(type_name: &str) -> String {
    format!("{type_name}_Where")
}

/// A condition on an object's records.
pub(crate) fn condition(type_name: &str) -> Value {
    schema(&schema_name(type_name))
}

/// Adds the schema of an object's conditions.
pub(crate) fn describe(components: &mut Components, object: &Object, type_name: &str, relations: &[Related<'_>]) {
    let own = || condition(type_name);
    let list = |what: &str| json!({ "type": "array", "items": own(), "maxItems": PARTS_MAX, "description": what });
    let mut properties = Map::new();
    properties.insert("_and".to_owned(), list("All of these conditions must be met."));
    properties.insert("_or".to_owned(), list("At least one of these conditions must be met."));
    properties.insert("_not".to_owned(), json!({ "allOf": [own()], "description": "This condition must not be met." }));
    for Column { name, ty, .. } in &object.columns {
        properties.insert(name.clone(), schema(Kind::of(*ty).schema_name()));
    }
    for related in relations {
        let condition = || condition(&related.type_name);
        let asked = match related.is_single {
            true => condition(),
            false => {
                let quantifiers = NamedQuantifier::ALL.iter().map(|quantifier| (quantifier.name().to_owned(), condition()));
                let mut quantified = members(&[], Value::Object(quantifiers.collect()));
                quantified["minProperties"] = json!(1);
                quantified
            }
        };
        properties.insert(related.key.to_owned(), asked);
    }
    let mut described = members(&[], Value::Object(properties));
    described["description"] = json!(format!(
        "A condition on records of `{}`: all members must be met. A path such as `project.owner.name` is short for nested \
        members. {}",
        object.name(),
        Variable::ABOUT
    ));
    // The keys with dots are paths of relations.
    described["patternProperties"] = json!({ "^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$": {} });
    components.schemas.insert(schema_name(type_name), described);
}

/// The parameter `where` of lists and similar operations. It does not exist if the object has a field with this name, because
/// then `where` is a filter on that field.
pub(crate) fn parameter(object: &Object, type_name: &str) -> Option<Value> {
    let text = "A condition as JSON, with and, or, not and relations. Records must also match the filters and the search.";
    object.column_index(ListParameter::Where.name()).is_none().then(|| in_query(text, type_name))
}

/// The parameter `where` of a call for many records. A field with this name does not change its meaning.
pub(crate) fn bulk_parameter(type_name: &str) -> Value {
    in_query("The condition as JSON, if the body has neither `ids` nor `where`.", type_name)
}

fn in_query(description: &str, type_name: &str) -> Value {
    json!({
        "name": ListParameter::Where.name(),
        "in": "query",
        "description": description,
        "content": { "application/json": { "schema": condition(type_name) } },
    })
}

/// The body of `POST …/query`: the parameters of the list as JSON.
pub(crate) fn query_body(type_name: &str, parameters: &[Value]) -> Value {
    let filter = members(
        &["field"],
        json!({
            "field": { "type": "string", "description": "A column's name." },
            "operator": { "type": "string", "enum": Operator::names(), "default": Operator::DEFAULT.name() },
            "value": { "description": "The value that the column is compared with." },
        }),
    );
    let mut properties = Map::new();
    for parameter in ListParameter::ALL {
        let name = parameter.name();
        let value = match parameter {
            ListParameter::Where => condition(type_name),
            // A field with the name of the parameter has no filter in the body.
            ListParameter::Cursor => json!({
                "type": "boolean",
                "description": "Whether the page is selected by cursors. `after` and `before` also switch to them.",
            }),
            ListParameter::After | ListParameter::Before => json!({
                "type": "string",
                "description": "A cursor, as in the query string.",
                "maxLength": CURSOR_CHARACTERS_MAX,
            }),
            _ => {
                let Some(known) = parameters.iter().find(|known| known["name"] == name) else { continue };
                let mut value = known["schema"].clone();
                value["description"] = known["description"].clone();
                value
            }
        };
        properties.insert(name.to_owned(), value);
        if *parameter == ListParameter::Search {
            let text = "Simple filters, in another form than in the query string. A record must match all of them.";
            properties.insert("filters".to_owned(), json!({ "type": "array", "items": filter, "description": text }));
        }
    }
    members(&[], Value::Object(properties))
}
