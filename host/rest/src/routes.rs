//! The routes, by area. Each area has its handlers and its part of the OpenAPI document.

pub(crate) mod accounts;
pub(crate) mod auth;
pub(crate) mod blocks;
pub(crate) mod data;
pub(crate) mod document;
pub(crate) mod events;
pub(crate) mod me;
pub(crate) mod openapi;
pub(crate) mod schema;
pub(crate) mod service;
pub(crate) mod surfaces;
pub(crate) mod tasks;

use axum::Router;

use crate::AppState;

/// All routes that a server always has.
pub(crate) fn all() -> Router<AppState> {
    let areas = [
        data::routes(),
        schema::routes(),
        events::routes(),
        blocks::routes(),
        surfaces::routes(),
        openapi::routes(),
        accounts::routes(),
        tasks::routes(),
        service::routes(),
        me::routes(),
        auth::routes(),
    ];
    areas.into_iter().fold(Router::new(), Router::merge)
}
