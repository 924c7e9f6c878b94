//! The paths of one object's records.

use blockbase_app::schema::{Object, Registry, RelationShape, pascal_case};
use blockbase_app::{AggregateFunction, CursorPaginationAnswer, ExportForm, PaginationAnswer, Visible, WrittenAnswer};
use serde_json::{Value, json};

use crate::openapi::answers::of;
use crate::openapi::components::{Components, exact_object, list_of, members, schema};
use crate::openapi::operation::{
    Caller, Operation, Paths, data_with_warnings, header_parameter, headers, path_parameter, query_parameter,
};
use crate::routes::data::discover::DiscoveredAnswer;
use crate::routes::data::filters_document;
use crate::routes::data::links::{LinkedAnswer, UnlinkedAnswer};
use crate::routes::data::{records_document, where_document};

/// The object's tag. Documentation groups the operations of the object by it.
pub(crate) fn object_tag(object: &Object) -> Value {
    let definition = &object.definition;
    let about = definition.description.as_ref().or(definition.label.as_ref());
    let about = about.cloned().unwrap_or_else(|| format!("Records of `{}`.", object.name()));
    json!({ "name": tag(object), "description": about })
}

fn tag(object: &Object) -> String {
    format!("data.{}", object.name())
}

/// `GET /api/v1/data`.
pub(crate) fn discovery(paths: &mut Paths) {
    let operation = Operation::new("data.discover", "data", "List the objects to read")
        .describe("Lists the objects whose records the caller may read, with their endpoints.")
        .called_by(Caller::Granted)
        .answers_data(200, "The objects.", list_of(of::<DiscoveredAnswer>()));
    paths.add("get", "/api/v1/data", operation);
}

/// `POST /api/v1/batch`.
pub(crate) fn batch(paths: &mut Paths, bulk_records_max: usize) {
    let text = json!({ "type": "string" });
    // The key `$ref` is described by a pattern, because many tools would take a property of this name for their own reference.
    let reference = json!({
        "type": "object",
        "description": "A field of the result of an earlier operation, as the caller sees it. Its only key is `$ref`, with the \
            index of the operation and the name of the field.",
        "patternProperties": { r"^\$ref$": { "type": "string", "pattern": REFERENCE } },
        "minProperties": 1,
        "additionalProperties": false,
    });
    let id = json!({ "description": "The record's id.", "anyOf": [{ "type": "string", "format": "uuid" }, reference] });
    let ids = json!({ "type": "array", "items": id, "maxItems": bulk_records_max });
    let values = json!({
        "type": "object",
        "description": "The same as the body of the operation on one record. A value can be a reference too, except in a column \
            of JSON, where every object is data.",
    });
    let version = json!({
        "type": "string",
        "pattern": IF_MATCH,
        "description": "As `If-Match`: the record's `ETag` with its quotes, or `*`.",
    });
    let operation = |ops: &[&str], required: Value, optional: Value| {
        let mut properties = json!({ "op": { "type": "string", "enum": ops }, "object": text });
        for more in [&required, &optional].into_iter().filter_map(Value::as_object) {
            more.iter().for_each(|(name, member)| properties[name] = member.clone());
        }
        let needed: Vec<&str> = ["op", "object"]
            .into_iter()
            .chain(required.as_object().into_iter().flatten().map(|(name, _)| name.as_str()))
            .collect();
        members(&needed, properties)
    };
    let operations = json!([
        operation(&["create"], json!({ "values": values }), json!({})),
        operation(&["update"], json!({ "id": id, "values": values }), json!({ "ifVersion": version })),
        operation(&["upsert"], json!({ "values": values, "onConflict": list_of(text.clone()) }), json!({})),
        operation(&["delete"], json!({ "id": id }), json!({ "ifVersion": version })),
        operation(&["link", "unlink"], json!({ "id": id, "relation": text, "ids": ids }), json!({})),
    ]);
    let operations = json!({ "type": "array", "items": { "oneOf": operations }, "maxItems": bulk_records_max });
    let result = json!({
        "description": "What the operation on one record answers: the record, or the number of links that changed. Null for a \
            deletion.",
        "anyOf": [
            members(&["data"], json!({ "data": { "type": "object" }, "created": { "type": "boolean" } })),
            { "type": "null" },
        ],
    });
    let operation = Operation::new("data.batch", "data", "Write records of several objects")
        .describe(
            "Runs several writes in one transaction: all of them or none. Each has the rights, the checks, the errors and the \
            event of the same operation on one record. A missing record fails the call. The message of an error begins with the \
            index of the operation at fault, and `index` has it too.",
        )
        .called_by(Caller::Granted)
        .json_body(exact_object(json!({ "operations": operations })))
        .problems(&[404, 409, 412])
        .answers_data(200, "The results, in the order of the operations.", list_of(result));
    paths.add("post", "/api/v1/batch", operation);
}

/// The index of an operation, and a field.
const REFERENCE: &str = r"^(0|[1-9][0-9]*)\.[a-z][a-z0-9_]*$";

/// One object whose operations are described, with the parts that all of them have.
struct Described<'a> {
    object: &'a Object,
    tag: String,
    type_name: String,
    bulk_records_max: usize,
}

impl Described<'_> {
    fn operation(&self, verb: &str, summary: String) -> Operation {
        let id = format!("data.{}.{verb}", self.object.name());
        Operation::new(id, &self.tag, summary).called_by(Caller::Granted).problems(&[400, 404])
    }

    fn ids(&self) -> Value {
        let ids = json!({ "type": "array", "items": { "type": "string", "format": "uuid" }, "maxItems": self.bulk_records_max });
        exact_object(json!({ "ids": ids }))
    }

    fn record(&self) -> Value {
        schema(&self.type_name)
    }

    fn updates(&self) -> Value {
        schema(&format!("{}UpdateInput", self.type_name))
    }
}

/// The paths and schemas of an object.
pub(crate) fn object(
    paths: &mut Paths,
    components: &mut Components,
    visible: &Visible,
    object: &Object,
    bulk_records_max: usize,
) {
    let name = object.name();
    let type_name = pascal_case(name);
    let readable = |related: &str| visible.objects.iter().any(|(known, readable)| known == related && *readable);
    let relations = records_document::relations(&visible.registry, name, readable);
    let keys: Vec<&str> = relations.iter().map(|related| related.key).collect();
    let is_visible = |other: &str| visible.objects.iter().any(|(known, _)| known == other);
    let (created, updated) = (visible.to_create(name), visible.to_change(name));
    let written = [created, updated].map(|written| written.map_or(object, |written| &**written));
    records_document::describe(components, (object, written), &type_name, &relations, is_visible);
    where_document::describe(components, object, &type_name, &relations);
    let described = Described { object, tag: tag(object), type_name, bulk_records_max };
    let base = format!("/api/v1/data/{name}");
    collection(paths, components, &described, &base, &keys);
    let names = record_names(&visible.registry, name, readable);
    paths.add("get", format!("{base}/export"), export(components, &described, &names));
    one(paths, &described, &base, &keys);
    if object.is_users() {
        return;
    }
    bulk(paths, &described, &base);
    let linked = visible
        .registry
        .relations_of(name)
        .iter()
        .filter(|relation| matches!(relation.shape, RelationShape::Linked { .. }) && readable(&relation.related));
    for relation in linked {
        links(paths, &described, &base, &relation.key, &relation.related);
    }
}

fn collection(paths: &mut Paths, components: &mut Components, described: &Described<'_>, base: &str, keys: &[&str]) {
    let Described { object, type_name, .. } = described;
    let name = object.name();
    let mut page = exact_object(json!({
        "data": { "type": "array", "items": schema(&format!("{type_name}_Selected")) },
        "pagination": { "oneOf": [of::<PaginationAnswer>(), of::<CursorPaginationAnswer>()] },
    }));
    page["properties"]["warnings"] = schema("SvcWarnings");
    let parameters = filters_document::of_list(components, object, type_name, keys);
    let body = where_document::query_body(type_name, &parameters);
    let list = described
        .operation("list", format!("List records of {name}"))
        .describe(
            "Lists records with search, filters, a condition, sorting and paging. Filters may be repeated. A record must match all \
            of them.",
        )
        .parameters(parameters)
        .answers(200, "A page of records.", page.clone());
    paths.add("get", base, list);
    let query = described
        .operation("query", format!("List records of {name} with parameters in a body"))
        .describe("The same list with its parameters in a JSON body, for conditions that are too long for a URL. It only reads.")
        .json_body(body)
        .answers(200, "A page of records.", page);
    paths.add("post", format!("{base}/query"), query);
    let aggregate = exact_object(json!({
        "fn": { "type": "string", "enum": AggregateFunction::names() },
        "field": { "type": ["string", "null"] },
        "value": { "type": ["number", "null"], "description": "Null if no record has a value." },
        "filteredCount": { "type": "integer", "format": "int64", "minimum": 0 },
    }));
    let group = json!({
        "type": "object",
        "properties": {
            "group": { "type": "object", "description": "The values of the fields, by the keys of `groupBy`." },
        },
        "required": ["group"],
        "additionalProperties": { "type": ["number", "null"] },
    });
    let groups = exact_object(json!({ "data": list_of(group), "pagination": of::<PaginationAnswer>() }));
    let aggregate = json!({ "oneOf": [exact_object(json!({ "data": aggregate })), groups] });
    let aggregate = described
        .operation("aggregate", format!("Compute over records of {name}"))
        .describe(
            "Computes one function over the records that a list with the same search, filters and condition counts. With `groupBy` or \
            several functions it computes them for each group of these records.",
        )
        .parameters(filters_document::of_aggregate(components, object, type_name))
        .answers(200, "The value, or a page of groups.", aggregate);
    paths.add("get", format!("{base}/aggregate"), aggregate);
    // Users are not changed as records.
    if !object.is_users() {
        paths.add("post", base, create(described, keys));
    }
}

/// The fields of related records that an export can write instead of ids, such as `company.name`.
fn record_names(registry: &Registry, object: &str, readable: impl Fn(&str) -> bool) -> Vec<String> {
    let relations = registry.relations_of(object).iter();
    let forward =
        relations.filter(|relation| matches!(relation.shape, RelationShape::Forward { .. }) && readable(&relation.related));
    forward
        .filter_map(|relation| Some((&relation.key, registry.object(&relation.related)?)))
        .flat_map(|(key, object)| {
            object.columns.iter().filter(|column| column.names_record()).map(move |column| format!("{key}.{}", column.name))
        })
        .collect()
}

fn export(components: &mut Components, described: &Described<'_>, names: &[String]) -> Operation {
    let Described { object, type_name, .. } = described;
    let format = "`csv` is RFC 4180 with a header. Null is an empty cell, and an empty text is `\"\"`. A text that begins with \
        `=`, `+`, `-` or `@` gets an apostrophe in front. `ndjson` has one record on each line, with the same bytes as in the \
        list.";
    let mut format = query_parameter("format", format, json!({ "type": "string", "enum": ExportForm::NAMES }));
    format["required"] = json!(true);
    let content = json!({
        "text/csv": { "schema": { "type": "string", "description": "A header, and a line for each record." } },
        "application/x-ndjson": { "schema": { "type": "string", "description": "A line for each record." } },
    });
    let headers = headers(&[("content-disposition", "ContentDisposition")]);
    described
        .operation("export", format!("Export records of {}", object.name()))
        .describe(
            "Exports all records that a list with the same search, filters and condition has, in the same order. `limit` and \
            `offset` select a part of them. All records come from one moment. If the response is cut off, its connection ends \
            without the last chunk, and the file is incomplete.",
        )
        .parameter(format)
        .parameters(filters_document::of_export(components, object, type_name, names))
        .response(200, json!({ "description": "The file.", "headers": headers, "content": content }))
}

fn create(described: &Described<'_>, keys: &[&str]) -> Operation {
    let Described { object, type_name, .. } = described;
    let targets = object.unique_target_names();
    let text = format!(
        "Columns of a unique target, separated by commas in any order: {}. If a record has the same values in these columns, \
        that record is changed instead. The body must contain these columns.",
        targets.join(" or ")
    );
    let columns: Vec<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    let pattern = format!("^ *({0}) *(, *({0}) *)*$", columns.join("|"));
    let on_conflict = query_parameter("on_conflict", &text, json!({ "type": "string", "pattern": pattern, "examples": targets }));
    let upserted = |created: &Value| {
        json!({
            "type": "object",
            "properties": { "data": described.record(), "created": created, "warnings": schema("SvcWarnings") },
            "required": ["data"],
            "additionalProperties": false,
        })
    };
    let created = json!({ "type": "boolean", "const": true, "description": "Present with `on_conflict`." });
    let changed = json!({ "type": "boolean", "const": false });
    described
        .operation("create", format!("Create a record of {}", object.name()))
        .describe(
            "Creates a record. With `on_conflict` it instead changes an existing record that the new one would duplicate, \
            atomically.",
        )
        .parameters([on_conflict, filters_document::expand(keys)])
        .json_body(schema(&format!("{type_name}CreateInput")))
        .problems(&[409])
        .answers_tagged(200, "With `on_conflict`: the record that was changed.", upserted(&changed))
        .answers_tagged(201, "The new record.", upserted(&created))
}

fn bulk(paths: &mut Paths, described: &Described<'_>, base: &str) {
    let path = format!("{base}/bulk");
    let (name, type_name, most) = (described.object.name(), &described.type_name, described.bulk_records_max);
    let records = json!({ "type": "array", "items": schema(&format!("{type_name}CreateInput")), "maxItems": most });
    let create = described
        .operation("bulkCreate", format!("Create many records of {name}"))
        .describe("Creates all records or none. The message of an error names the index of the record at fault.")
        .json_body(exact_object(json!({ "data": records })))
        .problems(&[409])
        .answers(201, "The new records' ids, in the order of the body.", of::<WrittenAnswer<'_>>());
    paths.add("post", path.clone(), create);
    let dry_run = || {
        let text = "If true, the response shows what would be written, and nothing is written. Only the values themselves are \
            checked, not whether they conflict with other records.";
        query_parameter("dryRun", text, json!({ "type": "boolean", "default": false }))
    };
    let chosen = |more: Value| {
        let condition = where_document::condition(type_name);
        let by_ids = described.ids()["properties"]["ids"].clone();
        let one_of = |name: &str, value: Value| {
            let mut properties = more.clone();
            properties[name] = value;
            exact_object(properties)
        };
        json!({ "oneOf": [one_of("ids", by_ids), one_of("where", condition)] })
    };
    let changes = chosen(json!({ "values": described.updates() }));
    let update = described
        .operation("bulkUpdate", format!("Change many records of {name}"))
        .describe(
            "Gives all records the same values, or changes none. Unknown ids are skipped. `where` names the records that meet a \
            condition and that the caller may read.",
        )
        .parameter(dry_run())
        .json_body(changes)
        .problems(&[409])
        .answers(200, "Ids of the records that were changed, in the order of the body.", of::<WrittenAnswer<'_>>());
    paths.add("patch", path.clone(), update);
    let delete = described
        .operation("bulkDelete", format!("Delete many records of {name}"))
        .describe(
            "Unknown ids are skipped. If one of the records is still referenced, none is deleted. `where` names the records that meet a \
            condition and that the caller may read.",
        )
        .parameter(dry_run())
        .json_body(chosen(json!({})))
        .problems(&[409])
        .answers(200, "Ids of the records that were deleted.", of::<WrittenAnswer<'_>>());
    paths.add("delete", path, delete);
}

/// The id of a record in the path, in every usual spelling of a UUID. Other texts cannot be the id of a record.
fn id_parameter() -> Value {
    path_parameter("id", "The record's id.", json!({ "type": "string", "format": "uuid" }))
}

/// The condition of a change.
fn if_match() -> Value {
    let text = "One `ETag` of a response with this record, including its quotes, or `*`. If the record is in another state, \
        nothing is written and the response is 412.";
    header_parameter(
        "If-Match",
        text,
        json!({ "type": "string", "pattern": IF_MATCH, "examples": ["\"hZ3bUxVfKq0p1yQm7dEw2A\"", "*"] }),
    )
}

/// One strong ETag, or `*`.
const IF_MATCH: &str = "^(\\*|\"[^\"\\s]+\")$";

fn one(paths: &mut Paths, described: &Described<'_>, base: &str, keys: &[&str]) {
    let path = format!("{base}/{{id}}");
    let name = described.object.name();
    let known = "An `ETag` of this record. If the record is still in that state, the response is 304. With `expand` it is \
        always 200.";
    let known = header_parameter("If-None-Match", known, json!({ "type": "string" }));
    let get = described
        .operation("get", format!("Get a record of {name}"))
        .parameters([id_parameter(), filters_document::expand(keys), known])
        .describe("With `expand` the response includes related records. The `ETag` covers the record alone.")
        .problems(&[304])
        .answers_tagged(200, "The record.", data_with_warnings(described.record()));
    paths.add("get", path.clone(), get);
    if described.object.is_users() {
        return;
    }
    let update = described
        .operation("update", format!("Change a record of {name}"))
        .describe("Changes the fields that the body names. A number can also be changed by an amount, atomically.")
        .parameters([id_parameter(), filters_document::expand(keys), if_match()])
        .json_body(described.updates())
        .problems(&[409, 412])
        .answers_tagged(200, "The record as it is now.", data_with_warnings(described.record()));
    paths.add("patch", path.clone(), update);
    let delete = described
        .operation("delete", format!("Delete a record of {name}"))
        .describe(
            "Each relationship decides what happens to the records that refer to this one: they prevent the deletion, are \
            deleted too, or lose their reference.",
        )
        .parameters([id_parameter(), if_match()])
        .problems(&[409, 412])
        .answers_nothing(204, "The record is deleted.");
    paths.add("delete", path, delete);
}

fn links(paths: &mut Paths, described: &Described<'_>, base: &str, key: &str, related: &str) {
    let path = format!("{base}/{{id}}/links/{key}");
    let name = described.object.name();
    for (method, verb, what, answer) in
        [("post", "link", "Link", of::<LinkedAnswer>()), ("delete", "unlink", "Unlink", of::<UnlinkedAnswer>())]
    {
        let operation = described
            .operation(&format!("{verb}.{key}"), format!("{what} records of {related} by {key}"))
            .describe(format!(
                "Changes the links between a record of `{name}` and records of `{related}`. Links that are already as requested \
                    do not change."
            ))
            .parameter(id_parameter())
            .json_body(described.ids())
            .problems(&[409])
            .answers_data(200, "The number of links that changed.", answer);
        paths.add(method, path.clone(), operation);
    }
}
