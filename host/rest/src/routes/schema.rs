//! Objects, fields, relationships, and plans to change them.

pub(crate) mod change;
pub(crate) mod document;
pub(crate) mod fields;
pub(crate) mod objects;
pub(crate) mod relationships;

use crate::AppState;
use axum::{Router, routing};

pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/objects", routing::get(objects::list).post(objects::create))
        .route("/api/v1/objects/{name}", routing::get(objects::get).patch(objects::update).delete(objects::delete))
        .route("/api/v1/objects/{name}/dependents", routing::get(objects::dependents))
        .route("/api/v1/objects/{name}/fields", routing::post(fields::add))
        .route("/api/v1/objects/{name}/fields/{field}", routing::patch(fields::alter).delete(fields::drop))
        .route("/api/v1/relationships", routing::get(relationships::list).post(relationships::create))
        .route("/api/v1/relationships/{id}", routing::delete(relationships::delete))
        .route("/api/v1/schema", routing::get(objects::schema))
        .route("/api/v1/schema/migrations", routing::get(objects::migrations))
}
