//! The HTTP surface: REST, the event stream, `/api/auth`, health.
//!
//! A handler parses, calls one operation of `app`, and renders; it decides nothing. Statuses live here and nowhere below.
//! This crate must not know of SQL, wasmtime or the configuration's variables.
#![forbid(unsafe_code)]

mod address;
mod admission;
mod api_keys;
mod auth;
mod blocks;
mod bodies;
mod body;
mod data;
mod deliveries;
mod error;
mod events;
mod extract;
mod fields;
mod health;
mod hints;
mod hooks;
mod host;
mod lingering;
mod me;
mod metrics;
mod middleware;
mod objects;
mod observe;
mod openapi;
mod origin;
mod precondition;
mod protect;
mod relationships;
mod render;
mod responses;
mod roles;
mod schema_change;
mod settings;
mod surfaces;
mod tasks;
mod users;
mod webhooks;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::routing::{any, delete, get, patch, post};
use blockbase_app::App;
use tokio::sync::watch;

pub use address::TrustedProxies;
pub use host::{KnownHosts, is_loopback_url};
pub use metrics::{Metrics, MetricsAccess, metrics_router};
use middleware::Limits;
pub use origin::TrustedOrigins;
pub use surfaces::{Pages, Surface, Surfaces};

/// What the surface needs to know of the configuration.
#[derive(Clone)]
pub struct Settings {
    pub body_bytes_max: usize,
    pub block_bytes_max: usize,
    /// Requests an address may make a minute; 0 for any number.
    pub requests_per_minute: u32,
    /// The same for `/api/auth`.
    pub auth_requests_per_minute: u32,
    pub trusted_proxies: TrustedProxies,
    pub trusted_origins: TrustedOrigins,
    /// The names under which requests are answered.
    pub hosts: KnownHosts,
    /// Whether the public URL is https: browsers are told to keep to it.
    pub is_https: bool,
    /// What `/metrics` shows, and to whom; `None` for no such route.
    pub metrics: Option<Metrics>,
    /// Whether each request leaves a line in the log.
    pub log_requests: bool,
}

/// What every handler sees. Cloning costs one reference count: layers and extractors clone it several times a request.
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
    pub(crate) bodies: Arc<bodies::Bodies>,
    pub(crate) documents: openapi::Documents,
    /// Turns true when the server is about to drain: it still serves, is no longer ready, and closes each connection that it answers.
    pub(crate) leaving: watch::Receiver<bool>,
    /// Turns true when the server drains: streams end then.
    pub(crate) draining: watch::Receiver<bool>,
}

/// When the server stops, in two steps.
pub struct Stopping {
    /// Turns true first: `/readyz` answers 503 and responses close their connections, so that a balancer stops sending requests.
    pub leaving: watch::Receiver<bool>,
    /// Turns true next: open streams end.
    pub draining: watch::Receiver<bool>,
}

/// All routes.
pub fn router(app: Arc<App>, settings: Settings, surfaces: Surfaces, stopping: Stopping) -> Router {
    let state = AppState(Arc::new(Shared {
        app,
        limits: Limits::new(&settings),
        settings,
        surfaces,
        bodies: Arc::default(),
        documents: openapi::Documents::default(),
        leaving: stopping.leaving,
        draining: stopping.draining,
    }));
    let router = Router::new()
        .route("/api/v1/data", get(data::discover::handle))
        .route("/api/v1/data/{object}", get(data::list::handle).post(data::create::handle))
        .route("/api/v1/data/{object}/aggregate", get(data::aggregate::handle))
        .route("/api/v1/data/{object}/export", get(data::export::handle))
        .route("/api/v1/data/{object}/bulk", post(data::bulk::create).patch(data::bulk::update).delete(data::bulk::delete))
        .route("/api/v1/data/{object}/{id}", get(data::get::handle).patch(data::update::handle).delete(data::delete::handle))
        .route("/api/v1/data/{object}/{id}/links/{relation}", post(data::links::add).delete(data::links::remove))
        .route("/api/v1/objects", get(objects::list).post(objects::create))
        .route("/api/v1/objects/{name}", get(objects::get).patch(objects::update).delete(objects::delete))
        .route("/api/v1/objects/{name}/dependents", get(objects::dependents))
        .route("/api/v1/objects/{name}/fields", post(fields::add))
        .route("/api/v1/objects/{name}/fields/{field}", patch(fields::alter).delete(fields::drop))
        .route("/api/v1/relationships", get(relationships::list).post(relationships::create))
        .route("/api/v1/relationships/{id}", delete(relationships::delete))
        .route("/api/v1/schema", get(objects::schema))
        .route("/api/v1/schema/migrations", get(objects::migrations))
        .route("/api/v1/events", get(deliveries::events))
        .route("/api/v1/events/{id}", get(deliveries::event))
        .route("/api/v1/events/stream", get(events::stream))
        .route("/api/v1/events/deliveries", get(deliveries::list))
        .route("/api/v1/events/deliveries/counts", get(deliveries::counts))
        .route("/api/v1/events/deliveries/{eventId}/{consumer}", get(deliveries::one))
        .route("/api/v1/events/deliveries/retry", post(deliveries::retry))
        .route("/api/v1/events/subscriptions", get(deliveries::subscriptions).post(deliveries::subscribe))
        .route("/api/v1/events/subscriptions/{consumer}", delete(deliveries::unsubscribe))
        .route("/api/v1/webhooks", get(webhooks::list).post(webhooks::create))
        .route("/api/v1/webhooks/{id}", get(webhooks::get).patch(webhooks::update).delete(webhooks::delete))
        .route("/api/v1/events/subscriptions/{consumer}/adopt", post(deliveries::adopt))
        .route("/api/v1/webhooks/{id}/adopt", post(webhooks::adopt))
        .route("/api/v1/webhooks/{id}/test", post(webhooks::test))
        .route("/api/v1/webhooks/{id}/rotate-secret", post(webhooks::rotate_secret))
        .route("/api/v1/blocks", get(blocks::list).post(blocks::install))
        .route("/api/v1/blocks/actions", get(blocks::actions))
        .route("/api/v1/blocks/inspect", post(blocks::inspect))
        .route("/api/v1/blocks/{block}", get(blocks::get).patch(blocks::update).merge(delete(blocks::uninstall)))
        .route("/api/v1/blocks/{block}/logs", get(blocks::logs))
        .route("/api/v1/blocks/{block}/usage", get(blocks::usage))
        .route("/api/v1/blocks/{block}/handlers/{handler}/replay", post(blocks::replay))
        .route("/api/v1/blocks/{block}/adopt", post(blocks::adopt))
        .route("/api/v1/blocks/{block}/rollback", post(blocks::rollback))
        .route("/api/v1/blocks/{block}/secrets", get(blocks::secrets).post(blocks::set_secret))
        .route("/api/v1/blocks/{block}/secrets/{name}", delete(blocks::delete_secret))
        .route("/api/v1/blocks/{block}/actions/{action}", post(blocks::call))
        .route(
            "/api/v1/hooks/{block}/{hook}",
            get(hooks::receive).post(hooks::receive).put(hooks::receive).patch(hooks::receive).delete(hooks::receive),
        )
        .route("/api/v1/graphql", get(surfaces::graphql).post(surfaces::graphql).put(surfaces::graphql).delete(surfaces::graphql))
        .route("/api/v1/graphql/assets/{name}", get(surfaces::graphql))
        .route("/api/v1/mcp", get(surfaces::mcp).post(surfaces::mcp).delete(surfaces::mcp))
        .route("/api/v1/openapi.json", get(openapi::handle))
        .route("/api/v1/roles", get(roles::list).post(roles::create))
        .route("/api/v1/roles/{id}", get(roles::get).patch(roles::update).delete(roles::delete))
        .route("/api/v1/roles/{id}/permissions", get(roles::permissions))
        .route("/api/v1/users", get(users::list))
        .route("/api/v1/users/{id}", get(users::get).patch(users::update).delete(users::delete))
        .route("/api/v1/users/{id}/sessions", get(users::sessions).delete(users::end_sessions))
        .route("/api/v1/users/{id}/sessions/{session}", delete(users::end_session))
        .route("/api/v1/users/{id}/roles", post(users::give_role))
        .route("/api/v1/users/{id}/roles/{role}", delete(users::take_role))
        .route("/api/v1/api-keys", get(api_keys::list).post(api_keys::create))
        .route("/api/v1/api-keys/{id}", delete(api_keys::delete))
        .route("/api/v1/api-keys/{id}/adopt", post(api_keys::adopt))
        .route("/api/v1/tasks", get(tasks::list).post(tasks::create))
        .route("/api/v1/tasks/{id}", get(tasks::get).patch(tasks::update).delete(tasks::delete))
        .route("/api/v1/tasks/{id}/adopt", post(tasks::adopt))
        .route("/api/v1/tasks/{id}/run", post(tasks::run))
        .route("/api/v1/tasks/{id}/runs", get(tasks::runs))
        .route("/api/v1/settings", get(settings::list))
        .route("/api/v1/status", get(settings::status))
        .route("/api/v1/instance", get(me::instance))
        .route("/api/v1/me", get(me::verdict))
        .route("/api/v1/me/permissions", get(me::permissions))
        .route("/api/v1/me/preferences", get(me::preferences).patch(me::change_preferences))
        .route("/api/v1/admin/claim", post(me::claim))
        .route("/api/auth/sign-up/email", post(auth::sign_up))
        .route("/api/auth/sign-in/email", post(auth::sign_in))
        .route("/api/auth/sign-in/anonymous", post(auth::guest))
        .route("/api/auth/sign-out", post(auth::sign_out))
        .route("/api/auth/get-session", get(auth::get))
        .route("/api/auth/list-sessions", get(auth::list))
        .route("/api/auth/revoke-session", post(auth::revoke))
        .route("/api/auth/revoke-sessions", post(auth::revoke_all))
        .route("/api/auth/revoke-other-sessions", post(auth::revoke_others))
        .route("/api/auth/change-password", post(auth::change_password))
        .route("/api/auth/update-user", post(auth::update_user))
        .route("/api/auth/delete-anonymous-user", post(auth::delete_guest))
        .route("/", any(surfaces::root))
        .route("/admin", get(surfaces::console))
        .route("/admin/", get(surfaces::console))
        .route("/admin/{*path}", get(surfaces::console))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready));
    let router = match state.settings.metrics {
        Some(_) => router.route("/metrics", get(metrics::handle)),
        None => router,
    };
    router
        .fallback(error::no_route)
        .method_not_allowed_fallback(error::no_method)
        .layer(axum::middleware::from_fn_with_state(state.clone(), middleware::admit))
        .layer(middleware::cors(&state.settings.trusted_origins))
        .layer(axum::middleware::from_fn_with_state(state.clone(), middleware::around))
        .with_state(state)
}
