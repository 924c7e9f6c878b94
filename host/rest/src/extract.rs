//! What handlers take out of a request: the caller, the path's parts, the query's pairs.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::HeaderMap;
use axum::http::header;
use axum::http::request::Parts;
use blockbase_app::schema::{Code, Error};
use blockbase_app::{Caller, Credentials, ListRequest, Paging, Renewed};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::AppState;
use crate::error::ApiError;

/// What the middleware knows of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    pub(crate) request_id: String,
    /// Who is at the other end, by socket or by a trusted proxy's word.
    pub(crate) address: std::net::IpAddr,
    renewed: Arc<Mutex<Option<Renewed>>>,
}

impl RequestInfo {
    pub(crate) fn new(request_id: String, address: std::net::IpAddr) -> RequestInfo {
        RequestInfo { request_id, address, renewed: Arc::default() }
    }

    /// Notes that the request's session was extended, so that the answer tells the client.
    pub(crate) fn note_renewed(&self, renewed: Option<Renewed>) {
        if renewed.is_some() {
            *self.renewed.lock() = renewed;
        }
    }

    pub(crate) fn take_renewed(&self) -> Option<Renewed> {
        self.renewed.lock().take()
    }
}

/// The caller, authenticated.
pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<AppState> for Authenticated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let mut caller = state.app.authenticate(&credentials(&parts.headers)).await?;
        if let Some(info) = parts.extensions.get::<RequestInfo>() {
            info.note_renewed(caller.renewed.take());
        }
        Ok(Authenticated(caller))
    }
}

/// What the headers present. An `Authorization` of another scheme than Bearer is none of ours.
pub(crate) fn credentials(headers: &HeaderMap) -> Credentials {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, value) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| value.trim().to_owned())
    });
    Credentials {
        bearer,
        api_key: text("x-api-key").map(str::to_owned),
        cookies: text(header::COOKIE.as_str()).map(str::to_owned),
    }
}

/// The variable parts of the path.
pub(crate) struct PathParts<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for PathParts<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(PathParts(value)),
            Err(_) => Err(Error::invalid_request("The path is not valid UTF-8 after percent-decoding.").into()),
        }
    }
}

/// The query's pairs, decoded as forms are.
pub(crate) struct QueryPairs(Vec<(String, String)>);

impl FromRequestParts<AppState> for QueryPairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let mut pairs = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            // The decoder puts U+FFFD where bytes are no UTF-8; a literal one is not worth keeping apart.
            if [&name, &value].iter().any(|text| text.contains('\u{fffd}')) {
                return Err(Error::invalid_request("The query is not valid UTF-8 after percent-decoding.").into());
            }
            pairs.push((Cow::into_owned(name), Cow::into_owned(value)));
        }
        Ok(QueryPairs(pairs))
    }
}

impl QueryPairs {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The last value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().filter(|(known, _)| *known == name).map(|(_, value)| value).last()
    }

    /// A parameter that is `true` or `false`, `false` where it is left out.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true" | "") => Ok(true),
            Some(other) => Err(Error::invalid_request(format!("`{name}` is true or false; it is {other:?}.")).into()),
        }
    }

    /// `page`, `pageSize`, `limit`, `offset` and, where it is `searchable`, `search`: nothing else.
    pub(crate) fn page(&self, searchable: bool) -> Result<(Option<String>, Paging), ApiError> {
        let known = ["page", "pageSize", "limit", "offset", "search", "q"];
        let known = if searchable { &known[..] } else { &known[..4] };
        if let Some((name, _)) = self.iter().find(|(name, _)| !known.contains(name)) {
            let message = format!("There is no parameter `{name}` here; there are {}.", known.join(", "));
            return Err(Error::new(Code::InvalidRequest, message).into());
        }
        let request = ListRequest::from_parameters(self.iter())?;
        Ok((request.search, request.paging))
    }
}
