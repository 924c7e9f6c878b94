//! The paths that manage blocks.

use blockbase_app::schema::Resource;
use blockbase_app::{
    BlockAnswer, BlockSecretAnswer, BlockUsageAnswer, DeclaredActions, Inspection, InstallReport, LogPage, Replayed,
};
use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::components::{exact_object, list_of};
use crate::openapi::operation::{Caller, Operation, Paths, headers, path_parameter, query_parameter};

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Blocks, "blocks", verb, summary)
}

pub(crate) fn describe(paths: &mut Paths) {
    let base = "/api/v1/blocks";
    paths.add(
        "get",
        base,
        operation("list", "List the installed blocks").answers_data(200, "The blocks.", list_of(of::<BlockAnswer>())),
    );
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
                "properties": { "data": of::<BlockAnswer>(), "report": of::<InstallReport>() },
                "required": ["report"],
                "additionalProperties": false,
            }),
        )
        .answers(
            201,
            "The installed block.",
            exact_object(json!({ "data": of::<BlockAnswer>(), "report": of::<InstallReport>() })),
        );
    paths.add("post", base, install);
    let actions = operation("listActions", "List declared actions and hooks, and all handlers");
    paths.add("get", "/api/v1/blocks/actions", actions.answers_data(200, "What is declared.", of::<DeclaredActions>()));

    let block = || path_parameter("block", "The block's name.", json!({ "type": "string" }));
    let base = "/api/v1/blocks/{block}";
    let get = operation("get", "Get an installed block").parameter(block()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The block.", of::<BlockAnswer>()));
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
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("patch", base, update);
    let uninstall = operation("uninstall", "Uninstall a block; its data stays")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The block is gone.");
    paths.add("delete", base, uninstall);

    let rollback = operation("rollback", "Let the version before serve again")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("post", "/api/v1/blocks/{block}/rollback", rollback);
    let adopt = operation("adopt", "Consent to what a block may do")
        .describe("It may do what the caller holds from then on, with its webhooks and subscriptions. Needs update on `blocks` and all that its manifest asks for: else 403, and nothing changes.")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("post", "/api/v1/blocks/{block}/adopt", adopt);
    let secrets = operation("listSecrets", "List the secrets that a block asks for, by name alone")
        .parameter(block())
        .problems(&[400, 404])
        .answers_data(200, "The secrets.", list_of(of::<BlockSecretAnswer>()));
    paths.add("get", "/api/v1/blocks/{block}/secrets", secrets);
    let set_secret = operation("setSecret", "Set a secret of a block; nobody reads it back but the block")
        .parameter(block())
        .json_body(exact_object(json!({ "name": { "type": "string" }, "value": { "type": "string", "writeOnly": true } })))
        .problems(&[404])
        .answers_data(201, "The secret, without its value.", of::<BlockSecretAnswer>());
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
        .answers_data(200, "What the file is.", of::<Inspection>());
    paths.add("post", "/api/v1/blocks/inspect", inspect);
    let usage = operation("getUsage", "Get what a block's calls used on this instance since it started")
        .parameter(block())
        .problems(&[400, 404])
        .answers_data(200, "The use of each handler that the block declares.", of::<BlockUsageAnswer>());
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
        .answers_data(200, "How the handler ended.", of::<Replayed>());
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
        .answers(200, "The lines.", of::<LogPage>());
    paths.add("get", "/api/v1/blocks/{block}/logs", logs);
}

/// The hooks: one path for all, whose requests and answers are the third party's and the block's.
pub(crate) fn describe_hooks(paths: &mut Paths) {
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
