//! Describes in plain words what a block may do: before an install, and for an installed block.

use serde_json::Value;

use super::condition_words::{said, said_fields};
use super::terminal::inert;

/// Lines that describe the members `permissions`, `subscriptions`, `webhooks`, `actions`, `hooks` and `instances` of a manifest or an
/// installed block. `instances` is the reuse that takes effect.
pub(super) fn described(block: &Value) -> Vec<String> {
    let mut lines = permissions(&block["permissions"]);
    if lines.is_empty() {
        lines.push("It asks for no data, no secrets and no outbound calls.".to_owned());
    }
    lines.extend(events(block));
    lines.extend(callers(block));
    lines.extend(reuse(&block["instances"]["reuse"]));
    lines
}

/// Lines that describe what an upgrade needs in addition:
/// `{ data, secrets, http, subscriptions, webhooks, actions, hooks, instances }`.
pub(super) fn additions(added: &Value) -> Vec<String> {
    let mut lines = permissions(added);
    lines.extend(events(added));
    lines.extend(callers(added));
    lines.extend(added["instances"].as_array().into_iter().flatten().flat_map(reuse));
    lines
}

/// Lines that describe the reuse of instances: `{ calls, seconds, asCaller }`. No lines if each call gets an instance of its own.
fn reuse(reuse: &Value) -> Vec<String> {
    if !reuse.is_object() {
        return Vec::new();
    }
    let calls = match reuse["asCaller"] == true {
        false => "one call to the next, whoever makes them",
        true => "one call to the next call of the same caller",
    };
    let (most, seconds) = (text(&reuse["calls"]), text(&reuse["seconds"]));
    let waits = format!("an instance serves up to {most} calls, and waits up to {seconds} s for the next one");
    vec!["It reuses its instances:".to_owned(), format!("  state can pass from {calls}; {waits}")]
}

/// Lines that describe the events that a block gets, and the events that its webhooks send.
fn events(block: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    section(&mut lines, "It gets events:", &block["subscriptions"], |subscription| {
        let handler = text(&subscription["handler"]);
        let who = if subscription["perInstance"] == true { "on every instance, by" } else { "by" };
        format!("{}, handled {who} `{handler}`", text(&subscription["event"]))
    });
    section(&mut lines, "It sends events out, by webhooks:", &block["webhooks"], |webhook| {
        format!("{}: {} to {}", text(&webhook["name"]), joined(&webhook["topics"]), text(&webhook["url"]))
    });
    lines
}

/// Lines that describe who may call the block: callers of its actions, and everybody who knows the address of a hook.
fn callers(block: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    section(&mut lines, "It offers actions:", &block["actions"], |action| {
        let need = match &action["rbac"] {
            Value::Object(rbac) => format!("{} on `{}`", text(&rbac["action"]), text(&rbac["resource"])),
            _ => "update on `blocks`".to_owned(),
        };
        with_description(format!("{}, for callers with {need}", text(&action["name"])), action)
    });
    section(&mut lines, "It receives requests from anybody, without a sign-in, by hooks:", &block["hooks"], |hook| {
        with_description(text(&hook["name"]), hook)
    });
    lines
}

/// Lines that describe `{ data, secrets, http }`. No lines if there is nothing to describe.
fn permissions(permissions: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    section(&mut lines, "It may, with your data:", &permissions["data"], |permission| {
        let mut line = format!("{} `{}`", joined(&permission["actions"]), text(&permission["resource"]));
        if permission["rowPolicy"] == "own" {
            line.push_str(", in the caller's own rows");
        }
        if let Some(rows) = permission.get("where") {
            line.push_str(&format!(", where {}", said(rows)));
        }
        if let Some(check) = permission.get("check") {
            line.push_str(&format!(", so that after a write {}", said(check)));
        }
        if let Some(fields) = permission.get("fields").and_then(|fields| said_fields(fields, &permission["actions"])) {
            line.push_str(&format!("; it {fields}"));
        }
        if permission["as"] == "caller" {
            line.push_str(", as far as the caller may");
        }
        if permission["broken"] == true {
            line.push_str(
                " (it does not give all of this, because it names something that no longer exists, or tests a field that has \
                 another type now)",
            );
        }
        line
    });
    section(&mut lines, "It reads secrets, once you set them:", &permissions["secrets"], text);
    section(&mut lines, "It calls other servers:", &permissions["http"], text);
    lines
}

fn section(lines: &mut Vec<String>, heading: &str, entries: &Value, line: impl Fn(&Value) -> String) {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    if !entries.is_empty() {
        lines.push(heading.to_owned());
        lines.extend(entries.iter().map(|entry| format!("  {}", line(entry))));
    }
}

fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => inert(text).into_owned(),
        None => inert(&value.to_string()).into_owned(),
    }
}

fn joined(list: &Value) -> String {
    let items: Vec<String> = list.as_array().into_iter().flatten().map(text).collect();
    items.join(", ")
}

fn with_description(line: String, entry: &Value) -> String {
    match entry["description"].as_str() {
        None | Some("") => line,
        Some(description) => format!("{line}: {}", inert(description)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_that_is_granted_is_said() {
        let manifest = json!({
            "permissions": {
                "data": [
                    { "resource": "order", "actions": ["read", "update"], "rowPolicy": "own", "as": "caller" },
                    {
                        "resource": "note", "actions": ["update"], "where": { "team.members": { "some": { "id": "$user.id" } } },
                        "check": { "open": true }, "fields": { "write": ["title"] },
                    },
                ],
                "secrets": ["STRIPE_KEY"],
                "http": ["https://api.stripe.com"],
            },
            "subscriptions": [{ "event": "data.order.#", "handler": "index" }],
            "webhooks": [{ "name": "audit", "url": "https://a.example", "topics": ["data.#"] }],
            "actions": [{ "name": "quote", "description": "A price.\u{1b}[2J", "rbac": { "resource": "orders:quotes", "action": "read" } }],
            "hooks": [{ "name": "stripe", "description": "" }],
            "instances": { "reuse": { "calls": 1000, "seconds": 30 } },
        });
        let said = described(&manifest).join("\n");
        assert_eq!(
            said,
            "It may, with your data:\n  read, update `order`, in the caller's own rows, as far as the caller may\n  \
             update `note`, where some of `team`'s `members` match (`id` is the caller's id), so that after a write `open` is \
             true; it writes only `title`\n\
             It reads secrets, once you set them:\n  STRIPE_KEY\n\
             It calls other servers:\n  https://api.stripe.com\n\
             It gets events:\n  data.order.#, handled by `index`\n\
             It sends events out, by webhooks:\n  audit: data.# to https://a.example\n\
             It offers actions:\n  quote, for callers with read on `orders:quotes`: A price.\\u{1b}[2J\n\
             It receives requests from anybody, without a sign-in, by hooks:\n  stripe\n\
             It reuses its instances:\n  state can pass from one call to the next, whoever makes them; an instance serves up to \
             1000 calls, and waits up to 30 s for the next one"
        );
        let reuse = json!({ "calls": 2, "seconds": 1, "asCaller": true });
        let rbac = json!({ "resource": "orders:quotes", "action": "read" });
        let added = json!({
            "secrets": ["A"],
            "webhooks": manifest["webhooks"],
            "actions": [{ "name": "quote", "rbac": rbac }],
            "hooks": [{ "name": "stripe" }],
            "instances": [reuse],
        });
        assert_eq!(
            additions(&added).join("\n"),
            "It reads secrets, once you set them:\n  A\nIt sends events out, by webhooks:\n  audit: data.# to https://a.example\n\
             It offers actions:\n  quote, for callers with read on `orders:quotes`\n\
             It receives requests from anybody, without a sign-in, by hooks:\n  stripe\n\
             It reuses its instances:\n  state can pass from one call to the next call of the same caller; an instance serves up to \
             2 calls, and waits up to 1 s for the next one"
        );
        let broken = json!({ "resource": "note", "actions": ["read"], "fields": { "read": ["@3>"] }, "broken": true });
        let said = additions(&json!({ "data": [broken] })).join("\n");
        let why = "because it names something that no longer exists, or tests a field that has another type now)";
        assert!(said.ends_with(&format!("(it does not give all of this, {why}")), "{said}");
        assert_eq!(described(&json!({})), ["It asks for no data, no secrets and no outbound calls."]);
    }
}
