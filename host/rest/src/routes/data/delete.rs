//! `DELETE /api/v1/data/:object/:id`. With `If-Match` it deletes the record only in the state that the header names.

use axum::extract::State;
use axum::http::StatusCode;
use blockbase_app::schema::Error;

use super::described::{Described, id_parameter, if_match};
use crate::AppState;
use crate::answer::error::ApiError;
use crate::openapi::operation::Paths;
use crate::request::admission::{Delete, Granted, OneRecord};
use crate::request::extract::{NoParameters, PathParts};
use crate::request::precondition::IfMatch;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<OneRecord<Delete>>,
    PathParts((object, id)): PathParts<(String, String)>,
    _: NoParameters,
    IfMatch(condition): IfMatch,
) -> Result<StatusCode, ApiError> {
    match state.app.delete(&caller, &object, &id, condition).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Error::not_found("record").into()),
    }
}

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>) {
    let Described { object, base, .. } = described;
    let (name, path) = (object.name(), format!("{base}/{{id}}"));
    let delete = described
        .operation("delete", format!("Delete a record of {name}"))
        .describe(
            "Each relationship decides what happens to the records that refer to this one: they prevent the deletion, are \
            deleted too, or lose their reference.",
        )
        .parameters([id_parameter(), if_match()])
        .problems(&[409, 412])
        .answers_nothing(204, "The record is deleted.");
    paths.add("delete", path, delete);
}
