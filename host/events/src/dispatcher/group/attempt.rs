//! One attempt of a delivery, and chains of attempts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_app::schema::{Code, Error};
use blockbase_app::{Attempt, DeliveryCheck, Ended, Subscription, Target, UNDECODABLE};
use blockbase_store::{ClaimedDelivery, ClaimedEvent};
use blockbase_telemetry::{self as telemetry, Outcome, end_span, event_span, observe_delivery};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Group, Report};
use crate::dispatcher::Dispatcher;
use crate::handler::{Failed, deliver_to_block, log_event, may_deliver};
use crate::{mail, webhook};

/// An attempt begins only if its lease lasts at least this much longer than the attempt's time limit.
const START_MARGIN: Duration = Duration::from_millis(500);

impl Group {
    pub(super) async fn log(
        &self,
        subscription: &Subscription,
        check: &DeliveryCheck,
        token: &Arc<str>,
        delivery: &ClaimedDelivery,
    ) -> Report {
        let attempt = match &delivery.event {
            None => self.undecodable(delivery.seq),
            Some(event) => match self.dispatcher.app.handed_over(check, event).await {
                Ok(Ok(event)) => {
                    let began = Instant::now();
                    let span = event_span(&event.topic, &self.consumer, &subscription.handler);
                    span.in_scope(|| log_event(&self.consumer, &event));
                    end_span(&span, Outcome::Success, None);
                    telemetry::delivery(&event.topic, &self.consumer, &subscription.handler, Outcome::Success, began.elapsed());
                    Attempt::Delivered
                }
                Ok(Err(why)) => Attempt::Skipped(why),
                Err(error) => undecided(error),
            },
        };
        let ended = Ended::at_once(delivery, attempt);
        Report { token: Arc::clone(token), ended, answered: None }
    }

    /// A delivery of a built-in handler that was not attempted.
    pub(super) fn refused(
        &self,
        subscription: &Subscription,
        token: &Arc<str>,
        delivery: &ClaimedDelivery,
        failed: &Failed,
    ) -> Report {
        let attempt = match &delivery.event {
            None => self.undecodable(delivery.seq),
            Some(_) if failed.is_unjudged() => Attempt::Released,
            Some(event) => {
                telemetry::delivery(&event.topic, &self.consumer, &subscription.handler, Outcome::Failed, Duration::ZERO);
                end_span(&event_span(&event.topic, &self.consumer, &subscription.handler), Outcome::Failed, Some(failed.kind));
                Attempt::Failed(failed.problem.clone())
            }
        };
        let ended = Ended::at_once(delivery, attempt);
        Report { token: Arc::clone(token), ended, answered: None }
    }

    /// The attempt for an event that cannot be decoded. Such an event can never be delivered.
    pub(super) fn undecodable(&self, seq: i64) -> Attempt {
        telemetry::undecodable();
        tracing::error!(event.consumer = self.consumer, event.seq = seq, "a stored event cannot be read; its delivery is dead");
        Attempt::Dead(UNDECODABLE.to_owned())
    }

    /// Makes the deliveries of a chain one after the other.
    pub(super) async fn hand_over(
        &self,
        chain: Vec<ClaimedDelivery>,
        subscription: &Subscription,
        token: &Arc<str>,
        until: Instant,
        timeout: Duration,
    ) {
        let mut open = OpenDeliveries {
            reports: &self.reports,
            token,
            left: chain.iter().map(|delivery| Ended::at_once(delivery, Attempt::Released)).collect(),
        };
        for delivery in chain {
            let _place = self.slots.acquire().await;
            let _call = match &subscription.target {
                Target::Block { .. } => self.dispatcher.block_calls.acquire().await.ok(),
                _ => None,
            };
            let began = Instant::now();
            let (attempt, answered) = match delivery.event {
                _ if !self.may_begin(until, timeout) => (Attempt::Released, None),
                None => (self.undecodable(delivery.seq), None),
                Some(event) => match may_deliver(&self.dispatcher.app, subscription).await {
                    Err(failed) if failed.is_unjudged() => (Attempt::Released, None),
                    Err(failed) => self.observed(Err(failed), subscription, event, delivery.attempts, timeout).await,
                    Ok(check) => match self.dispatcher.app.handed_over(&check, &event).await {
                        Err(error) => (undecided(error), None),
                        Ok(Err(why)) => (Attempt::Skipped(why), None),
                        Ok(Ok(event)) => {
                            let event = event.into_owned();
                            self.observed(Ok(check), subscription, event, delivery.attempts, timeout).await
                        }
                    },
                },
            };
            open.report(attempt, answered.map(|answered| (answered, began.elapsed())));
        }
    }

    /// Makes an attempt, if one is allowed. Returns its outcome, and whether the receiver responded.
    async fn observed(
        &self,
        checked: Result<DeliveryCheck, Failed>,
        subscription: &Subscription,
        event: ClaimedEvent,
        attempts: i64,
        timeout: Duration,
    ) -> (Attempt, Option<bool>) {
        let topic = event.topic.clone();
        let attempt = async {
            checked?;
            self.attempt(&subscription.target, event, attempts, timeout).await
        };
        match observe_delivery(&topic, &self.consumer, &subscription.handler, |failed: &Failed| failed.kind, attempt).await {
            Ok(()) => (Attempt::Delivered, Some(true)),
            Err(failed) if failed.is_final => (Attempt::Dead(failed.problem), Some(failed.answered)),
            Err(failed) => (Attempt::Failed(failed.problem), Some(failed.answered)),
        }
    }

    /// Whether an attempt may begin. This is so if it will end within its lease, the server is not stopping, and the group still
    /// gets events.
    fn may_begin(&self, until: Instant, timeout: Duration) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        left >= timeout + START_MARGIN
            && !self.dispatcher.is_draining()
            && self.dispatcher.app.subscription(&self.consumer).is_some()
    }

    async fn attempt(&self, target: &Target, event: ClaimedEvent, attempts: i64, timeout: Duration) -> Result<(), Failed> {
        let Dispatcher { app, settings, .. } = &*self.dispatcher;
        match target {
            Target::Webhook(webhook) => webhook::send(app, &settings.client, webhook, &event, timeout).await,
            Target::Block { block, handler, config } => {
                deliver_to_block(app, (block, handler, config), event, attempts, timeout).await
            }
            Target::Mail => mail::send(app, settings.mailer.as_deref(), &event, timeout).await,
            Target::Broken(problem) => Err(Failed::new("broken_subscription", problem.clone())),
            Target::LogEvent | Target::PersistEvent(_) => {
                Err(Failed::new("internal", "the handler takes events in batches".to_owned()))
            }
        }
    }
}

/// The outcome if it is not known whether the group may get the event. If the database does not answer, this does
/// not count as an attempt.
fn undecided(error: Error) -> Attempt {
    match error.code {
        Code::Unavailable => Attempt::Released,
        _ => Attempt::Failed(error.message),
    }
}

/// The deliveries of a chain that have not ended. If a bug drops the chain early, the remaining deliveries are released.
struct OpenDeliveries<'a> {
    reports: &'a mpsc::Sender<Report>,
    token: &'a Arc<str>,
    left: VecDeque<Ended>,
}

impl OpenDeliveries<'_> {
    /// Reports the outcome of the first delivery. If an attempt was made, it also reports whether the receiver responded, and how long
    /// it took.
    fn report(&mut self, attempt: Attempt, attempted: Option<(bool, Duration)>) {
        let Some(ended) = self.left.pop_front() else { return };
        let (answered, took) = attempted.unzip();
        let report = Report { token: Arc::clone(self.token), ended: Ended { took, attempt, ..ended }, answered };
        // The channel has room for every report (`REPORTS_MAX`), and the group waits for all of them before it ends.
        if let Err(TrySendError::Full(_)) = self.reports.try_send(report) {
            tracing::error!("the outcome of a delivery is lost; its lease will expire");
        }
    }
}

impl Drop for OpenDeliveries<'_> {
    fn drop(&mut self) {
        while !self.left.is_empty() {
            self.report(Attempt::Released, None);
        }
    }
}
