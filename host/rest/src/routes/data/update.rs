//! `PATCH /api/v1/data/:object/:id`: changes the columns that the body names, also by atomic operators. With `If-Match` it
//! changes the record only in the state that the header names.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;

use super::expansion;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, OneRecord, Update};
use crate::request::body::JsonMembers;
use crate::request::extract::{PathParts, QueryPairs};
use crate::request::precondition::IfMatch;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<OneRecord<Update>>,
    PathParts((object, id)): PathParts<(String, String)>,
    query: QueryPairs,
    IfMatch(condition): IfMatch,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    let expand = expansion::of_write(&state, &caller, &object, &query).await?;
    let Some(updated) = state.app.update(&caller, &object, &id, changes, condition).await? else {
        return Err(Error::not_found("record").into());
    };
    let record = state.app.with_related(&caller, &object, updated, &expand).await;
    let warnings = state.app.warnings_of_expand(&caller, &object, &expand);
    Ok(render::record(StatusCode::OK, &record, &warnings, &state.app))
}
