//! The GraphQL surface: a schema reflected from the registry, over the same operations as REST.
//!
//! This crate must not know of axum, SQL or wasmtime.
#![forbid(unsafe_code)]

mod graphiql;

use std::convert::Infallible;
use std::sync::Arc;

use blockbase_app::schema::Result;
use blockbase_app::{App, Invoker};
use bytes::Bytes;
use http::header::{ACCEPT, ALLOW};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};

/// The surface.
pub struct Graphql {
    app: Arc<App>,
}

impl Graphql {
    pub fn new(app: Arc<App>) -> Arc<Graphql> {
        Arc::new(Graphql { app })
    }

    /// Answers a request at `/api/v1/graphql`.
    pub async fn handle(
        self: Arc<Self>,
        _invoker: Invoker,
        request: Request<Result<Bytes>>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if let Some((_, name)) = request.uri().path().split_once("/graphql/assets/") {
            let mut refused = Response::new(Empty::new().boxed());
            if reads {
                *refused.status_mut() = StatusCode::NOT_FOUND;
                return graphiql::asset(name).unwrap_or(refused);
            }
            *refused.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        if reads && accepts.contains("text/html") {
            return graphiql::page();
        }
        let _ = self.app.now();
        Response::new(Empty::new().boxed())
    }
}
