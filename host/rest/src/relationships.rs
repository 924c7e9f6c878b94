//! `/api/v1/relationships`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::admission::{Create, Delete, Granted, Objects, Read};
use crate::body::JsonText;
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::{render, schema_change};

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
    let mode = schema_change::mode(&query, &[])?;
    Ok(schema_change::answered(StatusCode::CREATED, &state.app.create_relationship(&caller, &text, mode).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let mode = schema_change::mode(&query, &[])?;
    Ok(schema_change::dropped(&state.app.delete_relationship(&caller, &id, mode).await?))
}
