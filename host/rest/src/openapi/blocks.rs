//! The paths that manage blocks.

use serde_json::{Value, json};

use super::components::{exact_object, instant, schema};
use super::operation::{Operation, Paths, path_parameter, query_parameter};

pub(super) fn schemas() -> Value {
    let any_object = json!({ "type": "object" });
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    let list = |item: Value| json!({ "type": "array", "items": item });
    let text = json!({ "type": "string" });
    json!({
        "SvcBlockPermissions": exact_object(json!({ "data": list(any_object.clone()), "secrets": strings, "http": strings })),
        "SvcBlock": exact_object(json!({
            "name": text,
            "version": text,
            "digest": { "type": "string", "description": "`sha256:` and the digest of the packed file." },
            "description": text,
            "enabled": { "type": "boolean" },
            "permissions": schema("SvcBlockPermissions"),
            "actions": list(any_object.clone()),
            "hooks": list(any_object.clone()),
            "subscriptions": list(any_object.clone()),
            "webhooks": list(any_object.clone()),
            "config": {},
            "installedAt": instant(),
            "installedBy": { "type": ["string", "null"] },
            "versions": strings,
        })),
        "SvcInstallReport": exact_object(json!({ "permissions": schema("SvcBlockPermissions"), "webhooks": list(any_object) })),
        "SvcDeclaredActions": exact_object(json!({
            "actions": list(exact_object(json!({
                "block": text, "name": text, "description": text, "input": { "description": "A JSON Schema." },
            }))),
            "hooks": list(exact_object(json!({ "block": text, "name": text, "description": text }))),
            "handlers": list(exact_object(json!({
                "name": text,
                "kind": { "type": "string", "enum": ["subscription", "action", "hook"] },
                "block": { "type": ["string", "null"], "description": "Null for the service's own." },
            }))),
        })),
        "SvcBlockLogLine": exact_object(json!({
            "at": instant(), "level": text, "message": text, "fields": {}, "callId": text,
        })),
    })
}

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::new(format!("blocks.{verb}"), "blocks", summary).describe(format!("{summary}. Needs the permission on `blocks`."))
}

pub(super) fn describe(paths: &mut Paths) {
    let base = "/api/v1/blocks";
    let list = |of: &str| json!({ "type": "array", "items": schema(of) });
    paths.add("get", base, operation("list", "List the installed blocks").answers_data(200, "The blocks.", list("SvcBlock")));
    let dry_run = query_parameter("dryRun", "Whether to only say what the block would get.", json!({ "type": "boolean" }));
    let install = operation("install", "Install a block")
        .parameter(dry_run)
        .body("application/wasm", json!({ "contentMediaType": "application/wasm" }))
        .problems(&[409])
        .answers(200, "After a dry run: what it would get.", exact_object(json!({ "report": schema("SvcInstallReport") })))
        .answers(
            201,
            "The installed block.",
            exact_object(json!({ "data": schema("SvcBlock"), "report": schema("SvcInstallReport") })),
        );
    paths.add("post", base, install);
    let actions = operation("listActions", "List declared actions and hooks, and all handlers");
    paths.add("get", "/api/v1/blocks/actions", actions.answers_data(200, "What is declared.", schema("SvcDeclaredActions")));

    let block = || path_parameter("block", "The block's name.", json!({ "type": "string" }));
    let base = "/api/v1/blocks/{block}";
    let get = operation("get", "Get an installed block").parameter(block()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The block.", schema("SvcBlock")));
    let changes = json!({
        "type": "object",
        "properties": {
            "enabled": { "type": ["boolean", "null"] },
            "config": { "description": "The whole configuration, checked against the manifest's schema." },
        },
        "additionalProperties": false,
    });
    let update = operation("update", "Enable, disable or configure a block")
        .parameter(block())
        .json_body(changes)
        .problems(&[404])
        .answers_data(200, "The block as it is now.", schema("SvcBlock"));
    paths.add("patch", base, update);
    let uninstall = operation("uninstall", "Uninstall a block; its data stays")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The block is gone.");
    paths.add("delete", base, uninstall);

    let level = query_parameter("level", "Only lines of this level.", json!({ "type": "string" }));
    let limit = query_parameter(
        "limit",
        "Lines at most; 100 by default, and never more than 1000.",
        json!({ "type": "integer", "format": "int64", "minimum": 1 }),
    );
    let logs = operation("listLogs", "List what a block logged, newest first")
        .parameters([block(), level, limit])
        .problems(&[400, 404])
        .answers_data(200, "The lines.", list("SvcBlockLogLine"));
    paths.add("get", "/api/v1/blocks/{block}/logs", logs);
}
