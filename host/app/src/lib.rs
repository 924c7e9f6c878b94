//! The operations of the service: records, schema, accounts, blocks, the live feed. The only place that commits.
//!
//! Every surface and every block goes through these functions with a [`Caller`]; the permission check is inside them.
//! This crate must not know of HTTP, GraphQL, MCP or wasmtime. Where it needs what lives above it (running a block) it
//! defines a trait, and `server` joins the two.
#![forbid(unsafe_code)]

mod accounts;
mod activity;
mod admission;
mod answer;
mod api_keys;
mod blocks;
mod caller;
mod clock;
mod deletion;
mod deliveries;
mod erasure;
mod event_handlers;
mod expand;
mod export;
mod feed;
mod frames;
mod identity;
mod instance;
mod judge;
mod links;
mod listed_settings;
mod makers;
mod manifest;
mod master_secret;
mod persist;
mod platform_event;
mod preferences;
mod quota;
mod recheck;
mod record_events;
mod records;
mod refresh;
mod retention;
mod roles;
mod schema_change;
mod sized;
mod stamps;
mod standing;
mod status;
mod stored;
mod stream;
mod strength;
mod subscriptions;
mod surface;
mod suspension;
mod tasks;
mod topic;
mod touched;
mod users;
mod versions;
mod view_as;
mod visible;
mod webhooks;
mod writes;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use blockbase_auth::{CookieSigner, EtagKey, PasswordHasher, SecretBox};
use blockbase_outbound::AddressPolicy;
use blockbase_quota::{ByteQuota, Places};
use blockbase_schema::{Error, Registry, Result};
use blockbase_store::{BlockLogRow, Store};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc, watch};

pub use accounts::{
    AuthProblem, BootstrapAdmin, Client, CurrentSession, ListedSession, MeAnswer, ProfileChanges, SessionAnswer, SignIn, SignUp,
    SignedIn, UserAnswer,
};
pub use answer::{MakerAnswer, SuspensionAnswer, Timestamp};
pub use api_keys::{ApiKeyAnswer, NewKey};
pub use blockbase_query::Function as AggregateFunction;
pub use blockbase_query::Permissions as CallerPermissions;
pub use blockbase_query::{
    Access, Action, AggregateRequest, ExportRequest, Filter, FilterValue, Grant, ListParameter, ListRequest, Operand, Operator,
    Paging, PagingParameters, Related, RowPolicy, TopicFilter, TopicPattern, expand_paths, limits,
};
pub use blockbase_quota::{QuotaOwner, network_of};
pub use blockbase_schema as schema;
pub use blockbase_store::{ATTEMPTS_KEPT, Incomplete, SpoolReader};
pub use blocks::{
    ActionCall, ActionOutcome, BlockAnswer, BlockRuntime, BlockSecretAnswer, BlockUsageAnswer, DeclaredActions, EventCall,
    HandlerUsage, HookCall, HookRequest, HookResponse, Inspection, InstallOptions, InstallReport, Installed, InstalledBlock,
    KeptLine, LogPage, LogRequest, NewPermissions, PreparedBlock, ReplayRequest, Replayed, TOOLS,
};
pub use caller::{Authority, Caller, Credentials};
pub use clock::Clock;
pub use deliveries::{
    ATTEMPTS_MAX, Attempt, AttemptAnswer, DELIVERY_STATUSES, DeliveryAnswer, DeliveryCounts, DeliveryWithHistory, Ended, Lease,
    LedgerRequest,
};
pub use export::{Export, ExportForm};
pub use feed::{EventsRequest, Feed, FeedPump, FeedReader};
pub use frames::{FramePlace, FrameSender, Frames};
pub use identity::{PrincipalSlot, RenewalSlot, Renewed};
pub use instance::{InstanceAnswer, SignInMethod};
pub use judge::Judge;
pub use links::LinkChange;
pub use listed_settings::{ListedSetting, SettingSource};
pub use manifest::{
    ActionDeclaration, DataPermission, HookDeclaration, Manifest, Permissions as BlockPermissions, Rbac, Requires, RunAs,
    SubscriptionDeclaration,
};
pub use master_secret::{database_id, secret_opens};
pub use persist::{PersistConfig, UNDECODABLE};
pub use preferences::{GUEST_PREFERENCES_BYTES_MAX, PREFERENCES_BYTES_MAX};
pub use records::{ListAnswer, PaginationAnswer, write_warnings};
pub use roles::{RoleAnswer, RoleChanges, RolePermissions};
pub use schema_change::{
    Broken, Change, ChangePlan, Dependent, DependentKind, FieldChanges, HistoryRequest, Lost, LostKind, Mode as SchemaMode,
    ObjectChanges, SchemaDocument,
};
pub use sized::run_sized;
pub use standing::Standing;
pub use status::StatusAnswer;
pub use stream::{HEARTBEAT, StreamForm, StreamPlace, StreamRequest};
pub use subscriptions::{
    Answered, NewSubscription, Subscription, SubscriptionAnswer, Subscriptions, Target, check_consumer, is_built_in,
};
pub use surface::{IncomingBody, Invoker, log_cause};
pub use tasks::{NewTask, TaskAnswer, TaskChanges, TaskRunAnswer};
pub use users::{ManagedUserAnswer, OnDeletion, UserChanges, UserSearch, UserSessionAnswer};
pub use versions::{Condition, RecordAnswer};
pub use visible::Visible;
pub use webhooks::{NewWebhook, Webhook, WebhookAnswer, WebhookChanges};
pub use writes::{BulkAnswer, Upserted, WriteAnswer, WriteRequest, WrittenAnswer};

/// What the operations need to know of the configuration.
#[derive(Clone)]
pub struct Settings {
    /// Whether permissions are enforced.
    pub require_auth: bool,
    /// Whether sign-up closes once the first admin exists.
    pub disable_signup: bool,
    /// What the first sign-up of a fresh server has to send.
    pub setup_token: Option<String>,
    /// Role given to every plain new sign-up.
    pub signup_role: Option<String>,
    /// Whether guests may sign in.
    pub anonymous_auth: bool,
    /// The host of the public URL, of which placeholder addresses of guests are made.
    pub public_host: String,
    pub events_enabled: bool,
    /// Milliseconds before the second attempt of a delivery; doubled for each further one.
    pub retry_base_ms: i64,
    /// Which addresses may be called.
    pub addresses: AddressPolicy,
    /// Age in days at which settled events are deleted; 0 keeps all.
    pub events_retention_days: u32,
    /// Bytes of the outbox past which the oldest settled events are deleted; 0 is no bound.
    pub events_bytes_max: i64,
    /// Most records of one bulk call.
    pub bulk_records_max: usize,
    /// Largest value of a field of text, in bytes, where the field names no `max` of its own.
    pub text_bytes_max: usize,
    /// Largest body of a request, and so the most that a `max` of a field can allow.
    pub body_bytes_max: usize,
    /// Most bytes that a request which lists answers with.
    pub answer_bytes_max: usize,
    /// Most open streams of one owner.
    pub streams_of_one_max: usize,
    /// Time of one action call where its manifest names none.
    pub action_timeout_ms: u64,
    /// Where exports put rows that their clients have not taken yet.
    pub spool_directory: PathBuf,
    /// All settings as they are shown.
    pub listed: Arc<[ListedSetting]>,
}

/// The service below its surfaces.
pub struct App {
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) hasher: PasswordHasher,
    pub(crate) cookies: CookieSigner,
    pub(crate) secrets: SecretBox,
    pub(crate) etags: EtagKey,
    pub(crate) registry: RwLock<Arc<Registry>>,
    /// Held for writing by a change of the schema until it is served, for reading by operations that met one.
    pub(crate) schema_gate: tokio::sync::RwLock<()>,
    pub(crate) subscriptions: RwLock<Arc<Subscriptions>>,
    /// Told when they are other ones.
    pub(crate) subscriptions_changed: watch::Sender<i64>,
    /// Told when the schema or the installed blocks are other ones.
    pub(crate) catalogue_changed: watch::Sender<()>,
    /// Told when a consumer group is no more.
    pub(crate) group_gone: Notify,
    pub(crate) blocks: RwLock<Arc<BTreeMap<String, Arc<InstalledBlock>>>>,
    pub(crate) usages: blocks::Usages,
    blocks_version: Mutex<i64>,
    looking_for_blocks: tokio::sync::Mutex<()>,
    pub(crate) identities: Arc<identity::IdentityCache>,
    pub(crate) tries: accounts::TryLimits,
    pub(crate) rights_settled: Mutex<suspension::RightsSettled>,
    /// Held by whoever looks after suspensions.
    pub(crate) settling_rights: tokio::sync::Mutex<()>,
    pub(crate) task_runs_under_way: tasks::RunsUnderWay,
    feed: Feed,
    pub(crate) scans: Arc<Places>,
    pub(crate) response_bytes: Arc<ByteQuota>,
    pub(crate) streams: Arc<Places>,
    pub(crate) exports: Arc<export::Exports>,
    pub(crate) writes: AtomicU64,
    pub(crate) activity: activity::Activity,
    pub(crate) block_faults: blocks::BlockFaults,
    pub(crate) process: instance::Process,
    pub(crate) status_readings: status::Readings,
    runtime: OnceLock<Arc<dyn BlockRuntime>>,
    /// For what goes on in the background in its name.
    itself: OnceLock<Weak<App>>,
    log_lines: mpsc::Sender<BlockLogRow>,
    /// What calls have logged whose callers are shown it.
    pub(crate) watched_calls: Mutex<HashMap<String, Vec<BlockLogRow>>>,
    /// What is kept compiled of files that were inspected a moment ago.
    pub(crate) inspected: blocks::Inspected,
    /// When it was last told that lines of blocks are lost.
    pub(crate) log_loss_told_at: AtomicI64,
}

/// How long the database may take to answer while it counts as ready.
const READY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);
/// Block log lines that may wait to be stored; past it new ones reach the process log alone.
const LOG_LINES_QUEUE_MAX: usize = 10_000;

impl App {
    /// Loads the catalogue. The receiver takes what blocks log; somebody has to store it with [`App::store_block_logs`].
    ///
    /// # Errors
    /// The database does not answer, or its catalogue cannot be read.
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
        let exports = Arc::new(export::Exports::new(store.callers_scans_max(), settings.spool_directory.clone()));
        let started_at = clock.now();
        let process = instance::Process { id: clock.id(started_at).to_string(), started_at };
        let app = Arc::new(App {
            scans,
            response_bytes: quota::response_bytes(),
            exports,
            store,
            hasher: PasswordHasher::new().map_err(Error::internal)?,
            cookies,
            secrets,
            etags,
            registry: RwLock::default(),
            schema_gate: tokio::sync::RwLock::default(),
            subscriptions: RwLock::default(),
            subscriptions_changed: watch::Sender::new(0),
            catalogue_changed: watch::Sender::new(()),
            group_gone: Notify::new(),
            blocks: RwLock::default(),
            usages: blocks::Usages::new(clock.now()),
            blocks_version: Mutex::new(-1),
            looking_for_blocks: tokio::sync::Mutex::default(),
            identities: Arc::default(),
            tries: accounts::TryLimits::default(),
            rights_settled: Mutex::new(suspension::RightsSettled::never()),
            settling_rights: tokio::sync::Mutex::default(),
            task_runs_under_way: tasks::RunsUnderWay::default(),
            feed,
            streams: stream::stream_places(settings.streams_of_one_max),
            settings,
            clock,
            writes: AtomicU64::new(0),
            activity: activity::Activity::default(),
            block_faults: blocks::BlockFaults::default(),
            process,
            status_readings: status::Readings::default(),
            runtime: OnceLock::new(),
            itself: OnceLock::new(),
            log_lines,
            watched_calls: Mutex::default(),
            inspected: blocks::Inspected::default(),
            log_loss_told_at: AtomicI64::new(0),
        });
        app.seal_stored_headers().await?;
        app.seal_stored_files().await?;
        app.refresh().await?;
        match app.ensure_search_indexes().await {
            Err(error) if app.is_shared() => {
                // Searches are right without it, and slow: another instance may be at it, or the table is in use.
                tracing::warn!(error.cause = %error, "a search index could not be made; the next start tries again");
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
                .read_as_service(blockbase_store::ReadCost::Rows, move |connection| {
                    Box::pin(async move { Ok(connection.role_named(&role).await?.is_some()) })
                })
                .await?;
            if !known {
                tracing::warn!("SVC_SIGNUP_ROLE names a role that does not exist; new users get no role until it does");
            }
        }
        Ok((app, log_receiver))
    }

    /// Joins the block runtime to the operations. Once, at boot.
    pub fn set_runtime(self: &Arc<Self>, runtime: Arc<dyn BlockRuntime>) {
        let _ = self.runtime.set(runtime);
        let _ = self.itself.set(Arc::downgrade(self));
        self.retain_installed();
    }

    pub(crate) fn runtime(&self) -> Result<&Arc<dyn BlockRuntime>> {
        self.runtime.get().ok_or_else(|| Error::internal("no block runtime was set"))
    }

    /// The same where it may not be joined yet.
    pub(crate) fn weak(&self) -> Weak<App> {
        self.itself.get().cloned().unwrap_or_default()
    }

    /// This service, for a transaction that has to own what it needs of it.
    pub(crate) fn itself(&self) -> Result<Arc<App>> {
        let itself = self.itself.get().and_then(Weak::upgrade);
        itself.ok_or_else(|| Error::internal("the service is not joined yet, or not any more"))
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn cookies(&self) -> &CookieSigner {
        &self.cookies
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether other instances may use the same database.
    pub fn is_shared(&self) -> bool {
        self.store.dialect() == blockbase_query::Dialect::Postgres
    }

    /// The schema that new requests begin with.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read())
    }

    /// Milliseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// How many calls have written records since the start.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Counts a request that was answered, for the activity of the last hour.
    pub fn count_answer(&self, is_error: bool) {
        self.activity.answered(self.clock.now(), is_error);
    }

    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Waits until a consumer group is no more, whose deliveries are to be dropped.
    pub async fn group_gone(&self) {
        self.group_gone.notified().await;
    }

    /// Tells of each change of the subscriptions.
    pub fn watch_subscriptions(&self) -> watch::Receiver<i64> {
        self.subscriptions_changed.subscribe()
    }

    /// Whether requests can be served.
    pub async fn is_ready(&self) -> bool {
        tokio::time::timeout(READY_TIMEOUT, self.store.is_ready()).await.unwrap_or(false)
    }
}
