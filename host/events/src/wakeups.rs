//! Hints that there may be waiting deliveries. They come from the commits of this process and from other instances.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use blockbase_app::App;
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

/// How long hints for other instances are collected.
const GATHER: Duration = Duration::from_millis(50);
/// The pause if the database did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// Collects the consumer groups that have new deliveries.
#[derive(Clone, Default)]
pub struct Wakeups(Arc<Shared>);

#[derive(Default)]
struct Shared {
    gathered: Mutex<Gathered>,
    /// Notifies the dispatcher.
    some: Notify,
    /// Notifies the task that informs other instances.
    own: Notify,
}

#[derive(Default)]
struct Gathered {
    groups: BTreeSet<String>,
    /// Whether another instance has new deliveries, but has not named their groups.
    elsewhere: bool,
}

/// The collected hints.
pub(crate) enum Wakeup {
    Groups(BTreeSet<String>),
    Anything,
}

impl Wakeups {
    /// Receives the consumer groups that have new deliveries from a commit of this process.
    pub fn committed(&self, groups: BTreeSet<String>) {
        if groups.is_empty() {
            return;
        }
        self.0.gathered.lock().groups.extend(groups);
        self.0.some.notify_one();
        self.0.own.notify_one();
    }

    fn elsewhere(&self) {
        self.0.gathered.lock().elsewhere = true;
        self.0.some.notify_one();
    }

    pub(crate) async fn next(&self) -> Wakeup {
        loop {
            let gathered = std::mem::take(&mut *self.0.gathered.lock());
            if gathered.elsewhere {
                return Wakeup::Anything;
            }
            if !gathered.groups.is_empty() {
                return Wakeup::Groups(gathered.groups);
            }
            self.0.some.notified().await;
        }
    }
}

/// Informs other instances about commits here, at most a few times a second, and listens to their hints.
pub(crate) fn share(app: Arc<App>, wakeups: Wakeups) {
    let instance = Uuid::new_v4().to_string();
    tokio::spawn(tell(Arc::clone(&app), wakeups.clone(), instance.clone()));
    tokio::spawn(hear(app, wakeups, instance));
}

async fn tell(app: Arc<App>, wakeups: Wakeups, instance: String) {
    loop {
        wakeups.0.own.notified().await;
        if let Err(error) = app.hint(instance.clone()).await {
            tracing::debug!(error.cause = %error, "other instances could not be notified of deliveries; their polls find them");
        }
        tokio::time::sleep(GATHER).await;
    }
}

async fn hear(app: Arc<App>, wakeups: Wakeups, instance: String) {
    loop {
        match app.hints().await {
            Ok(None) => return,
            Ok(Some(mut hints)) => {
                while let Ok(from) = hints.next().await {
                    if from != instance {
                        wakeups.elsewhere();
                    }
                }
            }
            Err(error) => tracing::debug!(error.cause = %error, "hints of other instances cannot be received"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
