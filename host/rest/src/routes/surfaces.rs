//! The other surfaces over HTTP: GraphQL, MCP and the console's page, mounted behind the same middleware as REST.
//!
//! For each request, REST identifies the caller and limits the size of the body. The surface reads the body when it needs it, and
//! answers in its own form. Only this file of the crate knows about the other surfaces.

pub(crate) mod graphql_document;
pub(crate) mod mcp_document;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::{IncomingBody, Invoker, QuotaOwner};

use crate::AppState;
use crate::answer::error::{ApiError, no_route};
use crate::request::body;
use crate::request::extract::{RequestInfo, credentials, response_room};
use crate::routing::Routes;
use crate::surface::Surface;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/graphql", graphql)
        .post("/api/v1/graphql", graphql)
        .put("/api/v1/graphql", graphql)
        .delete("/api/v1/graphql", graphql)
        .get("/api/v1/graphql/assets/{name}", graphql)
        .get("/api/v1/mcp", mcp)
        .post("/api/v1/mcp", mcp)
        .delete("/api/v1/mcp", mcp)
        .any("/", root)
}

/// The console's page and files. Scripts of other origins have no use for them.
pub(crate) fn pages() -> Routes {
    Routes::new().get("/admin", console).get("/admin/", console).get("/admin/{*path}", console)
}

/// The path of the console.
const CONSOLE: &str = "/admin";

async fn answer(surface: &Surface, state: &AppState, request: Request) -> Response {
    let (parts, incoming) = request.into_parts();
    let credentials = credentials(&parts);
    let invoker = Invoker {
        caller: match state.app.authenticate(&credentials).await {
            Ok(caller) => response_room(&parts, state, &caller).await.map(|()| caller),
            Err(refused) => Err(refused),
        },
        request_id: parts.extensions.get::<RequestInfo>().map(|info| info.request_id.to_string()).unwrap_or_default(),
        credentials,
    };
    // A caller with an invalid credential was already refused.
    let owner = invoker.caller.as_ref().map_or(QuotaOwner::Service, |caller| caller.quota_owner().clone());
    let (state, head) = (state.clone(), parts.clone());
    let body = IncomingBody::new(async move {
        let bytes_max = state.settings.body_bytes_max;
        body::read_body(&head, incoming, &state, owner, bytes_max).await.map_err(|ApiError(error)| error)
    });
    surface(invoker, Request::from_parts(parts, body)).await.map(Body::new)
}

pub(crate) async fn graphql(State(state): State<AppState>, request: Request) -> Response {
    answer(&state.surfaces.graphql, &state, request).await
}

/// Serves the console. It ignores credentials, because the page calls the API like any other client.
pub(crate) async fn console(State(state): State<AppState>, uri: Uri, headers: HeaderMap) -> Response {
    match (state.surfaces.console)(uri.path(), &headers) {
        Some(answer) => answer.map(Body::new),
        None => no_route(uri).await,
    }
}

/// `/`: redirects browsers to the console. Other clients get 404.
pub(crate) async fn root(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match matches!(method, Method::GET | Method::HEAD) && names_html(&headers) {
        // The redirect is temporary, because `/` may get another meaning.
        true => (StatusCode::FOUND, [(header::LOCATION, CONSOLE), (header::VARY, "accept")]).into_response(),
        false => no_route(uri).await,
    }
}

/// Whether `Accept` names HTML, as browsers do. `*/*` does not count, because other programs send it.
fn names_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("text/html"));
        let refused = |part: &str| part.strip_prefix("q=").is_some_and(|quality| quality.parse() == Ok(0.0));
        is_html && !parts.any(refused)
    })
}

pub(crate) async fn mcp(State(state): State<AppState>, request: Request) -> Response {
    answer(&state.surfaces.mcp, &state, request).await
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_browser_names_html_and_a_program_does_not() {
        let names = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            names_html(&headers)
        };
        for accept in ["text/html", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json, Text/HTML;q=0.1"] {
            assert!(names(accept), "{accept}");
        }
        for accept in ["*/*", "text/*", "application/json", "text/html;q=0", "text/html;level=1;q=0.000", "", "text/htmlx"] {
            assert!(!names(accept), "{accept}");
        }
        assert!(!names_html(&HeaderMap::new()));
    }
}
