//! A request may act long after its caller was checked: its body may arrive slowly, its handler may run for minutes, and its
//! export for an hour. Rights are therefore checked again when they are used.
//!
//! So a [`Caller`] keeps the data by which it was checked ([`CheckBasis`]): its identity, and the state of the accounts at that
//! time ([`Stamp`]). Every write of the store names its [`Writer`], and [`App::by`] makes the one for a caller. If accounts have
//! changed or are changing, that transaction checks the caller again before it does anything else. On Postgres it is checked once
//! more before the commit, because its statements may have waited for others. Code that reads, answers, or acts outside of the
//! database calls [`App::recheck`].
//!
//! A caller who has lost a right is refused, whether or not the request needs that right. Long operations name the rights that
//! they need ([`CheckBasis::that_needs`]), and only the loss of these rights matters to them. A caller who has gained rights is
//! not refused.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_query::{Action, Permissions, Variables};
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, ReadCost, Reader, Writer};
use futures_util::future::BoxFuture;

use crate::App;
use crate::access::identity::public_role;
use crate::access::makers::key_suspended;
use crate::caller::Caller;
use crate::caller::check_basis::{CheckBasis, Consent, Stamp};
use crate::caller::identity::{Credential, Identity};
use crate::caller::maker_rights::MakerRights;
use crate::state::identity_cache::KEPT_MS;

/// How often a long operation checks its caller again. While no account changes, this only compares two numbers.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

fn lost_rights() -> Error {
    Error::new(Code::Forbidden, "Your permissions changed while this request was under way. Send it again.")
}

fn ended(message: &str) -> Error {
    Error::new(Code::Unauthorized, message)
}

/// Whether the stamp was made in this state of the accounts. If other instances can change accounts too, it is trusted only as
/// long as a cached identity, because this instance may not hear of their changes.
fn is_of(stamp: &Stamp, generation: u64, app: &App) -> bool {
    let is_young = || !app.is_shared() || app.now() - stamp.at.load(Ordering::Acquire) < KEPT_MS;
    stamp.generation.load(Ordering::Acquire) == generation && is_young()
}

impl CheckBasis {
    /// Whether the caller is certainly unchanged: no sign-out, ban, other role, or end of their session or key can have happened
    /// since the check, and no change of accounts is under way.
    fn is_current(&self, app: &App) -> bool {
        if app.identities.are_changing() {
            return false;
        }
        let generation = app.identities.generation();
        self.was_checked(|stamp| is_of(stamp, generation, app))
            && self.identity.as_ref().is_none_or(|identity| identity.holds_until > app.now())
    }

    /// Whether a test holds for the last check of each part of the caller.
    fn was_checked(&self, holds: impl Fn(&Stamp) -> bool) -> bool {
        let own_holds = |own: &Stamp| holds(self.needs.as_ref().map_or(own, |needs| &needs.stamp));
        self.identity.as_ref().is_none_or(|identity| own_holds(&identity.last_check))
            && self.public.as_ref().is_none_or(|public| own_holds(&public.stamp))
            && self.consent.as_ref().is_none_or(|consent| holds(&consent.stamp))
    }

    /// Checks the caller again, by the accounts that the connection sees.
    ///
    /// # Errors
    /// `unauthorized` if the credential is no longer valid, `key_suspended`, and `forbidden` if a right is lost.
    async fn check_again(&self, app: &App, connection: &mut Connection) -> Result<()> {
        // Read before the check, so that the next check notices a change during this one.
        let (generation, now) = (app.identities.generation(), app.now());
        if let Some(identity) = &self.identity {
            let mut checked = self.identity_still_has(app, connection, identity, (generation, now)).await;
            if checked.is_err() {
                // The statements may have seen two states of the accounts: for example a session before its end, and the roles
                // after it.
                checked = self.identity_still_has(app, connection, identity, (generation, now)).await;
            }
            checked?;
        }
        if let Some(public) = &self.public {
            let role = public_role(connection).await?;
            self.still_has(&public.rights, &*app.permissions(&role, Variables::default())?, &public.stamp, (generation, now))?;
        }
        if let Some(consent) = &self.consent {
            match app.rights_of_maker_in(connection, &consent.maker).await? {
                MakerRights::Unlimited => {}
                MakerRights::Held(maker) => {
                    let cut = Consent::cut(&consent.asked, maker.rights(), &consent.subject);
                    let is_less = |(now, before): (&Arc<Permissions>, &Arc<Permissions>)| {
                        now.first_not_held(before).is_some() || !before.mean_the_same_for(now)
                    };
                    if cut.iter().zip(&consent.cut).any(is_less) {
                        let message =
                            "The block's maker no longer has all rights that the block uses. Somebody who has them can adopt it.";
                        return Err(Error::new(Code::Forbidden, message));
                    }
                }
                MakerRights::Suspended(_) => {
                    return Err(Error::new(
                        Code::Forbidden,
                        "The block is suspended: its maker, or the API key that made it, is no longer valid.",
                    ));
                }
            }
            consent.stamp.renew(generation, now);
        }
        Ok(())
    }

    async fn identity_still_has(
        &self,
        app: &App,
        connection: &mut Connection,
        identity: &Identity,
        moment: (u64, i64),
    ) -> Result<()> {
        let found = app.identity_again(connection, identity).await?;
        match found.suspended {
            Some(reason) => Err(key_suspended(reason)),
            None => self.still_has(&identity.permissions, &found.permissions, &identity.last_check, moment),
        }
    }

    /// Refuses a caller who had the rights `before`, has the rights `found` now, and has lost a right that counts.
    fn still_has(&self, before: &Permissions, found: &Permissions, stamp: &Stamp, (generation, now): (u64, i64)) -> Result<()> {
        // With another value of a variable, a condition applies to other rows.
        let means_the_same = before.mean_the_same_for(found);
        let has_all = means_the_same && found.first_not_held(before).is_none();
        if has_all {
            stamp.renew(generation, now);
        }
        let Some(needs) = &self.needs else { return if has_all { Ok(()) } else { Err(lost_rights()) } };
        let is_lost = |(resource, action): &(String, Action)| {
            let found = found.decide(resource, *action);
            before.decide(resource, *action).is_some_and(|before| found.is_none_or(|found| !found.has_all_of(&before)))
        };
        match !means_the_same || needs.rights.iter().any(is_lost) {
            true => Err(lost_rights()),
            false => {
                needs.stamp.renew(generation, now);
                Ok(())
            }
        }
    }
}

/// A caller in the role of a read's reader or a transaction's writer.
pub(crate) struct CallerCheck {
    app: Weak<App>,
    owner: QuotaOwner,
    basis: CheckBasis,
    /// Whether the transaction changes accounts. Only one such transaction runs at a time, and it always checks its caller. So no
    /// other transaction can have taken the caller's rights after that check.
    changes_accounts: bool,
}

impl CallerCheck {
    fn check_again<'c>(&'c self, connection: &'c mut Connection) -> BoxFuture<'c, Result<()>> {
        Box::pin(async move {
            let app = self.app.upgrade();
            let app = app.ok_or_else(|| Error::internal("the service has not started yet, or it has stopped"))?;
            if self.changes_accounts {
                connection.lock_accounts().await?;
            }
            self.basis.check_again(&app, connection).await
        })
    }

    /// Whether the caller cannot have changed. Without enforcement everybody may do everything, so a change of the caller does
    /// not matter.
    fn is_current(&self) -> bool {
        let holds = |app: Arc<App>| !app.settings.require_auth || self.basis.is_current(&app);
        self.basis.is_service() || (!self.changes_accounts && self.app.upgrade().is_some_and(holds))
    }
}

impl Reader for CallerCheck {
    fn owner(&self) -> QuotaOwner {
        self.owner.clone()
    }

    fn check<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        // The read may have waited long, and its answer may be large, so the caller may have changed since the start.
        if let Some(app) = self.app.upgrade()
            && let Err(error) = app.check_response_room(&self.owner)
        {
            return Some(Box::pin(async move { Err(error) }));
        }
        if self.is_current() { None } else { Some(self.check_again(connection)) }
    }
}

impl Writer for CallerCheck {
    fn check_before_commit<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        // A change of accounts may change the caller's own rights, so they cannot be checked after it. No other transaction
        // changes accounts in between.
        let is_certain = self.changes_accounts || self.is_current();
        if is_certain { None } else { Some(self.check_again(connection)) }
    }
}

impl App {
    /// The reader of a read, or the writer of a transaction, that a caller asked for.
    pub(crate) fn by(&self, caller: &Caller) -> CallerCheck {
        CallerCheck {
            app: self.weak(),
            owner: caller.quota_owner().clone(),
            basis: caller.basis.clone(),
            changes_accounts: false,
        }
    }

    /// Returns the same for a change of accounts. Such a change never waits behind the writes of callers, because it may be the
    /// change that ends their rights.
    pub(crate) fn accounts_by(&self, basis: CheckBasis) -> CallerCheck {
        CallerCheck { app: self.weak(), owner: QuotaOwner::Service, basis, changes_accounts: true }
    }

    /// Checks that the caller's identity and rights are still valid, if they may have changed since the last check. If several
    /// streams and requests check one identity at the same time, one of them usually reads for all.
    ///
    /// # Errors
    /// The same as for a request that begins now; `forbidden` if a right is lost.
    pub async fn recheck(&self, caller: &Caller) -> Result<()> {
        if !self.settings.require_auth || caller.basis.is_service() || caller.basis.is_current(self) {
            return Ok(());
        }
        let (app, basis) = (self.itself()?, caller.basis.clone());
        let check = self.store.read_as_service(ReadCost::Rows, move |connection| {
            Box::pin(async move { basis.check_again(&app, connection).await })
        });
        // While accounts change, no check makes a caller current, so nobody waits for it. On SQLite, checks do not become old, so
        // streams seldom need one.
        match caller.basis.only_stamp().filter(|_| self.is_shared() && !self.identities.are_changing()) {
            Some(stamp) => stamp.check_in_turn(|| caller.basis.is_current(self), check).await,
            None => check.await,
        }
    }

    /// Does the same as [`App::recheck`] if the caller was last checked before this version of the accounts, which was read
    /// together with events. So no event is shown by a right that another instance took away before the event was committed.
    ///
    /// # Errors
    /// Those of [`App::recheck`].
    pub(crate) async fn recheck_at(&self, caller: &Caller, accounts: i64) -> Result<()> {
        self.identities.follow(accounts);
        let generation = self.identities.generation();
        let is_of_now = |stamp: &Stamp| stamp.generation.load(Ordering::Acquire) == generation;
        // Without a version, no other instance has changed accounts.
        if accounts == 0 || caller.basis.was_checked(is_of_now) { Ok(()) } else { self.recheck(caller).await }
    }

    /// Resolves when the caller has lost a right or their identity. The result is the reason.
    pub(crate) async fn lost(&self, caller: &Caller) -> Error {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            match self.recheck(caller).await {
                Ok(()) => {}
                Err(error) if matches!(error.code, Code::Unauthorized | Code::Forbidden | Code::KeySuspended) => return error,
                // The database may not answer for a moment. The next round tries again.
                Err(_) => {}
            }
        }
    }

    /// The identity that the same credential has now.
    async fn identity_again(&self, connection: &mut Connection, identity: &Identity) -> Result<Identity> {
        let (now, generation) = (self.clock.now(), self.identities.generation());
        match &identity.credential {
            Credential::ApiKey(key) => {
                let holder = connection.api_key_of_id(&key.id).await?;
                let holds = |expires_at: Option<i64>| expires_at.is_none_or(|expires_at| expires_at > now);
                let holder = holder.filter(|holder| !holder.user.banned && holds(holder.key.expires_at));
                let holder = holder.ok_or_else(|| ended("The API key is invalid, has expired or was deleted."))?;
                let maker = self.rights_of_maker_in(connection, &holder.key.maker).await?;
                self.identity_of_key_holder(holder, &maker, now, generation)
            }
            Credential::Session { row, .. } => {
                let gone = || ended("The session token is not valid, or the session has ended. Sign in again.");
                // An empty id means that the service acts for a maker, without a session.
                let (user, roles) = match row.id.is_empty() {
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
                let public = public_role(connection).await?;
                self.identity_of_user(user, roles, public.as_ref(), now, generation)
            }
        }
    }
}
