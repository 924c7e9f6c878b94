//! `If-Match` and `If-None-Match` in requests for one record.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use blockbase_app::Condition;
use blockbase_app::schema::Error;

use crate::AppState;
use crate::answer::error::ApiError;

/// The condition of `If-Match` for a change or a deletion. `None` if the header is left out.
pub(crate) struct IfMatch(pub(crate) Option<Condition>);

impl FromRequestParts<AppState> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, ApiError> {
        let mut values = parts.headers.get_all(header::IF_MATCH).iter();
        let Some(value) = values.next() else { return Ok(IfMatch(None)) };
        if values.next().is_some() {
            return Err(refused("the request has it more than once"));
        }
        let value = value.to_str().map_err(|_| refused("it has characters that no ETag of this server contains"))?;
        Condition::parse(value.trim()).map(|condition| IfMatch(Some(condition))).map_err(refused)
    }
}

fn refused(why: &str) -> ApiError {
    Error::invalid_request(format!("`If-Match` needs one ETag of a response with this record, with its quotes, or `*`; {why}."))
        .into()
}

/// Refuses `If-Match` on an operation that does not support it. If it were ignored, the server could make a change that the sender did not
/// want.
///
/// # Errors
/// `invalid_request`.
pub(crate) fn refuse_if_match(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.contains_key(header::IF_MATCH) {
        false => Ok(()),
        true => Err(Error::invalid_request(
            "`If-Match` works only with PATCH and DELETE of one record. Leave it out here, or change the record under its own \
            path. An operation of a batch takes `ifVersion`.",
        )
        .into()),
    }
}

/// The ETags in `If-None-Match`.
pub(crate) struct IfNoneMatch(Vec<String>);

impl FromRequestParts<AppState> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, Infallible> {
        Ok(IfNoneMatch(listed(&parts.headers, header::IF_NONE_MATCH)))
    }
}

fn listed(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect()
}

impl IfNoneMatch {
    /// Whether `etag` or `*` is among them. The comparison is weak, as RFC 9110 demands for this header.
    pub(crate) fn names(&self, etag: &str) -> bool {
        self.0.iter().any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
    }
}
