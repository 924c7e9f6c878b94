//! `GET /api/v1/data/:object/export`: all rows of a list as a file.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use blockbase_app::schema::{Error, Registry, RelationShape};
use blockbase_app::{Export, ExportForm, Incomplete, ListRequest};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use super::described::Described;
use super::filters_document;
use crate::AppState;
use crate::answer::error::ApiError;
use crate::openapi::components::Components;
use crate::openapi::operation::{Paths, headers, query_parameter};
use crate::request::admission::{Granted, Read, Records};
use crate::request::extract::{PathParts, QueryPairs};

pub(crate) async fn handle(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Records<Read>>,
    PathParts(object): PathParts<String>,
    query: QueryPairs,
    method: Method,
) -> Result<Response, ApiError> {
    let form = match query.get("format") {
        Some(name) => ExportForm::parse(name)?,
        None => return Err(Error::invalid_request("`format` is missing. It must be csv or ndjson.").into()),
    };
    let request = ListRequest::export_from_parameters(query.iter().filter(|(name, _)| *name != "format"))?;
    if method == Method::HEAD {
        // A HEAD request needs no rows, so none are read.
        let file_name = state.app.check_export(&caller, &object, &request, form).await?;
        return Ok(file(form, &file_name, Body::from_stream(stream::empty::<Result<Bytes, Incomplete>>())));
    }
    let Export { rows, file_name } = state.app.export(&caller, &object, &request, form).await?;
    // A failure in the middle ends the connection, because the client would take a response with a regular end for complete.
    let rows = stream::unfold(Some(rows), |rows| async {
        let mut rows = rows?;
        let next: Result<Bytes, Incomplete> = rows.next().await?;
        Some(match next {
            Ok(bytes) => (Ok(bytes), Some(rows)),
            Err(incomplete) => (Err(incomplete), None),
        })
    });
    Ok(file(form, &file_name, Body::from_stream(rows)))
}

/// A response that a browser saves as a file with this name.
fn file(form: ExportForm, name: &str, body: Body) -> Response {
    let media_type = match form {
        ExportForm::Csv => "text/csv; charset=utf-8",
        ExportForm::Ndjson => "application/x-ndjson",
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// The fields of related records that an export can write instead of ids, such as `company.name`.
pub(super) fn record_names(registry: &Registry, object: &str, readable: impl Fn(&str) -> bool) -> Vec<String> {
    let relations = registry.relations_of(object).iter();
    let forward =
        relations.filter(|relation| matches!(relation.shape, RelationShape::Forward { .. }) && readable(&relation.related));
    forward
        .filter_map(|relation| Some((&relation.key, registry.object(&relation.related)?)))
        .flat_map(|(key, object)| {
            object.columns.iter().filter(|column| column.names_record()).map(move |column| format!("{key}.{}", column.name))
        })
        .collect()
}

pub(super) fn describe(paths: &mut Paths, components: &mut Components, described: &Described<'_>, names: &[String]) {
    let Described { object, type_name, base, .. } = described;
    let format = "`csv` is RFC 4180 with a header. Null is an empty cell, and an empty text is `\"\"`. A text that begins with \
        `=`, `+`, `-` or `@` gets an apostrophe in front. `ndjson` has one record on each line, with the same bytes as in the \
        list.";
    let mut format = query_parameter("format", format, json!({ "type": "string", "enum": ExportForm::NAMES }));
    format["required"] = json!(true);
    let content = json!({
        "text/csv": { "schema": { "type": "string", "description": "A header, and a line for each record." } },
        "application/x-ndjson": { "schema": { "type": "string", "description": "A line for each record." } },
    });
    let headers = headers(&[("content-disposition", "ContentDisposition")]);
    let export = described
        .operation("export", format!("Export records of {}", object.name()))
        .describe(
            "Exports all records that a list with the same search, filters and condition has, in the same order. `limit` and \
            `offset` select a part of them. All records come from one moment. If the response is cut off, its connection ends \
            without the last chunk, and the file is incomplete.",
        )
        .parameter(format)
        .parameters(filters_document::of_export(components, object, type_name, names))
        .response(200, json!({ "description": "The file.", "headers": headers, "content": content }));
    paths.add("get", format!("{base}/export"), export);
}
