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
use http::header::ACCEPT;
use http::{Method, Request, Response};
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
        if let Some(answer) = graphiql::answer_for_asset(request.method(), request.uri().path()) {
            return answer;
        }
        let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        if request.method() == Method::GET && accepts.contains("text/html") {
            return graphiql::page();
        }
        let _ = self.app.now();
        Response::new(Empty::new().boxed())
    }
}
