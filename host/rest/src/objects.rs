//! `/api/v1/objects` and `/api/v1/schema`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::json::FromObject;
use blockbase_app::schema::{Code, ObjectDefinition, time};
use serde_json::json;

use crate::AppState;
use crate::body::{JsonMembers, JsonText};
use crate::error::ApiError;
use crate::extract::{Authenticated, PathParts, QueryPairs};
use crate::render;

pub(crate) async fn list(State(state): State<AppState>, Authenticated(caller): Authenticated) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.objects(&caller)?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let FromObject(definition): FromObject<ObjectDefinition> = serde_json::from_str(&text).map_err(|error| {
        // JSON that is not JSON is a bad request; JSON that is no definition is an invalid schema.
        let code = if error.is_data() { Code::InvalidSchema } else { Code::InvalidRequest };
        blockbase_app::schema::Error::new(code, format!("The body is not an object definition: {error}."))
    })?;
    Ok(render::data(StatusCode::CREATED, &state.app.create_object(&caller, definition).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(name): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.object(&caller, &name)?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(name): PathParts<String>,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.update_object(&caller, &name, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
) -> Result<StatusCode, ApiError> {
    state.app.delete_object(&caller, &name, query.flag("cascade")?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One document of the live schema.
pub(crate) async fn schema(State(state): State<AppState>, Authenticated(caller): Authenticated) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.schema(&caller)?))
}

pub(crate) async fn migrations(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
) -> Result<Response, ApiError> {
    let changes: Vec<_> = state
        .app
        .schema_changes(&caller)
        .await?
        .into_iter()
        .map(|row| {
            let change: serde_json::Value = serde_json::from_str(&row.change).unwrap_or_default();
            json!({
                "version": row.version,
                "change": change,
                "appliedBy": row.applied_by,
                "appliedAt": time::format_datetime(row.applied_at),
            })
        })
        .collect();
    Ok(render::data(StatusCode::OK, &changes))
}
