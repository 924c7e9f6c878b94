//! `GET /api/v1/data/:object`: search, filters, sort, page.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{CursorPaginationAnswer, ListRequest, PaginationAnswer};
use serde_json::{Value, json};

use super::described::Described;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::{exact_object, schema};
use crate::openapi::operation::Paths;
use crate::request::admission::{Granted, Read, Records};
use crate::request::extract::{PathParts, QueryPairs};

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let request = ListRequest::from_parameters(query.iter())?;
    let answer = state.app.list(&caller, &object, request).await?;
    Ok(render::json_bytes(StatusCode::OK, answer.json()))
}

/// A page of records, which the list with its parameters in a body answers too.
pub(super) fn page(described: &Described<'_>) -> Value {
    let Described { type_name, .. } = described;
    let mut page = exact_object(json!({
        "data": { "type": "array", "items": schema(&format!("{type_name}_Selected")) },
        "pagination": { "oneOf": [of::<PaginationAnswer>(), of::<CursorPaginationAnswer>()] },
    }));
    page["properties"]["warnings"] = schema("SvcWarnings");
    page
}

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>, parameters: Vec<Value>, page: Value) {
    let name = described.object.name();
    let list = described
        .operation("list", format!("List records of {name}"))
        .describe(
            "Lists records with search, filters, a condition, sorting and paging. Filters may be repeated. A record must match all \
            of them.",
        )
        .parameters(parameters)
        .answers(200, "A page of records.", page);
    paths.add("get", &described.base, list);
}
