//! Operations of users on their own account: another address, a check of the password, the deletion.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use blockbase_app::{AuthProblem, Deletion, DeletionRequest, MailRequest, PAGE_CHARS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::answers::{DeletionAnswer, DoneAnswer};
use super::mail_links::link_parameters;
use super::request::{AuthBody, client, operation};
use super::reset::header_of;
use super::responses::{leads_to, without_session};
use super::sign::callback;
use crate::AppState;
use crate::answer::auth::AuthError;
use crate::answer::error::ApiError;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Caller, Paths, headers};
use crate::request::admission::{Anyone, WithSession};
use crate::request::extract::{QueryPairs, RequestInfo, languages};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/change-email", change_email)
        .post("/api/auth/verify-password", verify_password)
        .post("/api/auth/delete-user", delete_user)
        .get("/api/auth/delete-user/callback", delete_user_callback)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EmailBody {
    #[schemars(extend("format" = "email"))]
    new_email: String,
    /// The page where the link of the mail ends: a path of this server, or a URL of a trusted origin. The default is `/`.
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = PAGE_CHARS_MAX))]
    callback_url: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CheckedPasswordBody {
    password: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeletionBody {
    /// The password of the account.
    password: Option<String>,
    /// The token of a mailed link.
    token: Option<String>,
    /// The page where a mailed link ends: a path of this server, or a URL of a trusted origin. The default is `/`.
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = PAGE_CHARS_MAX))]
    callback_url: Option<String>,
}

pub(crate) async fn change_email(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    WithSession(credentials): WithSession,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: EmailBody = body.parse()?;
    let page = callback(&state, body.callback_url)?;
    let request = MailRequest { email: body.new_email, page, languages: languages(&headers) };
    state.app.request_email_change(&client(credentials, &headers, &info), request).await?;
    Ok(axum::Json(DoneAnswer::DONE).into_response())
}

pub(crate) async fn verify_password(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    WithSession(credentials): WithSession,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: CheckedPasswordBody = body.parse()?;
    state.app.verify_password(&client(credentials, &headers, &info), body.password).await?;
    Ok(axum::Json(DoneAnswer::DONE).into_response())
}

pub(crate) async fn delete_user(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    WithSession(credentials): WithSession,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: DeletionBody = body.required()?.parse()?;
    let page = callback(&state, body.callback_url)?;
    let request = DeletionRequest { password: body.password, token: body.token, page };
    match state.app.delete_own_account(&client(credentials, &headers, &info), request).await? {
        Deletion::Deleted => Ok(deleted(&state)),
        Deletion::Mailed => Ok(axum::Json(DeletionAnswer::MAILED).into_response()),
    }
}

/// The link of a mail. The browser has to have a session of the account, so that somebody who reads the mail of an account cannot
/// delete the account.
pub(crate) async fn delete_user_callback(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    method: Method,
    headers: HeaderMap,
    query: Result<QueryPairs, ApiError>,
) -> Result<Response, AuthError> {
    let query = query?;
    let page = callback(&state, query.get("callbackURL").map(str::to_owned))?;
    let token = query.get("token").ok_or_else(|| AuthProblem::Validation("`token` is missing.".to_owned()))?;
    let location = page.as_deref().map(|page| header_of(page).ok_or(AuthError::InvalidCallbackUrl)).transpose()?;
    if method == Method::HEAD {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let request = DeletionRequest { token: Some(token.to_owned()), ..DeletionRequest::default() };
    let ended = state.app.delete_own_account(&client(credentials, &headers, &info), request).await;
    ended.map_err(|problem| match problem {
        AuthProblem::NoSession => AuthError::NoUserInfo,
        problem => problem.into(),
    })?;
    Ok(match location {
        Some(location) => without_session(&state, leads_to(StatusCode::FOUND, location)),
        None => deleted(&state),
    })
}

fn deleted(state: &AppState) -> Response {
    without_session(state, axum::Json(DeletionAnswer::DELETED).into_response())
}

pub(crate) fn describe(paths: &mut Paths) {
    let change = operation("changeEmail", "Ask for a link that changes the caller's address", Caller::Session)
        .describe(
            "The server mails the link to the new address. Opening it changes the address, ends all links of the account, and the earlier \
            address is told. The response is the same if another account has the new address. It is 404 if the server sends no mail \
            (`SVC_SMTP_URL`), and 400 `EMAIL_IS_THE_SAME` for the present address.",
        )
        .json_body(body_of::<EmailBody>())
        .problems(&[404])
        .answers(200, "The link is mailed if the address is free.", of::<DoneAnswer>());
    paths.add("post", "/api/auth/change-email", change);
    let verify = operation("verifyPassword", "Check the caller's password", Caller::Session)
        .describe(
            "A wrong password gets 400 `INVALID_PASSWORD`, and counts as a wrong password of a sign-in does. After ten wrong ones in a \
            quarter of an hour, the response is 429.",
        )
        .json_body(body_of::<CheckedPasswordBody>())
        .answers(200, "The password is right.", of::<DoneAnswer>());
    paths.add("post", "/api/auth/verify-password", verify);
    let delete = operation("deleteUser", "Delete the caller's account", Caller::Session)
        .describe(
            "The password, the token of a mailed link, or a session that is younger than a day shows that the deletion is meant. Otherwise \
            the server mails a link, or the response is 400 `SESSION_EXPIRED` if it sends no mail. What the user made is suspended. The \
            response is 404 unless users may delete themselves (`SVC_DELETE_USER`), and 409 for the last admin.",
        )
        .json_body(body_of::<DeletionBody>())
        .problems(&[404, 409])
        .answers(200, "The account is deleted, or the link is mailed; `message` says which.", of::<DeletionAnswer>());
    paths.add("post", "/api/auth/delete-user", delete);
    let callback = operation("deleteUserCallback", "Delete the caller's account with a mailed link", Caller::Session)
        .describe(
            "The browser has to have a session of the account, or the response is 404 `FAILED_TO_GET_USER_INFO`. It is 404 `INVALID_TOKEN` \
            if the token is not valid or is another user's.",
        )
        .without(&[401])
        .parameters(link_parameters())
        .problems(&[400, 404, 409, 507])
        .answers(200, "The account is deleted.", of::<DeletionAnswer>())
        .response(302, json!({ "description": "The page to go to.", "headers": headers(&[("Location", "Location")]) }));
    paths.add("get", "/api/auth/delete-user/callback", callback);
}
