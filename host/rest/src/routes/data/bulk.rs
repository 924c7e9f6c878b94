//! `POST`, `PATCH` and `DELETE /api/v1/data/:object/bulk`: writes many records. Either all or none of them are written.

use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;
use blockbase_app::schema::json::{Members, parse_list, parse_object};
use blockbase_app::{Chosen, ListParameter, Where, WrittenAnswer, run_offloaded};
use http_body::Body as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::described::Described;
use super::where_document;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::{exact_object, schema};
use crate::openapi::operation::{Paths, query_parameter};
use crate::request::admission::{Create, Delete, Granted, Records, Update};
use crate::request::body::JsonText;
use crate::request::extract::{NoParameters, OnlyParameters, Parameters, PathParts, QueryPairs};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BulkBody<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

/// `{ "data": [record] }` → 201 `{ count, ids }`.
pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Create>>,
    PathParts(object): PathParts<String>,
    _: NoParameters,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let records = run_offloaded(text.len(), || {
        let records: BulkBody<'_> = parse_object(&text)?;
        parse_list::<Members>(records.data.get(), state.app.settings().bulk_records_max)
    })?;
    drop(text);
    let created = state.app.create_many(&caller, &object, records).await?;
    Ok(render::json_bytes(StatusCode::CREATED, created.json().into_bytes()))
}

/// The body of a call. `ids` or `where` chooses the records, and `values` are set in them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChosenBody<'a> {
    #[serde(borrow)]
    ids: Option<&'a RawValue>,
    r#where: Option<Box<RawValue>>,
    values: Option<Members>,
}

impl ChosenBody<'_> {
    /// The chosen records. Either the body or the query names them.
    fn chosen(&mut self, state: &AppState, query: &QueryPairs) -> Result<Chosen, Error> {
        let name = ListParameter::Where.name();
        let mut wheres: Vec<Where> = self.r#where.take().map(Where::Json).into_iter().collect();
        for (_, text) in query.iter().filter(|(known, _)| *known == name) {
            let raw = RawValue::from_string(text.to_owned());
            wheres.push(raw.map(Where::Json).map_err(|error| Error::invalid_request(format!("`{name}` is not JSON: {error}.")))?);
        }
        let ids = self.ids.map(|ids| parse_list(ids.get(), state.app.settings().bulk_records_max)).transpose()?;
        Chosen::of(ids, wheres)
    }
}

/// The name of the parameter of a dry run.
const DRY_RUN: &str = "dryRun";

/// The parameters of a change or deletion of many records: the dry run and the condition. If the call ignored a simple filter, it
/// would write more records than its client asked for.
pub(crate) struct OfChosen;

impl Parameters for OfChosen {
    const NAMES: &'static [&'static str] = &[DRY_RUN, ListParameter::Where.name()];
}

/// `{ "ids": [uuid], "values": record }` → 200 `{ count, ids }` of the records that were changed, or with `?dryRun=true` of those
/// that would be changed. `where` can replace `ids`, in the body or in the query.
pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Update>>,
    PathParts(object): PathParts<String>,
    OnlyParameters(query, ..): OnlyParameters<OfChosen>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let is_dry = query.flag(DRY_RUN)?;
    let (chosen, values) = run_offloaded(text.len(), || {
        let mut body: ChosenBody<'_> = parse_object(&text)?;
        let values = body.values.take().ok_or_else(|| Error::invalid_request("The body needs `values`."))?;
        Ok::<_, Error>((body.chosen(&state, &query)?, values))
    })?;
    drop(text);
    let changed = match is_dry {
        true => state.app.update_many_dry(&caller, &object, &chosen, &values).await?,
        false => state.app.update_many(&caller, &object, &chosen, &values).await?,
    };
    Ok(render::json_bytes(StatusCode::OK, changed.json().into_bytes()))
}

/// `{ "ids": [uuid] }` → 200 `{ count, ids }` of the records that were deleted, or with `?dryRun=true` of those that would be
/// deleted. `where` can replace `ids`. If it is in the query, no body is needed.
pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Delete>>,
    PathParts(object): PathParts<String>,
    OnlyParameters(query, ..): OnlyParameters<OfChosen>,
    request: Request,
) -> Result<Response, ApiError> {
    let is_dry = query.flag(DRY_RUN)?;
    let needs_no_body = query.get(ListParameter::Where.name()).is_some() && request.body().is_end_stream();
    let text = match needs_no_body {
        true => "{}".to_owned(),
        false => JsonText::from_request(request, &state).await?.0,
    };
    let chosen = run_offloaded(text.len(), || {
        let mut body: ChosenBody<'_> = parse_object(&text)?;
        match body.values {
            Some(_) => Err(Error::invalid_request("The body of a deletion must not have `values`.")),
            None => body.chosen(&state, &query),
        }
    })?;
    drop(text);
    let deleted = match is_dry {
        true => state.app.delete_many_dry(&caller, &object, &chosen).await?,
        false => state.app.delete_many(&caller, &object, &chosen).await?,
    };
    Ok(render::json_bytes(StatusCode::OK, deleted.json().into_bytes()))
}

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>) {
    let path = format!("{}/bulk", described.base);
    let (name, type_name, most) = (described.object.name(), &described.type_name, described.bulk_records_max);
    let records = json!({ "type": "array", "items": schema(&format!("{type_name}CreateInput")), "maxItems": most });
    let create = described
        .operation("bulkCreate", format!("Create many records of {name}"))
        .describe("Creates all records or none. The message of an error names the index of the record at fault.")
        .json_body(exact_object(json!({ "data": records })))
        .problems(&[409])
        .answers(201, "The new records' ids, in the order of the body.", of::<WrittenAnswer<'_>>());
    paths.add("post", path.clone(), create);
    let dry_run = || {
        let text = "If true, the response shows what would be written, and nothing is written. Only the values themselves are \
            checked, not whether they conflict with other records.";
        query_parameter(DRY_RUN, text, json!({ "type": "boolean", "default": false }))
    };
    let chosen = |more: Value| {
        let condition = where_document::condition(type_name);
        let by_ids = described.ids()["properties"]["ids"].clone();
        let one_of = |name: &str, value: Value| {
            let mut properties = more.clone();
            properties[name] = value;
            exact_object(properties)
        };
        // In the last one, the query has the condition.
        json!({ "oneOf": [one_of("ids", by_ids), one_of("where", condition), exact_object(more.clone())] })
    };
    let changes = chosen(json!({ "values": described.updates() }));
    let update = described
        .operation("bulkUpdate", format!("Change many records of {name}"))
        .describe(
            "Gives all records the same values, or changes none. Unknown ids are skipped. `where` names the records that meet a \
            condition and that the caller may read. The query can have it instead of the body, as JSON.",
        )
        .parameter(dry_run())
        .parameter(where_document::bulk_parameter(type_name))
        .json_body(changes)
        .problems(&[409])
        .answers(200, "Ids of the records that were changed, in the order of the body.", of::<WrittenAnswer<'_>>());
    paths.add("patch", path.clone(), update);
    let delete = described
        .operation("bulkDelete", format!("Delete many records of {name}"))
        .describe(
            "Unknown ids are skipped. If one of the records is still referenced, none is deleted. `where` names the records that meet a \
            condition and that the caller may read. The query can have it instead of the body, as JSON.",
        )
        .parameter(dry_run())
        .parameter(where_document::bulk_parameter(type_name))
        .json_body(chosen(json!({})))
        .or_without_body()
        .problems(&[409])
        .answers(200, "Ids of the records that were deleted.", of::<WrittenAnswer<'_>>());
    paths.add("delete", path, delete);
}
