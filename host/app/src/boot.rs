//! Starts the service: makes its state, and prepares the database for the first request.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, OnceLock};

use blockbase_auth::{CookieSigner, EtagKey, PasswordHasher, SecretBox};
use blockbase_schema::{Error, Result};
use blockbase_store::{BlockLogRow, ReadCost, Store};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc, watch};

use crate::access::quota;
use crate::accounts::api_keys::MadeApiKeys;
use crate::automation::tasks::MadeTasks;
use crate::base::clock::Clock;
use crate::blocks::MadeBlocks;
use crate::delivery::stream;
use crate::delivery::subscriptions::MadeSubscriptions;
use crate::delivery::webhooks::MadeWebhooks;
use crate::state::acts_later::ActsLater;
use crate::state::block_faults::BlockFaults;
use crate::state::block_types::BlockRuntime;
use crate::state::block_usage::Usages;
use crate::state::exports::Exports;
use crate::state::feed::Feed;
use crate::state::inspected::Inspected;
use crate::state::readings::Readings;
use crate::state::runs_under_way::RunsUnderWay;
use crate::state::try_limits::TryLimits;
use crate::state::{App, RightsSettled, Settings};
use crate::state::{activity, instance};

/// The maximum number of log lines of blocks that may wait to be stored. Beyond this number, new lines are only written to the
/// process log.
const LOG_LINES_QUEUE_MAX: usize = 10_000;

/// All kinds of things that act later with the rights of their makers.
static ACT_LATER: [&dyn ActsLater; 5] = [&MadeApiKeys, &MadeWebhooks, &MadeSubscriptions, &MadeTasks, &MadeBlocks];

impl App {
    /// Loads the catalogue. The receiver gets the log lines of blocks. The caller has to store them with
    /// [`App::store_block_logs`].
    ///
    /// # Errors
    /// If the database does not answer, or if its catalogue cannot be read.
    pub async fn new(
        store: Store,
        settings: Settings,
        clock: Clock,
        cookies: CookieSigner,
        secrets: SecretBox,
        etags: EtagKey,
        feed: Feed,
    ) -> Result<(Arc<App>, mpsc::Receiver<BlockLogRow>)> {
        let (log_lines, log_receiver) = mpsc::channel(LOG_LINES_QUEUE_MAX);
        let scans = quota::scan_places(store.callers_scans_max());
        let exports = Arc::new(Exports::new(store.callers_scans_max(), settings.spool_directory.clone()));
        let started_at = clock.now();
        let process = instance::Process { id: clock.id(started_at).to_string(), started_at };
        let app = Arc::new(App {
            scans,
            response_bytes: quota::response_bytes(),
            exports,
            store,
            acts_later: &ACT_LATER,
            hasher: PasswordHasher::new().map_err(Error::internal)?,
            cookies,
            secrets,
            etags,
            registry: RwLock::default(),
            reaching_schema: tokio::sync::Mutex::default(),
            shapes: Arc::default(),
            schema_gate: tokio::sync::RwLock::default(),
            subscriptions: RwLock::default(),
            subscriptions_changed: watch::Sender::new(0),
            catalogue_changed: watch::Sender::new(()),
            group_gone: Notify::new(),
            blocks: RwLock::default(),
            usages: Usages::new(clock.now()),
            blocks_version: Mutex::new(-1),
            looking_for_blocks: tokio::sync::Mutex::default(),
            identities: Arc::default(),
            tries: TryLimits::default(),
            rights_settled: Mutex::new(RightsSettled::never()),
            settling_rights: tokio::sync::Mutex::default(),
            task_runs_under_way: RunsUnderWay::default(),
            feed,
            streams: stream::stream_places(settings.streams_of_one_max),
            settings,
            clock,
            writes: AtomicU64::new(0),
            activity: activity::Activity::default(),
            block_faults: BlockFaults::default(),
            process,
            status_readings: Readings::default(),
            runtime: OnceLock::new(),
            itself: OnceLock::new(),
            log_lines,
            watched_calls: Mutex::default(),
            inspected: Inspected::default(),
            log_loss_reported_at: AtomicI64::new(0),
        });
        let _ = app.itself.set(Arc::downgrade(&app));
        app.seal_stored_headers().await?;
        app.seal_stored_files().await?;
        app.refresh().await?;
        match app.ensure_search_indexes().await {
            Err(error) if app.is_shared() => {
                // Without the index, searches are correct but slow. Perhaps another instance is creating it, or the table is in
                // use.
                tracing::warn!(error.cause = %error, "a search index could not be created; the next start tries again");
            }
            made => made?,
        }
        app.seed_tasks().await?;
        app.release_claims().await?;
        app.start_feed().await?;
        app.fail_abandoned_runs(true).await?;
        if let Some(role) = app.settings.signup_role.clone() {
            let known = app
                .store
                .read_as_service(ReadCost::Rows, move |connection| {
                    Box::pin(async move { Ok(connection.role_named(&role).await?.is_some()) })
                })
                .await?;
            if !known {
                tracing::warn!("SVC_SIGNUP_ROLE names a role that does not exist; new users get no role until it does");
            }
        }
        Ok((app, log_receiver))
    }

    /// Connects the block runtime to the operations. It is called once, at the start.
    pub fn set_runtime(&self, runtime: Arc<dyn BlockRuntime>) {
        let _ = self.runtime.set(runtime);
        self.retain_installed();
    }
}

#[cfg(test)]
mod tests {
    use blockbase_store::ThingKind;

    use super::*;

    #[test]
    fn each_kind_that_keeps_its_maker_is_looked_after_once() {
        assert_eq!(ACT_LATER.map(ActsLater::kind), ThingKind::ALL);
    }
}
