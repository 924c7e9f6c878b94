//! `PATCH /api/v1/data/:object/:id`: the columns that the body names, atomic operators among them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::admission::{Granted, Records, Update};
use crate::body::JsonMembers;
use crate::error::ApiError;
use crate::extract::PathParts;
use crate::render;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Update>>,
    PathParts((object, id)): PathParts<(String, String)>,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    match state.app.update(&caller, &object, &id, changes).await? {
        Some(record) => Ok(render::data_bytes(StatusCode::OK, &record)),
        None => Err(Error::not_found("record").into()),
    }
}
