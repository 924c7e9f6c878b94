//! Sessions kept in memory for a few seconds, so that a checked request costs no query.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockbase_query::{Grant, Permissions};
use blockbase_schema::{Error, Result};
use blockbase_store::{ReadCost, SessionRow, UserRow};
use parking_lot::RwLock;

use crate::App;

/// How long an answer is believed. A change made on another instance holds here after it at the latest.
const KEPT_MS: i64 = 3_000;
/// Sessions kept; past it all are forgotten and asked for anew.
const KEPT_MAX: usize = 20_000;
/// A session that was extended longer ago than this is extended by its next use.
const EXTEND_AFTER_MS: i64 = 24 * 3_600_000;
/// How long a session lives.
pub(crate) const SESSION_MS: i64 = 7 * EXTEND_AFTER_MS;
/// How long a session lives that is not remembered.
pub(crate) const SHORT_SESSION_MS: i64 = EXTEND_AFTER_MS;

/// A session with its user and what their roles allow.
#[derive(Debug)]
pub(crate) struct CachedSession {
    pub(crate) session: SessionRow,
    pub(crate) user: UserRow,
    pub(crate) roles: Vec<String>,
    pub(crate) permissions: Arc<Permissions>,
    kept_at: i64,
}

#[derive(Default)]
pub(crate) struct SessionCache {
    by_hash: RwLock<HashMap<String, Arc<CachedSession>>>,
    public: RwLock<Option<(Arc<Permissions>, i64)>>,
    /// Goes up whenever everything is forgotten: what was read before that is not kept.
    generation: AtomicU64,
}

impl SessionCache {
    fn get(&self, hash: &str, now: i64) -> Option<Arc<CachedSession>> {
        let kept = self.by_hash.read();
        kept.get(hash).filter(|kept| now - kept.kept_at < KEPT_MS && kept.session.expires_at > now).cloned()
    }

    fn keep(&self, hash: String, session: CachedSession, generation: u64) -> Arc<CachedSession> {
        let session = Arc::new(session);
        let mut kept = self.by_hash.write();
        if self.generation.load(Ordering::Acquire) != generation {
            return session;
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(hash, Arc::clone(&session));
        session
    }

    pub(crate) fn public(&self, now: i64) -> Option<Arc<Permissions>> {
        self.public.read().as_ref().filter(|(_, kept_at)| now - kept_at < KEPT_MS).map(|(permissions, _)| Arc::clone(permissions))
    }

    pub(crate) fn keep_public(&self, permissions: Arc<Permissions>, now: i64) -> Arc<Permissions> {
        *self.public.write() = Some((Arc::clone(&permissions), now));
        permissions
    }

    /// Forgets everything: users, roles or sessions changed here.
    pub(crate) fn forget(&self) {
        let mut kept = self.by_hash.write();
        self.generation.fetch_add(1, Ordering::Release);
        kept.clear();
        *self.public.write() = None;
    }
}

/// Reads a role's grants.
pub(crate) fn grants(permissions: &str) -> Result<Vec<Grant>> {
    serde_json::from_str(permissions).map_err(Error::internal)
}

impl App {
    pub(crate) async fn session_of_hash(&self, hash: String) -> Result<Option<Arc<CachedSession>>> {
        let now = self.clock.now();
        if let Some(session) = self.sessions.get(&hash, now) {
            return Ok(Some(session));
        }
        let generation = self.sessions.generation.load(Ordering::Acquire);
        let key = hash.clone();
        let found = self
            .store
            .read(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let Some((session, user)) = connection.session(&hash, now).await? else { return Ok(None) };
                    let roles = connection.roles_of(&user.id).await?;
                    Ok(Some((session, user, roles)))
                })
            })
            .await?;
        let Some((mut session, user, roles)) = found.filter(|(_, user, _)| !user.banned) else { return Ok(None) };
        if session.expires_at - session.created_at > SHORT_SESSION_MS && now - session.updated_at > EXTEND_AFTER_MS {
            let id = session.id.clone();
            session.expires_at = now + SESSION_MS;
            session.updated_at = now;
            self.store
                .write(move |connection| {
                    Box::pin(async move { Ok(connection.extend_session(&id, now + SESSION_MS, now).await?) })
                })
                .await?;
        }
        let permissions = match self.settings.require_auth {
            false => Permissions::unrestricted(),
            true => {
                let mut all = Vec::new();
                for role in &roles {
                    all.extend(grants(&role.permissions)?);
                }
                Permissions::new(all, Some(user.id.clone()))
            }
        };
        let roles = roles.into_iter().map(|role| role.name).collect();
        let session = CachedSession { session, user, roles, permissions: Arc::new(permissions), kept_at: now };
        Ok(Some(self.sessions.keep(key, session, generation)))
    }
}
