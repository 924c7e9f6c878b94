//! `GET /api/v1/openapi.json`: the OpenAPI 3.1 document of the live schema and of the installed blocks' actions.
//!
//! The document shows only what its caller may know of, which `app` decides. Documents are cached, so that clients that poll do
//! not cause them to be built again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::Visible;
use blockbase_app::schema::Error;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::edge::security_headers;
use crate::openapi::operation::{Caller, Operation, Paths, header_parameter, headers};
use crate::request::extract::Authenticated;
use crate::request::precondition::IfNoneMatch;
use crate::routes::document;
use crate::routing::Routes;
use crate::state::documents::{Document, Documents, Key};

pub(crate) fn routes() -> Routes {
    Routes::new().get("/api/v1/openapi.json", handle)
}

/// The maximum number of documents in the cache. Callers who may know of the same things share one.
const DOCUMENTS_MAX: usize = 8;

impl Documents {
    /// The document of the visible objects and actions. Only one document is built at a time, and not on the threads that serve
    /// requests.
    async fn get(&self, visible: Visible, service: document::Service) -> Result<Arc<Document>, Error> {
        let key = Key::of(&visible);
        let mut kept = self.0.lock().await;
        let found = kept.iter().position(|document| document.key == key).and_then(|place| kept.remove(place));
        let document = match found {
            Some(document) => document,
            None => {
                let build = move || serde_json::to_vec(&document::build(&visible, &service));
                let bytes = tokio::task::spawn_blocking(build).await.map_err(Error::internal)?.map_err(Error::internal)?;
                let etag = format!("\"{}\"", hex::encode(Sha256::digest(&bytes)));
                let etag = HeaderValue::from_str(&etag).map_err(Error::internal)?;
                Arc::new(Document { key, bytes: bytes.into(), etag })
            }
        };
        kept.truncate(DOCUMENTS_MAX - 1);
        kept.push_front(Arc::clone(&document));
        Ok(document)
    }
}

pub(crate) async fn handle(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    known: IfNoneMatch,
) -> Result<Response, ApiError> {
    let service = document::Service {
        require_auth: state.app.settings().require_auth,
        cookie_name: state.app.cookies().name(),
        bulk_records_max: state.app.settings().bulk_records_max,
    };
    let document = state.documents.get(state.app.visible(&caller), service).await?;
    let mut response = match document.etag.to_str().is_ok_and(|etag| known.names(etag)) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], document.bytes.clone()).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, document.etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    // Callers see different documents under the same URL.
    headers.insert(header::VARY, security_headers::CREDENTIALS);
    Ok(response)
}

pub(crate) fn describe(paths: &mut Paths) {
    let known =
        header_parameter("If-None-Match", "The `ETag` of a document that the client already has.", json!({ "type": "string" }));
    let tagged = [("ETag", "ETag"), ("Cache-Control", "CacheControl"), ("Vary", "Vary")];
    let document = json!({ "application/json": { "schema": { "type": "object" } } });
    let openapi = Operation::new("service.openapi", "service", "Get this document")
        .describe(
            "An OpenAPI 3.1 document of the objects and actions that the caller may know of. It changes at once with the \
            schema.",
        )
        .called_by(Caller::Granted)
        .parameter(known)
        .problems(&[304])
        .response(200, json!({ "description": "The document.", "headers": headers(&tagged), "content": document }));
    paths.add("get", "/api/v1/openapi.json", openapi);
}
