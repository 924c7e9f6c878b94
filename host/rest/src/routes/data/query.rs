//! `POST /api/v1/data/:object/query`: the list with its parameters in a JSON body. It only reads.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{ListRequest, run_offloaded};
use serde_json::Value;

use super::described::Described;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::operation::Paths;
use crate::request::admission::{Granted, Read, Records};
use crate::request::body::JsonText;
use crate::request::extract::{NoParameters, PathParts};

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts(object): PathParts<String>,
    _: NoParameters,
    JsonText(parameters): JsonText,
) -> Result<Response, ApiError> {
    let request = run_offloaded(parameters.len(), || ListRequest::from_json(&parameters))?;
    let answer = state.app.list(&caller, &object, request).await?;
    Ok(render::json_bytes(StatusCode::OK, answer.json()))
}

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>, body: Value, page: Value) {
    let Described { object, base, .. } = described;
    let name = object.name();
    let query = described
        .operation("query", format!("List records of {name} with parameters in a body"))
        .describe("The same list with its parameters in a JSON body, for conditions that are too long for a URL. It only reads.")
        .only_reads()
        .json_body(body)
        .answers(200, "A page of records.", page);
    paths.add("post", format!("{base}/query"), query);
}
