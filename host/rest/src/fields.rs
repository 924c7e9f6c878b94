//! `/api/v1/objects/:name/fields`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::admission::{Delete, Granted, Objects, Update};
use crate::body::{JsonMembers, JsonText};
use crate::error::ApiError;
use crate::extract::PathParts;
use crate::render;

pub(crate) async fn add(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts(object): PathParts<String>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::CREATED, &state.app.add_field(&caller, &object, &text).await?))
}

pub(crate) async fn alter(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts((object, field)): PathParts<(String, String)>,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.alter_field(&caller, &object, &field, changes).await?))
}

pub(crate) async fn drop(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts((object, field)): PathParts<(String, String)>,
) -> Result<StatusCode, ApiError> {
    state.app.drop_field(&caller, &object, &field).await?;
    Ok(StatusCode::NO_CONTENT)
}
