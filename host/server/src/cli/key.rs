//! `blockbase key …`: commands for API keys that run on the machine of the server.

use std::collections::BTreeMap;

use axum::http::Method;
use clap::Subcommand;
use serde_json::{Value, json};

use super::Problem;
use super::operator::{Operator, SETTINGS_HELP};
use super::terminal::{inert, note, print_json, print_line, table};
use super::user::find;

#[derive(Subcommand)]
#[command(after_help = SETTINGS_HELP)]
pub(super) enum KeyCommand {
    /// Create an API key and print it; only this command shows it
    #[command(after_help = "Example:\n  SVC_API_KEY=$(blockbase key create ci --user ann@example.com --role editor)")]
    Create {
        /// What the key is for
        name: String,
        /// Address or id of the user whom the key acts as
        #[arg(long, value_name = "EMAIL")]
        user: String,
        /// Name or id of the role whose permissions the key has
        #[arg(long)]
        role: String,
        /// When the key stops working, as 2027-01-31T00:00:00Z
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// Print the key and what lists show of it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List API keys, the newest first
    #[command(after_help = "Example:\n  blockbase key list --json")]
    List {
        /// Print the keys as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete an API key; it stops working at once
    #[command(after_help = "Example:\n  blockbase key delete 0198c5a2-7d1e-7c3b-9f30-2a4b8c6d1e50")]
    Delete {
        /// Id of the key
        id: String,
        /// Print the key's id as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs one command.
pub(super) fn run(command: KeyCommand) -> Result<(), Problem> {
    Operator::run(false, |operator| match command {
        KeyCommand::Create { name, user, role, expires, json } => {
            let user = find(operator, &user)?;
            let mut body = json!({ "name": name, "userId": user["id"], "roleId": role });
            if let Some(expires) = expires {
                body["expiresAt"] = json!(expires);
            }
            let made = operator.change(Method::POST, &["api-keys"], &[], Some(&body))?;
            if json {
                return print_json(&made);
            }
            note(&format!("{} is created. Only this command shows the key:", inert(&name)));
            print_line(&inert(made["key"].as_str().unwrap_or_default()));
            Ok(())
        }
        KeyCommand::List { json } => list(operator, json),
        KeyCommand::Delete { id, json } => {
            operator.change(Method::DELETE, &["api-keys", &id], &[], None)?;
            if json {
                return print_json(&json!({ "id": id }));
            }
            print_line("The key is deleted.");
            Ok(())
        }
    })
}

fn list(operator: &Operator, json: bool) -> Result<(), Problem> {
    let keys = operator.get(&["api-keys"], &[])?["data"].take();
    if json {
        return print_json(&keys);
    }
    let keys = keys.as_array().cloned().unwrap_or_default();
    if keys.is_empty() {
        note("There is no API key.");
        return Ok(());
    }
    let mut addresses = BTreeMap::new();
    for id in keys.iter().filter_map(|key| key["userId"].as_str()) {
        addresses.entry(id).or_insert_with(|| address_of(operator, id));
    }
    let shown = |value: &Value| inert(value.as_str().unwrap_or("never")).into_owned();
    let row = |key: &Value| {
        let state = if key["suspended"].is_null() { "" } else { "suspended" };
        let mut row = ["name", "prefix", "userId", "expiresAt", "lastUsedAt", "id"].map(|member| shown(&key[member])).to_vec();
        if let Some(address) = key["userId"].as_str().and_then(|id| addresses.get(id)) {
            row[2] = inert(address).into_owned();
        }
        row.push(state.to_owned());
        row
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    for line in table(&["NAME", "BEGINS", "USER", "EXPIRES", "LAST USED", "ID", "STATE"], &rows) {
        print_line(&line);
    }
    Ok(())
}

/// The address of a user; their id if they were deleted a moment ago.
fn address_of(operator: &Operator, id: &str) -> String {
    let user = operator.get(&["users", id], &[]).unwrap_or_default();
    user["data"]["email"].as_str().unwrap_or(id).to_owned()
}
