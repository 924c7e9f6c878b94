//! `DELETE /api/v1/data/:object/:id`. With `If-Match` it deletes the record only in the state that the header names.

use axum::extract::State;
use axum::http::StatusCode;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::request::admission::{Delete, Granted, OneRecord};
use crate::request::extract::PathParts;
use crate::request::precondition::IfMatch;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<OneRecord<Delete>>,
    PathParts((object, id)): PathParts<(String, String)>,
    IfMatch(condition): IfMatch,
) -> Result<StatusCode, ApiError> {
    match state.app.delete(&caller, &object, &id, condition).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Error::not_found("record").into()),
    }
}
