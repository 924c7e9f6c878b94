//! The responses of the surface.

use std::convert::Infallible;

use blockbase_app::schema::{Code, Error};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};

use crate::error::{Refusal, refused};
use crate::http::accept::Form;

/// A response body, complete or streamed.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

const ALLOWED: &str = "GET, POST, PUT, DELETE";

/// A response with a complete body.
pub(crate) fn answer(status: StatusCode, form: Form, body: Vec<u8>) -> Response<Body> {
    let form = if form == Form::Graphql { form } else { Form::Json };
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
    }
    response
}

/// The response to a request that is not executed.
pub(crate) fn refuse(form: Form, refusal: Refusal) -> Response<Body> {
    let status = form.status(&refusal);
    let retry_after_s = match &refusal {
        Refusal::Invalid(errors) => errors.first().and_then(|error| error.error.retry_after_s),
        Refusal::Malformed(error) => error.retry_after_s,
        Refusal::Method => None,
    };
    let body = match refusal {
        Refusal::Invalid(errors) => refused(&errors),
        Refusal::Malformed(error) => refused(&[error.into()]),
        Refusal::Method => {
            let message = format!("Send queries by GET or POST, and mutations by POST. The methods of this path are {ALLOWED}.");
            refused(&[Error::new(Code::MethodNotAllowed, message).into()])
        }
    };
    let mut response = answer(status, form, body);
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
    }
    response
}
