//! `GET /api/v1/data/:object`: search, filters, sort, page.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::ListRequest;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, Read, Records};
use crate::request::extract::{PathParts, QueryPairs};

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let request = ListRequest::from_parameters(query.iter())?;
    let answer = state.app.list(&caller, &object, request).await?;
    Ok(render::json_bytes(StatusCode::OK, answer.json()))
}
