//! The HTTP surface: REST, the event stream, `/api/auth`, health.
//!
//! A handler parses the request, calls one operation of `app`, and renders the result. It makes no decisions. Only this crate
//! knows HTTP statuses, and no crate below it does. This crate must not know of SQL, wasmtime or the configuration's variables.
#![forbid(unsafe_code)]

mod answer;
mod edge;
mod openapi;
mod paths;
mod request;
mod routes;
mod routing;
mod state;
mod surface;
mod trust;

use std::sync::Arc;

use axum::Router;
use blockbase_app::App;
use tokio::sync::watch;

use edge::middleware::{Admit, Around, cors};
use request::extract::Operator;
pub use request::extract::OperatorUid;
pub use routes::auth::mail_links;
pub use routes::service::metrics::metrics_router;
pub(crate) use state::AppState;
use state::Shared;
use state::documents::Documents;
use state::rate_limits::Limits;
pub use state::settings::Settings;
pub use surface::{Pages, Surface, Surfaces};
pub use trust::address::TrustedProxies;
pub use trust::host::{KnownHosts, is_loopback_url};
pub use trust::metrics_access::{Metrics, MetricsAccess};
pub use trust::origin::TrustedOrigins;

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
            documents: Documents::default(),
            leaving: stopping.leaving,
            draining: stopping.draining,
        })))
    }

    /// All routes, for clients on the network.
    pub fn router(&self) -> Router {
        let state = self.0.clone();
        // The layers of a router are added in one step, because each step puts the services in further boxes.
        let (around, admit) = (Around(state.clone()), Admit(state.clone()));
        routes::all(state.settings.metrics.is_some())
            .into_router()
            .fallback(answer::error::no_route)
            .method_not_allowed_fallback(answer::error::no_method)
            .layer((around.clone(), cors(&state.settings.trusted_origins), admit.clone()))
            .merge(
                routes::surfaces::pages()
                    .into_router()
                    .method_not_allowed_fallback(answer::error::no_method)
                    .layer((around, admit)),
            )
            .with_state(state)
    }

    /// The router of accounts, for the operator of this server. It needs no credential and has no rate limit, and each request
    /// has all rights. So nobody else may have access to this router. Each request has [`OperatorUid`] as an extension.
    pub fn operator_router(&self) -> Router {
        let state = self.0.clone();
        routes::accounts::operator_routes()
            .into_router()
            .fallback(answer::error::no_route)
            .method_not_allowed_fallback(answer::error::no_method)
            .layer((Around(state.clone()), axum::Extension(Operator)))
            .with_state(state)
    }
}
