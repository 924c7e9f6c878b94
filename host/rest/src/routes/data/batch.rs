//! `POST /api/v1/batch`: several writes of any kinds and objects. Either all or none of them take effect.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::json::parse_object;
use blockbase_app::{Batch, run_offloaded};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{AnyWrite, Granted};
use crate::request::body::JsonText;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBody<'a> {
    #[serde(borrow)]
    operations: &'a RawValue,
}

/// `{ "operations": [operation] }` → `{ "data": [result] }`, in the same order.
pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<AnyWrite>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let batch = run_offloaded(text.len(), || {
        let body: BatchBody<'_> = parse_object(&text)?;
        Batch::parse(body.operations.get(), state.app.settings().bulk_records_max)
    })?;
    drop(text);
    Ok(render::json_bytes(StatusCode::OK, state.app.batch(&caller, &batch).await?.data_json()))
}
