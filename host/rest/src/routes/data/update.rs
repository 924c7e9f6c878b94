//! `PATCH /api/v1/data/:object/:id`: changes the columns that the body names, also by atomic operators. With `If-Match` it
//! changes the record only in the state that the header names.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;

use super::described::{Described, id_parameter, if_match};
use super::expansion;
use super::filters_document;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::operation::{Paths, data_with_warnings};
use crate::request::admission::{Granted, OneRecord, Update};
use crate::request::body::JsonMembers;
use crate::request::extract::{OnlyParameters, Parameters, PathParts};
use crate::request::precondition::IfMatch;

/// The parameters of a change of a record.
pub(crate) struct OfUpdate;

impl Parameters for OfUpdate {
    const NAMES: &'static [&'static str] = &["expand"];
}

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<OneRecord<Update>>,
    PathParts((object, id)): PathParts<(String, String)>,
    OnlyParameters(query, ..): OnlyParameters<OfUpdate>,
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

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>) {
    let Described { object, base, .. } = described;
    let (name, path) = (object.name(), format!("{base}/{{id}}"));
    let update = described
        .operation("update", format!("Change a record of {name}"))
        .describe("Changes the fields that the body names. A number can also be changed by an amount, atomically.")
        .parameters([id_parameter(), filters_document::expand(&described.keys), if_match()])
        .json_body(described.updates())
        .problems(&[409, 412])
        .answers_tagged(200, "The record as it is now.", data_with_warnings(described.record()));
    paths.add("patch", path, update);
}
