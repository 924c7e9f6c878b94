//! Guests: users without a password. When they sign up or sign in, their records and roles move to that account.
//!
//! One transaction changes the stamps of 500 records, and later ones change the rest. With 200,000 records, a single transaction made
//! others wait for 2 seconds.

use std::collections::HashSet;
use std::sync::Arc;

use blockbase_quota::QuotaOwner;
use blockbase_schema::{Error, Registry, Result, Retry};
use blockbase_store::{Connection, ReadCost, Service, ThingKind, UserRow};

use super::types::{ANONYMOUS, SignedIn, UserAnswer};
use crate::App;
use crate::access::makers::raise_versions_of;
use crate::access::quota::InTurnOf;
use crate::accounts::removal::{detach_user, move_references, remove_person, remove_user};
use crate::base::topic::{NewUserMembers, Topic, UserMembers};
use crate::caller::client::{AuthProblem, Client};
use crate::caller::{Caller, Credentials};
use crate::outbox::platform_event::Announcer;
use crate::outbox::record_events::WriteContext;
use crate::records::stamps::{Restamped, restamp};

/// The name of every guest.
const GUEST_NAME: &str = "Anonymous";
/// The number of guests that one query looks for.
const GUESTS_AT_ONCE: i64 = 200;
/// The number of records whose stamps one transaction changes. It may change up to twice as many.
const STAMPS_AT_ONCE: usize = 500;
/// The number of guests whose records one query looks for.
const CARRY_OVERS_AT_ONCE: i64 = 100;

/// How a guest becomes a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upgrade {
    /// The guest signs up, and the guest's API keys act as the new user.
    SignUp,
    /// The guest signs in to an existing account. Somebody else may have given them the guest's session, with keys or webhooks
    /// that would then act as that account. So the guest's keys are deleted, and the things that the guest made are suspended.
    SignIn,
}

/// Moves everything that the guest `from` had to the user `to`, and deletes the guest. If two requests try this at the same time,
/// one succeeds. The other gets `false`. The caller of this function has locked the accounts before anything else, and calls
/// [`App::follow_carry_over`] after the commit.
///
/// If the guest has many records, the remaining stamps are changed after the commit, in several transactions
/// ([`App::follow_carry_over`]). Otherwise other callers would have to wait until all of them are changed.
///
/// The user gets the guest's stamps, and the guest's roles except the role of guests. The user gets the guest's preferences if
/// they have none. On sign-up the user also gets the guest's API keys, and the things that the guest made. Past events do not
/// change.
pub(super) async fn carry_over(
    connection: &mut Connection,
    context: &mut WriteContext,
    announcer: &Announcer,
    (from, to): (&str, &str),
    upgrade: Upgrade,
    now: i64,
) -> Result<bool> {
    let registry = Arc::clone(&context.registry);
    // From here on no write of the guest commits, because each of these writes locks its user.
    let guest = connection.held_user(from).await?.filter(|user| user.is_anonymous && !user.banned);
    let Some(guest) = guest else { return Ok(false) };
    if connection.version("schema").await? != registry.version {
        return Err(Error::retry(Retry::SchemaMoved, "the schema is another by now"));
    }
    if upgrade == Upgrade::SignUp {
        let things = connection.things_made_by(&guest.id).await?;
        raise_versions_of(connection, &things).await?;
    }
    if !restamp_some(connection, &registry, &guest.id, to).await? {
        connection.insert_carry_over(&guest.id, to).await?;
    }
    move_references(connection, &registry, &guest.id, to).await?;
    detach_user(connection, context, &guest.id).await?;
    if let Some(role) = connection.role_named(ANONYMOUS).await? {
        connection.move_roles(&guest.id, to, &role.id).await?;
    }
    if upgrade == Upgrade::SignUp {
        connection.move_api_keys(&guest.id, to).await?;
        for kind in ThingKind::ALL {
            connection.move_makership(kind, &guest.id, to).await?;
        }
    }
    connection.copy_preferences(&guest.id, to).await?;
    // On sign-in this deletes the guest's keys, and suspends the things that the guest made, until somebody adopts it. The person
    // is still there, so the audit log keeps what it shows about the guest.
    remove_user(connection, announcer, &guest.id, now).await
}

/// Moves some of the records that `from` created or updated to `to`. Returns whether these were all.
async fn restamp_some(connection: &mut Connection, registry: &Registry, from: &str, to: &str) -> Result<bool> {
    let mut left = STAMPS_AT_ONCE;
    for object in registry.objects() {
        let Restamped { changed, has_rest } = restamp(connection, object, (from, Some(to)), left).await?;
        left = left.saturating_sub(usize::try_from(changed).unwrap_or(usize::MAX));
        if left == 0 || has_rest {
            return Ok(false);
        }
    }
    Ok(true)
}

impl App {
    /// The id of the guest, if the credentials show the session of a guest.
    pub(super) async fn guest_of(&self, credentials: &Credentials) -> Result<Option<String>> {
        let found = self.identify(credentials).await?;
        let guest = found.filter(|identity| identity.session().is_some() && identity.user.is_anonymous);
        Ok(guest.map(|identity| identity.user.id.clone()))
    }

    /// The work after the commit in which a guest became a user: the rest of the guest's records, and the caches in memory. The
    /// user is signed in already, so failures are only logged. [`App::finish_carry_overs`] and the next comparison with the
    /// database do the rest later.
    pub(super) async fn follow_carry_over(&self, user_id: &str) {
        if let Err(error) = self.refresh().await {
            tracing::warn!(error.cause = %error, "the new owner of a guest's things could not be loaded; the next comparison loads it");
        }
        let finished = match self.itself() {
            // The task continues if the client disconnects.
            Ok(app) => {
                let user_id = user_id.to_owned();
                let finish = tokio::spawn(async move { app.finish_carry_overs_of(Some(&user_id)).await });
                finish.await.unwrap_or_else(|error| Err(Error::internal(error)))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = finished {
            tracing::warn!(error.cause = %error, "not all records of a guest are the user's yet; it is tried again");
        }
    }

    /// Gives the records of guests to their users, if an upgrade ended before this was done.
    ///
    /// # Errors
    /// Errors of the database. The next call does the rest.
    pub async fn finish_carry_overs(&self) -> Result<()> {
        self.finish_carry_overs_of(None).await
    }

    /// Does the same for one user, or for all.
    pub(crate) async fn finish_carry_overs_of(&self, user_id: Option<&str>) -> Result<()> {
        let (is_of_one, mut has_failed) = (user_id.is_some(), false);
        loop {
            let user_id = user_id.map(str::to_owned);
            let pending = self
                .store
                .read_as_service(ReadCost::Rows, move |connection| {
                    Box::pin(async move { Ok(connection.carry_overs(user_id.as_deref(), CARRY_OVERS_AT_ONCE).await?) })
                })
                .await?;
            if pending.is_empty() {
                return Ok(());
            }
            for (guest, user) in pending {
                if let Err(error) = self.carry_over_all(&guest, &user).await {
                    if is_of_one {
                        return Err(error);
                    }
                    tracing::warn!(error.cause = %error, guest.id = guest, "records of a guest are not the user's yet; it is tried again");
                    has_failed = true;
                }
            }
            if has_failed {
                return Ok(());
            }
        }
    }

    async fn carry_over_all(&self, guest: &str, user: &str) -> Result<()> {
        while !self.carry_over_some(guest, user).await? {}
        Ok(())
    }

    /// Runs one transaction of the carry-over, in the user's turn. Returns whether it was the last one.
    async fn carry_over_some(&self, guest: &str, user: &str) -> Result<bool> {
        self.on_schema(&Caller::system(), move |registry| async move {
            let (guest, user) = (guest.to_owned(), user.to_owned());
            self.store
                .write_in_reserve(InTurnOf(QuotaOwner::User(user.as_str().into())), move |connection| {
                    Box::pin(async move {
                        if connection.version("schema").await? != registry.version {
                            return Err(Error::retry(Retry::SchemaMoved, "the schema is another by now"));
                        }
                        // Another instance may do the same work. If it has finished, nothing is left to do here.
                        if !connection.held_carry_over(&guest).await? {
                            return Ok(true);
                        }
                        let is_over = restamp_some(connection, &registry, &guest, &user).await?;
                        if is_over {
                            connection.delete_carry_over(&guest).await?;
                        }
                        Ok(is_over)
                    })
                })
                .await
        })
        .await
    }

    /// Creates a guest and signs them in.
    ///
    /// # Errors
    /// If guests are off, or if the caller is already a guest.
    pub async fn sign_in_as_guest(&self, client: Client) -> Result<SignedIn, AuthProblem> {
        if !self.settings.anonymous_auth {
            return Err(AuthProblem::GuestsOff);
        }
        if self.guest_of(&client.credentials).await?.is_some() {
            return Err(AuthProblem::GuestAlready);
        }
        let now = self.clock.now();
        let id = self.clock.id(now).to_string();
        let user = UserRow {
            email: format!("temp-{id}@{}", self.settings.public_host),
            id,
            name: GUEST_NAME.to_owned(),
            email_verified: false,
            image: None,
            is_anonymous: true,
            banned: false,
            created_at: now,
            updated_at: now,
        };
        let (session, token) = self.new_session(&user.id, true, &client)?;
        let announcer = self.announcer(&App::as_user(&user.id));
        let answer = UserAnswer::from(&user);
        self.store
            .write(Service, move |connection| {
                Box::pin(async move {
                    if !connection.insert_user(&user, None).await? {
                        return Err(Error::internal("a guest's placeholder address is taken"));
                    }
                    connection.give_role_named(&user.id, ANONYMOUS).await?;
                    connection.insert_session(session).await?;
                    let members = NewUserMembers { user_id: &user.id, is_anonymous: true };
                    announcer.emit(connection, Topic::UserCreated(members)).await
                })
            })
            .await?;
        Ok(SignedIn { token, user: answer, remember: true })
    }

    /// Deletes the guest who asks for it. The things that they made are suspended.
    pub async fn delete_guest(&self, credentials: &Credentials) -> Result<(), AuthProblem> {
        if !self.settings.anonymous_auth {
            return Err(AuthProblem::GuestsOff);
        }
        let identity = self.session(credentials).await?;
        if !identity.user.is_anonymous {
            return Err(AuthProblem::NoGuest);
        }
        let id = identity.user.id.clone();
        let caller = Caller::of_identity(identity);
        self.remove_guest(&caller, &id).await.map(drop)?;
        Ok(())
    }

    /// Deletes a guest, and handles dependent records as the relationships say. Returns whether there was one.
    async fn remove_guest(&self, caller: &Caller, id: &str) -> Result<bool> {
        self.removing(caller, id, || self.remove_guest_at_once(caller, id)).await
    }

    async fn remove_guest_at_once(&self, caller: &Caller, id: &str) -> Result<bool> {
        self.on_schema(caller, move |registry| async move {
            let (announcer, now, id) = (self.announcer(caller), self.clock.now(), id.to_owned());
            let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
            self.change_accounts_by(caller.basis.clone(), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    // A guest who signs up at this moment is no longer a guest.
                    if !connection.held_user(&id).await?.is_some_and(|user| user.is_anonymous) {
                        return Ok(false);
                    }
                    let is_gone = remove_person(connection, &mut context, &announcer, &id, now).await?;
                    if is_gone {
                        announcer.emit(connection, Topic::UserDeleted(UserMembers { user_id: &id })).await?;
                    }
                    Ok(is_gone)
                })
            })
            .await
        })
        .await
    }

    /// Deletes the guests who were made before `before`, with their sessions, roles and keys, and suspends the things that they
    /// made. Returns how many guests it deleted. If one guest cannot be deleted, the others still are.
    pub(crate) async fn delete_old_guests(&self, before: i64) -> Result<u64> {
        let mut deleted = 0;
        let mut failed: HashSet<String> = HashSet::new();
        loop {
            let most = GUESTS_AT_ONCE.saturating_add(i64::try_from(failed.len()).unwrap_or(i64::MAX));
            let found = self
                .store
                .read_as_service(ReadCost::Rows, move |connection| {
                    Box::pin(async move { Ok(connection.old_guests(before, most).await?) })
                })
                .await?;
            let old: Vec<String> = found.into_iter().filter(|id| !failed.contains(id)).collect();
            if old.is_empty() {
                return Ok(deleted);
            }
            for id in old {
                match self.remove_guest(&Caller::system(), &id).await {
                    Ok(true) => deleted += 1,
                    Ok(false) => drop(failed.insert(id)),
                    Err(error) => {
                        tracing::warn!(error.cause = %error, guest.id = id, "an old guest could not be deleted; it is tried again later");
                        failed.insert(id);
                    }
                }
            }
        }
    }
}
