//! Rights are judged when they are used, and a request acts long after its caller was judged: its body drips in, its handler runs for
//! minutes, its export goes on for an hour.
//!
//! So a [`Caller`] keeps what it was judged by ([`Judged`]): the state of the accounts, and whom it was found to be. Every write of the
//! store names its [`Writer`], and [`App::by`] is the one that stands for a caller. Where the state of the accounts has moved, the
//! caller is judged again in that transaction, before anything else of it runs. What reads, or does something outside of the
//! database, asks [`App::recheck`].
//!
//! A caller who has lost a right meanwhile is refused, whether or not the request needs that one. Further rights make no difference.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_query::Permissions;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, Maker, ReadCost, Writer};
use futures_util::future::BoxFuture;

use crate::App;
use crate::caller::Caller;
use crate::identity::{Identity, Shown, public_role};
use crate::makers::{MakerRights, key_suspended};

/// How often what goes on for long looks whether its caller still may. It costs a comparison of two numbers.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What a caller was judged by.
#[derive(Clone, Default)]
pub(crate) struct Judged {
    /// Whom a credential, or a thing's maker, was found to be.
    pub(crate) identity: Option<Arc<Identity>>,
    /// What everybody has, for a caller without a credential.
    pub(crate) public: Option<Arc<Held>>,
    /// What the maker of a block holds, by whose consent the caller acts.
    pub(crate) consent: Option<Arc<Consent>>,
}

/// Rights, and the state of the accounts in which they were read.
pub(crate) struct Held {
    pub(crate) rights: Arc<Permissions>,
    pub(crate) generation: AtomicU64,
}

/// The rights of whoever consented to a block.
pub(crate) struct Consent {
    pub(crate) maker: Maker,
    pub(crate) held: Held,
}

impl Held {
    pub(crate) fn new(rights: Arc<Permissions>, generation: u64) -> Held {
        Held { rights, generation: AtomicU64::new(generation) }
    }

    /// Refuses rights that are less than these.
    fn still_held(&self, now: &Permissions, generation: u64) -> Result<()> {
        match now.first_not_held(&self.rights) {
            None => {
                self.generation.store(generation, Ordering::Release);
                Ok(())
            }
            Some(_) => Err(lost_rights()),
        }
    }
}

fn lost_rights() -> Error {
    Error::new(Code::Forbidden, "Your permissions changed while this request was under way. Send it again.")
}

fn ended(message: &str) -> Error {
    Error::new(Code::Unauthorized, message)
}

impl Judged {
    /// Of whom a session shows.
    pub(crate) fn of(identity: &Arc<Identity>) -> Judged {
        Judged { identity: Some(Arc::clone(identity)), ..Judged::default() }
    }

    /// Whether it is the service itself, whose rights nobody can take.
    fn is_nobody(&self) -> bool {
        self.identity.is_none() && self.public.is_none() && self.consent.is_none()
    }

    /// Whether nothing happened on this instance that could have changed the caller: no sign-out, no ban, no other role, and no end
    /// of their session or key.
    pub(crate) fn is_current(&self, app: &App) -> bool {
        let generation = app.identities.generation();
        let is_of_now = |judged_at: &AtomicU64| judged_at.load(Ordering::Acquire) == generation;
        let identity_holds = |identity: &Arc<Identity>| is_of_now(&identity.generation) && identity.holds_until > app.now();
        self.identity.as_ref().is_none_or(identity_holds)
            && self.public.as_ref().is_none_or(|public| is_of_now(&public.generation))
            && self.consent.as_ref().is_none_or(|consent| is_of_now(&consent.held.generation))
    }

    /// Judges again, by what the connection sees.
    ///
    /// # Errors
    /// `unauthorized` where the credential does not hold any more, `key_suspended`, and `forbidden` where a right is lost.
    async fn judge_again(&self, app: &App, connection: &mut Connection) -> Result<()> {
        // Before the look, so that a change meanwhile is noticed at the next one.
        let generation = app.identities.generation();
        if let Some(identity) = &self.identity {
            let now = app.identity_again(connection, identity).await?;
            if let Some(reason) = now.suspended {
                return Err(key_suspended(reason));
            }
            match now.permissions.first_not_held(&identity.permissions) {
                None => identity.generation.store(generation, Ordering::Release),
                Some(_) => return Err(lost_rights()),
            }
        }
        if let Some(public) = &self.public {
            let role = public_role(connection).await?;
            public.still_held(&*app.permissions(&role, None)?, generation)?;
        }
        if let Some(consent) = &self.consent {
            match app.rights_of_maker_in(connection, &consent.maker).await? {
                MakerRights::Unlimited => {}
                MakerRights::Held(maker) => consent.held.still_held(maker.rights(), generation)?,
                MakerRights::Suspended(_) => {
                    return Err(Error::new(
                        Code::Forbidden,
                        "The block is suspended: whoever consented to it is gone or banned.",
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Caller {
    /// The same caller acting by consent of a block's maker.
    pub(crate) fn consented_by(mut self, maker: &Maker, rights: &Arc<Permissions>, generation: u64) -> Caller {
        self.judged.consent = Some(Arc::new(Consent { maker: maker.clone(), held: Held::new(Arc::clone(rights), generation) }));
        self
    }
}

/// A caller as the writer of a transaction.
pub(crate) struct By {
    app: Weak<App>,
    judged: Judged,
    /// Whether the transaction changes accounts. Those run one after the other, and where other instances change them too, what this
    /// one knows of them may be old.
    changes_accounts: bool,
}

impl Writer for By {
    fn check<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        let app = self.app.upgrade();
        let is_certain = |app: &Arc<App>| !(self.changes_accounts && app.is_shared()) && self.judged.is_current(app);
        if self.judged.is_nobody() || app.as_ref().is_some_and(is_certain) {
            return None;
        }
        Some(Box::pin(async move {
            let app = app.ok_or_else(|| Error::internal("the service is not joined yet, or not any more"))?;
            if self.changes_accounts {
                connection.lock_accounts().await?;
            }
            self.judged.judge_again(&app, connection).await
        }))
    }
}

impl App {
    /// The writer of a transaction that a caller asked for.
    pub(crate) fn by(&self, caller: &Caller) -> By {
        By { app: self.weak(), judged: caller.judged.clone(), changes_accounts: false }
    }

    /// The same of a change of accounts.
    pub(crate) fn accounts_by(&self, judged: Judged) -> By {
        By { app: self.weak(), judged, changes_accounts: true }
    }

    /// Makes sure that the caller still is who they were, where that may have changed since they were judged.
    ///
    /// # Errors
    /// As those of a request that begins now; `forbidden` where a right is lost.
    pub async fn recheck(&self, caller: &Caller) -> Result<()> {
        if caller.judged.is_current(self) {
            return Ok(());
        }
        let (app, judged) = (self.itself()?, caller.judged.clone());
        self.store
            .read(ReadCost::Rows, move |connection| Box::pin(async move { judged.judge_again(&app, connection).await }))
            .await
    }

    /// Resolves where the caller has lost what they had, to the reason.
    pub(crate) async fn lost(&self, caller: &Caller) -> Error {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            match self.recheck(caller).await {
                Ok(()) => {}
                Err(error) if matches!(error.code, Code::Unauthorized | Code::Forbidden | Code::KeySuspended) => return error,
                // The database does not answer for a moment.
                Err(_) => {}
            }
        }
    }

    /// Whom an identity's credential shows now.
    async fn identity_again(&self, connection: &mut Connection, identity: &Identity) -> Result<Identity> {
        let (now, generation) = (self.clock.now(), self.identities.generation());
        match &identity.shown {
            Shown::ApiKey(key) => {
                let holder = connection.api_key_of_id(&key.id).await?;
                let holds = |expires_at: Option<i64>| expires_at.is_none_or(|expires_at| expires_at > now);
                let holder = holder.filter(|holder| !holder.user.banned && holds(holder.key.expires_at));
                let holder = holder.ok_or_else(|| ended("The API key is not valid, or not any more."))?;
                let maker = self.rights_of_maker_in(connection, &holder.key.maker).await?;
                self.identity_of_key_holder(holder, &maker, now, generation)
            }
            Shown::Session { row, .. } => {
                let gone = || ended("The session token is not valid, or the session has ended. Sign in again.");
                // The service acts for a maker without a session.
                let (user, mut roles) = match row.id.is_empty() {
                    true => {
                        let user = connection.user(&identity.user.id).await?.ok_or_else(gone)?;
                        let roles = connection.roles_of(&user.id).await?;
                        (user, roles)
                    }
                    false => {
                        let holder = connection.session_of_id(&row.id, now).await?.ok_or_else(gone)?;
                        (holder.user, holder.roles)
                    }
                };
                if user.banned {
                    return Err(gone());
                }
                roles.extend(public_role(connection).await?);
                self.identity_of_user(user, roles, now, generation)
            }
        }
    }
}
