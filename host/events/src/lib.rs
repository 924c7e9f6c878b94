//! The background work: the dispatcher of deliveries, the feed of Postgres, scheduled tasks, writing the log lines of blocks, and
//! folding counts.
//!
//! This crate calls operations of `app` and must not know of surfaces. Polling alone is sufficient for all of this work. Hints
//! only make it react earlier.
#![forbid(unsafe_code)]

mod dispatcher;
mod feed;
mod handler;
mod instance;
mod mail;
mod settings;
mod throttle;
mod wakeups;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::schema::Result;
use blockbase_app::{App, FeedPump};
use blockbase_store::BlockLogRow;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use dispatcher::Dispatcher;
pub use settings::Settings;
pub use wakeups::Wakeups;

/// How often this instance checks, with one short statement, whether another instance changed the schema, the blocks, the
/// subscriptions or the accounts. The documentation promises that other instances follow a change within half a second.
const REFRESH: Duration = Duration::from_millis(400);
/// How often the stored counts of Postgres are folded.
const FOLD: Duration = Duration::from_secs(5);
/// How often this instance looks for tasks that are due.
const TASKS: Duration = Duration::from_secs(1);
/// How often this instance looks for runs of tasks whose instance has ended.
const ABANDONED: Duration = Duration::from_secs(10);
/// How often this instance looks for things that an expired API key made.
const EXPIRED_KEYS: Duration = Duration::from_secs(2);
/// How often this instance checks whether makers lost or regained rights that their things need.
const RIGHTS: Duration = Duration::from_secs(1);
/// How often sessions and links that have expired are deleted.
const SESSIONS: Duration = Duration::from_secs(3600);
/// How often deliveries of deleted groups are dropped.
const SWEEP: Duration = Duration::from_secs(600);
/// How often old events are deleted if the outbox exceeds its maximum size.
const OUTBOX: Duration = Duration::from_secs(5);
/// How often this instance looks, with one short statement, for upgrades of guests that were interrupted by the end of a process.
const CARRY_OVERS: Duration = Duration::from_secs(60);
/// How often this instance reports to the others that it is alive, with one short statement.
const ALIVE: Duration = Duration::from_secs(10);
/// The longest time that a stopping instance may take to report its end to the others.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// How often the length of the queues is measured for telemetry.
const QUEUES: Duration = Duration::from_secs(5);
/// How long log lines of blocks are collected before they are stored.
const LOG_GATHER: Duration = Duration::from_millis(100);
/// The maximum number of log lines that are stored at once.
const LOG_LINES_MAX: usize = 500;

/// The background work of a running server.
pub struct Background {
    app: Arc<App>,
    dispatcher: Option<Arc<Dispatcher>>,
    /// The tokio tasks that poll the database.
    pollers: Vec<JoinHandle<()>>,
}

impl Background {
    /// Starts no further deliveries.
    pub fn begin_drain(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.begin_drain();
        }
    }

    /// Starts no further deliveries, and waits for those in progress on this instance.
    pub async fn drain(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.drain().await;
        }
        for poller in &self.pollers {
            poller.abort();
        }
        if self.app.is_shared()
            && let Ok(Err(error)) = tokio::time::timeout(FAREWELL_MAX, self.app.forget_instance()).await
        {
            tracing::warn!(error.cause = %error, "the other instances could not be informed that this one ends");
        }
    }
}

/// Starts the background work. It ends with the runtime.
pub fn start(
    app: &Arc<App>,
    settings: Settings,
    wakeups: Wakeups,
    pump: FeedPump,
    log_lines: mpsc::Receiver<BlockLogRow>,
) -> Background {
    let mut pollers = Vec::new();
    tokio::spawn(store_logs(Arc::clone(app), log_lines));
    // The data that this instance keeps in memory becomes outdated if another instance changes the database. It also does so if
    // the client of a request here disconnects between the commit and the refresh.
    pollers.push(tokio::spawn(every(
        REFRESH,
        Arc::clone(app),
        "the catalogue could not be compared with the database",
        |app| async move { app.refresh().await },
    )));
    pollers.push(tokio::spawn(every(TASKS, Arc::clone(app), "due tasks could not be started", |app| async move {
        app.run_due_tasks().await
    })));
    let problem = "expired sessions, links and tickets, or old mails, could not be deleted";
    pollers.push(tokio::spawn(every(SESSIONS, Arc::clone(app), problem, |app| async move {
        // If one of these fails, the others are still made.
        let purged = [
            app.purge_sessions().await,
            app.purge_account_tokens().await,
            app.purge_stream_tickets().await,
            app.purge_mails().await,
        ];
        purged.into_iter().try_for_each(|purged| purged.map(drop))
    })));
    pollers.push(tokio::spawn(every(
        EXPIRED_KEYS,
        Arc::clone(app),
        "things that expired keys made could not be suspended",
        |app| async move { app.settle_expired_keys().await },
    )));
    pollers.push(tokio::spawn(every(RIGHTS, Arc::clone(app), "suspensions could not be updated", |app| async move {
        app.settle_rights().await
    })));
    pollers.push(tokio::spawn(every(ABANDONED, Arc::clone(app), "runs of tasks could not be updated", |app| async move {
        app.fail_abandoned_runs(false).await
    })));
    let problem = "records of guests could not be moved to the users that they became";
    pollers.push(tokio::spawn(every(CARRY_OVERS, Arc::clone(app), problem, |app| async move { app.finish_carry_overs().await })));
    // Only one process writes a SQLite file, and its writer feeds the stream itself.
    if app.is_shared() {
        pollers.push(tokio::spawn(every(FOLD, Arc::clone(app), "stored counts could not be folded", |app| async move {
            app.fold_counts().await
        })));
        let problem = "the other instances could not be informed that this one is alive";
        pollers.push(tokio::spawn(every(ALIVE, Arc::clone(app), problem, |app| async move { app.note_instance().await })));
    }
    if !app.settings().events_enabled {
        return Background { app: Arc::clone(app), dispatcher: None, pollers };
    }
    tokio::spawn(pump.run());
    if app.is_shared() {
        pollers.push(tokio::spawn(feed::follow(Arc::clone(app))));
    }
    pollers.push(tokio::spawn(sweep(Arc::clone(app))));
    pollers.push(tokio::spawn(every(
        OUTBOX,
        Arc::clone(app),
        "the outbox could not be reduced to its maximum size",
        |app| async move { app.bound_outbox().await.map(|_| ()) },
    )));
    if blockbase_telemetry::is_on() {
        let problem = "the depth of the queues could not be read";
        pollers.push(tokio::spawn(every(QUEUES, Arc::clone(app), problem, |app| async move { observe_queues(&app).await })));
    }
    let dispatcher = Dispatcher::new(Arc::clone(app), settings);
    tokio::spawn(instance::serve(Arc::clone(&dispatcher)));
    if app.is_shared() {
        wakeups::share(Arc::clone(app), wakeups.clone());
    }
    pollers.push(tokio::spawn(Arc::clone(&dispatcher).run(wakeups)));
    Background { app: Arc::clone(app), dispatcher: Some(dispatcher), pollers }
}

/// Drops deliveries of deleted groups: at the start, when a group is deleted, and every [`SWEEP`].
async fn sweep(app: Arc<App>) {
    let mut ticks = interval(SWEEP);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = app.group_gone() => {}
        }
        if let Err(error) = app.sweep_deliveries().await {
            tracing::warn!(error.cause = %error, "deliveries of consumer groups that no longer exist could not be deleted");
        }
    }
}

/// Reports the number of waiting deliveries to telemetry.
async fn observe_queues(app: &App) -> Result<()> {
    let (depths, oldest_ms) = app.queue_depths().await?;
    let pending = depths.into_iter().map(|depth| (depth.consumer, u64::try_from(depth.pending).unwrap_or(0))).collect();
    blockbase_telemetry::set_queue(pending, oldest_ms as f64 / 1000.0);
    Ok(())
}

/// Repeats `work` with this period. The first run starts at once.
async fn every<F>(period: Duration, app: Arc<App>, problem: &'static str, work: impl Fn(Arc<App>) -> F)
where
    F: Future<Output = Result<()>>,
{
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = work(Arc::clone(&app)).await {
            tracing::warn!(error.cause = %error, "{problem}");
        }
    }
}

async fn store_logs(app: Arc<App>, mut lines: mpsc::Receiver<BlockLogRow>) {
    let mut gathered = Vec::new();
    while lines.recv_many(&mut gathered, LOG_LINES_MAX).await > 0 {
        if let Err(error) = app.store_block_logs(std::mem::take(&mut gathered)).await {
            tracing::warn!(error.cause = %error, "log lines of blocks could not be stored");
        }
        tokio::time::sleep(LOG_GATHER).await;
    }
}
