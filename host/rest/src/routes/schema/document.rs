//! The paths under which objects, fields and relationships are defined.

use blockbase_app::schema::{Field, ObjectDefinition, Relationship, RelationshipDefinition, Resource};
use blockbase_app::{ChangePlan, OBJECT_MEMBERS_FIXED, SchemaDocument, SchemaHistoryAnswer};
use serde_json::{Value, json};

use crate::openapi::answers::of;
use crate::openapi::bodies::{body_of, changes_of};
use crate::openapi::components::{list_of, schema};
use crate::openapi::operation::{Operation, Paths, path_parameter, query_parameter};
use crate::routes::schema::objects::{CHANGES_MAX, DependentsAnswer};

pub(crate) fn schemas() -> Value {
    json!({
        "SvcFieldInput": body_of::<Field>(),
        "SvcFieldChanges": changes_of::<Field>(&[]),
        "SvcObjectInput": body_of::<ObjectDefinition>(),
        "SvcObjectChanges": changes_of::<ObjectDefinition>(&OBJECT_MEMBERS_FIXED),
        "SvcRelationshipInput": body_of::<RelationshipDefinition>(),
    })
}

fn dry_run() -> Value {
    query_parameter(
        "dryRun",
        "If true, the response shows what the change would do, and nothing changes. If the plan has to look at rows, it needs \
            read on the whole object.",
        json!({ "type": "boolean", "default": false }),
    )
}

/// The thing after the change, or the plan of the change.
fn or_plan(thing: Value) -> Value {
    json!({ "anyOf": [thing, of::<ChangePlan>()] })
}

const PLANNED: &str = "With `dryRun`: what the change would do.";

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Objects, "schema", verb, summary)
}

pub(crate) fn describe(paths: &mut Paths) {
    objects(paths);
    fields(paths);
    relationships(paths);
    let get = operation("get", "Get the whole schema").answers_data(200, "The schema at one version.", of::<SchemaDocument>());
    paths.add("get", "/api/v1/schema", get);
    let migrations = operation("listMigrations", "List the schema's changes, newest first")
        .parameters([
            query_parameter("object", "Only changes that touched this object.", json!({ "type": "string" })),
            query_parameter(
                "before",
                "Only versions below this one.",
                json!({ "type": "integer", "format": "int64", "minimum": 1 }),
            ),
            query_parameter(
                "limit",
                &format!(
                    "The maximum number of changes. Without it the response has all changes. With it the response never has more \
                        than {CHANGES_MAX}."
                ),
                json!({ "type": "integer", "format": "int64", "minimum": 1 }),
            ),
        ])
        .problems(&[400]);
    paths.add(
        "get",
        "/api/v1/schema/migrations",
        migrations.answers_data(200, "The changes.", list_of(of::<SchemaHistoryAnswer>())),
    );
}

fn objects(paths: &mut Paths) {
    let object = || path_parameter("name", "The object's name.", json!({ "type": "string" }));
    let base = "/api/v1/objects";
    paths.add(
        "get",
        base,
        operation("listObjects", "List all objects").answers_data(200, "The objects.", list_of(of::<ObjectDefinition>())),
    );
    let create = operation("createObject", "Create an object, usable at once")
        .parameter(dry_run())
        .json_body(schema("SvcObjectInput"))
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .problems(&[409])
        .answers_data(201, "The new object.", of::<ObjectDefinition>());
    paths.add("post", base, create);
    let base = "/api/v1/objects/{name}";
    let get = operation("getObject", "Get an object").parameter(object()).problems(&[400, 404]).answers_data(
        200,
        "The object.",
        of::<ObjectDefinition>(),
    );
    paths.add("get", base, get);
    let update = operation("updateObject", "Change an object's label, description, constraints and indexes")
        .parameters([object(), dry_run()])
        .json_body(schema("SvcObjectChanges"))
        .problems(&[404])
        .answers_data(
            200,
            "The object as it is now, or with `dryRun` what the change would do.",
            or_plan(of::<ObjectDefinition>()),
        );
    paths.add("patch", base, update);
    let cascade = query_parameter(
        "cascade",
        "Whether to also delete the relationships of other objects that need this one.",
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
        "Only dependents of this field, or of the column of a relationship, such as `owner_id`.",
        json!({ "type": "string" }),
    );
    let dependents = operation("listDependents", "List what depends on an object, or on a field of it")
        .describe(
            "Needs read on `objects`. The list has only dependents that the caller may read: roles need read on `roles`, \
                webhooks on `webhooks`, subscriptions on `events`, blocks on `blocks`, and tasks on `tasks`. The others are \
                counted. Dependents that name no object, such as a role with `*`, are left out.",
        )
        .parameters([object(), field])
        .problems(&[400, 404])
        .answers(200, "The dependents.", of::<DependentsAnswer>());
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
        .answers_data(201, "The new field.", of::<Field>());
    paths.add("post", "/api/v1/objects/{name}/fields", add);
    let base = "/api/v1/objects/{name}/fields/{field}";
    let alter = operation("alterField", "Change a field, or rename it by its name")
        .describe(
            "Needs update on `objects`. If the object has records, a type can only widen: integer to big_integer to \
            decimal, integer to float, any single value to text. Without records it can become any type.",
        )
        .parameters([object(), field(), dry_run()])
        .json_body(schema("SvcFieldChanges"))
        .problems(&[404])
        .answers_data(200, "The field as it is now, or with `dryRun` what the change would do.", or_plan(of::<Field>()));
    paths.add("patch", base, alter);
    let drop = operation("dropField", "Drop a field with its values")
        .parameters([object(), field(), dry_run()])
        .problems(&[400, 404])
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_nothing(204, "The field is dropped.");
    paths.add("delete", base, drop);
}

fn relationships(paths: &mut Paths) {
    let base = "/api/v1/relationships";
    let all = operation("listRelationships", "List all relationships");
    paths.add("get", base, all.answers_data(200, "The relationships.", list_of(of::<Relationship>())));
    let create = operation("createRelationship", "Relate two objects")
        .parameter(dry_run())
        .json_body(schema("SvcRelationshipInput"))
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_data(201, "The new relationship.", of::<Relationship>());
    paths.add("post", base, create);
    let id = path_parameter("id", "The relationship's number.", json!({ "type": "integer", "format": "int64" }));
    let delete = operation("deleteRelationship", "Delete a relationship with its column or links")
        .parameters([id, dry_run()])
        .problems(&[400, 404])
        .answers_data(200, PLANNED, of::<ChangePlan>())
        .answers_nothing(204, "The relationship is deleted.");
    paths.add("delete", "/api/v1/relationships/{id}", delete);
}
