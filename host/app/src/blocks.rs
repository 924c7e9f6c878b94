//! Blocks: their install, list, configuration, calls and uninstall.

mod calls;
mod conditions;
mod consent;
mod differences;
pub(crate) mod event_handlers;
mod inspect;
mod install;
mod logs;
mod names;
mod replay;
mod sealed_package;
mod secrets;

use std::sync::Arc;

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Hint, Registry, Resource, Result};
use blockbase_store::{BlockRow, Suspension, ThingKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::App;
use crate::base::answer::{AnyObject, SuspensionAnswer, Timestamp};
use crate::base::stored::Place;
use crate::base::topic::{BlockMembers, Topic};
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::manifest;
use crate::state::manifest::{ActionDeclaration, HookDeclaration, SubscriptionDeclaration, WebhookDeclaration};
use crate::state::routing::{BUILT_IN_HANDLERS, is_built_in};

pub(crate) use consent::MadeBlocks;
pub use consent::NewPermissions;

pub use inspect::Inspection;

use crate::state::block_types::{InstalledBlock, manifest_place};
use crate::state::block_usage::BlockUsageAnswer;
use crate::state::block_usage::HandlerKind;
use install::requires_of;
pub use install::{InstallOptions, InstallReport, Installed};
pub use logs::{KeptLine, LogPage, LogRequest};
pub use names::TOOLS;
pub(crate) use names::check_objects;
pub use replay::{ReplayRequest, Replayed};
pub use secrets::BlockSecretAnswer;

impl InstalledBlock {
    fn answer(&self, registry: &Registry, suspension: Option<Suspension>) -> BlockAnswer {
        let manifest = &self.manifest;
        BlockAnswer {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            digest: self.digest.clone(),
            description: manifest.description.clone(),
            enabled: self.enabled,
            permissions: conditions::shown(registry, &manifest.permissions),
            actions: manifest.actions.clone(),
            hooks: manifest.hooks.clone(),
            subscriptions: manifest.subscriptions.clone(),
            webhooks: manifest.webhooks.iter().map(WebhookDeclaration::without_header_values).collect(),
            instances: manifest.instances_in_effect(),
            config: self.config.clone(),
            config_schema: manifest.config.clone(),
            installed_at: Timestamp(self.installed_at),
            installed_by: self.installed_by.clone(),
            versions: self.versions.iter().map(|(version, _)| version.clone()).collect(),
            suspended: suspension.map(SuspensionAnswer::from),
        }
    }
}

/// A block in the audit log. Its configuration is shown by the names of the keys that are set.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditedBlock {
    version: String,
    digest: String,
    enabled: bool,
    /// `None` if the stored configuration cannot be read.
    config_keys: Option<Vec<String>>,
    /// `None` if the stored manifest cannot be read.
    permissions: Option<manifest::Permissions>,
}

impl AuditedBlock {
    /// The block as it is stored. It does not come from memory, because another change may just have been stored.
    fn of(registry: &Registry, row: &BlockRow) -> AuditedBlock {
        let configured: Option<Map<String, Value>> = Place::new("svc_blocks", "config", &row.name).found(&row.config);
        let manifest: Option<manifest::Manifest> = manifest_place(&row.name).found(&row.manifest);
        AuditedBlock {
            version: row.version.clone(),
            digest: row.digest.clone(),
            enabled: row.enabled,
            config_keys: configured.map(|set| set.keys().cloned().collect()),
            permissions: manifest.map(|manifest| conditions::shown(registry, &manifest.permissions)),
        }
    }
}

/// The acts that lead from one state of a block to another one: another configuration, and its start or stop. If nothing changes,
/// there is none.
fn acts_between<'b>(registry: &Registry, before: &'b BlockRow, after: &BlockRow) -> Vec<Act<'b>> {
    let act = |action: AuditAction, from: &BlockRow, to: &BlockRow| {
        let act = Act::new(action, Resource::Blocks, &before.name);
        act.before(&AuditedBlock::of(registry, from)).after(&AuditedBlock::of(registry, to))
    };
    let value = |row: &BlockRow| serde_json::from_str::<Value>(&row.config).ok();
    let configured = BlockRow { config: after.config.clone(), ..before.clone() };
    let mut acts = Vec::new();
    if value(before) != value(after) {
        acts.push(act(AuditAction::Configure, before, &configured));
    }
    match (before.enabled, after.enabled) {
        (false, true) => acts.push(act(AuditAction::Enable, &configured, after)),
        (true, false) => acts.push(act(AuditAction::Disable, &configured, after)),
        _ => {}
    }
    acts
}

/// An installed block, in the version that is in use.
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
    /// The reuse of instances that takes effect; null if each call gets an instance of its own.
    instances: Option<manifest::Instances>,
    #[schemars(with = "AnyObject")]
    config: Value,
    /// JSON Schema of `config`, from the manifest; null if the block takes no configuration.
    #[schemars(with = "Option<AnyObject>")]
    config_schema: Option<Value>,
    installed_at: Timestamp,
    installed_by: Option<String>,
    versions: Vec<String>,
    suspended: Option<SuspensionAnswer>,
}

/// The actions and hooks that all blocks declare, and all event handlers.
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
    /// Null for handlers of the service itself.
    block: Option<String>,
}

fn not_installed(name: &str) -> Error {
    Error::new(Code::NotFound, format!("No block `{name}` is installed.")).with_hint(Hint::ListBlocks)
}

impl App {
    pub(crate) fn installed(&self, name: &str) -> Result<Arc<InstalledBlock>> {
        self.blocks.read().get(name).cloned().ok_or_else(|| not_installed(name))
    }

    pub async fn list_blocks(&self, caller: &Caller) -> Result<Vec<BlockAnswer>> {
        caller.require(Resource::Blocks, Action::Read)?;
        self.settle_rights_shown(caller).await;
        let suspended =
            self.scan(caller, |connection| Box::pin(async move { Ok(connection.suspensions(ThingKind::Block).await?) })).await?;
        let blocks = Arc::clone(&self.blocks.read());
        let registry = self.registry();
        Ok(blocks.values().map(|block| block.answer(&registry, suspended.get(block.name()).copied())).collect())
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
            .look_up(caller, move |connection| {
                Box::pin(async move { Ok(connection.suspension_of(ThingKind::Block, &key).await?) })
            })
            .await?;
        Ok(block.answer(&self.registry(), suspension))
    }

    /// Declared actions and hooks of all blocks, and all registered handlers.
    pub fn declared_actions(&self, caller: &Caller) -> Result<DeclaredActions> {
        caller.require(Resource::Blocks, Action::Read)?;
        let blocks = Arc::clone(&self.blocks.read());
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
                let ActionDeclaration { name, description, input, .. } = declared;
                handlers.push(handler(name, HandlerKind::Action, Some(of)));
                let (name, description, input) = (name.clone(), description.clone(), input.clone());
                actions.push(DeclaredAction { block: of.to_owned(), name, description, input });
            }
            for declared in &block.manifest.hooks {
                let HookDeclaration { name, description } = declared;
                handlers.push(handler(name, HandlerKind::Hook, Some(of)));
                hooks.push(DeclaredHook { block: of.to_owned(), name: name.clone(), description: description.clone() });
            }
            for declared in &block.manifest.subscriptions {
                if !is_built_in(&declared.handler) {
                    handlers.push(handler(&declared.handler, HandlerKind::Subscription, Some(of)));
                }
            }
        }
        Ok(DeclaredActions { actions, hooks, handlers })
    }

    /// The usage of a block's calls on this instance since its start, for each handler. Handlers without calls are included.
    ///
    /// # Errors
    /// `not_found`.
    pub fn block_usage(&self, caller: &Caller, name: &str) -> Result<BlockUsageAnswer> {
        caller.require(Resource::Blocks, Action::Read)?;
        let block = self.installed(name)?;
        let (manifest, usage) = (&block.manifest, &block.usage);
        let mut handlers: Vec<&str> = Vec::new();
        for declared in manifest.subscriptions.iter().filter(|declared| !is_built_in(&declared.handler)) {
            // Several subscriptions may use the same handler.
            if !handlers.contains(&declared.handler.as_str()) {
                handlers.push(&declared.handler);
            }
        }
        Ok(usage.shown(self.usages.since(), manifest, &handlers))
    }

    /// Changes whether a block is enabled, and its configuration. `None` changes nothing.
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
            // Only the given values are stored, so that the defaults of a later version apply to the rest.
            Some(config) => {
                self.runtime()?.validate_config(&block.manifest, config.clone())?;
                Some(config.to_string())
            }
            None => None,
        };
        let (key, digest, auditor) = (name.to_owned(), block.digest.clone(), self.auditor(caller));
        let registry = self.registry();
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    // Meanwhile another version was installed, so the configuration was checked against the wrong schema.
                    let moved = || Error::new(Code::Conflict, "The block was changed by somebody else meanwhile. Try again.");
                    let before = connection.blocks().await?.into_iter().find(|row| row.name == key).ok_or_else(moved)?;
                    let mut after = before.clone();
                    after.enabled = enabled.unwrap_or(after.enabled);
                    after.config = config.clone().unwrap_or(after.config);
                    if !connection.update_block(&key, &digest, enabled, config).await? {
                        return Err(moved());
                    }
                    for act in acts_between(&registry, &before, &after) {
                        auditor.record(connection, act).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        self.refresh().await?;
        self.shown_block(caller, name).await
    }

    /// Adopts a block as it is now. This is also consent to everything that its manifest asks for.
    ///
    /// # Errors
    /// `not_found`. `forbidden` if the block has rights that the caller lacks, or if somebody else made it and the caller's rights
    /// would cut it.
    pub async fn adopt_block(&self, caller: &Caller, name: &str) -> Result<BlockAnswer> {
        caller.require(Resource::Blocks, Action::Update)?;
        self.installed(name)?;
        self.adopt(caller, ThingKind::Block, name).await?;
        self.shown_block(caller, name).await
    }

    /// Removes a block with its subscriptions. Its data stays.
    pub async fn uninstall_block(&self, caller: &Caller, name: &str) -> Result<()> {
        caller.require(Resource::Blocks, Action::Delete)?;
        let (announcer, auditor) = (self.announcer(caller), self.auditor(caller));
        let (key, interfaces, registry) = (name.to_owned(), self.runtime()?.interfaces(), self.registry());
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    let installed = connection.blocks().await?;
                    let block = installed.iter().find(|row| row.name == key).ok_or_else(|| not_installed(&key))?;
                    let is_readable = requires_of(block).is_ok();
                    for other in installed.iter().filter(|other| other.name != key) {
                        let requires = match requires_of(other) {
                            Ok(requires) => requires,
                            // This block cannot be read either, so it does not run here. If this error counted, neither block could ever
                            // be removed.
                            Err(_) if !is_readable => continue,
                            Err(error) => return Err(error),
                        };
                        if requires.blocks(interfaces).contains(&key) {
                            let message = format!("The block `{}` requires `{key}`; uninstall that one first.", other.name);
                            return Err(Error::new(Code::Conflict, message));
                        }
                    }
                    connection.delete_subscriptions_of(&format!("block:{key}")).await?;
                    connection.delete_webhooks_of(&format!("block:{key}")).await?;
                    connection.delete_block(&key).await?;
                    let act = Act::new(AuditAction::Uninstall, Resource::Blocks, &key);
                    auditor.record(connection, act.before(&AuditedBlock::of(&registry, block))).await?;
                    let members = BlockMembers { block: &key, version: &block.version };
                    announcer.emit(connection, Topic::BlockUninstalled(members)).await
                })
            })
            .await?;
        self.refresh().await?;
        self.group_gone.notify_one();
        Ok(())
    }

    /// The packed file of an installed block, which the runtime compiles on this machine.
    ///
    /// # Errors
    /// `unavailable` if the block was uninstalled or upgraded meanwhile.
    pub async fn block_file(&self, block: &InstalledBlock) -> Result<Vec<u8>> {
        let file = self.stored_file(&block.manifest.name, &block.manifest.version, &block.digest).await?;
        file.ok_or_else(|| {
            Error::new(Code::Unavailable, "The block was uninstalled or replaced while the call waited. Try again.")
        })
    }
}
