//! The GraphQL surface: its schema follows the registry, and it runs the same operations as REST.
//!
//! async-graphql parses documents, validates them against the schema and answers introspection. This crate executes them. A root
//! field is one operation of `app`, which returns the records and everything that is selected below them. This crate then writes
//! their JSON in the selected shape. This crate must not know of axum, SQL or wasmtime.
#![forbid(unsafe_code)]

mod document;
mod error;
mod execute;
mod hints;
mod http;
mod sse_connections;
mod surface;
mod view;

use std::sync::Arc;

use ::http::{Request, Response};
use blockbase_app::{IncomingBody, Invoker};

use crate::http::answer::Body;

pub use surface::Graphql;

impl Graphql {
    /// Answers a request at `/api/v1/graphql`.
    pub async fn handle(self: Arc<Self>, invoker: Invoker, request: Request<IncomingBody>) -> Response<Body> {
        http::handle(self, invoker, request).await
    }
}
