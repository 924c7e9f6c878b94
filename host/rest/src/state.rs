//! The state that all handlers share.

pub(crate) mod bodies;
pub(crate) mod documents;
pub(crate) mod rate_limits;
pub(crate) mod settings;

use std::ops::Deref;
use std::sync::Arc;

use blockbase_app::App;
use tokio::sync::watch;

use crate::surface::Surfaces;
use bodies::Bodies;
use documents::Documents;
use rate_limits::Limits;
use settings::Settings;

/// The state that every handler gets. Cloning it costs one reference count, because layers and extractors clone it several times
/// for each request.
#[derive(Clone)]
pub(crate) struct AppState(pub(crate) Arc<Shared>);

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
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) documents: Documents,
    /// Turns true when the server is about to drain. It then still serves requests, but it is no longer ready, and it closes each
    /// connection after the response.
    pub(crate) leaving: watch::Receiver<bool>,
    /// Turns true when the server drains. Open streams then end.
    pub(crate) draining: watch::Receiver<bool>,
}
