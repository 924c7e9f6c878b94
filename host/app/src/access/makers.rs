//! Makers: the rights of a thing are checked when the thing uses them, not when it is made.
//!
//! An API key, webhook, subscription, task or block is a thing with a [`Maker`]: the principal of the request that made it. This
//! is a user, and the API key if the request used one. The thing never does more than its maker may do now.
//!
//! A kind of thing uses this in five steps:
//!
//! 1. **Store.** Its table has the columns `made_by_user`, `made_by_key`, `suspended_reason` and `suspended_at` (a task has its
//!    maker in `user_id` and `api_key_id`), and `ThingKind::ALL` in `store` lists the kind. Then four features work for it: its
//!    things keep their maker from being deleted, they can be handed over, a guest's upgrade takes them along, and they are
//!    suspended if their maker is.
//! 2. **Make.** [`Caller::maker`] is the maker to store. [`keep_maker`] comes first in the transaction that stores it, so that
//!    the maker is not deleted or banned between the check and the commit. A request without a credential has the rights of the
//!    role `public`, and so has everything that it makes.
//! 3. **Use.** Call [`App::rights_of_maker`] at every use. Its result is cached like identities until accounts change, so that a
//!    delivery costs no query. [`MakerRights::Unlimited`]: no maker is recorded, and the thing keeps its rights.
//!    [`MakerRights::Held`]: do nothing that [`MakerRights::caller`] may not do. If a thing has rights of its own, limit them
//!    with `Permissions::limited_to(caller.rights())`. [`MakerRights::Suspended`]: do nothing at all.
//! 4. **Stop.** If a maker is deleted or banned, the same transaction suspends the thing ([`settle`]), with its event. If a maker
//!    lacks a right that the thing needs, the code that notices this calls [`suspend`] with `SuspensionReason::RightsLost`. It
//!    calls [`Connection::end_suspension`] when the maker has the right again. `SuspensionAnswer` shows it.
//! 5. **Adopt.** [`App::require_carried`] requires that a caller has the rights that the thing needs. Then
//!    `Connection::set_maker` makes the caller its maker, which ends its suspension. From then on the thing does what this maker
//!    may do. So if the thing could do less without anybody noticing, somebody else than its maker ([`has_made`]) needs its rights
//!    without a condition.
//!
//! For 4 and 5 each kind implements [`ActsLater`](crate::state::acts_later::ActsLater) in its own file.

use std::borrow::Cow;
use std::sync::Arc;

use blockbase_query::{Grant, GrantContext, Permissions, Variables};
use blockbase_schema::{Code, Error, Hint, Result};
use blockbase_store::{
    Connection, KeyHolder, Maker, MakerPart, ReadCost, RoleRow, Service, Suspension, SuspensionReason, Thing, ThingKind, UserRow,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::App;
use crate::access::identity::{grants, public_role};
use crate::base::topic::Topic;
use crate::caller::check_basis::CheckedRights;
use crate::caller::identity::Identity;
use crate::caller::maker_rights::MakerRights;
use crate::caller::{Authority, Caller};
use crate::outbox::platform_event::Announcer;
use crate::state::acts_later::StoredThing;

/// The maximum number of keys between a thing and the user whose rights it has in the end. There can be several, because a key
/// can make another key.
pub(crate) const CHAIN_MAX: usize = 8;
/// A chain with more keys than this gives no rights. The chains of the things that a key made can become longer than
/// [`CHAIN_MAX`] when somebody adopts the key.
const CHAIN_READ_MAX: usize = 32;
/// The number of expired keys that one transaction handles.
const EXPIRED_AT_ONCE: i64 = 100;
/// The maximum number of things that an error lists.
const LISTED_MAX: usize = 100;

/// The reason as a clause for a sentence about the thing.
pub(crate) fn explain(reason: SuspensionReason) -> &'static str {
    match reason {
        SuspensionReason::MakerGone => "the user who made it was deleted",
        SuspensionReason::MakerBanned => "the user who made it is banned",
        SuspensionReason::KeyGone => "the API key that made it was deleted",
        SuspensionReason::KeyExpired => "the API key that made it has expired",
        SuspensionReason::KeySuspended => "the API key that made it is suspended",
        SuspensionReason::RightsLost => "its maker no longer holds the rights that it needs",
    }
}

impl Caller {
    /// The maker to record for things that this caller makes. Nobody, if the server checks no permissions at all.
    pub(crate) fn maker(&self) -> Maker {
        match self.principal.actor() {
            Some(actor) => Maker { user_id: actor.user_id.clone(), api_key_id: actor.api_key_id.clone() },
            None if self.rights().is_unrestricted() => Maker::default(),
            None => Maker::public(),
        }
    }

    /// The caller's own rights. For a block, these are the rights that it was granted for itself.
    pub(crate) fn rights(&self) -> &Arc<Permissions> {
        match &self.authority {
            Authority::Own(permissions) => permissions,
            Authority::Block { plain, .. } => plain,
        }
    }
}

/// The state of a maker in the database.
enum Found {
    /// The keys from the thing upwards, and the end of the chain.
    Held(Vec<KeyHolder>, Box<Root>),
    Suspended(SuspensionReason),
}

/// Where a chain of makers ends.
enum Root {
    /// The last key has no maker.
    Nobody,
    /// A request without a credential: the role that everybody has.
    Public(Option<RoleRow>),
    /// A user with their roles, and the role that everybody has.
    User(UserRow, Vec<RoleRow>, Option<RoleRow>),
}

async fn find(connection: &mut Connection, maker: &Maker, now: i64) -> Result<Found> {
    let (mut keys, mut next) = (Vec::new(), maker.clone());
    loop {
        let is_first = keys.is_empty();
        // If the reason lies further up the chain of makers, it counts here as a suspended key.
        let stopped = |reason| Ok(Found::Suspended(if is_first { reason } else { SuspensionReason::KeySuspended }));
        let user = match &next.user_id {
            None => None,
            Some(id) if id == Maker::PUBLIC => {
                return Ok(Found::Held(keys, Box::new(Root::Public(public_role(connection).await?))));
            }
            Some(id) => match connection.user(id).await? {
                None => return stopped(SuspensionReason::MakerGone),
                Some(user) if user.banned => return stopped(SuspensionReason::MakerBanned),
                Some(user) => Some(user),
            },
        };
        let Some(id) = next.api_key_id else {
            let Some(user) = user else { return Ok(Found::Held(keys, Box::new(Root::Nobody))) };
            let (roles, public) = (connection.roles_of(&user.id).await?, public_role(connection).await?);
            return Ok(Found::Held(keys, Box::new(Root::User(user, roles, public))));
        };
        let Some(holder) = connection.api_key_of_id(&id).await? else { return stopped(SuspensionReason::KeyGone) };
        if holder.key.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return stopped(SuspensionReason::KeyExpired);
        }
        if holder.user.banned || keys.len() >= CHAIN_READ_MAX {
            return stopped(SuspensionReason::KeySuspended);
        }
        next = holder.key.maker.clone();
        keys.push(holder);
    }
}

impl App {
    /// The rights of a maker now. A user has the rights of their roles. A key has the rights of its role, limited to those of its
    /// own maker, and so on up to a user, or to a key without a maker.
    pub(crate) async fn rights_of_maker(&self, maker: &Maker) -> Result<MakerRights> {
        self.kept_rights_of_maker(maker).await.map(|(rights, _)| rights)
    }

    /// Returns the same rights, and the time at which they were read.
    pub(crate) async fn kept_rights_of_maker(&self, maker: &Maker) -> Result<(MakerRights, i64)> {
        let now = self.clock.now();
        if maker.is_nobody() {
            return Ok((MakerRights::Unlimited, now));
        }
        if let Some(kept) = self.identities.maker(maker, now) {
            return Ok(kept);
        }
        let generation = self.identities.generation();
        let sought = maker.clone();
        let found = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| Box::pin(async move { find(connection, &sought, now).await }))
            .await?;
        let rights = self.rights_of_found(found, now, generation)?;
        self.identities.keep_maker(maker.clone(), rights.clone(), now, generation);
        Ok((rights, now))
    }

    /// Does the same as [`App::rights_of_maker`], with the accounts that the transaction of `connection` sees.
    pub(crate) async fn rights_of_maker_in(&self, connection: &mut Connection, maker: &Maker) -> Result<MakerRights> {
        let (now, generation) = (self.clock.now(), self.identities.generation());
        if maker.is_nobody() {
            return Ok(MakerRights::Unlimited);
        }
        let found = find(connection, maker, now).await?;
        self.rights_of_found(found, now, generation)
    }

    fn rights_of_found(&self, found: Found, now: i64, generation: u64) -> Result<MakerRights> {
        let (keys, root) = match found {
            Found::Suspended(reason) => return Ok(MakerRights::Suspended(reason)),
            Found::Held(keys, root) => (keys, root),
        };
        let held = |identity: Identity| MakerRights::Held(Box::new(Caller::of_identity(Arc::new(identity))));
        let mut maker = match *root {
            Root::Nobody => MakerRights::Unlimited,
            Root::Public(role) => {
                let rights = CheckedRights::new(self.permissions(&role, Variables::default())?, generation, now);
                MakerRights::Held(Box::new(Caller::anonymous(Arc::new(rights))))
            }
            Root::User(user, roles, public) => held(self.identity_of_user(user, roles, public.as_ref(), now, generation)?),
        };
        for holder in keys.into_iter().rev() {
            maker = held(self.identity_of_key_holder(holder, &maker, now, generation)?);
        }
        Ok(maker)
    }

    /// Suspends the things that were made with keys that have expired since the last call. Rights do not depend on this call. It
    /// only makes the suspension visible and emits its event.
    pub async fn settle_expired_keys(&self) -> Result<()> {
        let now = self.clock.now();
        let announcer = self.announcer(&Caller::system());
        let expired = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.expired_makers(now, EXPIRED_AT_ONCE).await?) })
            })
            .await?;
        if expired.is_empty() {
            return Ok(());
        }
        self.change_accounts(Service, move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                for id in expired {
                    settle(connection, &announcer, MakerPart::ApiKey(id), now).await?;
                }
                Ok(())
            })
        })
        .await
    }
}

/// The grants that the caller needs to make or adopt a key with this role. If the key acts as another user, its grants for own
/// rows apply to that user's rows. So the caller needs these grants for all rows. The same goes for a condition that depends on
/// the caller. What a grant of the role does not give, nobody needs.
pub(crate) fn carried_by_role(grant_context: &GrantContext<'_>, role: &RoleRow, is_own: bool) -> Result<Vec<Grant>> {
    let stored = grants(&role.permissions)?;
    // This comes first, because a grant without its conditions could give more.
    let given = stored.iter().filter_map(|grant| grant_context.given_by(grant)).map(Cow::into_owned);
    Ok(match is_own {
        true => given.collect(),
        false => given.map(Grant::for_all).collect(),
    })
}

/// The keys between a thing and the end of its chain of makers, the nearest first. The end is a user, or a key without a maker.
pub(crate) async fn chain_of(connection: &mut Connection, maker: &Maker) -> Result<Vec<String>> {
    let (mut chain, mut next) = (Vec::new(), maker.api_key_id.clone());
    while let Some(id) = next.filter(|_| chain.len() <= CHAIN_READ_MAX) {
        next = connection.api_key_of_id(&id).await?.and_then(|holder| holder.key.maker.api_key_id);
        chain.push(id);
    }
    Ok(chain)
}

/// A thing that sends events.
pub(crate) trait SendsEvents: StoredThing {
    /// Requires from a caller the rights that a change of the thing needs.
    ///
    /// # Errors
    /// `forbidden`, which names the right that the caller lacks.
    fn may_change(&self, caller: &Caller) -> Result<()>;

    /// Requires the rights that a caller needs to become the maker of the thing. If somebody else made it, these are the rights for
    /// a change: with fewer rights than its maker has, it would send less, and nobody would notice.
    ///
    /// # Errors
    /// `forbidden`, which names the right that the caller lacks.
    async fn may_adopt(&self, app: &App, connection: &mut Connection, caller: &Caller) -> Result<()> {
        match has_made(connection, caller, &self.maker()).await? {
            true => self.needs(app, caller),
            false => self.may_change(caller),
        }
    }
}

/// Whether the caller made the things of `maker`: itself, or as a session with keys that act as this user and that this user made.
///
/// A key that somebody else made for the user, or that has no maker, may have more rights than the user. So its things are not the
/// user's. The same goes for a key that was deleted, because its maker is not known any more. A key is not its user, because it may
/// have fewer rights.
pub(crate) async fn has_made(connection: &mut Connection, caller: &Caller, maker: &Maker) -> Result<bool> {
    if caller.maker() == *maker {
        return Ok(true);
    }
    let mut next = maker.clone();
    for _ in 0..=CHAIN_READ_MAX {
        if !next.user_id.as_deref().is_some_and(|user_id| caller.is_session_of(user_id)) {
            return Ok(false);
        }
        let Some(id) = next.api_key_id else { return Ok(true) };
        let Some(holder) = connection.api_key_of_id(&id).await? else { return Ok(false) };
        next = holder.key.maker;
    }
    Ok(false)
}

/// Raises the versions of the data about these things that every instance keeps in memory, because their makers change.
///
/// Call it before any of the things is locked. Every other change of them raises the version first, so that no two changes wait
/// for each other.
pub(crate) async fn raise_versions_of(connection: &mut Connection, things: &[Thing]) -> Result<()> {
    if things.iter().any(|thing| thing.kind == ThingKind::Block) {
        connection.raise_version("blocks").await?;
    }
    if things.iter().any(|thing| matches!(thing.kind, ThingKind::Webhook | ThingKind::Subscription)) {
        connection.raise_version("subscriptions").await?;
    }
    Ok(())
}

/// Checks that a maker exists and is not banned. The maker is neither deleted nor banned until the transaction ends.
///
/// # Errors
/// `unauthorized` if the maker was deleted or banned since the request began; `key_suspended`.
pub(crate) async fn keep_maker(connection: &mut Connection, maker: &Maker) -> Result<()> {
    let gone = || Error::new(Code::Unauthorized, "The account or the API key of this request was deleted or banned meanwhile.");
    if let Some(id) = maker.user_id.as_deref().filter(|id| *id != Maker::PUBLIC) {
        let stays = connection.keep_user(id).await? && connection.user(id).await?.is_some_and(|user| !user.banned);
        if !stays {
            return Err(gone());
        }
    }
    if let Some(id) = &maker.api_key_id {
        if !connection.keep_api_key(id).await? {
            return Err(gone());
        }
        let holder = connection.api_key_of_id(id).await?.ok_or_else(gone)?;
        if let Some(suspension) = holder.key.suspension {
            return Err(key_suspended(suspension.reason));
        }
    }
    Ok(())
}

/// The error for a request with a suspended key.
pub(crate) fn key_suspended(reason: SuspensionReason) -> Error {
    Error::new(Code::KeySuspended, format!("This API key is suspended: {}.", explain(reason))).with_hint(Hint::AdoptKey)
}

/// Updates the stored suspensions of the things that `part` made to the state of `part`. Does the same for the things that its
/// keys made, and so on. Emits an event for each thing that it suspends.
///
/// Each transaction that deletes, bans or unbans a user, or that deletes or adopts a key, has to call it.
pub(crate) async fn settle(connection: &mut Connection, announcer: &Announcer, part: MakerPart, now: i64) -> Result<()> {
    let mut parts = vec![part];
    while let Some(part) = parts.pop() {
        for kind in ThingKind::ALL {
            for unsettled in connection.unsettled(kind, &part, now).await? {
                let id = unsettled.thing.id;
                match unsettled.actual {
                    Some(reason) => {
                        let expired_at = unsettled.expired_at.filter(|_| reason == SuspensionReason::KeyExpired);
                        let suspension = Suspension { reason, since: expired_at.unwrap_or(now) };
                        suspend(connection, announcer, kind, &id, suspension).await?;
                    }
                    None => {
                        connection.end_suspension(kind, &id).await?;
                    }
                }
                if kind == ThingKind::ApiKey && unsettled.stored.is_some() != unsettled.actual.is_some() {
                    parts.push(MakerPart::ApiKey(id));
                }
            }
        }
    }
    Ok(())
}

/// Suspends a thing and emits the event if the thing was not suspended before. A thing that is already suspended only gets the
/// new reason.
pub(crate) async fn suspend(
    connection: &mut Connection,
    announcer: &Announcer,
    kind: ThingKind,
    id: &str,
    suspension: Suspension,
) -> Result<()> {
    if connection.suspend(kind, id, suspension).await? {
        announcer.emit(connection, Topic::suspended(kind, id, suspension.reason)).await?;
    }
    Ok(())
}

/// Refuses to adopt a thing that a block declared. It is adopted together with the block.
///
/// # Errors
/// `conflict`.
pub(crate) fn declared_by_none(source: Option<&String>) -> Result<()> {
    match source {
        None => Ok(()),
        Some(_) => Err(Error::new(Code::Conflict, "A block declared this. Adopt the block to adopt this too.")),
    }
}

// One of the user's things, as listed in the refusal to delete the user.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct OwnedThing<'a> {
    #[schemars(extend("enum" = ThingKind::ALL.map(ThingKind::name)))]
    resource: &'static str,
    id: &'a str,
    name: Option<&'a str>,
}

/// The refusal to delete a user who made something.
pub(crate) fn owns_things(things: &[Thing]) -> Error {
    let listed = things.iter().take(LISTED_MAX);
    let list: Vec<OwnedThing<'_>> =
        listed.map(|thing| OwnedThing { resource: thing.kind.name(), id: &thing.id, name: thing.name.as_deref() }).collect();
    let message = format!(
        "This user made {} that would be without a maker.",
        match things.len() {
            1 => "1 thing".to_owned(),
            more => format!("{more} things"),
        }
    );
    let mut error = Error::new(Code::OwnsThings, message).with_hint(Hint::HandOver);
    error.details = Some(Box::new(("things", json!(list))));
    error
}
