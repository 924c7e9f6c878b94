//! Blocks: installed, listed, configured, called, uninstalled.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::{Action, Permissions};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{BlockLogRow, BlockRow, BlockVersionRow, ClaimedEvent, ReadCost, SubscriptionRow, WebhookRow};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::App;
use crate::caller::{Authority, Caller};
use crate::manifest::{ActionDeclaration, Manifest, RunAs};
use crate::persist::{PERSIST_EVENT, PersistConfig};
use crate::platform_event::PlatformEvent;
use crate::subscriptions::{BUILT_IN_HANDLERS, is_built_in, may_subscribe};
use crate::topic::TopicPattern;
use crate::webhooks::{NewWebhook, insert};

/// A file that passed every check and can be run.
#[derive(Debug)]
pub struct PreparedBlock {
    pub manifest: Manifest,
    /// `sha256:` and the digest of the packed file.
    pub digest: String,
    /// The configuration that the manifest's defaults make.
    pub config: Value,
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

    /// Hands an event to a subscription handler.
    fn deliver_event(&self, call: EventCall) -> BoxFuture<'static, Result<()>>;

    /// Interfaces that a manifest may require.
    fn interfaces(&self) -> &'static [&'static str];

    /// Forgets what it keeps of files that are not among these digests.
    fn retain(&self, digests: &HashSet<String>);
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
}

/// An action's result as JSON text.
pub type ActionOutcome = String;

/// A block as it serves.
#[derive(Debug)]
pub struct InstalledBlock {
    pub manifest: Manifest,
    pub digest: String,
    pub enabled: bool,
    pub config: Value,
    installed_at: i64,
    installed_by: Option<String>,
    versions: Vec<String>,
    plain: Arc<Permissions>,
    as_caller: Arc<Permissions>,
}

impl InstalledBlock {
    pub(crate) fn of_row(row: BlockRow) -> Result<InstalledBlock> {
        let manifest: Manifest = serde_json::from_str(&row.manifest).map_err(Error::internal)?;
        let grants = |run_as: Option<RunAs>| {
            let data = manifest.permissions.data.iter().filter(|permission| permission.run_as == run_as);
            data.map(|permission| permission.grant()).collect::<Vec<_>>()
        };
        // `own` is by the invoking actor, who is known at the call.
        let (plain, as_caller) = (grants(None), grants(Some(RunAs::Caller)));
        Ok(InstalledBlock {
            digest: row.digest,
            enabled: row.enabled,
            config: serde_json::from_str(&row.config).map_err(Error::internal)?,
            installed_at: row.installed_at,
            installed_by: row.installed_by,
            versions: row.versions,
            plain: Arc::new(Permissions::new(plain, None)),
            as_caller: Arc::new(Permissions::new(as_caller, None)),
            manifest,
        })
    }

    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// The caller of the block's own data calls: the block's rights, the invoker's stamps.
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
            identity: invoker.identity.clone(),
        }
    }

    fn render(&self) -> Value {
        json!({
            "name": self.manifest.name,
            "version": self.manifest.version,
            "digest": self.digest,
            "description": self.manifest.description,
            "enabled": self.enabled,
            "permissions": self.manifest.permissions,
            "actions": self.manifest.actions,
            "hooks": self.manifest.hooks,
            "subscriptions": self.manifest.subscriptions,
            "webhooks": self.manifest.webhooks,
            "config": self.config,
            "installedAt": blockbase_schema::time::format_datetime(self.installed_at),
            "installedBy": self.installed_by,
            "versions": self.versions,
        })
    }
}

/// What an install did, or would do.
#[derive(Debug)]
pub struct Installed {
    /// `None` after a dry run.
    pub block: Option<Value>,
    pub report: Value,
}

/// The permission resource of blocks.
const BLOCKS: &str = "blocks";

impl App {
    pub(crate) fn installed(&self, name: &str) -> Result<Arc<InstalledBlock>> {
        self.blocks.read().get(name).cloned().ok_or_else(|| {
            Error::new(Code::NotFound, format!("No block `{name}` is installed. GET /api/v1/blocks lists those that are."))
        })
    }

    /// Installs a packed file, or with `dry_run` says what it would get.
    ///
    /// # Errors
    /// `invalid_block`, `missing_requirement`, `block_exists`; `forbidden` where it asks for more than the installer holds.
    pub async fn install_block(self: &Arc<Self>, caller: &Caller, file: Bytes, dry_run: bool) -> Result<Installed> {
        caller.require(BLOCKS, Action::Create)?;
        let installed = self.try_install(caller, file, dry_run).await;
        if !matches!(installed, Ok(Installed { block: Some(_), .. })) {
            // What was compiled for nothing is not kept.
            self.retain_installed();
        }
        installed
    }

    /// Tells the runtime which files are installed.
    pub(crate) fn retain_installed(&self) {
        if let Some(runtime) = self.runtime.get() {
            runtime.retain(&self.blocks.read().values().map(|block| block.digest.clone()).collect());
        }
    }

    async fn try_install(self: &Arc<Self>, caller: &Caller, file: Bytes, dry_run: bool) -> Result<Installed> {
        let prepared = self.runtime()?.prepare(file.clone()).await?;
        let manifest = &prepared.manifest;
        self.check_consent(caller, manifest)?;
        self.check_subscriptions(caller, manifest)?;
        self.check_requirements(manifest)?;
        let mut webhooks = Vec::with_capacity(manifest.webhooks.len());
        for declared in &manifest.webhooks {
            let new = NewWebhook {
                name: Some(declared.name.clone()),
                url: declared.url.clone(),
                topics: declared.topics.clone(),
                headers: declared.headers.clone(),
                enabled: true,
            };
            let source = Some(format!("block:{}", manifest.name));
            webhooks.push(
                self.new_webhook(caller, new, source)
                    .map_err(|error| error.within(format_args!("Webhook `{}`", declared.name)))?,
            );
        }
        let shown = |(row, secret): &(WebhookRow, String)| match dry_run {
            true => json!({ "name": row.name, "url": row.url }),
            false => json!({ "id": row.id, "name": row.name, "url": row.url, "secret": secret }),
        };
        let shown: Vec<Value> = webhooks.iter().map(shown).collect();
        let report = json!({ "permissions": manifest.permissions, "webhooks": shown });
        if self.blocks.read().contains_key(&manifest.name) {
            return Err(block_exists(&manifest.name));
        }
        if dry_run {
            return Ok(Installed { block: None, report });
        }
        let now = self.clock.now();
        let name = manifest.name.clone();
        let row = BlockVersionRow {
            block: name.clone(),
            version: manifest.version.clone(),
            digest: prepared.digest.clone(),
            manifest: serde_json::to_string(manifest).map_err(Error::internal)?,
            component: file.to_vec(),
            installed_at: now,
        };
        let subscriptions: Vec<SubscriptionRow> = manifest
            .subscriptions
            .iter()
            .map(|declared| SubscriptionRow {
                consumer: declared.consumer.clone(),
                topic: declared.event.clone(),
                handler: match is_built_in(&declared.handler) {
                    true => declared.handler.clone(),
                    false => format!("{name}.{}", declared.handler),
                },
                config: Value::Object(declared.config.clone()).to_string(),
                per_instance: declared.per_instance,
                source: Some(format!("block:{name}")),
            })
            .collect();
        let event = self.block_event(caller, "installed", &manifest.name, &manifest.version);
        let interfaces = self.runtime()?.interfaces();
        let required = manifest.requires.blocks(interfaces);
        let config = prepared.config.to_string();
        let installed_by = caller.actor_id().map(str::to_owned);
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    let name = row.block.clone();
                    // Nobody changes blocks from here on; what was there a moment ago may be gone.
                    let installed: HashSet<String> = connection.blocks().await?.into_iter().map(|block| block.name).collect();
                    if let Some(gone) = required.iter().find(|required| !installed.contains(*required)) {
                        let message = format!("The block requires the block `{gone}`, which is not installed.");
                        return Err(Error::new(Code::MissingRequirement, message));
                    }
                    if !connection.insert_block(row, config, installed_by).await? {
                        return Err(block_exists(&name));
                    }
                    for subscription in subscriptions {
                        let consumer = subscription.consumer.clone();
                        if !connection.insert_subscription(subscription).await? {
                            let message = format!("The block declares the consumer group `{consumer}`, which there is already.");
                            return Err(Error::new(Code::Conflict, message));
                        }
                    }
                    for (webhook, _) in &webhooks {
                        insert(connection, webhook).await?;
                    }
                    if let Some(event) = event {
                        event.emit(connection).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        self.refresh().await?;
        Ok(Installed { block: Some(self.installed(&name)?.render()), report })
    }

    /// Nobody grants to a block what they do not hold.
    fn check_consent(&self, caller: &Caller, manifest: &Manifest) -> Result<()> {
        if !self.settings.require_auth {
            return Ok(());
        }
        for permission in &manifest.permissions.data {
            let Authority::Own(held) = &caller.authority else {
                return Err(Error::new(Code::Forbidden, "A block cannot install blocks."));
            };
            if !held.covers(&permission.grant()) {
                return Err(Error::new(
                    Code::Forbidden,
                    format!(
                        "The block asks for permissions on `{}` that you do not hold yourself, so you cannot grant them.",
                        permission.resource
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Nobody lets a block have events that they may not read, or write records that they may not make.
    fn check_subscriptions(&self, caller: &Caller, manifest: &Manifest) -> Result<()> {
        for declared in &manifest.subscriptions {
            let within = |error: Error| error.within(format_args!("Subscription `{}`", declared.consumer));
            may_subscribe(caller, &TopicPattern::parse(&declared.event)?).map_err(within)?;
            if declared.handler == PERSIST_EVENT {
                let config = PersistConfig::read(&Value::Object(declared.config.clone())).map_err(within)?;
                caller.require(&config.object, Action::Create).map_err(within)?;
            }
        }
        Ok(())
    }

    fn check_requirements(&self, manifest: &Manifest) -> Result<()> {
        let interfaces = self.runtime()?.interfaces();
        let blocks = self.blocks.read();
        let missing = |what: String| Err(Error::new(Code::MissingRequirement, what));
        for plugin in &manifest.requires.plugins {
            if !interfaces.contains(&plugin.as_str()) && !blocks.contains_key(plugin) {
                return missing(format!(
                    "The block requires `{plugin}`, which is neither an interface of this server nor an installed block."
                ));
            }
        }
        for handler in &manifest.requires.handlers {
            let offered = is_built_in(handler)
                || handler
                    .split_once('.')
                    .is_some_and(|(block, name)| blocks.get(block).is_some_and(|block| block.manifest.declares(name)));
            if !offered {
                return missing(format!("The block requires the handler `{handler}`, which nothing here offers."));
            }
        }
        Ok(())
    }

    fn block_event(&self, caller: &Caller, op: &str, name: &str, version: &str) -> Option<PlatformEvent> {
        let actor: Value = serde_json::from_str(&caller.actor_json()).unwrap_or_default();
        let payload = json!({ "block": name, "version": version, "op": op, "actor": actor });
        self.platform_event(caller, format!("block.{op}"), payload.to_string())
    }

    pub fn list_blocks(&self, caller: &Caller) -> Result<Vec<Value>> {
        caller.require(BLOCKS, Action::Read)?;
        Ok(self.blocks.read().values().map(|block| block.render()).collect())
    }

    pub fn block(&self, caller: &Caller, name: &str) -> Result<Value> {
        caller.require(BLOCKS, Action::Read)?;
        Ok(self.installed(name)?.render())
    }

    /// Declared actions and hooks of all blocks, and all registered handlers.
    pub fn declared_actions(&self, caller: &Caller) -> Result<Value> {
        caller.require(BLOCKS, Action::Read)?;
        let blocks = self.blocks.read();
        let mut actions = Vec::new();
        let mut hooks = Vec::new();
        let mut handlers: Vec<Value> =
            BUILT_IN_HANDLERS.iter().map(|name| json!({ "name": name, "kind": "subscription", "block": null })).collect();
        for block in blocks.values() {
            for action in &block.manifest.actions {
                actions.push(json!({ "block": block.name(), "name": action.name, "description": action.description, "input": action.input }));
                handlers.push(json!({ "name": action.name, "kind": "action", "block": block.name() }));
            }
            for hook in &block.manifest.hooks {
                hooks.push(json!({ "block": block.name(), "name": hook.name, "description": hook.description }));
                handlers.push(json!({ "name": hook.name, "kind": "hook", "block": block.name() }));
            }
            for declared in &block.manifest.subscriptions {
                if !is_built_in(&declared.handler) {
                    handlers.push(json!({ "name": declared.handler, "kind": "subscription", "block": block.name() }));
                }
            }
        }
        Ok(json!({ "actions": actions, "hooks": hooks, "handlers": handlers }))
    }

    /// Changes enablement or configuration; `None` leaves it as it is.
    pub async fn update_block(&self, caller: &Caller, name: &str, enabled: Option<bool>, config: Option<Value>) -> Result<Value> {
        caller.require(BLOCKS, Action::Update)?;
        let block = self.installed(name)?;
        let config = match config {
            Some(config) => Some(self.runtime()?.validate_config(&block.manifest, config)?.to_string()),
            None => None,
        };
        let (key, version) = (name.to_owned(), block.manifest.version.clone());
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    match connection.update_block(&key, &version, enabled, config).await? {
                        true => Ok(()),
                        false => Err(Error::not_found("block")),
                    }
                })
            })
            .await?;
        self.refresh().await?;
        Ok(self.installed(name)?.render())
    }

    /// Removes a block with its subscriptions; the data stays.
    pub async fn uninstall_block(&self, caller: &Caller, name: &str) -> Result<()> {
        caller.require(BLOCKS, Action::Delete)?;
        let block = self.installed(name)?;
        let event = self.block_event(caller, "uninstalled", name, &block.manifest.version);
        let key = name.to_owned();
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    connection.raise_version("subscriptions").await?;
                    for other in connection.blocks().await?.into_iter().filter(|other| other.name != key) {
                        let requires = serde_json::from_str::<Manifest>(&other.manifest).map(|manifest| manifest.requires);
                        if requires.is_ok_and(|requires| requires.blocks(&[]).contains(&key)) {
                            let message = format!("The block `{}` requires `{key}`; uninstall that one first.", other.name);
                            return Err(Error::new(Code::Conflict, message));
                        }
                    }
                    connection.delete_subscriptions_of(&format!("block:{key}")).await?;
                    connection.delete_webhooks_of(&format!("block:{key}")).await?;
                    if !connection.delete_block(&key).await? {
                        return Err(Error::not_found("block"));
                    }
                    if let Some(event) = event {
                        event.emit(connection).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        self.refresh().await?;
        self.group_gone.notify_one();
        Ok(())
    }

    /// An enabled block and the place of an action in its manifest, which the caller may call.
    ///
    /// # Errors
    /// `not_found` for those who may see blocks; others are told the same of an action that there is not as of one that they may
    /// not call.
    pub(crate) fn callable(&self, caller: &Caller, block: &str, action: &str) -> Result<(Arc<InstalledBlock>, usize)> {
        match self.declared(block, action) {
            Ok((block, place)) if self.may_call(caller, &block.manifest.actions[place]) => Ok((block, place)),
            Err(missing) if caller.holds(BLOCKS, Action::Read) || caller.holds(BLOCKS, Action::Update) => Err(missing),
            _ if caller.is_known() => Err(Error::new(Code::Forbidden, "There is no such action, or you may not call it.")),
            _ => Err(caller.require(BLOCKS, Action::Update).err().unwrap_or_else(|| Error::not_found("action"))),
        }
    }

    fn declared(&self, block: &str, action: &str) -> Result<(Arc<InstalledBlock>, usize)> {
        let block = self.installed(block)?;
        let missing = |message: String| Err(Error::new(Code::NotFound, message));
        if !block.enabled {
            return missing(format!("The block `{}` is disabled.", block.name()));
        }
        match block.manifest.actions.iter().position(|declared| declared.name == action) {
            Some(place) => Ok((block, place)),
            None => missing(format!("The block `{}` declares no action `{action}`.", block.name())),
        }
    }

    /// Whether the caller may call an action. On a resource without rows, a grant for own rows is none.
    pub(crate) fn may_call(&self, caller: &Caller, action: &ActionDeclaration) -> bool {
        let (resource, needed) = action.permission();
        match self.registry().object(resource) {
            Some(_) => caller.may(resource, needed),
            None => caller.holds(resource, needed),
        }
    }

    /// Calls an action: the permission is checked, then the input validated, then the handler runs.
    ///
    /// # Errors
    /// `not_found`, `validation_failed`, `unauthorized`, `forbidden`, `action_failed`, `action_timeout`, or the handler's own.
    pub async fn call_action(
        self: &Arc<Self>,
        caller: &Caller,
        block: &str,
        action: &str,
        input: String,
        call_id: String,
    ) -> Result<ActionOutcome> {
        let (block, place) = self.callable(caller, block, action)?;
        let declared = &block.manifest.actions[place];
        let value: Value = serde_json::from_str(&input).map_err(|error| blockbase_schema::json::malformed(&error))?;
        let runtime = self.runtime()?;
        runtime.validate_input(&block, declared, &value)?;
        let timeout = Duration::from_millis(declared.timeout_ms.unwrap_or(self.settings.action_timeout_ms));
        let call = ActionCall {
            app: Arc::clone(self),
            action: action.to_owned(),
            caller: block.caller(caller),
            block: Arc::clone(&block),
            input,
            call_id,
            timeout,
        };
        let code = |error: &Error| error.code.as_str();
        blockbase_telemetry::observe_action(block.name(), action, code, runtime.call_action(call)).await
    }

    /// The packed file of an installed block, for the runtime to compile on this machine.
    pub async fn block_file(&self, block: &InstalledBlock) -> Result<Vec<u8>> {
        let (name, version) = (block.manifest.name.clone(), block.manifest.version.clone());
        self.store
            .read(ReadCost::Scan, move |connection| {
                Box::pin(async move { Ok(connection.block_component(&name, &version).await?) })
            })
            .await?
            .ok_or_else(|| Error::internal("an installed block has no file"))
    }

    /// Takes a line that a block logged. It reaches the process log at once, and the stored log soon after.
    pub fn log_block_line(&self, block: &str, call_id: &str, level: &str, message: String, fields: Option<String>) {
        let shown = fields.as_deref().unwrap_or_default();
        match level {
            "error" => tracing::error!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
            "warn" => tracing::warn!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
            "debug" | "trace" => tracing::debug!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
            _ => tracing::info!(block.name = block, call.id = call_id, block.fields = shown, "{message}"),
        }
        let row = BlockLogRow {
            block: block.to_owned(),
            call_id: call_id.to_owned(),
            level: level.to_owned(),
            message,
            fields,
            logged_at: self.clock.now(),
        };
        if self.log_lines.try_send(row).is_err() {
            tracing::warn!(block.name = block, "block log lines come faster than they can be stored; some are not kept");
        }
    }

    /// Stores what blocks logged.
    pub async fn store_block_logs(&self, lines: Vec<BlockLogRow>) -> Result<()> {
        self.store.write(move |connection| Box::pin(async move { Ok(connection.append_block_logs(lines).await?) })).await
    }

    /// The latest log lines of a block, newest first.
    pub async fn block_logs(&self, caller: &Caller, name: &str, level: Option<String>, limit: i64) -> Result<Vec<Value>> {
        caller.require(BLOCKS, Action::Read)?;
        let block = self.installed(name)?;
        let name = block.name().to_owned();
        let lines = self
            .store
            .read(ReadCost::Scan, move |connection| {
                Box::pin(async move { Ok(connection.block_logs(&name, level.as_deref(), limit).await?) })
            })
            .await?;
        Ok(lines
            .into_iter()
            .map(|line| {
                let fields: Value = line.fields.and_then(|fields| serde_json::from_str(&fields).ok()).unwrap_or_default();
                json!({
                    "at": blockbase_schema::time::format_datetime(line.logged_at),
                    "level": line.level,
                    "message": line.message,
                    "fields": fields,
                    "callId": line.call_id,
                })
            })
            .collect())
    }
}

fn block_exists(name: &str) -> Error {
    Error::new(Code::BlockExists, format!("The block `{name}` is installed already. Uninstall it first."))
}
