//! `POST /api/v1/data/:object`: creates a record. With `?on_conflict=` it changes the existing record that the new one would
//! duplicate.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::described::Described;
use super::expansion;
use super::filters_document;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::components::schema;
use crate::openapi::operation::{Paths, query_parameter};
use crate::request::admission::{Granted, NewRecord};
use crate::request::body::JsonMembers;
use crate::request::extract::{OnlyParameters, Parameters, PathParts};

/// The parameters of a creation.
pub(crate) struct OfCreation;

impl Parameters for OfCreation {
    const NAMES: &'static [&'static str] = &["on_conflict", "expand"];
}

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<NewRecord>,
    PathParts(object): PathParts<String>,
    OnlyParameters(query, ..): OnlyParameters<OfCreation>,
    JsonMembers(values): JsonMembers,
) -> Result<Response, ApiError> {
    let expand = expansion::of_write(&state, &caller, &object, &query).await?;
    let warnings = state.app.warnings_of_expand(&caller, &object, &expand);
    let Some(target) = query.get("on_conflict") else {
        let created = state.app.create(&caller, &object, values).await?;
        let record = state.app.with_related(&caller, &object, created, &expand).await;
        return Ok(render::record(StatusCode::CREATED, &record, &warnings, &state.app));
    };
    let target: Vec<String> = target.split(',').map(|name| name.trim().to_owned()).collect();
    let upserted = state.app.upsert(&caller, &object, values, &target).await?;
    let status = if upserted.created { StatusCode::CREATED } else { StatusCode::OK };
    let record = state.app.with_related(&caller, &object, upserted.record, &expand).await;
    Ok(render::upserted(status, &record, upserted.created, &warnings, &state.app))
}

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>) {
    let Described { object, type_name, base, keys, .. } = described;
    let targets = object.unique_target_names();
    let text = format!(
        "Columns of a unique target, separated by commas in any order: {}. If a record has the same values in these columns, \
        that record is changed instead. The body must contain these columns.",
        targets.join(" or ")
    );
    let columns: Vec<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    let pattern = format!("^ *({0}) *(, *({0}) *)*$", columns.join("|"));
    let on_conflict = query_parameter("on_conflict", &text, json!({ "type": "string", "pattern": pattern, "examples": targets }));
    let upserted = |created: &Value| {
        json!({
            "type": "object",
            "properties": { "data": described.record(), "created": created, "warnings": schema("SvcWarnings") },
            "required": ["data"],
            "additionalProperties": false,
        })
    };
    let created = json!({ "type": "boolean", "const": true, "description": "Present with `on_conflict`." });
    let changed = json!({ "type": "boolean", "const": false });
    let create = described
        .operation("create", format!("Create a record of {}", object.name()))
        .describe(
            "Creates a record. With `on_conflict` it instead changes an existing record that the new one would duplicate, \
            atomically.",
        )
        .parameters([on_conflict, filters_document::expand(keys)])
        .json_body(schema(&format!("{type_name}CreateInput")))
        .problems(&[409])
        .answers_tagged(200, "With `on_conflict`: the record that was changed.", upserted(&changed))
        .answers_tagged(201, "The new record.", upserted(&created));
    paths.add("post", base, create);
}
