//! `DELETE /api/v1/data/:object/:id`.

use axum::extract::State;
use axum::http::StatusCode;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::error::ApiError;
use crate::extract::{Authenticated, PathParts};

pub(crate) async fn handle(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts((object, id)): PathParts<(String, String)>,
) -> Result<StatusCode, ApiError> {
    match state.app.delete(&caller, &object, &id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Error::not_found("record").into()),
    }
}
