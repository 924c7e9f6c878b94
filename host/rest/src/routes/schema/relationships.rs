//! `/api/v1/relationships`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::ChangePlan;
use blockbase_app::schema::Relationship;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::{list_of, schema};
use crate::openapi::operation::{Paths, path_parameter};
use crate::request::admission::{Create, Delete, Granted, Objects, Read};
use crate::request::body::JsonText;
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::schema::change::{self, PLANNED, dry_run, operation};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/relationships", list)
        .post("/api/v1/relationships", create)
        .delete("/api/v1/relationships/{id}", delete)
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.relationships(&caller)?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Create)>,
    query: QueryPairs,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::answered(StatusCode::CREATED, &state.app.create_relationship(&caller, &text, mode).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::dropped(&state.app.delete_relationship(&caller, &id, mode).await?))
}

pub(crate) fn describe(paths: &mut Paths) {
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
