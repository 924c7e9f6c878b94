//! `DELETE /api/v1/data/:object/:id`.

use axum::extract::State;
use axum::http::StatusCode;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::admission::{Delete, Granted, Records};
use crate::error::ApiError;
use crate::extract::PathParts;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Delete>>,
    PathParts((object, id)): PathParts<(String, String)>,
) -> Result<StatusCode, ApiError> {
    match state.app.delete(&caller, &object, &id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Error::not_found("record").into()),
    }
}
