//! Users, roles and API keys, as an administrator sees them.

pub(crate) mod api_keys;
pub(crate) mod document;
pub(crate) mod roles;
pub(crate) mod users;

use crate::AppState;
use axum::{Router, routing};

pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/v1/roles", routing::get(roles::list).post(roles::create))
        .route("/api/v1/roles/{id}", routing::get(roles::get).patch(roles::update).delete(roles::delete))
        .route("/api/v1/roles/{id}/permissions", routing::get(roles::permissions))
        .route("/api/v1/users", routing::get(users::list))
        .route("/api/v1/users/{id}", routing::get(users::get).patch(users::update).delete(users::delete))
        .route("/api/v1/users/{id}/sessions", routing::get(users::sessions).delete(users::end_sessions))
        .route("/api/v1/users/{id}/sessions/{session}", routing::delete(users::end_session))
        .route("/api/v1/users/{id}/roles", routing::post(users::give_role))
        .route("/api/v1/users/{id}/roles/{role}", routing::delete(users::take_role))
        .route("/api/v1/api-keys", routing::get(api_keys::list).post(api_keys::create))
        .route("/api/v1/api-keys/{id}", routing::delete(api_keys::delete))
        .route("/api/v1/api-keys/{id}/adopt", routing::post(api_keys::adopt))
}
