//! `GET /api/v1/data`: the objects that the caller may read, with their endpoints.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::extract::Authenticated;
use crate::request::precondition::refuse_if_match;

pub(crate) async fn handle(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    refuse_if_match(&headers)?;
    const ENDPOINTS: [(&str, &str); 13] = [
        ("GET", ""),
        ("POST", ""),
        ("POST", "/query"),
        ("GET", "/aggregate"),
        ("POST", "/bulk"),
        ("PATCH", "/bulk"),
        ("DELETE", "/bulk"),
        ("GET", "/:id"),
        ("PATCH", "/:id"),
        ("DELETE", "/:id"),
        ("POST", "/:id/links/:rel"),
        ("DELETE", "/:id/links/:rel"),
        ("POST", "?on_conflict=:columns"),
    ];
    let objects: Vec<_> = state
        .app
        .readable_objects(&caller)
        .into_iter()
        .map(|name| {
            let endpoints: Vec<_> = ENDPOINTS
                .iter()
                .map(|(method, path)| json!({ "method": method, "path": format!("/api/v1/data/{name}{path}") }))
                .collect();
            json!({ "name": name, "endpoints": endpoints })
        })
        .collect();
    Ok(render::data(StatusCode::OK, &objects))
}
