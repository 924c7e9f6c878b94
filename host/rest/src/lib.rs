//! The HTTP surface: REST, the event stream, `/api/auth`, health.
//!
//! A handler parses the request, calls one operation of `app`, and renders the result. It makes no decisions. Only this crate
//! knows HTTP statuses, and no crate below it does. This crate must not know of SQL, wasmtime or the configuration's variables.
#![forbid(unsafe_code)]

mod answer;
mod edge;
mod openapi;
mod request;
mod routes;
mod routing;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use blockbase_app::App;
use tokio::sync::watch;

pub use edge::address::TrustedProxies;
pub use edge::host::{KnownHosts, is_loopback_url};
use edge::middleware::Limits;
pub use edge::origin::TrustedOrigins;
use request::extract::Operator;
pub use routes::auth::mail_links;
pub use routes::service::metrics::{Metrics, MetricsAccess, metrics_router};
pub use routes::surfaces::{Pages, Surface, Surfaces};

/// The parts of the configuration that the surface needs.
#[derive(Clone)]
pub struct Settings {
    pub body_bytes_max: usize,
    pub block_bytes_max: usize,
    /// The maximum number of requests of an address in a minute. 0 means no limit.
    pub requests_per_minute: u32,
    /// The maximum number of requests of an address to `/api/auth` in a minute. 0 means no limit.
    pub auth_requests_per_minute: u32,
    pub trusted_proxies: TrustedProxies,
    pub trusted_origins: TrustedOrigins,
    /// The names of this server. Requests for other hosts are refused.
    pub hosts: KnownHosts,
    /// Whether the public URL has the scheme https. Responses then tell browsers to use only https.
    pub is_https: bool,
    /// The metrics that `/metrics` shows, and the clients that may see them. `None` if the route does not exist.
    pub metrics: Option<Metrics>,
    /// Whether each request gets a line in the log.
    pub log_requests: bool,
}

/// The state that every handler gets. Cloning it costs one reference count, because layers and extractors clone it several times
/// for each request.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Shared>);

impl Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

pub(crate) struct Shared {
    pub(crate) app: Arc<App>,
    pub(crate) settings: Settings,
    pub(crate) surfaces: Surfaces,
    pub(crate) limits: Limits,
    pub(crate) bodies: Arc<request::bodies::Bodies>,
    pub(crate) documents: routes::openapi::Documents,
    /// Turns true when the server is about to drain. It then still serves requests, but it is no longer ready, and it closes each
    /// connection after the response.
    pub(crate) leaving: watch::Receiver<bool>,
    /// Turns true when the server drains. Open streams then end.
    pub(crate) draining: watch::Receiver<bool>,
}

/// Signals that the server stops, in two steps.
pub struct Stopping {
    /// Turns true first. `/readyz` then answers 503, and responses close their connections, so that a load balancer stops sending
    /// requests.
    pub leaving: watch::Receiver<bool>,
    /// Turns true next. Open streams then end.
    pub draining: watch::Receiver<bool>,
}

/// The surface of one service.
pub struct Rest(AppState);

impl Rest {
    pub fn new(app: Arc<App>, settings: Settings, surfaces: Surfaces, stopping: Stopping) -> Rest {
        Rest(AppState(Arc::new(Shared {
            app,
            limits: Limits::new(&settings),
            settings,
            surfaces,
            bodies: Arc::default(),
            documents: routes::openapi::Documents::default(),
            leaving: stopping.leaving,
            draining: stopping.draining,
        })))
    }

    /// All routes, for clients on the network.
    pub fn router(&self) -> Router {
        let state = self.0.clone();
        let admitted = |router: Router<AppState>| {
            router
                .method_not_allowed_fallback(answer::error::no_method)
                .layer(axum::middleware::from_fn_with_state(state.clone(), edge::middleware::admit))
        };
        let api = routes::all(state.settings.metrics.is_some()).into_router().fallback(answer::error::no_route);
        admitted(api)
            .layer(edge::middleware::cors(&state.settings.trusted_origins))
            .merge(admitted(routes::surfaces::pages().into_router()))
            .layer(axum::middleware::from_fn_with_state(state.clone(), edge::middleware::around))
            .with_state(state)
    }

    /// The router of accounts, for the operator of this server. It needs no credential and has no rate limit, and each request
    /// has all rights. So nobody else may have access to this router.
    pub fn operator_router(&self) -> Router {
        let state = self.0.clone();
        routes::accounts::operator_routes()
            .into_router()
            .fallback(answer::error::no_route)
            .method_not_allowed_fallback(answer::error::no_method)
            .layer(axum::Extension(Operator))
            .layer(axum::middleware::from_fn_with_state(state.clone(), edge::middleware::around))
            .with_state(state)
    }
}
