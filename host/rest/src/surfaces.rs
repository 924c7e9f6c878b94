//! The other surfaces over HTTP: GraphQL and MCP, mounted behind the same middleware as REST.
//!
//! They get the caller and the body, found and bounded as for REST, the body when they ask for it, and answer in their own form. This crate knows of them only
//! what is said here.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use blockbase_app::{IncomingBody, Invoker, Payer};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;

use crate::AppState;
use crate::body;
use crate::error::ApiError;
use crate::extract::{RequestInfo, credentials};

/// Answers a request, whose body it reads once it has let the caller in.
pub type Surface = Arc<
    dyn Fn(Invoker, axum::http::Request<IncomingBody>) -> BoxFuture<'static, axum::http::Response<BoxBody<Bytes, Infallible>>>
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
        request_id: parts.extensions.get::<RequestInfo>().map(|info| info.request_id.clone()).unwrap_or_default(),
        credentials,
    };
    // A caller who presents what does not hold is refused before.
    let payer = invoker.caller.as_ref().map_or(Payer::Service, |caller| caller.payer().clone());
    let (state, head) = (state.clone(), parts.clone());
    let body = IncomingBody::new(async move {
        let bytes_max = state.settings.body_bytes_max;
        body::read_body(&head, incoming, &state, payer, bytes_max).await.map_err(|ApiError(error)| error)
    });
    surface(invoker, Request::from_parts(parts, body)).await.map(Body::new)
}

pub(crate) async fn graphql(State(state): State<AppState>, request: Request) -> Response {
    answer(&state.surfaces.graphql, &state, request).await
}

pub(crate) async fn mcp(State(state): State<AppState>, request: Request) -> Response {
    answer(&state.surfaces.mcp, &state, request).await
}
