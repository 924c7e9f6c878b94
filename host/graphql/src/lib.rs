//! The GraphQL surface: a schema reflected from the registry, over the same operations as REST.
//!
//! This crate must not know of axum, SQL or wasmtime.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::sync::Arc;

use blockbase_app::schema::Result;
use blockbase_app::{App, Invoker};
use bytes::Bytes;
use http::{Request, Response};
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
        _request: Request<Result<Bytes>>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let _ = self.app.now();
        Response::new(Empty::new().boxed())
    }
}
