//! The parameters of lists and aggregates: search, sort, page, and the filters of each column.

use blockbase_app::limits::{OFFSET_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, SEARCH_CHARACTERS_MAX};
use blockbase_app::schema::{Column, ColumnType, FieldType, Object, enumerated};
use blockbase_app::{
    AggregateFunction, CURSOR_CHARACTERS_MAX, ListParameter, Operand, Operator, Period, aggregate_names as names,
};
use serde_json::{Value, json};

use super::where_document;
use crate::openapi::components::{Components, NUMERIC_TEXT, reference, schema};
use crate::openapi::operation::query_parameter;

/// Parameters of aggregates that are never filters. A field called `having` or `tz` keeps its filter.
const AGGREGATE_NAMES: [&str; 2] = [names::FUNCTION, names::FIELD];

/// Names that cannot be filters without an operator, because they are parameters of lists or of this operation. Some parameters give
/// way to a field with their name.
fn taken(own: &[&'static str]) -> Vec<&'static str> {
    let of_lists = ListParameter::ALL.iter().filter(|parameter| !parameter.yields_to_field());
    of_lists.flat_map(|parameter| parameter.names()).chain(own.iter().copied()).collect()
}

/// The schemas of filter values, one for each kind of column.
pub(crate) fn schemas() -> Value {
    let or_null = |value: Value| json!({ "anyOf": [value, { "type": "string", "const": "null" }] });
    let date = json!({ "type": "string", "format": "date" });
    let instant = json!({
        "type": "string",
        "format": "date-time",
        "description": "RFC 3339 with any offset. Without an offset it is UTC.",
    });
    let time = json!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]+)?)?$" });
    let uuid = json!({ "type": "string", "format": "uuid" });
    // A query may contain numbers such as `+1` and `007`, which are not JSON numbers.
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

fn value_schema(column: &Column, operator: Operator) -> Value {
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
    match operator.operand() {
        Operand::Ordered => schema(kind),
        Operand::Value if kind != "SvcFilterText" => schema(&format!("{kind}OrNull")),
        Operand::Value | Operand::Text | Operand::List | Operand::Nothing => schema("SvcFilterText"),
    }
}

/// The filters of an object, as references. `taken` lists the names that have another meaning in this operation.
///
/// The parameters themselves are components, because lists and aggregates share them.
fn filters(components: &mut Components, object: &Object, type_name: &str, taken: &[&str]) -> Vec<Value> {
    let mut references = Vec::new();
    for column in &object.columns {
        let mut add = |key: String, name: String, text: &str, operator: Operator| {
            let parameter = || query_parameter(&name, text, value_schema(column, operator));
            components.parameters.entry(key.clone()).or_insert_with(parameter);
            references.push(reference("parameters", &key));
        };
        let name = &column.name;
        if Operator::DEFAULT.applies_to(column.ty) && !taken.contains(&name.as_str()) {
            add(format!("{type_name}.{name}"), name.clone(), "Equals. Short for `[eq]`.", Operator::DEFAULT);
        }
        for operator in Operator::ALL.iter().filter(|operator| operator.applies_to(column.ty)) {
            let of = operator.name();
            add(format!("{type_name}.{name}.{of}"), format!("{name}[{of}]"), operator.sentence(), *operator);
        }
    }
    references
}

fn search_parameters(object: &Object) -> [Value; 2] {
    let columns: Vec<&str> =
        object.columns.iter().filter(|column| column.is_searchable()).map(|column| column.name.as_str()).collect();
    let text = match columns.is_empty() {
        true => "Text that a record contains. This object has no fields to search in, so no record is found.".to_owned(),
        false => format!("Text that one of {} contains. Case is ignored.", columns.join(", ")),
    };
    let schema = json!({ "type": "string", "maxLength": SEARCH_CHARACTERS_MAX });
    [query_parameter("search", &text, schema.clone()), query_parameter("q", "Another name of `search`.", schema)]
}

/// A comma-separated list of names.
fn names_pattern(names: &[&str], prefix: &str) -> String {
    let name = format!("{prefix}({})", names.join("|"));
    format!("^({name}(,{name})*)?$")
}

/// The parameters that select a page of a list.
pub(crate) fn paging_parameters() -> [Value; 4] {
    // The server refuses numbers of more than 64 bits. It replaces other numbers that are too large by the maximum.
    let size = json!({ "type": "integer", "minimum": 1 });
    [
        query_parameter(
            "page",
            "The number of the page. The first page is 1, which is the default.",
            json!({ "type": "integer", "minimum": 1, "maximum": OFFSET_MAX + 1 }),
        ),
        query_parameter(
            "pageSize",
            &format!(
                "The number of records on a page. The default is {PAGE_SIZE_DEFAULT}, and a page never has more than \
                {PAGE_SIZE_MAX}."
            ),
            size.clone(),
        ),
        query_parameter(
            "limit",
            &format!("The maximum number of records, instead of `pageSize`. The response never has more than {PAGE_SIZE_MAX}."),
            size.clone(),
        ),
        query_parameter(
            "offset",
            "The number of records to skip, instead of `page`.",
            json!({ "type": "integer", "minimum": 0, "maximum": OFFSET_MAX }),
        ),
    ]
}

/// The parameters of pages by cursors. A field with the name of one of them is filtered instead.
fn cursor_parameters(object: &Object) -> Vec<Value> {
    let cursor = json!({ "type": "string", "maxLength": CURSOR_CHARACTERS_MAX });
    let parameters = [
        query_parameter(
            ListParameter::Cursor.name(),
            "Switches to pages by cursors: `cursor=` is the first one. `pagination` then has `startCursor` and `endCursor`. In the order \
            of an index, a page costs the same at any depth. Insertions and deletions neither repeat nor skip other records. `page` and `offset` get 400.",
            json!({ "type": "string", "enum": ["", "true", "false"] }),
        ),
        query_parameter(
            ListParameter::After.name(),
            "The `endCursor` of a page, for the next one. A cursor belongs to its caller, and to a list with the same object, `sort` and \
            conditions. `after` with an empty text reads the first page.",
            cursor.clone(),
        ),
        query_parameter(
            ListParameter::Before.name(),
            "The `startCursor` of a page, for the one before. `before` with an empty text reads the last page.",
            cursor,
        ),
    ];
    parameters
        .into_iter()
        .filter(|parameter| parameter["name"].as_str().is_none_or(|name| object.column_index(name).is_none()))
        .collect()
}

/// The order and the columns of records.
fn sort_and_select(object: &Object) -> [Value; 2] {
    let all: Vec<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    let ordered = object.columns.iter().filter(|column| !matches!(column.kind, FieldType::Json | FieldType::MultiEnum));
    let ordered: Vec<&str> = ordered.map(|column| column.name.as_str()).collect();
    [
        query_parameter(
            "sort",
            "Fields to sort by, separated by commas. A `-` in front means descending. By default the newest records come first.",
            json!({ "type": "string", "pattern": names_pattern(&ordered, "-?"), "examples": ["-created_at"] }),
        ),
        query_parameter(
            "select",
            "Fields to show, separated by commas. `id` is always shown. The default is all fields.",
            json!({ "type": "string", "pattern": names_pattern(&all, "") }),
        ),
    ]
}

/// The parameters of an export, except its format.
///
/// `names` lists the available paths.
pub(crate) fn of_export(components: &mut Components, object: &Object, type_name: &str, names: &[String]) -> Vec<Value> {
    let mut parameters = search_parameters(object).to_vec();
    parameters.extend(where_document::parameter(object, type_name));
    parameters.extend(sort_and_select(object));
    parameters.push(query_parameter(
        "limit",
        "The maximum number of records. The default is all records.",
        json!({ "type": "integer", "minimum": 1 }),
    ));
    parameters.push(query_parameter(
        "offset",
        "The number of records to skip.",
        json!({ "type": "integer", "minimum": 0, "maximum": OFFSET_MAX }),
    ));
    parameters.push(export_names(names));
    parameters.extend(filters(components, object, type_name, &taken(&["format", "names"])));
    parameters
}

fn export_names(names: &[String]) -> Value {
    let known = match names.is_empty() {
        true => "This object has none.".to_owned(),
        false => format!("This object has: {}.", names.join(", ")),
    };
    let text = format!(
        "Relation keys with a unique field of the related object, separated by commas. The file has a column of that name with \
            the field's value, instead of the column of ids. The id stays if the caller may not see the related record, or if \
            that record has no value. Needs read on the related object. {known}"
    );
    let escaped: Vec<String> = names.iter().map(|name| name.replace('.', "\\.")).collect();
    let escaped: Vec<&str> = escaped.iter().map(String::as_str).collect();
    // An empty text contains no name.
    let pattern = if names.is_empty() { "^$".to_owned() } else { names_pattern(&escaped, "") };
    query_parameter("names", &text, json!({ "type": "string", "pattern": pattern, "examples": names }))
}

/// The parameters of a list.
pub(crate) fn of_list(components: &mut Components, object: &Object, type_name: &str, relations: &[&str]) -> Vec<Value> {
    let [page, page_size, limit, offset] = paging_parameters();
    let [sort, select] = sort_and_select(object);
    let [search, alias] = search_parameters(object);
    let mut parameters = Vec::new();
    for parameter in ListParameter::ALL {
        match parameter {
            ListParameter::Cursor => parameters.extend(cursor_parameters(object)),
            // These follow after `cursor`.
            ListParameter::After | ListParameter::Before => {}
            ListParameter::Search => parameters.extend([search.clone(), alias.clone()]),
            ListParameter::Where => parameters.extend(where_document::parameter(object, type_name)),
            ListParameter::Sort => parameters.push(sort.clone()),
            ListParameter::Page => parameters.push(page.clone()),
            ListParameter::PageSize => parameters.push(page_size.clone()),
            ListParameter::Limit => parameters.push(limit.clone()),
            ListParameter::Offset => parameters.push(offset.clone()),
            ListParameter::Select => parameters.push(select.clone()),
            ListParameter::Expand => parameters.push(expand(relations)),
            ListParameter::Count => parameters
                .push(count_parameter("Whether the total is counted. The default is `exact`, and `none` for pages by cursors.")),
        }
    }
    parameters.extend(filters(components, object, type_name, &taken(&[])));
    parameters
}

/// `expand`, with the available relation keys.
pub(crate) fn expand(relations: &[&str]) -> Value {
    let keys = match relations.is_empty() {
        true => "This object has none.".to_owned(),
        false => format!("This object has: {}.", relations.join(", ")),
    };
    let text = format!(
        "Relation keys, separated by commas. The response includes their related records. A key with dots, such as \
        `project.owner`, leads up to three levels deep. Unknown keys are left out, and `warnings` reports them. {keys}"
    );
    query_parameter("expand", &text, json!({ "type": "string", "pattern": "^[^.,]*(\\.[^.,]*){0,2}(,[^.,]*(\\.[^.,]*){0,2})*$" }))
}

/// The parameters of aggregates that are about groups.
fn of_groups(object: &Object) -> Vec<Value> {
    let groups = object.columns.iter().filter(|column| column.kind.makes_groups());
    let groups: Vec<String> = groups
        .map(|column| {
            let periods = Period::ALL.iter().filter(|period| period.fits(column.ty)).map(|period| period.name());
            let periods: Vec<&str> = periods.collect();
            if periods.is_empty() { column.name.clone() } else { format!("{}(:({}))?", column.name, periods.join("|")) }
        })
        .collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let group_by = "Fields that make groups, separated by commas. A date or a datetime can have a period, such as `created_at:month`. \
        The response has one entry for each group.";
    let schema = json!({ "type": "string", "pattern": names_pattern(&groups, ""), "examples": ["created_at:month"] });
    let mut parameters = vec![query_parameter(names::GROUP_BY, group_by, schema)];
    if object.column_index(names::HAVING).is_none() {
        parameters.push(json!({
            "name": names::HAVING,
            "in": "query",
            "description": "A condition on the groups as JSON, in the form of `where`. Its keys are those of `groupBy` and of the \
                results, such as `count` and `sum_amount`. Only with groups.",
            "content": { "application/json": { "schema": { "type": "object" } } },
        }));
    }
    if object.column_index(names::ZONE).is_none() {
        let text = "The IANA name of the time zone of the periods. The default is UTC. Only with groups.";
        parameters.push(query_parameter(names::ZONE, text, json!({ "type": "string", "examples": ["Europe/Berlin"] })));
    }
    let sort = "Keys of groups and of results to sort by, separated by commas. A `-` in front means descending. By default the groups \
        are sorted by the fields of `groupBy`. Ignored without groups, as are the parameters of the page.";
    parameters.push(query_parameter(ListParameter::Sort.name(), sort, json!({ "type": "string", "examples": ["-count"] })));
    parameters.extend(paging_parameters());
    parameters.push(count_parameter("Whether the groups are counted. The default is `exact`."));
    parameters
}

fn count_parameter(text: &str) -> Value {
    query_parameter(ListParameter::Count.name(), text, json!({ "type": "string", "enum": ["exact", "none"] }))
}

/// The parameters of an aggregate.
pub(crate) fn of_aggregate(components: &mut Components, object: &Object, type_name: &str) -> Vec<Value> {
    let all: Vec<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    let needing = AggregateFunction::ALL.iter().filter(|function| function.needs_field());
    let needing = enumerated(needing.map(|function| format!("`{}`", function.name())), "and");
    let text = format!(
        "The function to compute. {needing} need `field`. Or several functions, separated by commas, each with its field behind it: \
        `count,sum:amount`. The response then has groups."
    );
    let call = format!("({})(:({}))?", AggregateFunction::names().join("|"), all.join("|"));
    let mut function = query_parameter(
        names::FUNCTION,
        &text,
        json!({ "type": "string", "pattern": format!("^{call}(, *{call})*$"), "examples": ["count"] }),
    );
    function["required"] = json!(true);
    let numeric: Vec<&str> =
        object.columns.iter().filter(|column| column.kind.is_numeric()).map(|column| column.name.as_str()).collect();
    let text = format!(
        "The field to compute over. With `field`, `count` counts the values that are not null. {}",
        match numeric.is_empty() {
            true => "The other functions need a numeric field, and this object has none.".to_owned(),
            false => format!("The other functions take {}.", numeric.join(", ")),
        }
    );
    let field = query_parameter(names::FIELD, &text, json!({ "type": "string", "enum": all }));
    let mut parameters = vec![function, field];
    parameters.extend(of_groups(object));
    parameters.extend(search_parameters(object));
    parameters.extend(where_document::parameter(object, type_name));
    parameters.extend(filters(components, object, type_name, &taken(&AGGREGATE_NAMES)));
    parameters
}
