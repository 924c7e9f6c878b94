//! Webhooks, subscriptions, tasks and blocks need rights of their maker. They stop when the maker loses such a right, and show
//! the reason. They continue when the maker has the right again, or when somebody who has it adopts them.
//!
//! Rights are checked at each use ([`App::delivery_check`], [`App::block_caller`], a task's run). The stored suspension is only
//! for display. It is updated in the background, and when a caller is about to see it after a change.

use std::collections::HashMap;

use blockbase_schema::time::MINUTE_MS;
use blockbase_schema::{Error, Resource, Result};
use blockbase_store::{Connection, Maker, ReadCost, Service, Suspension, SuspensionReason, Thing, ThingKind};
use serde_json::json;

use crate::App;
use crate::access::makers::{explain, keep_maker, suspend};
use crate::base::answer::MakerAnswer;
use crate::caller::Caller;
use crate::caller::maker_rights::MakerRights;
use crate::outbox::audit::{Act, AuditAction};
use crate::outbox::platform_event::Announcer;
use crate::state::RightsSettled;
use crate::state::acts_later::SuspensionCheck;
use crate::state::identity_cache::KEPT_MS;

/// How often suspensions are updated even if no account changed on this instance. Another instance may have ended before it
/// updated them.
const SETTLED_ANYWAY_MS: i64 = MINUTE_MS;

/// The reason why a thing stops, given the rights of its maker. `None` if it does not stop.
pub(crate) fn reason(rights: &MakerRights, needs: impl FnOnce(&Caller) -> Result<()>) -> Option<SuspensionReason> {
    match rights {
        MakerRights::Unlimited => None,
        MakerRights::Suspended(reason) => Some(*reason),
        MakerRights::Held(_) => match rights.caller() {
            Some(caller) if needs(&caller).is_ok() => None,
            _ => Some(SuspensionReason::RightsLost),
        },
    }
}

/// A sentence for readers of the ledger or of an error, which says why a thing stopped.
pub(crate) fn stopped(what: &str, reason: SuspensionReason) -> String {
    format!("The {what} is suspended: {}. Somebody who holds the rights that it needs can adopt it.", explain(reason))
}

/// The current rights of the makers of many things. Each maker is looked up once.
#[derive(Default)]
struct RightsOfMakers(HashMap<Maker, MakerRights>);

impl RightsOfMakers {
    async fn rights(&mut self, app: &App, connection: &mut Connection, maker: &Maker) -> Result<MakerRights> {
        if let Some(known) = self.0.get(maker) {
            return Ok(known.clone());
        }
        let rights = app.rights_of_maker_in(connection, maker).await?;
        self.0.insert(maker.clone(), rights.clone());
        Ok(rights)
    }
}

impl App {
    /// All things that act later, each with its kind.
    async fn suspension_checks(&self, connection: &mut Connection) -> Result<Vec<(ThingKind, SuspensionCheck)>> {
        let mut things = Vec::new();
        for acts_later in self.acts_later {
            let checks = acts_later.list(connection).await?;
            things.extend(checks.into_iter().map(|thing| (acts_later.kind(), thing)));
        }
        Ok(things)
    }

    /// Updates the stored suspensions to the current rights of the makers, if something changed since the last time. The event of
    /// each suspension is emitted once, by the first instance that notices it.
    pub async fn settle_rights(&self) -> Result<()> {
        if self.rights_are_settled(SETTLED_ANYWAY_MS) {
            return Ok(());
        }
        self.settle_rights_once(&Caller::system(), SETTLED_ANYWAY_MS).await
    }

    /// Updates the suspensions for a caller who is about to see them. The update counts as a scan of that caller. Returns whether
    /// there was one. A failure is only logged, and the stored suspensions are shown: a read does not fail because of a write.
    pub(crate) async fn settle_rights_shown(&self, caller: &Caller) -> bool {
        // Other instances change accounts too, and this instance may not have noticed it.
        let age_max = if self.is_shared() { KEPT_MS } else { SETTLED_ANYWAY_MS };
        if self.rights_are_settled(age_max) {
            return false;
        }
        let settled = self.settle_rights_once(caller, age_max).await;
        if let Err(error) = &settled {
            tracing::warn!(error.cause = %error, "suspensions could not be refreshed; the stored ones are shown");
        }
        settled.is_ok()
    }

    fn rights_are_settled(&self, age_max: i64) -> bool {
        let (settled, now) = (*self.rights_settled.lock(), self.clock.now());
        settled.generation == self.identities.generation()
            && settled.blocks == *self.blocks_version.lock()
            && settled.schema == self.registry.read().version
            && (0..age_max).contains(&(now - settled.at))
            && now < settled.holds_until
    }

    /// Checks all things that have a maker. If several callers ask at the same time, one of them checks and the others wait.
    async fn settle_rights_once(&self, caller: &Caller, age_max: i64) -> Result<()> {
        let _turn = self.settling_rights.lock().await;
        if self.rights_are_settled(age_max) {
            return Ok(());
        }
        // The permit is only taken now, because callers who wait for the turn must not occupy places for scans.
        let _permit = self.scan_permit(caller).await?;
        // Read before the check, so that the next check notices a change during this one.
        let (generation, blocks, at) = (self.identities.generation(), *self.blocks_version.lock(), self.clock.now());
        let schema = self.registry.read().version;
        let holds_until = self.settle_rights_now().await?;
        *self.rights_settled.lock() = RightsSettled { generation, blocks, schema, at, holds_until };
        Ok(())
    }

    /// Returns when the next key expires that a thing depends on. This also runs while the disk is nearly full: a suspension is a
    /// small write, and reads wait for it.
    async fn settle_rights_now(&self) -> Result<i64> {
        let app = self.itself()?;
        let (things, holds_until) = self
            .store
            .read_as_service(ReadCost::Scan, move |connection| {
                Box::pin(async move {
                    let (mut makers, mut differing, mut holds_until) = (RightsOfMakers::default(), Vec::new(), i64::MAX);
                    let registry = app.registry_in(connection).await?;
                    for (kind, thing) in app.suspension_checks(connection).await? {
                        let rights = makers.rights(&app, connection, &thing.maker).await?;
                        holds_until = holds_until.min(rights.holds_until());
                        if reason(&rights, |maker| (thing.needs)(&app, &registry, maker)) != thing.stored {
                            differing.push((kind, thing.id));
                        }
                    }
                    Ok((differing, holds_until))
                })
            })
            .await?;
        if things.is_empty() {
            return Ok(holds_until);
        }
        let (app, announcer, now) = (self.itself()?, self.announcer(&Caller::system()), self.clock.now());
        self.store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    let mut makers = RightsOfMakers::default();
                    let registry = app.registry_in(connection).await?;
                    for (kind, thing) in app.suspension_checks(connection).await? {
                        if things.contains(&(kind, thing.id.clone())) {
                            let rights = makers.rights(&app, connection, &thing.maker).await?;
                            let actual = reason(&rights, |maker| (thing.needs)(&app, &registry, maker));
                            if actual != thing.stored {
                                settle_thing(connection, &announcer, kind, &thing.id, actual, now).await?;
                            }
                        }
                    }
                    Ok(())
                })
            })
            .await?;
        Ok(holds_until)
    }

    /// Makes the caller the maker of a webhook, a subscription, a task or a block, so that it acts with the caller's rights. A
    /// block's webhooks and subscriptions are adopted with it.
    ///
    /// # Errors
    /// `not_found`. `forbidden` if the thing needs a right that the caller lacks, or if somebody else made it and it would do less
    /// with the rights of the caller; then nothing changes. `conflict` if a block declared the thing, or if it is a task of the
    /// service.
    pub(crate) async fn adopt(&self, caller: &Caller, kind: ThingKind, id: &str) -> Result<()> {
        let (maker, app, caller) = (caller.maker(), self.itself()?, caller.clone());
        let thing = Thing { kind, id: id.to_owned(), name: None };
        let auditor = self.auditor(&caller);
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    keep_maker(connection, &maker).await?;
                    if kind == ThingKind::Block {
                        connection.raise_version("blocks").await?;
                    }
                    connection.raise_version("subscriptions").await?;
                    let before = connection.maker_of(kind, &thing.id).await?;
                    let mut things = vec![thing.clone()];
                    things.extend(app.kind_of(kind)?.adopted(connection, &thing.id).await?);
                    for thing in &things {
                        app.require_carried(connection, &caller, thing).await?;
                        if !connection.set_maker(thing.kind, &thing.id, &maker).await? {
                            return Err(Error::not_found("block"));
                        }
                    }
                    let act = Act::new(AuditAction::Adopt, resource_of(kind), &thing.id);
                    let made_by = |maker: &Maker| json!({ "madeBy": MakerAnswer::of(maker) });
                    auditor.record(connection, act.before(&before.as_ref().map(made_by)).after(&made_by(&maker))).await
                })
            })
            .await?;
        match kind {
            ThingKind::Block => self.refresh().await,
            _ => self.refresh_subscriptions().await,
        }
    }
}

/// The resource that gates the things of a kind.
fn resource_of(kind: ThingKind) -> Resource {
    match kind {
        ThingKind::ApiKey => Resource::ApiKeys,
        ThingKind::Webhook => Resource::Webhooks,
        ThingKind::Subscription => Resource::Events,
        ThingKind::Task => Resource::Tasks,
        ThingKind::Block => Resource::Blocks,
    }
}

/// Stores the reason why a thing stops, or that it continues.
async fn settle_thing(
    connection: &mut Connection,
    announcer: &Announcer,
    kind: ThingKind,
    id: &str,
    actual: Option<SuspensionReason>,
    now: i64,
) -> Result<()> {
    match actual {
        Some(reason) => suspend(connection, announcer, kind, id, Suspension { reason, since: now }).await,
        None => connection.end_suspension(kind, id).await.map(|_| ()).map_err(Error::from),
    }
}
