//! `GET /api/v1/data/:object/aggregate`: one function over what the list with the same filters counts.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::AggregateRequest;

use crate::AppState;
use crate::admission::{Granted, Read, Records};
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::render;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let request = AggregateRequest::from_parameters(query.iter())?;
    Ok(render::data_bytes(StatusCode::OK, &state.app.aggregate(&caller, &object, request).await?))
}
