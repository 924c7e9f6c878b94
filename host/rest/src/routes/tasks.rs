//! `/api/v1/tasks`: scheduled tasks and their runs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Resource;
use blockbase_app::{
    ActionConfig, ErasureConfig, NewTask, TASK_NAME_CHARS_MAX, TASK_TYPES_MADE, TaskAnswer, TaskChanges, TaskRunAnswer,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Operation, Paths, path_parameter};
use crate::request::admission::{Create, Delete, Granted, Read, Tasks, Update};
use crate::request::body::{JsonBody, given};
use crate::request::extract::{PathParts, QueryPairs};
use crate::routes::data::filters_document::paging_parameters;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/tasks", list)
        .post("/api/v1/tasks", create)
        .get("/api/v1/tasks/{id}", get)
        .patch("/api/v1/tasks/{id}", update)
        .delete("/api/v1/tasks/{id}", delete)
        .post("/api/v1/tasks/{id}/adopt", adopt)
        .post("/api/v1/tasks/{id}/run", run)
        .get("/api/v1/tasks/{id}/runs", runs)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBody {
    #[schemars(length(max = TASK_NAME_CHARS_MAX), extend("pattern" = "^[a-z][a-z0-9_\\-]*$"))]
    name: String,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = TASK_TYPES_MADE))]
    kind: String,
    #[schemars(extend("examples" = ["0 3 * * *"]))]
    schedule: String,
    #[schemars(schema_with = "config_of_new")]
    config: Value,
    enabled: Option<bool>,
}

/// The configurations of the task types that can be created.
fn config_of_new(generator: &mut SchemaGenerator) -> Schema {
    let (call, erasure) = (ActionConfig::json_schema(generator), ErasureConfig::json_schema(generator));
    json_schema!({ "anyOf": [call, erasure] })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool")]
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    schedule: Option<String>,
    /// The whole configuration, for example `{ maxAgeDays }` of `anonymous_cleanup`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value")]
    config: Option<Value>,
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_tasks(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Create)>,
    JsonBody(body): JsonBody<NewBody>,
) -> Result<Response, ApiError> {
    let NewBody { name, kind, schedule, config, enabled } = body;
    let new = NewTask { name, kind, schedule, config, enabled: enabled.unwrap_or(true) };
    Ok(render::data(StatusCode::CREATED, &state.app.create_task(&caller, new).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.task(&caller, &id).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<ChangesBody>,
) -> Result<Response, ApiError> {
    let changes = TaskChanges { enabled: body.enabled, schedule: body.schedule, config: body.config };
    Ok(render::data(StatusCode::OK, &state.app.update_task(&caller, &id, changes).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Delete)>,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_task(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn run(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.run_task(&caller, &id).await?))
}

pub(crate) async fn runs(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Read)>,
    PathParts(id): PathParts<String>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let paging = query.page_beside(&[])?;
    Ok(render::json_bytes(StatusCode::OK, state.app.task_runs(&caller, &id, paging).await?.into_bytes()))
}

pub(crate) async fn adopt(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Tasks, Update)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.adopt_task(&caller, &id).await?))
}

fn operation(verb: &str, summary: &str) -> Operation {
    Operation::gated(Resource::Tasks, "tasks", verb, summary)
}

pub(crate) fn describe(paths: &mut Paths) {
    let task = || path_parameter("id", "The task's id, or its name.", json!({ "type": "string" }));
    let base = "/api/v1/tasks";
    let list = operation("list", "List the tasks").answers_data(200, "The tasks.", list_of(of::<TaskAnswer>()));
    paths.add("get", base, list);
    let create = operation("create", "Make a task that calls a block's action or erases a user")
        .describe(
            "The task runs with the rights that its maker has at each run. The caller must be allowed to call the action, \
            or to delete users and events for `erase_user`.",
        )
        .json_body(body_of::<NewBody>())
        .problems(&[404, 409])
        .answers_data(201, "The new task.", of::<TaskAnswer>());
    paths.add("post", base, create);
    let base = "/api/v1/tasks/{id}";
    let get = operation("get", "Get a task").parameter(task()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The task.", of::<TaskAnswer>()));
    let update = operation("update", "Enable, disable or configure a task")
        .describe(
            "Needs update on `tasks`. For a block's action, it also needs the rights to call the action. A caller who \
            changes `config` becomes the task's maker. A change of the `config` of `anonymous_cleanup` needs delete on `users`.",
        )
        .parameter(task())
        .json_body(body_of::<ChangesBody>())
        .problems(&[404])
        .answers_data(200, "The task as it is now.", of::<TaskAnswer>());
    paths.add("patch", base, update);
    let delete = operation("delete", "Delete a task with its runs")
        .describe(
            "Needs delete on `tasks` and the rights to call its action. Tasks that come with the service get 409: disable \
            them instead.",
        )
        .parameter(task())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The task is deleted.");
    paths.add("delete", base, delete);
    let run = operation("run", "Run a task now")
        .describe(
            "The response is sent when the run has ended. Needs update on `tasks` and the rights to call its action. \
            `anonymous_cleanup` needs delete on `users`. The response is 409 while another run is in progress.",
        )
        .parameter(task())
        .problems(&[400, 404, 409])
        .answers_data(200, "The run.", of::<TaskRunAnswer>());
    paths.add("post", "/api/v1/tasks/{id}/run", run);
    let adopt = operation("adopt", "Become the maker of a task")
        .describe(
            "From then on the task runs with the caller's rights. Needs update on `tasks` and the rights to call its \
            action. Otherwise the response is 403, and nothing changes. Tasks that come with the service get 409.",
        )
        .parameter(task())
        .problems(&[400, 404, 409])
        .answers_data(200, "The task as it is now.", of::<TaskAnswer>());
    paths.add("post", "/api/v1/tasks/{id}/adopt", adopt);
    let runs = operation("listRuns", "List a task's runs, newest first")
        .describe("Needs read on `tasks`. The result of a block's action is null if the caller may not call the action.")
        .parameter(task())
        .parameters(paging_parameters())
        .problems(&[400, 404])
        .answers_page("A page of runs.", of::<TaskRunAnswer>());
    paths.add("get", "/api/v1/tasks/{id}/runs", runs);
}
