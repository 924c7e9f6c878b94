//! `/api/v1/objects` and `/api/v1/schema`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::{Code, Error, ObjectDefinition, json};
use blockbase_app::{Dependent, HistoryRequest};
use schemars::JsonSchema;
use serde::Serialize;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Create, Delete, Granted, Objects, Read, Update};
use crate::request::body::{JsonMembers, JsonText};
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::schema::change;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/objects", list)
        .post("/api/v1/objects", create)
        .get("/api/v1/objects/{name}", get)
        .patch("/api/v1/objects/{name}", update)
        .delete("/api/v1/objects/{name}", delete)
        .get("/api/v1/objects/{name}/dependents", dependents)
        .get("/api/v1/schema", schema)
        .get("/api/v1/schema/migrations", migrations)
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct DependentsAnswer {
    data: Vec<Dependent>,
    /// The number of dependents that the caller may not read.
    hidden: usize,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.objects(&caller)?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Create)>,
    query: QueryPairs,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    let definition = json::strict_from_str::<ObjectDefinition>(&text).map_err(|misfit| {
        // A body that is not JSON is an invalid request. JSON that is not a definition is an invalid schema.
        let code = if misfit.error.is_data() { Code::InvalidSchema } else { Code::InvalidRequest };
        Error::new(code, format!("The body is not an object definition: {misfit}."))
    })?;
    Ok(change::answered(StatusCode::CREATED, &state.app.create_object(&caller, definition, mode).await?))
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
    query: QueryPairs,
    JsonMembers(changes): JsonMembers,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &[])?;
    Ok(change::answered(StatusCode::OK, &state.app.update_object(&caller, &name, changes, mode).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Delete)>,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let mode = change::mode(&query, &["cascade"])?;
    Ok(change::dropped(&state.app.delete_object(&caller, &name, query.flag("cascade")?, mode).await?))
}

/// Lists the things that depend on an object, or with `field` on one of its columns.
pub(crate) async fn dependents(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
    PathParts(name): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["field"])?;
    let (dependents, hidden) = state.app.dependents(&caller, &name, query.get("field")).await?;
    Ok(render::json(StatusCode::OK, &DependentsAnswer { data: dependents, hidden }))
}

/// Shows the live schema as one document.
pub(crate) async fn schema(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.schema(&caller)?))
}

/// The maximum number of entries of the history in a response, if the request has a `limit`.
pub(crate) const CHANGES_MAX: i64 = 1000;

pub(crate) async fn migrations(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Objects, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["object", "before", "limit"])?;
    let number = |name: &str| match query.get(name).map(|text| (text, text.parse::<i64>())) {
        None => Ok(None),
        Some((_, Ok(number))) if number >= 1 => Ok(Some(number)),
        Some((text, _)) => Err(Error::invalid_request(format!("`{name}` must be a whole number of at least 1; it is {text:?}."))),
    };
    let object = query.get("object").map(str::to_owned);
    if object.as_ref().is_some_and(|name| name.contains('\0')) {
        return Err(Error::invalid_request("`object` contains a NUL character.").into());
    }
    let asked = HistoryRequest { object, before: number("before")?, limit: number("limit")?.map(|limit| limit.min(CHANGES_MAX)) };
    Ok(render::data(StatusCode::OK, &state.app.schema_changes(&caller, asked).await?))
}
