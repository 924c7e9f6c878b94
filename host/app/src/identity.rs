//! Who presents a credential, and what they may do: kept in memory for a few seconds, so that a checked request costs no query.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockbase_auth::{API_KEY_PREFIX, Actor, Via, hash_token};
use blockbase_query::{Grant, Permissions};
use blockbase_schema::{Error, Result};
use blockbase_store::{ApiKeyRow, Connection, KeyHolder, ReadCost, RoleRow, SessionHolder, SessionRow, UserRow};
use parking_lot::RwLock;

use crate::App;
use crate::caller::Credentials;

/// How long an answer is believed. A change made on another instance holds here after it at the latest.
const KEPT_MS: i64 = 3_000;
/// Identities kept; past it all are forgotten and asked for anew.
const KEPT_MAX: usize = 20_000;
/// A session that was extended longer ago than this is extended by its next use.
const EXTEND_AFTER_MS: i64 = 24 * 3_600_000;
/// How long a session lives.
pub(crate) const SESSION_MS: i64 = 7 * EXTEND_AFTER_MS;
/// How long a session lives that is not remembered.
pub(crate) const SHORT_SESSION_MS: i64 = EXTEND_AFTER_MS;
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

#[derive(Default)]
pub(crate) struct IdentityCache {
    /// By the SHA-256 of the token or key.
    by_hash: RwLock<HashMap<String, Arc<Identity>>>,
    public: RwLock<Option<(Arc<Permissions>, i64)>>,
    /// Goes up whenever everything is forgotten: what was read before that is not kept.
    generation: AtomicU64,
}

impl IdentityCache {
    fn get(&self, hash: &str, now: i64) -> Option<Arc<Identity>> {
        let kept = self.by_hash.read();
        kept.get(hash).filter(|kept| (0..KEPT_MS).contains(&(now - kept.kept_at)) && kept.expires_at() > now).cloned()
    }

    fn keep(&self, hash: String, identity: Identity, generation: u64) -> Arc<Identity> {
        let identity = Arc::new(identity);
        let mut kept = self.by_hash.write();
        if self.generation.load(Ordering::Acquire) != generation {
            return identity;
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(hash, Arc::clone(&identity));
        identity
    }

    fn public(&self, now: i64) -> Option<Arc<Permissions>> {
        let kept = self.public.read();
        kept.as_ref().filter(|(_, kept_at)| (0..KEPT_MS).contains(&(now - kept_at))).map(|(kept, _)| Arc::clone(kept))
    }

    fn keep_public(&self, permissions: Permissions, now: i64, generation: u64) -> Arc<Permissions> {
        let permissions = Arc::new(permissions);
        let mut kept = self.public.write();
        if self.generation.load(Ordering::Acquire) == generation {
            *kept = Some((Arc::clone(&permissions), now));
        }
        permissions
    }

    /// Forgets everything: users, roles, keys or sessions changed here.
    pub(crate) fn forget(&self) {
        let (mut kept, mut public) = (self.by_hash.write(), self.public.write());
        self.generation.fetch_add(1, Ordering::Release);
        kept.clear();
        *public = None;
    }

    /// Forgets everything when what it answers is dropped: also where a client goes away before its answer.
    pub(crate) fn forget_afterwards(&self) -> ForgetOnDrop<'_> {
        ForgetOnDrop(self)
    }
}

/// Forgets the kept identities when it is dropped.
pub(crate) struct ForgetOnDrop<'a>(&'a IdentityCache);

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.forget();
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

    /// Whom the credentials show, and whether their session was extended just now.
    pub(crate) async fn identify(&self, presented: &Presented) -> Result<Option<(Arc<Identity>, Option<Renewed>)>> {
        match presented {
            Presented::Nothing | Presented::Bearer(None) => Ok(None),
            Presented::ApiKey(key) => Ok(self.identity_of_key(key).await?.map(|identity| (identity, None))),
            Presented::Bearer(Some(token)) | Presented::Cookie(token) => {
                let Some((identity, renewed)) = self.identity_of_token(token).await? else { return Ok(None) };
                let by_cookie = matches!(presented, Presented::Cookie(_));
                Ok(Some((identity, renewed.then(|| Renewed { token: token.clone(), by_cookie }))))
            }
        }
    }

    async fn identity_of_key(&self, key: &str) -> Result<Option<Arc<Identity>>> {
        if !key.starts_with(API_KEY_PREFIX) {
            return Ok(None);
        }
        let (now, hash) = (self.clock.now(), hash_token(key));
        if let Some(identity) = self.identities.get(&hash, now) {
            return Ok(Some(identity));
        }
        let generation = self.identities.generation.load(Ordering::Acquire);
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
        let permissions = self.permissions(grants(&role.permissions)?, &user.id);
        Ok(Identity { user, shown: Shown::ApiKey(key), roles: vec![role.name], permissions, kept_at: now })
    }

    /// The identity, and whether its session was extended just now.
    async fn identity_of_token(&self, token: &str) -> Result<Option<(Arc<Identity>, bool)>> {
        let (now, hash) = (self.clock.now(), hash_token(token));
        if let Some(identity) = self.identities.get(&hash, now) {
            return Ok(Some((identity, false)));
        }
        let generation = self.identities.generation.load(Ordering::Acquire);
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
        let is_long = session.expires_at - session.updated_at > SHORT_SESSION_MS;
        let renewed = is_long && now - session.updated_at > EXTEND_AFTER_MS;
        if renewed {
            let id = session.id.clone();
            (session.expires_at, session.updated_at) = (now + SESSION_MS, now);
            self.store
                .write(move |connection| {
                    Box::pin(async move { Ok(connection.extend_session(&id, now + SESSION_MS, now).await?) })
                })
                .await?;
        }
        let mut all = Vec::new();
        for role in roles.iter().chain(&public) {
            all.extend(grants(&role.permissions)?);
        }
        let permissions = self.permissions(all, &user.id);
        let roles = roles.into_iter().map(|role| role.name).collect();
        let identity = Identity { user, shown: Shown::Session { row: session, pending_claim }, roles, permissions, kept_at: now };
        Ok(Some((self.identities.keep(hash, identity, generation), renewed)))
    }

    fn permissions(&self, grants: Vec<Grant>, user_id: &str) -> Arc<Permissions> {
        Arc::new(match self.settings.require_auth {
            true => Permissions::new(grants, Some(user_id.to_owned())),
            false => Permissions::unrestricted(),
        })
    }

    /// What callers without a credential may do.
    pub(crate) async fn public_permissions(&self) -> Result<Arc<Permissions>> {
        let now = self.clock.now();
        if let Some(permissions) = self.identities.public(now) {
            return Ok(permissions);
        }
        let generation = self.identities.generation.load(Ordering::Acquire);
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
                let mut all = Vec::new();
                for role in &roles {
                    all.extend(grants(&role.permissions)?);
                }
                let permissions = self.permissions(all, &user.id);
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
                Ok(Some(Identity { user: *user, shown, roles, permissions, kept_at: now }))
            }
        }
    }
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
