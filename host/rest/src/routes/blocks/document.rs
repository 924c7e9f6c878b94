//! The paths that manage blocks.

use blockbase_app::schema::Resource;
use blockbase_app::{
    BlockAnswer, BlockSecretAnswer, BlockUsageAnswer, DeclaredActions, Inspection, InstallReport, LogPage, Replayed,
};
use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{exact_object, list_of};
use crate::openapi::operation::{Caller, Operation, Paths, headers, path_parameter, query_parameter};
use crate::routes::blocks::{Changes, LOG_LINES_DEFAULT, LOG_LINES_MAX, NewSecret, ReplayBody};

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
    let dry_run = query_parameter(
        "dryRun",
        "If true, the response shows what the block would get, and nothing is installed.",
        json!({ "type": "boolean" }),
    );
    let install = operation("install", "Install a block")
        .parameters([
            dry_run,
            query_parameter("upgrade", "Whether to replace the version that is installed.", json!({ "type": "boolean" })),
            query_parameter(
                "allowNewPermissions",
                "Consents to permissions that the upgrade asks for and the installed version does not have. The error 409 \
                    `new_permissions` lists them.",
                json!({ "type": "boolean" }),
            ),
        ])
        .body("application/wasm", json!({ "contentMediaType": "application/wasm" }))
        .problems(&[409])
        .answers(
            200,
            "The upgraded block. After a dry run, only the report of what it would get.",
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
    paths.add(
        "get",
        "/api/v1/blocks/actions",
        actions.answers_data(200, "The declared actions and hooks, and all handlers.", of::<DeclaredActions>()),
    );

    let block = || path_parameter("block", "The block's name.", json!({ "type": "string" }));
    let base = "/api/v1/blocks/{block}";
    let get = operation("get", "Get an installed block").parameter(block()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The block.", of::<BlockAnswer>()));
    let update = operation("update", "Enable, disable or configure a block")
        .parameter(block())
        .json_body(body_of::<Changes>())
        .problems(&[404])
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("patch", base, update);
    let uninstall = operation("uninstall", "Uninstall a block and keep its data")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The block is uninstalled.");
    paths.add("delete", base, uninstall);

    let rollback = operation("rollback", "Go back to the previous version of a block")
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("post", "/api/v1/blocks/{block}/rollback", rollback);
    let adopt = operation("adopt", "Consent to the rights of a block")
        .describe(
            "From then on the block, its webhooks and its subscriptions have at most the caller's rights. Needs update on \
            `blocks` and every permission that the block's manifest asks for. Otherwise the response is 403, and nothing \
            changes.",
        )
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("post", "/api/v1/blocks/{block}/adopt", adopt);
    let secrets = operation("listSecrets", "List the secrets that a block asks for, without their values")
        .parameter(block())
        .problems(&[400, 404])
        .answers_data(200, "The secrets.", list_of(of::<BlockSecretAnswer>()));
    paths.add("get", "/api/v1/blocks/{block}/secrets", secrets);
    let set_secret = operation("setSecret", "Set a secret of a block, which only the block can read")
        .parameter(block())
        .json_body(body_of::<NewSecret>())
        .problems(&[404])
        .answers_data(201, "The secret, without its value.", of::<BlockSecretAnswer>());
    paths.add("post", "/api/v1/blocks/{block}/secrets", set_secret);
    let delete_secret = operation("deleteSecret", "Delete a secret of a block")
        .parameters([block(), path_parameter("name", "The secret's name.", json!({ "type": "string" }))])
        .problems(&[400, 404])
        .answers_nothing(204, "The secret is deleted.");
    paths.add("delete", "/api/v1/blocks/{block}/secrets/{name}", delete_secret);

    let inspect = operation("inspect", "Inspect a packed block without installing it")
        .describe(
            "Shows the permissions that an installation would ask for, the changes of an upgrade, and the error that an \
            installation by the caller would get. Needs create on `blocks`. The server keeps the compiled block for ten minutes, \
            so an installation of the same file does not compile it again.",
        )
        .body("application/wasm", json!({ "contentMediaType": "application/wasm" }))
        .answers_data(200, "The result of the inspection.", of::<Inspection>());
    paths.add("post", "/api/v1/blocks/inspect", inspect);
    let usage = operation("getUsage", "Get the resources that a block's calls used since this instance started")
        .parameter(block())
        .problems(&[400, 404])
        .answers_data(200, "The usage of each handler that the block declares.", of::<BlockUsageAnswer>());
    paths.add("get", "/api/v1/blocks/{block}/usage", usage);
    let replay = operation("replayEvent", "Send a recorded event to a block's handler once more")
        .describe(
            "Needs update on `blocks`, read on `events` and the right to see the event. The handler runs as in an ordinary call, \
            and its effects are real. The ledger does not change. The response is 409 if no delivery would send this event to \
            the handler.",
        )
        .parameters([block(), path_parameter("handler", "The handler's name.", json!({ "type": "string" }))])
        .json_body(body_of::<ReplayBody>())
        .problems(&[404, 409])
        .answers_data(200, "The outcome of the handler.", of::<Replayed>());
    paths.add("post", "/api/v1/blocks/{block}/handlers/{handler}/replay", replay);

    let parameters = [
        query_parameter(
            "level",
            "Only lines of these levels, separated by commas: `error`, `warn`, `info`, `debug`, `trace`.",
            json!({ "type": "string" }),
        ),
        query_parameter(
            "search",
            "Only lines whose message or fields contain this text. Case is ignored.",
            json!({ "type": "string" }),
        ),
        query_parameter("since", "Only lines from this instant on.", json!({ "type": "string", "format": "date-time" })),
        query_parameter(
            "after",
            "The `cursor` of an earlier response. The response then has only later lines, oldest first, without gaps or repeats.",
            json!({ "type": "string", "pattern": "^[0-9]{1,19}$" }),
        ),
    ];
    let limit = query_parameter(
        "limit",
        &format!(
            "The maximum number of lines. The default is {LOG_LINES_DEFAULT}, and the response never has more than {LOG_LINES_MAX}."
        ),
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

/// The hooks. All share one path. The third party decides the form of a request, and the block decides the response.
pub(crate) fn describe_hooks(paths: &mut Paths) {
    for method in ["get", "post", "put", "patch", "delete"] {
        let hook = Operation::new(
            format!("hooks.{method}"),
            "hooks",
            format!("Send a {} request to a block's hook", method.to_uppercase()),
        )
        .describe(
            "The block gets the request as it came, and chooses the status, headers and body of the response. The operation \
            ignores sessions.",
        )
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
                "description": "The response that the hook chose, or `{ \"received\": true }` if it chose none.",
                "headers": headers(&[]),
                "content": { "*/*": { "schema": {} } },
            }),
        );
        paths.add(method, "/api/v1/hooks/{block}/{hook}", hook);
    }
}
