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
mod view;

use std::sync::Arc;

use ::http::{Request, Response};
use blockbase_app::{App, IncomingBody, Invoker};
use tokio::sync::watch;

use crate::http::Body;
use crate::http::sse::Connections;
use crate::view::views::Views;

/// The surface.
pub struct Graphql {
    pub(crate) app: Arc<App>,
    pub(crate) views: Arc<Views>,
    pub(crate) sse: Connections,
    /// Permits for introspections.
    pub(crate) introspecting: execute::introspection::Places,
    /// Becomes true when the server drains. Open streams then end.
    pub(crate) draining: watch::Receiver<bool>,
}

impl Graphql {
    pub fn new(app: Arc<App>, draining: watch::Receiver<bool>) -> Arc<Graphql> {
        let (sse, introspecting) = (Connections::default(), execute::introspection::Places::default());
        Arc::new(Graphql { views: Views::new(Arc::clone(&app)), app, sse, introspecting, draining })
    }

    /// Answers a request at `/api/v1/graphql`.
    pub async fn handle(self: Arc<Self>, invoker: Invoker, request: Request<IncomingBody>) -> Response<Body> {
        http::handle(self, invoker, request).await
    }
}
