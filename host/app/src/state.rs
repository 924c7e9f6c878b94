//! The state of the service, which every operation uses.

pub(crate) mod activity;
pub(crate) mod acts_later;
pub(crate) mod block_faults;
pub(crate) mod block_types;
pub(crate) mod block_usage;
pub(crate) mod breached_passwords;
pub(crate) mod event_decisions;
pub(crate) mod exports;
pub(crate) mod feed;
pub(crate) mod identity_cache;
pub(crate) mod inspected;
pub(crate) mod instance;
pub(crate) mod listed_settings;
pub(crate) mod mail_texts;
pub(crate) mod manifest;
pub(crate) mod master_secret;
pub(crate) mod persist_config;
pub(crate) mod purge;
pub(crate) mod readings;
pub(crate) mod refresh;
pub(crate) mod routing;
pub(crate) mod runs_under_way;
pub(crate) mod sign_in_tries;
pub(crate) mod try_limits;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use blockbase_auth::{CookieSigner, EtagKey, PasswordHasher, SecretBox};
use blockbase_outbound::AddressPolicy;
use blockbase_query::Shapes;
use blockbase_quota::{ByteQuota, Places};
use blockbase_schema::{Error, Registry, Result};
use blockbase_store::{BlockLogRow, MailKind, Store};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc, watch};

use crate::base::clock::Clock;
use crate::state::activity::Activity;
use crate::state::acts_later::ActsLater;
use crate::state::block_faults::BlockFaults;
use crate::state::block_types::{BlockRuntime, InstalledBlock};
use crate::state::block_usage::Usages;
use crate::state::breached_passwords::BreachedPasswords;
use crate::state::exports::Exports;
use crate::state::feed::Feed;
use crate::state::identity_cache::IdentityCache;
use crate::state::inspected::Inspected;
use crate::state::instance::Process;
use crate::state::listed_settings::ListedSetting;
use crate::state::mail_texts::MailTexts;
use crate::state::readings::Readings;
use crate::state::routing::Subscriptions;
use crate::state::runs_under_way::RunsUnderWay;
use crate::state::try_limits::TryLimits;

/// Writes the link of a mail, with its token and the page where the link ends.
pub type MailLink = Arc<dyn Fn(MailKind, &str, Option<&str>) -> String + Send + Sync>;

/// The settings that the operations need.
#[derive(Clone)]
pub struct Settings {
    /// Whether permissions are enforced.
    pub require_auth: bool,
    /// Whether sign-up closes once the first admin exists.
    pub disable_signup: bool,
    /// The token that the first sign-up of a fresh server has to send.
    pub setup_token: Option<String>,
    /// The role of every new user who signs up, except the first user and guests who sign up.
    pub signup_role: Option<String>,
    /// Whether guests may sign in.
    pub anonymous_auth: bool,
    /// The host of the public URL, used in the placeholder addresses of guests.
    pub public_host: String,
    /// The address of the page where people set a password. Links to it are made only from this setting, never from data of a
    /// request.
    pub set_password_url: String,
    /// Makes the links of mails. This is a function of the surface, because only the surface knows its addresses. They are made
    /// from the public URL only.
    pub mail_link: MailLink,
    /// The texts of mail. `None` if the server sends no mail.
    pub mail: Option<Arc<MailTexts>>,
    /// The passwords that nobody may choose because they were in a breach, if the operator has a list.
    pub breached_passwords: Option<Arc<BreachedPasswords>>,
    /// The maximum number of mails that one network may request within an hour.
    pub mails_of_network_max: i64,
    /// Whether users have to prove their address before they can sign in.
    pub require_email_verification: bool,
    /// Whether users may delete their own accounts.
    pub delete_user: bool,
    pub events_enabled: bool,
    /// The pause before the second attempt of a delivery, in milliseconds. It doubles for each further attempt.
    pub retry_base_ms: i64,
    /// The network addresses that the server may call.
    pub addresses: AddressPolicy,
    /// The age in days at which settled events are deleted. 0 keeps all events.
    pub events_retention_days: u32,
    /// The age in days at which rows of the audit log are deleted. 0 keeps all rows.
    pub audit_retention_days: u32,
    /// The size of the outbox in bytes above which the oldest settled events are deleted. 0 means no limit.
    pub events_bytes_max: i64,
    /// The maximum number of records in one bulk call.
    pub bulk_records_max: usize,
    /// The maximum size of a text field's value in bytes, if the field has no `max` of its own.
    pub text_bytes_max: usize,
    /// The maximum size of a request's body in bytes. The `max` of a field cannot allow more.
    pub body_bytes_max: usize,
    /// The maximum number of bytes in the response to a request for a list.
    pub answer_bytes_max: usize,
    /// The maximum number of open streams of one owner.
    pub streams_of_one_max: usize,
    /// The time limit of an action call if its manifest sets none.
    pub action_timeout_ms: u64,
    /// The directory for exported rows that clients have not received yet.
    pub spool_directory: PathBuf,
    /// All settings, in the form in which they are shown.
    pub listed: Arc<[ListedSetting]>,
}

/// The last update of suspensions: its time, and the versions of the data that they depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RightsSettled {
    /// The generation of the accounts.
    pub(crate) generation: u64,
    /// The version of the blocks, because their manifests decide which rights they ask for and who may call their actions.
    pub(crate) blocks: i64,
    /// The version of the schema. A grant for a block loses its meaning with a field that it lists.
    pub(crate) schema: i64,
    pub(crate) at: i64,
    /// The time when the next key expires on which a thing depends.
    pub(crate) holds_until: i64,
}

impl RightsSettled {
    pub(crate) fn never() -> RightsSettled {
        RightsSettled { generation: u64::MAX, blocks: -1, schema: -1, at: 0, holds_until: 0 }
    }
}

/// The service below its surfaces.
pub struct App {
    pub(crate) store: Store,
    /// The kinds of things that act later, in the order in which their suspensions are updated.
    pub(crate) acts_later: &'static [&'static dyn ActsLater],
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) hasher: PasswordHasher,
    pub(crate) cookies: CookieSigner,
    pub(crate) secrets: SecretBox,
    pub(crate) etags: EtagKey,
    pub(crate) registry: RwLock<Arc<Registry>>,
    /// Locked while the registry is loaded for an event of a newer schema. The value is when such a load failed last.
    pub(crate) reaching_schema: tokio::sync::Mutex<Option<Instant>>,
    /// Objects and registries without the fields that a caller may not know, for callers who may not know every field.
    pub(crate) shapes: Arc<Shapes>,
    /// A change of the schema locks this for writing until the change is served. Operations that a change interrupted lock it for
    /// reading.
    pub(crate) schema_gate: tokio::sync::RwLock<()>,
    pub(crate) subscriptions: RwLock<Arc<Subscriptions>>,
    /// Notified when the subscriptions have changed.
    pub(crate) subscriptions_changed: watch::Sender<i64>,
    /// Notified when the schema or the installed blocks have changed.
    pub(crate) catalogue_changed: watch::Sender<()>,
    /// Notified when a consumer group was deleted.
    pub(crate) group_gone: Notify,
    pub(crate) blocks: RwLock<Arc<BTreeMap<String, Arc<InstalledBlock>>>>,
    pub(crate) usages: Usages,
    pub(crate) blocks_version: Mutex<i64>,
    /// Locked while a request looks in the database for a missing block. The next one looks for itself, because this one may have
    /// looked too early. Only a change that it found counts for both.
    pub(crate) looking_for_blocks: tokio::sync::Mutex<()>,
    pub(crate) identities: Arc<IdentityCache>,
    pub(crate) tries: TryLimits,
    pub(crate) rights_settled: Mutex<RightsSettled>,
    /// Locked while suspensions are updated.
    pub(crate) settling_rights: tokio::sync::Mutex<()>,
    pub(crate) task_runs_under_way: RunsUnderWay,
    pub(crate) feed: Feed,
    pub(crate) scans: Arc<Places>,
    pub(crate) response_bytes: Arc<ByteQuota>,
    pub(crate) streams: Arc<Places>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) writes: AtomicU64,
    pub(crate) activity: Activity,
    pub(crate) block_faults: BlockFaults,
    pub(crate) process: Process,
    pub(crate) status_readings: Readings,
    pub(crate) runtime: OnceLock<Arc<dyn BlockRuntime>>,
    /// A reference to the service, for background work that needs it.
    pub(crate) itself: OnceLock<Weak<App>>,
    pub(crate) log_lines: mpsc::Sender<BlockLogRow>,
    /// Log lines of running calls, by call, for the callers who are going to see them.
    pub(crate) watched_calls: Mutex<HashMap<String, Vec<BlockLogRow>>>,
    /// Compiled files that were inspected a short time ago.
    pub(crate) inspected: Inspected,
    /// The time when the log last reported lost lines of blocks.
    pub(crate) log_loss_reported_at: AtomicI64,
}

/// The longest time that the server waits for an answer of the database. If the answer takes longer, the server is not ready.
const READY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

impl App {
    pub(crate) fn runtime(&self) -> Result<&Arc<dyn BlockRuntime>> {
        self.runtime.get().ok_or_else(|| Error::internal("no block runtime was set"))
    }

    /// A weak reference to this service, empty until the start has set it.
    pub(crate) fn weak(&self) -> Weak<App> {
        self.itself.get().cloned().unwrap_or_default()
    }

    /// A reference to this service, for a transaction that has to own its data.
    pub(crate) fn itself(&self) -> Result<Arc<App>> {
        let itself = self.itself.get().and_then(Weak::upgrade);
        itself.ok_or_else(|| Error::internal("the service has not started yet, or it has stopped"))
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn cookies(&self) -> &CookieSigner {
        &self.cookies
    }

    /// Whether other instances may use the same database.
    pub fn is_shared(&self) -> bool {
        self.store.dialect() == blockbase_query::Dialect::Postgres
    }

    /// The schema for new requests.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read())
    }

    /// Milliseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// The number of calls that have written records since the start.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Counts an answered request, for the activity of the last hour.
    pub fn count_answer(&self, is_error: bool) {
        self.activity.answered(self.clock.now(), is_error);
    }

    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Waits until a consumer group is deleted. The caller then drops its deliveries.
    pub async fn group_gone(&self) {
        self.group_gone.notified().await;
    }

    /// A receiver that is notified of each change of the subscriptions.
    pub fn watch_subscriptions(&self) -> watch::Receiver<i64> {
        self.subscriptions_changed.subscribe()
    }

    /// Whether the server can serve requests.
    pub async fn is_ready(&self) -> bool {
        tokio::time::timeout(READY_TIMEOUT, self.store.is_ready()).await.unwrap_or(false)
    }
}
