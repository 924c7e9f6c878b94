//! `GET /api/v1/data/:object/:id`, with related records by `?expand=`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;
use serde_json::json;

use super::described::{Described, id_parameter};
use super::expansion;
use super::filters_document;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::operation::{Paths, data_with_warnings, header_parameter};
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

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>) {
    let Described { object, base, .. } = described;
    let (name, path) = (object.name(), format!("{base}/{{id}}"));
    let known = "An `ETag` of this record. If the record is still in that state, the response is 304. With `expand` it is \
        always 200.";
    let known = header_parameter("If-None-Match", known, json!({ "type": "string" }));
    let get = described
        .operation("get", format!("Get a record of {name}"))
        .parameters([id_parameter(), filters_document::expand(&described.keys), known])
        .describe("With `expand` the response includes related records. The `ETag` covers the record alone.")
        .problems(&[304])
        .answers_tagged(200, "The record.", data_with_warnings(described.record()));
    paths.add("get", path, get);
}
