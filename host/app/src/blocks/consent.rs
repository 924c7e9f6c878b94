//! Consent: the installer grants what the manifest asks for. Nobody can grant rights that they lack.

use blockbase_query::topic::TopicPattern;
use blockbase_query::{Grant, Permissions};
use blockbase_schema::{Code, Error, Registry, Resource, Result};
use blockbase_store::{BlockRow, Connection, Thing, ThingKind};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use super::conditions::shown_data;
use crate::App;
use crate::access::makers::has_made;
use crate::caller::{Authority, Caller};
use crate::state::acts_later::{ActsLater, SuspensionCheck};
use crate::state::block_types::manifest_place;
use crate::state::manifest::{DataPermission, Manifest, Rbac, Reuse, RunAs, SubscriptionDeclaration, WebhookDeclaration};
use crate::state::persist_config::PERSIST_EVENT;
use crate::state::routing::{LOG_EVENT, is_built_in, may_change_stored, may_subscribe};
use blockbase_query::Action;

/// What a version of a block asks for in addition to the installed one. A list is empty if there is nothing new.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "SvcNewPermissions", deny_unknown_fields)]
pub struct NewPermissions {
    pub(super) data: Vec<DataPermission>,
    pub(super) secrets: Vec<String>,
    pub(super) http: Vec<String>,
    pub(super) subscriptions: Vec<SubscriptionDeclaration>,
    pub(super) webhooks: Vec<NewReceiver>,
    pub(super) actions: Vec<NewCallers>,
    pub(super) hooks: Vec<NewHook>,
    /// The reuse of instances, if its state lives longer or passes further than in the installed version.
    pub(super) instances: Vec<Reuse>,
}

/// A webhook, which receives events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct NewReceiver {
    pub(super) name: String,
    url: String,
    topics: Vec<String>,
}

/// An action, and the permission to call it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct NewCallers {
    pub(super) name: String,
    rbac: Rbac,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct NewHook {
    pub(super) name: String,
}

impl NewPermissions {
    /// Returns the same with names instead of numbers of the catalogue.
    pub(super) fn shown(self, registry: &Registry) -> NewPermissions {
        NewPermissions { data: shown_data(registry, &self.data), ..self }
    }

    /// The parts of the manifest with new requests. The list is empty if an upgrade needs no consent.
    pub(super) fn parts(&self) -> Vec<&'static str> {
        let NewPermissions { data, secrets, http, subscriptions, webhooks, actions, hooks, instances } = self;
        [
            ("data", data.is_empty()),
            ("secrets", secrets.is_empty()),
            ("http", http.is_empty()),
            ("subscriptions", subscriptions.is_empty()),
            ("webhooks", webhooks.is_empty()),
            ("actions", actions.is_empty()),
            ("hooks", hooks.is_empty()),
            ("instances", instances.is_empty()),
        ]
        .into_iter()
        .filter_map(|(part, is_empty)| (!is_empty).then_some(part))
        .collect()
    }

    /// Whether a part has an entry with this name. The name is a resource, a consumer group, or the key of the part's entries.
    pub(super) fn asks_for(&self, part: &str, name: &str) -> bool {
        let NewPermissions { data, secrets, http, subscriptions, webhooks, actions, hooks, instances } = self;
        match part {
            "data" => data.iter().any(|entry| entry.resource == name),
            "secrets" => secrets.iter().any(|entry| entry == name),
            "http" => http.iter().any(|entry| entry == name),
            "subscriptions" => subscriptions.iter().any(|entry| entry.consumer == name),
            "webhooks" => webhooks.iter().any(|entry| entry.name == name),
            "actions" => actions.iter().any(|entry| entry.name == name),
            "hooks" => hooks.iter().any(|entry| entry.name == name),
            "instances" => !instances.is_empty(),
            _ => false,
        }
    }
}

/// The rights that a version asks for in addition to another version.
pub(super) fn additions(installed: &Manifest, asked: &Manifest) -> NewPermissions {
    let grants = |keep: fn(Option<RunAs>) -> bool| {
        let data = installed.permissions.data.iter().filter(|permission| keep(permission.run_as));
        // The owner of the rows does not matter here: `own` covers `own`.
        Permissions::new(data.map(|permission| permission.grant()).collect::<Vec<Grant>>(), Some("actor".to_owned()))
    };
    let (plain, any) = (grants(|run_as| run_as.is_none()), grants(|_| true));
    let data = asked
        .permissions
        .data
        .iter()
        .filter(|permission| {
            let held = if permission.run_as.is_some() { &any } else { &plain };
            !held.covers(&permission.grant())
        })
        .cloned()
        .collect();
    let new = |asked: &[String], held: &[String]| -> Vec<String> {
        asked.iter().filter(|name| !held.contains(name)).cloned().collect()
    };
    let subscribes = |known: &SubscriptionDeclaration, asked: &SubscriptionDeclaration| {
        // The block's own code could already do anything with an event. A built-in handler sends the event elsewhere, so another
        // event for it needs consent.
        known.event == asked.event
            && (!is_built_in(&asked.handler) || (known.handler == asked.handler && known.config == asked.config))
    };
    let subscriptions = asked
        .subscriptions
        .iter()
        .filter(|asked| !installed.subscriptions.iter().any(|known| subscribes(known, asked)))
        .cloned()
        .collect();
    let sends = |known: &WebhookDeclaration, asked: &WebhookDeclaration| {
        known.url == asked.url && asked.topics.iter().all(|topic| known.topics.contains(topic))
    };
    // A webhook keeps its secret by its name. So another URL for this name is new, also if another webhook already has this URL.
    let is_agreed = |asked: &WebhookDeclaration| match installed.webhooks.iter().find(|known| known.name == asked.name) {
        Some(known) => sends(known, asked),
        None => installed.webhooks.iter().any(|known| sends(known, asked)),
    };
    let webhooks = asked
        .webhooks
        .iter()
        .filter(|asked| !is_agreed(asked))
        .map(|asked| NewReceiver { name: asked.name.clone(), url: asked.url.clone(), topics: asked.topics.clone() })
        .collect();
    // Callers who may call the block, besides those who may call all blocks anyway.
    let actions = asked
        .actions
        .iter()
        .filter(|asked| !installed.actions.iter().any(|known| known.name == asked.name && known.rbac == asked.rbac))
        .filter_map(|asked| Some(NewCallers { name: asked.name.clone(), rbac: asked.rbac.clone()? }))
        .collect();
    let hooks = asked
        .hooks
        .iter()
        .filter(|asked| !installed.hooks.iter().any(|known| known.name == asked.name))
        .map(|asked| NewHook { name: asked.name.clone() })
        .collect();
    let agreed = installed.reuse();
    let instances = asked.reuse().filter(|asked| agreed.is_none_or(|agreed| !agreed.covers(asked))).into_iter().collect();
    NewPermissions {
        data,
        secrets: new(&asked.permissions.secrets, &installed.permissions.secrets),
        http: new(&asked.permissions.http, &installed.permissions.http),
        subscriptions,
        webhooks,
        actions,
        hooks,
        instances,
    }
}

/// The refusal to install a block that asks for more than the caller may grant.
pub(super) fn not_held(resource: &str) -> Error {
    let message = format!("The block asks for permissions on `{resource}` that you do not have, so you cannot grant them.");
    Error::new(Code::Forbidden, message)
}

/// Blocks, as a kind of things that act later.
pub(crate) struct MadeBlocks;

impl ActsLater for MadeBlocks {
    fn kind(&self) -> ThingKind {
        ThingKind::Block
    }

    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<SuspensionCheck>>> {
        Box::pin(async move {
            let mut kept = Vec::new();
            for row in connection.blocks().await?.into_iter().filter(|row| !row.maker.is_nobody()) {
                // A block that cannot be read does not run here. It must not prevent the check of the other blocks.
                let Some(manifest) = manifest_place(&row.name).found::<Manifest>(&row.manifest) else { continue };
                kept.push(SuspensionCheck {
                    id: row.name,
                    maker: row.maker,
                    stored: row.suspension.map(|suspension| suspension.reason),
                    needs: Box::new(move |app, registry, maker| app.check_consent(registry, maker, &manifest)),
                });
            }
            Ok(kept)
        })
    }

    fn carried<'a>(
        &'a self,
        app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(row) = connection.blocks().await?.into_iter().find(|row| row.name == id) else { return Ok(()) };
            let manifest: Manifest = manifest_place(id).decides(&row.manifest)?;
            let registry = app.registry_in(connection).await?;
            app.check_consent(&registry, caller, &manifest)?;
            app.check_subscriptions(caller, &manifest)?;
            app.check_takeover(connection, caller, &row, None).await
        })
    }

    /// The block's webhooks and subscriptions are adopted with it.
    fn adopted<'a>(&'a self, connection: &'a mut Connection, id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>> {
        Box::pin(async move {
            let source = Some(format!("block:{id}"));
            let of = |kind: ThingKind, id: String| Thing { kind, id, name: None };
            let webhooks = connection.webhooks().await?.into_iter().filter(|row| row.source == source);
            let mut things: Vec<Thing> = webhooks.map(|row| of(ThingKind::Webhook, row.id)).collect();
            let rows = connection.subscriptions().await?.into_iter().filter(|row| row.source == source);
            things.extend(rows.map(|row| of(ThingKind::Subscription, row.consumer)));
            Ok(things)
        })
    }
}

impl App {
    /// The rights that a version asks for in addition to the installed one. A permission does not count for the actions for which
    /// it lists a field that no longer exists.
    pub(super) fn added_to(&self, installed: &Manifest, asked: &Manifest) -> NewPermissions {
        let registry = self.registry();
        let grant_context = self.grant_context(&registry);
        let with_meaning = |manifest: &Manifest| {
            let mut manifest = manifest.clone();
            let data = manifest.permissions.data.iter().filter_map(|permission| {
                let grant = permission.grant();
                let given = grant_context.given_by(&grant)?.into_owned();
                Some(DataPermission::of(given, permission.run_as))
            });
            manifest.permissions.data = data.collect();
            manifest
        };
        additions(&with_meaning(installed), &with_meaning(asked))
    }

    /// Checks that the caller has the rights that the block gets. A list, of the block or of the caller, that names a field which
    /// `registry` lacks takes away the actions that it limits, from its holder only.
    pub(crate) fn check_consent(&self, registry: &Registry, caller: &Caller, manifest: &Manifest) -> Result<()> {
        if !self.settings.require_auth {
            return Ok(());
        }
        let grant_context = self.grant_context(registry);
        for permission in &manifest.permissions.data {
            let Authority::Own(held) = &caller.authority else {
                return Err(Error::new(Code::Forbidden, "A block cannot install blocks."));
            };
            let held = held.with_meaning(&grant_context);
            let grant = permission.grant();
            let Some(asked) = grant_context.given_by(&grant) else { continue };
            // If the block acts as itself, `own` applies to the rows of every caller. So the installer needs the right for all
            // rows.
            let given = match permission.run_as {
                None => asked.as_ref().clone().for_all(),
                Some(RunAs::Caller) => asked.as_ref().clone(),
            };
            if held.covers(&asked) && !held.covers(&given) {
                let rows = match permission.row_policy.is_some() {
                    true => "the own rows of every caller",
                    false => "rows that depend on who calls it",
                };
                return Err(Error::new(
                    Code::Forbidden,
                    format!(
                        "The block asks for {rows} on `{}`, and your permissions are only for yourself. It needs `\"as\": \"caller\"` \
                         there, or somebody with the permission for all rows has to install it.",
                        permission.resource
                    ),
                ));
            }
            if !held.covers(&given) {
                return Err(not_held(&permission.resource));
            }
        }
        Ok(())
    }

    /// [`App::check_takeover`] of the installed block that a file with this digest would replace. The installed version replaces
    /// nothing.
    ///
    /// # Errors
    /// Those of [`App::check_takeover`].
    pub(super) async fn check_replacement(
        &self,
        connection: &mut Connection,
        caller: &Caller,
        installed: &[BlockRow],
        (next, digest): (&Manifest, &str),
    ) -> Result<()> {
        match installed.iter().find(|block| block.name == next.name && block.digest != digest) {
            Some(block) => self.check_takeover(connection, caller, block, Some(next)).await,
            None => Ok(()),
        }
    }

    /// Checks that the caller may become the maker of an installed block, by adopting it or by installing another version. From
    /// then on, its deliveries and its calls are judged by the rights of the caller. If somebody else made the block, it must not
    /// get fewer events or reach fewer rows for this reason, because nobody would notice.
    ///
    /// `next` is the version that becomes active. What the block does now counts too, because a rollback restores it.
    ///
    /// # Errors
    /// `forbidden`, which names the object that the caller reaches only in part.
    pub(super) async fn check_takeover(
        &self,
        connection: &mut Connection,
        caller: &Caller,
        block: &BlockRow,
        next: Option<&Manifest>,
    ) -> Result<()> {
        if !self.settings.require_auth || has_made(connection, caller, &block.maker).await? {
            return Ok(());
        }
        let registry = self.registry_in(connection).await?;
        let installed: Manifest = manifest_place(&block.name).decides(&block.manifest)?;
        [&installed].into_iter().chain(next).try_for_each(|manifest| self.check_whole(&registry, caller, block, manifest))
    }

    /// Checks that the caller's rights take nothing away from a version of a block that somebody else made.
    fn check_whole(&self, registry: &Registry, caller: &Caller, block: &BlockRow, manifest: &Manifest) -> Result<()> {
        for declared in &manifest.subscriptions {
            let within = |error: Error| error.within(format_args!("Subscription `{}`", declared.consumer));
            may_change_stored(caller, &declared.event, &block.maker).map_err(within)?;
        }
        for declared in &manifest.webhooks {
            let within = |error: Error| error.within(format_args!("Webhook `{}`", declared.name));
            declared.topics.iter().try_for_each(|topic| may_change_stored(caller, topic, &block.maker)).map_err(within)?;
        }
        let grant_context = self.grant_context(registry);
        let held = caller.rights().with_meaning(&grant_context);
        for permission in manifest.permissions.data.iter().filter(|permission| permission.run_as.is_some()) {
            let grant = permission.grant();
            let Some(asked) = grant_context.given_by(&grant) else { continue };
            // In the maker's grants, `own` means the rows of the block's caller, but variables stand for the maker.
            let for_everybody = Grant { row_policy: asked.row_policy, ..asked.as_ref().clone().for_all() };
            if held.covers(&asked) && !held.covers(&for_everybody) {
                let message = format!(
                    "You did not make this block, and your permissions on `{}` depend on who you are. The block would reach only \
                     your rows, whoever calls it. Somebody with the permission for all rows has to do this.",
                    permission.resource
                );
                return Err(Error::new(Code::Forbidden, message));
            }
        }
        Ok(())
    }

    /// Checks that the caller may read the events that the block gets, and may create the records that it writes.
    pub(crate) fn check_subscriptions(&self, caller: &Caller, manifest: &Manifest) -> Result<()> {
        if !manifest.webhooks.is_empty() {
            caller.require(Resource::Webhooks, Action::Create)?;
        }
        for declared in &manifest.subscriptions {
            let within = |error: Error| error.within(format_args!("Subscription `{}`", declared.consumer));
            may_subscribe(caller, &TopicPattern::parse(&declared.event)?).map_err(within)?;
            if declared.handler == PERSIST_EVENT && declared.per_instance {
                let message = "`persist_event` is not for every instance: each would write the same record.";
                return Err(within(Error::new(Code::InvalidBlock, message)));
            }
            if declared.handler == LOG_EVENT && !declared.config.is_empty() {
                return Err(within(Error::new(Code::InvalidBlock, "`log_event` takes no configuration.")));
            }
            if let Some(config) = declared.persist_config() {
                caller.require(&config.map_err(within)?.object, Action::Create).map_err(within)?;
            }
        }
        Ok(())
    }

    pub(super) fn check_requirements(&self, manifest: &Manifest) -> Result<()> {
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
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest(keys: Value) -> Manifest {
        let mut whole = json!({ "name": "a", "version": "1.0.0" });
        for (key, value) in keys.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        serde_json::from_value(whole).expect("a manifest")
    }

    fn asks(installed: Value, asked: Value) -> Vec<&'static str> {
        additions(&manifest(installed), &manifest(asked)).parts()
    }

    #[test]
    fn every_part_is_there_even_where_nothing_is_asked_for() {
        let added = additions(&manifest(json!({})), &manifest(json!({})));
        let nothing = json!({
            "data": [], "secrets": [], "http": [], "subscriptions": [], "webhooks": [], "actions": [], "hooks": [],
            "instances": [],
        });
        assert_eq!(json!(added), nothing);
    }

    fn data(entries: Value) -> Value {
        json!({ "permissions": { "data": entries } })
    }

    #[test]
    fn the_same_or_less_asks_for_nothing() {
        let all = json!({
            "permissions": {
                "data": [{ "resource": "task", "actions": ["manage"] }], "secrets": ["A", "B"], "http": ["https://a.example"],
            },
            "subscriptions": [{ "event": "data.task.#", "consumer": "a:x", "handler": "h" }],
            "webhooks": [{ "name": "w", "url": "https://a.example/", "topics": ["data.#"] }],
        });
        assert!(asks(all.clone(), all.clone()).is_empty());
        assert!(asks(all.clone(), data(json!([{ "resource": "task", "actions": ["read"], "rowPolicy": "own" }]))).is_empty());
        assert!(asks(all.clone(), data(json!([{ "resource": "task", "actions": ["delete"], "as": "caller" }]))).is_empty());
        assert_eq!(asks(json!({}), all), ["data", "secrets", "http", "subscriptions", "webhooks"]);
    }

    #[test]
    fn whatever_is_more_is_told() {
        let own = json!([{ "resource": "task", "actions": ["read"], "rowPolicy": "own" }]);
        assert_eq!(asks(data(own.clone()), data(json!([{ "resource": "task", "actions": ["read"] }]))), ["data"]);
        assert_eq!(asks(data(own), data(json!([{ "resource": "note", "actions": ["read"] }]))), ["data"]);
        let borrowed = json!([{ "resource": "task", "actions": ["read"], "as": "caller" }]);
        assert_eq!(asks(data(borrowed), data(json!([{ "resource": "task", "actions": ["read"] }]))), ["data"]);
        let subscription = |event: &str, handler: &str, object: &str| json!({ "subscriptions": [{ "event": event, "consumer": "a:x", "handler": handler, "config": { "object": object } }] });
        assert_eq!(asks(subscription("data.a.#", "h", "x"), subscription("data.#", "h", "x")), ["subscriptions"]);
        assert!(asks(subscription("data.a.#", "h", "x"), subscription("data.a.#", "other", "y")).is_empty());
        assert_eq!(asks(subscription("data.a.#", "h", "x"), subscription("data.a.#", "persist_event", "x")), ["subscriptions"]);
        assert_eq!(
            asks(subscription("data.a.#", "persist_event", "x"), subscription("data.a.#", "persist_event", "y")),
            ["subscriptions"]
        );
        let webhook = |url: &str| json!({ "webhooks": [{ "name": "w", "url": url, "topics": ["data.#"] }] });
        assert_eq!(asks(webhook("https://a.example/"), webhook("https://b.example/")), ["webhooks"]);
        // With the secret of `w`, the server would sign what it sends to the receiver of `v`.
        let named = |name: &str, url: &str| json!({ "name": name, "url": url, "topics": ["data.#"] });
        let webhooks = |one: &str, two: &str| json!({ "webhooks": [named("w", one), named("v", two)] });
        let (a, b) = ("https://a.example/", "https://b.example/");
        assert_eq!(asks(webhooks(a, b), webhooks(b, a)), ["webhooks"]);
        assert!(asks(webhooks(a, b), webhook(a)).is_empty());
        assert!(asks(webhook(a), json!({ "webhooks": [named("renamed", a)] })).is_empty());
        assert_eq!(asks(json!({}), json!({ "hooks": [{ "name": "h" }] })), ["hooks"]);
        let action = |rbac: Value| json!({ "actions": [{ "name": "x", "rbac": rbac }] });
        let read = json!({ "resource": "task", "action": "read" });
        assert_eq!(asks(action(json!({ "resource": "task", "action": "delete" })), action(read.clone())), ["actions"]);
        assert!(asks(action(read.clone()), action(read.clone())).is_empty());
        assert!(asks(action(read), json!({ "actions": [{ "name": "x" }, { "name": "y" }] })).is_empty());
    }

    #[test]
    fn state_that_lives_longer_or_passes_further_needs_consent() {
        let reuse = |calls: u32, seconds: u32, as_caller: bool| {
            let reuse = json!({ "calls": calls, "seconds": seconds, "asCaller": as_caller });
            json!({ "instances": { "reuse": reuse } })
        };
        let agreed = reuse(100, 30, false);
        assert_eq!(asks(json!({}), agreed.clone()), ["instances"]);
        for (asked, is_new) in [
            (json!({}), false),
            (reuse(100, 30, false), false),
            (reuse(2, 1, false), false),
            (reuse(100, 30, true), false),
            (reuse(101, 30, false), true),
            (reuse(100, 31, false), true),
        ] {
            assert_eq!(asks(agreed.clone(), asked.clone()).is_empty(), !is_new, "{asked}");
        }
        assert_eq!(asks(reuse(100, 30, true), agreed.clone()), ["instances"]);
        // The reuse takes effect when the block no longer acts as its callers.
        let mut without_effect = data(json!([{ "resource": "task", "actions": ["read"], "as": "caller" }]));
        without_effect["instances"] = agreed["instances"].clone();
        assert!(asks(json!({ "permissions": without_effect["permissions"] }), without_effect.clone()).is_empty());
        assert_eq!(asks(without_effect, agreed), ["instances"]);
    }
}
