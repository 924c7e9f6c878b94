//! Who presents a credential, and what they may do: kept in memory for a few seconds, so that a checked request costs no query.

mod cache;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use blockbase_auth::{API_KEY_PREFIX, Actor, Via, hash_token};
use blockbase_query::{Grant, Permissions};
use blockbase_schema::{Error, Result};
use blockbase_store::{ApiKeyRow, Connection, KeyHolder, ReadCost, RoleRow, SessionHolder, SessionRow, UserRow};
use futures_util::future::BoxFuture;

pub(crate) use cache::IdentityCache;

use crate::App;
use crate::caller::Credentials;

const DAY_MS: i64 = 24 * 3_600_000;
/// How long a session lives.
pub(crate) const SESSION_MS: i64 = 7 * DAY_MS;
/// How long a session lives that is not remembered.
pub(crate) const SHORT_SESSION_MS: i64 = DAY_MS;
/// A session that was extended longer ago than this is extended by its next use.
const EXTEND_AFTER_MS: i64 = DAY_MS;
/// How long a request waits for its session to be extended.
const EXTENSION_TIMEOUT: Duration = Duration::from_secs(1);
/// How exactly it is known when a key was used last.
const TOUCH_AFTER_MS: i64 = 60_000;
/// The role whose grants everybody has, but for API keys.
const PUBLIC: &str = "public";

/// What an identity was shown with.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    Session {
        row: SessionRow,
        /// Whether it began with the bootstrap password, and the account still waits for its claim.
        pending_claim: bool,
    },
    ApiKey(ApiKeyRow),
}

/// A user with what they may do here.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) user: UserRow,
    pub(crate) shown: Shown,
    pub(crate) roles: Vec<String>,
    pub(crate) permissions: Arc<Permissions>,
    /// The answer of `/api/v1/me`, once somebody asked for it.
    pub(crate) verdict: OnceLock<Arc<str>>,
    kept_at: i64,
}

impl Identity {
    pub(crate) fn session(&self) -> Option<&SessionRow> {
        match &self.shown {
            Shown::Session { row, .. } => Some(row),
            Shown::ApiKey(_) => None,
        }
    }

    pub(crate) fn api_key(&self) -> Option<&ApiKeyRow> {
        match &self.shown {
            Shown::Session { .. } => None,
            Shown::ApiKey(key) => Some(key),
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        let api_key_id = self.api_key().map(|key| key.id.clone());
        let via = if api_key_id.is_some() { Via::ApiKey } else { Via::Session };
        Actor { user_id: Some(self.user.id.clone()), api_key_id, via }
    }

    fn expires_at(&self) -> i64 {
        match &self.shown {
            Shown::Session { row, .. } => row.expires_at,
            Shown::ApiKey(key) => key.expires_at.unwrap_or(i64::MAX),
        }
    }
}

/// Reads a role's grants.
pub(crate) fn grants(permissions: &str) -> Result<Vec<Grant>> {
    serde_json::from_str(permissions).map_err(Error::internal)
}

/// What a request presents, told apart.
pub(crate) enum Presented {
    Nothing,
    ApiKey(String),
    /// A session's token; `None` where the signature beside it is not ours.
    Bearer(Option<String>),
    /// The token of a cookie whose signature holds.
    Cookie(String),
}

/// A session that was extended by a request, which the client should know of.
#[derive(Clone, Debug)]
pub struct Renewed {
    pub token: String,
    /// Whether it came in a cookie, which lives on then.
    pub by_cookie: bool,
}

/// Where a request learns that its session was extended. Without one nothing is extended: whoever cannot tell the client must
/// not take the occasion from whoever can.
#[derive(Clone, Debug, Default)]
pub struct RenewalSlot(Option<Arc<OnceLock<Renewed>>>);

impl RenewalSlot {
    /// One that extends sessions.
    pub fn listening() -> RenewalSlot {
        RenewalSlot(Some(Arc::default()))
    }

    /// What was extended.
    pub fn renewed(&self) -> Option<&Renewed> {
        self.0.as_ref().and_then(|slot| slot.get())
    }

    fn note(&self, renewed: Renewed) {
        if let Some(slot) = &self.0 {
            let _ = slot.set(renewed);
        }
    }
}

impl App {
    /// Sorts credentials by kind. A key counts more than a token, a token more than a cookie.
    pub(crate) fn presented(&self, credentials: &Credentials) -> Presented {
        if let Some(key) = &credentials.api_key {
            return Presented::ApiKey(key.clone());
        }
        match (&credentials.bearer, &credentials.cookies) {
            (Some(value), _) if value.starts_with(API_KEY_PREFIX) => Presented::ApiKey(value.clone()),
            (Some(value), _) => Presented::Bearer(self.cookies.token_of_bearer(value)),
            (None, Some(header)) => self.cookies.token_of_cookies(header).map_or(Presented::Nothing, Presented::Cookie),
            (None, None) => Presented::Nothing,
        }
    }

    /// Whom the credentials show. A session that has not been extended for a day is, where they have a slot that tells of it.
    pub(crate) async fn identify(&self, credentials: &Credentials) -> Result<Option<Arc<Identity>>> {
        match self.presented(credentials) {
            Presented::Nothing | Presented::Bearer(None) => Ok(None),
            Presented::ApiKey(key) => self.identity_of_key(&key).await,
            Presented::Bearer(Some(token)) => self.identity_of_token(&token, false, &credentials.renewal).await,
            Presented::Cookie(token) => self.identity_of_token(&token, true, &credentials.renewal).await,
        }
    }

    /// As [`App::change_accounts`] where `forgets`, else a plain write: somebody new changes nothing of what is kept.
    pub(crate) async fn add_to_accounts<T, F>(&self, forgets: bool, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        if forgets { self.change_accounts(body).await } else { self.store.write(body).await }
    }

    /// Runs a change of accounts and forgets the kept identities then, also where the caller goes away meanwhile.
    pub(crate) async fn change_accounts<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (store, identities) = (self.store.clone(), Arc::clone(&self.identities));
        let change = tokio::spawn(async move {
            let answer = store.write(body).await;
            identities.forget();
            answer
        });
        change.await.map_err(Error::internal)?
    }

    async fn identity_of_key(&self, key: &str) -> Result<Option<Arc<Identity>>> {
        if !key.starts_with(API_KEY_PREFIX) {
            return Ok(None);
        }
        let (now, hash) = (self.clock.now(), hash_token(key));
        if let Some(identity) = self.identities.get(&hash, now) {
            return Ok(Some(identity));
        }
        let generation = self.identities.generation();
        let sought = hash.clone();
        let found = self
            .store
            .read(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.api_key_of_hash(&sought, now).await?) }))
            .await?;
        let Some(holder) = found.filter(|holder| !holder.user.banned) else { return Ok(None) };
        if holder.key.last_used_at.is_none_or(|last| now - last > TOUCH_AFTER_MS) {
            let (store, id) = (self.store.clone(), holder.key.id.clone());
            // Nobody waits for it, and nothing is lost where it fails.
            tokio::spawn(async move {
                store.write(move |connection| Box::pin(async move { Ok(connection.touch_api_key(&id, now).await?) })).await
            });
        }
        let identity = self.identity_of_key_holder(holder, now)?;
        Ok(Some(self.identities.keep(hash, identity, generation)))
    }

    fn identity_of_key_holder(&self, holder: KeyHolder, now: i64) -> Result<Identity> {
        let KeyHolder { key, user, role } = holder;
        let permissions = self.permissions([&role], &user.id)?;
        Ok(Identity {
            user,
            shown: Shown::ApiKey(key),
            roles: vec![role.name],
            permissions,
            verdict: OnceLock::new(),
            kept_at: now,
        })
    }

    async fn identity_of_token(&self, token: &str, by_cookie: bool, renewal: &RenewalSlot) -> Result<Option<Arc<Identity>>> {
        let (now, hash) = (self.clock.now(), hash_token(token));
        if let Some(identity) = self.identities.get(&hash, now) {
            return Ok(Some(identity));
        }
        let generation = self.identities.generation();
        let sought = hash.clone();
        let found = self
            .store
            .read(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let Some(holder) = connection.session(&sought, now).await? else { return Ok(None) };
                    Ok(Some((holder, connection.role_named(PUBLIC).await?)))
                })
            })
            .await?;
        let Some((holder, public)) = found.filter(|(holder, _)| !holder.user.banned) else { return Ok(None) };
        let SessionHolder { mut session, user, roles, pending_claim } = holder;
        let is_due = is_remembered(&session) && now - session.updated_at > EXTEND_AFTER_MS;
        if is_due && renewal.0.is_some() {
            match self.extend_session(&session.id, now).await {
                Extension::Done => {
                    (session.expires_at, session.updated_at) = (now + SESSION_MS, now);
                    renewal.note(Renewed { token: token.to_owned(), by_cookie });
                }
                // It was ended at this moment.
                Extension::Gone => return Ok(None),
                Extension::Later => {}
            }
        }
        let permissions = self.permissions(roles.iter().chain(&public), &user.id)?;
        let roles = roles.into_iter().map(|role| role.name).collect();
        let kept_until_extended = is_due && session.updated_at != now;
        let shown = Shown::Session { row: session, pending_claim };
        let identity = Identity { user, shown, roles, permissions, verdict: OnceLock::new(), kept_at: now };
        // One that is still to be extended is looked at anew by each request, until one of them can tell its client.
        match kept_until_extended {
            true => Ok(Some(Arc::new(identity))),
            false => Ok(Some(self.identities.keep(hash, identity, generation))),
        }
    }

    /// Puts a session's end off. A request does not fail or wait long for it.
    async fn extend_session(&self, id: &str, now: i64) -> Extension {
        let id = id.to_owned();
        let extend = self
            .store
            .write(move |connection| Box::pin(async move { Ok(connection.extend_session(&id, now + SESSION_MS, now).await?) }));
        match tokio::time::timeout(EXTENSION_TIMEOUT, extend).await {
            Ok(Ok(0)) => Extension::Gone,
            Ok(Ok(_)) => Extension::Done,
            Ok(Err(error)) => {
                tracing::warn!(error.cause = %error, "a session could not be extended; the next request tries again");
                Extension::Later
            }
            Err(_) => Extension::Later,
        }
    }

    /// What these roles allow the user together.
    fn permissions<'a>(&self, roles: impl IntoIterator<Item = &'a RoleRow>, user_id: &str) -> Result<Arc<Permissions>> {
        if !self.settings.require_auth {
            return Ok(Arc::new(Permissions::unrestricted()));
        }
        let mut all = Vec::new();
        for role in roles {
            all.extend(grants(&role.permissions)?);
        }
        Ok(Arc::new(Permissions::new(all, Some(user_id.to_owned()))))
    }

    /// What callers without a credential may do.
    pub(crate) async fn public_permissions(&self) -> Result<Arc<Permissions>> {
        let now = self.clock.now();
        if let Some(permissions) = self.identities.public(now) {
            return Ok(permissions);
        }
        let generation = self.identities.generation();
        let role = self
            .store
            .read(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.role_named(PUBLIC).await?) }))
            .await?;
        let grants = role.map(|role| grants(&role.permissions)).transpose()?.unwrap_or_default();
        Ok(self.identities.keep_public(Permissions::new(grants, None), now, generation))
    }

    /// Whom a stored actor is now: the key where there was one, else the user. `None` where that is gone, banned or expired.
    pub(crate) async fn identity_of_actor(&self, user_id: &str, api_key_id: Option<&str>) -> Result<Option<Identity>> {
        let now = self.clock.now();
        let (user_id, key_id) = (user_id.to_owned(), api_key_id.map(str::to_owned));
        let found = self
            .store
            .read(ReadCost::Rows, move |connection| {
                Box::pin(async move { actor_holder(connection, &user_id, key_id.as_deref(), now).await })
            })
            .await?;
        match found {
            None => Ok(None),
            Some(ActorHolder::Key(holder)) => self.identity_of_key_holder(*holder, now).map(Some),
            Some(ActorHolder::User(user, roles)) => {
                let permissions = self.permissions(&roles, &user.id)?;
                let roles = roles.into_iter().map(|role| role.name).collect();
                let row = SessionRow {
                    id: String::new(),
                    user_id: user.id.clone(),
                    expires_at: now,
                    created_at: now,
                    updated_at: now,
                    ip_address: None,
                    user_agent: None,
                };
                let shown = Shown::Session { row, pending_claim: false };
                Ok(Some(Identity { user: *user, shown, roles, permissions, verdict: OnceLock::new(), kept_at: now }))
            }
        }
    }
}

/// How putting off a session's end went.
enum Extension {
    Done,
    Gone,
    Later,
}

/// Whether a session outlives the browser. Such a one has a week to live when it begins and each time it is extended.
pub(crate) fn is_remembered(session: &SessionRow) -> bool {
    session.expires_at - session.updated_at > SHORT_SESSION_MS
}

enum ActorHolder {
    Key(Box<KeyHolder>),
    User(Box<UserRow>, Vec<RoleRow>),
}

async fn actor_holder(
    connection: &mut Connection,
    user_id: &str,
    api_key_id: Option<&str>,
    now: i64,
) -> Result<Option<ActorHolder>> {
    if let Some(id) = api_key_id {
        let holder = connection.api_key_of_id(id, now).await?.filter(|holder| !holder.user.banned);
        return Ok(holder.map(|holder| ActorHolder::Key(Box::new(holder))));
    }
    let Some(user) = connection.user(user_id).await?.filter(|user| !user.banned) else { return Ok(None) };
    let mut roles = connection.roles_of(user_id).await?;
    roles.extend(connection.role_named(PUBLIC).await?);
    Ok(Some(ActorHolder::User(Box::new(user), roles)))
}
