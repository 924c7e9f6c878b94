//! Install, upgrade and rollback. Each is one transaction, so there is always either the old state or the new one.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Hint, Issue, Registry, Resource, Result};
use blockbase_store::{BlockRow, BlockVersionRow, Connection, Maker, ReadCost, SubscriptionRow, ThingKind, WebhookRow};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::conditions::{check_consent_to, consent_to, shown};
use super::consent::NewPermissions;
use super::names::check_actions;
use super::{AuditedBlock, BlockAnswer};
use crate::App;
use crate::access::makers::keep_maker;
use crate::base::topic::{BlockMembers, Topic};
use crate::caller::Caller;
use crate::delivery::webhooks::{NewWebhook, insert};
use crate::outbox::audit::{Act, AuditAction, Auditor};
use crate::outbox::platform_event::Announcer;
use crate::state::block_types::{InstalledBlock, PreparedBlock, manifest_place};
use crate::state::manifest::{Manifest, Permissions, Requires};
use crate::state::routing::is_built_in;

/// The options of an install.
#[derive(Clone, Debug, Default)]
pub struct InstallOptions {
    /// Report what the block would get, and install nothing.
    pub dry_run: bool,
    /// Replace the installed version.
    pub upgrade: bool,
    /// Consent to what an upgrade asks for in addition to the installed version.
    pub allow_new_permissions: bool,
    /// The digest of what somebody consented to, as an inspection or a dry run returned it.
    pub consent: Option<String>,
}

/// The result of an install or of a dry run.
#[derive(Debug, Serialize)]
pub struct Installed {
    /// `None` after a dry run.
    #[serde(rename = "data", skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockAnswer>,
    pub report: InstallReport,
    /// Whether no version was installed before.
    #[serde(skip)]
    pub is_new: bool,
}

/// What an installation gives a block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcInstallReport", deny_unknown_fields)]
pub struct InstallReport {
    permissions: Permissions,
    /// What an install sends as `consent`, like that of an inspection. It is only there after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    consent: Option<String>,
    webhooks: Vec<ReportedWebhook>,
    /// Warnings about topics whose object does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// What the upgrade asks for in addition. It is only there after a dry run of an upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NewPermissions")]
    new_permissions: Option<NewPermissions>,
}

/// A webhook that the block declares. It has no id after a dry run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct ReportedWebhook {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    id: Option<String>,
    #[schemars(with = "String")]
    name: Option<String>,
    url: String,
    /// The signing secret, which is shown only this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    secret: Option<String>,
}

/// A checked version that is about to become the active one, with everything that is stored with it.
pub(super) struct Change {
    manifest: Manifest,
    digest: String,
    /// The packed file. `None` if the version is already stored.
    file: Option<Bytes>,
    /// The configuration values that were set.
    config: Value,
    subscriptions: Vec<SubscriptionRow>,
    /// Webhooks with their secrets. The secrets of new webhooks are shown once.
    webhooks: Vec<(WebhookRow, String)>,
    /// The version and the digest of the block that was active when the change was checked.
    replaces: Option<(String, String)>,
    announcer: Announcer,
    auditor: Auditor,
    /// The schema, whose names the audit log shows.
    registry: Arc<Registry>,
    /// Other blocks that must be installed.
    required: Vec<String>,
    /// The version of the schema against which the conditions and the consent were checked.
    schema: i64,
    /// Whether the change fails if the schema has another version by now.
    is_bound_to_schema: bool,
    now: i64,
    installed_by: Option<String>,
    /// The caller who consents to what the block asks for.
    maker: Maker,
}

impl App {
    /// Installs a packed file, or upgrades the block to it. With `dry_run` it only reports what the block would get.
    ///
    /// # Errors
    /// `invalid_block`, `missing_requirement`, `block_exists`, `new_permissions`. `forbidden` if the block asks for rights that the
    /// installer lacks, or if somebody else made the block and the installer's rights would cut it. `conflict` if `consent` is of
    /// something else.
    pub async fn install_block(self: &Arc<Self>, caller: &Caller, file: Bytes, options: InstallOptions) -> Result<Installed> {
        // This check comes before the compilation, because the file may have arrived slowly and the caller may have lost rights
        // meanwhile.
        self.recheck(caller).await?;
        caller.require(Resource::Blocks, Action::Create)?;
        let installed = self.try_install(caller, file, options).await;
        if !matches!(installed, Ok(Installed { block: Some(_), .. })) {
            // A dry run does not need the compiled code, so the server does not keep it.
            self.retain_installed();
        }
        installed
    }

    async fn try_install(self: &Arc<Self>, caller: &Caller, file: Bytes, options: InstallOptions) -> Result<Installed> {
        let PreparedBlock { manifest, digest, kept: _kept } = self.runtime()?.prepare(file.clone()).await?;
        self.recheck(caller).await?;
        let present = self.blocks.read().get(&manifest.name).cloned();
        if present.is_some() && !options.upgrade {
            return Err(block_exists(&manifest.name));
        }
        // Read before the conditions, so that the server notices a later change of the schema.
        let registry = self.registry();
        let schema = registry.version;
        let same = present.as_ref().filter(|present| present.digest == digest);
        let manifest = match same {
            // The conditions of the stored manifest follow renames, so their names may differ from those in the file.
            Some(same) => Manifest { permissions: same.manifest.permissions.clone(), ..manifest },
            None => self.stored_manifest(caller, manifest)?,
        };
        self.check_grantable(caller, &manifest)?;
        if options.dry_run {
            self.check_replacement_now(caller, &manifest, &digest).await?;
        }
        check_secrets(caller, &manifest, present.as_deref())?;
        if let Some(consent) = &options.consent {
            check_consent_to(&registry, &manifest, consent)?;
        }
        let added = present.as_ref().map(|present| self.added_to(&present.manifest, &manifest)).unwrap_or_default();
        let asked_for = added.parts().join(", ");
        if !asked_for.is_empty() && !options.dry_run && !options.allow_new_permissions {
            let message = format!("The new version asks for more than the installed one has ({asked_for}).");
            let mut error = Error::new(Code::NewPermissions, message).with_hint(Hint::AllowNewPermissions);
            error.details = Some(Box::new(("newPermissions", json!(added.shown(&self.registry())))));
            return Err(error);
        }
        let is_new = present.is_none();
        if let Some(same) = same.filter(|_| !options.dry_run) {
            let report = self.install_report(&manifest);
            return Ok(Installed { block: Some(self.shown_block(caller, same.name()).await?), report, is_new });
        }
        let mut report = self.install_report(&manifest);
        if options.dry_run {
            report.consent = Some(consent_to(&registry, &manifest)?);
        }
        let mut change = self.change(caller, manifest, digest, Some(file), present.as_deref(), schema)?;
        change.is_bound_to_schema |= options.consent.is_some();
        if options.dry_run {
            let receiver =
                |row: &WebhookRow| ReportedWebhook { id: None, name: row.name.clone(), url: row.url.clone(), secret: None };
            report.webhooks = change.webhooks.iter().map(|(row, _)| receiver(row)).collect();
            report.new_permissions = (!is_new).then(|| added.shown(&self.registry()));
            return Ok(Installed { block: None, report, is_new });
        }
        let (block, webhooks) = self.apply(caller, change).await?;
        report.webhooks = webhooks;
        Ok(Installed { block: Some(block), report, is_new })
    }

    /// The report, without its `webhooks` and `consent`, which are added later. Its warnings are about topics that match nothing
    /// at this moment.
    fn install_report(&self, manifest: &Manifest) -> InstallReport {
        InstallReport {
            permissions: shown(&self.registry(), &manifest.permissions),
            consent: None,
            webhooks: Vec::new(),
            warnings: self.warnings_of_topics(manifest.topics()),
            new_permissions: None,
        }
    }

    /// Makes the version before the present one active again. The present version is kept until the next upgrade.
    ///
    /// # Errors
    /// `conflict` if there is no earlier version, or if its permissions do not fit the schema or are refused now. `forbidden` if
    /// that version asks for rights that the caller lacks, or if somebody else made the block and the caller's rights would cut
    /// it.
    pub async fn rollback_block(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<BlockAnswer> {
        caller.require(Resource::Blocks, Action::Create)?;
        let present = self.installed(name)?;
        let serving = present.versions.iter().position(|(version, _)| *version == present.manifest.version);
        let before = serving.and_then(|place| present.versions.get(place + 1));
        let Some((version, digest)) = before else {
            let message = format!("No version of the block `{name}` before {} is kept.", present.manifest.version);
            return Err(Error::new(Code::Conflict, message));
        };
        let file = self.stored_file(name, version, digest).await?;
        let file = Bytes::from(file.ok_or_else(|| Error::internal("a kept version has no file"))?);
        let PreparedBlock { mut manifest, digest, kept: _kept } = self.runtime()?.prepare(file).await?;
        let schema = self.registry().version;
        // Objects and fields may have other names than when that version was installed.
        manifest.permissions.data = self.asked_again(&self.stored_manifest_of(name, version).await?)?;
        let manifest = self.stored_manifest(caller, manifest)?;
        self.check_grantable(caller, &manifest)?;
        check_secrets(caller, &manifest, Some(&present))?;
        let change = self.change(caller, manifest, digest, None, Some(&present), schema)?;
        Ok(self.apply(caller, change).await?.0)
    }

    async fn stored_manifest_of(&self, block: &str, version: &str) -> Result<Manifest> {
        let (key, wanted) = (block.to_owned(), version.to_owned());
        let read = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.block_manifest(&key, &wanted).await?) })
            })
            .await?;
        let text = read.ok_or_else(|| Error::internal("a kept version has no manifest"))?;
        manifest_place(block).decides(&text)
    }

    /// Checks that the caller may grant what the manifest asks for, and that the block's requirements are installed.
    fn check_grantable(&self, caller: &Caller, manifest: &Manifest) -> Result<()> {
        self.check_consent(&self.registry(), caller, manifest)?;
        self.check_subscriptions(caller, manifest)?;
        self.check_requirements(manifest)?;
        check_actions(manifest, &self.registry(), &self.blocks.read())
    }

    /// Checks for a dry run that the caller may take over the block that this version would replace. An installation checks this
    /// in its transaction.
    async fn check_replacement_now(&self, caller: &Caller, manifest: &Manifest, digest: &str) -> Result<()> {
        let (app, acting, next) = (self.itself()?, caller.clone(), (manifest.clone(), digest.to_owned()));
        self.scan(caller, move |connection| {
            Box::pin(async move {
                let installed = connection.blocks().await?;
                app.check_replacement(connection, &acting, &installed, (&next.0, &next.1)).await
            })
        })
        .await
    }

    /// Everything that has to be stored to make a version active.
    pub(super) fn change(
        &self,
        caller: &Caller,
        manifest: Manifest,
        digest: String,
        file: Option<Bytes>,
        present: Option<&InstalledBlock>,
        schema: i64,
    ) -> Result<Change> {
        let source = Some(format!("block:{}", manifest.name));
        let maker = caller.maker();
        let mut webhooks = Vec::with_capacity(manifest.webhooks.len());
        for declared in &manifest.webhooks {
            let new = NewWebhook {
                name: Some(declared.name.clone()),
                url: declared.url.clone(),
                topics: declared.topics.clone(),
                headers: declared.headers.clone(),
                enabled: true,
            };
            let made = self.new_webhook(caller, new, source.clone());
            webhooks.push(made.map_err(|error| error.within(format_args!("Webhook `{}`", declared.name)))?);
        }
        let subscriptions = manifest
            .subscriptions
            .iter()
            .map(|declared| SubscriptionRow {
                consumer: declared.consumer.clone(),
                topic: declared.event.clone(),
                handler: match is_built_in(&declared.handler) {
                    true => declared.handler.clone(),
                    false => format!("{}.{}", manifest.name, declared.handler),
                },
                config: Value::Object(declared.config.clone()).to_string(),
                per_instance: declared.per_instance,
                source: source.clone(),
                maker: maker.clone(),
                suspension: None,
            })
            .collect();
        Ok(Change {
            config: self.carried_config(&manifest, present)?,
            announcer: self.announcer(caller),
            auditor: self.auditor(caller),
            registry: self.registry(),
            required: manifest.requires.blocks(self.runtime()?.interfaces()),
            replaces: present.map(|present| (present.manifest.version.clone(), present.digest.clone())),
            schema,
            is_bound_to_schema: manifest.permissions.data.iter().any(|permission| permission.grant().is_conditional()),
            now: self.clock.now(),
            installed_by: caller.actor_id().map(str::to_owned),
            maker,
            manifest,
            digest,
            file,
            subscriptions,
            webhooks,
        })
    }

    /// The stored configuration values that fit the version. Other keys fall back to their defaults.
    ///
    /// # Errors
    /// `conflict` if the stored configuration cannot be read. `invalid_block` if the version refuses an empty configuration.
    fn carried_config(&self, manifest: &Manifest, present: Option<&InstalledBlock>) -> Result<Value> {
        let runtime = self.runtime()?;
        let mut set = match present.map(|present| &present.configured) {
            Some(Some(set)) => set.clone(),
            Some(None) => {
                let message = "The stored configuration of this block cannot be read. Set it again first.";
                return Err(Error::new(Code::Conflict, message));
            }
            None => Map::new(),
        };
        let declares = |key: &str| {
            let properties = manifest.config.as_ref().and_then(|schema| schema.get("properties"));
            properties.is_some_and(|properties| properties.get(key).is_some())
        };
        loop {
            let Err(error) = runtime.validate_config(manifest, Value::Object(set.clone())) else { return Ok(Value::Object(set)) };
            if set.is_empty() {
                return Err(error);
            }
            let first_part = |path: &str| Some(path.strip_prefix('/')?.split('/').next()?.replace("~1", "/").replace("~0", "~"));
            let at_fault: Vec<String> = error
                .issues
                .iter()
                .filter_map(|issue| match issue {
                    Issue::Document { path, .. } => first_part(path),
                    Issue::Field { .. } => None,
                })
                .collect();
            let without = |gone: &dyn Fn(&String) -> bool| -> Map<String, Value> {
                set.iter().filter(|(key, _)| !gone(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
            };
            let mut kept = without(&|key| at_fault.contains(key));
            if kept.len() == set.len() {
                kept = without(&|key| !declares(key));
            }
            // If no single value is at fault, the whole configuration is reset.
            set = if kept.len() == set.len() { Map::new() } else { kept };
            tracing::info!(
                block.name = manifest.name,
                "parts of the block's configuration do not fit its new version and are reset"
            );
        }
    }

    /// Stores a version and makes it active. Returns the block and the report of its webhooks.
    async fn apply(self: &Arc<Self>, caller: &Caller, mut change: Change) -> Result<(BlockAnswer, Vec<ReportedWebhook>)> {
        let name = change.manifest.name.clone();
        if let Some(file) = change.file.take() {
            change.file = Some(self.file_to_store(&change.manifest, &change.digest, file).await?);
        }
        let (app, acting) = (Arc::clone(self), caller.clone());
        let report = self
            .store
            .write(self.by(caller), move |connection| {
                Box::pin(async move { store_change(connection, &app, &acting, change).await })
            })
            .await?;
        self.refresh().await?;
        self.group_gone.notify_one();
        Ok((self.shown_block(caller, &name).await?, report))
    }
}

/// A caller who gives stored secrets to other code needs the right to manage them.
pub(super) fn check_secrets(caller: &Caller, manifest: &Manifest, present: Option<&InstalledBlock>) -> Result<()> {
    let is_set = |name: &String| present.is_some_and(|present| present.secrets.contains_key(name));
    match manifest.permissions.secrets.iter().any(is_set) {
        true => {
            caller.require(Resource::Blocks, Action::Manage).map_err(|error| error.within("The block has secrets that are set"))
        }
        false => Ok(()),
    }
}

/// Checks that a version fits the other installed blocks, and that its consumer groups are free.
///
/// # Errors
/// `missing_requirement`. `conflict` if another block needs a handler that the version lacks, that block's manifest cannot be read, or
/// something else already has one of the consumer groups.
pub(super) fn check_beside_others(
    manifest: &Manifest,
    required: &[String],
    installed: &[BlockRow],
    subscriptions: &[SubscriptionRow],
) -> Result<()> {
    let name = manifest.name.as_str();
    if let Some(gone) = required.iter().find(|required| !installed.iter().any(|block| block.name == **required)) {
        let message = format!("The block requires the block `{gone}`, which is not installed.");
        return Err(Error::new(Code::MissingRequirement, message));
    }
    // If this block is not installed yet, no other block can need it.
    let is_there = installed.iter().any(|block| block.name == name);
    for other in installed.iter().filter(|other| is_there && other.name != name) {
        let requires = requires_of(other)?;
        let of_this = requires.handlers.iter().filter_map(|handler| handler.split_once('.')).filter(|(block, _)| *block == name);
        if let Some((_, handler)) = of_this.into_iter().find(|(_, handler)| !manifest.declares(handler)) {
            let message =
                format!("The block `{}` requires the handler `{name}.{handler}`, which this version lacks.", other.name);
            return Err(Error::new(Code::Conflict, message));
        }
    }
    let source = format!("block:{name}");
    let others = |consumer: &str| {
        subscriptions.iter().any(|row| row.consumer == consumer && row.source.as_deref() != Some(source.as_str()))
    };
    match manifest.subscriptions.iter().find(|declared| others(&declared.consumer)) {
        Some(declared) => Err(group_exists(&declared.consumer)),
        None => Ok(()),
    }
}

/// The requirements of an installed block.
///
/// # Errors
/// `conflict` if its manifest cannot be read. A block that may be needed must not be removed only because the need cannot be read.
pub(super) fn requires_of(row: &BlockRow) -> Result<Requires> {
    let manifest: Option<Manifest> = manifest_place(&row.name).found(&row.manifest);
    manifest.map(|manifest| manifest.requires).ok_or_else(|| {
        let message = format!(
            "The stored manifest of the block `{}` cannot be read, so its requirements are unknown. Uninstall that block first.",
            row.name
        );
        Error::new(Code::Conflict, message)
    })
}

fn group_exists(consumer: &str) -> Error {
    Error::new(Code::Conflict, format!("The block declares the consumer group `{consumer}`, which there is already."))
}

async fn store_change(connection: &mut Connection, app: &App, caller: &Caller, change: Change) -> Result<Vec<ReportedWebhook>> {
    let Change {
        manifest,
        digest,
        file,
        config,
        subscriptions,
        webhooks,
        replaces,
        announcer,
        auditor,
        registry,
        required,
        schema,
        is_bound_to_schema,
        now,
        installed_by,
        maker,
    } = change;
    if is_bound_to_schema && connection.keep_version("schema").await? != schema {
        return Err(Error::new(Code::Conflict, "The schema was changed meanwhile. Try again."));
    }
    keep_maker(connection, &maker).await?;
    // From here on, no other transaction changes blocks. Data that was read earlier may be outdated.
    connection.raise_version("blocks").await?;
    connection.raise_version("subscriptions").await?;
    let name = manifest.name.clone();
    let source = format!("block:{name}");
    let installed = connection.blocks().await?;
    check_replaced(&installed, &name, &replaces)?;
    check_beside_others(&manifest, &required, &installed, &connection.subscriptions().await?)?;
    let before = installed.into_iter().find(|block| block.name == name);
    if let Some(block) = &before {
        app.check_takeover(connection, caller, block, Some(&manifest)).await?;
    }
    let action = match (&before, &file) {
        (None, _) => AuditAction::Install,
        (Some(_), Some(_)) => AuditAction::Upgrade,
        (Some(_), None) => AuditAction::RollBack,
    };
    let after = AuditedBlock {
        version: manifest.version.clone(),
        digest: digest.clone(),
        enabled: before.as_ref().is_none_or(|block| block.enabled),
        config_keys: config.as_object().map(|config| config.keys().cloned().collect()),
        permissions: Some(shown(&registry, &manifest.permissions)),
    };
    let before = before.map(|block| AuditedBlock::of(&registry, &block));
    store_version(connection, &manifest, (digest, file), config.to_string(), replaces.is_some(), (now, installed_by)).await?;
    connection.set_maker(ThingKind::Block, &name, &maker).await?;
    // A consumer group that also exists in the new version keeps its pending deliveries.
    connection.delete_subscriptions_of(&source).await?;
    for subscription in subscriptions {
        let consumer = subscription.consumer.clone();
        if !connection.insert_subscription(subscription).await? {
            return Err(group_exists(&consumer));
        }
    }
    let report = store_webhooks(connection, &source, webhooks).await?;
    let members = BlockMembers { block: &name, version: &manifest.version };
    let topic = match replaces {
        None => Topic::BlockInstalled(members),
        // For consumers who follow the active version, a rollback is an upgrade to an older version.
        Some(_) => Topic::BlockUpgraded(members),
    };
    announcer.emit(connection, topic).await?;
    let act = Act::new(action, Resource::Blocks, &name).before(&before).after(&after);
    auditor.record(connection, act).await?;
    Ok(report)
}

/// Checks that the active block is still the one against which the change was checked.
fn check_replaced(installed: &[BlockRow], name: &str, replaces: &Option<(String, String)>) -> Result<()> {
    let present = installed.iter().find(|block| block.name == name).map(|block| (block.version.clone(), block.digest.clone()));
    match (&present, replaces) {
        (Some(_), None) => Err(block_exists(name)),
        (present, replaces) if present != replaces => {
            Err(Error::new(Code::Conflict, "The block was changed by somebody else meanwhile. Look at it and try again."))
        }
        _ => Ok(()),
    }
}

/// Makes a version the active one. Without a file, the version is already stored.
async fn store_version(
    connection: &mut Connection,
    manifest: &Manifest,
    (digest, file): (String, Option<Bytes>),
    config: String,
    is_upgrade: bool,
    (now, installed_by): (i64, Option<String>),
) -> Result<()> {
    let (name, version) = (manifest.name.clone(), manifest.version.clone());
    let Some(file) = file else {
        return match connection.serve_version(&name, (&version, &digest), config, now, installed_by).await? {
            true => Ok(()),
            false => Err(Error::new(Code::Conflict, "That version is not kept any more. Look at the block and try again.")),
        };
    };
    let row = BlockVersionRow {
        block: name.clone(),
        version,
        digest,
        manifest: serde_json::to_string(&manifest.without_header_values()).map_err(Error::internal)?,
        component: file.to_vec(),
        installed_at: now,
    };
    if is_upgrade {
        connection.upgrade_block(row, config, installed_by).await?;
    } else if !connection.insert_block(row, config, installed_by).await? {
        return Err(block_exists(&name));
    }
    Ok(())
}

/// Changes the webhooks of a block to the declared ones. A webhook with the same name keeps its id and secret.
async fn store_webhooks(
    connection: &mut Connection,
    source: &str,
    declared: Vec<(WebhookRow, String)>,
) -> Result<Vec<ReportedWebhook>> {
    let known = connection.webhooks().await?.into_iter().filter(|row| row.source.as_deref() == Some(source));
    let mut known: HashMap<Option<String>, WebhookRow> = known.map(|row| (row.name.clone(), row)).collect();
    let mut report = Vec::with_capacity(declared.len());
    for (new, secret) in declared {
        match known.remove(&new.name) {
            None => {
                insert(connection, &new).await?;
                report.push(ReportedWebhook { id: Some(new.id), name: new.name, url: new.url, secret: Some(secret) });
            }
            Some(kept) => {
                connection.set_maker(ThingKind::Webhook, &kept.id, &new.maker).await?;
                let WebhookRow { url, topics, headers, updated_at, .. } = new;
                let row = WebhookRow { url, topics, headers, updated_at, ..kept };
                connection.update_webhook(&row).await?;
                // The webhook already exists. Its secret was shown when it was created.
                report.push(ReportedWebhook { id: Some(row.id), name: row.name, url: row.url, secret: None });
            }
        }
    }
    for gone in known.into_values() {
        connection.delete_webhook(&gone.id).await?;
    }
    Ok(report)
}

fn block_exists(name: &str) -> Error {
    Error::new(Code::BlockExists, format!("The block `{name}` is installed already.")).with_hint(Hint::Upgrade)
}
