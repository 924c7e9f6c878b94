//! `GET /api/v1/data/:object/:id`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::error::ApiError;
use crate::extract::{Authenticated, PathParts};
use crate::render;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts((object, id)): PathParts<(String, String)>,
) -> Result<Response, ApiError> {
    match state.app.get(&caller, &object, &id).await? {
        Some(record) => Ok(render::data_bytes(StatusCode::OK, &record)),
        None => Err(Error::not_found("record").into()),
    }
}
