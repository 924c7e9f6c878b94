//! `/api/v1/objects/:name/fields`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::request::admission::{Delete, Granted, Objects, Update};
use crate::request::body::{JsonMembers, JsonText};
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::schema::change;
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
