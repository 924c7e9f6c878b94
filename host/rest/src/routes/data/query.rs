//! `POST /api/v1/data/:object/query`: the list with its parameters in a JSON body. It only reads.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{ListRequest, run_offloaded};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, Read, Records};
use crate::request::body::JsonText;
use crate::request::extract::PathParts;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts(object): PathParts<String>,
    JsonText(parameters): JsonText,
) -> Result<Response, ApiError> {
    let request = run_offloaded(parameters.len(), || ListRequest::from_json(&parameters))?;
    let answer = state.app.list(&caller, &object, request).await?;
    Ok(render::json_bytes(StatusCode::OK, answer.json()))
}
