//! The list of tools for a client: names, descriptions, schemas, hints.

use std::sync::Arc;

use blockbase_app::limits::{FUNCTIONS_MAX, GROUP_FIELDS_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use blockbase_app::{AggregateFunction, ListParameter, Period, aggregate_names};
use rmcp::model::{Tool as Listed, ToolAnnotations};
use serde_json::{Value, json};

use super::schemas::{
    condition, data, data_of_record, dry_run, exact, expand, filters, id, ids, members, number, object_name, operations, page,
    page_of_list, search, text, values, with_warnings, written,
};
use super::{Tool, VisibleAction, VisibleTools};

/// The effects of a tool. A client may use them to ask its user first.
struct Hints {
    is_read_only: bool,
    is_destructive: bool,
    is_idempotent: bool,
}

const READS: Hints = Hints { is_read_only: true, is_destructive: false, is_idempotent: true };
const ADDS: Hints = Hints { is_read_only: false, is_destructive: false, is_idempotent: false };
const ADDS_ONCE: Hints = Hints { is_read_only: false, is_destructive: false, is_idempotent: true };
/// Changes are not idempotent, because each repetition of an atomic increment adds the amount again.
const CHANGES: Hints = Hints { is_read_only: false, is_destructive: true, is_idempotent: false };
const CHANGES_ONCE: Hints = Hints { is_read_only: false, is_destructive: true, is_idempotent: true };

/// The visible tools.
pub(crate) fn tools(shown: &VisibleTools, bulk_records_max: usize) -> Vec<Listed> {
    let fixed = shown.tools.iter().map(|(tool, objects)| fixed(*tool, objects, bulk_records_max));
    fixed.chain(shown.actions.iter().map(action)).collect()
}

/// A title, and a description for the model.
fn words(tool: Tool) -> (&'static str, &'static str) {
    match tool {
        Tool::ListObjects => (
            "List objects",
            "Lists the data objects that you may know of, and the actions that you may take on the records of \
                each.",
        ),
        Tool::GetObject => (
            "Describe an object",
            "Describes an object: its fields with their rules, the columns of its records, its unique targets, and its relations \
             with the keys that `expand` takes.",
        ),
        Tool::QueryData => (
            "Query records",
            "Lists a page of an object's records, with search, filters, a condition (`where`), sorting and related records. The newest records come \
                first unless `sort` says otherwise. A page has 25 records by default and at most 100.",
        ),
        Tool::GetRecord => ("Get a record", "Gets one record by its id, with the related records that `expand` names."),
        Tool::AggregateData => (
            "Aggregate records",
            "Computes one number over the records that query_data with the same search, filters and `where` would list: the number of \
                records, or the sum, average, least or greatest value of a numeric field. With `functions` or `group_by` it computes \
                several numbers for each group of records, and lists a page of groups.",
        ),
        Tool::CreateRecord => ("Create a record", "Creates a record and returns it."),
        Tool::UpdateRecord => (
            "Update a record",
            "Changes the columns that `data` names, and no others. A number may be `{ \"$inc\": n }` or `{ \"$dec\": n }`, \
                which changes the current value by n.",
        ),
        Tool::UpsertRecord => (
            "Create or update a record",
            "Creates a record, or changes the record that has the same values in the columns of `on_conflict`, in one step.",
        ),
        Tool::DeleteRecord => ("Delete a record", "Deletes one record by its id."),
        Tool::BulkCreateRecords => ("Create records", "Creates many records: all of them or none."),
        Tool::BulkUpdateRecords => (
            "Update records",
            "Changes many records in the same way: all of them or none. `ids` names the records, or `where` chooses them. `data` is \
                as in update_record. Unknown ids are left out of the response. With `dry_run` nothing changes, and the response \
                shows what would change.",
        ),
        Tool::BulkDeleteRecords => (
            "Delete records",
            "Deletes many records: all of them or none. `ids` names the records, or `where` chooses them. Unknown ids are left out \
                of the response. With `dry_run` nothing changes, and the response shows what would be deleted.",
        ),
        Tool::BatchRecords => (
            "Write records of several objects",
            "Runs several writes in one step: all of them or none. A missing record fails all of them. The message of an error \
                begins with the index of the operation. `{ \"$ref\": \"0.id\" }` in place of an id or a value takes a field of the \
                result of an earlier operation.",
        ),
        Tool::LinkRecords => ("Link records", "Links a record with others by a many_to_many relation. Existing links stay."),
        Tool::UnlinkRecords => ("Unlink records", "Removes links of a many_to_many relation. The records stay."),
    }
}

fn hints(tool: Tool) -> Hints {
    match tool {
        Tool::ListObjects | Tool::GetObject | Tool::QueryData | Tool::GetRecord | Tool::AggregateData => READS,
        Tool::CreateRecord | Tool::BulkCreateRecords => ADDS,
        Tool::LinkRecords => ADDS_ONCE,
        Tool::UpdateRecord | Tool::BulkUpdateRecords | Tool::BatchRecords => CHANGES,
        Tool::UpsertRecord | Tool::DeleteRecord | Tool::BulkDeleteRecords | Tool::UnlinkRecords => CHANGES_ONCE,
    }
}

/// The name of a list's parameter, in the form that tools use.
pub(super) fn parameter_name(parameter: ListParameter) -> &'static str {
    match parameter {
        ListParameter::PageSize => "page_size",
        parameter => parameter.name(),
    }
}

/// The name of `groupBy`, in the form that tools use.
pub(super) const GROUP_BY: &str = "group_by";

/// The parameters of lists that tools have. `after` and `before` switch to pages by cursors themselves.
pub(super) fn of_list() -> impl Iterator<Item = ListParameter> {
    ListParameter::ALL.iter().copied().filter(|parameter| *parameter != ListParameter::Cursor)
}

/// The parameters of lists that aggregates have too.
pub(super) fn of_aggregate() -> impl Iterator<Item = ListParameter> {
    of_list()
        .filter(|parameter| !parameter.is_of_cursors() && !matches!(parameter, ListParameter::Select | ListParameter::Expand))
}

/// The description of a list's parameter for an aggregate.
fn group_parameter(parameter: ListParameter) -> Value {
    let mut described = list_parameter(parameter);
    let text = match parameter {
        ListParameter::Sort => {
            "Keys of the groups to sort by, separated by commas: entries of `group_by`, and keys of results such as \
            `-sum_amount`. Only with groups."
                .to_owned()
        }
        ListParameter::PageSize => format!("The number of groups on a page, at most {PAGE_SIZE_MAX}."),
        ListParameter::Count => "`none` leaves out the total and saves the time to count.".to_owned(),
        _ => return described,
    };
    described["description"] = json!(text);
    described
}

fn list_parameter(parameter: ListParameter) -> Value {
    let whole = |description: &str| number(parameter.least().unwrap_or_default(), description);
    match parameter {
        ListParameter::Search => search(),
        ListParameter::Where => condition(),
        ListParameter::Sort => text(
            "Columns to sort by, separated by commas. A `-` in front means descending: \
            `-priority,title`.",
        ),
        ListParameter::Page => whole("The number of the page, from 1."),
        ListParameter::PageSize => whole(&format!(
            "The number of records on a page. The default is {PAGE_SIZE_DEFAULT}, and the maximum is \
                {PAGE_SIZE_MAX}."
        )),
        ListParameter::Limit => whole(
            "The maximum number of records, instead of `page_size`. Use it with `offset` instead of \
            `page`.",
        ),
        ListParameter::Offset => whole("The number of records to skip first."),
        ListParameter::Cursor => json!({ "type": "boolean", "description": "Whether the page is selected by cursors." }),
        ListParameter::After => text(
            "A cursor, instead of `page` or `offset`: `endCursor` of a page is `after` of the next one. An empty text reads the first page. Keep \
            `sort` and the conditions. In the order of an index, a page costs the same at any depth. Changes of other records do not move it.",
        ),
        ListParameter::Before => {
            text("A cursor: `startCursor` of a page is `before` of the page in front of it. An empty text reads the last page.")
        }
        ListParameter::Select => text("Columns to return, separated by commas. `id` is always returned."),
        ListParameter::Expand => expand(),
        ListParameter::Count => json!({
            "type": "string",
            "enum": ["exact", "none"],
            "description": "`none` leaves out the total and saves the time to count. It is the default with `after` or `before`.",
        }),
    }
}

fn input(tool: Tool, objects: &[String], most: usize) -> Value {
    let object = object_name(objects);
    let record = "The record's values by column, as get_object describes them.";
    let relation = "The key of a many_to_many relation. get_object shows it with `isLinked`.";
    match tool {
        Tool::ListObjects => exact(json!({}), &[]),
        Tool::GetObject => exact(json!({ "object_name": object }), &["object_name"]),
        Tool::QueryData => {
            let mut properties = json!({ "object_name": object });
            for parameter in of_list() {
                properties[parameter_name(parameter)] = list_parameter(parameter);
                if parameter == ListParameter::Search {
                    properties["filters"] = filters();
                }
            }
            exact(properties, &["object_name"])
        }
        Tool::GetRecord => exact(json!({ "object_name": object, "id": id(), "expand": expand() }), &["object_name", "id"]),
        Tool::AggregateData => aggregate_input(object),
        Tool::CreateRecord => exact(json!({ "object_name": object, "data": values(record) }), &["object_name", "data"]),
        Tool::UpdateRecord => exact(
            json!({ "object_name": object, "id": id(), "data": values("The columns to change.") }),
            &["object_name", "id", "data"],
        ),
        Tool::UpsertRecord => {
            let target = json!({
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "description": "One of the unique targets of get_object. `data` must have each of its columns.",
            });
            let properties = json!({ "object_name": object, "data": values(record), "on_conflict": target });
            exact(properties, &["object_name", "data", "on_conflict"])
        }
        Tool::DeleteRecord => exact(json!({ "object_name": object, "id": id() }), &["object_name", "id"]),
        Tool::BulkCreateRecords => {
            let records =
                json!({ "type": "array", "items": { "type": "object" }, "maxItems": most, "description": "The records." });
            exact(json!({ "object_name": object, "data": records }), &["object_name", "data"])
        }
        Tool::BulkUpdateRecords => exact(
            json!({
                "object_name": object,
                "ids": ids("The records' ids.", most),
                "where": condition(),
                "data": values("The columns to change in each of them."),
                "dry_run": dry_run(),
            }),
            &["object_name", "data"],
        ),
        Tool::BulkDeleteRecords => exact(
            json!({ "object_name": object, "ids": ids("The records' ids.", most), "where": condition(), "dry_run": dry_run() }),
            &["object_name"],
        ),
        Tool::BatchRecords => exact(json!({ "operations": operations(object, most) }), &["operations"]),
        Tool::LinkRecords | Tool::UnlinkRecords => exact(
            json!({
                "object_name": object,
                "id": id(),
                "relation": text(relation),
                "ids": ids("The ids of the records on the other side.", most),
            }),
            &["object_name", "id", "relation", "ids"],
        ),
    }
}

fn aggregate_input(object: Value) -> Value {
    let texts = |most: usize, description: &str| json!({ "type": "array", "items": { "type": "string" }, "maxItems": most, "description": description });
    let functions = "Several functions, for groups. Each is `count`, or a function and its field, such as `sum:amount`. The results \
        have the keys `count` and `sum_amount`.";
    let group_by = format!(
        "The fields that make the groups. A date or a datetime can have a period, such as `created_at:month`: {}. Without `group_by`, \
        all records are one group.",
        Period::enumerated()
    );
    let mut properties = json!({
        "object_name": object,
        "fn": {
            "type": "string",
            "enum": AggregateFunction::names(),
            "description": "One function. Without `group_by`, the result is one number.",
        },
        "field": text("A numeric field. `count` takes any field, and counts its values that are not null. `count` also \
            works without a field."),
        "functions": texts(FUNCTIONS_MAX, functions),
    });
    properties[GROUP_BY] = texts(GROUP_FIELDS_MAX, &group_by);
    properties[aggregate_names::HAVING] = json!({
        "type": "object",
        "description": "A condition on the groups, in the form of `where`. Its keys are entries of `group_by` and keys of results.",
        "examples": [{ "count": { "gte": 10 }, "created_at:month": { "gte": "2026-01-01T00:00:00Z" } }],
    });
    properties[aggregate_names::ZONE] =
        text("The IANA name of the time zone of the periods, such as Europe/Berlin. The default is UTC.");
    for parameter in of_aggregate() {
        properties[parameter_name(parameter)] = group_parameter(parameter);
        if parameter == ListParameter::Search {
            properties["filters"] = filters();
        }
    }
    exact(properties, &["object_name"])
}

fn output(tool: Tool) -> Value {
    let named = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let counted = |what: &str| data(exact(json!({ what: { "type": "integer" } }), &[what]));
    match tool {
        Tool::ListObjects => data(json!({ "type": "array", "items": named })),
        Tool::GetObject => data(named),
        Tool::QueryData => with_warnings(page_of_list()),
        Tool::GetRecord => with_warnings(data_of_record()),
        Tool::CreateRecord | Tool::UpdateRecord => data_of_record(),
        Tool::AggregateData => {
            let one = exact(
                json!({
                    "fn": { "type": "string" },
                    "field": { "type": ["string", "null"] },
                    "value": { "type": ["number", "null"] },
                    "filteredCount": { "type": "integer" },
                }),
                &["fn", "field", "value", "filteredCount"],
            );
            // The top level of an output schema is an object.
            let mut either = page();
            let group = json!({ "type": "object", "properties": { "group": { "type": "object" } }, "required": ["group"] });
            either["properties"]["data"] = json!({ "anyOf": [one, { "type": "array", "items": group }] });
            either["required"] = json!(["data"]);
            either
        }
        Tool::UpsertRecord => {
            let mut schema = data_of_record();
            schema["properties"]["created"] = json!({ "type": "boolean", "description": "Whether the record is new." });
            schema["required"] = json!(["data", "created"]);
            schema
        }
        Tool::DeleteRecord => data(exact(json!({ "deleted": { "type": "boolean" } }), &["deleted"])),
        Tool::BulkCreateRecords | Tool::BulkUpdateRecords | Tool::BulkDeleteRecords => written(),
        Tool::BatchRecords => data(json!({
            "type": "array",
            "description": "The result of each operation, in order: `data`, and `created` for an upsert. Null for a deletion.",
            "items": { "type": ["object", "null"] },
        })),
        Tool::LinkRecords => counted("added"),
        Tool::UnlinkRecords => counted("removed"),
    }
}

fn fixed(tool: Tool, objects: &[String], bulk_records_max: usize) -> Listed {
    let (title, description) = words(tool);
    let Hints { is_read_only, is_destructive, is_idempotent } = hints(tool);
    Listed::new(tool.name(), description, members(input(tool, objects, bulk_records_max)))
        .with_title(title)
        .with_raw_output_schema(Arc::new(members(output(tool))))
        .with_annotations(ToolAnnotations::from_raw(
            Some(title.to_owned()),
            Some(is_read_only),
            Some(is_destructive),
            Some(is_idempotent),
            Some(false),
        ))
}

/// An action as a tool. Only its author knows its effects, so the hints assume the worst case.
fn action(shown: &VisibleAction) -> Listed {
    let manifest = &shown.block.manifest;
    let declared = &manifest.actions[shown.place];
    let title = format!("{}: {}", manifest.name, declared.name);
    let description = match declared.description.is_empty() {
        true => format!("The action `{}` of the block `{}`.", declared.name, manifest.name),
        false => declared.description.clone(),
    };
    Listed::new(shown.tool.clone(), description, members(declared.input.clone()))
        .with_title(title.clone())
        .with_raw_output_schema(Arc::new(members(data(json!({ "description": "The result of the action." })))))
        .with_annotations(ToolAnnotations::from_raw(Some(title), Some(false), Some(true), Some(false), Some(true)))
}
