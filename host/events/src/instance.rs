//! Subscriptions of which every instance gets each event: served from this instance's feed.
//!
//! They have no entry in the ledger, because an instance that is gone cannot be delivered to any more. What fails is tried again
//! as often as any delivery, as long as the instance lives.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_app::{ATTEMPTS_MAX, App, Caller, Subscription, Target};
use blockbase_store::{ClaimedEvent, CommittedEvent};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::group::log_event;

/// Events of one subscription that may wait for another attempt.
const RETRIES_MAX: usize = 1000;

/// Keeps a task running for each such subscription. Never ends.
pub(crate) async fn serve(app: Arc<App>) {
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
            let begin = || tokio::spawn(follow(Arc::clone(&app), Arc::clone(subscription)));
            running.entry(key).or_insert_with(begin);
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn follow(app: Arc<App>, subscription: Arc<Subscription>) {
    let mut reader = app.feed().read(subscription.patterns().to_vec());
    let retries = Arc::new(Semaphore::new(RETRIES_MAX));
    let system = Caller::system();
    while let Some(event) = reader.next_or_catch_up(&app, &system).await {
        let event = claimed(&event);
        let Err(problem) = deliver(&app, &subscription, event.clone(), 0).await else { continue };
        tracing::warn!(
            event.id = event.id,
            event.consumer = subscription.consumer,
            "a delivery on this instance failed: {problem}"
        );
        // The next events go on meanwhile.
        let Ok(place) = Arc::clone(&retries).try_acquire_owned() else {
            tracing::error!(
                event.id = event.id,
                event.consumer = subscription.consumer,
                "too many deliveries wait; this one is given up"
            );
            continue;
        };
        let (app, subscription) = (Arc::clone(&app), Arc::clone(&subscription));
        tokio::spawn(async move {
            retry(&app, &subscription, event).await;
            drop(place);
        });
    }
}

async fn retry(app: &Arc<App>, subscription: &Subscription, event: ClaimedEvent) {
    for attempts in 1..ATTEMPTS_MAX {
        let Some(pause) = app.retry_pause(attempts - 1) else { break };
        tokio::time::sleep(pause).await;
        if deliver(app, subscription, event.clone(), attempts).await.is_ok() {
            return;
        }
    }
    tracing::error!(event.id = event.id, event.consumer = subscription.consumer, "a delivery on this instance is given up");
}

async fn deliver(app: &Arc<App>, subscription: &Subscription, event: ClaimedEvent, attempts: i64) -> Result<(), String> {
    match &subscription.target {
        Target::LogEvent => {
            log_event(&subscription.consumer, &event);
            Ok(())
        }
        Target::Block { block, handler, config } => {
            app.deliver_to_block(block, handler, config, event, attempts).await.map_err(|error| error.message)
        }
        Target::Broken(problem) => Err(problem.clone()),
        Target::PersistEvent(_) | Target::Webhook(_) => Err("this handler does not run on every instance".to_owned()),
    }
}

fn claimed(event: &CommittedEvent) -> ClaimedEvent {
    ClaimedEvent {
        id: event.id.clone(),
        topic: event.topic.clone(),
        payload: event.payload().to_owned(),
        occurred_at: event.occurred_at,
        depth: event.depth,
    }
}
