//! `/healthz` and `/readyz`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::openapi::answers::of;
use crate::openapi::components::schema;
use crate::openapi::operation::{Caller, Operation, Paths, headers};

const ALIVE: &str = "ok";
const READY: &str = "ready";

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct AliveAnswer {
    #[schemars(extend("const" = ALIVE))]
    status: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct ReadyAnswer {
    #[schemars(extend("const" = READY))]
    status: &'static str,
}

/// Answers 200 while the process runs.
pub(crate) async fn alive() -> Response {
    axum::Json(AliveAnswer { status: ALIVE }).into_response()
}

/// Answers 200 while the server can serve requests: the database answers, and the server is not about to stop.
pub(crate) async fn ready(State(state): State<AppState>) -> Response {
    let leaving = *state.leaving.borrow();
    match !leaving && state.app.is_ready().await {
        true => axum::Json(ReadyAnswer { status: READY }).into_response(),
        false => ApiError(Error::new(Code::Unavailable, "The server cannot serve requests at the moment.")).into_response(),
    }
}

pub(crate) fn describe(paths: &mut Paths) {
    let health = |verb: &str, summary: &str| {
        Operation::new(format!("service.{verb}"), "service", summary).called_by(Caller::Unseen).without(&[401, 403, 429, 503])
    };
    let alive = health("alive", "Check whether the process is alive")
        .describe(
            "For decisions about restarts. Rate limits do \
        not count it.",
        )
        .answers(200, "The process is alive.", of::<AliveAnswer>());
    paths.add("get", "/healthz", alive);
    let body = json!({ "application/json": { "schema": schema("SvcError") } });
    let ready = health("ready", "Check whether the server can serve requests")
        .describe(
            "For load balancers. The server is ready if the database answers and the server is not stopping. Rate limits \
            do not count it.",
        )
        .answers(200, "The server can serve requests.", of::<ReadyAnswer>())
        .response(503, json!({ "description": "The server cannot serve requests.", "headers": headers(&[]), "content": body }));
    paths.add("get", "/readyz", ready);
}
