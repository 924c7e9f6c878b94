//! `/api/v1/tasks`.

pub(crate) mod document;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{ActionConfig, ErasureConfig, NewTask, TASK_NAME_CHARS_MAX, TASK_TYPES_MADE, TaskChanges};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Create, Delete, Granted, Read, Tasks, Update};
use crate::request::body::{JsonBody, given};
use crate::request::extract::{PathParts, QueryPairs};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/tasks", list)
        .post("/api/v1/tasks", create)
        .get("/api/v1/tasks/{id}", get)
        .patch("/api/v1/tasks/{id}", update)
        .delete("/api/v1/tasks/{id}", delete)
        .post("/api/v1/tasks/{id}/adopt", adopt)
        .post("/api/v1/tasks/{id}/run", run)
        .get("/api/v1/tasks/{id}/runs", runs)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBody {
    #[schemars(length(max = TASK_NAME_CHARS_MAX), extend("pattern" = "^[a-z][a-z0-9_\\-]*$"))]
    name: String,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = TASK_TYPES_MADE))]
    kind: String,
    #[schemars(extend("examples" = ["0 3 * * *"]))]
    schedule: String,
    #[schemars(schema_with = "config_of_new")]
    config: Value,
    enabled: Option<bool>,
}

/// The configurations of the task types that can be created.
fn config_of_new(generator: &mut SchemaGenerator) -> Schema {
    let (call, erasure) = (ActionConfig::json_schema(generator), ErasureConfig::json_schema(generator));
    json_schema!({ "anyOf": [call, erasure] })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool")]
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    schedule: Option<String>,
    /// The whole configuration, for example `{ maxAgeDays }` of `anonymous_cleanup`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value")]
    config: Option<Value>,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_tasks(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Create)>,
    JsonBody(body): JsonBody<NewBody>,
) -> Result<Response, ApiError> {
    let NewBody { name, kind, schedule, config, enabled } = body;
    let new = NewTask { name, kind, schedule, config, enabled: enabled.unwrap_or(true) };
    Ok(render::data(StatusCode::CREATED, &state.app.create_task(&caller, new).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.task(&caller, &id).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<ChangesBody>,
) -> Result<Response, ApiError> {
    let changes = TaskChanges { enabled: body.enabled, schedule: body.schedule, config: body.config };
    Ok(render::data(StatusCode::OK, &state.app.update_task(&caller, &id, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Delete)>,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_task(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn run(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.run_task(&caller, &id).await?))
}

pub(crate) async fn runs(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Read)>,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let paging = query.page_beside(&[])?;
    Ok(render::json_bytes(StatusCode::OK, state.app.task_runs(&caller, &id, paging).await?.into_bytes()))
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_task(&caller, &id).await?))
}
