//! `/api/v1/users`, with the roles, sessions and password links of each.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error, Resource};
use blockbase_app::{
    InvitationAnswer, NewUser, OnDeletion, PasswordLinkAnswer, ROLES_OF_USER_MAX, SESSIONS_OF_USER_MAX, SeenUserAnswer,
    USER_NAME_CHARS_MAX, UserChanges, UserSearch, UserSessionAnswer,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Operation, Paths, path_parameter, query_parameter};
use crate::request::admission::{AllUsers, Create, Delete, Granted, Read, Update, Users, UsersToRead};
use crate::request::body::{JsonBody, given};
use crate::request::extract::{Operator, PathParts, QueryPairs, languages};
use crate::routes::data::filters_document::paging_parameters;
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
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewUserBody>,
) -> Result<Response, ApiError> {
    let NewUserBody { email, name, roles } = body;
    let new = NewUser {
        email,
        name,
        roles: roles.unwrap_or_default(),
        may_be_first: operator.is_some(),
        wants_link: operator.is_some(),
        languages: languages(&headers),
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

pub(crate) fn describe(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::Users, "users", verb, summary);
    let user = || path_parameter("id", "The user's id.", json!({ "type": "string" }));
    let search = query_parameter(
        "search",
        "Only users whose address or name contains this text. Case is ignored.",
        json!({ "type": "string" }),
    );
    let list = operation("list", "List the users, newest first")
        .describe(
            "If the caller's grants on `users` have conditions or fields, the list has only the users and the members that these \
            grants allow, and `role` is refused with 403.",
        )
        .parameter(search)
        .parameter(query_parameter("role", "Only users who have the role with this id or name.", json!({ "type": "string" })))
        .parameters(paging_parameters())
        .problems(&[400])
        .answers_page("A page of users.", of::<SeenUserAnswer>());
    paths.add("get", "/api/v1/users", list);
    let create = operation("create", "Create an account for a user")
        .describe(
            "The account has no password until the user sets one on the page of `link`. Either the link is mailed, or only this \
            response shows it. It is valid for seven days and can be used once. This works while sign-up is closed. Needs create \
            on `users`, and every right that the roles give. The response is 409 if the address is taken, and 403 \
            `setup_required` while nobody has signed up. `data` has the members of the user that the caller may read. If the \
            caller may not read the user, it has the `id`, and those of `email` and `name` that the body has.",
        )
        .json_body(body_of::<NewUserBody>())
        .problems(&[409])
        .answers(201, "The user, and the link to set the password.", of::<InvitationAnswer>());
    paths.add("post", "/api/v1/users", create);
    let base = "/api/v1/users/{id}";
    let get = operation("get", "Get a user").parameter(user()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The user.", of::<SeenUserAnswer>()));
    let update = operation("update", "Change or ban a user")
        .describe(
            "The response is 403 if the user has a right that the caller does not have. API keys that act as the user count too. \
            Things that a banned user made are suspended. The answer has the members of the user that the caller may read. If the \
            caller may not read the user, it has the `id`, and the members that the body has.",
        )
        .parameter(user())
        .json_body(body_of::<UserBody>())
        .problems(&[404, 409])
        .answers_data(200, "The user as they are now.", of::<SeenUserAnswer>());
    paths.add("patch", base, update);
    let delete = operation("delete", "Delete a user")
        .describe(
            "Also deletes the user's sessions, role assignments and the API keys that act as the user. Records keep their \
            stamps. The last admin cannot be deleted: the response is 409. It is 409 `owns_things`, with the list in `things`, \
            if the user made API keys, webhooks, subscriptions, tasks or blocks and no parameter says what happens to them. It \
            is 403 if the user has a right that the caller does not have.",
        )
        .parameter(user())
        .parameter(query_parameter(
            "handOverTo",
            "The id of the user who becomes the maker of the things that the deleted user made. That user and the caller must \
            have the rights that adopting these things needs. A caller who names another user needs `update` on `users`, and every \
            right that the named user has. Look at the `url` of each webhook first: from then on it gets everything that this user \
            may read.",
            json!({ "type": "string" }),
        ))
        .parameter(query_parameter(
            "suspend",
            "Suspends the things that the deleted user made until another user adopts them. Cannot be combined with \
                `handOverTo`.",
            json!({ "type": "boolean", "default": false }),
        ))
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The user is deleted.");
    paths.add("delete", base, delete);
    let password_link = operation("createPasswordLink", "Make a link to set a user's password")
        .describe(
            "Somebody who has the link can set the password once. Only this response shows the link. It is valid for an hour, or \
            for seven days if the user has no password yet. An earlier link of the user no longer works. Needs update on \
            `users`, and every right that the user has, now and when the link is used. The response is 409 for a guest and for a \
            banned user.",
        )
        .parameter(user())
        .problems(&[400, 404, 409])
        .answers_data(201, "The link.", of::<PasswordLinkAnswer>());
    paths.add("post", "/api/v1/users/{id}/password-link", password_link);
    let sessions = "/api/v1/users/{id}/sessions";
    let list = operation("listSessions", "List a user's sessions, newest first")
        .parameter(user())
        .parameters(paging_parameters())
        .problems(&[400, 404])
        .answers_page(
            &format!("A page of the sessions that have not expired. A user has at most {SESSIONS_OF_USER_MAX} sessions."),
            of::<UserSessionAnswer>(),
        );
    paths.add("get", sessions, list);
    let end_all = operation("endSessions", "End all sessions of a user")
        .describe(
            "This includes the caller's own session if it belongs to this user. Open streams of the sessions end too. Needs \
            update on `users`. The response is 403 if the user has a right that the caller does not have.",
        )
        .parameter(user())
        .problems(&[400, 404])
        .answers_data(200, "The number of sessions that ended.", of::<EndedAnswer>());
    paths.add("delete", sessions, end_all);
    let end = operation("endSession", "End a session of a user")
        .describe(
            "Open streams of the session end too. Needs update on `users`. The response is 403 if the user has a right that the \
            caller does not have.",
        )
        .parameters([user(), path_parameter("session", "The session's id.", json!({ "type": "string" }))])
        .problems(&[400, 404])
        .answers_nothing(204, "The session has ended.");
    paths.add("delete", "/api/v1/users/{id}/sessions/{session}", end);
    let give = operation("giveRole", "Give a user a role")
        .describe(format!(
            "Needs update on `users`, every right that the role gives, and every right that the user has. The response is 409 if \
            the user has {ROLES_OF_USER_MAX} roles already. The answer has the members of the user that the caller may read, or \
            the `id` alone if the caller may not read the user.",
        ))
        .parameter(user())
        .json_body(body_of::<RoleBody>())
        .problems(&[404, 409])
        .answers_data(200, "The user with their roles.", of::<SeenUserAnswer>());
    paths.add("post", "/api/v1/users/{id}/roles", give);
    let role = path_parameter("role", "The role's id, or its name.", json!({ "type": "string" }));
    let take = operation("takeRole", "Take a role away from a user")
        .describe("Needs update on `users`, and every right that the user has.")
        .parameters([user(), role])
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The user no longer has the role.");
    paths.add("delete", "/api/v1/users/{id}/roles/{role}", take);
}
