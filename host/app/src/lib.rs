//! The operations of the service: records, schema, accounts, blocks, the live feed. The only place that commits.
//!
//! Every surface and every block goes through these functions with a [`Caller`]; the permission check is inside them.
//! This crate must not know of HTTP, GraphQL, MCP or wasmtime. Where it needs what lives above it (running a block) it
//! defines a trait, and `server` joins the two.
#![forbid(unsafe_code)]

mod accounts;
mod activity;
mod acts_later;
mod admission;
mod answer;
mod api_keys;
mod blocks;
mod boot;
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
mod outbox;
mod persist;
mod platform_event;
mod preferences;
mod quota;
mod recheck;
mod record_events;
mod records;
mod refresh;
mod removal;
mod retention;
mod roles;
mod routing;
mod schema_change;
mod sized;
mod stamps;
mod standing;
mod state;
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
#[cfg(test)]
mod walls;
mod webhooks;
mod writes;

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
pub use routing::{Subscription, Subscriptions, Target, Webhook, is_built_in};
pub use schema_change::{
    Broken, Change, ChangePlan, Dependent, DependentKind, FieldChanges, HistoryRequest, Lost, LostKind, Mode as SchemaMode,
    ObjectChanges, SchemaDocument,
};
pub use sized::run_sized;
pub use standing::Standing;
pub use state::{App, Settings};
pub use status::StatusAnswer;
pub use stream::{HEARTBEAT, StreamForm, StreamPlace, StreamRequest};
pub use subscriptions::{Answered, NewSubscription, SubscriptionAnswer, check_consumer};
pub use surface::{IncomingBody, Invoker, log_cause};
pub use tasks::{NewTask, TaskAnswer, TaskChanges, TaskRunAnswer};
pub use users::{ManagedUserAnswer, OnDeletion, UserChanges, UserSearch, UserSessionAnswer};
pub use versions::{Condition, RecordAnswer};
pub use visible::Visible;
pub use webhooks::{NewWebhook, WebhookAnswer, WebhookChanges};
pub use writes::{BulkAnswer, Upserted, WriteAnswer, WriteRequest, WrittenAnswer};
