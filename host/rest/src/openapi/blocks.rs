//! The paths that manage blocks.

use blockbase_app::schema::Resource;
use blockbase_app::{Action, SuspensionAnswer};
use serde_json::{Value, json};

use super::answers::of;
use super::components::{exact_object, instant, members, schema};
use super::operation::{Caller, Operation, Paths, headers, path_parameter, query_parameter};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

pub(super) fn schemas() -> Value {
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    let list = |item: Value| json!({ "type": "array", "items": item });
    let text = json!({ "type": "string" });
    let rbac = exact_object(json!({ "resource": text, "action": { "type": "string", "enum": Action::ALL } }));
    let webhook = json!({ "name": text, "url": text, "topics": strings });
    let declared_webhook = json!({
        "name": text, "url": text, "topics": strings,
        "headers": { "type": "object", "additionalProperties": { "const": "***" }, "description": "Values are not shown." },
    });
    let declared = [
        ("actions", list(schema("SvcBlockAction"))),
        ("hooks", list(schema("SvcBlockHook"))),
        ("subscriptions", list(schema("SvcBlockSubscription"))),
        ("webhooks", list(exact_object(declared_webhook))),
    ];
    let with_declared = |mut members: Value| {
        declared.iter().for_each(|(part, of)| members[*part] = of.clone());
        members
    };
    json!({
        "SvcBlockPermissions": exact_object(json!({
            "data": list(schema("SvcDataPermission")), "secrets": strings, "http": strings,
        })),
        "SvcDataPermission": members(&["resource", "actions"], json!({
            "resource": text,
            "actions": list(json!({ "type": "string", "enum": Action::ALL })),
            "rowPolicy": { "type": "string", "enum": ["own"], "description": "Only rows that whoever calls the block owns." },
            "as": { "type": "string", "enum": ["caller"], "description": "Whoever calls the block has to hold it too." },
        })),
        "SvcBlockAction": members(&["name", "description", "input"], json!({
            "name": text,
            "description": text,
            "input": { "type": "object", "description": "A JSON Schema." },
            "rbac": {
                "allOf": [rbac],
                "description": "What calling it needs. Without it, update on `blocks`.",
            },
            "timeoutMs": { "type": "integer", "format": "int64", "minimum": 0 },
        })),
        "SvcBlockHook": exact_object(json!({ "name": text, "description": text })),
        "SvcBlockSubscription": exact_object(json!({
            "event": { "type": "string", "description": "A topic pattern." },
            "consumer": text,
            "handler": text,
            "config": { "type": "object" },
            "perInstance": { "type": "boolean" },
        })),
        "SvcBlockManifest": members(
            &["name", "version", "description", "actions", "hooks", "subscriptions", "webhooks", "requires", "permissions", "resources"],
            with_declared(json!({
                "name": text,
                "version": text,
                "description": text,
                "authors": text,
                "license": text,
                "source": text,
                "requires": exact_object(json!({ "handlers": strings, "plugins": strings })),
                "permissions": schema("SvcBlockPermissions"),
                "config": { "description": "JSON Schema of the configuration." },
                "resources": list(exact_object(json!({
                    "name": text, "actions": list(json!({ "type": "string", "enum": Action::ALL })),
                }))),
            })),
        ),
        "SvcNewPermissions": described_as(
            "What a version of a block asks for beyond the installed one. A list is empty where it asks for no more.",
            exact_object(json!({
                "data": list(schema("SvcDataPermission")),
                "secrets": strings,
                "http": strings,
                "subscriptions": list(schema("SvcBlockSubscription")),
                "webhooks": list(exact_object(webhook)),
                "actions": list(exact_object(json!({ "name": text, "rbac": rbac }))),
                "hooks": list(exact_object(json!({ "name": text }))),
            })),
        ),
        "SvcBlock": exact_object(with_declared(json!({
            "name": text,
            "version": text,
            "digest": { "type": "string", "description": "`sha256:` and the digest of the packed file." },
            "description": text,
            "enabled": { "type": "boolean" },
            "permissions": schema("SvcBlockPermissions"),
            "config": { "type": "object" },
            "configSchema": { "type": ["object", "null"], "description": "JSON Schema of `config`, from the manifest; null where the block takes no configuration." },
            "installedAt": instant(),
            "installedBy": { "type": ["string", "null"] },
            "versions": strings,
            "suspended": of::<Option<SuspensionAnswer>>(),
        }))),
        "SvcInstallReport": {
            "type": "object",
            "properties": {
                "permissions": schema("SvcBlockPermissions"),
                "webhooks": list(members(&["name", "url"], json!({
                    "id": { "type": "string" },
                    "name": text,
                    "url": text,
                    "secret": { "type": "string", "description": "The signing secret, shown this once." },
                }))),
                "newPermissions": {
                    "allOf": [schema("SvcNewPermissions")],
                    "description": "After a dry run of an upgrade.",
                },
                "warnings": schema("SvcWarnings"),
            },
            "required": ["permissions", "webhooks"],
            "additionalProperties": false,
        },
        "SvcBlockSecret": exact_object(json!({
            "name": text,
            "isSet": { "type": "boolean" },
            "updatedAt": { "type": ["string", "null"], "format": "date-time" },
        })),
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
            "id": { "type": "string", "description": "Grows from line to line." },
            "at": instant(),
            "level": { "type": "string", "enum": LEVELS },
            "message": text,
            "fields": {},
            "callId": text,
        })),
        "SvcHandlerUsage": exact_object(json!({
            "name": text,
            "calls": { "type": "integer", "format": "int64" },
            "failed": { "type": "integer", "format": "int64", "description": "Calls whose client left are among them." },
            "timeMsTotal": { "type": "number", "format": "double" },
            "timeMsP50": { "type": ["number", "null"], "format": "double", "description": "Null while there were no calls." },
            "timeMsP95": { "type": ["number", "null"], "format": "double" },
            "memoryBytesMax": { "type": "integer", "format": "int64", "description": "The most linear memory of one call." },
        })),
        "SvcBlockInspection": exact_object(json!({
            "manifest": schema("SvcBlockManifest"),
            "permissions": schema("SvcBlockPermissions"),
            "sizeBytes": { "type": "integer", "format": "int64" },
            "sha256": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
            "installed": {
                "anyOf": [
                    exact_object(json!({
                        "version": text,
                        "digest": text,
                        "permissions": {
                            "anyOf": [schema("SvcBlockPermissions"), { "type": "null" }],
                            "description": "Null without read on `blocks`.",
                        },
                    })),
                    { "type": "null" },
                ],
                "description": "The version that serves now; null where the block is not installed.",
            },
            "differences": list(exact_object(json!({
                "part": {
                    "type": "string",
                    "enum": [
                        "version", "data", "secrets", "http", "actions", "hooks", "subscriptions", "webhooks", "resources",
                        "requires", "config",
                    ],
                },
                "name": text,
                "change": { "type": "string", "enum": ["added", "removed", "changed"] },
                "before": { "description": "As the installed version has it; null where it has none, and without read on `blocks`." },
                "after": { "description": "As the new version has it; null where it has none." },
                "needsConsent": { "type": "boolean", "description": "Whether an upgrade needs `allowNewPermissions` for it." },
            }))),
            "newPermissions": {
                "anyOf": [schema("SvcNewPermissions"), { "type": "null" }],
                "description": "Null where no version is installed.",
            },
            "problems": list(exact_object(json!({ "error": text, "message": text }))),
        })),
        "SvcReplayed": exact_object(json!({
            "ok": { "type": "boolean" },
            "error": {
                "type": ["object", "null"],
                "properties": { "error": text, "message": text },
                "required": ["error", "message"],
                "description": "Why the handler failed.",
            },
            "durationMs": { "type": "number", "format": "double" },
            "callId": text,
            "consumer": { "type": "string", "description": "The consumer group whose configuration counted." },
            "logs": {
                "type": ["array", "null"],
                "items": exact_object(json!({
                    "at": instant(), "level": { "type": "string", "enum": LEVELS }, "message": text, "fields": {}, "callId": text,
                })),
                "description": "What the call logged; null without read on `blocks`.",
            },
        })),
    })
}

fn described_as(description: &str, mut schema: Value) -> Value {
    schema["description"] = json!(description);
    schema
}

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Blocks, "blocks", verb, summary)
}

pub(super) fn describe(paths: &mut Paths) {
    let base = "/api/v1/blocks";
    let list = |of: &str| json!({ "type": "array", "items": schema(of) });
    paths.add("get", base, operation("list", "List the installed blocks").answers_data(200, "The blocks.", list("SvcBlock")));
    let dry_run = query_parameter("dryRun", "Whether to only say what the block would get.", json!({ "type": "boolean" }));
    let install = operation("install", "Install a block")
        .parameters([
            dry_run,
            query_parameter("upgrade", "Whether to replace the version that is installed.", json!({ "type": "boolean" })),
            query_parameter(
                "allowNewPermissions",
                "Consent to what an upgrade asks for beyond the installed version; 409 `new_permissions` lists it.",
                json!({ "type": "boolean" }),
            ),
        ])
        .body("application/wasm", json!({ "contentMediaType": "application/wasm" }))
        .problems(&[409])
        .answers(
            200,
            "The upgraded block; after a dry run only what it would get.",
            json!({
                "type": "object",
                "properties": { "data": schema("SvcBlock"), "report": schema("SvcInstallReport") },
                "required": ["report"],
                "additionalProperties": false,
            }),
        )
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
            "enabled": { "type": "boolean" },
            "config": { "type": "object", "description": "The whole configuration, checked against the manifest's schema." },
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

    let rollback = operation("rollback", "Let the version before serve again")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", schema("SvcBlock"));
    paths.add("post", "/api/v1/blocks/{block}/rollback", rollback);
    let adopt = operation("adopt", "Consent to what a block may do")
        .describe("It may do what the caller holds from then on, with its webhooks and subscriptions. Needs update on `blocks` and all that its manifest asks for: else 403, and nothing changes.")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", schema("SvcBlock"));
    paths.add("post", "/api/v1/blocks/{block}/adopt", adopt);
    let secrets = operation("listSecrets", "List the secrets that a block asks for, by name alone")
        .parameter(block())
        .problems(&[400, 404])
        .answers_data(200, "The secrets.", list("SvcBlockSecret"));
    paths.add("get", "/api/v1/blocks/{block}/secrets", secrets);
    let set_secret = operation("setSecret", "Set a secret of a block; nobody reads it back but the block")
        .parameter(block())
        .json_body(exact_object(json!({ "name": { "type": "string" }, "value": { "type": "string", "writeOnly": true } })))
        .problems(&[404])
        .answers_data(201, "The secret, without its value.", schema("SvcBlockSecret"));
    paths.add("post", "/api/v1/blocks/{block}/secrets", set_secret);
    let delete_secret = operation("deleteSecret", "Forget a secret of a block")
        .parameters([block(), path_parameter("name", "The secret's name.", json!({ "type": "string" }))])
        .problems(&[400, 404])
        .answers_nothing(204, "The secret is gone.");
    paths.add("delete", "/api/v1/blocks/{block}/secrets/{name}", delete_secret);

    let inspect = operation("inspect", "Look at a packed block without installing it")
        .describe(
            "What an install would ask for, what an upgrade would change, and what an install by the caller would be refused with. Needs \
             create on `blocks`. What was compiled is kept for ten minutes, so that the install of the same file does not compile again.",
        )
        .body("application/wasm", json!({ "contentMediaType": "application/wasm" }))
        .answers_data(200, "What the file is.", schema("SvcBlockInspection"));
    paths.add("post", "/api/v1/blocks/inspect", inspect);
    let of_handlers = || list("SvcHandlerUsage");
    let used = exact_object(json!({
        "since": instant(), "actions": of_handlers(), "hooks": of_handlers(), "handlers": of_handlers(),
    }));
    let usage = operation("getUsage", "Get what a block's calls used on this instance since it started")
        .parameter(block())
        .problems(&[400, 404])
        .answers_data(200, "The use of each handler that the block declares.", used);
    paths.add("get", "/api/v1/blocks/{block}/usage", usage);
    let body = json!({
        "type": "object",
        "properties": {
            "eventId": { "type": "string", "description": "The id of an event of the outbox." },
            "consumer": {
                "type": "string",
                "description": "The consumer group whose configuration counts. Without it, the first whose topic matches.",
            },
        },
        "required": ["eventId"],
        "additionalProperties": false,
    });
    let replay = operation("replayEvent", "Hand a recorded event to a block's handler once more")
        .describe(
            "Needs update on `blocks`, read on `events` and the right to see the event. The call is an ordinary one, and what it does is \
             real; the ledger is left as it is. 409 where a delivery would not bring the handler this event.",
        )
        .parameters([block(), path_parameter("handler", "The handler's name.", json!({ "type": "string" }))])
        .json_body(body)
        .problems(&[404, 409])
        .answers_data(200, "How the handler ended.", schema("SvcReplayed"));
    paths.add("post", "/api/v1/blocks/{block}/handlers/{handler}/replay", replay);

    let parameters = [
        query_parameter(
            "level",
            "Only lines of this level, or of these, separated by commas: `error`, `warn`, `info`, `debug`, `trace`.",
            json!({ "type": "string" }),
        ),
        query_parameter(
            "search",
            "Only lines whose message or fields contain this, whatever its case.",
            json!({ "type": "string" }),
        ),
        query_parameter("since", "Only lines from this instant on.", json!({ "type": "string", "format": "date-time" })),
        query_parameter(
            "after",
            "The `cursor` of an earlier answer: only what came after it, the oldest first. Nothing is left out and nothing comes twice.",
            json!({ "type": "string", "pattern": "^[0-9]{1,19}$" }),
        ),
    ];
    let limit = query_parameter(
        "limit",
        "Lines at most; 100 by default, and never more than 1000.",
        json!({ "type": "integer", "format": "int64", "minimum": 1 }),
    );
    let logs = operation("listLogs", "List what a block logged, newest first")
        .parameter(block())
        .parameters(parameters)
        .parameter(limit)
        .problems(&[400, 404])
        .answers(
            200,
            "The lines.",
            exact_object(json!({
                "data": list("SvcBlockLogLine"),
                "cursor": { "type": "string", "description": "Give it back as `after` for what comes next." },
                "missed": {
                    "type": "boolean",
                    "description": "Whether lines after the cursor may be gone already: the last 1,000 of a block are kept.",
                },
            })),
        );
    paths.add("get", "/api/v1/blocks/{block}/logs", logs);
}

/// The hooks: one path for all, whose requests and answers are the third party's and the block's.
pub(super) fn describe_hooks(paths: &mut Paths) {
    for method in ["get", "post", "put", "patch", "delete"] {
        let hook = Operation::new(
            format!("hooks.{method}"),
            "hooks",
            format!("Hand a {} request to a block's hook", method.to_uppercase()),
        )
        .describe("The block gets the request as it came, and chooses status, headers and body. No session counts here.")
        .called_by(Caller::Unseen)
        .parameters([
            path_parameter("block", "The block's name.", json!({ "type": "string" })),
            path_parameter("hook", "The hook's name.", json!({ "type": "string" })),
        ])
        .without(&[401])
        .problems(&[400, 404, 413, 504])
        .response(
            200,
            json!({
                "description": "What the hook chose; `{ \"received\": true }` where it chose nothing.",
                "headers": headers(&[]),
                "content": { "*/*": { "schema": {} } },
            }),
        );
        paths.add(method, "/api/v1/hooks/{block}/{hook}", hook);
    }
}
