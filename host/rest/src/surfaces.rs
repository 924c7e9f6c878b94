//! The other surfaces over HTTP: GraphQL and MCP, mounted behind the same middleware as REST.
//!
//! They get the caller and the body, found and bounded as for REST, and answer in their own form. This crate knows of them only
//! what is said here.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use blockbase_app::Invoker;
use blockbase_app::schema::Result;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;

use crate::AppState;
use crate::body;
use crate::error::ApiError;
use crate::extract::{RequestInfo, credentials};

/// Answers a request whose body was read, or says in its own form why it could not be.
pub type Surface = Arc<
    dyn Fn(Invoker, axum::http::Request<Result<Bytes>>) -> BoxFuture<'static, axum::http::Response<BoxBody<Bytes, Infallible>>>
        + Send
        + Sync,
>;

/// The surfaces beside REST.
#[derive(Clone)]
pub struct Surfaces {
    /// `/api/v1/graphql`, and `/api/v1/graphql/assets/{name}`, which are files for browsers
    pub graphql: Surface,
    /// `/api/v1/mcp`
    pub mcp: Surface,
}

async fn answer(surface: &Surface, state: &AppState, request: Request) -> Response {
    let (parts, incoming) = request.into_parts();
    let credentials = credentials(&parts);
    let invoker = Invoker {
        caller: state.app.authenticate(&credentials).await,
        credentials,
        request_id: parts.extensions.get::<RequestInfo>().map(|info| info.request_id.clone()).unwrap_or_default(),
    };
    let body = body::read_body(&parts.headers, incoming, state.settings.body_bytes_max).await.map_err(|ApiError(error)| error);
    surface(invoker, Request::from_parts(parts, body)).await.map(Body::new)
}

pub(crate) async fn graphql(State(state): State<AppState>, request: Request) -> Response {
    answer(&state.surfaces.graphql, &state, request).await
}

pub(crate) async fn mcp(State(state): State<AppState>, request: Request) -> Response {
    answer(&state.surfaces.mcp, &state, request).await
}
