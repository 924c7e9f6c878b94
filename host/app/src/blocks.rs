//! Blocks: installed, listed, configured, called, uninstalled.

mod calls;
mod consent;
mod differences;
mod faults;
mod inspect;
mod install;
mod logs;
mod names;
mod replay;
mod sealed_package;
mod secrets;
mod usage;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::{Action, Permissions};
use blockbase_schema::{Code, Error, Hint, Resource, Result};
use blockbase_store::{BlockRow, BlockSecretRow, ClaimedEvent, Made, Maker, Suspension};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::App;
use crate::answer::{AnyObject, SuspensionAnswer, Timestamp};
use crate::caller::{Authority, Caller};
use crate::manifest::{self, ActionDeclaration, HookDeclaration, Manifest, RunAs, SubscriptionDeclaration, WebhookDeclaration};
use crate::subscriptions::{BUILT_IN_HANDLERS, is_built_in};
use crate::topic::{BlockMembers, Topic};

pub use consent::NewPermissions;
pub(crate) use faults::BlockFaults;
pub(crate) use inspect::Inspected;
pub use inspect::Inspection;
pub use install::{InstallOptions, InstallReport, Installed};
pub use logs::{KeptLine, LogPage, LogRequest};
pub use names::TOOLS;
pub(crate) use names::check_objects;
pub use replay::{ReplayRequest, Replayed};
pub use secrets::BlockSecretAnswer;
pub use usage::{BlockUsageAnswer, HandlerUsage};
pub(crate) use usage::{HandlerKind, Usages};

/// A file that passed every check and can be run.
#[derive(Debug)]
pub struct PreparedBlock {
    pub manifest: Manifest,
    /// `sha256:` and the digest of the packed file.
    pub digest: String,
    /// Keeps what was compiled for it until it is dropped.
    pub kept: Box<dyn std::any::Any + Send + Sync>,
}

/// What runs blocks. The operations know this of it, and nothing more.
pub trait BlockRuntime: Send + Sync {
    /// Checks a packed file whole, compiles it and tries it: imports, exports, handlers.
    fn prepare(&self, file: Bytes) -> BoxFuture<'_, Result<PreparedBlock>>;

    /// Checks an action's input against its schema.
    ///
    /// # Errors
    /// `validation_failed` with every failure.
    fn validate_input(&self, block: &InstalledBlock, action: &ActionDeclaration, input: &Value) -> Result<()>;

    /// Checks a configuration against the manifest's schema and fills in its defaults.
    fn validate_config(&self, manifest: &Manifest, config: Value) -> Result<Value>;

    /// Calls an action and answers with its result, which is JSON text.
    fn call_action(&self, call: ActionCall) -> BoxFuture<'static, Result<ActionOutcome>>;

    /// Hands a third party's request to a hook's handler; `None` where it leaves the answer to the service.
    fn receive_hook(&self, call: HookCall) -> BoxFuture<'static, Result<Option<HookResponse>>>;

    /// Hands an event to a subscription handler.
    fn deliver_event(&self, call: EventCall) -> BoxFuture<'static, Result<()>>;

    /// Interfaces that a manifest may require.
    fn interfaces(&self) -> &'static [&'static str];

    /// Makes a block ready for calls to come, in the background.
    fn preload(&self, app: &Arc<App>, block: &Arc<InstalledBlock>);

    /// Forgets what it keeps in memory of files that do not serve, and on disk of those that are not kept; both as digests.
    fn retain(&self, serving: &HashSet<String>, kept: &HashSet<String>);
}

/// One call of an action.
pub struct ActionCall {
    pub app: Arc<App>,
    pub block: Arc<InstalledBlock>,
    pub action: String,
    /// JSON text.
    pub input: String,
    /// The block's rights, and who invoked it.
    pub caller: Caller,
    pub call_id: String,
    pub timeout: Duration,
    pub usage: Arc<HandlerUsage>,
}

/// A third party's request.
#[derive(Clone, Debug)]
pub struct HookRequest {
    pub method: String,
    /// As it was sent, percent-encoded.
    pub path: String,
    /// Without the question mark.
    pub query: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
    pub remote_address: String,
}

/// What a hook answers with; the surface checks that it is a response.
#[derive(Clone, Debug)]
pub struct HookResponse {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
}

/// One call of a hook.
pub struct HookCall {
    pub app: Arc<App>,
    pub block: Arc<InstalledBlock>,
    pub hook: String,
    pub request: HookRequest,
    /// The block's rights; whoever invoked it has those of everybody.
    pub caller: Caller,
    pub call_id: String,
    pub timeout: Duration,
    pub usage: Arc<HandlerUsage>,
}

/// One delivery of an event to a block's handler.
pub struct EventCall {
    pub app: Arc<App>,
    pub block: Arc<InstalledBlock>,
    pub handler: String,
    pub event: ClaimedEvent,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The subscription's own, as JSON text.
    pub config: String,
    /// The block's rights; nobody invoked it.
    pub caller: Caller,
    pub call_id: String,
    pub timeout: Duration,
    pub usage: Arc<HandlerUsage>,
}

/// An action's result as JSON text.
pub type ActionOutcome = String;

/// A block as it serves.
#[derive(Debug)]
pub struct InstalledBlock {
    pub manifest: Manifest,
    pub digest: String,
    pub enabled: bool,
    /// What was set, over the defaults of the manifest.
    pub config: Value,
    /// What was set, without the defaults.
    configured: Value,
    secrets: HashMap<String, BlockSecretRow>,
    installed_at: i64,
    installed_by: Option<String>,
    /// With the digests of their files, newest first.
    versions: Vec<(String, String)>,
    plain: Arc<Permissions>,
    as_caller: Arc<Permissions>,
    /// Who consented to what it may do.
    pub(crate) maker: Maker,
    /// What its calls used here.
    usage: Arc<usage::BlockUsage>,
}

impl InstalledBlock {
    pub(crate) fn of_row(row: BlockRow, usages: &Usages) -> Result<InstalledBlock> {
        let manifest: Manifest = serde_json::from_str(&row.manifest).map_err(Error::internal)?;
        let grants = |run_as: Option<RunAs>| {
            let data = manifest.permissions.data.iter().filter(|permission| permission.run_as == run_as);
            data.map(|permission| permission.grant()).collect::<Vec<_>>()
        };
        // `own` is by the invoking actor, who is known at the call.
        let configured: Value = serde_json::from_str(&row.config).map_err(Error::internal)?;
        let (plain, as_caller) = (grants(None), grants(Some(RunAs::Caller)));
        Ok(InstalledBlock {
            digest: row.digest,
            enabled: row.enabled,
            config: manifest.configured(configured.clone()),
            configured,
            secrets: row.secrets.into_iter().map(|secret| (secret.name.clone(), secret)).collect(),
            installed_at: row.installed_at,
            installed_by: row.installed_by,
            maker: row.maker,
            versions: row.versions,
            plain: Arc::new(Permissions::new(plain, None)),
            as_caller: Arc::new(Permissions::new(as_caller, None)),
            usage: usages.of(&manifest.name),
            manifest,
        })
    }

    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Where the calls of one of its handlers are counted.
    pub(crate) fn usage_of(&self, kind: HandlerKind, name: &str) -> Arc<HandlerUsage> {
        self.usage.of(kind, name)
    }

    /// The block's rights with the invoker's stamps, not yet cut: [`App::block_caller`] does that.
    pub(crate) fn caller(&self, invoker: &Caller) -> Caller {
        let actor = invoker.actor_id().map(str::to_owned);
        let held = match &invoker.authority {
            Authority::Own(permissions) => Arc::clone(permissions),
            // A block that calls through another holds what that one holds for itself.
            Authority::Block { plain, .. } => Arc::clone(plain),
        };
        Caller {
            principal: invoker.principal.clone(),
            authority: Authority::Block {
                plain: Arc::new(self.plain.as_ref().clone().of_actor(actor.clone())),
                as_caller: Arc::new(self.as_caller.as_ref().clone().of_actor(actor)),
                caller: held,
            },
            depth: invoker.depth,
            quota_owner: invoker.quota_owner.clone(),
            answer_left: invoker.answer_left.clone(),
            judged: invoker.judged.clone(),
        }
    }

    /// When this version was installed, in milliseconds since the epoch.
    pub(crate) fn installed_at(&self) -> i64 {
        self.installed_at
    }

    fn answer(&self, suspension: Option<Suspension>) -> BlockAnswer {
        let Manifest { name, version, description, permissions, actions, hooks, subscriptions, webhooks, config, .. } =
            self.manifest.without_header_values();
        BlockAnswer {
            name,
            version,
            digest: self.digest.clone(),
            description,
            enabled: self.enabled,
            permissions,
            actions,
            hooks,
            subscriptions,
            webhooks,
            config: self.config.clone(),
            config_schema: config,
            installed_at: Timestamp(self.installed_at),
            installed_by: self.installed_by.clone(),
            versions: self.versions.iter().map(|(version, _)| version.clone()).collect(),
            suspended: suspension.map(SuspensionAnswer::from),
        }
    }
}

/// An installed block: the version that serves.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcBlock", deny_unknown_fields)]
pub struct BlockAnswer {
    name: String,
    version: String,
    /// `sha256:` and the digest of the packed file.
    digest: String,
    description: String,
    enabled: bool,
    permissions: manifest::Permissions,
    actions: Vec<ActionDeclaration>,
    hooks: Vec<HookDeclaration>,
    subscriptions: Vec<SubscriptionDeclaration>,
    webhooks: Vec<WebhookDeclaration>,
    #[schemars(with = "AnyObject")]
    config: Value,
    /// JSON Schema of `config`, from the manifest; null where the block takes no configuration.
    #[schemars(with = "Option<AnyObject>")]
    config_schema: Option<Value>,
    installed_at: Timestamp,
    installed_by: Option<String>,
    versions: Vec<String>,
    suspended: Option<SuspensionAnswer>,
}

/// Declared actions and hooks of all blocks, and all handlers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcDeclaredActions", deny_unknown_fields)]
pub struct DeclaredActions {
    actions: Vec<DeclaredAction>,
    hooks: Vec<DeclaredHook>,
    handlers: Vec<DeclaredHandler>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct DeclaredAction {
    block: String,
    name: String,
    description: String,
    /// A JSON Schema.
    input: Value,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct DeclaredHook {
    block: String,
    name: String,
    description: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct DeclaredHandler {
    name: String,
    kind: HandlerKind,
    /// Null for the service's own.
    block: Option<String>,
}

impl App {
    pub(crate) fn installed(&self, name: &str) -> Result<Arc<InstalledBlock>> {
        self.blocks
            .read()
            .get(name)
            .cloned()
            .ok_or_else(|| Error::new(Code::NotFound, format!("No block `{name}` is installed.")).with_hint(Hint::ListBlocks))
    }

    /// Tells the runtime which files are installed.
    pub(crate) fn retain_installed(&self) {
        if let Some(runtime) = self.runtime.get() {
            let blocks = self.blocks.read();
            let serving = blocks.values().map(|block| block.digest.clone()).collect();
            let kept = blocks.values().flat_map(|block| block.versions.iter().map(|(_, digest)| digest.clone())).collect();
            runtime.retain(&serving, &kept);
        }
    }

    pub async fn list_blocks(&self, caller: &Caller) -> Result<Vec<BlockAnswer>> {
        caller.require(Resource::Blocks, Action::Read)?;
        self.settle_rights_shown(caller).await;
        let suspended =
            self.scan(caller, |connection| Box::pin(async move { Ok(connection.suspensions(Made::Block).await?) })).await?;
        Ok(self.blocks.read().values().map(|block| block.answer(suspended.get(block.name()).copied())).collect())
    }

    pub async fn block(&self, caller: &Caller, name: &str) -> Result<BlockAnswer> {
        caller.require(Resource::Blocks, Action::Read)?;
        self.shown_block(caller, name).await
    }

    pub(crate) async fn shown_block(&self, caller: &Caller, name: &str) -> Result<BlockAnswer> {
        let block = self.installed(name)?;
        self.settle_rights_shown(caller).await;
        let key = name.to_owned();
        let suspension = self
            .look_up(caller, move |connection| Box::pin(async move { Ok(connection.suspension_of(Made::Block, &key).await?) }))
            .await?;
        Ok(block.answer(suspension))
    }

    /// Declared actions and hooks of all blocks, and all registered handlers.
    pub fn declared_actions(&self, caller: &Caller) -> Result<DeclaredActions> {
        caller.require(Resource::Blocks, Action::Read)?;
        let blocks = self.blocks.read();
        let mut actions = Vec::new();
        let mut hooks = Vec::new();
        let handler = |name: &str, kind, block: Option<&str>| DeclaredHandler {
            name: name.to_owned(),
            kind,
            block: block.map(str::to_owned),
        };
        let mut handlers: Vec<_> = BUILT_IN_HANDLERS.iter().map(|name| handler(name, HandlerKind::Subscription, None)).collect();
        for block in blocks.values() {
            let of = block.name();
            for declared in &block.manifest.actions {
                let ActionDeclaration { name, description, input, .. } = declared.clone();
                handlers.push(handler(&name, HandlerKind::Action, Some(of)));
                actions.push(DeclaredAction { block: of.to_owned(), name, description, input });
            }
            for declared in &block.manifest.hooks {
                let HookDeclaration { name, description } = declared.clone();
                handlers.push(handler(&name, HandlerKind::Hook, Some(of)));
                hooks.push(DeclaredHook { block: of.to_owned(), name, description });
            }
            for declared in &block.manifest.subscriptions {
                if !is_built_in(&declared.handler) {
                    handlers.push(handler(&declared.handler, HandlerKind::Subscription, Some(of)));
                }
            }
        }
        Ok(DeclaredActions { actions, hooks, handlers })
    }

    /// Changes enablement or configuration; `None` leaves it as it is.
    pub async fn update_block(
        &self,
        caller: &Caller,
        name: &str,
        enabled: Option<bool>,
        config: Option<Value>,
    ) -> Result<BlockAnswer> {
        caller.require(Resource::Blocks, Action::Update)?;
        let block = self.installed(name)?;
        let config = match config {
            // What is stored is what was set: a later version's defaults hold for the rest.
            Some(config) => {
                self.runtime()?.validate_config(&block.manifest, config.clone())?;
                Some(config.to_string())
            }
            None => None,
        };
        let (key, digest) = (name.to_owned(), block.digest.clone());
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    match connection.update_block(&key, &digest, enabled, config).await? {
                        true => Ok(()),
                        // The configuration was checked against another version's schema.
                        false => Err(Error::new(Code::Conflict, "The block was changed by somebody else meanwhile. Try again.")),
                    }
                })
            })
            .await?;
        self.refresh().await?;
        self.shown_block(caller, name).await
    }

    /// Removes a block with its subscriptions; the data stays.
    pub async fn uninstall_block(&self, caller: &Caller, name: &str) -> Result<()> {
        caller.require(Resource::Blocks, Action::Delete)?;
        let block = self.installed(name)?;
        let announcer = self.announcer(caller);
        let (key, interfaces) = (name.to_owned(), self.runtime()?.interfaces());
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    for other in connection.blocks().await?.into_iter().filter(|other| other.name != key) {
                        let requires = serde_json::from_str::<Manifest>(&other.manifest).map(|manifest| manifest.requires);
                        if requires.is_ok_and(|requires| requires.blocks(interfaces).contains(&key)) {
                            let message = format!("The block `{}` requires `{key}`; uninstall that one first.", other.name);
                            return Err(Error::new(Code::Conflict, message));
                        }
                    }
                    connection.delete_subscriptions_of(&format!("block:{key}")).await?;
                    connection.delete_webhooks_of(&format!("block:{key}")).await?;
                    if !connection.delete_block(&key).await? {
                        return Err(Error::not_found("block"));
                    }
                    let members = BlockMembers { block: &key, version: &block.manifest.version };
                    announcer.emit(connection, Topic::BlockUninstalled(members)).await
                })
            })
            .await?;
        self.refresh().await?;
        self.group_gone.notify_one();
        Ok(())
    }
    /// The packed file of an installed block, for the runtime to compile on this machine.
    ///
    /// # Errors
    /// `unavailable` where the block was uninstalled or upgraded meanwhile.
    pub async fn block_file(&self, block: &InstalledBlock) -> Result<Vec<u8>> {
        let file = self.stored_file(&block.manifest.name, &block.manifest.version, &block.digest).await?;
        file.ok_or_else(|| {
            Error::new(Code::Unavailable, "The block was uninstalled or replaced while the call waited. Try again.")
        })
    }
}
