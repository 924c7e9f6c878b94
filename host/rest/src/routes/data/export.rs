//! `GET /api/v1/data/:object/export`: all rows of a list as a file.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use blockbase_app::schema::Error;
use blockbase_app::{Export, ExportForm, Incomplete, ListRequest};
use bytes::Bytes;
use futures_util::stream;

use crate::AppState;
use crate::answer::error::ApiError;
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
