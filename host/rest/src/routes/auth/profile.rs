//! Operations with which users change their own account.

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use blockbase_app::{AuthProblem, IMAGE_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, ProfileChanges, USER_NAME_CHARS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{DoneAnswer, PasswordChangedAnswer};
use super::request::{AuthBody, client, operation};
use super::responses::{cookie_taken_back, session_gone, session_response, signed_in};
use crate::AppState;
use crate::answer::auth::AuthError;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Caller, Paths};
use crate::request::admission::WithSession;
use crate::request::body::present;
use crate::request::extract::RequestInfo;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/change-password", change_password)
        .post("/api/auth/update-user", update_user)
        .post("/api/auth/delete-anonymous-user", delete_guest)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PasswordBody {
    current_password: String,
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_CHARS_MAX))]
    new_password: String,
    /// Whether all sessions end and a new one begins.
    revoke_other_sessions: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UserBody {
    /// It cannot be changed here. The member is read only to refuse it.
    #[schemars(skip)]
    email: Option<Value>,
    #[schemars(length(max = USER_NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(max = IMAGE_CHARS_MAX))]
    image: Option<Option<String>>,
}

pub(crate) async fn change_password(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    WithSession(credentials): WithSession,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: PasswordBody = body.parse()?;
    let revokes = body.revoke_other_sessions.unwrap_or(false);
    let client = client(credentials, &headers, &info);
    let (user, session) = state.app.change_password(client, body.current_password, body.new_password, revokes).await?;
    Ok(match session {
        Some(session) => {
            let body = PasswordChangedAnswer { token: Some(session.token.as_str()), user: &user };
            signed_in(&state, &session, &body)
        }
        None => axum::Json(PasswordChangedAnswer { token: None, user: &user }).into_response(),
    })
}

pub(crate) async fn update_user(
    State(state): State<AppState>,
    WithSession(credentials): WithSession,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: UserBody = body.parse()?;
    let changes = ProfileChanges { name: body.name, image: body.image };
    if body.email.is_some() {
        return Err(AuthProblem::EmailCannotChange.into());
    }
    state.app.update_profile(&credentials, changes).await?;
    Ok(axum::Json(DoneAnswer::DONE).into_response())
}

pub(crate) async fn delete_guest(
    State(state): State<AppState>,
    WithSession(credentials): WithSession,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    state.app.delete_guest(&credentials).await?;
    Ok(session_gone(&state))
}

pub(crate) fn describe_password(paths: &mut Paths) {
    let mut changed = session_response(of::<PasswordChangedAnswer<'_>>());
    changed["description"] = json!("The password is changed. `token` is null unless a new session began.");
    let change = operation("changePassword", "Change the caller's password", Caller::Session)
        .describe(
            "The response is 400 `INVALID_PASSWORD` if `currentPassword` is wrong, and 400 `CREDENTIAL_ACCOUNT_NOT_FOUND` \
            for guests. Wrong passwords count as failed sign-ins: too many of them get 429.",
        )
        .json_body(body_of::<PasswordBody>())
        .response(200, changed);
    paths.add("post", "/api/auth/change-password", change);
}

pub(crate) fn describe(paths: &mut Paths) {
    let update = operation("updateUser", "Change the caller's name or image", Caller::Session)
        .describe("An address in the body gets 400 `EMAIL_CAN_NOT_BE_UPDATED`. Unknown members are ignored.")
        .json_body(body_of::<UserBody>())
        .answers(200, "The user is changed.", of::<DoneAnswer>());
    paths.add("post", "/api/auth/update-user", update);
    let delete = operation("deleteAnonymousUser", "Delete the caller's guest account", Caller::Session)
        .describe("The response is 403 `USER_IS_NOT_ANONYMOUS` if the caller is not a guest, and 404 if guests are disabled.")
        .problems(&[400, 404, 413, 415])
        .response(200, cookie_taken_back("The guest and their sessions are deleted."));
    paths.add("post", "/api/auth/delete-anonymous-user", delete);
}
