//! The operations of the service: records, schema, accounts, blocks, the live feed. No other crate commits transactions.
//!
//! Every surface and every block calls these functions with a [`Caller`], and the functions check the permissions. This crate
//! must not know of HTTP, GraphQL, MCP or wasmtime. If it needs a service of a higher crate, such as running a block, it defines
//! a trait, and `server` connects the two.
#![forbid(unsafe_code)]

mod access;
mod accounts;
mod automation;
mod base;
mod blocks;
mod boot;
mod caller;
mod delivery;
mod outbox;
mod records;
mod schema_change;
mod service;
mod state;

pub use access::makers::OwnedThing;
pub use access::session_recheck::SessionRecheck;
pub use accounts::api_keys::{ApiKeyAnswer, KEYS_OF_USER_MAX, NAME_CHARS_MAX as KEY_NAME_CHARS_MAX, NewKey};
pub use accounts::preferences::{GUEST_PREFERENCES_BYTES_MAX, OwnPermissions, PREFERENCES_BYTES_MAX, PREFERENCES_KEYS_MAX};
pub use accounts::roles::{ExplainRequest, Explanation, RoleAnswer, RoleChanges, RolePermissions};
pub use accounts::users::{
    InvitationAnswer, ManagedUserAnswer, NewUser, OnDeletion, ROLES_OF_USER_MAX, SeenUserAnswer, UserChanges, UserSearch,
    UserSessionAnswer,
};
pub use accounts::{
    AddressProof, BootstrapAdmin, CurrentSession, Deletion, DeletionRequest, IMAGE_CHARS_MAX, ListedSession, MailRequest,
    MeAnswer, NAME_CHARS_MAX as USER_NAME_CHARS_MAX, OutgoingMail, PAGE_CHARS_MAX, PasswordLinkAnswer, ProfileChanges,
    SESSIONS_OF_USER_MAX, SessionAnswer, SignIn, SignUp, SignedIn, SignedUp, UserAnswer,
};
pub use automation::tasks::{
    ActionConfig, ErasureConfig, NAME_CHARS_MAX as TASK_NAME_CHARS_MAX, NewTask, TASK_TYPES_MADE, TaskAnswer, TaskChanges,
    TaskRunAnswer,
};
pub use base::answer::{MakerAnswer, SuspensionAnswer, Timestamp};
pub use base::clock::Clock;
pub use base::frames::{CLIENT_STALLED_MAX, FramePlace, FrameSender, Frames};
pub use base::offload::run_offloaded;
pub use blockbase_auth::{PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN};
pub use blockbase_query::Function as AggregateFunction;
pub use blockbase_query::Permissions as CallerPermissions;
pub use blockbase_query::aggregate::names as aggregate_names;
pub use blockbase_query::{
    Access, Action, AggregateRequest, ConnectionPaging, CursorParameter, CursorsOf, End, ExportRequest, Filter, FilterValue,
    Grant, KnownObjects, ListParameter, ListRequest, Operand, Operator, PageFlags, Paging, PagingParameters, Period, Related,
    RowPolicy, TopicFilter, TopicPattern, Where, condition, expand_paths, limits,
};
pub use blockbase_quota::{QuotaOwner, network_of};
pub use blockbase_schema as schema;
pub use blockbase_store::{ATTEMPTS_KEPT, AuditFilter, EventText, Incomplete, LedgerFilter, MailKind, SpoolReader};
pub use blocks::{
    BlockAnswer, BlockSecretAnswer, DeclaredActions, Inspection, InstallOptions, InstallReport, Installed, KeptLine, LogPage,
    LogRequest, NewPermissions, ReplayRequest, Replayed, TOOLS,
};
pub use caller::client::{AuthProblem, Client};
pub use caller::identity::{PrincipalSlot, RenewalSlot, Renewed};
pub use caller::{Authority, Caller, Credentials, GivenTicket};
pub use delivery::delivery_check::DeliveryCheck;
pub use delivery::feed::{EventsPagination, EventsRequest, FeedReader};
pub use delivery::ledger::{
    Attempt, AttemptAnswer, DELIVERY_STATUSES, DeliveryAnswer, DeliveryCounts, DeliveryWithHistory, Ended, Lease,
    LedgerPagination, RESETS_MAX,
};
pub use delivery::persist_event::UNDECODABLE;
pub use delivery::stream::{CALLER_RECHECK, HEARTBEAT, PATTERNS_MAX, StreamForm, StreamPlace, StreamRequest, TOPICS_DEFAULT};
pub use delivery::stream_tickets::StreamTicketAnswer;
pub use delivery::subscriptions::{CONSUMER_BYTES_MAX, NewSubscription, SubscriptionAnswer, WithWarnings, check_consumer};
pub use delivery::webhooks::{NAME_CHARS_MAX as WEBHOOK_NAME_CHARS_MAX, NewWebhook, TOPICS_MAX, WebhookAnswer, WebhookChanges};
pub use outbox::audit::AuditAction;
pub use records::cursors::{CURSOR_CHARACTERS_MAX, CursorPaginationAnswer, PageCursors};
pub use records::export::{Export, ExportForm};
pub use records::links::LinkChange;
pub use records::read::{AggregateAnswer, ListAnswer, PaginationAnswer, write_warnings};
pub use records::versions::{Condition, RecordAnswer};
pub use records::writes::{Batch, BatchAnswer, BulkAnswer, Chosen, Upserted, WrittenAnswer};
pub use schema_change::visible::Visible;
pub use schema_change::{
    Broken, Change, ChangePlan, Dependent, DependentKind, FieldChanges, HistoryRequest, Lost, LostKind, Mode as SchemaMode,
    OBJECT_MEMBERS_FIXED, ObjectChanges, SchemaDocument, SchemaHistoryAnswer,
};
pub use service::audit::AuditEntryAnswer;
pub use service::instance::{InstanceAnswer, SignInMethod};
pub use service::status::StatusAnswer;
pub use service::surface::{IncomingBody, Invoker, log_cause};
pub use state::block_types::{
    ActionCall, ActionOutcome, BlockRuntime, ComparedRights, EventCall, HookCall, HookRequest, HookResponse, InstalledBlock,
    PreparedBlock, Reusable, ReuseScope,
};
pub use state::block_usage::{BlockUsageAnswer, HandlerUsage};
pub use state::breached_passwords::BreachedPasswords;
pub use state::feed::{Feed, FeedPump};
pub use state::listed_settings::{ListedSetting, SettingSource};
pub use state::mail_texts::{MailTexts, MailValues, WrittenMail, escaped_html};
pub use state::manifest::{
    ActionDeclaration, DataPermission, HookDeclaration, Instances, Manifest, Permissions as BlockPermissions, Rbac, Requires,
    Reuse, RunAs, SubscriptionDeclaration,
};
pub use state::master_secret::{database_id, secret_opens};
pub use state::persist_config::PersistConfig;
pub use state::routing::{BUILT_IN_HANDLERS, Subscription, Subscriptions, Target, Webhook, is_built_in};
pub use state::{App, MailLink, Settings};
