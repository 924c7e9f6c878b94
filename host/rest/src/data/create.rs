//! `POST /api/v1/data/:object`: a new record, or with `?on_conflict=` the one that it would duplicate changed.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::AppState;
use crate::admission::{Granted, NewRecord};
use crate::body::JsonMembers;
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::render;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<NewRecord>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    JsonMembers(values): JsonMembers,
) -> Result<Response, ApiError> {
    let Some(target) = query.get("on_conflict") else {
        return Ok(render::data_bytes(StatusCode::CREATED, &state.app.create(&caller, &object, values).await?));
    };
    let target: Vec<String> = target.split(',').map(|name| name.trim().to_owned()).collect();
    let upserted = state.app.upsert(&caller, &object, values, &target).await?;
    let status = if upserted.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut json = b"{\"data\":".to_vec();
    json.extend_from_slice(&upserted.json);
    json.extend_from_slice(format!(",\"created\":{}}}", upserted.created).as_bytes());
    Ok(render::json_bytes(status, json))
}
