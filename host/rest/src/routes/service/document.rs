//! Describes the operations about the service itself: its settings and its state.

use blockbase_app::{ListedSetting, StatusAnswer};

use crate::openapi::answers::of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Operation, Paths};

pub(crate) fn describe(paths: &mut Paths) {
    let settings = Operation::new("service.settings", "service", "List the settings")
        .describe(
            "Lists every environment variable of the server and the value in effect. Needs read on `settings`. No secret \
            is shown.",
        )
        .answers_data(200, "The settings.", list_of(of::<ListedSetting>()));
    paths.add("get", "/api/v1/settings", settings);

    let status = Operation::new("service.status", "service", "Get the state of the server")
        .describe(
            "Needs read on `settings`. Numbers of the database may be a few seconds old. The size of a Postgres database may be \
            a minute old. Requests below `/api` are counted. Responses of 500 and above count as errors.",
        )
        .answers_data(200, "The state of the server.", of::<StatusAnswer>());
    paths.add("get", "/api/v1/status", status);
}
