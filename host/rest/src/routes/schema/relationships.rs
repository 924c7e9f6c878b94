//! `/api/v1/relationships`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Create, Delete, Granted, Objects, Read};
use crate::request::body::JsonText;
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::schema::change;
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
