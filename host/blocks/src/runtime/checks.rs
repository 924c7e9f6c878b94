//! The checks of a component's imports and handlers, and of a configuration and an input against their schemas.

use blockbase_app::schema::{Code, Error, Issue, Result};
use blockbase_app::{Manifest, is_built_in};
use serde_json::Value;

use crate::host::INTERFACES;
use crate::host::bindings::exports::blockbase::block::registry;
use crate::package::manifest::invalid;
use crate::package::schema::BoundedSchema;

/// The interfaces of the block package that every block may import.
const FREE_INTERFACES: [&str; 2] = ["types", "deadline"];

pub(super) fn check_imports<'a>(manifest: &Manifest, imports: impl Iterator<Item = &'a str>) -> Result<()> {
    let requires = |interface: &str| manifest.requires.plugins.iter().any(|plugin| plugin == interface);
    let unasked = |import: &str, interface: &str| {
        invalid(format!(
            "The component imports `{import}`, but the manifest does not ask for `{interface}` in `requires.plugins`."
        ))
    };
    for import in imports {
        let Some(interface) = import.strip_prefix("blockbase:block/") else {
            match import.split_once(':') {
                Some(("wasi", rest)) if !rest.starts_with("http/") => continue,
                // This is WASI's own HTTP interface. The consent to `http` also covers it.
                Some(("wasi", _)) if requires("http") => continue,
                Some(("wasi", _)) => return Err(unasked(import, "http")),
                _ => return Err(invalid(format!("The component imports `{import}`, which this server does not offer."))),
            }
        };
        let (interface, version) = interface.split_once('@').unwrap_or((interface, ""));
        if version != "0.1.0" || !(INTERFACES.contains(&interface) || FREE_INTERFACES.contains(&interface)) {
            return Err(invalid(format!("The component imports `{import}`, which this server does not offer.")));
        }
        if !FREE_INTERFACES.contains(&interface) && !requires(interface) {
            return Err(unasked(import, interface));
        }
    }
    Ok(())
}

pub(super) fn check_handlers(manifest: &Manifest, handlers: &[registry::Handler]) -> Result<()> {
    let has = |name: &str, kind: &str| handlers.iter().any(|handler| handler.name == name && handler.kind == kind);
    let mut missing = Vec::new();
    missing.extend(
        manifest.actions.iter().filter(|action| !has(&action.name, "action")).map(|action| format!("action `{}`", action.name)),
    );
    missing.extend(manifest.hooks.iter().filter(|hook| !has(&hook.name, "hook")).map(|hook| format!("hook `{}`", hook.name)));
    missing.extend(
        manifest
            .subscriptions
            .iter()
            .map(|subscription| subscription.handler.as_str())
            .filter(|handler| !is_built_in(handler) && !has(handler, "subscription"))
            .map(|handler| format!("subscription handler `{handler}`")),
    );
    match missing.is_empty() {
        true => Ok(()),
        false => {
            Err(invalid(format!("The manifest declares handlers that the component does not have: {}.", missing.join(", "))))
        }
    }
}

pub(super) fn validation_failed(what: &str, issues: Vec<Issue>) -> Result<()> {
    if issues.is_empty() {
        return Ok(());
    }
    let mut error =
        Error::new(Code::ValidationFailed, format!("{what} does not match its schema; `issues` lists every failure."));
    error.issues = issues.into();
    Err(error)
}

pub(super) fn checked_config(manifest: &Manifest, config: Value) -> Result<Value> {
    if !config.is_object() {
        return Err(Error::new(Code::InvalidValue, "`config` is a JSON object.").with_field("config"));
    }
    let config = manifest.configured(config);
    if let Some(schema) = &manifest.config {
        validation_failed("The configuration", BoundedSchema::new(schema)?.issues(&config)?)?;
    }
    Ok(config)
}

/// Fails if the component lacks a handler that its manifest declares. The install has already checked this.
pub(super) fn check_registered(is_exported: bool, kind: &str, name: &str) -> Result<()> {
    match is_exported {
        true => Ok(()),
        false => Err(Error::new(Code::NotFound, format!("The block registers no {kind} `{name}`."))),
    }
}
