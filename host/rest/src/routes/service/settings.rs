//! `GET /api/v1/settings` and `GET /api/v1/status`: the settings and the state of the server.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, Read, Settings};

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Settings, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.listed_settings(&caller)?))
}

pub(crate) async fn status(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Settings, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.status(&caller).await?))
}
