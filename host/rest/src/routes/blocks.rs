//! `/api/v1/blocks`: inspect, install, list, configure and call blocks, show their logs and usage, replay events, and uninstall
//! blocks.

pub(crate) mod actions_document;
pub(crate) mod hooks;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use blockbase_app::schema::{Error, Resource, time};
use blockbase_app::{
    BlockAnswer, BlockSecretAnswer, BlockUsageAnswer, DeclaredActions, Inspection, InstallOptions, InstallReport, LogPage,
    LogRequest, ReplayRequest, Replayed,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::{hints, render};
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{exact_object, list_of};
use crate::openapi::operation::{Operation, Paths, path_parameter, query_parameter};
use crate::request::admission::{Blocks, CalledAction, Create, Delete, Granted, Manage, Read, Replay, Update};
use crate::request::body;
use crate::request::body::{JsonBody, JsonText, given};
use crate::request::extract::{PathParts, QueryPairs, RequestInfo};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/blocks", list)
        .post("/api/v1/blocks", install)
        .get("/api/v1/blocks/actions", actions)
        .post("/api/v1/blocks/inspect", inspect)
        .get("/api/v1/blocks/{block}", get)
        .patch("/api/v1/blocks/{block}", update)
        .delete("/api/v1/blocks/{block}", uninstall)
        .get("/api/v1/blocks/{block}/logs", logs)
        .get("/api/v1/blocks/{block}/usage", usage)
        .post("/api/v1/blocks/{block}/handlers/{handler}/replay", replay)
        .post("/api/v1/blocks/{block}/adopt", adopt)
        .post("/api/v1/blocks/{block}/rollback", rollback)
        .get("/api/v1/blocks/{block}/secrets", secrets)
        .post("/api/v1/blocks/{block}/secrets", set_secret)
        .delete("/api/v1/blocks/{block}/secrets/{name}", delete_secret)
        .post("/api/v1/blocks/{block}/actions/{action}", call)
        .get("/api/v1/hooks/{block}/{hook}", hooks::receive)
        .post("/api/v1/hooks/{block}/{hook}", hooks::receive)
        .put("/api/v1/hooks/{block}/{hook}", hooks::receive)
        .patch("/api/v1/hooks/{block}/{hook}", hooks::receive)
        .delete("/api/v1/hooks/{block}/{hook}", hooks::receive)
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_blocks(&caller).await?))
}

pub(crate) async fn install(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Create)>,
    query: QueryPairs,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    body::expect_media_type(&headers, "application/wasm")?;
    query.only(&["dryRun", "upgrade", "allowNewPermissions", "consent"])?;
    let options = InstallOptions {
        dry_run: query.flag("dryRun")?,
        upgrade: query.flag("upgrade")?,
        allow_new_permissions: query.flag("allowNewPermissions")?,
        // An empty text is no consent, and is refused like any other text that is none.
        consent: query.get("consent").map(str::to_owned),
    };
    let file = body::read_within(request, &state, state.settings.block_bytes_max).await?;
    let installed = state.app.install_block(&caller, file, options).await?;
    let status = if installed.is_new && installed.block.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    Ok(render::json(status, &installed))
}

pub(crate) async fn actions(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.declared_actions(&caller)?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Read)>,
    PathParts(block): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.block(&caller, &block).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changes {
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool")]
    enabled: Option<bool>,
    /// The whole configuration, checked against the manifest's schema.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value", extend("type" = "object"))]
    config: Option<Value>,
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Update)>,
    PathParts(block): PathParts<String>,
    JsonBody(changes): JsonBody<Changes>,
) -> Result<Response, ApiError> {
    let block = state.app.update_block(&caller, &block, changes.enabled, changes.config).await?;
    Ok(render::data(StatusCode::OK, &block))
}

pub(crate) async fn uninstall(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Delete)>,
    PathParts(block): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.uninstall_block(&caller, &block).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn rollback(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Create)>,
    PathParts(block): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.rollback_block(&caller, &block).await?))
}

pub(crate) async fn secrets(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Manage)>,
    PathParts(block): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.block_secrets(&caller, &block)?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSecret {
    name: String,
    #[schemars(extend("writeOnly" = true))]
    value: String,
}

pub(crate) async fn set_secret(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Manage)>,
    PathParts(block): PathParts<String>,
    JsonBody(secret): JsonBody<NewSecret>,
) -> Result<Response, ApiError> {
    let answer = state.app.set_block_secret(&caller, &block, &secret.name, &secret.value).await?;
    Ok(render::data(StatusCode::CREATED, &answer))
}

pub(crate) async fn delete_secret(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Manage)>,
    PathParts((block, name)): PathParts<(String, String)>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_block_secret(&caller, &block, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

const LOG_LINES_DEFAULT: i64 = 100;
const LOG_LINES_MAX: i64 = 1000;

pub(crate) async fn logs(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Read)>,
    PathParts(block): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["limit", "level", "search", "since", "after"])?;
    let given = |name: &str| query.get(name).filter(|value| !value.is_empty());
    let limit = match query.get("limit").map(str::parse::<i64>) {
        None => LOG_LINES_DEFAULT,
        Some(Ok(limit)) if limit >= 1 => limit.min(LOG_LINES_MAX),
        Some(_) => return Err(Error::invalid_request("`limit` needs a whole number of at least 1.").into()),
    };
    let text = given("search").map(str::to_owned);
    if text.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Error::invalid_request("`search` contains a NUL character.").into());
    }
    let since = given("since").map(|text| {
        time::parse_datetime(text).ok_or_else(|| Error::invalid_request(format!("`since` must be a datetime; it is {text:?}.")))
    });
    let after = given("after").map(|text| {
        let cursor = text.parse::<i64>().ok().filter(|cursor| *cursor >= 0);
        cursor.ok_or_else(|| Error::invalid_request("`after` must be the `cursor` of an earlier response."))
    });
    let request = LogRequest {
        levels: given("level").map(LogRequest::read_levels).transpose()?.unwrap_or_default(),
        text,
        since: since.transpose()?,
        after: after.transpose()?,
        limit,
    };
    let answer = state.app.block_logs(&caller, &block, request).await?;
    Ok(render::json(StatusCode::OK, &answer))
}

pub(crate) async fn usage(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Read)>,
    PathParts(block): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.block_usage(&caller, &block)?))
}

pub(crate) async fn inspect(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Create)>,
    query: QueryPairs,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    body::expect_media_type(&headers, "application/wasm")?;
    query.only(&[])?;
    let file = body::read_within(request, &state, state.settings.block_bytes_max).await?;
    Ok(render::data(StatusCode::OK, &state.app.inspect_block(&caller, file, hints::words).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ReplayBody {
    /// The id of an event of the outbox.
    event_id: String,
    /// The consumer group whose configuration counts. The default is the first group whose topic matches.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    consumer: Option<String>,
}

pub(crate) async fn replay(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Replay>,
    PathParts((block, handler)): PathParts<(String, String)>,
    JsonBody(body): JsonBody<ReplayBody>,
) -> Result<Response, ApiError> {
    let request = ReplayRequest { event_id: body.event_id, consumer: body.consumer };
    Ok(render::data(StatusCode::OK, &state.app.replay_event(&caller, &block, &handler, request).await?))
}

pub(crate) async fn call(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<CalledAction>,
    PathParts((block, action)): PathParts<(String, String)>,
    axum::Extension(info): axum::Extension<RequestInfo>,
    JsonText(input): JsonText,
) -> Result<Response, ApiError> {
    let result = state.app.call_action(&caller, &block, &action, input, info.request_id.to_string()).await?;
    Ok(render::data_bytes(StatusCode::OK, result.as_bytes()))
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Update)>,
    PathParts(block): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_block(&caller, &block).await?))
}

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
            query_parameter(
                "upgrade",
                "Whether to replace the version that is installed. A caller who did not make the block needs the rights \
                    for adopting it, for the installed version and for the new one.",
                json!({ "type": "boolean" }),
            ),
            query_parameter(
                "allowNewPermissions",
                "Consents to permissions that the upgrade asks for and the installed version does not have. The error 409 \
                    `new_permissions` lists them.",
                json!({ "type": "boolean" }),
            ),
            query_parameter(
                "consent",
                "The `consent` of an inspection or of a dry run. If an object or field that the manifest names is another one by \
                    now, or exists only now, or no longer, or if the file has another manifest, the answer is 409 `conflict`.",
                json!({ "type": "string", "pattern": "^[0-9a-fA-F]{64}$" }),
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
        .describe(
            "Needs create on `blocks` and the same rights as an upgrade to that version. It asks for no consent: a webhook whose \
            `url` differs there keeps its secret.",
        )
        .parameter(block())
        .problems(&[400, 404, 409])
        .answers_data(200, "The block as it is now.", of::<BlockAnswer>());
    paths.add("post", "/api/v1/blocks/{block}/rollback", rollback);
    let adopt = operation("adopt", "Consent to the rights of a block")
        .describe(
            "From then on the block, its webhooks and its subscriptions have at most the caller's rights. Needs update on \
            `blocks` and every permission that the block's manifest asks for. A caller who did not make the block also \
            needs to read all records of the objects in its topics, and permissions that do not depend on who the caller is. \
            Otherwise the response is 403, and nothing changes. Look at the `url` of each webhook first: from then on it gets \
            everything that you may read.",
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
    hooks::describe(paths);
}
