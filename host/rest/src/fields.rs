//! `/api/v1/objects/:name/fields`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::admission::{Delete, Granted, Objects, Update};
use crate::body::{JsonMembers, JsonText};
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::schema_change;

pub(crate) async fn add(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let mode = schema_change::mode(&query, &[])?;
    Ok(schema_change::answered(StatusCode::CREATED, &state.app.add_field(&caller, &object, &text, mode).await?))
}

pub(crate) async fn alter(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts((object, field)): PathParts<(String, String)>,
    query: QueryPairs,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    let mode = schema_change::mode(&query, &[])?;
    Ok(schema_change::answered(StatusCode::OK, &state.app.alter_field(&caller, &object, &field, changes, mode).await?))
}

pub(crate) async fn drop(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts((object, field)): PathParts<(String, String)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let mode = schema_change::mode(&query, &[])?;
    Ok(schema_change::dropped(&state.app.drop_field(&caller, &object, &field, mode).await?))
}
