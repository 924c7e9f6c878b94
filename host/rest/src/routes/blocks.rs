//! `/api/v1/blocks`: inspect, install, list, configure and call blocks, show their logs and usage, replay events, and uninstall
//! blocks.

pub(crate) mod actions_document;
pub(crate) mod document;
pub(crate) mod hooks;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use blockbase_app::schema::{Error, time};
use blockbase_app::{InstallOptions, LogRequest, ReplayRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::{hints, render};
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
    query.only(&["dryRun", "upgrade", "allowNewPermissions"])?;
    let options = InstallOptions {
        dry_run: query.flag("dryRun")?,
        upgrade: query.flag("upgrade")?,
        allow_new_permissions: query.flag("allowNewPermissions")?,
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

pub(crate) const LOG_LINES_DEFAULT: i64 = 100;
pub(crate) const LOG_LINES_MAX: i64 = 1000;

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
    let result = state.app.call_action(&caller, &block, &action, input, info.request_id).await?;
    Ok(render::data_bytes(StatusCode::OK, result.as_bytes()))
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Blocks, Update)>,
    PathParts(block): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_block(&caller, &block).await?))
}
