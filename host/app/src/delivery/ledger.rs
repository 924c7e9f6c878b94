//! Deliveries: claiming, settling, listing and retrying them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::{Action, Decision, Owners, Paging, TopicFilter};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{
    ATTEMPTS_KEPT, AttemptRow, Attempted, Claim, Claimed, ClaimedDelivery, Connection, DeadWindow, GroupCounts, LedgerFilter,
    LedgerRow, Outcome, QueueDepth, ReadCost, Service, UndecidedEvents, UndecidedMax, VisibleEvents,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::App;
use crate::access::quota::ScanPermit;
use crate::base::answer::Timestamp;
use crate::caller::Caller;
use crate::delivery::feed::LOOKED_THROUGH_MAX;
use crate::delivery::retries::{ATTEMPTS_MAX, RetryPolicy};
use crate::delivery::shown::{EarlyDecision, decide_early, reads_all, topics_of_links};
use crate::outbox::audit::{Act, AuditAction, Auditor};
use crate::records::read::{PaginationAnswer, page_with};
use crate::state::routing::{MAIL_CONSUMER, Subscription, Target, WEBHOOK_CONSUMER};

/// How often the server may end during one delivery before it gives up the delivery. The first two times, the delivery still
/// runs together with others. After that, it runs as often as a delivery usually has attempts, but never together with another
/// delivery that may be the cause.
const LOST_CLAIMS_MAX: i64 = 2 + ATTEMPTS_MAX;
/// The maximum number of bytes of payloads in one claim. The first event is claimed even if it is larger.
const CLAIM_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// The maximum number of dead deliveries that one call makes due again.
pub const RESETS_MAX: u64 = 1_000_000;
/// The number of dead deliveries that one transaction looks at and makes due.
const RESETS_AT_ONCE: i64 = 2_000;
/// The events that one request looks at because their payloads decide whether their entries are shown.
const UNDECIDED_MAX: UndecidedMax = UndecidedMax { events: 500, bytes: 32 * 1024 * 1024, looked_through: LOOKED_THROUGH_MAX };
/// The maximum length of the stored error text, in characters.
const ERROR_CHARS_MAX: usize = 1000;

/// The outcome of an attempt, as the code that made it reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Delivered,
    /// No attempt was made, because the group does not get this event any more. The text is the reason.
    Skipped(String),
    /// The delivery is retried, as long as attempts are left.
    Failed(String),
    /// The delivery is not retried.
    Dead(String),
    /// The attempt was not begun.
    Released,
}

/// An attempt that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub seq: i64,
    /// The number of attempts that ended before this one.
    pub attempts: i64,
    /// The number of the attempt before this one, if that attempt is stored.
    pub last_attempt: Option<i64>,
    /// The duration of the attempt. `None` if there was no attempt.
    pub took: Option<Duration>,
    pub attempt: Attempt,
}

impl Ended {
    /// The outcome of a delivery for which no attempt was made.
    pub fn at_once(delivery: &ClaimedDelivery, attempt: Attempt) -> Ended {
        Ended { seq: delivery.seq, attempts: delivery.attempts, last_attempt: delivery.last_attempt, took: None, attempt }
    }
}

/// A claim with its token.
#[derive(Clone, Debug)]
pub struct Lease {
    pub token: String,
    pub claimed: Claimed,
}

/// The states of a delivery.
pub const DELIVERY_STATUSES: [&str; 3] = ["pending", "delivered", "failed"];

/// The delivery of one event to one consumer group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcDelivery", deny_unknown_fields)]
pub struct DeliveryAnswer {
    #[schemars(extend("format" = "uuid"))]
    event_id: String,
    topic: String,
    consumer: String,
    handler: String,
    #[schemars(extend("enum" = DELIVERY_STATUSES))]
    status: String,
    /// The number of attempts that have ended since the last retry by hand.
    #[schemars(range(min = 0))]
    attempts: i64,
    error: Option<String>,
    next_attempt_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
    occurred_at: Timestamp,
    /// Whether it failed and has no attempts left.
    dead: bool,
    /// Whether it was settled without an attempt, because the group no longer gets this event.
    skipped: bool,
}

impl From<LedgerRow> for DeliveryAnswer {
    fn from(row: LedgerRow) -> DeliveryAnswer {
        DeliveryAnswer {
            // Only a skipped delivery is settled with a reason.
            skipped: row.status == "delivered" && row.error.is_some(),
            event_id: row.event_id,
            topic: row.topic,
            consumer: row.consumer,
            handler: row.handler,
            status: row.status,
            attempts: row.attempts,
            error: row.error,
            next_attempt_at: row.next_attempt_at.map(Timestamp),
            delivered_at: row.delivered_at.map(Timestamp),
            occurred_at: Timestamp(row.occurred_at),
            dead: row.is_dead,
        }
    }
}

/// A delivery with its last attempts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcDeliveryWithHistory", deny_unknown_fields)]
pub struct DeliveryWithHistory {
    #[serde(flatten)]
    delivery: DeliveryAnswer,
    #[schemars(
        extend("maxItems" = ATTEMPTS_KEPT),
        description = format!("The last {ATTEMPTS_KEPT} attempts, the last one first.")
    )]
    history: Vec<AttemptAnswer>,
}

/// An attempt to deliver an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcDeliveryAttempt", deny_unknown_fields)]
pub struct AttemptAnswer {
    /// The number of the attempt. It goes on rising after a retry by hand.
    #[schemars(range(min = 1))]
    number: i64,
    at: Timestamp,
    #[schemars(extend("enum" = ["delivered", "failed"]))]
    status: &'static str,
    /// Null if nothing was attempted, or if the delivery succeeded at its first attempt.
    #[schemars(range(min = 0))]
    duration_ms: Option<i64>,
    error: Option<String>,
}

impl From<AttemptRow> for AttemptAnswer {
    fn from(attempt: AttemptRow) -> AttemptAnswer {
        AttemptAnswer {
            number: attempt.number,
            at: Timestamp(attempt.ended_at),
            status: if attempt.error.is_none() { "delivered" } else { "failed" },
            duration_ms: attempt.duration_ms,
            error: attempt.error,
        }
    }
}

/// The page of the ledger that the answer holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcDeliveryPagination", deny_unknown_fields)]
pub struct LedgerPagination {
    #[serde(flatten)]
    page: PaginationAnswer,
    /// True if the server stopped looking for entries that the caller may see. The list and its total can lack some of them.
    /// Otherwise the member is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// `before` of a request that goes on where the server stopped. It is there if `truncated` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    before: Option<String>,
}

/// How many deliveries a consumer group has in each state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcDeliveryCounts", deny_unknown_fields)]
pub struct DeliveryCounts {
    consumer: String,
    /// Counted up to 1,000,000.
    #[schemars(range(min = 0, max = 1_000_000))]
    pending: i64,
    /// The delivered ones among the newest 10,000 deliveries of the group, or among those before `until` if it is given. The
    /// number is exact if the group has no more deliveries.
    #[schemars(range(min = 0, max = 10_000))]
    delivered: i64,
    /// Deliveries that will be retried. Counted up to 1,000,000.
    #[schemars(range(min = 0, max = 1_000_000))]
    failed: i64,
    /// Counted up to 1,000,000.
    #[schemars(range(min = 0, max = 1_000_000))]
    dead: i64,
    /// When the event of the oldest pending delivery happened.
    oldest_pending_at: Option<Timestamp>,
}

impl From<GroupCounts> for DeliveryCounts {
    fn from(group: GroupCounts) -> DeliveryCounts {
        DeliveryCounts {
            consumer: group.consumer,
            pending: group.pending,
            delivered: group.delivered,
            failed: group.failed,
            dead: group.dead,
            oldest_pending_at: group.oldest_pending_at.map(Timestamp),
        }
    }
}

/// The only attempt, made from the ledger's entry, if it succeeded and no attempt is stored.
fn only_attempt(row: &LedgerRow) -> Option<AttemptRow> {
    let ended_at = row.delivered_at.filter(|_| row.status == "delivered" && row.attempts > 0)?;
    Some(AttemptRow { number: row.attempts, ended_at, duration_ms: None, error: None })
}

/// The stored form of an error text. It is bounded, and contains no NUL, which Postgres cannot store in text.
fn kept(error: &str) -> String {
    error.replace('\0', "\u{fffd}").chars().take(ERROR_CHARS_MAX).collect()
}

/// The outcome of an attempt, as the ledger stores it.
pub(crate) fn outcome(policy: RetryPolicy, ended: Ended) -> (Attempted, Outcome) {
    let outcome = match ended.attempt {
        Attempt::Delivered => Outcome::Delivered,
        Attempt::Skipped(why) => Outcome::Skipped { error: kept(&why) },
        Attempt::Released => Outcome::Released,
        Attempt::Failed(error) => match policy.next_ms(ended.attempts + 1) {
            Some(retry_ms) => Outcome::Failed { error: kept(&error), retry_ms },
            None => Outcome::Dead { error: kept(&error) },
        },
        Attempt::Dead(error) => Outcome::Dead { error: kept(&error) },
    };
    let attempted = Attempted {
        seq: ended.seq,
        attempts: ended.attempts,
        last_attempt: ended.last_attempt,
        duration_ms: ended.took.map(|took| i64::try_from(took.as_millis()).unwrap_or(i64::MAX)),
    };
    (attempted, outcome)
}

/// The treatment of events whose payload decides whether they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Included,
    LeftOut,
}

impl App {
    /// Claims up to `limit` deliveries of a group for the duration `lease`. `in_flight` lists those that this instance has
    /// already claimed. It looks for new deliveries only after the number `after`.
    pub async fn claim_deliveries(
        &self,
        consumer: &str,
        limit: usize,
        in_flight: usize,
        after: i64,
        lease: Duration,
    ) -> Result<Lease> {
        let claim = Claim {
            consumer: consumer.to_owned(),
            token: Uuid::new_v4().to_string(),
            limit,
            in_flight,
            after,
            lease_ms: i64::try_from(lease.as_millis()).unwrap_or(i64::MAX),
            bytes_max: CLAIM_BYTES_MAX,
            claims_max: LOST_CLAIMS_MAX,
        };
        let token = claim.token.clone();
        let claimed = self
            .store
            .write_in_reserve(Service, move |connection| Box::pin(async move { Ok(connection.claim_deliveries(&claim).await?) }))
            .await?;
        // The rights of the group's maker are looked up later. They are then no older than these events.
        self.identities.follow(claimed.accounts);
        Ok(Lease { token, claimed })
    }

    /// Stores the outcomes of attempts. Returns the number of those whose claim was lost, for which nothing was stored.
    pub async fn settle_deliveries(&self, consumer: &str, token: &str, ended: Vec<Ended>) -> Result<u64> {
        let policy = self.retry_policy(consumer);
        let outcomes: Vec<(Attempted, Outcome)> = ended.into_iter().map(|ended| outcome(policy, ended)).collect();
        self.until_uncontended(|| {
            let (consumer, token, outcomes) = (consumer.to_owned(), token.to_owned(), outcomes.clone());
            self.store.write_in_reserve(Service, move |connection| {
                Box::pin(async move { Ok(connection.settle_deliveries(&consumer, &token, outcomes).await?) })
            })
        })
        .await
    }

    /// The groups with due deliveries that this instance serves.
    pub async fn groups_with_work(&self) -> Result<Vec<String>> {
        let subscriptions = self.subscriptions();
        let groups: Vec<String> = subscriptions
            .iter()
            .filter(|subscription| !subscription.per_instance && self.serves(&subscription.target))
            .map(|subscription| subscription.consumer.clone())
            .collect();
        if groups.is_empty() {
            return Ok(groups);
        }
        self.store
            .read_as_service(ReadCost::Scan, move |connection| {
                Box::pin(async move { Ok(connection.groups_with_work(groups).await?) })
            })
            .await
    }

    /// Whether this instance makes deliveries to a target. Without a mail server it leaves mail to the instances that have one.
    pub fn serves(&self, target: &Target) -> bool {
        !matches!(target, Target::Mail) || self.settings.mail.is_some()
    }

    /// Ends the claims of the process that used the database before. It does so only if no other process can use the database.
    pub(crate) async fn release_claims(&self) -> Result<()> {
        if self.is_shared() {
            return Ok(());
        }
        let released = self
            .store
            .write_in_reserve(Service, |connection| Box::pin(async move { Ok(connection.release_claims().await?) }))
            .await?;
        if released > 0 {
            tracing::info!(event.deliveries = released, "deliveries that were under way when the server ended are due again");
        }
        Ok(())
    }

    /// The number of pending deliveries of each group, and the age of the oldest in milliseconds.
    pub async fn queue_depths(&self) -> Result<(Vec<QueueDepth>, i64)> {
        let (depths, oldest) = self
            .store
            .read_as_service(ReadCost::Scan, |connection| Box::pin(async move { Ok(connection.queue_depths().await?) }))
            .await?;
        Ok((depths, oldest.map_or(0, |oldest| (self.clock.now() - oldest).max(0))))
    }

    /// A page of the ledger as `{ data, pagination }`, the newest event first. An entry shows its event's subject and the receiver's
    /// response. So a caller sees it only if they may see a part of the event. With `before`, the list begins before an event, as
    /// in [`App::recent_events`].
    ///
    /// # Errors
    /// `invalid_request` for an unknown status; `not_found` if the event in `before` is gone or the caller may not see it.
    pub async fn list_deliveries(
        &self,
        caller: &Caller,
        filter: LedgerFilter,
        before: Option<&str>,
        paging: Paging,
    ) -> Result<String> {
        caller.require(Resource::Events, Action::Read)?;
        let filter = checked(filter)?;
        let permit = Arc::new(self.scan_permit(caller).await?);
        let before = match before {
            Some(before) => Some(self.number_before(caller, &permit, before).await?),
            None => None,
        };
        let filter = LedgerFilter { before, ..filter };
        let ShownEvents { visible, before } = self.events_with_entries(caller, &permit, &filter).await?;
        let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (limit, offset) = (bound(paging.limit), bound(paging.offset));
        let ((rows, total), accounts) = self
            .scan_in(caller, permit, move |connection| {
                Box::pin(async move {
                    let page = connection.ledger(&filter, visible.as_ref(), limit, offset).await?;
                    Ok((page, connection.accounts_version().await?))
                })
            })
            .await?;
        self.recheck_at(caller, accounts).await?;
        let before = before.map(|seq| self.sealed_start(seq)).transpose()?;
        let page = PaginationAnswer::counted(paging, total);
        let pagination = LedgerPagination { page, truncated: before.is_some(), before };
        Ok(page_with(&rows.into_iter().map(DeliveryAnswer::from).collect::<Vec<_>>(), &pagination))
    }

    /// The events whose entries a request of the ledger shows. If the payload of an event decides, the event must be among the
    /// newest ones up to [`UNDECIDED_MAX`] that have an entry for the filter.
    async fn events_with_entries(&self, caller: &Caller, permit: &Arc<ScanPermit>, filter: &LedgerFilter) -> Result<ShownEvents> {
        let visible = self.visible_events(caller, Unknown::LeftOut);
        let (Some(mut visible), Some(possible)) = (visible, self.visible_events(caller, Unknown::Included)) else {
            return Ok(ShownEvents { visible: None, before: None });
        };
        if !may_be_undecided(filter, &visible, &possible) {
            return Ok(ShownEvents { visible: Some(visible), before: None });
        }
        let (filter, certain) = (filter.clone(), visible.clone());
        let UndecidedEvents { pages, before } = self
            .scan_in(caller, Arc::clone(permit), move |connection| {
                Box::pin(async move { Ok(connection.undecided_events(&filter, &certain, &possible, UNDECIDED_MAX).await?) })
            })
            .await?;
        for page in pages {
            let events = self
                .scan_in(caller, Arc::clone(permit), move |connection| {
                    Box::pin(async move { Ok(connection.events(page).await?) })
                })
                .await?;
            visible.further.extend(self.shown_among(caller, permit, &events).await?);
        }
        Ok(ShownEvents { visible: Some(visible), before })
    }

    /// Whether the caller is shown something of the event of an entry.
    async fn shows_entry(&self, caller: &Caller, row: &LedgerRow) -> Result<bool> {
        Ok(match decide_early(caller, &row.topic, row.object.as_deref(), row.owner.as_deref()) {
            EarlyDecision::Whole => true,
            EarlyDecision::Nothing => false,
            EarlyDecision::Unknown => self.visible_event(caller, &row.event_id).await?.is_some(),
        })
    }

    /// One entry of the ledger with `history`: its last attempts, the last one first. `None` if it does not exist or the caller
    /// may not see it.
    ///
    /// # Errors
    /// `forbidden` without read on `events`.
    pub async fn delivery(&self, caller: &Caller, event_id: &str, consumer: &str) -> Result<Option<DeliveryWithHistory>> {
        caller.require(Resource::Events, Action::Read)?;
        let (event_id, consumer) = (event_id.to_ascii_lowercase(), consumer.to_owned());
        let found = self
            .look_up(caller, move |connection| {
                Box::pin(async move {
                    let Some(row) = connection.delivery(&event_id, &consumer).await? else { return Ok(None) };
                    let attempts = connection.delivery_attempts(&event_id, &consumer).await?;
                    Ok(Some((row, attempts, connection.accounts_version().await?)))
                })
            })
            .await?;
        let Some((row, mut attempts, accounts)) = found else { return Ok(None) };
        if !self.shows_entry(caller, &row).await? {
            return Ok(None);
        }
        self.recheck_at(caller, accounts).await?;
        if attempts.is_empty() {
            attempts.extend(only_attempt(&row));
        }
        let history = attempts.into_iter().map(AttemptAnswer::from).collect();
        Ok(Some(DeliveryWithHistory { delivery: DeliveryAnswer::from(row), history }))
    }

    /// The number of entries of each consumer group in each state. The caller sees the same entries as in the list, and `delivered` is
    /// counted among the group's newest 10,000.
    ///
    /// # Errors
    /// The same as for the list.
    pub async fn count_deliveries(&self, caller: &Caller, filter: LedgerFilter) -> Result<Vec<DeliveryCounts>> {
        caller.require(Resource::Events, Action::Read)?;
        let filter = checked(filter)?;
        let permit = Arc::new(self.scan_permit(caller).await?);
        let ShownEvents { visible, .. } = self.events_with_entries(caller, &permit, &filter).await?;
        let (counts, accounts) = self
            .scan_in(caller, permit, move |connection| {
                Box::pin(async move {
                    let counts = connection.ledger_counts(&filter, visible.as_ref()).await?;
                    Ok((counts, connection.accounts_version().await?))
                })
            })
            .await?;
        self.recheck_at(caller, accounts).await?;
        Ok(counts.into_iter().map(DeliveryCounts::from).collect())
    }

    /// The decision of [`decide_early`] as a condition on stored events. `None` if the caller sees all events.
    pub(crate) fn visible_events(&self, caller: &Caller, unknown: Unknown) -> Option<VisibleEvents> {
        if reads_all(caller) {
            return None;
        }
        let registry = self.registry();
        // Events of a deleted object are visible to callers with a grant that names it.
        let mut names: BTreeSet<String> = registry.objects().map(|object| object.name().to_owned()).collect();
        names.extend(caller.named_resources());
        let mut visible = VisibleEvents::default();
        for name in names {
            let Some(decision) = caller.reads(&name) else { continue };
            match decision.owners() {
                Owners::All => visible.objects.push(name),
                _ if unknown == Unknown::Included && matches!(decision, Decision::Rules(_)) => visible.objects.push(name),
                Owners::One(owner) => visible.own_objects.entry(owner.to_owned()).or_default().push(name),
                Owners::Nobody => {}
            }
        }
        if unknown == Unknown::LeftOut {
            let objects = visible.objects.iter().chain(visible.own_objects.values().flatten());
            visible.excepted = objects.flat_map(|object| topics_of_links(object)).collect();
        }
        Some(visible)
    }

    /// Makes a failed delivery due at once and gives it all its attempts again. Returns its entry.
    ///
    /// # Errors
    /// `not_found` if it does not exist, the caller may not see it, or its group was deleted; `forbidden` if the caller lacks the
    /// rights of the group; `conflict` if the delivery did not fail.
    pub async fn retry_delivery(&self, caller: &Caller, event_id: &str, consumer: &str) -> Result<DeliveryAnswer> {
        caller.require(Resource::Events, Action::Update)?;
        // The response shows the entry, so the caller also needs to read it.
        caller.require(Resource::Events, Action::Read)?;
        let missing = || Error::new(Code::NotFound, "This delivery does not exist, or its consumer group was deleted.");
        if !self.settings.events_enabled {
            return Err(Error::new(Code::Conflict, "Events are off on this server (SVC_EVENTS_ENABLED=false)."));
        }
        let why_stopped = match self.subscription(consumer) {
            Some(subscription) => self.why_stopped(&subscription).await?,
            None => None,
        };
        // An event does not change, so the check can run before the write.
        let is_shown = self.delivery(caller, event_id, consumer).await?.is_some();
        let (event_id, consumer, caller) = (event_id.to_owned(), consumer.to_owned(), caller.clone());
        let auditor = self.auditor(&caller);
        self.store
            .write_in_reserve(self.by(&caller), move |connection| {
                Box::pin(async move {
                    let entry = connection.held_delivery(&event_id, &consumer).await?;
                    let is_seen = |entry: &LedgerRow| {
                        let (object, owner) = (entry.object.as_deref(), entry.owner.as_deref());
                        match decide_early(&caller, &entry.topic, object, owner) {
                            EarlyDecision::Whole => true,
                            EarlyDecision::Unknown => is_shown,
                            EarlyDecision::Nothing => false,
                        }
                    };
                    let entry = entry.filter(is_seen).ok_or_else(missing)?;
                    may_act_on_group(connection, &caller, &consumer).await?;
                    if entry.status != "failed" {
                        let message = format!("This delivery is {}. Only a failed delivery can be retried.", entry.status);
                        return Err(Error::new(Code::Conflict, message));
                    }
                    if !may_retry_group(connection, &caller, &consumer, why_stopped).await? {
                        return Err(missing());
                    }
                    connection.reset_delivery(&event_id, &consumer).await?;
                    let act = Act::new(AuditAction::Retry, Resource::Events, &consumer).after(&json!({ "eventId": event_id }));
                    auditor.record(connection, act).await?;
                    let entry = connection.held_delivery(&event_id, &consumer).await?.ok_or_else(missing)?;
                    Ok(DeliveryAnswer::from(entry))
                })
            })
            .await
    }

    /// Makes dead deliveries due at once, with all their attempts, and returns their number. They are then delivered in order, like any
    /// others.
    ///
    /// Each delivery is checked as in [`App::retry_delivery`]. It stays dead if the caller may not see its event, if its group
    /// gets nothing now, or if the group has rights that the caller lacks. Each transaction takes only a few, so that other
    /// writes can run in between.
    ///
    /// # Errors
    /// If a group is named: `forbidden` if it has rights that the caller lacks, `conflict` if it is disabled or suspended.
    pub async fn retry_dead_deliveries(&self, caller: &Caller, filter: LedgerFilter) -> Result<u64> {
        self.recheck(caller).await?;
        caller.require(Resource::Events, Action::Update)?;
        caller.require(Resource::Events, Action::Read)?;
        if !self.settings.events_enabled {
            return Err(Error::new(Code::Conflict, "Events are off on this server (SVC_EVENTS_ENABLED=false)."));
        }
        let mut act = Some(DeadRetry { auditor: self.auditor(caller), asked: asked(&filter) });
        let filter = checked(filter)?;
        let permit = Arc::new(self.scan_permit(caller).await?);
        let dead = LedgerFilter { is_dead: Some(true), ..filter.clone() };
        let ShownEvents { visible, .. } = self.events_with_entries(caller, &permit, &dead).await?;
        let sought = (&filter, visible.as_ref());
        if let Some(consumer) = filter.consumer.clone() {
            return self.retry_dead_of_group(caller, &permit, sought, (&consumer, RESETS_MAX), &mut act).await;
        }
        let groups = self
            .scan_in(caller, Arc::clone(&permit), |connection| Box::pin(async move { Ok(connection.groups_with_dead().await?) }))
            .await?;
        let mut count = 0;
        for consumer in groups {
            match self.retry_dead_of_group(caller, &permit, sought, (&consumer, RESETS_MAX - count), &mut act).await {
                Ok(reset) => count += reset,
                // The error may only concern this group. If the caller has lost a right, the check fails.
                Err(error) if is_refusal(&error) => self.recheck(caller).await?,
                Err(error) => return Err(error),
            }
            if count >= RESETS_MAX {
                break;
            }
        }
        Ok(count)
    }

    /// Makes at most `most` deliveries of a group due. The first transaction that makes some due takes `act` and records it.
    async fn retry_dead_of_group(
        &self,
        caller: &Caller,
        permit: &Arc<ScanPermit>,
        (filter, visible): (&LedgerFilter, Option<&VisibleEvents>),
        (consumer, most): (&str, u64),
        act: &mut Option<DeadRetry>,
    ) -> Result<u64> {
        let (mut count, mut after) = (0, 0);
        while count < most {
            let (filter, visible, group) = (filter.clone(), visible.cloned(), consumer.to_owned());
            let DeadWindow { mut found, last } = self
                .scan_in(caller, Arc::clone(permit), move |connection| {
                    Box::pin(async move {
                        Ok(connection.dead_window(&filter, visible.as_ref(), &group, after, RESETS_AT_ONCE).await?)
                    })
                })
                .await?;
            let Some(last) = last else { break };
            after = last;
            self.recheck(caller).await?;
            found.truncate(usize::try_from(most - count).unwrap_or(usize::MAX));
            if found.is_empty() {
                continue;
            }
            let why_stopped = match self.subscription(consumer) {
                Some(subscription) => self.why_stopped(&subscription).await?,
                None => None,
            };
            let reset = || {
                let (caller, group, found, why_stopped) =
                    (caller.clone(), consumer.to_owned(), found.clone(), why_stopped.clone());
                let act = act.clone();
                self.store.write_in_reserve(self.by(&caller), move |connection| {
                    Box::pin(async move {
                        if !may_retry_group(connection, &caller, &group, why_stopped).await? {
                            return Ok(None);
                        }
                        let reset = connection.reset_dead(&group, found).await?;
                        if let Some(DeadRetry { auditor, asked }) = act.filter(|_| reset > 0) {
                            let target = asked["consumer"].as_str().unwrap_or("*");
                            let act = Act::new(AuditAction::Retry, Resource::Events, target).after(&asked);
                            auditor.record(connection, act).await?;
                        }
                        Ok(Some(reset))
                    })
                })
            };
            match self.until_uncontended(reset).await {
                Ok(Some(reset)) => {
                    count += reset;
                    if reset > 0 {
                        *act = None;
                    }
                }
                // The group was deleted.
                Ok(None) => break,
                // The group changed after the first entries were made due. They stay due.
                Err(error) if count > 0 && is_refusal(&error) => {
                    self.recheck(caller).await?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// The current subscription of a group. `None` if it has none.
    pub fn subscription(&self, consumer: &str) -> Option<Arc<Subscription>> {
        self.subscriptions().get(consumer).cloned()
    }
}

/// The events whose entries a caller is shown.
struct ShownEvents {
    /// `None` if the caller sees all events.
    visible: Option<VisibleEvents>,
    /// The number of the event before which no payload was looked at, although one may decide. `None` if there is no such event.
    before: Option<i64>,
}

/// A retry of dead deliveries that is not in the audit log yet.
#[derive(Clone)]
struct DeadRetry {
    auditor: Auditor,
    asked: Value,
}

/// A filter with its id in lower case.
///
/// # Errors
/// `invalid_request` for an unknown status.
fn checked(filter: LedgerFilter) -> Result<LedgerFilter> {
    if let Some(status) = filter.status.as_ref().filter(|status| !DELIVERY_STATUSES.contains(&status.as_str())) {
        let message = format!("`status` takes pending, delivered or failed, not {status:?}.");
        return Err(Error::invalid_request(message));
    }
    let event_id = filter.event_id.map(|id| id.to_ascii_lowercase());
    Ok(LedgerFilter { event_id, ..filter })
}

/// Whether the payload of an event that the filter matches can decide if it is shown. `certain` and `possible` are the events that
/// are shown without a look at any payload, and those with [`Unknown::Included`].
fn may_be_undecided(filter: &LedgerFilter, certain: &VisibleEvents, possible: &VisibleEvents) -> bool {
    let has_rules = (&certain.objects, &certain.own_objects) != (&possible.objects, &possible.own_objects);
    has_rules || certain.excepted.iter().any(|of_links| filter.topic.as_ref().is_none_or(|topic| topic.matches(of_links)))
}

/// The deliveries that a retry of dead ones asks for.
fn asked(filter: &LedgerFilter) -> Value {
    json!({
        "consumer": filter.consumer,
        "topic": filter.topic.as_ref().map(TopicFilter::text),
        "since": filter.since.map(Timestamp),
        "until": filter.until.map(Timestamp),
    })
}

/// Checks that the caller has the rights of a consumer group. A deleted group needs none.
async fn may_act_on_group(connection: &mut Connection, caller: &Caller, consumer: &str) -> Result<()> {
    if let Some(id) = consumer.strip_prefix(WEBHOOK_CONSUMER) {
        return match connection.held_webhook(id).await? {
            Some(row) => crate::delivery::webhooks::may_act(caller, &row),
            None => Ok(()),
        };
    }
    match connection.subscription(consumer).await? {
        Some(row) => crate::delivery::subscriptions::may_act(caller, &row),
        None => Ok(()),
    }
}

/// Whether an error means that the caller may not act on the group, or that the group gets nothing now.
fn is_refusal(error: &Error) -> bool {
    matches!(error.code, Code::Forbidden | Code::Unauthorized | Code::Conflict)
}

/// Checks that the caller may retry deliveries of a group. `false` if the group was deleted.
///
/// # Errors
/// `forbidden` if the caller lacks the rights of the group, `conflict` if the group gets nothing now.
async fn may_retry_group(
    connection: &mut Connection,
    caller: &Caller,
    consumer: &str,
    why_stopped: Option<String>,
) -> Result<bool> {
    may_act_on_group(connection, caller, consumer).await?;
    let is_active = match consumer {
        // The server's own mail has no stored group.
        MAIL_CONSUMER => Some(true),
        other => connection.group_is_active(other).await?,
    };
    match (is_active, why_stopped) {
        (None, _) => Ok(false),
        (Some(false), _) => Err(Error::new(Code::Conflict, "Its consumer group is disabled. Enable it first.")),
        (Some(true), Some(why)) => Err(Error::new(Code::Conflict, why)),
        (Some(true), None) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_read_only_if_one_can_decide() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let plain =
            VisibleEvents { objects: names(&["task"]), excepted: topics_of_links("task").to_vec(), ..VisibleEvents::default() };
        let with_rules = VisibleEvents { objects: names(&["note", "task"]), ..VisibleEvents::default() };
        let may_be = |topic: Option<&str>, possible: &VisibleEvents| {
            let topic = topic.map(|topic| TopicFilter::parse(topic).expect("a filter"));
            may_be_undecided(&LedgerFilter { topic, ..LedgerFilter::default() }, &plain, possible)
        };
        let certain = VisibleEvents { excepted: Vec::new(), ..plain.clone() };
        for (topic, expected) in [
            (None, true),
            (Some("data.task.#"), true),
            (Some("#.unlinked"), true),
            (Some("data.task.linked"), true),
            (Some("data.task.created"), false),
            (Some("data.label.linked"), false),
            (Some("platform."), false),
        ] {
            assert_eq!(may_be(topic, &certain), expected, "{topic:?}");
            assert!(may_be(topic, &with_rules), "{topic:?}");
        }
        let nothing = VisibleEvents::default();
        assert!(!may_be_undecided(&LedgerFilter::default(), &nothing, &nothing));
    }

    #[test]
    fn errors_are_kept_within_bounds() {
        assert_eq!(kept("a\0b"), "a\u{fffd}b");
        assert_eq!(kept(&"é".repeat(2000)).chars().count(), ERROR_CHARS_MAX);
    }
}
