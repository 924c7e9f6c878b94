//! `/api/auth` in better-auth's wire form, and `/api/v1/me`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::{AuthProblem, SignIn, SignUp, SignedIn};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::AppState;
use crate::body::JsonMembers;
use crate::error::{ApiError, status};
use crate::extract::{RequestInfo, credentials};

/// A refusal in the protocol's form: `{ code, error, message }`.
pub(crate) struct AuthError(AuthProblem);

impl From<AuthProblem> for AuthError {
    fn from(problem: AuthProblem) -> Self {
        AuthError(problem)
    }
}

impl From<ApiError> for AuthError {
    fn from(error: ApiError) -> Self {
        AuthError(AuthProblem::Other(error.0))
    }
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, axum::Json(json!({ "code": code, "error": code, "message": message }))).into_response()
}

impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        let bad = StatusCode::BAD_REQUEST;
        match self.0 {
            AuthProblem::UserExists => refusal(
                StatusCode::UNPROCESSABLE_ENTITY,
                "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL",
                "User already exists. Use another email.",
            ),
            AuthProblem::PasswordTooShort => refusal(bad, "PASSWORD_TOO_SHORT", "Password too short: 8 characters at least."),
            AuthProblem::PasswordTooLong => refusal(bad, "PASSWORD_TOO_LONG", "Password too long: 128 characters at most."),
            AuthProblem::PasswordIsEmail => refusal(bad, "PASSWORD_COMPROMISED", "The password must not be the address itself."),
            AuthProblem::InvalidEmail => refusal(bad, "INVALID_EMAIL", "Invalid email."),
            AuthProblem::Validation(message) => refusal(bad, "VALIDATION_ERROR", &message),
            AuthProblem::SignUpDisabled => {
                refusal(bad, "EMAIL_PASSWORD_SIGN_UP_DISABLED", "Email and password sign up is not enabled.")
            }
            AuthProblem::InvalidEmailOrPassword => {
                refusal(StatusCode::UNAUTHORIZED, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")
            }
            AuthProblem::Other(error) if error.cause.is_some() => ApiError(error).into_response(),
            AuthProblem::Other(error) => refusal(status(error.code), error.code.as_str(), &error.message),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignUpBody {
    name: String,
    email: String,
    password: String,
    image: Option<String>,
    remember_me: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignInBody {
    email: String,
    password: String,
    remember_me: Option<bool>,
}

/// Reads the known members of a body; what is not known is ignored, as the protocol has it.
fn body_of<T: serde::de::DeserializeOwned>(members: JsonMembers) -> Result<T, AuthError> {
    let object: serde_json::Map<String, Value> =
        members.0.0.into_iter().map(|(name, raw)| (name, serde_json::from_str(raw.get()).unwrap_or_default())).collect();
    serde_json::from_value(Value::Object(object)).map_err(|error| AuthError(AuthProblem::Validation(error.to_string())))
}

fn user_agent(headers: &HeaderMap) -> Option<String> {
    headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn signed_in(state: &AppState, answer: &SignedIn, body: &Value) -> Response {
    let mut response = (StatusCode::OK, axum::Json(body)).into_response();
    let headers = response.headers_mut();
    let token = answer.token.as_str();
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().set_cookie(token, answer.remember)) {
        headers.insert(header::SET_COOKIE, cookie);
    }
    if let Ok(token) = HeaderValue::from_str(token) {
        headers.insert("set-auth-token", token);
    }
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("set-auth-token"));
    response
}

pub(crate) async fn sign_up(
    State(state): State<AppState>,
    axum::Extension(info): axum::Extension<RequestInfo>,
    headers: HeaderMap,
    members: JsonMembers,
) -> Result<Response, AuthError> {
    let body: SignUpBody = body_of(members)?;
    let answer = state
        .app
        .sign_up(SignUp {
            name: body.name,
            email: body.email,
            password: body.password,
            image: body.image,
            remember: body.remember_me.unwrap_or(true),
            ip_address: Some(info.address.to_string()),
            user_agent: user_agent(&headers),
        })
        .await?;
    let body = json!({ "token": answer.token.as_str(), "user": answer.user });
    Ok(signed_in(&state, &answer, &body))
}

pub(crate) async fn sign_in(
    State(state): State<AppState>,
    axum::Extension(info): axum::Extension<RequestInfo>,
    headers: HeaderMap,
    members: JsonMembers,
) -> Result<Response, AuthError> {
    let body: SignInBody = body_of(members)?;
    let answer = state
        .app
        .sign_in(SignIn {
            email: body.email,
            password: body.password,
            remember: body.remember_me.unwrap_or(true),
            ip_address: Some(info.address.to_string()),
            user_agent: user_agent(&headers),
        })
        .await?;
    let body = json!({ "redirect": false, "token": answer.token.as_str(), "user": answer.user });
    Ok(signed_in(&state, &answer, &body))
}

pub(crate) async fn sign_out(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    state.app.sign_out(&credentials(&headers)).await?;
    let mut response = axum::Json(json!({ "success": true })).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().clear_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

pub(crate) async fn get_session(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let answer = match state.app.identity(&credentials(&headers)).await? {
        Some(identity) => json!({ "session": identity.session, "user": identity.user }),
        None => Value::Null,
    };
    let mut response = axum::Json(answer).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The identity verdict; a bad credential is an answer, not an error.
pub(crate) async fn me(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let answer = match state.app.identity(&credentials(&headers)).await? {
        Some(identity) => json!({
            "authenticated": true,
            "userId": identity.user_id,
            "roles": identity.roles,
            "user": identity.user,
        }),
        None => json!({ "authenticated": false }),
    };
    Ok(axum::Json(answer).into_response())
}
