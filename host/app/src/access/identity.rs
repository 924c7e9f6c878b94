//! Finds the identity and the rights of a credential. They are kept in memory for a few seconds, so that a checked request costs
//! no query.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use blockbase_auth::{API_KEY_PREFIX, TokenHash};
use blockbase_query::{Grant, Permissions, Variables};
use blockbase_schema::time::{DAY_MS, MINUTE_MS};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, KeyHolder, ReadCost, RoleRow, Service, SessionHolder, SessionRow, UserRow, Writer};
use futures_util::future::BoxFuture;

use crate::App;
use crate::access::makers::key_suspended;
use crate::base::topic::{Topic, UsedKeyMembers};
use crate::caller::check_basis::{CheckBasis, CheckedRights, Stamp};
use crate::caller::identity::{Credential, Identity, RenewalSlot, Renewed};
use crate::caller::maker_rights::MakerRights;
use crate::caller::{Caller, Credentials, GivenTicket, TicketState, variables_of};
use blockbase_quota::QuotaOwner;

/// How long a session lives.
pub(crate) const SESSION_MS: i64 = 7 * DAY_MS;
/// How long a session lives with `rememberMe: false`.
pub(crate) const SHORT_SESSION_MS: i64 = DAY_MS;
/// The next use of a session extends it if the last extension is longer ago than this.
const EXTEND_AFTER_MS: i64 = DAY_MS;
/// How long a request waits for its session to be extended.
const EXTENSION_TIMEOUT: Duration = Duration::from_secs(1);
/// The precision of a key's time of last use.
const TOUCH_AFTER_MS: i64 = MINUTE_MS;
/// The precision of a session's time of last use.
const SEEN_AFTER_MS: i64 = 5 * MINUTE_MS;
/// The role whose grants everybody has, except API keys.
pub(crate) const PUBLIC: &str = "public";

/// Reads a role's grants.
pub(crate) fn grants(permissions: &str) -> Result<Vec<Grant>> {
    serde_json::from_str(permissions).map_err(Error::internal)
}

/// The error of every ticket that opens no stream. A caller does not learn whether the ticket ever existed.
pub(super) fn invalid_ticket() -> Error {
    let message = "The ticket is not valid. It was used, it has expired, or its session or API key is no longer valid. Make a new \
                   ticket for each stream.";
    Error::new(Code::Unauthorized, message)
}

/// The credential of a request, by its kind.
pub(crate) enum Presented {
    Nothing,
    ApiKey(String),
    /// A session's token. `None` if its signature is invalid.
    Bearer(Option<String>),
    /// The token of a cookie with a valid signature.
    Cookie(String),
    /// The ticket of an event stream.
    Ticket(TicketState),
}

impl App {
    /// The caller who presents `credentials`.
    ///
    /// An invalid cookie counts as no credential, because browsers send cookies by themselves. An invalid bearer value or key is
    /// an error, because the client chose to send it.
    ///
    /// A caller who views the service as a role has the rights that both the role and the caller have.
    ///
    /// # Errors
    /// `unauthorized` if enforcement is on, `key_suspended`, and those of viewing as a role.
    pub async fn authenticate(&self, credentials: &Credentials) -> Result<Caller> {
        let caller = self.authenticate_whole(credentials).await?.with_origin(credentials.origin());
        match &credentials.view_as {
            Some(role) => self.viewed_as(caller, role).await,
            None => Ok(caller),
        }
    }

    /// Does the same, but gives the caller all rights of its credential, without the limits of a role that it views the service
    /// as.
    async fn authenticate_whole(&self, credentials: &Credentials) -> Result<Caller> {
        if credentials.is_operator {
            return Ok(Caller::system());
        }
        if let Some(identity) = self.identify(credentials).await? {
            return match identity.suspended {
                Some(reason) => Err(key_suspended(reason)),
                None => Ok(Caller::at(identity, credentials.address)),
            };
        }
        if !self.settings.require_auth {
            return Ok(Caller { quota_owner: QuotaOwner::of_address(credentials.address), ..Caller::system() });
        }
        let refused = |message: &str| Err(Error::new(Code::Unauthorized, message));
        match self.presented(credentials) {
            Presented::ApiKey(_) => refused("The API key is invalid, has expired or was deleted."),
            Presented::Bearer(_) => refused("The session token is not valid, or the session has ended. Sign in again."),
            // This ticket has no credential, because it was made while permissions were not enforced.
            Presented::Ticket(_) => Err(invalid_ticket()),
            Presented::Nothing | Presented::Cookie(_) => {
                let quota_owner = QuotaOwner::of_address(credentials.address);
                Ok(Caller { quota_owner, ..Caller::anonymous(self.public_permissions().await?) })
            }
        }
    }

    /// Chooses the credential that counts. A ticket takes precedence over a key, a key over a token, and a token over a cookie.
    pub(crate) fn presented(&self, credentials: &Credentials) -> Presented {
        if let Some(GivenTicket(ticket)) = &credentials.ticket {
            return Presented::Ticket(ticket.clone());
        }
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

    /// The identity of the credentials. Extends a session whose last extension was more than a day ago, if the credentials have a
    /// slot that takes the news to the client.
    pub(crate) async fn identify(&self, credentials: &Credentials) -> Result<Option<Arc<Identity>>> {
        let identity = match self.presented(credentials) {
            Presented::Nothing | Presented::Bearer(None) => None,
            Presented::ApiKey(key) => self.identity_of_key(&key).await?,
            Presented::Bearer(Some(token)) => self.identity_of_token(&token, false, &credentials.renewal).await?,
            Presented::Cookie(token) => self.identity_of_token(&token, true, &credentials.renewal).await?,
            Presented::Ticket(ticket) => self.identity_of_ticket(ticket, credentials.address).await?,
        };
        if let Some(identity) = &identity {
            credentials.principal.note(identity);
        }
        Ok(identity)
    }

    /// If `forgets` is true, does the same as [`App::change_accounts`] for the service. Otherwise it makes a plain write, because
    /// a new account changes no cached identity.
    pub(crate) async fn add_to_accounts<T, F>(&self, forgets: bool, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        if forgets { self.change_accounts(Service, body).await } else { self.store.write_in_reserve(Service, body).await }
    }

    /// Does the same as [`App::change_accounts`], for a caller. The caller's rights are checked in the transaction, which locks
    /// the accounts.
    pub(crate) async fn change_accounts_by<T, F>(&self, caller: CheckBasis, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        self.change_accounts(self.accounts_by(caller), body).await
    }

    /// Runs a change of accounts and then forgets the cached identities, also if the client disconnects meanwhile. The change is
    /// made even if the disk is nearly full, because people who cannot sign in cannot free any room.
    pub(crate) async fn change_accounts<T, F>(&self, writer: impl Writer, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (store, identities, is_shared) = (self.store.clone(), Arc::clone(&self.identities), self.is_shared());
        let change = tokio::spawn(async move {
            let change = identities.begin_change();
            let (answer, version) = store
                .write_in_reserve(writer, move |connection| {
                    Box::pin(async move {
                        let answer = body(connection).await?;
                        let version = match is_shared {
                            // This comes last. A transaction that waits for this row then holds no lock that the row's holder
                            // still needs.
                            true => Some(connection.raise_version("accounts").await?),
                            false => None,
                        };
                        Ok((answer, version))
                    })
                })
                .await?;
            change.committed(version);
            Ok::<T, Error>(answer)
        });
        change.await.map_err(Error::internal)?
    }

    async fn identity_of_key(&self, key: &str) -> Result<Option<Arc<Identity>>> {
        match key.starts_with(API_KEY_PREFIX) {
            true => self.identity_of_key_hash(TokenHash::of(key)).await,
            false => Ok(None),
        }
    }

    /// The identity of the key with this hash.
    pub(super) async fn identity_of_key_hash(&self, hash: TokenHash) -> Result<Option<Arc<Identity>>> {
        let now = self.clock.now();
        if let Some(identity) = self.identities.get(&hash, now) {
            return Ok(Some(identity));
        }
        let generation = self.identities.generation();
        let sought = hash.hex();
        let found = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.api_key_of_hash(&sought, now).await?) })
            })
            .await?;
        let Some(holder) = found.filter(|holder| !holder.user.banned) else { return Ok(None) };
        let (maker, read_at) = self.kept_rights_of_maker(&holder.key.maker).await?;
        let (last_used_at, id) = (holder.key.last_used_at, holder.key.id.clone());
        let mut identity = self.identity_of_key_holder(holder, &maker, now, generation)?;
        // The server keeps and trusts the identity no longer than the values that it was computed from.
        identity.cached_at = identity.cached_at.min(read_at);
        identity.last_check.renew(generation, identity.cached_at);
        if last_used_at.is_none_or(|last| now - last > TOUCH_AFTER_MS) {
            self.note_use(id, last_used_at.is_none(), Caller::of_identity(Arc::new(identity.clone())), now);
        }
        Ok(Some(self.identities.keep(hash, identity, generation)))
    }

    /// Stores when a key was used, and emits an event at its first use. Nobody waits for it. If it fails, the next use tries
    /// again.
    fn note_use(&self, id: String, is_first: bool, caller: Caller, now: i64) {
        let (store, announcer) = (self.store.clone(), self.announcer(&caller));
        tokio::spawn(async move {
            let noted = store.write(Service, move |connection| {
                Box::pin(async move {
                    match is_first && connection.begin_api_key(&id, now).await? {
                        true => announcer.emit(connection, Topic::KeyUsed(UsedKeyMembers { id: &id })).await,
                        false => Ok(connection.touch_api_key(&id, now).await?),
                    }
                })
            });
            if let Err(error) = noted.await {
                tracing::debug!(error.cause = %error, "the use of an API key could not be noted");
            }
        });
    }

    /// The identity of a key, with the rights of its role, limited to those of its maker. `generation` is the state of the
    /// accounts before they were read.
    pub(crate) fn identity_of_key_holder(
        &self,
        holder: KeyHolder,
        rights: &MakerRights,
        now: i64,
        generation: u64,
    ) -> Result<Identity> {
        let KeyHolder { key, user, role } = holder;
        let role_rights = self.permissions([&role], variables_of(&user, vec![role.name.clone()], Some(key.id.clone())))?;
        let own_end = key.expires_at.unwrap_or(i64::MAX);
        let (permissions, suspended, holds_until) = match rights {
            _ if !self.settings.require_auth => (role_rights, None, own_end),
            MakerRights::Unlimited => (role_rights, None, own_end),
            MakerRights::Held(maker) => {
                let cut = Permissions::clone(&role_rights).limited_to(Arc::clone(maker.rights()));
                (Arc::new(cut), None, own_end.min(rights.holds_until()))
            }
            MakerRights::Suspended(reason) => (Arc::new(Permissions::new(Vec::new(), None)), Some(*reason), own_end),
        };
        let credential = Credential::ApiKey(key);
        let roles = vec![role.name];
        let (me_answer, last_check) = (OnceLock::new(), Arc::new(Stamp::new(generation, now)));
        Ok(Identity { user, credential, roles, permissions, suspended, holds_until, me_answer, last_check, cached_at: now })
    }

    /// The identity of a user with the rights of these roles and of the role that everybody has, as in a session.
    pub(crate) fn identity_of_user(
        &self,
        user: UserRow,
        roles: Vec<RoleRow>,
        public: Option<&RoleRow>,
        now: i64,
        generation: u64,
    ) -> Result<Identity> {
        let permissions = self.rights_of_user(&user, &roles, public)?;
        let row = SessionRow {
            id: String::new(),
            user_id: user.id.clone(),
            expires_at: i64::MAX,
            created_at: now,
            updated_at: now,
            ip_address: None,
            user_agent: None,
            last_seen_at: None,
        };
        Ok(Identity {
            user,
            credential: Credential::Session { row, pending_claim: false },
            roles: roles.into_iter().map(|role| role.name).collect(),
            permissions,
            suspended: None,
            holds_until: i64::MAX,
            me_answer: OnceLock::new(),
            last_check: Arc::new(Stamp::new(generation, now)),
            cached_at: now,
        })
    }

    async fn identity_of_token(&self, token: &str, by_cookie: bool, renewal: &RenewalSlot) -> Result<Option<Arc<Identity>>> {
        let renews = renewal.0.is_some();
        let (identity, is_extended) = self.identity_of_token_hash(TokenHash::of(token), renews).await?;
        if is_extended {
            renewal.note(Renewed { token: token.to_owned(), by_cookie });
        }
        Ok(identity)
    }

    /// The identity of the session whose token has this hash, and whether the session was extended. It is extended only if `renews`
    /// is set.
    pub(super) async fn identity_of_token_hash(&self, hash: TokenHash, renews: bool) -> Result<(Option<Arc<Identity>>, bool)> {
        let now = self.clock.now();
        if let Some(identity) = self.identities.get(&hash, now) {
            return Ok((Some(identity), false));
        }
        let generation = self.identities.generation();
        let sought = hash.hex();
        let found = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let Some(holder) = connection.session(&sought, now).await? else { return Ok(None) };
                    Ok(Some((holder, connection.role_named(PUBLIC).await?)))
                })
            })
            .await?;
        let Some((holder, public)) = found.filter(|(holder, _)| !holder.user.banned) else { return Ok((None, false)) };
        let SessionHolder { mut session, user, roles, pending_claim } = holder;
        let is_due = is_remembered(&session) && now - session.updated_at > EXTEND_AFTER_MS;
        let mut is_extended = false;
        if is_due && renews {
            match self.extend_session(&session.id, now).await {
                Extension::Done => {
                    (session.expires_at, session.updated_at) = (now + SESSION_MS, now);
                    is_extended = true;
                }
                // The session has ended a moment ago.
                Extension::Gone => return Ok((None, false)),
                Extension::Later => {}
            }
        }
        if session.last_seen_at.is_none_or(|seen| now - seen > SEEN_AFTER_MS) {
            self.note_session(session.id.clone(), now);
        }
        let permissions = self.rights_of_user(&user, &roles, public.as_ref())?;
        let roles = roles.into_iter().map(|role| role.name).collect();
        let kept_until_extended = is_due && session.updated_at != now;
        let holds_until = session.expires_at;
        let credential = Credential::Session { row: session, pending_claim };
        let (me_answer, last_check) = (OnceLock::new(), Arc::new(Stamp::new(generation, now)));
        let identity = Identity {
            user,
            credential,
            roles,
            permissions,
            suspended: None,
            holds_until,
            me_answer,
            last_check,
            cached_at: now,
        };
        // A session that has to be extended is not cached. Each request reads it again, until one of them can notify its client.
        let identity = match kept_until_extended {
            true => Arc::new(identity),
            false => self.identities.keep(hash, identity, generation),
        };
        Ok((Some(identity), is_extended))
    }

    /// Stores when a session was used. Nobody waits for it. If it fails, the next use tries again.
    fn note_session(&self, id: String, now: i64) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let noted = store
                .write(Service, move |connection| Box::pin(async move { Ok(connection.touch_session(&id, now).await?) }))
                .await;
            if let Err(error) = noted {
                tracing::debug!(error.cause = %error, "the use of a session could not be noted");
            }
        });
    }

    /// Extends a session. If that fails or takes long, the request goes on without it.
    async fn extend_session(&self, id: &str, now: i64) -> Extension {
        let id = id.to_owned();
        let extend = self.store.write_in_reserve(Service, move |connection| {
            Box::pin(async move { Ok(connection.extend_session(&id, now + SESSION_MS, now).await?) })
        });
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

    /// The rights of a user. Every user has the grants of `public` too, so that signing in takes no right away. But `public` is
    /// not one of the user's roles, and `$user.roles` does not contain it.
    fn rights_of_user(&self, user: &UserRow, roles: &[RoleRow], public: Option<&RoleRow>) -> Result<Arc<Permissions>> {
        let names = roles.iter().map(|role| role.name.clone()).collect();
        self.permissions(roles.iter().chain(public), variables_of(user, names, None))
    }

    /// The rights that these roles together give the subject.
    pub(crate) fn permissions<'a>(
        &self,
        roles: impl IntoIterator<Item = &'a RoleRow>,
        subject: Variables,
    ) -> Result<Arc<Permissions>> {
        if !self.settings.require_auth {
            return Ok(Arc::new(Permissions::unrestricted()));
        }
        let mut all = Vec::new();
        for role in roles {
            all.extend(grants(&role.permissions)?);
        }
        Ok(Arc::new(Permissions::of_subject(all, subject)))
    }

    /// The rights of callers without a credential.
    pub(crate) async fn public_permissions(&self) -> Result<Arc<CheckedRights>> {
        let now = self.clock.now();
        if let Some(public) = self.identities.public(now) {
            return Ok(public);
        }
        let generation = self.identities.generation();
        let role = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.role_named(PUBLIC).await?) }))
            .await?;
        let grants = role.map(|role| grants(&role.permissions)).transpose()?.unwrap_or_default();
        Ok(self.identities.keep_public(Permissions::new(grants, None), now, generation))
    }
}

/// The result of extending a session.
enum Extension {
    Done,
    Gone,
    Later,
}

/// Whether a session outlives the browser. It then lasts a week from its beginning, and from each extension.
pub(crate) fn is_remembered(session: &SessionRow) -> bool {
    session.expires_at - session.updated_at > SHORT_SESSION_MS
}

/// The role that everybody has.
pub(crate) async fn public_role(connection: &mut Connection) -> Result<Option<RoleRow>> {
    Ok(connection.role_named(PUBLIC).await?)
}
