//! `POST /api/v1/batch`: several writes of any kinds and objects. Either all or none of them take effect.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::json::parse_object;
use blockbase_app::{Batch, run_offloaded};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::described::IF_MATCH;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::components::{exact_object, list_of, members};
use crate::openapi::operation::{Caller, Operation, Paths};
use crate::request::admission::{AnyWrite, Granted};
use crate::request::body::JsonText;
use crate::request::extract::NoParameters;

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
    _: NoParameters,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let batch = run_offloaded(text.len(), || {
        let body: BatchBody<'_> = parse_object(&text)?;
        Batch::parse(body.operations.get(), state.app.settings().bulk_records_max)
    })?;
    drop(text);
    Ok(render::json_bytes(StatusCode::OK, state.app.batch(&caller, &batch).await?.data_json()))
}

pub(crate) fn describe(paths: &mut Paths, bulk_records_max: usize) {
    let text = json!({ "type": "string" });
    // The key `$ref` is described by a pattern, because many tools would take a property of this name for their own reference.
    let reference = json!({
        "type": "object",
        "description": "A field of the result of an earlier operation, as the caller sees it. Its only key is `$ref`, with the \
            index of the operation and the name of the field.",
        "patternProperties": { r"^\$ref$": { "type": "string", "pattern": REFERENCE } },
        "minProperties": 1,
        "additionalProperties": false,
    });
    let id = json!({ "description": "The record's id.", "anyOf": [{ "type": "string", "format": "uuid" }, reference] });
    let ids = json!({ "type": "array", "items": id, "maxItems": bulk_records_max });
    let values = json!({
        "type": "object",
        "description": "The same as the body of the operation on one record. A value can be a reference too, except in a column \
            of JSON, where every object is data.",
    });
    let version = json!({
        "type": "string",
        "pattern": IF_MATCH,
        "description": "As `If-Match`: the record's `ETag` with its quotes, or `*`.",
    });
    let operation = |ops: &[&str], required: Value, optional: Value| {
        let mut properties = json!({ "op": { "type": "string", "enum": ops }, "object": text });
        for more in [&required, &optional].into_iter().filter_map(Value::as_object) {
            more.iter().for_each(|(name, member)| properties[name] = member.clone());
        }
        let needed: Vec<&str> = ["op", "object"]
            .into_iter()
            .chain(required.as_object().into_iter().flatten().map(|(name, _)| name.as_str()))
            .collect();
        members(&needed, properties)
    };
    let operations = json!([
        operation(&["create"], json!({ "values": values }), json!({})),
        operation(&["update"], json!({ "id": id, "values": values }), json!({ "ifVersion": version })),
        operation(&["upsert"], json!({ "values": values, "onConflict": list_of(text.clone()) }), json!({})),
        operation(&["delete"], json!({ "id": id }), json!({ "ifVersion": version })),
        operation(&["link", "unlink"], json!({ "id": id, "relation": text, "ids": ids }), json!({})),
    ]);
    let operations = json!({ "type": "array", "items": { "oneOf": operations }, "maxItems": bulk_records_max });
    let result = json!({
        "description": "What the operation on one record answers: the record, or the number of links that changed. Null for a \
            deletion.",
        "anyOf": [
            members(&["data"], json!({ "data": { "type": "object" }, "created": { "type": "boolean" } })),
            { "type": "null" },
        ],
    });
    let operation = Operation::new("data.batch", "data", "Write records of several objects")
        .describe(
            "Runs several writes in one transaction: all of them or none. Each has the rights, the checks, the errors and the \
            event of the same operation on one record. A missing record fails the call. The message of an error begins with the \
            index of the operation at fault, and `index` has it too.",
        )
        .called_by(Caller::Granted)
        .json_body(exact_object(json!({ "operations": operations })))
        .problems(&[404, 409, 412])
        .answers_data(200, "The results, in the order of the operations.", list_of(result));
    paths.add("post", "/api/v1/batch", operation);
}

/// The index of an operation, and a field.
const REFERENCE: &str = r"^(0|[1-9][0-9]*)\.[a-z][a-z0-9_]*$";
