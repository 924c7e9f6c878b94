//! The parameters of lists and aggregates: search, sort, page, and each filter that a column takes.

use blockbase_app::SEARCH_CHARACTERS_MAX;
use blockbase_app::schema::{Column, ColumnType, FieldType, Object};
use serde_json::{Value, json};

use super::components::{Components, NUMERIC_TEXT, reference, schema};
use super::operation::query_parameter;

/// Parameters of lists that no field can be filtered by under its bare name.
const LIST_NAMES: [&str; 10] = ["search", "q", "sort", "page", "pageSize", "limit", "offset", "select", "expand", "count"];
/// Those that aggregates have besides.
const AGGREGATE_NAMES: [&str; 2] = ["fn", "field"];

/// Where no list reaches any more.
const OFFSET_MAX: u64 = 1 << 50;

/// The operators in the order in which documentation shows them.
const OPERATORS: [(&str, &str); 12] = [
    ("eq", "Equals."),
    ("neq", "Does not equal, or is null."),
    ("gt", "Greater than."),
    ("gte", "Greater than or equal."),
    ("lt", "Less than."),
    ("lte", "Less than or equal."),
    ("like", "Contains, with the case as it stands."),
    ("ilike", "Contains, whatever the case."),
    ("in", "One of a comma-separated list; an item in double quotes keeps its commas."),
    ("nin", "None of a comma-separated list, or null."),
    ("is_null", "Is null; the value is ignored."),
    ("is_not_null", "Is not null; the value is ignored."),
];

/// Whether the server can compare the column in this way.
fn supports(column: &Column, operator: &str) -> bool {
    match operator {
        "is_null" | "is_not_null" => true,
        _ if column.ty == ColumnType::Json => false,
        "like" | "ilike" => matches!(column.ty, ColumnType::Text | ColumnType::TextList),
        "gt" | "gte" | "lt" | "lte" => column.ty != ColumnType::TextList,
        _ => true,
    }
}

/// The schemas of filter values, one a kind of column.
pub(super) fn schemas() -> Value {
    let or_null = |value: Value| json!({ "anyOf": [value, { "type": "string", "const": "null" }] });
    let date = json!({ "type": "string", "format": "date" });
    let instant = json!({
        "type": "string",
        "format": "date-time",
        "description": "RFC 3339 with any offset; without one it is UTC.",
    });
    let time = json!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]+)?)?$" });
    let uuid = json!({ "type": "string", "format": "uuid" });
    // Numbers may be written like `+1` and `007` in a query, which no JSON number is.
    let digits = json!({ "type": "string", "pattern": NUMERIC_TEXT });
    let integer = json!({ "anyOf": [{ "type": "integer" }, digits] });
    let numeric = json!({ "anyOf": [{ "type": "number" }, digits] });
    let boolean = json!({ "type": "boolean" });
    json!({
        "SvcFilterText": { "type": "string" },
        "SvcFilterInteger": integer,
        "SvcFilterIntegerOrNull": or_null(integer),
        "SvcFilterNumber": numeric,
        "SvcFilterNumberOrNull": or_null(numeric),
        "SvcFilterBoolean": boolean,
        "SvcFilterBooleanOrNull": or_null(boolean),
        "SvcFilterDate": date,
        "SvcFilterDateOrNull": or_null(date),
        "SvcFilterDatetime": instant,
        "SvcFilterDatetimeOrNull": or_null(instant),
        "SvcFilterTime": time,
        "SvcFilterTimeOrNull": or_null(time),
        "SvcFilterUuid": uuid,
        "SvcFilterUuidOrNull": or_null(uuid),
    })
}

fn value_schema(column: &Column, operator: &str) -> Value {
    let kind = match column.ty {
        ColumnType::Integer | ColumnType::BigInteger => "SvcFilterInteger",
        ColumnType::Decimal { .. } | ColumnType::Float => "SvcFilterNumber",
        ColumnType::Boolean => "SvcFilterBoolean",
        ColumnType::Date => "SvcFilterDate",
        ColumnType::Datetime => "SvcFilterDatetime",
        ColumnType::Time => "SvcFilterTime",
        ColumnType::Uuid => "SvcFilterUuid",
        ColumnType::Text | ColumnType::TextList | ColumnType::Json => "SvcFilterText",
    };
    match operator {
        "gt" | "gte" | "lt" | "lte" => schema(kind),
        "eq" | "neq" if kind != "SvcFilterText" => schema(&format!("{kind}OrNull")),
        _ => schema("SvcFilterText"),
    }
}

/// The filters of an object, as references; `taken` are names that mean something else there.
///
/// The parameters themselves go into the components, because lists and aggregates have the same.
fn filters(components: &mut Components, object: &Object, type_name: &str, taken: &[&str]) -> Vec<Value> {
    let mut references = Vec::new();
    for column in &object.columns {
        let mut add = |key: String, name: String, text: &str, operator: &str| {
            let parameter = || query_parameter(&name, text, value_schema(column, operator));
            components.parameters.entry(key.clone()).or_insert_with(parameter);
            references.push(reference("parameters", &key));
        };
        let name = &column.name;
        if column.ty != ColumnType::Json && !taken.contains(&name.as_str()) {
            add(format!("{type_name}.{name}"), name.clone(), "Equals; short for `[eq]`.", "eq");
        }
        for (operator, text) in OPERATORS.iter().filter(|(operator, _)| supports(column, operator)) {
            add(format!("{type_name}.{name}.{operator}"), format!("{name}[{operator}]"), text, operator);
        }
    }
    references
}

fn search_parameters(object: &Object) -> [Value; 2] {
    let columns: Vec<&str> =
        object.columns.iter().filter(|column| column.is_searchable()).map(|column| column.name.as_str()).collect();
    let text = match columns.is_empty() {
        true => "Text that a record contains. This object has no field to search in, so that nothing is found.".to_owned(),
        false => format!("Text that one of {} contains, whatever the case.", columns.join(", ")),
    };
    let schema = json!({ "type": "string", "maxLength": SEARCH_CHARACTERS_MAX });
    [query_parameter("search", &text, schema.clone()), query_parameter("q", "Another name of `search`.", schema)]
}

/// A comma-separated list of names.
fn names_pattern(names: &[&str], prefix: &str) -> String {
    let name = format!("{prefix}({})", names.join("|"));
    format!("^({name}(,{name})*)?$")
}

/// The window into a list.
pub(super) fn paging_parameters() -> [Value; 4] {
    // Past 64 bits a number is refused, whatever it is for; what is less is clamped.
    let size = json!({ "type": "integer", "minimum": 1 });
    [
        query_parameter(
            "page",
            "The page, from 1. 1 by default.",
            json!({ "type": "integer", "minimum": 1, "maximum": OFFSET_MAX + 1 }),
        ),
        query_parameter("pageSize", "Records a page; 25 by default, and never more than 100.", size.clone()),
        query_parameter("limit", "Records at most, instead of `pageSize`; never more than 100.", size.clone()),
        query_parameter(
            "offset",
            "Records to leave out, instead of `page`.",
            json!({ "type": "integer", "minimum": 0, "maximum": OFFSET_MAX }),
        ),
    ]
}

/// The order and the columns of records.
fn sort_and_select(object: &Object) -> [Value; 2] {
    let all: Vec<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    let ordered = object.columns.iter().filter(|column| !matches!(column.kind, FieldType::Json | FieldType::MultiEnum));
    let ordered: Vec<&str> = ordered.map(|column| column.name.as_str()).collect();
    [
        query_parameter(
            "sort",
            "Fields to sort by, separated by commas; `-` in front means descending. The newest come first by default.",
            json!({ "type": "string", "pattern": names_pattern(&ordered, "-?"), "examples": ["-created_at"] }),
        ),
        query_parameter(
            "select",
            "Fields to show, separated by commas; `id` always is. All by default.",
            json!({ "type": "string", "pattern": names_pattern(&all, "") }),
        ),
    ]
}

/// The parameters of an export, but for its format.
///
/// `names` are the paths that there are.
pub(super) fn of_export(components: &mut Components, object: &Object, type_name: &str, names: &[String]) -> Vec<Value> {
    let mut parameters = search_parameters(object).to_vec();
    parameters.extend(sort_and_select(object));
    parameters.push(query_parameter("limit", "Records at most. All by default.", json!({ "type": "integer", "minimum": 1 })));
    parameters.push(query_parameter(
        "offset",
        "Records to leave out.",
        json!({ "type": "integer", "minimum": 0, "maximum": OFFSET_MAX }),
    ));
    parameters.push(export_names(names));
    let taken: Vec<&str> = LIST_NAMES.into_iter().chain(["format", "names"]).collect();
    parameters.extend(filters(components, object, type_name, &taken));
    parameters
}

fn export_names(names: &[String]) -> Value {
    let known = match names.is_empty() {
        true => "This object has none.".to_owned(),
        false => format!("Here: {}.", names.join(", ")),
    };
    let text = format!(
        "Relation keys with a unique field of the related object, separated by commas. The file has a column of that name instead of the one of ids, with the field's value. The id stays where the caller may not see the related record, and where that has no value. It takes read on the related object. {known}"
    );
    let escaped: Vec<String> = names.iter().map(|name| name.replace('.', "\\.")).collect();
    let escaped: Vec<&str> = escaped.iter().map(String::as_str).collect();
    // An empty text names nothing.
    let pattern = if names.is_empty() { "^$".to_owned() } else { names_pattern(&escaped, "") };
    query_parameter("names", &text, json!({ "type": "string", "pattern": pattern, "examples": names }))
}

/// The parameters of a list.
pub(super) fn of_list(components: &mut Components, object: &Object, type_name: &str, relations: &[&str]) -> Vec<Value> {
    let [sort, select] = sort_and_select(object);
    let mut parameters = search_parameters(object).to_vec();
    parameters.push(sort);
    parameters.extend(paging_parameters());
    parameters.push(select);
    parameters.push(expand(relations));
    parameters.push(query_parameter(
        "count",
        "Whether the total is counted; `exact` by default.",
        json!({ "type": "string", "enum": ["exact", "none"] }),
    ));
    parameters.extend(filters(components, object, type_name, &LIST_NAMES));
    parameters
}

/// `expand`, with the relation keys that there are.
pub(super) fn expand(relations: &[&str]) -> Value {
    let keys = match relations.is_empty() {
        true => "This object has none.".to_owned(),
        false => format!("Here: {}.", relations.join(", ")),
    };
    let text = format!(
        "Relation keys whose records come along, separated by commas; dots lead up to three levels deep. Unknown keys are left out, and `warnings` says so. {keys}"
    );
    query_parameter("expand", &text, json!({ "type": "string", "pattern": "^[^.,]*(\\.[^.,]*){0,2}(,[^.,]*(\\.[^.,]*){0,2})*$" }))
}

/// The parameters of an aggregate.
pub(super) fn of_aggregate(components: &mut Components, object: &Object, type_name: &str) -> Vec<Value> {
    let all: Vec<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    let mut function = query_parameter(
        "fn",
        "What is computed. `sum`, `avg`, `min` and `max` need `field`.",
        json!({ "type": "string", "enum": ["count", "sum", "avg", "min", "max"] }),
    );
    function["required"] = json!(true);
    let numeric: Vec<&str> =
        object.columns.iter().filter(|column| column.kind.is_numeric()).map(|column| column.name.as_str()).collect();
    let text = format!(
        "The field. `count` then counts the values that are not null. {}",
        match numeric.is_empty() {
            true => "No field here is numeric, as the other functions need it.".to_owned(),
            false => format!("The other functions take {}.", numeric.join(", ")),
        }
    );
    let field = query_parameter("field", &text, json!({ "type": "string", "enum": all }));
    let mut parameters = vec![function, field];
    parameters.extend(search_parameters(object));
    let taken: Vec<&str> = LIST_NAMES.into_iter().chain(AGGREGATE_NAMES).collect();
    parameters.extend(filters(components, object, type_name, &taken));
    parameters
}
