//! The surface: finds out what a request wants.

use std::sync::Arc;

use blockbase_app::schema::Result;
use blockbase_app::{App, IncomingBody, Invoker};
use http::{HeaderMap, Method, Request};
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;

use crate::admission::require_admission;
use crate::answer::Answer;
use crate::call::Invoked;
use crate::server::Server;
use crate::session::Sessions;
use crate::{answer, message, server};

/// The surface.
pub struct Mcp {
    pub(crate) app: Arc<App>,
    pub(crate) sessions: Sessions,
    pub(crate) protocol: StreamableHttpService<Server, NeverSessionManager>,
    pub(crate) draining: tokio::sync::watch::Receiver<bool>,
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
