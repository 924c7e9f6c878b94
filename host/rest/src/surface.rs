//! The other surfaces, for the router.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::HeaderMap;
use blockbase_app::{IncomingBody, Invoker};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;

/// Answers a request. It reads the body after it has checked the caller.
pub type Surface = Arc<
    dyn Fn(Invoker, axum::http::Request<IncomingBody>) -> BoxFuture<'static, axum::http::Response<BoxBody<Bytes, Infallible>>>
        + Send
        + Sync,
>;

/// Answers a GET by its path and headers with the console's page and files, which are the same for everybody. `None` if there is
/// no such file.
pub type Pages = Arc<dyn Fn(&str, &HeaderMap) -> Option<axum::http::Response<BoxBody<Bytes, Infallible>>> + Send + Sync>;

/// The other surfaces.
#[derive(Clone)]
pub struct Surfaces {
    /// The paths `/admin` and below.
    pub console: Pages,
    /// `/api/v1/graphql`, and `/api/v1/graphql/assets/{name}`, which are files for browsers
    pub graphql: Surface,
    /// `/api/v1/mcp`
    pub mcp: Surface,
}
