//! Code that all changes of the schema share: `?dryRun=true`, and the response with a change or its plan, with their documents.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::Resource;
use blockbase_app::{Change, ChangePlan, SchemaMode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::operation::{Operation, query_parameter};
use crate::request::extract::QueryPairs;

/// Whether the change is made or planned. Any parameter except `dryRun` and those in `own` is refused, so that a misspelled
/// `dryRun` does not make the change.
pub(crate) fn mode(query: &QueryPairs, own: &[&str]) -> Result<SchemaMode, ApiError> {
    query.only(&[&["dryRun"], own].concat())?;
    Ok(if query.flag("dryRun")? { SchemaMode::Plan } else { SchemaMode::Apply })
}

/// The response with the thing that was made or changed, or with the plan.
pub(crate) fn answered<T: Serialize>(status: StatusCode, change: &Change<T>) -> Response {
    match change {
        Change::Applied(thing) => render::data(status, thing),
        Change::Planned(plan) => render::data(StatusCode::OK, plan),
    }
}

/// The empty response to a deletion, or the response with its plan.
pub(crate) fn dropped(change: &Change<()>) -> Response {
    match change {
        Change::Applied(()) => StatusCode::NO_CONTENT.into_response(),
        Change::Planned(plan) => render::data(StatusCode::OK, plan),
    }
}

pub(crate) fn dry_run() -> Value {
    query_parameter(
        "dryRun",
        "If true, the response shows what the change would do, and nothing changes. If the plan has to look at rows, it needs \
            read on the whole object.",
        json!({ "type": "boolean", "default": false }),
    )
}

/// The thing after the change, or the plan of the change.
pub(crate) fn or_plan(thing: Value) -> Value {
    json!({ "anyOf": [thing, of::<ChangePlan>()] })
}

pub(crate) const PLANNED: &str = "With `dryRun`: what the change would do.";

pub(crate) fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Objects, "schema", verb, summary)
}
