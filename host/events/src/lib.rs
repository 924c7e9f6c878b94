//! What runs behind the requests: following other instances, scheduled tasks, storing what blocks log, folding counts.
//!
//! It calls operations of `app` and must not know of surfaces. Polling is the truth here; whatever wakes it earlier is a hint.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::App;
use blockbase_app::schema::Result;
use blockbase_store::{BlockLogRow, ReadCost};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// How often this instance looks whether another changed the schema or the blocks.
const REFRESH: Duration = Duration::from_millis(500);
/// How often the feed of Postgres looks for events. Commits are seen by it within this time, on every instance.
const FEED_POLL: Duration = Duration::from_millis(20);
/// The same while there are events.
const FEED_BREATH: Duration = Duration::from_millis(5);
/// The same after a failure, so that a database that is away is not asked without pause.
const FEED_PAUSE: Duration = Duration::from_secs(1);
/// How often the kept counts of Postgres are folded.
const FOLD: Duration = Duration::from_secs(5);
/// How often this instance looks for tasks that are due.
const TASKS: Duration = Duration::from_secs(1);
/// How often it looks for runs whose instance is gone.
const ABANDONED: Duration = Duration::from_secs(10);
/// How often sessions that have expired are deleted.
const SESSIONS: Duration = Duration::from_secs(3600);
/// How long log lines of blocks gather before they are stored.
const LOG_GATHER: Duration = Duration::from_millis(100);
/// Log lines stored at once.
const LOG_LINES_MAX: usize = 500;

/// Starts the background work; it ends with the runtime.
pub fn start(app: &Arc<App>, log_lines: mpsc::Receiver<BlockLogRow>) {
    tokio::spawn(store_logs(Arc::clone(app), log_lines));
    // Other instances change what is kept in memory; and so does a request here whose client went away between its commit
    // and its refresh.
    tokio::spawn(every(REFRESH, Arc::clone(app), "the catalogue could not be compared with the database", |app| async move {
        app.refresh().await
    }));
    tokio::spawn(every(TASKS, Arc::clone(app), "tasks that are due could not be begun", |app| async move {
        app.run_due_tasks().await
    }));
    tokio::spawn(every(SESSIONS, Arc::clone(app), "expired sessions could not be deleted", |app| async move {
        app.purge_sessions().await.map(|_| ())
    }));
    tokio::spawn(every(ABANDONED, Arc::clone(app), "runs of tasks could not be looked after", |app| async move {
        app.fail_abandoned_runs(false).await
    }));
    // One process alone writes a SQLite file, and its writer feeds the stream itself.
    if app.is_shared() {
        tokio::spawn(every(FOLD, Arc::clone(app), "kept counts could not be folded", |app| async move {
            app.store().write(|connection| Box::pin(async move { Ok(connection.fold_counts().await?) })).await
        }));
        if app.settings().events_enabled {
            tokio::spawn(follow_events(Arc::clone(app)));
        }
    }
}

/// Does `work` again and again, at once for the first time.
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

/// Reads the outbox in transaction order and feeds the streams of this instance.
async fn follow_events(app: Arc<App>) {
    let mut cursor = None;
    loop {
        let from = cursor.clone();
        let read = app
            .store()
            .read(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    match from {
                        None => Ok((Vec::new(), connection.feed_start().await?)),
                        Some(from) => Ok(connection.feed_after(&from).await?),
                    }
                })
            })
            .await;
        match read {
            Ok((events, next)) => {
                let is_behind = !events.is_empty();
                app.publish(events);
                cursor = Some(next);
                // A backlog goes out page by page, with a breath for the readers in between.
                tokio::time::sleep(if is_behind { FEED_BREATH } else { FEED_POLL }).await;
            }
            Err(error) => {
                tracing::warn!(error.cause = %error, "the outbox could not be read for the event stream");
                tokio::time::sleep(FEED_PAUSE).await;
            }
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
