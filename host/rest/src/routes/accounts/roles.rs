//! `/api/v1/roles`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{Action, ExplainRequest, Grant, RoleChanges};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Create, Delete, Granted, Read, Roles, Update};
use crate::request::body::{JsonBody, given, present};
use crate::request::extract::PathParts;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/roles", list)
        .post("/api/v1/roles", create)
        .get("/api/v1/roles/{id}", get)
        .patch("/api/v1/roles/{id}", update)
        .delete("/api/v1/roles/{id}", delete)
        .get("/api/v1/roles/{id}/permissions", permissions)
        .post("/api/v1/roles/{id}/explain", explain)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", length(max = 64), extend("pattern" = "^[A-Za-z]([A-Za-z0-9_. \\-]*[A-Za-z0-9_.\\-])?$"))]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(max = 1000))]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<Grant>", length(max = 1000))]
    permissions: Option<Vec<Grant>>,
}

impl From<RoleBody> for RoleChanges {
    fn from(body: RoleBody) -> Self {
        RoleChanges { name: body.name, description: body.description, permissions: body.permissions }
    }
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_roles(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Create)>,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::CREATED, &state.app.create_role(&caller, body.into()).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.role(&caller, &id).await?))
}

pub(crate) async fn permissions(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.role_permissions(&caller, &id).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExplainBody {
    /// The id of a user. Conditions are explained with this user's values of the variables. Without a user the variables have no
    /// values.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    user_id: Option<String>,
    object: String,
    action: Action,
    /// The id of a record.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: Option<String>,
}

pub(crate) async fn explain(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
    PathParts(role): PathParts<String>,
    JsonBody(body): JsonBody<ExplainBody>,
) -> Result<Response, ApiError> {
    let ExplainBody { user_id, object, action, id } = body;
    let request = ExplainRequest { user_id, object, action, id };
    Ok(render::data(StatusCode::OK, &state.app.explain_role(&caller, &role, request).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.update_role(&caller, &id, body.into()).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Delete)>,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_role(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
