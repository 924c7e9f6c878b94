//! `GET /api/v1/data/:object/:id`, with related records by `?expand=`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;

use super::expansion;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, Read, Records};
use crate::request::extract::{PathParts, QueryPairs};
use crate::request::precondition::IfNoneMatch;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts((object, id)): PathParts<(String, String)>,
    query: QueryPairs,
    known: IfNoneMatch,
) -> Result<Response, ApiError> {
    let expand = expansion::of_read(&query)?;
    let record = state.app.get(&caller, &object, &id, &expand).await?.ok_or_else(|| Error::not_found("record"))?;
    // The ETag is that of the record alone. It does not depend on related records.
    match expand.is_empty() {
        true => Ok(render::record_unless_known(&record, |etag| known.names(etag), &state.app)),
        false => {
            let warnings = state.app.warnings_of_expand(&caller, &object, &expand);
            Ok(render::record(StatusCode::OK, &record, &warnings, &state.app))
        }
    }
}
