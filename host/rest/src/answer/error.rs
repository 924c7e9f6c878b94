//! Errors as responses: one envelope, and one status for each code.

use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::log_cause;
use blockbase_app::schema::{Code, Error, excerpt};

use crate::answer::auth::AuthError;
use crate::answer::hints;

/// A domain error that becomes a response.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Error);

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        ApiError(error)
    }
}

pub(crate) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError(error) = self;
        log_cause(&error);
        let mut response = (status(error.code), axum::Json(error.envelope(hints::words))).into_response();
        if error.code == Code::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = error.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
        }
        response
    }
}

/// Whether a path belongs to the sign-in protocol, which has its own form of errors and its own rate limit.
pub(crate) fn is_auth(path: &str) -> bool {
    path.starts_with("/api/auth/")
}

/// An error outside of a handler. Below `/api/auth` it has the form of that protocol.
pub(crate) fn unhandled(path: &str, error: Error) -> Response {
    match is_auth(path) {
        true => AuthError::from(error).into_response(),
        false => ApiError(error).into_response(),
    }
}

/// The response if no route has this path.
pub(crate) async fn no_route(uri: Uri) -> Response {
    unhandled(uri.path(), Error::new(Code::NotFound, format!("There is nothing at `{}`.", uri.path())))
}

/// The response if the path does not support the method. axum adds `Allow`.
pub(crate) async fn no_method(method: Method, uri: Uri) -> Response {
    let message =
        format!("{} does not support {method}. The header Allow lists the methods that it supports.", excerpt(uri.path()));
    unhandled(uri.path(), Error::new(Code::MethodNotAllowed, message))
}
