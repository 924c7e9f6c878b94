//! `GET /api/v1/data/:object/aggregate`: computes functions over the records that the list with the same filters counts, all together
//! or in groups.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::AggregateRequest;

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
    let request = AggregateRequest::from_parameters(query.iter())?;
    Ok(render::json_bytes(StatusCode::OK, state.app.aggregate(&caller, &object, request).await?.json()))
}
