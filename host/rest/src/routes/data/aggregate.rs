//! `GET /api/v1/data/:object/aggregate`: computes functions over the records that the list with the same filters counts, all together
//! or in groups.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{AggregateFunction, AggregateRequest, PaginationAnswer};
use serde_json::json;

use super::described::Described;
use super::filters_document;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::{Components, exact_object, list_of};
use crate::openapi::operation::Paths;
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

pub(super) fn describe(paths: &mut Paths, components: &mut Components, described: &Described<'_>) {
    let Described { object, type_name, base, .. } = described;
    let name = object.name();
    let aggregate = exact_object(json!({
        "fn": { "type": "string", "enum": AggregateFunction::names() },
        "field": { "type": ["string", "null"] },
        "value": { "type": ["number", "null"], "description": "Null if no record has a value." },
        "filteredCount": { "type": "integer", "format": "int64", "minimum": 0 },
    }));
    let group = json!({
        "type": "object",
        "properties": {
            "group": { "type": "object", "description": "The values of the fields, by the keys of `groupBy`." },
        },
        "required": ["group"],
        "additionalProperties": { "type": ["number", "null"] },
    });
    let groups = exact_object(json!({ "data": list_of(group), "pagination": of::<PaginationAnswer>() }));
    let aggregate = json!({ "oneOf": [exact_object(json!({ "data": aggregate })), groups] });
    let aggregate = described
        .operation("aggregate", format!("Compute over records of {name}"))
        .describe(
            "Computes one function over the records that a list with the same search, filters and condition counts. With `groupBy` or \
            several functions it computes them for each group of these records.",
        )
        .parameters(filters_document::of_aggregate(components, object, type_name))
        .answers(200, "The value, or a page of groups.", aggregate);
    paths.add("get", format!("{base}/aggregate"), aggregate);
}
