//! JSON Schemas of the arguments and results of tools.

use blockbase_app::condition::Variable;
use blockbase_app::limits::SEARCH_CHARACTERS_MAX;
use blockbase_app::{CursorPaginationAnswer, Operand, Operator, PaginationAnswer};
use serde_json::{Map, Value, json};

/// The maximum number of objects' names that a schema lists. A longer list would not help.
const NAMES_MAX: usize = 100;

pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// A whole number of at least `least`.
pub(super) fn number(least: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": least, "description": description })
}

/// An object with these members and no others.
pub(super) fn exact(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// `object_name`, with the objects that the caller may use the tool on.
pub(super) fn object_name(objects: &[String]) -> Value {
    let listed = objects.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match objects.len().checked_sub(NAMES_MAX) {
        Some(more @ 1..) => format!(" and {more} more (list_objects shows all)"),
        _ => String::new(),
    };
    match objects.is_empty() {
        true => text("The object's name. No object exists yet."),
        false => text(&format!("The object's name, one of: {listed}{more}.")),
    }
}

pub(super) fn id() -> Value {
    json!({ "type": "string", "format": "uuid", "description": "The record's id." })
}

pub(super) fn ids(what: &str, items_max: usize) -> Value {
    json!({ "type": "array", "items": { "type": "string", "format": "uuid" }, "maxItems": items_max, "description": what })
}

pub(super) fn values(description: &str) -> Value {
    json!({ "type": "object", "description": description })
}

/// The operations of a batch. `object` describes the name of an object.
pub(super) fn operations(object: Value, most: usize) -> Value {
    let place = json!({ "type": ["string", "object"] });
    let operation = exact(
        json!({
            "op": { "type": "string", "enum": ["create", "update", "upsert", "delete", "link", "unlink"] },
            "object": object,
            "id": { "type": ["string", "object"], "description": "The record's id, or a reference. Not for create and upsert." },
            "values": values("For create, update and upsert: the values by column. A value may be a reference."),
            "onConflict": {
                "type": "array",
                "items": { "type": "string" },
                "description": "For upsert: one of the unique targets of get_object.",
            },
            "relation": text("For link and unlink: the key of a many_to_many relation."),
            "ids": { "type": "array", "items": place, "maxItems": most, "description": "For link and unlink: the other ids." },
            "ifVersion": text("For update and delete: the ETag that the record must have, with its quotes."),
        }),
        &["op", "object"],
    );
    json!({ "type": "array", "items": operation, "maxItems": most, "description": "The operations, in order." })
}

pub(super) fn search() -> Value {
    text(&format!(
        "Finds records that contain this text in any text field. Case is ignored. At most {SEARCH_CHARACTERS_MAX} characters."
    ))
}

pub(super) fn filters() -> Value {
    // The schema names no aliases, but they are accepted too.
    let value = format!(
        "{} take a list, or text separated by commas. Only a list can have null among others; in such a text, `null` is a text. \
         {} ignore the value.",
        Operand::List.operators(),
        Operand::Nothing.operators()
    );
    let filter = exact(
        json!({
            "field": text("A column's name."),
            "operator": { "type": "string", "enum": Operator::names(), "default": Operator::DEFAULT.name() },
            "value": { "description": value },
        }),
        &["field"],
    );
    json!({ "type": "array", "items": filter, "description": "A record must match all of them." })
}

/// The schema of `where`. Its examples show the form. get_object lists the columns and relations.
pub(super) fn condition() -> Value {
    let form = "A condition on the records. Members are ANDed. A column with a value, or with an object of operators; \
        `_and` and `_or` with arrays of conditions, `_not` with one; a relation to one record (get_object has its key) with a \
        condition on that record; a relation to many records with `some`, `none` or `every` and a condition.";
    json!({
        "type": "object",
        "description": format!("{form} {}", Variable::ABOUT),
        "examples": [
            { "status": "open", "amount": { "gte": 10, "lt": 20 } },
            { "_or": [{ "priority": { "in": [1, 2] } }, { "project": { "owner": { "name": { "ilike": "an" } } } }] },
            { "_not": { "comment_by_task": { "some": { "created_by": "$user.id" } } } },
        ],
    })
}

pub(super) fn dry_run() -> Value {
    json!({ "type": "boolean", "default": false, "description": "If true, nothing changes." })
}

pub(super) fn expand() -> Value {
    text(
        "Related records to include in the response: expand keys of get_object, separated by commas. Dots lead to further \
        levels.",
    )
}

/// A record in an answer.
fn record() -> Value {
    json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] })
}

/// `{ "data": … }`.
pub(super) fn data(schema: Value) -> Value {
    exact(json!({ "data": schema }), &["data"])
}

pub(super) fn data_of_record() -> Value {
    data(record())
}

/// `schema` of an answer that may have warnings about `expand`.
pub(super) fn with_warnings(mut schema: Value) -> Value {
    schema["properties"]["warnings"] = json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "Warnings about unknown expand keys.",
    });
    schema
}

pub(super) fn page() -> Value {
    let whole = json!({ "type": "integer" });
    let maybe = json!({ "type": ["integer", "null"], "description": "Null if `count` is `none`." });
    let pagination = exact(
        json!({
            "page": whole,
            "pageSize": whole,
            "totalCount": maybe,
            "totalPages": maybe,
            "hasNextPage": { "type": "boolean" },
            "hasPreviousPage": { "type": "boolean" },
        }),
        &PaginationAnswer::MEMBERS,
    );
    exact(json!({ "data": { "type": "array", "items": record() }, "pagination": pagination }), &["data", "pagination"])
}

/// A page of a list, which is selected by its number or by cursors.
pub(super) fn page_of_list() -> Value {
    let mut page = page();
    let whole = json!({ "type": "integer" });
    let cursor = |description: &str| json!({ "type": ["string", "null"], "description": description });
    let by_cursors = exact(
        json!({
            "pageSize": whole,
            "hasNextPage": { "type": "boolean" },
            "hasPreviousPage": { "type": "boolean" },
            "startCursor": cursor("The cursor of the first record. Null if the page is empty."),
            "endCursor": cursor("The cursor of the last record. Null if the page is empty."),
            "totalCount": { "type": ["integer", "null"], "description": "Null unless `count` is `exact`." },
        }),
        &CursorPaginationAnswer::MEMBERS,
    );
    let by_number = page["properties"]["pagination"].take();
    page["properties"]["pagination"] = json!({ "anyOf": [by_number, by_cursors] });
    page
}

pub(super) fn written() -> Value {
    let ids = json!({ "type": "array", "items": { "type": "string" } });
    exact(json!({ "count": { "type": "integer" }, "ids": ids }), &["count", "ids"])
}

/// A schema in the form that rmcp needs.
pub(super) fn members(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_members_of_its_answer() {
        let described = page()["properties"]["pagination"]["properties"].clone();
        assert_eq!(members(described).keys().collect::<Vec<_>>(), PaginationAnswer::MEMBERS);
        let described = page_of_list()["properties"]["pagination"]["anyOf"][1]["properties"].clone();
        assert_eq!(members(described).keys().collect::<Vec<_>>(), CursorPaginationAnswer::MEMBERS);
    }
}
