//! Serves subscriptions whose events go to every instance. Each instance serves them from its own feed.
//!
//! Their deliveries are not in the ledger, because an instance that has ended cannot get them later. While the instance runs, a
//! failed delivery is retried as often as any other.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_app::{Caller, Subscription, Target};
use blockbase_store::{ClaimedEvent, CommittedEvent};
use blockbase_telemetry::observe_delivery;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::dispatcher::Dispatcher;
use crate::handler::{Failed, deliver_to_block, log_event, may_deliver};

/// The maximum number of events of one subscription that wait for another attempt.
const RETRIES_MAX: usize = 1000;

/// Keeps a task running for each such subscription. It never ends.
pub(crate) async fn serve(dispatcher: Arc<Dispatcher>) {
    let app = Arc::clone(&dispatcher.app);
    let mut changes = app.watch_subscriptions();
    let mut running: HashMap<String, JoinHandle<()>> = HashMap::new();
    loop {
        let subscriptions = app.subscriptions();
        let wanted: HashMap<String, &Arc<Subscription>> = subscriptions
            .iter()
            .filter(|subscription| subscription.per_instance)
            .map(|subscription| (format!("{subscription:?}"), subscription))
            .collect();
        running.retain(|key, task| {
            let is_wanted = wanted.contains_key(key);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for (key, subscription) in wanted {
            let begin = || tokio::spawn(follow(Arc::clone(&dispatcher), Arc::clone(subscription)));
            running.entry(key).or_insert_with(begin);
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn follow(dispatcher: Arc<Dispatcher>, subscription: Arc<Subscription>) {
    let app = &dispatcher.app;
    let mut reader = app.feed().read_all(Arc::clone(app), subscription.patterns().to_vec());
    let retries = Arc::new(Semaphore::new(RETRIES_MAX));
    let system = Caller::system();
    while let Some(event) = reader.next(&system).await {
        let event = claimed(&event);
        let consumer = &subscription.consumer;
        if subscription.is_too_deep(event.depth) {
            tracing::warn!(
                event.id = event.id,
                event.consumer = consumer,
                "this event comes from a chain of too many handlers; it is not delivered"
            );
            continue;
        }
        let Err(failed) = deliver(&dispatcher, &subscription, event.clone(), 0).await else { continue };
        tracing::warn!(event.id = event.id, event.consumer = consumer, "a delivery on this instance failed: {}", failed.problem);
        // Later events do not wait for the retries.
        let Ok(place) = Arc::clone(&retries).try_acquire_owned() else {
            tracing::error!(
                event.id = event.id,
                event.consumer = consumer,
                "too many deliveries wait for another attempt; this one is given up"
            );
            continue;
        };
        let (dispatcher, subscription) = (Arc::clone(&dispatcher), Arc::clone(&subscription));
        tokio::spawn(async move {
            retry(&dispatcher, &subscription, event).await;
            drop(place);
        });
    }
}

async fn retry(dispatcher: &Dispatcher, subscription: &Subscription, event: ClaimedEvent) {
    let app = &dispatcher.app;
    let mut attempts = 1;
    while let Some(pause) = app.retry_pause(&subscription.consumer, attempts - 1) {
        tokio::time::sleep(pause).await;
        // The subscription may have been deleted meanwhile.
        if app.subscription(&subscription.consumer).is_none()
            || deliver(dispatcher, subscription, event.clone(), attempts).await.is_ok()
        {
            return;
        }
        attempts += 1;
    }
    tracing::error!(event.id = event.id, event.consumer = subscription.consumer, "a delivery on this instance is given up");
}

async fn deliver(dispatcher: &Dispatcher, subscription: &Subscription, event: ClaimedEvent, attempts: i64) -> Result<(), Failed> {
    let (topic, consumer, handler) = (event.topic.clone(), &subscription.consumer, &subscription.handler);
    let broken = |problem: String| Failed::new("broken_subscription", problem);
    let checked = may_deliver(&dispatcher.app, subscription).await;
    let event = match &checked {
        Ok(check) => match dispatcher.app.handed_over(check, &event).await {
            Ok(Ok(event)) => event.into_owned(),
            Ok(Err(_)) => return Ok(()),
            Err(error) => return Err(Failed::new(error.code.as_str(), error.message)),
        },
        Err(_) => event,
    };
    let attempt = async {
        checked?;
        match &subscription.target {
            Target::LogEvent => {
                log_event(consumer, &event);
                Ok(())
            }
            Target::Block { block, handler, config } => {
                let _call = dispatcher.block_calls.acquire().await;
                let timeout = dispatcher.settings.handler_timeout;
                deliver_to_block(&dispatcher.app, (block, handler, config), event, attempts, timeout).await
            }
            Target::Broken(problem) => Err(broken(problem.clone())),
            Target::PersistEvent(_) | Target::Webhook(_) | Target::Mail => {
                Err(broken("this handler does not run on every instance".to_owned()))
            }
        }
    };
    observe_delivery(&topic, consumer, handler, |failed: &Failed| failed.kind, attempt).await
}

fn claimed(event: &CommittedEvent) -> ClaimedEvent {
    ClaimedEvent {
        seq: event.seq,
        id: event.id.clone(),
        topic: event.topic.clone(),
        payload: event.payload().to_owned(),
        occurred_at: event.occurred_at,
        depth: event.depth,
        object: event.object.clone(),
        owner: event.owner.clone(),
        schema: event.schema,
    }
}
