//! Sign-up, sign-in, sign-out.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::{
    AuthProblem, IMAGE_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, SignIn, SignUp, SignedUp, USER_NAME_CHARS_MAX,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{GuestAnswer, SignedInAnswer, SignedUpAnswer};
use super::request::{AuthBody, client, operation};
use super::responses::{cookie_taken_back, session_gone, session_response, signed_in};
use crate::AppState;
use crate::answer::auth::AuthError;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::schema;
use crate::openapi::operation::{Caller, Operation, Paths, headers};
use crate::request::admission::Anyone;
use crate::request::extract::RequestInfo;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/sign-up/email", sign_up)
        .post("/api/auth/sign-in/email", sign_in)
        .post("/api/auth/sign-in/anonymous", guest)
        .post("/api/auth/sign-out", sign_out)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignUpBody {
    #[schemars(length(max = USER_NAME_CHARS_MAX))]
    name: String,
    #[schemars(extend("format" = "email"))]
    email: String,
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_CHARS_MAX))]
    password: String,
    /// The URL of a picture.
    #[schemars(length(max = IMAGE_CHARS_MAX))]
    image: Option<String>,
    /// Whether the session outlives the browser. The default is true.
    remember_me: Option<bool>,
    /// The page to which the client goes afterwards: a path of this server, or a URL of a trusted origin.
    #[serde(rename = "callbackURL")]
    callback_url: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignInBody {
    email: String,
    password: String,
    /// Whether the session outlives the browser. The default is true.
    remember_me: Option<bool>,
    /// The page to which the client goes afterwards: a path of this server, or a URL of a trusted origin.
    #[serde(rename = "callbackURL")]
    callback_url: Option<String>,
}

/// The page to which the client goes afterwards. An empty text counts as no page.
///
/// # Errors
/// If the page does not belong to a trusted origin.
pub(super) fn callback(state: &AppState, url: Option<String>) -> Result<Option<String>, AuthError> {
    let url = url.filter(|url| !url.is_empty());
    match url.as_deref().is_none_or(|url| state.settings.trusted_origins.may_lead_to(url)) {
        true => Ok(url),
        false => Err(AuthError::InvalidCallbackUrl),
    }
}

/// Stores in a cookie that this browser made the account, or that its user knows the password. If the browser then proves the
/// address, nothing of the account is removed.
fn note_account(state: &AppState, headers: &HeaderMap, response: &mut Response, user_id: &str) {
    let cookies: Vec<&str> = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().set_sign_up(&cookies.join("; "), user_id)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

pub(crate) async fn sign_up(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: SignUpBody = body.parse()?;
    let callback = callback(&state, body.callback_url)?;
    let request = SignUp {
        name: body.name,
        email: body.email,
        password: body.password,
        image: body.image,
        remember: body.remember_me.unwrap_or(true),
        setup_token: headers.get("x-setup-token").map(|token| String::from_utf8_lossy(token.as_bytes()).into_owned()),
        client: client(credentials, &headers, &info),
        callback,
    };
    match state.app.sign_up(request).await? {
        SignedUp::SignedIn(answer) => {
            let body = SignedUpAnswer { token: Some(answer.token.as_str()), user: &answer.user };
            let mut response = signed_in(&state, &answer, &body);
            if state.app.sends_mail() {
                note_account(&state, &headers, &mut response, answer.user.id());
            }
            Ok(response)
        }
        SignedUp::Waits(user) => {
            let mut response = axum::Json(SignedUpAnswer { token: None, user: &user }).into_response();
            // For an address that is taken, this is an account that does not exist.
            note_account(&state, &headers, &mut response, user.id());
            Ok(response)
        }
    }
}

pub(crate) async fn sign_in(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: SignInBody = body.parse()?;
    let callback = callback(&state, body.callback_url)?;
    let request = SignIn {
        email: body.email,
        password: body.password,
        remember: body.remember_me.unwrap_or(true),
        client: client(credentials, &headers, &info),
        callback: callback.clone(),
    };
    let answer = match state.app.sign_in(request).await {
        Err(AuthProblem::EmailNotVerified { user_id }) => {
            let mut response = AuthError::from(AuthProblem::EmailNotVerified { user_id: user_id.clone() }).into_response();
            note_account(&state, &headers, &mut response, &user_id);
            return Ok(response);
        }
        answer => answer?,
    };
    let url = callback.as_deref();
    let body = SignedInAnswer { redirect: url.is_some(), token: answer.token.as_str(), user: &answer.user, url };
    let mut response = signed_in(&state, &answer, &body);
    if let Some(Ok(location)) = url.map(HeaderValue::from_str) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

pub(crate) async fn guest(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    let answer = state.app.sign_in_as_guest(client(credentials, &headers, &info)).await?;
    let body = GuestAnswer { token: answer.token.as_str(), user: &answer.user };
    Ok(signed_in(&state, &answer, &body))
}

pub(crate) async fn sign_out(
    State(state): State<AppState>,
    Anyone(credentials): Anyone,
    _body: AuthBody,
) -> Result<Response, AuthError> {
    state.app.sign_out(&credentials).await?;
    Ok(session_gone(&state))
}

pub(crate) fn schemas() -> Value {
    json!({ "SvcSignUp": body_of::<SignUpBody>(), "SvcSignIn": body_of::<SignInBody>() })
}

pub(crate) fn describe(paths: &mut Paths) {
    let sign_up = operation("signUp", "Sign up with an address and a password", Caller::Unseen)
        .describe(
            "The first user to sign up becomes admin. If `SVC_SETUP_TOKEN` is set, that sign-up needs the header \
            `x-setup-token`. Otherwise the response is 403 `setup_token_required`. If sign-up is closed, the response is 400 \
            `EMAIL_PASSWORD_SIGN_UP_DISABLED`. If addresses have to be proved (`SVC_REQUIRE_EMAIL_VERIFICATION`), `token` is null, the \
            server mails a link, and the response for an address that is taken looks the same.",
        )
        .parameter(json!({
            "name": "x-setup-token",
            "in": "header",
            "required": false,
            "description": "The first sign-up on a server with a setup token needs this header.",
            "schema": { "type": "string" },
        }))
        .json_body(schema("SvcSignUp"))
        .without(&[401])
        .problems(&[409, 422])
        .response(200, session_response(of::<SignedUpAnswer<'_>>()));
    paths.add("post", "/api/auth/sign-up/email", sign_up);
    let sign_in = operation("signIn", "Sign in with an address and a password", Caller::Unseen)
        .describe(
            "A wrong password and an unknown address get the same response: 401 `INVALID_EMAIL_OR_PASSWORD`. After ten \
            failures from one network, sign-in to the account from there gets 429 for up to a minute at a time. If the address has to be \
            proved first (`SVC_REQUIRE_EMAIL_VERIFICATION`), the response is 403 `EMAIL_NOT_VERIFIED`, and the server mails a link.",
        )
        .json_body(schema("SvcSignIn"))
        .response(
            401,
            json!({
                "description": "The address or the password is wrong.",
                "headers": headers(&[]),
                "content": { "application/json": { "schema": schema("SvcError") } },
            }),
        )
        .response(200, session_response(of::<SignedInAnswer<'_>>()));
    paths.add("post", "/api/auth/sign-in/email", sign_in);
    paths.add(
        "post",
        "/api/auth/sign-in/anonymous",
        as_guest(operation("signInAnonymous", "Sign in as a guest", Caller::Anyone)),
    );
    let sign_out = operation("signOut", "End the session", Caller::Anyone)
        .describe("Ends the session that the request presents. The session is then invalid everywhere.")
        .without(&[401])
        .problems(&[400, 413, 415])
        .response(200, cookie_taken_back("The session has ended. The response is the same if there was no session."));
    paths.add("post", "/api/auth/sign-out", sign_out);
}

fn as_guest(operation: Operation) -> Operation {
    operation
        .describe(
            "The response is 404 if guests are disabled (`SVC_ANONYMOUS_AUTH`). A guest who signs up or signs in with this \
            session keeps the things that they made.",
        )
        .without(&[401])
        .problems(&[400, 404, 413, 415])
        .response(200, session_response(of::<GuestAnswer<'_>>()))
}
