//! Who calls an operation, and what they may do.

use std::sync::Arc;

use blockbase_auth::{API_KEY_PREFIX, Actor, Principal, Via, hash_token};
use blockbase_query::{Access, Action, Permissions, Scope};
use blockbase_schema::{Code, Error, Object, Registry, Result, json};
use blockbase_store::ReadCost;

use crate::App;
use crate::sessions::CachedSession;

/// What a request presented. Surfaces only take it out of their headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The value of `Authorization: Bearer`.
    pub bearer: Option<String>,
    /// The value of `X-API-Key`.
    pub api_key: Option<String>,
    /// The `Cookie` header.
    pub cookies: Option<String>,
}

/// The caller of an operation.
#[derive(Clone)]
pub struct Caller {
    pub principal: Principal,
    pub authority: Authority,
    /// How many handlers' writes led to this call.
    pub depth: i64,
    /// The session behind it, where there is one.
    pub(crate) session: Option<Arc<CachedSession>>,
}

/// Where a caller's rights come from.
#[derive(Clone)]
pub enum Authority {
    /// Roles.
    Own(Arc<Permissions>),
    /// A block's consented permissions; those "as caller" only where the invoking caller holds them too.
    Block { plain: Arc<Permissions>, as_caller: Arc<Permissions>, caller: Arc<Permissions> },
}

impl Caller {
    /// The service itself.
    pub fn system() -> Caller {
        Caller {
            principal: Principal::Anonymous,
            authority: Authority::Own(Arc::new(Permissions::unrestricted())),
            depth: 0,
            session: None,
        }
    }

    pub fn is_known(&self) -> bool {
        self.principal.actor().is_some()
    }

    /// What goes into `created_by` and `updated_by`.
    pub fn actor_id(&self) -> Option<&str> {
        self.principal.actor().and_then(Actor::id)
    }

    fn decide(&self, resource: &str, action: Action) -> Option<Access> {
        match &self.authority {
            Authority::Own(permissions) => permissions.decide(resource, action),
            Authority::Block { plain, as_caller, caller } => {
                let plain = plain.decide(resource, action);
                if plain.as_ref().is_some_and(|access| *access.scope() == Scope::All) {
                    return plain;
                }
                let shared = as_caller
                    .decide(resource, action)
                    .and_then(|block| caller.decide(resource, action).map(|caller| block.and(&caller)));
                match (plain, shared) {
                    (Some(_), Some(shared)) if *shared.scope() == Scope::All => Some(shared),
                    (plain, shared) => plain.or(shared),
                }
            }
        }
    }

    /// The decision on a platform resource, or an object whose existence is no secret here.
    ///
    /// # Errors
    /// `unauthorized` for callers without a credential, `forbidden` for others.
    pub fn access(&self, resource: &str, action: Action) -> Result<Access> {
        self.decide(resource, action).ok_or_else(|| self.denied(resource, action))
    }

    pub fn may(&self, resource: &str, action: Action) -> bool {
        self.decide(resource, action).is_some()
    }

    fn denied(&self, resource: &str, action: Action) -> Error {
        match (&self.authority, self.is_known()) {
            (Authority::Own(_), false) => Error::new(
                Code::Unauthorized,
                "Authentication required. Send a session token or an API key as `Authorization: Bearer …`.",
            ),
            (Authority::Own(_), true) => {
                Error::new(Code::Forbidden, format!("You need the permission to {} `{resource}`.", action.name()))
            }
            (Authority::Block { .. }, _) => Error::new(
                Code::Forbidden,
                format!("The block has no permission to {} `{resource}`; its manifest asks for none.", action.name()),
            ),
        }
    }

    /// The object and the decision on it. A missing permission answers the same whether the object exists or not, except to
    /// callers who may read `objects`.
    pub(crate) fn object(&self, registry: &Registry, name: &str, action: Action) -> Result<(Arc<Object>, Access)> {
        let object = registry.object(name);
        match (object, self.decide(name, action)) {
            (Some(object), Some(access)) => Ok((Arc::clone(object), access)),
            (None, Some(_)) => Err(Error::unknown_object(name)),
            (None, None) if self.may("objects", Action::Read) => Err(Error::unknown_object(name)),
            (_, None) => Err(self.denied(name, action)),
        }
    }

    /// The actor of an event, as JSON.
    pub(crate) fn actor_json(&self) -> String {
        let Some(actor) = self.principal.actor() else { return "null".to_owned() };
        let mut out = Vec::with_capacity(96);
        let text = |out: &mut Vec<u8>, text: &Option<String>| match text {
            Some(text) => json::write_string(out, text),
            None => out.extend_from_slice(b"null"),
        };
        out.extend_from_slice(b"{\"userId\":");
        text(&mut out, &actor.user_id);
        out.extend_from_slice(b",\"apiKeyId\":");
        text(&mut out, &actor.api_key_id);
        out.extend_from_slice(b",\"via\":\"");
        out.extend_from_slice(actor.via.name().as_bytes());
        out.extend_from_slice(b"\"}");
        String::from_utf8(out).unwrap_or_default()
    }
}

impl App {
    /// Who presents `credentials`.
    ///
    /// A cookie that does not hold makes an anonymous caller; a bearer value or key that does not hold is an error, because
    /// whoever sends one means it.
    ///
    /// # Errors
    /// `unauthorized`, under enforcement.
    pub async fn authenticate(&self, credentials: &Credentials) -> Result<Caller> {
        let bearer = credentials.bearer.as_deref();
        if credentials.api_key.is_some() || bearer.is_some_and(|value| value.starts_with(API_KEY_PREFIX)) {
            return self.unknown_credential("The API key is not valid.");
        }
        if let Some(value) = bearer {
            let caller = match self.cookies.token_of_bearer(value) {
                Some(token) => self.caller_of_token(&token).await?,
                None => None,
            };
            return match caller {
                Some(caller) => Ok(caller),
                None => self.unknown_credential("The session token is not valid, or the session has ended. Sign in again."),
            };
        }
        let token = credentials.cookies.as_deref().and_then(|header| self.cookies.token_of_cookies(header));
        let caller = match token {
            Some(token) => self.caller_of_token(&token).await?,
            None => None,
        };
        match caller {
            Some(caller) => Ok(caller),
            None => self.anonymous().await,
        }
    }

    fn unknown_credential(&self, message: &str) -> Result<Caller> {
        match self.settings.require_auth {
            true => Err(Error::new(Code::Unauthorized, message)),
            false => Ok(Caller::system()),
        }
    }

    async fn anonymous(&self) -> Result<Caller> {
        if !self.settings.require_auth {
            return Ok(Caller::system());
        }
        let permissions = match self.sessions.public(self.clock.now()) {
            Some(permissions) => permissions,
            None => {
                let role = self
                    .store
                    .read(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.role_named("public").await?) }))
                    .await?;
                let grants = role.map(|role| crate::sessions::grants(&role.permissions)).transpose()?.unwrap_or_default();
                self.sessions.keep_public(Arc::new(Permissions::new(grants, None)), self.clock.now())
            }
        };
        Ok(Caller { principal: Principal::Anonymous, authority: Authority::Own(permissions), depth: 0, session: None })
    }

    async fn caller_of_token(&self, token: &str) -> Result<Option<Caller>> {
        let Some(session) = self.session_of_hash(hash_token(token)).await? else { return Ok(None) };
        Ok(Some(Caller {
            principal: Principal::Known(Actor { user_id: Some(session.user.id.clone()), api_key_id: None, via: Via::Session }),
            authority: Authority::Own(Arc::clone(&session.permissions)),
            depth: 0,
            session: Some(session),
        }))
    }
}
