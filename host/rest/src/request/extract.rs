//! The extractors of handlers: the caller, the parts of the path, the query parameters.

use std::borrow::Cow;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use blockbase_app::schema::{Code, Error, excerpt, time};
use blockbase_app::{Caller, Credentials, ListParameter, ListRequest, Paging, PrincipalSlot, QuotaOwner, RenewalSlot};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::state::bodies::BodyPlace;

/// The header with the role to view the service as. The middleware allows it only on reads.
pub(crate) const VIEW_AS: &str = "x-svc-view-as";

/// The middleware's data about a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    pub(crate) request_id: Arc<str>,
    /// The client's address, from the socket or from a trusted proxy.
    pub(crate) address: std::net::IpAddr,
    /// Receives the session's new token if the session was extended.
    pub(crate) renewal: RenewalSlot,
    /// Receives the caller, for the log.
    pub(crate) principal: PrincipalSlot,
    /// The share that the request uses.
    pub(crate) quota: Arc<RequestQuota>,
}

/// The share that a request uses: its owner, and the place of its body.
#[derive(Debug, Default)]
pub(crate) struct RequestQuota {
    /// The caller, as soon as it is known. Before that, the client's address.
    owner: OnceLock<QuotaOwner>,
    /// The place of the request's body, until the request ends.
    pub(crate) body_place: Mutex<Option<BodyPlace>>,
}

impl RequestInfo {
    /// The owner of the share that the response uses.
    pub(crate) fn quota_owner(&self) -> QuotaOwner {
        self.quota.owner.get().cloned().unwrap_or_else(|| QuotaOwner::at(self.address))
    }
}

/// Marks the requests of the operator. Only [`crate::Rest::operator_router`] sets it.
#[derive(Clone, Copy)]
pub(crate) struct Operator;

/// The user of the operating system who sends a request of the operator. Requests to [`crate::Rest::operator_router`] have it as
/// an extension.
#[derive(Clone, Copy, Debug)]
pub struct OperatorUid(pub u32);

/// Waits until the caller has room for a response, before any work is done.
///
/// # Errors
/// `unavailable` if the client does not read the caller's earlier responses.
pub(crate) async fn response_room(parts: &Parts, state: &AppState, caller: &Caller) -> Result<(), Error> {
    let owner = caller.quota_owner();
    if let Some(info) = parts.extensions.get::<RequestInfo>() {
        let _ = info.quota.owner.set(owner.clone());
    }
    state.app.response_room(owner).await
}

/// The authenticated caller.
pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<AppState> for Authenticated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        Ok(Authenticated(authenticated(parts, state, &credentials(parts)).await?))
    }
}

/// The caller with these credentials, who has room for a response.
pub(crate) async fn authenticated(parts: &Parts, state: &AppState, credentials: &Credentials) -> Result<Caller, ApiError> {
    let caller = state.app.authenticate(credentials).await?;
    response_room(parts, state, &caller).await?;
    // The request may have waited for room, so the caller is checked again.
    state.app.recheck(&caller).await?;
    Ok(caller)
}

/// The credentials of a request, for operations that check them themselves.
pub(crate) struct Presented(pub(crate) Credentials);

impl FromRequestParts<AppState> for Presented {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, Infallible> {
        Ok(Presented(credentials(parts)))
    }
}

/// The credentials of a request. An `Authorization` header counts only with the scheme Bearer. The service's cookie is found even
/// if other cookies are not valid text.
pub(crate) fn credentials(parts: &Parts) -> Credentials {
    let text = |name: &str| parts.headers.get(name).map(lossy).map(Cow::into_owned);
    let bearer = parts.headers.get(header::AUTHORIZATION).map(lossy).and_then(|value| {
        let (scheme, value) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| value.trim().to_owned())
    });
    let mut cookies = parts.headers.get_all(header::COOKIE).iter().map(lossy);
    let first = cookies.next();
    let cookies = first.map(|first| cookies.fold(first.into_owned(), |joined, value| joined + "; " + &*value));
    let info = parts.extensions.get::<RequestInfo>();
    Credentials {
        bearer,
        api_key: text("x-api-key"),
        cookies,
        ticket: None,
        view_as: text(VIEW_AS),
        renewal: info.map(|info| info.renewal.clone()).unwrap_or_default(),
        principal: info.map(|info| info.principal.clone()).unwrap_or_default(),
        address: info.map(|info| info.address),
        is_operator: parts.extensions.get::<Operator>().is_some(),
        operator_uid: parts.extensions.get::<OperatorUid>().map(|OperatorUid(uid)| *uid),
        request_id: info.map(|info| Arc::clone(&info.request_id)),
    }
}

fn lossy(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// The languages of a request, as its `Accept-Language` lists them.
pub(crate) fn languages(headers: &HeaderMap) -> Option<String> {
    headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The variable parts of the path.
pub(crate) struct PathParts<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for PathParts<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            // No id or name contains a NUL character, because text in Postgres cannot contain it.
            Ok(_) if parts.uri.path().contains("%00") => Err(Error::invalid_request("The path contains a NUL character.").into()),
            Ok(Path(value)) => Ok(PathParts(value)),
            Err(_) => Err(Error::invalid_request("The path is not valid UTF-8 after percent-decoding.").into()),
        }
    }
}

/// The query parameters, decoded like a form.
pub(crate) struct QueryPairs(Vec<(String, String)>);

impl FromRequestParts<AppState> for QueryPairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let mut pairs = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            // The decoder writes U+FFFD for bytes that are not UTF-8. A literal U+FFFD is refused as well.
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

    /// A parameter that is `true` or `false`. If it is left out, it is `false`. A repeated parameter is refused, because some readers take
    /// the first value and others the last one (`dryRun=true&dryRun=false`).
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        if self.iter().filter(|(known, _)| *known == name).count() > 1 {
            return Err(Error::invalid_request(format!("The query has `{name}` more than once.")).into());
        }
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true" | "") => Ok(true),
            Some(other) => Err(Error::invalid_request(format!("`{name}` must be true or false; it is {other:?}.")).into()),
        }
    }

    /// A parameter that is not empty.
    pub(crate) fn given(&self, name: &str) -> Result<Option<String>, ApiError> {
        without_nul(name, self.get(name).filter(|text| !text.is_empty()).map(str::to_owned))
    }

    /// A parameter that is an instant, in milliseconds since the epoch.
    pub(crate) fn instant(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.given(name)?.map(|text| instant(name, &text)).transpose()
    }

    /// Refuses any other parameter.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let known = match known {
                    [] => "This operation has none.".to_owned(),
                    [known] => format!("The only parameter is `{known}`."),
                    known => format!("The parameters are `{}`.", known.join("`, `")),
                };
                let message = format!("There is no parameter `{}` here. {known}", excerpt(name));
                Err(Error::new(Code::InvalidRequest, message).with_field(name).into())
            }
        }
    }

    /// `page`, `pageSize`, `limit`, `offset` and `search`. `own` names the handler's other parameters.
    pub(crate) fn search_page_beside(&self, own: &[&str]) -> Result<(Option<String>, Paging), ApiError> {
        let searched = ListParameter::of_window().chain([ListParameter::Search]);
        let mut known: Vec<&str> = searched.flat_map(ListParameter::names).collect();
        known.extend(own);
        self.only(&known)?;
        let request = ListRequest::from_parameters(self.iter().filter(|(name, _)| !own.contains(name)))?;
        Ok((request.search, request.paging))
    }

    /// `page`, `pageSize`, `limit` and `offset`. `own` names the handler's other parameters.
    pub(crate) fn page_beside(&self, own: &[&str]) -> Result<Paging, ApiError> {
        let mut known: Vec<&str> = ListParameter::of_window().map(ListParameter::name).collect();
        known.extend(own);
        self.only(&known)?;
        Ok(ListRequest::from_parameters(self.iter().filter(|(name, _)| !own.contains(name)))?.paging)
    }
}

/// A query without parameters. The handler would ignore any of them, also one that is meant to change what the request does, such
/// as `dryRun`. So all of them are refused.
pub(crate) struct NoParameters;

impl FromRequestParts<AppState> for NoParameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        QueryPairs::from_request_parts(parts, state).await?.only(&[])?;
        Ok(NoParameters)
    }
}

/// The names of an operation's query parameters.
pub(crate) trait Parameters {
    const NAMES: &'static [&'static str];
}

/// A query that has no other parameters than those of `P`. A handler names it before the body. So a query with another parameter
/// is refused before the server reads the body.
pub(crate) struct OnlyParameters<P>(pub(crate) QueryPairs, pub(crate) PhantomData<fn() -> P>);

impl<P: Parameters> FromRequestParts<AppState> for OnlyParameters<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let query = QueryPairs::from_request_parts(parts, state).await?;
        query.only(P::NAMES)?;
        Ok(OnlyParameters(query, PhantomData))
    }
}

/// Refuses text with a NUL character, because Postgres cannot store it.
pub(crate) fn without_nul(name: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    match text.as_ref().is_some_and(|text| text.contains('\0')) {
        true => Err(Error::new(Code::InvalidRequest, format!("`{name}` contains a NUL character.")).into()),
        false => Ok(text),
    }
}

/// Parses an instant. The result is in milliseconds since the epoch.
pub(crate) fn instant(name: &str, text: &str) -> Result<i64, ApiError> {
    time::parse_datetime(text).ok_or_else(|| {
        let message =
            format!("`{name}` must be a datetime such as 2026-01-31T08:00:00Z; it is {text:?}. Write `+` as %2B in a query.");
        Error::invalid_request(message).into()
    })
}
