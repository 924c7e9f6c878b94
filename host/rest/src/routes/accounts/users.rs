//! `/api/v1/users`, with the roles, sessions and password links of each.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error};
use blockbase_app::{NewUser, OnDeletion, ROLES_OF_USER_MAX, USER_NAME_CHARS_MAX, UserChanges, UserSearch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{AllUsers, Create, Delete, Granted, Read, Update, Users, UsersToRead};
use crate::request::body::{JsonBody, given};
use crate::request::extract::{Operator, PathParts, QueryPairs};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/users", list)
        .post("/api/v1/users", create)
        .get("/api/v1/users/{id}", get)
        .patch("/api/v1/users/{id}", update)
        .delete("/api/v1/users/{id}", delete)
        .get("/api/v1/users/{id}/sessions", sessions)
        .delete("/api/v1/users/{id}/sessions", end_sessions)
        .delete("/api/v1/users/{id}/sessions/{session}", end_session)
        .post("/api/v1/users/{id}/password-link", password_link)
        .post("/api/v1/users/{id}/roles", give_role)
        .delete("/api/v1/users/{id}/roles/{role}", take_role)
}

/// The routes that only the operator of the server has.
pub(crate) fn operator_routes() -> Routes {
    Routes::new().put("/api/v1/users/{id}/password", set_password)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUserBody {
    #[schemars(extend("format" = "email"))]
    email: String,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", length(max = USER_NAME_CHARS_MAX))]
    name: Option<String>,
    /// The ids or names of the roles that the user gets.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<String>", length(max = ROLES_OF_USER_MAX))]
    roles: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", length(max = USER_NAME_CHARS_MAX))]
    name: Option<String>,
    /// A ban ends the user's sessions. The user's API keys are invalid while the ban lasts.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool")]
    banned: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordBody {
    password: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RoleBody {
    /// The role's id, or its name.
    role_id: String,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<UsersToRead>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let (text, paging) = query.search_page_beside(&["role"])?;
    let role = query.get("role").filter(|role| !role.is_empty()).map(str::to_owned);
    if role.as_ref().is_some_and(|role| role.contains('\0')) {
        return Err(Error::invalid_request("`role` contains a NUL character.").into());
    }
    let search = UserSearch { text, role };
    Ok(render::json_bytes(StatusCode::OK, state.app.list_users(&caller, search, paging).await?.into_bytes()))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(AllUsers, Create)>,
    operator: Option<Extension<Operator>>,
    JsonBody(body): JsonBody<NewUserBody>,
) -> Result<Response, ApiError> {
    let NewUserBody { email, name, roles } = body;
    let new = NewUser {
        email,
        name: name.unwrap_or_default(),
        roles: roles.unwrap_or_default(),
        may_be_first: operator.is_some(),
        wants_link: operator.is_some(),
    };
    let made = state.app.invite_user(&caller, new).await?;
    Ok((StatusCode::CREATED, axum::Json(made)).into_response())
}

pub(crate) async fn password_link(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(AllUsers, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::CREATED, &state.app.make_password_link(&caller, &id).await?))
}

pub(crate) async fn set_password(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(AllUsers, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<PasswordBody>,
) -> Result<StatusCode, ApiError> {
    state.app.set_password(&caller, &id, body.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn sessions(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Users, Read)>,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let paging = query.page_beside(&[])?;
    Ok(render::json_bytes(StatusCode::OK, state.app.user_sessions(&caller, &id, paging).await?.into_bytes()))
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct EndedAnswer {
    #[schemars(with = "i64")]
    count: u64,
}

pub(crate) async fn end_sessions(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Users, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    let count = state.app.end_user_sessions(&caller, &id).await?;
    Ok(render::data(StatusCode::OK, &EndedAnswer { count }))
}

pub(crate) async fn end_session(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Users, Update)>,
    PathParts((id, session)): PathParts<(String, String)>,
) -> Result<StatusCode, ApiError> {
    state.app.end_user_session(&caller, &id, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<UsersToRead>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.user(&caller, &id).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Users, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<UserBody>,
) -> Result<Response, ApiError> {
    let changes = UserChanges { name: body.name, banned: body.banned };
    Ok(render::data(StatusCode::OK, &state.app.update_user(&caller, &id, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Users, Delete)>,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<StatusCode, ApiError> {
    query.only(&["handOverTo", "suspend"])?;
    let on_deletion = match (query.get("handOverTo"), query.flag("suspend")?) {
        (None, false) => OnDeletion::Refuse,
        (None, true) => OnDeletion::Suspend,
        (Some(heir), _) if heir.contains('\0') => {
            return Err(Error::invalid_request("`handOverTo` contains a NUL character.").into());
        }
        (Some(heir), false) => OnDeletion::HandOver(heir.to_owned()),
        (Some(_), true) => return Err(Error::invalid_request("Send `handOverTo` or `suspend`, not both.").into()),
    };
    let deleted = state.app.delete_user(&caller, &id, on_deletion).await;
    deleted.map_err(|error| match error.code {
        // In a deletion, this error can only come from an unknown user in `handOverTo`.
        Code::ForeignKeyViolation => error.with_field("handOverTo"),
        _ => error,
    })?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn give_role(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(AllUsers, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.give_role(&caller, &id, &body.role_id).await?))
}

pub(crate) async fn take_role(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(AllUsers, Update)>,
    PathParts((id, role)): PathParts<(String, String)>,
) -> Result<StatusCode, ApiError> {
    state.app.take_role(&caller, &id, &role).await?;
    Ok(StatusCode::NO_CONTENT)
}
