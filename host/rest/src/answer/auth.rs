//! Responses in the form of better-auth's protocol.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error};
use blockbase_app::{AuthProblem, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN};
use serde_json::json;

use crate::answer::error::{ApiError, status};
use crate::answer::hints;

const INVALID_CALLBACK_URL: &str =
    "Invalid callbackURL: it needs a path of this server, or a URL of a trusted origin (SVC_TRUSTED_ORIGINS).";
const INVALID_REDIRECT_URL: &str =
    "Invalid redirectURL: it needs a path of this server, or a URL of a trusted origin (SVC_TRUSTED_ORIGINS).";

/// An error in the protocol's form: `{ code, error, message }`.
pub(crate) enum AuthError {
    Problem(AuthProblem),
    /// The origin of `callbackURL` is not trusted.
    InvalidCallbackUrl,
    /// The origin of `redirectTo` is not trusted.
    InvalidRedirectUrl,
    /// The browser that opened the link of a deletion has no session.
    NoUserInfo,
}

impl From<AuthProblem> for AuthError {
    fn from(problem: AuthProblem) -> Self {
        AuthError::Problem(problem)
    }
}

impl From<ApiError> for AuthError {
    fn from(error: ApiError) -> Self {
        AuthError::Problem(AuthProblem::Other(error.0))
    }
}

impl From<Error> for AuthError {
    fn from(error: Error) -> Self {
        AuthError::Problem(AuthProblem::Other(error))
    }
}

/// A refusal in the protocol's form.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    let mut response = (status, axum::Json(json!({ "code": code, "error": code, "message": message }))).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        let bad = |code: &str, message: &str| refusal(StatusCode::BAD_REQUEST, code, message);
        let problem = match self {
            AuthError::Problem(problem) => problem,
            AuthError::InvalidCallbackUrl => {
                return refusal(StatusCode::FORBIDDEN, "INVALID_CALLBACK_URL", INVALID_CALLBACK_URL);
            }
            AuthError::InvalidRedirectUrl => {
                return refusal(StatusCode::FORBIDDEN, "INVALID_REDIRECT_URL", INVALID_REDIRECT_URL);
            }
            AuthError::NoUserInfo => {
                return refusal(StatusCode::NOT_FOUND, "FAILED_TO_GET_USER_INFO", "Failed to get user info");
            }
        };
        match problem {
            AuthProblem::UserExists => refusal(
                StatusCode::UNPROCESSABLE_ENTITY,
                "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL",
                "User already exists. Use another email.",
            ),
            AuthProblem::PasswordTooShort => {
                bad("PASSWORD_TOO_SHORT", &format!("Password too short: {PASSWORD_CHARS_MIN} characters at least."))
            }
            AuthProblem::PasswordTooLong => {
                bad("PASSWORD_TOO_LONG", &format!("Password too long: {PASSWORD_CHARS_MAX} characters at most."))
            }
            AuthProblem::PasswordIsEmail => bad("PASSWORD_COMPROMISED", "The password must not be the address itself."),
            AuthProblem::PasswordIsCommon => {
                bad("PASSWORD_COMPROMISED", "The password is among the commonest. Choose another one.")
            }
            AuthProblem::PasswordIsBreached => {
                bad("PASSWORD_COMPROMISED", "The password was in a data breach. Choose another one.")
            }
            AuthProblem::InvalidEmail => bad("INVALID_EMAIL", "Invalid email"),
            AuthProblem::Validation(message) => bad("VALIDATION_ERROR", &message),
            AuthProblem::SignUpDisabled => bad("EMAIL_PASSWORD_SIGN_UP_DISABLED", "Email and password sign up is not enabled"),
            AuthProblem::InvalidEmailOrPassword => {
                refusal(StatusCode::UNAUTHORIZED, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password")
            }
            AuthProblem::NoSession => refusal(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "Unauthorized: a session is needed."),
            AuthProblem::InvalidPassword => bad("INVALID_PASSWORD", "Invalid password"),
            AuthProblem::NoCredential => bad("CREDENTIAL_ACCOUNT_NOT_FOUND", "Credential account not found"),
            AuthProblem::InvalidToken => bad("INVALID_TOKEN", "Invalid token"),
            AuthProblem::EmailMismatch => bad("EMAIL_MISMATCH", "Email mismatch"),
            AuthProblem::EmailAlreadyVerified => bad("EMAIL_ALREADY_VERIFIED", "Email is already verified"),
            AuthProblem::EmailNotVerified { .. } => refusal(StatusCode::FORBIDDEN, "EMAIL_NOT_VERIFIED", "Email not verified"),
            AuthProblem::InvalidVerification => refusal(StatusCode::UNAUTHORIZED, "INVALID_TOKEN", "Invalid token"),
            AuthProblem::ExpiredVerification => refusal(StatusCode::UNAUTHORIZED, "TOKEN_EXPIRED", "Token expired"),
            AuthProblem::EmailIsTheSame => bad("EMAIL_IS_THE_SAME", "Email is the same"),
            AuthProblem::LinkOfAnother => refusal(StatusCode::UNAUTHORIZED, "INVALID_USER", "Invalid user"),
            AuthProblem::InvalidDeletion => refusal(StatusCode::NOT_FOUND, "INVALID_TOKEN", "Invalid token"),
            AuthProblem::SessionIsOld => bad("SESSION_EXPIRED", "Session expired. Re-authenticate to perform this action."),
            AuthProblem::EmailCannotChange => bad("EMAIL_CAN_NOT_BE_UPDATED", "Email can not be updated"),
            AuthProblem::NothingToChange => bad("NO_FIELDS_TO_UPDATE", "No fields to update"),
            AuthProblem::GuestAlready => {
                bad("ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY", "Anonymous users cannot sign in again anonymously")
            }
            AuthProblem::NoGuest => refusal(StatusCode::FORBIDDEN, "USER_IS_NOT_ANONYMOUS", "User is not anonymous"),
            AuthProblem::GuestsOff => {
                let code = Code::NotFound.as_str();
                refusal(StatusCode::NOT_FOUND, code, "Guest sign-in is off (SVC_ANONYMOUS_AUTH).")
            }
            AuthProblem::Other(error) => {
                blockbase_app::log_cause(&error);
                let mut response = refusal(status(error.code), error.code.as_str(), &error.message_for(hints::words));
                if let Some(seconds) = error.retry_after_s {
                    // Clients of the protocol read the second header.
                    for name in [header::RETRY_AFTER, HeaderName::from_static("x-retry-after")] {
                        response.headers_mut().insert(name, HeaderValue::from(seconds.get()));
                    }
                }
                response
            }
        }
    }
}

/// Returns a session's token to clients without a cookie jar. Scripts of other origins may read the header.
pub(crate) fn show_token(headers: &mut HeaderMap, token: &str) {
    if let Ok(token) = HeaderValue::from_str(token) {
        headers.insert("set-auth-token", token);
    }
}
