//! `/healthz` and `/readyz`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error};
use schemars::JsonSchema;
use serde::Serialize;

use crate::AppState;
use crate::answer::error::ApiError;

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
