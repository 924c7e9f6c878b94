//! Commands for installed blocks: list, show, roll back, uninstall, enable, configure, secrets, call.

use std::path::Path;

use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::Api;
use super::terminal::{confirmed, inert, inert_json, note, print_json, print_line, read_input, read_secret, table};
use super::{Problem, build, consent};

/// The number of characters of a digest that a list shows.
const DIGEST_CHARS: usize = 19;

fn shown(value: &Value) -> String {
    inert(value.as_str().unwrap_or_default()).into_owned()
}

pub(super) fn list(api: &Api, json: bool) -> Result<(), Problem> {
    let blocks = api.get(&["blocks"], &[])?.data()?;
    if json {
        return print_json(&blocks);
    }
    let blocks = blocks.as_array().cloned().unwrap_or_default();
    if blocks.is_empty() {
        note("No block is installed.");
        return Ok(());
    }
    let row = |block: &Value| {
        let state = if block["enabled"] == false { "disabled" } else { "enabled" };
        let digest = shown(&block["digest"]).chars().take(DIGEST_CHARS).collect();
        vec![shown(&block["name"]), shown(&block["version"]), state.to_owned(), digest, shown(&block["description"])]
    };
    let rows: Vec<Vec<String>> = blocks.iter().map(row).collect();
    for line in table(&["NAME", "VERSION", "STATE", "DIGEST", "DESCRIPTION"], &rows) {
        print_line(&line);
    }
    Ok(())
}

pub(super) fn show(api: &Api, name: &str, json: bool) -> Result<(), Problem> {
    let block = api.get(&["blocks", name], &[])?.data()?;
    if json {
        return print_json(&block);
    }
    print_line(&format!("{} {}", shown(&block["name"]), shown(&block["version"])));
    if !shown(&block["description"]).is_empty() {
        print_line(&shown(&block["description"]));
    }
    let versions: Vec<String> = block["versions"].as_array().into_iter().flatten().map(shown).collect();
    let state = if block["enabled"] == false { "disabled" } else { "enabled" };
    print_line(&format!("State: {state}"));
    print_line(&format!("Digest: {}", shown(&block["digest"])));
    print_line(&format!("Versions: {}", versions.join(", ")));
    print_line(&format!("Installed: {}", shown(&block["installedAt"])));
    print_line(&format!("Configuration: {}", inert_json(&block["config"].to_string())));
    for line in consent::described(&block) {
        print_line(&line);
    }
    Ok(())
}

pub(super) fn rollback(api: &Api, name: &str, json: bool) -> Result<(), Problem> {
    let answer = api.send(Method::POST, &["blocks", name, "rollback"], &[], None)?.expect()?;
    if json {
        return print_json(&answer);
    }
    print_line(&format!("{} is at {} again.", inert(name), shown(&answer["data"]["version"])));
    Ok(())
}

pub(super) fn uninstall(api: &Api, name: &str, yes: bool) -> Result<(), Problem> {
    // This fails before the question if the block is not installed.
    let block = api.get(&["blocks", name], &[])?.data()?;
    let question = format!(
        "{} {} goes, with its subscriptions, webhooks and waiting deliveries; the data stays. Uninstall it?",
        shown(&block["name"]),
        shown(&block["version"])
    );
    let without_terminal = "There is no terminal to ask at; say --yes to uninstall without a question.";
    if !confirmed(&question, yes, without_terminal)? {
        return Err(Problem::Failed("Nothing was uninstalled.".to_owned()));
    }
    let reply = api.send(Method::DELETE, &["blocks", name], &[], None)?;
    if !reply.is_success() {
        return Err(reply.problem());
    }
    print_line(&format!("{} is uninstalled.", inert(name)));
    Ok(())
}

pub(super) fn set_enabled(api: &Api, name: &str, enabled: bool) -> Result<(), Problem> {
    api.send_json(Method::PATCH, &["blocks", name], &json!({ "enabled": enabled }))?.data()?;
    print_line(&format!("{} is {}.", inert(name), if enabled { "enabled" } else { "disabled" }));
    Ok(())
}

pub(super) fn config(api: &Api, name: &str, set: Option<&str>) -> Result<(), Problem> {
    let block = match set {
        None => api.get(&["blocks", name], &[])?.data()?,
        Some(given) => {
            let text = match given {
                "-" => read_input()?,
                json if json.trim_start().starts_with('{') => json.to_owned(),
                file => build::read_text(Path::new(file))?,
            };
            let config: Value = serde_json::from_str(&text)
                .map_err(|error| Problem::Usage(format!("The configuration is not valid JSON: {error}.")))?;
            api.send_json(Method::PATCH, &["blocks", name], &json!({ "config": config }))?.data()?
        }
    };
    print_json(&block["config"])
}

pub(super) fn list_secrets(api: &Api, name: &str, json: bool) -> Result<(), Problem> {
    let secrets = api.get(&["blocks", name, "secrets"], &[])?.data()?;
    if json {
        return print_json(&secrets);
    }
    for secret in secrets.as_array().into_iter().flatten() {
        let unset = if secret["isSet"] == false { "  (not set)" } else { "" };
        print_line(&format!("{}{unset}", shown(&secret["name"])));
    }
    Ok(())
}

pub(super) fn set_secret(api: &Api, name: &str, key: &str) -> Result<(), Problem> {
    let value = read_secret(&format!("Value of {key}: "))?;
    let reply = api.send_json(Method::POST, &["blocks", name, "secrets"], &json!({ "name": key, "value": value }))?;
    if !reply.is_success() {
        return Err(reply.problem());
    }
    print_line(&format!("{} is set for {}.", inert(key), inert(name)));
    Ok(())
}

pub(super) fn delete_secret(api: &Api, name: &str, key: &str) -> Result<(), Problem> {
    let reply = api.send(Method::DELETE, &["blocks", name, "secrets", key], &[], None)?;
    if !reply.is_success() {
        return Err(reply.problem());
    }
    print_line(&format!("{} is deleted from {}.", inert(key), inert(name)));
    Ok(())
}

/// An action's answer. Its data stays text, so that large numbers keep their digits.
#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

pub(super) fn call(api: &Api, name: &str, action: &str, input: &str) -> Result<(), Problem> {
    let input = if input == "-" { read_input()? } else { input.to_owned() };
    let input: &RawValue =
        serde_json::from_str(&input).map_err(|error| Problem::Usage(format!("The input is not valid JSON: {error}.")))?;
    let content = ("application/json", input.get().to_owned().into());
    let reply = api.send(Method::POST, &["blocks", name, "actions", action], &[], Some(content))?;
    if !reply.is_success() {
        return Err(reply.problem());
    }
    match serde_json::from_slice::<Called<'_>>(&reply.body) {
        Ok(called) => {
            print_line(&inert_json(called.data.get()));
            Ok(())
        }
        Err(_) => Err(reply.problem()),
    }
}
