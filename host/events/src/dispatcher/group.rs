//! Serves one consumer group: claims deliveries, gives them to the handler, and stores their outcomes.

mod attempt;
mod scan_start;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blockbase_app::schema::Code;
use blockbase_app::{Attempt, DeliveryCheck, Ended, PersistConfig, Subscription, Target};
use blockbase_store::ClaimedDelivery;
use blockbase_telemetry::{self as telemetry, Outcome, end_span, event_span};
use tokio::sync::{Semaphore, mpsc};

use scan_start::ScanStart;

use super::{Dispatcher, Running};
use crate::handler::may_deliver;

/// The maximum number of deliveries of a webhook that run at the same time. It is one while the endpoint does not respond.
const WEBHOOK_CALLS_MAX: usize = 16;
/// The maximum number of mails that are sent at a time, and the time limit for one mail.
const MAILS_MAX: usize = 4;
const MAIL_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of deliveries of a consumer group with a block's handler that run at the same time.
const GROUP_BLOCK_CALLS_MAX: usize = 8;
/// The number of deliveries that are claimed for each delivery that can run at the same time.
const CLAIMED_AHEAD: usize = 4;
/// The maximum number of reports that can wait. Each claimed delivery of a group sends one report, so there is room for every
/// report.
const REPORTS_MAX: usize =
    CLAIMED_AHEAD * if WEBHOOK_CALLS_MAX > GROUP_BLOCK_CALLS_MAX { WEBHOOK_CALLS_MAX } else { GROUP_BLOCK_CALLS_MAX };
/// The maximum number of deliveries that a built-in handler gets in one batch.
const BATCH_MAX: usize = 200;
/// The time limit of a batch of a built-in handler. It only determines the length of the lease. A batch is one transaction that
/// locks its deliveries, so a slow batch does not lose them. Deliveries of a process that died wait until the lease ends.
const BATCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The difference between the length of a lease and the time of two attempts.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// The pause if another instance is claiming deliveries of the group. The next constant is the pause after a failure of the
/// database.
const CONTENDED_PAUSE: Duration = Duration::from_millis(5);
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// The limits for the deliveries of a target.
struct GroupLimits {
    /// The maximum number of attempts that run at the same time.
    slots: usize,
    /// The maximum number of deliveries in one claim.
    claimed: usize,
    timeout: Duration,
}

/// The report of an attempt that ended.
struct Report {
    token: Arc<str>,
    ended: Ended,
    /// Whether the receiver responded. `None` if it was not called.
    answered: Option<bool>,
}

/// The state that the tasks of one group share.
struct Group {
    dispatcher: Arc<Dispatcher>,
    consumer: String,
    /// Permits for attempts in progress.
    slots: Arc<Semaphore>,
    reports: mpsc::Sender<Report>,
    /// Whether the last claim left deliveries that could be claimed.
    has_backlog: AtomicBool,
    scan_start: ScanStart,
}

/// Serves a group until no delivery is due.
pub(crate) async fn serve(dispatcher: Arc<Dispatcher>, consumer: String, running: Arc<Running>) {
    let (reports, mut reported) = mpsc::channel(REPORTS_MAX);
    let group = Arc::new(Group {
        dispatcher,
        consumer,
        slots: Arc::new(Semaphore::new(0)),
        reports,
        has_backlog: AtomicBool::new(false),
        scan_start: ScanStart::default(),
    });
    let (dispatcher, consumer) = (&group.dispatcher, group.consumer.as_str());
    let (mut in_flight, mut slots) = (0_usize, 0_usize);
    let mut gathered = Vec::new();
    // Whether a claim may find deliveries, and whether the last claim left some of them.
    let (mut may_find, mut left_over) = (true, false);
    loop {
        may_find |= running.take_more();
        let subscription = if dispatcher.is_draining() { None } else { dispatcher.app.subscription(consumer) };
        let subscription = subscription.filter(|subscription| dispatcher.app.serves(&subscription.target));
        match subscription.filter(|_| may_find) {
            Some(subscription) => {
                let limits = group.limits(&subscription.target, dispatcher.is_away(consumer));
                slots = resize(&group.slots, slots, limits.slots);
                // A claim waits until there is room for a quarter of its size, so that it is worth a transaction.
                if in_flight * 4 <= limits.claimed * 3 {
                    let found = claim(&group, &subscription, &limits, in_flight).await;
                    in_flight += found.in_flight;
                    (may_find, left_over) = (found.again, found.left_over);
                    if may_find || in_flight == 0 {
                        continue;
                    }
                }
            }
            None if in_flight == 0 => match dispatcher.is_over(consumer, &running) {
                true => return,
                false => continue,
            },
            None => {}
        }
        tokio::select! {
            count = reported.recv_many(&mut gathered, BATCH_MAX) => {
                in_flight -= count;
                for answered in gathered.iter().filter_map(|report: &Report| report.answered) {
                    dispatcher.answered(consumer, answered);
                }
                settle(&group, std::mem::take(&mut gathered)).await;
                may_find |= left_over;
            }
            () = running.more(), if !may_find => {}
        }
    }
}

/// Changes the number of permits, and returns the new number.
fn resize(slots: &Semaphore, now: usize, wanted: usize) -> usize {
    match wanted.checked_sub(now) {
        Some(more) => slots.add_permits(more),
        // Permits in use cannot be removed now. The next call removes them.
        None => return now - slots.forget_permits(now - wanted),
    }
    wanted
}

/// The result of a claim.
#[derive(Default)]
struct Found {
    in_flight: usize,
    /// Whether the group should claim again at once.
    again: bool,
    /// Whether some deliveries can be claimed when the current ones end.
    left_over: bool,
}

async fn claim(group: &Arc<Group>, subscription: &Arc<Subscription>, limits: &GroupLimits, in_flight: usize) -> Found {
    let again = Found { again: true, ..Found::default() };
    let (app, throttle) = (&group.dispatcher.app, &group.dispatcher.throttle);
    let lease = limits.timeout * 2 + LEASE_MARGIN;
    // This clock also runs while the process is stopped.
    let until = Instant::now() + lease;
    let (limit, after) = (limits.claimed - in_flight, group.scan_start.after());
    let claim = app.claim_deliveries(&group.consumer, limit, in_flight, after, lease);
    let claimed = throttle.run(app, group.is_backlog(), claim).await;
    let lease = match claimed {
        Ok(lease) => lease,
        Err(error) => {
            tracing::warn!(event.consumer = group.consumer, error.cause = %error, "deliveries could not be claimed");
            tokio::time::sleep(FAILURE_PAUSE).await;
            return again;
        }
    };
    if lease.claimed.given_up > 0 {
        tracing::error!(
            event.consumer = group.consumer,
            event.deliveries = lease.claimed.given_up,
            "deliveries were given up: at each attempt the server ended before the delivery"
        );
    }
    if lease.claimed.is_contended {
        tokio::time::sleep(CONTENDED_PAUSE).await;
        return again;
    }
    let has_more = lease.claimed.has_more;
    group.scan_start.found(lease.claimed.first_pending);
    group.has_backlog.store(has_more && lease.claimed.deliveries.len() == limit, Ordering::Relaxed);
    let (token, deliveries) = (Arc::<str>::from(lease.token), lease.claimed.deliveries);
    if deliveries.is_empty() {
        // This claim may have looked at only a part of the outbox. The next claim looks at all of it.
        group.scan_start.forget();
        return Found { again: after > 0, left_over: has_more, ..Found::default() };
    }
    let config = match &subscription.target {
        Target::LogEvent => None,
        Target::PersistEvent(config) => Some(config),
        Target::Webhook(_) | Target::Mail | Target::Block { .. } | Target::Broken(_) => {
            let count = deliveries.len();
            for chain in chains(deliveries) {
                let (group, subscription, token) = (Arc::clone(group), Arc::clone(subscription), Arc::clone(&token));
                let timeout = limits.timeout;
                tokio::spawn(async move { group.hand_over(chain, &subscription, &token, until, timeout).await });
            }
            return Found { in_flight: count, again: false, left_over: has_more || after > 0 };
        }
    };
    match (may_deliver(app, subscription).await, config) {
        (Err(failed), _) => {
            let reports = deliveries.iter().map(|delivery| group.refused(subscription, &token, delivery, &failed)).collect();
            settle(group, reports).await;
        }
        (Ok(check), None) => {
            let mut reports = Vec::with_capacity(deliveries.len());
            for delivery in &deliveries {
                reports.push(group.log(subscription, &check, &token, delivery).await);
            }
            settle(group, reports).await;
        }
        (Ok(check), Some(config)) => persist(group, subscription, config, &check, &token, &deliveries).await,
    }
    Found { again: has_more || after > 0, ..Found::default() }
}

/// Groups deliveries into chains. Deliveries of one record run one after the other. Different chains run in parallel.
fn chains(deliveries: Vec<ClaimedDelivery>) -> Vec<Vec<ClaimedDelivery>> {
    let mut chains: Vec<Vec<ClaimedDelivery>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for delivery in deliveries {
        match &delivery.record_id {
            None => chains.push(vec![delivery]),
            Some(record) => {
                let place = *places.entry(record.clone()).or_insert(chains.len());
                match chains.get_mut(place) {
                    Some(chain) => chain.push(delivery),
                    None => chains.push(vec![delivery]),
                }
            }
        }
    }
    chains
}

/// Stores the outcomes of attempts, and plans to serve the group again when retries are due.
async fn settle(group: &Group, reports: Vec<Report>) {
    let (app, throttle) = (&group.dispatcher.app, &group.dispatcher.throttle);
    let mut by_token: HashMap<Arc<str>, Vec<Ended>> = HashMap::new();
    for report in reports {
        by_token.entry(report.token).or_default().push(report.ended);
    }
    for (token, ended) in by_token {
        let (count, pauses) = (ended.len(), retry_pauses(group, &ended));
        match throttle.run(app, group.is_backlog(), app.settle_deliveries(&group.consumer, &token, ended)).await {
            Ok(lost) => {
                // The pauses begin now, as they do in the ledger.
                plan_retries(group, pauses);
                if lost > 0 {
                    warn_of_lost(group, lost);
                }
            }
            Err(error) => {
                // The leases will expire, and the events will be delivered again.
                tracing::warn!(event.consumer = group.consumer, event.deliveries = count, error.cause = %error, "the outcome of deliveries could not be stored");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

fn warn_of_lost(group: &Group, lost: u64) {
    for _ in 0..lost {
        telemetry::lease_lost();
    }
    tracing::warn!(
        event.consumer = group.consumer,
        event.deliveries = lost,
        "deliveries took longer than their lease, or were reset meanwhile; their outcome is not stored"
    );
}

fn retry_pauses(group: &Group, ended: &[Ended]) -> BTreeSet<Duration> {
    let failed = ended.iter().filter(|ended| matches!(ended.attempt, Attempt::Failed(_)));
    failed.filter_map(|ended| group.dispatcher.app.retry_pause(&group.consumer, ended.attempts)).collect()
}

fn plan_retries(group: &Group, pauses: BTreeSet<Duration>) {
    for pause in pauses {
        group.dispatcher.wake_later(&group.consumer, pause);
    }
}

async fn persist(
    group: &Group,
    subscription: &Subscription,
    config: &PersistConfig,
    check: &DeliveryCheck,
    token: &str,
    deliveries: &[ClaimedDelivery],
) {
    if deliveries.is_empty() {
        return;
    }
    let (app, throttle) = (&group.dispatcher.app, &group.dispatcher.throttle);
    let began = Instant::now();
    let persisted = app.persist_deliveries(&group.consumer, token, config, check, deliveries);
    match throttle.run(app, group.is_backlog(), persisted).await {
        Ok(ended) => {
            count_persisted(group, subscription, deliveries, &ended, began.elapsed());
            plan_retries(group, retry_pauses(group, &ended));
            let lost = deliveries.len() - ended.len();
            if lost > 0 {
                warn_of_lost(group, lost as u64);
            }
        }
        // One event makes the complete batch fail, but it is not known which one. So each event is tried by itself.
        Err(error) if error.code == Code::Internal && deliveries.len() > 1 => {
            for delivery in deliveries {
                Box::pin(persist(group, subscription, config, check, token, std::slice::from_ref(delivery))).await;
            }
        }
        Err(error) => {
            tracing::warn!(event.consumer = group.consumer, error.cause = %error, "events could not be persisted");
            // If the database failed, and not the handler, no attempt counts.
            let attempt = match error.code == Code::Internal && error.retry.is_none() {
                true => Attempt::Failed(error.message),
                false => Attempt::Released,
            };
            let is_released = attempt == Attempt::Released;
            let reports = deliveries.iter().map(|delivery| {
                if !is_released && let Some(event) = &delivery.event {
                    let handler = &subscription.handler;
                    telemetry::delivery(&event.topic, &group.consumer, handler, Outcome::Failed, began.elapsed());
                }
                let ended = Ended { took: Some(began.elapsed()), ..Ended::at_once(delivery, attempt.clone()) };
                Report { token: Arc::from(token), ended, answered: None }
            });
            settle(group, reports.collect()).await;
            if is_released {
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

/// Counts the outcomes of a batch. A batch is one transaction, so an equal share of its time counts for each event.
fn count_persisted(group: &Group, subscription: &Subscription, deliveries: &[ClaimedDelivery], ended: &[Ended], took: Duration) {
    let share = took / u32::try_from(deliveries.len().max(1)).unwrap_or(u32::MAX);
    let topics: HashMap<i64, &str> =
        deliveries.iter().filter_map(|delivery| Some((delivery.seq, delivery.event.as_ref()?.topic.as_str()))).collect();
    for ended in ended {
        let Some(topic) = topics.get(&ended.seq) else {
            group.undecodable(ended.seq);
            continue;
        };
        let (outcome, kind) = match ended.attempt {
            Attempt::Delivered => (Outcome::Success, None),
            // Nothing was attempted.
            Attempt::Skipped(_) => continue,
            _ => (Outcome::Failed, Some("not_persisted")),
        };
        telemetry::delivery(topic, &group.consumer, &subscription.handler, outcome, share);
        end_span(&event_span(topic, &group.consumer, &subscription.handler), outcome, kind);
    }
}

impl Group {
    fn is_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Relaxed)
    }

    fn limits(&self, target: &Target, is_away: bool) -> GroupLimits {
        let settings = &self.dispatcher.settings;
        let of = |slots: usize, timeout| GroupLimits { slots, claimed: slots * CLAIMED_AHEAD, timeout };
        match target {
            Target::LogEvent | Target::PersistEvent(_) => GroupLimits { slots: 1, claimed: BATCH_MAX, timeout: BATCH_TIMEOUT },
            // An unavailable endpoint gets one request at a time.
            Target::Webhook(_) if is_away => GroupLimits { slots: 1, claimed: 1, timeout: settings.webhook_timeout },
            Target::Webhook(_) => of(WEBHOOK_CALLS_MAX, settings.webhook_timeout),
            Target::Mail => of(MAILS_MAX, MAIL_TIMEOUT),
            Target::Block { .. } | Target::Broken(_) => of(GROUP_BLOCK_CALLS_MAX, settings.handler_timeout),
        }
    }
}
