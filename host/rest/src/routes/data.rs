//! `/api/v1/data`. Each operation has its own file.

pub(crate) mod aggregate;
pub(crate) mod batch;
pub(crate) mod bulk;
pub(crate) mod create;
pub(crate) mod delete;
mod described;
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

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/data", discover::handle)
        .get("/api/v1/data/{object}", list::handle)
        .post("/api/v1/data/{object}", create::handle)
        .post("/api/v1/data/{object}/query", query::handle)
        .get("/api/v1/data/{object}/aggregate", aggregate::handle)
        .get("/api/v1/data/{object}/export", export::handle)
        .post("/api/v1/data/{object}/bulk", bulk::create)
        .patch("/api/v1/data/{object}/bulk", bulk::update)
        .delete("/api/v1/data/{object}/bulk", bulk::delete)
        .get("/api/v1/data/{object}/{id}", get::handle)
        .patch("/api/v1/data/{object}/{id}", update::handle)
        .delete("/api/v1/data/{object}/{id}", delete::handle)
        .post("/api/v1/batch", batch::handle)
        .post("/api/v1/data/{object}/{id}/links/{relation}", links::add)
        .delete("/api/v1/data/{object}/{id}/links/{relation}", links::remove)
}
