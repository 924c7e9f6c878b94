//! What all changes of the schema have in common: `?dryRun=true`, and how a change or its plan is answered.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blockbase_app::{Change, SchemaMode};
use serde::Serialize;

use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::extract::QueryPairs;

/// Whether the change is made or planned. Any parameter but `dryRun` and those of the handler's own is refused: a change that was
/// meant as a plan must not be made because of a letter.
pub(crate) fn mode(query: &QueryPairs, own: &[&str]) -> Result<SchemaMode, ApiError> {
    query.only(&[&["dryRun"], own].concat())?;
    Ok(if query.flag("dryRun")? { SchemaMode::Plan } else { SchemaMode::Apply })
}

/// What was made or changed, or its plan.
pub(crate) fn answered<T: Serialize>(status: StatusCode, change: &Change<T>) -> Response {
    match change {
        Change::Applied(thing) => render::data(status, thing),
        Change::Planned(plan) => render::data(StatusCode::OK, plan),
    }
}

/// Nothing for what was dropped, or its plan.
pub(crate) fn dropped(change: &Change<()>) -> Response {
    match change {
        Change::Applied(()) => StatusCode::NO_CONTENT.into_response(),
        Change::Planned(plan) => render::data(StatusCode::OK, plan),
    }
}
