//! Scheduled tasks and their runs.

use blockbase_app::schema::Resource;
use blockbase_app::{TaskAnswer, TaskRunAnswer};
use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Operation, Paths, path_parameter};
use crate::routes::data::filters_document::paging_parameters;
use crate::routes::tasks::{ChangesBody, NewBody};

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
