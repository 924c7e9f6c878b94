//! `GET /api/v1/data`: the objects that the caller may read, with their endpoints.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::AppState;
use crate::extract::Authenticated;
use crate::render;

pub(crate) async fn handle(State(state): State<AppState>, Authenticated(caller): Authenticated) -> Response {
    let objects: Vec<_> = state
        .app
        .readable_objects(&caller)
        .into_iter()
        .map(|name| {
            let path = format!("/api/v1/data/{name}");
            json!({
                "name": name,
                "endpoints": [
                    { "method": "GET", "path": path },
                    { "method": "POST", "path": path },
                    { "method": "GET", "path": format!("{path}/:id") },
                    { "method": "PATCH", "path": format!("{path}/:id") },
                    { "method": "DELETE", "path": format!("{path}/:id") },
                ],
            })
        })
        .collect();
    render::data(StatusCode::OK, &objects)
}
