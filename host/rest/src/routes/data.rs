//! `/api/v1/data`: one verb a file.

pub(crate) mod aggregate;
pub(crate) mod bulk;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod discover;
pub(crate) mod document;
mod expansion;
pub(crate) mod export;
pub(crate) mod filters_document;
pub(crate) mod get;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod query;
pub(crate) mod records_document;
pub(crate) mod update;
pub(crate) mod where_document;

use crate::AppState;
use axum::{Router, routing};

pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/data", routing::get(discover::handle))
        .route("/api/v1/data/{object}", routing::get(list::handle).post(create::handle))
        .route("/api/v1/data/{object}/query", routing::post(query::handle))
        .route("/api/v1/data/{object}/aggregate", routing::get(aggregate::handle))
        .route("/api/v1/data/{object}/export", routing::get(export::handle))
        .route("/api/v1/data/{object}/bulk", routing::post(bulk::create).patch(bulk::update).delete(bulk::delete))
        .route("/api/v1/data/{object}/{id}", routing::get(get::handle).patch(update::handle).delete(delete::handle))
        .route("/api/v1/data/{object}/{id}/links/{relation}", routing::post(links::add).delete(links::remove))
}
