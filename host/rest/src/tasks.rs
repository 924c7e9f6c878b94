//! `/api/v1/tasks`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{NewTask, TaskChanges};
use serde::Deserialize;
use serde_json::Value;

use crate::AppState;
use crate::body::JsonBody;
use crate::error::ApiError;
use crate::extract::{Authenticated, PathParts, QueryPairs};
use crate::render;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBody {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    schedule: String,
    config: Value,
    enabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesBody {
    enabled: Option<bool>,
    schedule: Option<String>,
    config: Option<Value>,
}

pub(crate) async fn list(State(state): State<AppState>, Authenticated(caller): Authenticated) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_tasks(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    JsonBody(body): JsonBody<NewBody>,
) -> Result<Response, ApiError> {
    let NewBody { name, kind, schedule, config, enabled } = body;
    let new = NewTask { name, kind, schedule, config, enabled: enabled.unwrap_or(true) };
    Ok(render::data(StatusCode::CREATED, &state.app.create_task(&caller, new).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.task(&caller, &id).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<ChangesBody>,
) -> Result<Response, ApiError> {
    let changes = TaskChanges { enabled: body.enabled, schedule: body.schedule, config: body.config };
    Ok(render::data(StatusCode::OK, &state.app.update_task(&caller, &id, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_task(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn run(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.run_task(&caller, &id).await?))
}

pub(crate) async fn runs(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let (_, paging) = query.page(false)?;
    Ok(render::json_bytes(StatusCode::OK, state.app.task_runs(&caller, &id, paging).await?.into_bytes()))
}
