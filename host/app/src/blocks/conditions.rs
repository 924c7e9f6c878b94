//! The conditions and lists of fields that manifests ask for. Like those of roles, they are stored with numbers of the catalogue
//! and shown with names.

use std::collections::BTreeMap;

use blockbase_auth::sha256_hex;
use blockbase_query::Grant;
use blockbase_query::topic::{Reach, TopicPattern};
use blockbase_schema::{Code, Error, Registry, Resource, Result};
use serde_json::Value;

use super::consent::not_held;
use crate::App;
use crate::access::stored_grants::{shown_grants, stored_grants};
use crate::caller::Caller;
use crate::state::manifest::{DataPermission, Manifest, Permissions, SubscriptionDeclaration};
use crate::state::persist_config::{PERSIST_EVENT, PersistConfig};

/// The length of a SHA-256 in hexadecimal digits.
const DIGEST_CHARS: usize = 64;
/// The member of a manifest with the grants of the block.
const DATA: &str = "permissions.data";

fn grants(data: &[DataPermission]) -> Vec<Grant> {
    data.iter().map(DataPermission::grant).collect()
}

/// Returns the same permissions with other grants. `grants` has one grant for each permission.
fn with_grants(data: &[DataPermission], grants: Vec<Grant>) -> Vec<DataPermission> {
    data.iter().zip(grants).map(|(permission, grant)| DataPermission::of(grant, permission.run_as)).collect()
}

/// Stored permissions with names instead of numbers of the catalogue.
pub(super) fn shown_data(registry: &Registry, data: &[DataPermission]) -> Vec<DataPermission> {
    with_grants(data, shown_grants(registry, grants(data)))
}

/// Does the same for all permissions of a stored manifest.
pub(super) fn shown(registry: &Registry, permissions: &Permissions) -> Permissions {
    Permissions { data: shown_data(registry, &permissions.data), ..permissions.clone() }
}

/// A digest of what somebody consents to: of a manifest with stored permissions, and of the objects that it names. It changes if
/// the name of an object means another object than before, or if the name of a field in the permissions means another field. It
/// does not change if a field gets another name.
///
/// The manifest counts as a whole. So with another `version` the digest changes too, because the version was shown as well.
pub(super) fn consent_to(registry: &Registry, manifest: &Manifest) -> Result<String> {
    let shown = (manifest.without_header_values(), named_objects(registry, manifest));
    Ok(sha256_hex(&serde_json::to_string(&shown).map_err(Error::internal)?))
}

/// The resources that a manifest names, each with the number of the object that has this name now: in its permissions, in the
/// permissions to call its actions, in the topics of its subscriptions and webhooks, and in the configuration of `persist_event`.
fn named_objects(registry: &Registry, manifest: &Manifest) -> BTreeMap<String, Option<i64>> {
    let asked = manifest.permissions.data.iter().map(|permission| permission.resource.clone());
    let called = manifest.actions.iter().filter_map(|action| Some(action.rbac.as_ref()?.resource.clone()));
    let topics = manifest.subscriptions.iter().map(|declared| &declared.event);
    let topics = topics.chain(manifest.webhooks.iter().flat_map(|declared| &declared.topics));
    let written = manifest.subscriptions.iter().filter_map(written_object);
    let names = asked.chain(called).chain(topics.filter_map(|topic| object_of_topic(topic))).chain(written);
    let numbered = |name: String| {
        let number = registry.object(&name).map(|object| object.id);
        (name, number)
    };
    names.map(numbered).collect()
}

/// The object whose events a topic pattern matches. `None` if it can match events of several objects, or of none.
fn object_of_topic(topic: &str) -> Option<String> {
    let pattern = TopicPattern::parse(topic).ok()?;
    match pattern.reach() {
        Reach::Object(object) => Some(object.to_owned()),
        Reach::Platform | Reach::Everything => None,
    }
}

/// The object in which a subscription stores its events.
fn written_object(declared: &SubscriptionDeclaration) -> Option<String> {
    let config = (declared.handler == PERSIST_EVENT).then(|| Value::Object(declared.config.clone()))?;
    PersistConfig::read(&config).ok().map(|config| config.object)
}

/// Checks that a manifest with stored permissions is the one that somebody consented to.
///
/// # Errors
/// `invalid_request` for a text that is no digest, `conflict` for the digest of something else.
pub(super) fn check_consent_to(registry: &Registry, manifest: &Manifest, consent: &str) -> Result<()> {
    if consent.len() != DIGEST_CHARS || !consent.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let message = "`consent` is the text with this name in the answer to an inspection or to a dry run.";
        return Err(Error::invalid_request(message));
    }
    match consent_to(registry, manifest)? == consent.to_ascii_lowercase() {
        true => Ok(()),
        false => Err(Error::new(
            Code::Conflict,
            "This is not what was shown with this consent: the schema was changed since then, or the file is another one. Inspect \
             the file, and consent to what it asks for now.",
        )),
    }
}

/// Whether a resource has the name of an object, also if the object does not exist.
fn is_object_name(resource: &str) -> bool {
    resource != "*" && !resource.contains(':') && !Resource::ALL.iter().any(|known| known.name() == resource)
}

impl App {
    /// A manifest as it is stored.
    ///
    /// # Errors
    /// `missing_requirement` for a condition on an object that does not exist; `invalid_block` for a condition that is malformed
    /// or names unknown fields; `forbidden` for a condition through an object, if the caller may not read every record of that
    /// object.
    pub(super) fn stored_manifest(&self, caller: &Caller, manifest: Manifest) -> Result<Manifest> {
        let data = &manifest.permissions.data;
        let grants = grants(data);
        let registry = self.registry();
        // This check comes first, so that the following errors reveal nothing to a caller without rights on the object.
        for grant in grants.iter().filter(|grant| grant.is_conditional()) {
            if !grant.actions.iter().all(|action| caller.may(&grant.resource, *action)) {
                return Err(not_held(&grant.resource));
            }
        }
        let is_missing = |grant: &&Grant| {
            grant.is_conditional() && is_object_name(&grant.resource) && registry.object(&grant.resource).is_none()
        };
        if let Some(grant) = grants.iter().find(is_missing) {
            let message = format!(
                "The block asks for some records or fields of `{}`, and there is no such object. Create it first.",
                grant.resource
            );
            return Err(Error::new(Code::MissingRequirement, message));
        }
        let known = self.known_to(caller, &registry);
        let stored =
            stored_grants(caller, &self.grant_context(&registry), &known, DATA, grants).map_err(|error| match error.code {
                Code::Forbidden | Code::Internal => error,
                _ => Error::new(Code::InvalidBlock, error.message),
            })?;
        let data = with_grants(data, stored);
        Ok(Manifest { permissions: Permissions { data, ..manifest.permissions }, ..manifest })
    }

    /// The permissions that a stored version of a block asks for, with names.
    ///
    /// # Errors
    /// `conflict` if a condition or a list of fields does not fit the schema any more.
    pub(super) fn asked_again(&self, stored: &Manifest) -> Result<Vec<DataPermission>> {
        let data = shown_data(&self.registry(), &stored.permissions.data);
        match data.iter().find(|permission| permission.broken) {
            None => Ok(data),
            Some(broken) => {
                let message = format!(
                    "Version {} asks for some records or fields of `{}` by a condition or a list of fields that does not fit the \
                     schema any more: it names something that no longer exists, or tests a field that has another type now. \
                     Upgrade to a version that fits the schema.",
                    stored.version, broken.resource
                );
                Err(Error::new(Code::Conflict, message))
            }
        }
    }
}
