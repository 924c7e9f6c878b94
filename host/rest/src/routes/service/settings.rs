//! `GET /api/v1/settings` and `GET /api/v1/status`: the settings and the state of the server.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::{ListedSetting, StatusAnswer};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Operation, Paths};
use crate::request::admission::{Granted, Read, Settings};

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Settings, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.listed_settings(&caller)?))
}

pub(crate) async fn status(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Settings, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.status(&caller).await?))
}

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
