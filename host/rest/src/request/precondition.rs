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
        parse(value.trim()).map(|condition| IfMatch(Some(condition))).map_err(refused)
    }
}

/// Reads one strong ETag, or `*`.
fn parse(value: &str) -> Result<Condition, &'static str> {
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        _ if value == "*" => Ok(Condition::Exists),
        _ if value.is_empty() => Err("it is empty"),
        _ if value.starts_with("W/") => Err("it is a weak ETag, but a change needs a strong one"),
        Some("") => Err("its ETag is empty"),
        Some(inner) if !inner.contains(['"', ' ', '\t']) => Ok(Condition::Etag(value.to_owned())),
        _ if value.contains(',') => Err("it is a list"),
        _ => Err("it is not an ETag in quotes"),
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
            path.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_strong_etag_or_a_star_is_taken() {
        assert_eq!(parse("*"), Ok(Condition::Exists));
        for good in ["\"a\"", "\"Wm_-0\"", "\"a,b\""] {
            assert_eq!(parse(good), Ok(Condition::Etag(good.to_owned())), "{good}");
        }
        for bad in [
            "",
            "a",
            "\"",
            "\"\"",
            "\"a",
            "a\"",
            "W/\"a\"",
            "\"a\", \"b\"",
            "\"a\",\"b\"",
            "*, *",
            "\"a\" \"b\"",
            "\"a b\"",
            "**",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
