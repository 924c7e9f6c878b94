//! Checks of a manifest: its names, versions and schemas, and whether its parts fit together.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use blockbase_app::schema::json::strict_from_str;
use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{BlockPermissions, Manifest, TopicPattern, check_consumer};
use serde_json::Value;

use crate::package::origins::AllowedOrigin;
use crate::package::schema::BoundedSchema;

/// The maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 48;
/// The maximum length of a secret's name, in characters.
const SECRET_NAME_CHARS_MAX: usize = 100;
/// Names that a block must not have. They are other path segments in the place of a block's name, beginnings of other consumer
/// groups, or names of the host's interfaces.
const RESERVED: [&str; 10] = ["actions", "inspect", "webhook", "data", "secrets", "config", "log", "http", "deadline", "types"];
/// The maximum number of declarations of one kind in a manifest.
const DECLARATIONS_MAX: usize = 200;

/// The maximum size of a manifest, in bytes.
const MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// The longest time limit that an action may ask for, in milliseconds.
const TIMEOUT_MS_MAX: u64 = 600_000;
/// The number of calls for which a block may reuse an instance, and the number of seconds for which the instance may wait.
const REUSE_CALLS: RangeInclusive<u32> = 2..=1_000_000;
const REUSE_SECONDS: RangeInclusive<u32> = 1..=300;

/// An error that refuses the block.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidBlock, message)
}

/// Reads and checks a manifest.
///
/// # Errors
/// `invalid_block`, which names the wrong key or name.
pub fn parse_manifest(text: &str) -> Result<Manifest> {
    if text.len() > MANIFEST_BYTES_MAX {
        return Err(invalid(format!("A manifest has {MANIFEST_BYTES_MAX} bytes at most.")));
    }
    let manifest: Manifest =
        strict_from_str(text).map_err(|misfit| invalid(format!("The manifest is not of the expected form: {misfit}.")))?;
    check(&manifest)?;
    Ok(manifest)
}

fn check(manifest: &Manifest) -> Result<()> {
    let name = &manifest.name;
    if !is_name(name, b'-') || RESERVED.contains(&name.as_str()) {
        return Err(invalid(format!(
            "Block names are 1 to {NAME_CHARS_MAX} lower-case letters, digits and `-`, and begin with a letter; {name:?} is not, or is reserved."
        )));
    }
    if semver::Version::parse(&manifest.version).is_err() {
        return Err(invalid(format!("`version` needs a semantic version like 1.2.0; it is {:?}.", manifest.version)));
    }
    let counts = [
        ("actions", manifest.actions.len()),
        ("hooks", manifest.hooks.len()),
        ("subscriptions", manifest.subscriptions.len()),
        ("resources", manifest.resources.len()),
        ("webhooks", manifest.webhooks.len()),
        ("permissions.data", manifest.permissions.data.len()),
        ("permissions.secrets", manifest.permissions.secrets.len()),
        ("permissions.http", manifest.permissions.http.len()),
        ("requires.handlers", manifest.requires.handlers.len()),
        ("requires.plugins", manifest.requires.plugins.len()),
    ];
    if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count > DECLARATIONS_MAX) {
        return Err(invalid(format!("`{key}` holds {DECLARATIONS_MAX} entries at most.")));
    }
    let actions = manifest.actions.iter().map(|action| action.name.as_str());
    let hooks = manifest.hooks.iter().map(|hook| hook.name.as_str());
    let handlers = manifest.subscriptions.iter().map(|subscription| subscription.handler.as_str());
    let webhooks: Vec<&str> = manifest.webhooks.iter().map(|webhook| webhook.name.as_str()).collect();
    if let Some(twice) = webhooks.iter().enumerate().find(|(place, name)| webhooks[..*place].contains(name)) {
        return Err(invalid(format!("The webhook {:?} is declared twice.", twice.1)));
    }
    check_names("action", actions, true)?;
    check_names("hook", hooks, true)?;
    check_names("handler", handlers, false)?;
    for action in &manifest.actions {
        if action.input.get("type") != Some(&Value::from("object")) {
            return Err(invalid(format!("`input` of the action `{}` has to be a JSON Schema of type object.", action.name)));
        }
        if action.timeout_ms.is_some_and(|timeout| !(1..=TIMEOUT_MS_MAX).contains(&timeout)) {
            return Err(invalid(format!("`timeoutMs` of the action `{}` is a number from 1 to {TIMEOUT_MS_MAX}.", action.name)));
        }
        BoundedSchema::new(&action.input)
            .map_err(|error| error.within(format_args!("`input` of the action `{}`", action.name)))?;
    }
    if let Some(schema) = &manifest.config {
        BoundedSchema::new(schema).map_err(|error| error.within("`config`"))?;
    }
    let mut consumers = HashSet::new();
    for subscription in &manifest.subscriptions {
        TopicPattern::parse(&subscription.event).map_err(|error| invalid(error.message))?;
        if !subscription.consumer.starts_with(&format!("{name}:")) {
            return Err(invalid(format!("The consumer {:?} has to begin with `{name}:`.", subscription.consumer)));
        }
        check_consumer(&subscription.consumer).map_err(|error| invalid(error.message))?;
        if !consumers.insert(&subscription.consumer) {
            return Err(invalid(format!("The consumer {:?} is declared twice.", subscription.consumer)));
        }
    }
    for resource in &manifest.resources {
        let fits = resource
            .name
            .strip_prefix(name.as_str())
            .and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|rest| is_name(rest, b'_'));
        if !fits {
            return Err(invalid(format!("The resource {:?} has to be `{name}:` and a name.", resource.name)));
        }
    }
    if let Some(reuse) = manifest.instances.and_then(|instances| instances.reuse) {
        for (key, value, range) in [("calls", reuse.calls, REUSE_CALLS), ("seconds", reuse.seconds, REUSE_SECONDS)] {
            if !range.contains(&value) {
                let (least, most) = (range.start(), range.end());
                return Err(invalid(format!("`instances.reuse.{key}` is a number from {least} to {most}; it is {value}.")));
            }
        }
    }
    check_permissions(&manifest.permissions)
}

/// Checks that the names of secrets could be names of shell variables, and that origins have the form that is compared with
/// requests.
fn check_permissions(permissions: &BlockPermissions) -> Result<()> {
    let mut seen = HashSet::new();
    for secret in &permissions.secrets {
        let bytes = secret.as_bytes();
        let fits = bytes.len() <= SECRET_NAME_CHARS_MAX
            && bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        if !fits {
            return Err(invalid(format!(
                "Secrets are named by 1 to {SECRET_NAME_CHARS_MAX} letters, digits and `_`, not beginning with a digit; {secret:?} is not."
            )));
        }
        if !seen.insert(secret) {
            return Err(invalid(format!("The secret `{secret}` is declared twice.")));
        }
    }
    for origin in &permissions.http {
        AllowedOrigin::parse(origin).map_err(|message| invalid(format!("`permissions.http`: {message}")))?;
    }
    Ok(())
}

fn is_name(text: &str, joiner: u8) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= NAME_CHARS_MAX
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == joiner)
}

fn check_names<'a>(kind: &str, names: impl Iterator<Item = &'a str>, unique: bool) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !is_name(name, b'_') {
            return Err(invalid(format!(
                "{kind} names are 1 to {NAME_CHARS_MAX} lower-case letters, digits and `_`, and begin with a letter; {name:?} is not."
            )));
        }
        if !seen.insert(name) && unique {
            return Err(invalid(format!("The {kind} `{name}` is declared twice.")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(manifest: Value) -> String {
        parse_manifest(&manifest.to_string()).expect_err("a refusal").message
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(message(json!({ "name": "a", "version": "1.0.0", "colour": 1 })).contains("colour"));
        assert!(message(json!({ "name": "A", "version": "1.0.0" })).contains("\"A\""));
        assert!(message(json!({ "name": "actions", "version": "1.0.0" })).contains("reserved"));
        assert!(message(json!({ "name": "a", "version": "1" })).contains("semantic version"));
        let action = |action: Value| message(json!({ "name": "a", "version": "1.0.0", "actions": [action] }));
        assert!(action(json!({ "name": "x", "input": { "type": "string" } })).contains("type object"));
        assert!(action(json!({ "name": "x", "input": { "type": "object", "minProperties": "many" } })).contains("`x`"));
        assert!(action(json!({ "name": "x y" })).contains("x y"));
    }

    #[test]
    fn the_reuse_of_instances_is_bounded() {
        let manifest = |reuse: Value| json!({ "name": "a", "version": "1.0.0", "instances": { "reuse": reuse } }).to_string();
        for (calls, seconds) in [(2, 1), (1_000_000, 300)] {
            assert!(parse_manifest(&manifest(json!({ "calls": calls, "seconds": seconds, "asCaller": true }))).is_ok());
        }
        for (reuse, path) in [
            (json!({ "calls": 1, "seconds": 30 }), "`instances.reuse.calls`"),
            (json!({ "calls": 1_000_001, "seconds": 30 }), "`instances.reuse.calls`"),
            (json!({ "calls": 100, "seconds": 0 }), "`instances.reuse.seconds`"),
            (json!({ "calls": 100, "seconds": 301 }), "`instances.reuse.seconds`"),
            (json!({ "calls": "100", "seconds": 30 }), "`instances.reuse.calls`"),
            (json!({ "calls": -1, "seconds": 30 }), "`instances.reuse.calls`"),
            (json!({ "calls": 100, "seconds": 1.5 }), "`instances.reuse.seconds`"),
            (json!({ "calls": 100, "seconds": 30, "asCaller": "yes" }), "`instances.reuse.asCaller`"),
            (json!({ "calls": 100, "seconds": 30, "forever": true }), "forever"),
            (json!({ "calls": 100 }), "seconds"),
            (json!([100, 30]), "`instances.reuse`"),
        ] {
            let message = parse_manifest(&manifest(reuse)).expect_err("a refusal").message;
            assert!(message.contains(path), "{path}: {message}");
        }
    }

    #[test]
    fn a_list_is_no_object_at_any_depth() {
        for (key, value, place) in [
            ("permissions", json!([]), "`permissions`"),
            ("requires", json!([["log_event"]]), "`requires`"),
            ("actions", json!([["x"]]), "`actions[0]`"),
            ("actions", json!([{ "name": "x", "rbac": ["task", "read"] }]), "`actions[0].rbac`"),
            ("permissions", json!({ "data": [["task", ["read"]]] }), "`permissions.data[0]`"),
            ("subscriptions", json!([["data.#", "a:b", "h"]]), "`subscriptions[0]`"),
        ] {
            let mut manifest = json!({ "name": "a", "version": "1.0.0" });
            manifest[key] = value;
            let message = message(manifest);
            assert!(message.contains(place), "{message}");
        }
    }
}
