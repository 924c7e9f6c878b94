//! `POST /api/v1/data/:object`: creates a record. With `?on_conflict=` it changes the existing record that the new one would
//! duplicate.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::expansion;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, NewRecord};
use crate::request::body::JsonMembers;
use crate::request::extract::{PathParts, QueryPairs};

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<NewRecord>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    JsonMembers(values): JsonMembers,
) -> Result<Response, ApiError> {
    let expand = expansion::of_write(&state, &caller, &object, &query).await?;
    let warnings = state.app.warnings_of_expand(&caller, &object, &expand);
    let Some(target) = query.get("on_conflict") else {
        let created = state.app.create(&caller, &object, values).await?;
        let record = state.app.with_related(&caller, &object, created, &expand).await;
        return Ok(render::record(StatusCode::CREATED, &record, &warnings, &state.app));
    };
    let target: Vec<String> = target.split(',').map(|name| name.trim().to_owned()).collect();
    let upserted = state.app.upsert(&caller, &object, values, &target).await?;
    let status = if upserted.created { StatusCode::CREATED } else { StatusCode::OK };
    let record = state.app.with_related(&caller, &object, upserted.record, &expand).await;
    Ok(render::upserted(status, &record, upserted.created, &warnings, &state.app))
}
