//! `/api/v1/roles`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::json::FromObject;
use blockbase_app::{Grant, RoleChanges};
use serde::Deserialize;

use crate::AppState;
use crate::body::{JsonBody, present};
use crate::error::ApiError;
use crate::extract::{Authenticated, PathParts};
use crate::render;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleBody {
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    description: Option<Option<String>>,
    permissions: Option<Vec<FromObject<Grant>>>,
}

impl From<RoleBody> for RoleChanges {
    fn from(body: RoleBody) -> Self {
        let permissions = body.permissions.map(|grants| grants.into_iter().map(|FromObject(grant)| grant).collect());
        RoleChanges { name: body.name, description: body.description, permissions }
    }
}

pub(crate) async fn list(State(state): State<AppState>, Authenticated(caller): Authenticated) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_roles(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::CREATED, &state.app.create_role(&caller, body.into()).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.role(&caller, &id).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.update_role(&caller, &id, body.into()).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_role(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
