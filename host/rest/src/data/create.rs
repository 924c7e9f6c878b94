//! `POST /api/v1/data/:object`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::body::JsonMembers;
use crate::error::ApiError;
use crate::extract::{Authenticated, PathParts};
use crate::render;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(object): PathParts<String>,
    JsonMembers(values): JsonMembers,
) -> Result<Response, ApiError> {
    Ok(render::data_bytes(StatusCode::CREATED, &state.app.create(&caller, &object, values).await?))
}
