//! `GET /api/v1/data/:object/:id`, with related records by `?expand=`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::expand_paths;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::admission::{Granted, Read, Records};
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::render;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts((object, id)): PathParts<(String, String)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let expand = query.get("expand").map(expand_paths).transpose()?.unwrap_or_default();
    match state.app.get(&caller, &object, &id, &expand).await? {
        Some(record) => Ok(render::data_bytes(StatusCode::OK, &record)),
        None => Err(Error::not_found("record").into()),
    }
}
