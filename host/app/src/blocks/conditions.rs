//! The conditions and lists of fields that manifests ask for. Like those of roles, they are stored with numbers of the catalogue
//! and shown with names.

use std::collections::BTreeMap;

use blockbase_auth::sha256_hex;
use blockbase_query::topic::{Reach, TopicPattern};
use blockbase_query::{Grant, number_of_column};
use blockbase_schema::{Code, Error, Registry, Resource, Result};

use super::consent::not_held;
use crate::App;
use crate::access::stored_grants::{shown_grants, stored_grants};
use crate::caller::Caller;
use crate::state::manifest::{DataPermission, Manifest, Permissions};
use crate::state::persist_config::PersistConfig;

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

/// A digest of what somebody consents to: of a manifest with stored permissions, and of the objects and fields that it names. It
/// changes if one of these names means another object or field than before, or if the object or field exists only now, or no
/// longer. It does not change if a field of the permissions gets another name.
///
/// The manifest counts as a whole. So with another `version` the digest changes too, because the version was shown as well.
pub(super) fn consent_to(registry: &Registry, manifest: &Manifest) -> Result<String> {
    let shown = (manifest.without_header_values(), named_objects(registry, manifest), filled_columns(registry, manifest));
    Ok(sha256_hex(&serde_json::to_string(&shown).map_err(Error::internal)?))
}

/// The resources that a manifest names, each with the number of the object that has this name now: in its permissions, in the
/// permissions to call its actions, and in the topics of its subscriptions and webhooks.
fn named_objects(registry: &Registry, manifest: &Manifest) -> BTreeMap<String, Option<i64>> {
    let asked = manifest.permissions.data.iter().map(|permission| permission.resource.clone());
    let called = manifest.actions.iter().filter_map(|action| Some(action.rbac.as_ref()?.resource.clone()));
    let topics = manifest.topics().filter_map(|topic| object_of_topic(topic));
    let numbered = |name: String| {
        let number = registry.object(&name).map(|object| object.id);
        (name, number)
    };
    asked.chain(called).chain(topics).map(numbered).collect()
}

/// The object whose events a topic pattern matches. `None` if it can match events of several objects, or of none.
fn object_of_topic(topic: &str) -> Option<String> {
    let pattern = TopicPattern::parse(topic).ok()?;
    match pattern.reach() {
        Reach::Object(object) => Some(object.to_owned()),
        Reach::Platform | Reach::Everything => None,
    }
}

/// For each subscription that stores its events in an object: the columns that it fills, each with the number of the column that
/// has this name now. The number of a column stands for its object too.
fn filled_columns(registry: &Registry, manifest: &Manifest) -> Vec<BTreeMap<String, Option<String>>> {
    let stored = manifest.subscriptions.iter().filter_map(|declared| declared.persist_config()?.ok());
    let numbered = |config: PersistConfig| {
        let object = registry.object(&config.object);
        let number = |name: &str| object.and_then(|object| Some(number_of_column(object, object.column(name)?)));
        config.columns().map(|name| (name.to_owned(), number(name))).collect()
    };
    stored.map(numbered).collect()
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
    /// `conflict` if a condition or a list of fields does not fit the schema any more, or if it is on a grant that cannot give one
    /// of its actions ([`Grant::can_give_all`]). An earlier version of the server accepted such grants.
    pub(super) fn asked_again(&self, stored: &Manifest) -> Result<Vec<DataPermission>> {
        let data = shown_data(&self.registry(), &stored.permissions.data);
        if let Some(broken) = data.iter().find(|permission| permission.broken) {
            let message = format!(
                "Version {} asks for some records or fields of `{}` by a condition or a list of fields that does not fit the \
                 schema any more: it names something that no longer exists, or tests a field that has another type now. \
                 Upgrade to a version that fits the schema.",
                stored.version, broken.resource
            );
            return Err(Error::new(Code::Conflict, message));
        }
        if let Some(refused) = grants(&data).iter().find(|grant| !grant.can_give_all()) {
            let message = format!(
                "Version {} asks for actions on `{}` together with a condition or a list of fields that may limit the action \
                 `read` only. Upgrade to a version that asks for these actions without it.",
                stored.version, refused.resource
            );
            return Err(Error::new(Code::Conflict, message));
        }
        Ok(data)
    }
}
