//! `POST`, `PATCH` and `DELETE /api/v1/data/:object/bulk`: many records, all or none.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::run_sized;
use blockbase_app::schema::Error;
use blockbase_app::schema::json::{Members, parse_list, parse_object};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Create, Delete, Granted, Records, Update};
use crate::request::body::{Ids, JsonText};
use crate::request::extract::{PathParts, QueryPairs};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BulkBody<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

/// `{ "data": [record] }` → 201 `{ count, ids }`.
pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Create>>,
    PathParts(object): PathParts<String>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let records = run_sized(text.len(), || {
        let records: BulkBody<'_> = parse_object(&text)?;
        parse_list::<Members>(records.data.get(), state.app.settings().bulk_records_max)
    })?;
    drop(text);
    let created = state.app.create_many(&caller, &object, records).await?;
    Ok(render::json_bytes(StatusCode::CREATED, created.json().into_bytes()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeBody<'a> {
    #[serde(borrow)]
    ids: &'a RawValue,
    values: Members,
}

/// `{ "ids": [uuid], "values": record }` → 200 `{ count, ids }` of those that were changed; with `?dryRun=true` of those that would
/// be.
pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Update>>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let is_dry = query.flag("dryRun")?;
    let (ids, values) = run_sized(text.len(), || {
        let ChangeBody { ids, values } = parse_object(&text)?;
        let ids: Vec<String> = parse_list(ids.get(), state.app.settings().bulk_records_max)?;
        Ok::<_, Error>((ids, values))
    })?;
    drop(text);
    let changed = match is_dry {
        true => state.app.update_many_dry(&caller, &object, &ids, &values).await?,
        false => state.app.update_many(&caller, &object, &ids, &values).await?,
    };
    Ok(render::json_bytes(StatusCode::OK, changed.json().into_bytes()))
}

/// `{ "ids": [uuid] }` → 200 `{ count, ids }` of those that were deleted; with `?dryRun=true` of those that would be.
pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Delete>>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    Ids(ids): Ids,
) -> Result<Response, ApiError> {
    let deleted = match query.flag("dryRun")? {
        true => state.app.delete_many_dry(&caller, &object, &ids).await?,
        false => state.app.delete_many(&caller, &object, &ids).await?,
    };
    Ok(render::json_bytes(StatusCode::OK, deleted.json().into_bytes()))
}
