//! `/api/v1/objects` and `/api/v1/schema`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::{Code, Error, ObjectDefinition, json, time};
use serde_json::value::RawValue;

use crate::AppState;
use crate::admission::{Create, Delete, Granted, Objects, Read, Update};
use crate::body::{JsonMembers, JsonText};
use crate::error::ApiError;
use crate::extract::{PathParts, QueryPairs};
use crate::render;

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.objects(&caller)?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Create)>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let definition = json::strict_from_str::<ObjectDefinition>(&text).map_err(|misfit| {
        // JSON that is not JSON is a bad request; JSON that is no definition is an invalid schema.
        let code = if misfit.error.is_data() { Code::InvalidSchema } else { Code::InvalidRequest };
        Error::new(code, format!("The body is not an object definition: {misfit}."))
    })?;
    Ok(render::data(StatusCode::CREATED, &state.app.create_object(&caller, definition).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
    PathParts(name): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.object(&caller, &name)?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Update)>,
    PathParts(name): PathParts<String>,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.update_object(&caller, &name, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
) -> Result<StatusCode, ApiError> {
    state.app.delete_object(&caller, &name, query.flag("cascade")?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One document of the live schema.
pub(crate) async fn schema(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.schema(&caller)?))
}

/// An entry of the history. The change stays text, so that its numbers keep their digits.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct SchemaChange {
    version: i64,
    change: Box<RawValue>,
    applied_by: Option<String>,
    applied_at: String,
}

pub(crate) async fn migrations(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    let changes = state.app.schema_changes(&caller).await?.into_iter().map(|row| {
        Ok(SchemaChange {
            version: row.version,
            change: RawValue::from_string(row.change).map_err(Error::internal)?,
            applied_by: row.applied_by,
            applied_at: time::format_datetime(row.applied_at),
        })
    });
    let changes: Vec<SchemaChange> = changes.collect::<Result<_, Error>>()?;
    Ok(render::data(StatusCode::OK, &changes))
}
