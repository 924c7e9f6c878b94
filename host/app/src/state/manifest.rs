//! A block's manifest: its declarations, and the permissions that it asks for.
//!
//! This file defines the manifest's form and the functions that the operations use. The block runtime has the checks that need a
//! component.

use blockbase_query::{Action, Clause, Fields, Grant, RowPolicy};
use blockbase_schema::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::answer::AnyObject;
use crate::base::webhook_headers::HIDDEN;
use crate::state::persist_config::{PERSIST_EVENT, PersistConfig};

/// An additional requirement of a data permission. `caller` means that the invoking caller needs the permission too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RunAs {
    // The invoking caller also needs the permission.
    Caller,
}

/// A permission of a block on one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcDataPermission")]
pub struct DataPermission {
    pub resource: String,
    pub actions: Vec<Action>,
    /// Only rows that the caller of the block owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RowPolicy")]
    pub row_policy: Option<RowPolicy>,
    /// A condition on the rows that the block reaches. `$user` and `$key` in it stand for the caller of the block.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Clause")]
    pub rows: Option<Clause>,
    /// A condition that a created or changed row has to meet at the end of the call. By default it is `rowPolicy` and `where`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Clause")]
    pub check: Option<Clause>,
    /// The fields that can be read and written in these rows. By default they are all fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub fields: Option<Fields>,
    /// If present, the caller of the block needs the permission too.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunAs")]
    pub run_as: Option<RunAs>,
    /// True in answers if the permission does not fit the schema any more: a condition or a list of fields names something that
    /// no longer exists, or a condition tests a field that has another type now. With a broken condition, the permission has no
    /// effect. With a broken list, it lacks the actions that the list limits.
    #[serde(default, skip_deserializing, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("readOnly" = true))]
    pub broken: bool,
}

impl DataPermission {
    pub fn grant(&self) -> Grant {
        Grant {
            rows: self.rows.clone(),
            check: self.check.clone(),
            fields: self.fields.clone(),
            broken: self.broken,
            ..Grant::new(self.resource.clone(), self.actions.clone(), self.row_policy)
        }
    }

    /// The permission that corresponds to `grant`.
    pub(crate) fn of(grant: Grant, run_as: Option<RunAs>) -> DataPermission {
        let Grant { resource, actions, row_policy, rows, check, fields, broken } = grant;
        DataPermission { resource, actions, row_policy, rows, check, fields, run_as, broken }
    }
}

/// Everything that the installer consents to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "SvcBlockPermissions")]
pub struct Permissions {
    pub data: Vec<DataPermission>,
    pub secrets: Vec<String>,
    pub http: Vec<String>,
}

/// The permission that an action needs instead of update on `blocks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Rbac {
    pub resource: String,
    pub action: Action,
}

/// An action, which callers call by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcBlockAction")]
pub struct ActionDeclaration {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// A JSON Schema.
    #[serde(default = "any_object")]
    #[schemars(with = "AnyObject")]
    pub input: Value,
    /// The permission to call the action. The default is update on `blocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Rbac")]
    pub rbac: Option<Rbac>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub timeout_ms: Option<u64>,
}

impl ActionDeclaration {
    /// The permission that a caller needs to call the action.
    pub fn permission(&self) -> (&str, Action) {
        match &self.rbac {
            Some(rbac) => (&rbac.resource, rbac.action),
            None => ("blocks", Action::Update),
        }
    }
}

fn any_object() -> Value {
    serde_json::json!({ "type": "object" })
}

/// A hook, which receives requests of third parties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SvcBlockHook")]
pub struct HookDeclaration {
    pub name: String,
    #[serde(default)]
    pub description: String,
}

/// A subscription of the block to events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcBlockSubscription")]
pub struct SubscriptionDeclaration {
    /// A topic pattern.
    pub event: String,
    pub consumer: String,
    pub handler: String,
    #[serde(default)]
    #[schemars(with = "AnyObject")]
    pub config: serde_json::Map<String, Value>,
    #[serde(default)]
    pub per_instance: bool,
}

impl SubscriptionDeclaration {
    /// The configuration of `persist_event`. `None` if the handler is another one.
    pub(crate) fn persist_config(&self) -> Option<Result<PersistConfig>> {
        (self.handler == PERSIST_EVENT).then(|| PersistConfig::read(&Value::Object(self.config.clone())))
    }
}

/// A webhook that the installation creates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct WebhookDeclaration {
    pub name: String,
    pub url: String,
    pub topics: Vec<String>,
    /// The headers of its requests. Answers do not show their values.
    #[serde(default)]
    #[schemars(with = "AnyObject", extend("additionalProperties" = { "const": HIDDEN }))]
    pub headers: serde_json::Map<String, Value>,
}

impl WebhookDeclaration {
    /// The declaration as it is stored and shown. Its header values are left out, because they are sealed elsewhere.
    pub(crate) fn without_header_values(&self) -> WebhookDeclaration {
        let headers = self.headers.keys().map(|name| (name.clone(), Value::from(HIDDEN))).collect();
        WebhookDeclaration { name: self.name.clone(), url: self.url.clone(), topics: self.topics.clone(), headers }
    }
}

/// The requirements of the block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Requires {
    pub handlers: Vec<String>,
    /// Host interfaces, or names of installed blocks.
    pub plugins: Vec<String>,
}

impl Requires {
    /// The required blocks. `interfaces` are the names in `plugins` that stand for host interfaces and not for blocks.
    pub fn blocks(&self, interfaces: &[&str]) -> Vec<String> {
        let plugins = self.plugins.iter().filter(|plugin| !interfaces.contains(&plugin.as_str())).cloned();
        let handlers = self.handlers.iter().filter_map(|handler| Some(handler.split_once('.')?.0.to_owned()));
        plugins.chain(handlers).collect()
    }
}

/// A permission resource that the block declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ResourceDeclaration {
    pub name: String,
    pub actions: Vec<Action>,
}

/// The reuse of instances: a call may get an instance that served earlier calls, with the state that they left in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcInstanceReuse")]
pub struct Reuse {
    /// The maximum number of calls that one instance serves.
    pub calls: u32,
    /// The maximum time that an instance waits for its next call, in seconds.
    pub seconds: u32,
    /// An instance serves the calls of one caller only. A block that acts as its callers has no reuse without this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_caller: bool,
}

impl Reuse {
    /// Whether consent to this reuse is also consent to `other`: its state lives at most as long, and passes at most as far.
    pub(crate) fn covers(&self, other: &Reuse) -> bool {
        other.calls <= self.calls && other.seconds <= self.seconds && (other.as_caller || !self.as_caller)
    }
}

/// How the server may use the instances of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "SvcBlockInstances")]
pub struct Instances {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reuse")]
    pub reuse: Option<Reuse>,
}

/// The manifest in the custom section `blockbase:manifest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SvcBlockManifest")]
pub struct Manifest {
    pub name: String,
    pub version: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub authors: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub license: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub source: Option<String>,
    #[serde(default)]
    pub actions: Vec<ActionDeclaration>,
    #[serde(default)]
    pub hooks: Vec<HookDeclaration>,
    #[serde(default)]
    pub subscriptions: Vec<SubscriptionDeclaration>,
    #[serde(default)]
    pub webhooks: Vec<WebhookDeclaration>,
    #[serde(default)]
    pub requires: Requires,
    #[serde(default)]
    pub permissions: Permissions,
    /// The JSON Schema of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub config: Option<Value>,
    #[serde(default)]
    pub resources: Vec<ResourceDeclaration>,
    /// Without it, each call gets an instance of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Instances")]
    pub instances: Option<Instances>,
}

impl Manifest {
    /// The complete configuration: the values that were set, and the schema's defaults for the others. Only the set values are
    /// stored, so that an upgrade can change a default.
    pub fn configured(&self, set: Value) -> Value {
        with_defaults(self.config.as_ref(), set)
    }

    /// The reuse of instances that takes effect. `None` if each call gets an instance of its own. If a permission has
    /// `"as": "caller"`, the block has to ask for that reuse too.
    pub fn reuse(&self) -> Option<Reuse> {
        let asked = self.instances?.reuse?;
        let acts_as_caller = self.permissions.data.iter().any(|permission| permission.run_as.is_some());
        (asked.as_caller || !acts_as_caller).then_some(asked)
    }

    /// The reuse that takes effect, in the form of a manifest.
    pub(crate) fn instances_in_effect(&self) -> Option<Instances> {
        self.reuse().map(|reuse| Instances { reuse: Some(reuse) })
    }

    /// The manifest as it is stored and shown. The header values of its webhooks are left out, because they are sealed elsewhere.
    pub fn without_header_values(&self) -> Manifest {
        let webhooks = self.webhooks.iter().map(WebhookDeclaration::without_header_values).collect();
        Manifest { webhooks, ..self.clone() }
    }

    /// The topic patterns of its subscriptions and webhooks.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &String> {
        let of_subscriptions = self.subscriptions.iter().map(|declared| &declared.event);
        of_subscriptions.chain(self.webhooks.iter().flat_map(|declared| &declared.topics))
    }

    /// Whether a webhook is declared with headers. Their values are secret.
    pub fn has_header_values(&self) -> bool {
        self.webhooks.iter().any(|webhook| !webhook.headers.is_empty())
    }

    /// Whether a handler of any kind is declared with this name.
    pub fn declares(&self, name: &str) -> bool {
        self.actions.iter().any(|action| action.name == name)
            || self.hooks.iter().any(|hook| hook.name == name)
            || self.subscriptions.iter().any(|subscription| subscription.handler == name)
    }
}

fn with_defaults(schema: Option<&Value>, set: Value) -> Value {
    let Value::Object(mut members) = set else { return set };
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        match members.get_mut(name) {
            Some(value) => *value = with_defaults(Some(property), value.take()),
            None => {
                if let Some(default) = property.get("default") {
                    members.insert(name.clone(), default.clone());
                }
            }
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_fill_what_is_not_set() {
        let schema = json!({ "properties": {
            "a": { "default": 1 }, "b": { "properties": { "c": { "default": 2 } } }, "d": {},
        } });
        assert_eq!(with_defaults(Some(&schema), json!({ "b": {} })), json!({ "b": { "c": 2 }, "a": 1 }));
        assert_eq!(with_defaults(Some(&schema), json!({ "a": 7 })), json!({ "a": 7 }));
    }

    #[test]
    fn a_block_that_acts_as_its_callers_has_to_ask_for_that_reuse_too() {
        let reuse = |asked: Value, run_as: Value| {
            let mut permission = json!({ "resource": "task", "actions": ["read"] });
            if !run_as.is_null() {
                permission["as"] = run_as;
            }
            let manifest = json!({
                "name": "a", "version": "1.0.0", "permissions": { "data": [permission] }, "instances": { "reuse": asked },
            });
            serde_json::from_value::<Manifest>(manifest).expect("a manifest").reuse()
        };
        let asked = json!({ "calls": 100, "seconds": 30 });
        let as_caller = json!({ "calls": 100, "seconds": 30, "asCaller": true });
        assert_eq!(reuse(asked.clone(), Value::Null), Some(Reuse { calls: 100, seconds: 30, as_caller: false }));
        assert_eq!(reuse(asked, json!("caller")), None);
        for run_as in [Value::Null, json!("caller")] {
            assert_eq!(reuse(as_caller.clone(), run_as), Some(Reuse { calls: 100, seconds: 30, as_caller: true }));
        }
        let plain = serde_json::from_value::<Manifest>(json!({ "name": "a", "version": "1.0.0" })).expect("a manifest");
        assert_eq!(plain.reuse(), None);
    }
}
