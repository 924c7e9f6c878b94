//! Decides who may run an operation, before its parameters and its body are read. The order of the checks is: credential (401),
//! permission (403), the rest of the request.
//!
//! A handler names its demand (the permission that it requires) in its first extractor. The server reads a body only after it has
//! admitted the request, and only up to the limit of the demand. So a handler that forgets its demand cannot read a body.

use std::marker::PhantomData;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use blockbase_app::schema::{Error, Resource};
use blockbase_app::{Action, Caller, Credentials, GivenTicket, QuotaOwner};

use crate::AppState;
use crate::answer::auth::AuthError;
use crate::answer::error::ApiError;
use crate::request::extract::{Authenticated, QueryPairs, RequestInfo, authenticated, credentials};
use crate::request::precondition::refuse_if_match;

/// The maximum size of the body of an administrative operation, in bytes.
pub(crate) const ADMINISTRATIVE_BODY_BYTES_MAX: usize = 256 * 1024;

/// Allows the body to be read. [`crate::request::body`] needs it.
#[derive(Clone)]
pub(crate) struct Admitted {
    /// The owner whose share the body uses.
    pub(crate) owner: QuotaOwner,
    pub(crate) body_bytes_max: usize,
}

/// The permission that an operation demands of its caller.
pub(crate) trait Demand {
    /// Whether the operation is administrative, so that its body has the smaller limit.
    const IS_ADMINISTRATIVE: bool = true;
    /// Whether `If-Match` is refused. It is refused on operations on records that would ignore the condition.
    const REFUSES_IF_MATCH: bool = false;

    /// # Errors
    /// The reason for refusing the caller.
    fn check(caller: &Caller, parts: &mut Parts, state: &AppState) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// A caller who fulfills the demand `D`.
pub(crate) struct Granted<D>(pub(crate) Caller, pub(crate) PhantomData<fn() -> D>);

impl<D: Demand> FromRequestParts<AppState> for Granted<D> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        D::check(&caller, parts, state).await?;
        if D::REFUSES_IF_MATCH {
            refuse_if_match(&parts.headers)?;
        }
        let most = if D::IS_ADMINISTRATIVE { ADMINISTRATIVE_BODY_BYTES_MAX } else { usize::MAX };
        admit(parts, state, caller.quota_owner().clone(), most);
        Ok(Granted(caller, PhantomData))
    }
}

/// Allows a body of at most `bytes_max` bytes, but never more than the configuration allows.
pub(crate) fn admit(parts: &mut Parts, state: &AppState, owner: QuotaOwner, bytes_max: usize) {
    let body_bytes_max = bytes_max.min(state.settings.body_bytes_max);
    parts.extensions.insert(Admitted { owner, body_bytes_max });
}

/// The credentials of a request to an operation that is open to everybody, such as sign-up and hooks.
pub(crate) struct Anyone(pub(crate) Credentials);

impl FromRequestParts<AppState> for Anyone {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let address = parts.extensions.get::<RequestInfo>().map(|info| info.address);
        admit(parts, state, QuotaOwner::of_address(address), usize::MAX);
        Ok(Anyone(credentials(parts)))
    }
}

/// The credentials of a request to an operation of `/api/auth` that needs a session.
pub(crate) struct WithSession(pub(crate) Credentials);

impl FromRequestParts<AppState> for WithSession {
    type Rejection = AuthError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, AuthError> {
        let credentials = credentials(parts);
        let caller = state.app.admit_session(&credentials).await?;
        admit(parts, state, caller.quota_owner().clone(), ADMINISTRATIVE_BODY_BYTES_MAX);
        Ok(WithSession(credentials))
    }
}

/// The credentials of a request that claims the account that was made at boot.
pub(crate) struct Claiming(pub(crate) Credentials);

impl FromRequestParts<AppState> for Claiming {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let credentials = credentials(parts);
        let caller = state.app.admit_claim(&credentials).await?;
        admit(parts, state, caller.quota_owner().clone(), ADMINISTRATIVE_BODY_BYTES_MAX);
        Ok(Claiming(credentials))
    }
}

/// A caller who opens an event stream, with a ticket or with another credential.
pub(crate) struct StreamOpener(pub(crate) Caller, pub(crate) Credentials);

impl FromRequestParts<AppState> for StreamOpener {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let credentials = match ticket(parts)? {
            // The cookies do not count, because a browser sends them by itself.
            Some(ticket) => Credentials { ticket: Some(GivenTicket::new(ticket)), ..credentials(parts) },
            None => credentials(parts),
        };
        let caller = authenticated(parts, state, &credentials).await?;
        state.app.may_stream(&caller)?;
        admit(parts, state, caller.quota_owner().clone(), ADMINISTRATIVE_BODY_BYTES_MAX);
        Ok(StreamOpener(caller, credentials))
    }
}

/// The ticket in the query.
///
/// # Errors
/// If the query has several tickets, or if the client also chose to send another credential. It would not be clear which one counts.
fn ticket(parts: &Parts) -> Result<Option<String>, ApiError> {
    // Other parameters are not checked here, because the route refuses bad ones only to callers who may open a stream.
    let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let mut tickets = pairs.filter(|(name, _)| name == "ticket").map(|(_, ticket)| ticket.into_owned());
    let Some(ticket) = tickets.next() else { return Ok(None) };
    if tickets.next().is_some() {
        return Err(Error::invalid_request("The query has `ticket` more than once.").into());
    }
    let other = credentials(parts);
    if other.bearer.is_some() || other.api_key.is_some() {
        let message = "The request has a ticket and another credential. Send only one of them.";
        return Err(Error::invalid_request(message).into());
    }
    Ok(Some(ticket))
}

/// The resource of the platform that an operation works on.
pub(crate) trait Gated {
    const RESOURCE: Resource;
    /// Whether a grant for own rows is sufficient.
    const ADMITS_OWN_ROWS: bool = Self::RESOURCE.has_own_rows();
}

/// The action that an operation demands on its resource.
pub(crate) trait Right {
    const ACTION: Action;
}

macro_rules! resources {
    ($($marker:ident)+) => {$(
        pub(crate) struct $marker;
        impl Gated for $marker {
            const RESOURCE: Resource = Resource::$marker;
        }
    )+};
}

resources! { Objects Events Blocks Roles Users ApiKeys Webhooks Tasks Settings }

/// All users. It needs a grant for all of them. With a grant for their own row, users must not be able to give roles to
/// themselves, or to replace their password without the current one.
pub(crate) struct AllUsers;

impl Gated for AllUsers {
    const RESOURCE: Resource = Resource::Users;
    const ADMITS_OWN_ROWS: bool = false;
}

macro_rules! rights {
    ($($marker:ident)+) => {$(
        pub(crate) struct $marker;
        impl Right for $marker {
            const ACTION: Action = Action::$marker;
        }
    )+};
}

rights! { Create Read Update Delete Manage }

/// An action on a resource of the platform.
impl<S: Gated, R: Right> Demand for (S, R) {
    async fn check(caller: &Caller, _parts: &mut Parts, _state: &AppState) -> Result<(), ApiError> {
        match S::ADMITS_OWN_ROWS {
            true => caller.access(S::RESOURCE, R::ACTION).map(drop)?,
            false => caller.require(S::RESOURCE, R::ACTION)?,
        }
        Ok(())
    }
}

/// Read on users: on all of them, on some of them, or on some of their fields.
pub(crate) struct UsersToRead;

impl Demand for UsersToRead {
    async fn check(caller: &Caller, _parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        Ok(state.app.admit_to_object(caller, Resource::Users.name(), &[Action::Read]).await?)
    }
}

/// One part of the path, decoded. If it is not valid, it is empty, and the handler's own extractor refuses the request.
async fn path_part(parts: &mut Parts, state: &AppState, name: &str) -> String {
    match RawPathParams::from_request_parts(parts, state).await {
        Ok(params) => params.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

async fn admit_to_object(caller: &Caller, parts: &mut Parts, state: &AppState, actions: &[Action]) -> Result<(), ApiError> {
    let object = path_part(parts, state, "object").await;
    if object.is_empty() || object.contains('\0') {
        // No object has this name, so only a grant for all objects is sufficient.
        for action in actions {
            caller.access("", *action)?;
        }
        return Ok(());
    }
    Ok(state.app.admit_to_object(caller, &object, actions).await?)
}

/// An action on the records of the object that the path names.
pub(crate) struct Records<R>(PhantomData<R>);

impl<R: Right> Demand for Records<R> {
    const IS_ADMINISTRATIVE: bool = false;
    const REFUSES_IF_MATCH: bool = true;

    async fn check(caller: &Caller, parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        admit_to_object(caller, parts, state, &[R::ACTION]).await
    }
}

/// An action on one record of the object that the path names. `If-Match` may name a condition.
pub(crate) struct OneRecord<R>(PhantomData<R>);

impl<R: Right> Demand for OneRecord<R> {
    const IS_ADMINISTRATIVE: bool = false;

    async fn check(caller: &Caller, parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        admit_to_object(caller, parts, state, &[R::ACTION]).await
    }
}

/// The creation of a record. With `on_conflict`, it may also change an existing one.
pub(crate) struct NewRecord;

impl Demand for NewRecord {
    const IS_ADMINISTRATIVE: bool = false;
    const REFUSES_IF_MATCH: bool = true;

    async fn check(caller: &Caller, parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        // A query that cannot be decoded counts as one without `on_conflict`. It is refused later.
        let query = QueryPairs::from_request_parts(parts, state).await;
        let is_upsert = query.is_ok_and(|query| query.get("on_conflict").is_some());
        let actions: &[Action] = if is_upsert { &[Action::Create, Action::Update] } else { &[Action::Create] };
        admit_to_object(caller, parts, state, actions).await
    }
}

/// Writes of records of any objects, which the body names. Each of them may need further rights.
pub(crate) struct AnyWrite;

impl Demand for AnyWrite {
    const IS_ADMINISTRATIVE: bool = false;
    const REFUSES_IF_MATCH: bool = true;

    async fn check(caller: &Caller, _parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        Ok(state.app.admit_to_batch(caller).await?)
    }
}

/// The links of the relation that the path names.
pub(crate) struct Links;

impl Demand for Links {
    const IS_ADMINISTRATIVE: bool = false;
    const REFUSES_IF_MATCH: bool = true;

    async fn check(caller: &Caller, parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        let relation = path_part(parts, state, "relation").await;
        if relation.is_empty() || relation.contains('\0') {
            return admit_to_object(caller, parts, state, &[Action::Update]).await;
        }
        let object = path_part(parts, state, "object").await;
        Ok(state.app.admit_to_links(caller, &object, &relation).await?)
    }
}

/// The action of a block that the path names.
pub(crate) struct CalledAction;

impl Demand for CalledAction {
    const IS_ADMINISTRATIVE: bool = false;

    async fn check(caller: &Caller, parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        let block = path_part(parts, state, "block").await;
        let action = path_part(parts, state, "action").await;
        Ok(state.app.admit_to_action(caller, &block, &action).await?)
    }
}

/// The sending of a recorded event to a block's handler once more.
pub(crate) struct Replay;

impl Demand for Replay {
    async fn check(caller: &Caller, _parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        Ok(state.app.may_replay(caller)?)
    }
}

/// A session of a user. An API key is refused, because it must not use things that belong to its user.
pub(crate) struct Person;

impl Demand for Person {
    async fn check(caller: &Caller, _parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        state.app.require_person(caller)?;
        Ok(())
    }
}

/// An event stream.
pub(crate) struct Stream;

impl Demand for Stream {
    async fn check(caller: &Caller, _parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
        Ok(state.app.may_stream(caller)?)
    }
}

/// The permit to read the body of an admitted request.
///
/// # Errors
/// If the handler has no demand, which is a defect.
pub(crate) fn admitted(parts: &axum::http::Extensions) -> Result<Admitted, ApiError> {
    parts.get::<Admitted>().cloned().ok_or_else(|| Error::internal("the body of a request is read that was not admitted").into())
}
