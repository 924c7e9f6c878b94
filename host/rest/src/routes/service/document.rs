//! The service itself: what everybody may know, how it is configured, how it is.

use blockbase_app::{InstanceAnswer, ListedSetting, StatusAnswer};

use crate::openapi::answers::of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Caller, Operation, Paths};

pub(crate) fn describe(paths: &mut Paths) {
    let instance = Operation::new("service.instance", "service", "Ask how people sign in here")
        .describe("For whatever shows a sign-in. It looks at no credential.")
        .called_by(Caller::Unseen)
        .without(&[401])
        .answers(200, "What is open.", of::<InstanceAnswer>());
    paths.add("get", "/api/v1/instance", instance);

    let settings = Operation::new("service.settings", "service", "List the settings")
        .describe("Every environment variable of the server and what holds. Needs read on `settings`. No secret is shown.")
        .answers_data(200, "The settings.", list_of(of::<ListedSetting>()));
    paths.add("get", "/api/v1/settings", settings);

    let status = Operation::new("service.status", "service", "Ask how the server is")
        .describe(
            "Needs read on `settings`. Numbers of the database are a few seconds old, and the size of a Postgres database up to a \
             minute. Requests are those below `/api`; errors are answers of 500 and above.",
        )
        .answers_data(200, "How it is.", of::<StatusAnswer>());
    paths.add("get", "/api/v1/status", status);
}
