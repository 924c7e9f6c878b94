//! `/api/v1/objects/:name/fields`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::ChangePlan;
use blockbase_app::schema::Field;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::openapi::answers::of;
use crate::openapi::components::schema;
use crate::openapi::operation::{Paths, path_parameter};
use crate::request::admission::{Delete, Granted, Objects, Update};
use crate::request::body::{JsonMembers, JsonText};
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::schema::change::{self, PLANNED, dry_run, operation, or_plan};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/v1/objects/{name}/fields", add)
        .patch("/api/v1/objects/{name}/fields/{field}", alter)
        .delete("/api/v1/objects/{name}/fields/{field}", drop)
}

pub(crate) async fn add(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::answered(StatusCode::CREATED, &state.app.add_field(&caller, &object, &text, mode).await?))
}

pub(crate) async fn alter(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts((object, field)): PathParts<(String, String)>,
    query: QueryPairs,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::answered(StatusCode::OK, &state.app.alter_field(&caller, &object, &field, changes, mode).await?))
}

pub(crate) async fn drop(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts((object, field)): PathParts<(String, String)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::dropped(&state.app.drop_field(&caller, &object, &field, mode).await?))
}

pub(crate) fn describe(paths: &mut Paths) {
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
