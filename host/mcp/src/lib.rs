//! The MCP surface: its tools run the same operations as REST.
//!
//! rmcp handles the protocol with its versions, lifecycle and messages. This crate adds the checks of callers, the sessions, and
//! the tools. Each HTTP request is answered by itself, with the rights of its credential. The only purpose of a session is to
//! notify its client of changes to the list of tools.
//!
//! This crate must not know of axum, SQL or wasmtime. No other crate knows rmcp.
#![forbid(unsafe_code)]

mod answer;
mod batch;
mod call;
mod hints;
mod message;
mod post;
mod server;
mod session;
mod stream;
mod tools;
mod watch;

use std::convert::Infallible;
use std::sync::Arc;

use blockbase_app::schema::{Error, Result};
use blockbase_app::{App, Caller, IncomingBody, Invoker};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;

use call::Invoked;
use server::Server;
use session::Sessions;
use tools::Shown;

/// An answer of the surface.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The surface.
pub struct Mcp {
    app: Arc<App>,
    sessions: Sessions,
    protocol: StreamableHttpService<Server, NeverSessionManager>,
    draining: tokio::sync::watch::Receiver<bool>,
}

impl Mcp {
    /// The open streams end when `draining` becomes true.
    pub fn new(app: Arc<App>, draining: tokio::sync::watch::Receiver<bool>) -> Arc<Mcp> {
        Arc::new(Mcp {
            sessions: Sessions::default(),
            protocol: server::protocol(Arc::clone(&app), draining.clone()),
            app,
            draining,
        })
    }

    /// Answers a request at `/api/v1/mcp`.
    pub async fn handle(self: Arc<Self>, invoker: Invoker, request: Request<IncomingBody>) -> Answer {
        let (parts, body) = request.into_parts();
        // The router also sends HEAD requests here, but a stream cannot answer them.
        if !matches!(parts.method, Method::GET | Method::POST | Method::DELETE) {
            return answer::no_method(&parts.method, "GET, POST, DELETE");
        }
        let admitted = self.admit(invoker);
        let (invoked, wants_none) = match admitted.and_then(|invoked| Ok((invoked, message::wants_no_session(&parts.uri)?))) {
            Ok(admitted) => admitted,
            Err(error) => return answer::refused(&error, None),
        };
        let has_sessions = !wants_none && !message::is_without_sessions(&parts.headers);
        match parts.method {
            Method::GET | Method::DELETE if !has_sessions => answer::no_method(&parts.method, "POST"),
            Method::GET => self.stream(&invoked, &parts),
            Method::DELETE => self.end_session(&invoked, &parts.headers),
            _ => self.post(invoked, &parts, body).await,
        }
    }

    /// Checks that the caller may use the surface.
    fn admit(&self, invoker: Invoker) -> Result<Invoked> {
        let caller = invoker.caller?;
        require_admission(&self.app, &caller)?;
        Ok(Invoked { caller, credentials: invoker.credentials, request_id: invoker.request_id })
    }

    fn end_session(&self, invoked: &Invoked, headers: &HeaderMap) -> Answer {
        match self.sessions.named(headers, &invoked.caller) {
            Ok(session) => {
                self.sessions.end(&session);
                answer::nothing(http::StatusCode::NO_CONTENT)
            }
            Err(refused) => *refused,
        }
    }
}

/// Admits signed-in callers who have the platform permission on `data`. Anonymous callers are admitted if they may use at least
/// one tool.
pub(crate) fn require_admission(app: &App, caller: &Caller) -> Result<()> {
    caller.require_platform()?;
    match caller.is_known() || !app.settings().require_auth || Shown::any(app, caller) {
        true => Ok(()),
        false => Err(Error::unauthenticated()),
    }
}
