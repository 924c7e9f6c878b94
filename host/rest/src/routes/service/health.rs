//! `/healthz` and `/readyz`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::Code;
use serde_json::json;

use crate::AppState;
use crate::answer::error::status;

/// Answers 200 while the process runs.
pub(crate) async fn alive() -> Response {
    axum::Json(json!({ "status": "ok" })).into_response()
}

/// Answers 200 while the server can serve requests: the database answers, and the server is not about to stop.
pub(crate) async fn ready(State(state): State<AppState>) -> Response {
    let leaving = *state.leaving.borrow();
    match !leaving && state.app.is_ready().await {
        true => axum::Json(json!({ "status": "ready" })).into_response(),
        false => {
            let body =
                json!({ "error": Code::Unavailable.as_str(), "message": "The server cannot serve requests at the moment." });
            (status(Code::Unavailable), axum::Json(body)).into_response()
        }
    }
}
