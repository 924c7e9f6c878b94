//! `/api/v1/objects` and `/api/v1/schema`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::json::strict_from_str;
use blockbase_app::schema::{Code, Error, ObjectDefinition};
use blockbase_app::{ChangePlan, Dependent, HistoryRequest, SchemaDocument, SchemaHistoryAnswer};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::{self, list_of};
use crate::openapi::operation::{Paths, path_parameter, query_parameter};
use crate::request::admission::{Create, Delete, Granted, Objects, Read, Update};
use crate::request::body::{JsonMembers, JsonText};
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::schema::change::{self, PLANNED, dry_run, operation, or_plan};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/objects", list)
        .post("/api/v1/objects", create)
        .get("/api/v1/objects/{name}", get)
        .patch("/api/v1/objects/{name}", update)
        .delete("/api/v1/objects/{name}", delete)
        .get("/api/v1/objects/{name}/dependents", dependents)
        .get("/api/v1/schema", schema)
        .get("/api/v1/schema/migrations", migrations)
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct DependentsAnswer {
    data: Vec<Dependent>,
    /// The number of dependents that the caller may not read.
    hidden: usize,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.objects(&caller)?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Create)>,
    query: QueryPairs,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    let definition = strict_from_str::<ObjectDefinition>(&text).map_err(|misfit| {
        // A body that is not JSON is an invalid request. JSON that is not a definition is an invalid schema.
        let code = if misfit.error.is_data() { Code::InvalidSchema } else { Code::InvalidRequest };
        Error::new(code, format!("The body is not an object definition: {misfit}."))
    })?;
    Ok(change::answered(StatusCode::CREATED, &state.app.create_object(&caller, definition, mode).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
    PathParts(name): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.object(&caller, &name)?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::answered(StatusCode::OK, &state.app.update_object(&caller, &name, changes, mode).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &["cascade"])?;
    Ok(change::dropped(&state.app.delete_object(&caller, &name, query.flag("cascade")?, mode).await?))
}

/// Lists the things that depend on an object, or with `field` on one of its columns.
pub(crate) async fn dependents(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["field"])?;
    let (dependents, hidden) = state.app.dependents(&caller, &name, query.get("field")).await?;
    Ok(render::json(StatusCode::OK, &DependentsAnswer { data: dependents, hidden }))
}

/// Shows the live schema as one document.
pub(crate) async fn schema(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.schema(&caller)?))
}

/// The maximum number of entries of the history in a response, if the request has a `limit`.
pub(crate) const CHANGES_MAX: i64 = 1000;

pub(crate) async fn migrations(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["object", "before", "limit"])?;
    let number = |name: &str| match query.get(name).map(|text| (text, text.parse::<i64>())) {
        None => Ok(None),
        Some((_, Ok(number))) if number >= 1 => Ok(Some(number)),
        Some((text, _)) => Err(Error::invalid_request(format!("`{name}` must be a whole number of at least 1; it is {text:?}."))),
    };
    let object = query.get("object").map(str::to_owned);
    if object.as_ref().is_some_and(|name| name.contains('\0')) {
        return Err(Error::invalid_request("`object` contains a NUL character.").into());
    }
    let asked = HistoryRequest { object, before: number("before")?, limit: number("limit")?.map(|limit| limit.min(CHANGES_MAX)) };
    Ok(render::data(StatusCode::OK, &state.app.schema_changes(&caller, asked).await?))
}

pub(crate) fn describe(paths: &mut Paths) {
    let object = || path_parameter("name", "The object's name.", json!({ "type": "string" }));
    let base = "/api/v1/objects";
    paths.add(
        "get",
        base,
        operation("listObjects", "List all objects").answers_data(200, "The objects.", list_of(of::<ObjectDefinition>())),
    );
    let create = operation("createObject", "Create an object, usable at once")
        .parameter(dry_run())
        .json_body(components::schema("SvcObjectInput"))
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
        .json_body(components::schema("SvcObjectChanges"))
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

pub(crate) fn describe_schema(paths: &mut Paths) {
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
