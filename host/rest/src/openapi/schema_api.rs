//! The paths under which objects, fields and relationships are defined.

use blockbase_app::schema::{FieldType, Resource};
use blockbase_app::ChangePlan;
use serde_json::{Map, Value, json};

use super::answers::of;
use super::components::{exact_object, instant, members, schema};
use super::operation::{Operation, Paths, path_parameter, query_parameter};

fn name() -> Value {
    json!({ "type": "string", "pattern": "^[a-z][a-z0-9_]{0,47}$" })
}

fn groups() -> Value {
    json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } })
}

/// Keys of a field; bodies may hold null for those that answers leave out.
fn field_keys(in_body: bool) -> Value {
    let optional = |kind: &str| if in_body { json!([kind, "null"]) } else { json!(kind) };
    json!({
        "name": name(),
        "type": { "type": "string", "enum": FieldType::ALL.map(FieldType::name) },
        "label": { "type": optional("string") },
        "description": { "type": optional("string") },
        "required": { "type": "boolean", "description": "Whether each record needs a value." },
        "isUnique": { "type": "boolean", "description": "Whether no two records may have the same value." },
        "indexed": { "type": "boolean", "description": "Whether an index helps filters and sorting." },
        "default": { "description": "The value of records that are created without one." },
        "min": { "type": optional("number"), "description": "Least value of a number, least length of a text." },
        "max": { "type": optional("number"), "description": "Greatest value of a number, greatest length of a text." },
        "pattern": { "type": optional("string"), "description": "A regular expression of Rust's `regex` crate that matches somewhere in the text." },
        "options": { "type": optional("array"), "items": { "type": "string" }, "description": "The values of enum and multi_enum." },
        "scale": { "type": optional("integer"), "minimum": 0, "maximum": 12, "description": "Digits after the point of decimal, currency and percentage." },
    })
}

/// The same keys, each of which may be null: that takes it away.
fn changes(mut keys: Value) -> Value {
    for key in ["required", "isUnique", "indexed"] {
        keys[key]["type"] = json!(["boolean", "null"]);
    }
    members(&[], keys)
}

fn object_keys(in_body: bool) -> Map<String, Value> {
    let optional = if in_body { json!(["string", "null"]) } else { json!("string") };
    let field = schema(if in_body { "SvcFieldInput" } else { "SvcField" });
    let keys = json!({
        "name": name(),
        "label": { "type": optional },
        "description": { "type": optional },
        "fields": { "type": "array", "items": field },
        "constraints": schema("SvcConstraints"),
        "indexes": groups(),
    });
    keys.as_object().cloned().unwrap_or_default()
}

pub(super) fn schemas() -> Value {
    let kinds = json!({ "type": "string", "enum": ["many_to_one", "one_to_one", "one_to_many", "many_to_many"] });
    let on_delete = ["restrict", "cascade", "set_null"];
    let relationship = |more: Value, on_delete: Value| {
        let mut keys = json!({
            "name": name(), "kind": kinds, "source": { "type": "string" }, "target": { "type": "string" },
            "required": { "type": "boolean" }, "onDelete": on_delete,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            keys[key] = value.clone();
        }
        keys
    };
    let nullable = |value: Value| json!({ "anyOf": [value, { "type": "null" }] });
    json!({
        "SvcField": members(&["name", "type"], field_keys(false)),
        "SvcFieldInput": members(&["name", "type"], field_keys(true)),
        "SvcFieldChanges": changes(field_keys(true)),
        "SvcConstraints": members(&[], json!({ "uniqueTogether": groups() })),
        "SvcObject": members(&["name", "fields"], Value::Object(object_keys(false))),
        "SvcObjectInput": members(&["name"], Value::Object(object_keys(true))),
        "SvcObjectChanges": members(&[], json!({
            "label": { "type": ["string", "null"] },
            "description": { "type": ["string", "null"] },
            "constraints": nullable(schema("SvcConstraints")),
            "indexes": nullable(groups()),
        })),
        "SvcRelationship": members(
            &["id", "name", "kind", "source", "target", "required", "onDelete"],
            relationship(json!({ "id": { "type": "integer", "format": "int64" } }), json!({ "type": "string", "enum": on_delete })),
        ),
        "SvcRelationshipInput": members(
            &["name", "kind", "source", "target"],
            relationship(json!({}), json!({ "type": ["string", "null"], "enum": [on_delete[0], on_delete[1], on_delete[2], null] })),
        ),
        "SvcSchemaChange": { "description": "`op` and what it changed.", "oneOf": [
            change("create_object", json!({ "object": schema("SvcObject") })),
            change("update_object", json!({ "object": name(), "before": schema("SvcObject"), "after": schema("SvcObject") })),
            change("delete_object", json!({ "object": name(), "cascade": { "type": "boolean" } })),
            change("add_field", json!({ "object": name(), "field": schema("SvcField") })),
            change("alter_field", json!({
                "object": name(), "field": name(), "before": schema("SvcField"), "after": schema("SvcField"),
            })),
            change("drop_field", json!({ "object": name(), "field": schema("SvcField") })),
            change("create_relationship", json!({ "relationship": schema("SvcRelationship") })),
            change("delete_relationship", json!({ "relationship": schema("SvcRelationship") })),
        ] },
        "SvcMigration": exact_object(json!({
            "version": { "type": "integer", "format": "int64" },
            "change": schema("SvcSchemaChange"),
            "appliedBy": { "type": ["string", "null"] },
            "appliedAt": instant(),
        })),
    })
}

fn change(op: &str, mut about: Value) -> Value {
    about["op"] = json!({ "type": "string", "enum": [op] });
    exact_object(about)
}

fn hidden() -> Value {
    json!({ "type": "integer", "minimum": 0, "description": "How many dependents there are that the caller may not read." })
}

fn dry_run() -> Value {
    query_parameter(
        "dryRun",
        "Whether to only say what the change would do. Where rows have to be looked at, that needs read on the whole object.",
        json!({ "type": "boolean", "default": false }),
    )
}

/// What is there after the change, or its plan.
fn or_plan(thing: &str) -> Value {
    json!({ "anyOf": [schema(thing), of::<ChangePlan>()] })
}

const PLANNED: &str = "With `dryRun`: what the change would do.";

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Objects, "schema", verb, summary)
}

fn list(of: &str) -> Value {
    json!({ "type": "array", "items": schema(of) })
}

pub(super) fn describe(paths: &mut Paths) {
    objects(paths);
    fields(paths);
    relationships(paths);
    let whole = exact_object(json!({
        "version": { "type": "integer", "format": "int64" },
        "objects": list("SvcObject"),
        "relationships": list("SvcRelationship"),
    }));
    let get = operation("get", "Get the whole schema").answers_data(200, "The schema at one version.", whole);
    paths.add("get", "/api/v1/schema", get);
    let migrations = operation("listMigrations", "List the schema's changes, newest first")
        .parameters([
            query_parameter("object", "Only changes that touched this object.", json!({ "type": "string" })),
            query_parameter("before", "Only versions below this.", json!({ "type": "integer", "format": "int64", "minimum": 1 })),
            query_parameter(
                "limit",
                "Changes at most; all where it is left out, and never more than 1000 where it is given.",
                json!({ "type": "integer", "format": "int64", "minimum": 1 }),
            ),
        ])
        .problems(&[400]);
    paths.add("get", "/api/v1/schema/migrations", migrations.answers_data(200, "The changes.", list("SvcMigration")));
}

fn objects(paths: &mut Paths) {
    let object = || path_parameter("name", "The object's name.", json!({ "type": "string" }));
    let base = "/api/v1/objects";
    paths.add("get", base, operation("listObjects", "List all objects").answers_data(200, "The objects.", list("SvcObject")));
    let create = operation("createObject", "Create an object, usable at once")
        .parameter(dry_run())
        .json_body(schema("SvcObjectInput"))
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .problems(&[409])
        .answers_data(201, "The new object.", schema("SvcObject"));
    paths.add("post", base, create);
    let base = "/api/v1/objects/{name}";
    let get = operation("getObject", "Get an object").parameter(object()).problems(&[400, 404]).answers_data(
        200,
        "The object.",
        schema("SvcObject"),
    );
    paths.add("get", base, get);
    let update = operation("updateObject", "Change an object's label, description, constraints and indexes")
        .parameters([object(), dry_run()])
        .json_body(schema("SvcObjectChanges"))
        .problems(&[404])
        .answers_data(200, "The object as it is now, or with `dryRun` what the change would do.", or_plan("SvcObject"));
    paths.add("patch", base, update);
    let cascade = query_parameter(
        "cascade",
        "Whether relationships of other objects that need this one go with it.",
        json!({ "type": "boolean" }),
    );
    let delete = operation("deleteObject", "Delete an object with its records")
        .parameters([object(), cascade, dry_run()])
        .problems(&[400, 404, 409])
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_nothing(204, "The object is deleted.");
    paths.add("delete", base, delete);
    let field = query_parameter(
        "field",
        "Of this field alone, or of the column of a relationship, such as `owner_id`.",
        json!({ "type": "string" }),
    );
    let dependents = operation("listDependents", "List what depends on an object, or on a field of it")
        .describe(
            "Needs read on `objects`. Roles are listed for those who may read `roles`, webhooks for readers of `webhooks`, subscriptions of \
             `events`, blocks of `blocks`, tasks of `tasks`; the others are counted. What names no object, such as a role with `*`, is \
             left out.",
        )
        .parameters([object(), field])
        .problems(&[400, 404])
        .answers(200, "The dependents.", exact_object(json!({ "data": list("SvcDependent"), "hidden": hidden() })));
    paths.add("get", "/api/v1/objects/{name}/dependents", dependents);
}

fn fields(paths: &mut Paths) {
    let object = || path_parameter("name", "The object's name.", json!({ "type": "string" }));
    let field = || path_parameter("field", "The field's name.", json!({ "type": "string" }));
    let add = operation("addField", "Add a field to an object")
        .parameters([object(), dry_run()])
        .json_body(schema("SvcFieldInput"))
        .problems(&[404])
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_data(201, "The new field.", schema("SvcField"));
    paths.add("post", "/api/v1/objects/{name}/fields", add);
    let base = "/api/v1/objects/{name}/fields/{field}";
    let alter = operation("alterField", "Change a field, or rename it by its name")
        .describe("Needs update on `objects`. With records a type only widens: integer to big_integer to decimal, integer to float, any single value to text. Without records it may become any.")
        .parameters([object(), field(), dry_run()])
        .json_body(schema("SvcFieldChanges"))
        .problems(&[404])
        .answers_data(200, "The field as it is now, or with `dryRun` what the change would do.", or_plan("SvcField"));
    paths.add("patch", base, alter);
    let drop = operation("dropField", "Drop a field with its values")
        .parameters([object(), field(), dry_run()])
        .problems(&[400, 404])
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_nothing(204, "The field is gone.");
    paths.add("delete", base, drop);
}

fn relationships(paths: &mut Paths) {
    let base = "/api/v1/relationships";
    let all = operation("listRelationships", "List all relationships");
    paths.add("get", base, all.answers_data(200, "The relationships.", list("SvcRelationship")));
    let create = operation("createRelationship", "Relate two objects")
        .parameter(dry_run())
        .json_body(schema("SvcRelationshipInput"))
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_data(201, "The new relationship.", schema("SvcRelationship"));
    paths.add("post", base, create);
    let id = path_parameter("id", "The relationship's number.", json!({ "type": "integer", "format": "int64" }));
    let delete = operation("deleteRelationship", "Delete a relationship with its column or links")
        .parameters([id, dry_run()])
        .problems(&[400, 404])
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_nothing(204, "The relationship is deleted.");
    paths.add("delete", "/api/v1/relationships/{id}", delete);
}
