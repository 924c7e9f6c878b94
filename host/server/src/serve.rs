//! `blockbase serve`: boot, serve, drain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use blockbase_app::{App, BootstrapAdmin, Clock, Feed, Settings as AppSettings};
use blockbase_auth::{CookieSigner, SecretBox};
use blockbase_blocks::{CompileLimits, Runtime, RuntimeSettings};
use blockbase_events::{Nudges, Settings as EventSettings};
use blockbase_graphql::Graphql;
use blockbase_mcp::{Mcp, Settings as McpSettings};
use blockbase_outbound::{AddressPolicy, Client};
use blockbase_rest::{Settings as RestSettings, Surfaces, TrustedOrigins, TrustedProxies};
use blockbase_store::{Commit, Location, Store};
use blockbase_telemetry::Telemetry;
use futures_util::FutureExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::ServiceExt;

use crate::config::{AdminPair, Config};
use crate::data_dir::DataDir;
use crate::{cli, secret, telemetry};

/// How long running requests may go on once the server drains.
const DRAIN: Duration = Duration::from_secs(10);
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failure to accept (out of file descriptors, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the server did not start or ended: the exit code and a line for the operator.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is wrong: exit code 2.
    Configuration(String),
    /// Something else is: exit code 1.
    Boot(String),
}

/// Runs the server until it is told to stop.
pub(crate) fn serve() -> Result<(), Failure> {
    let config = Config::from_env().map_err(Failure::Configuration)?;
    let telemetry = telemetry::start(&config).map_err(Failure::Configuration)?;
    warn_about(&config);
    #[cfg(unix)]
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Boot(format!("The async runtime cannot start: {error}.")))?;
    let outcome = runtime.block_on(run(config, telemetry));
    // Blocking work that is still under way does not hold the exit up.
    runtime.shutdown_background();
    outcome
}

/// Lets the process open as many files as it may: each stream is one, and a shell's own limit is low.
#[cfg(unix)]
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::warn!(error.cause = %error, "the limit of open files cannot be raised");
    }
}

fn warn_about(config: &Config) {
    for name in &config.unknown {
        tracing::warn!("{name} is set, but means nothing to this server; is it misspelt?");
    }
    if !config.require_auth {
        tracing::warn!("SVC_REQUIRE_AUTH=false: everybody who reaches this server may do everything");
    }
    if config.otlp.is_ignored {
        tracing::warn!("an OTLP endpoint is set, but nothing is exported without SVC_TELEMETRY=true");
    }
}

async fn run(config: Config, telemetry: Option<Telemetry>) -> Result<(), Failure> {
    let mut signals = Signals::new().map_err(|error| Failure::Boot(format!("Signals cannot be handled: {error}.")))?;
    let on_sqlite = config.database_url.is_none();
    let data_dir = DataDir::open(&config.data_dir, on_sqlite).map_err(Failure::Boot)?;
    let secret = match &config.secret {
        Some(secret) => secret.clone(),
        None => secret::load_or_generate(&data_dir.join("svc.secret")).map_err(Failure::Boot)?,
    };
    let (feed, pump) = Feed::new();
    let nudges = Nudges::default();
    let store = open_store(&config, &data_dir, &feed, &nudges).await?;

    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|error| Failure::Boot(format!("SVC_LISTEN: {} cannot be listened on: {error}.", config.listen)))?;
    let address = listener.local_addr().map_err(|error| Failure::Boot(error.to_string()))?;
    let public_url = config.public_url.as_ref().map_or_else(|| format!("http://{address}"), |url| url.to_string());

    let cookies = CookieSigner::new(secret.as_bytes(), public_url.starts_with("https:")).map_err(Failure::Boot)?;
    let secrets = SecretBox::new(secret.as_bytes()).map_err(Failure::Boot)?;
    let client = Client::new(addresses(&config)).map_err(Failure::Boot)?;
    let (app, log_lines) = App::new(store.clone(), app_settings(&config, &public_url), Clock::system(), cookies, secrets, feed)
        .await
        .map_err(|error| Failure::Boot(format!("The catalogue cannot be loaded: {error}")))?;
    if let Some(admin) = &config.admin {
        bootstrap(&app, admin).await?;
    }
    let program =
        std::env::current_exe().map_err(|error| Failure::Boot(format!("The program does not find itself: {error}.")))?;
    let runtime = Runtime::new(RuntimeSettings {
        cache_directory: data_dir.join("blocks"),
        secret: secret.into_bytes(),
        memory_bytes_max: config.block_memory_bytes,
        all_memory_bytes_max: config.blocks_memory_bytes,
        client: client.clone(),
        compiler: (program, cli::COMPILE_COMMAND),
        compile_limits: CompileLimits::default(),
    })
    .map_err(Failure::Boot)?;
    app.set_runtime(Arc::new(runtime));
    let event_settings = EventSettings {
        poll: config.events_poll,
        webhook_timeout: config.webhook_timeout,
        handler_timeout: config.action_timeout,
        client,
    };
    let background = blockbase_events::start(&app, event_settings, nudges, pump, log_lines);

    let (drain, draining) = watch::channel(false);
    let settings = rest_settings(&config, &public_url, telemetry.clone());
    let mcp = McpSettings { public_url, listen: address, trusted_origins: settings.trusted_origins.0.clone() };
    let router = blockbase_rest::router(Arc::clone(&app), settings, surfaces(&app, mcp, draining.clone()), draining);
    tracing::info!(server.address = %address, server.database = if on_sqlite { "sqlite" } else { "postgres" }, "ready");
    cli::print_line(&format!("blockbase listens on http://{address}"));

    let connections = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, router, &connections) => {}
        name = signals.next() => tracing::info!(server.signal = name, "draining"),
    }
    drop(listener);
    let _ = drain.send(true);
    background.begin_drain();
    tokio::select! {
        () = async {
            tokio::join!(connections.shutdown(), app.drain_tasks(), background.drain());
            store.close().await;
        } => {}
        () = tokio::time::sleep(DRAIN) => tracing::warn!("requests still run; they are cut off"),
        _ = signals.next() => {
            tracing::warn!("a second signal; leaving at once");
            return Ok(());
        }
    }
    if let Some(telemetry) = telemetry {
        tokio::select! {
            _ = tokio::task::spawn_blocking(move || telemetry.shutdown()) => {}
            _ = signals.next() => tracing::warn!("a second signal; leaving at once"),
        }
    }
    tracing::info!("stopped");
    Ok(())
}

async fn open_store(config: &Config, data_dir: &DataDir, feed: &Feed, nudges: &Nudges) -> Result<Store, Failure> {
    let location = match &config.database_url {
        Some(url) => Location::Postgres { url: url.clone() },
        None => Location::Sqlite { file: data_dir.join("svc.db") },
    };
    let (feed, nudges) = (feed.clone(), nudges.clone());
    let on_commit = move |commit: Commit| {
        if !commit.events.is_empty() {
            feed.publish(commit.events);
        }
        for topic in &commit.topics {
            blockbase_telemetry::event_published(topic);
        }
        nudges.committed(commit.consumers);
    };
    Store::open(location, config.database_connections_max, Arc::new(on_commit)).await.map_err(Failure::Boot)
}

/// Makes the first admin where nobody has signed up yet. Else the pair means nothing, and is not looked at.
async fn bootstrap(app: &App, admin: &AdminPair) -> Result<(), Failure> {
    if !app.is_fresh().await.map_err(|error| Failure::Boot(format!("The accounts cannot be read: {error}")))? {
        tracing::info!("there are users already; SVC_ADMIN_EMAIL and its password are ignored");
        return Ok(());
    }
    let password = admin.password().map_err(Failure::Configuration)?;
    let pair = BootstrapAdmin { email: admin.email.clone(), password };
    match app.bootstrap(pair).await {
        Ok(true) => tracing::info!("the first admin is made; sign in and claim the account (POST /api/v1/admin/claim)"),
        // Another instance was first.
        Ok(false) => {}
        Err(error) if error.cause.is_none() => return Err(Failure::Configuration(error.message)),
        Err(error) => return Err(Failure::Boot(format!("The first admin cannot be made: {error}"))),
    }
    Ok(())
}

fn addresses(config: &Config) -> AddressPolicy {
    AddressPolicy { allow_private: config.allow_private_network }
}

fn app_settings(config: &Config, public_url: &str) -> AppSettings {
    let public_host = url::Url::parse(public_url).ok().and_then(|url| url.host_str().map(str::to_owned));
    AppSettings {
        anonymous_auth: config.anonymous_auth,
        public_host: public_host.unwrap_or_else(|| "localhost".to_owned()),
        events_retention_days: config.events_retention_days,
        require_auth: config.require_auth,
        disable_signup: config.disable_signup,
        signup_role: config.signup_role.clone(),
        events_enabled: config.events_enabled,
        retry_base_ms: config.retry_base_ms,
        addresses: addresses(config),
        bulk_records_max: config.bulk_records_max,
        action_timeout_ms: u64::try_from(config.action_timeout.as_millis()).unwrap_or(u64::MAX),
    }
}

fn rest_settings(config: &Config, public_url: &str, telemetry: Option<Telemetry>) -> RestSettings {
    // The service's own origin is trusted always: what it serves itself has to work.
    let own = url::Url::parse(public_url).map(|url| url.origin().ascii_serialization());
    let origins = own.into_iter().chain(config.trusted_origins.iter().cloned()).collect();
    RestSettings {
        body_bytes_max: config.body_bytes_max,
        block_bytes_max: config.block_bytes_max,
        requests_per_minute: config.requests_per_minute,
        auth_requests_per_minute: config.auth_requests_per_minute,
        trusted_proxies: TrustedProxies(config.trusted_proxies.clone()),
        trusted_origins: TrustedOrigins(origins),
        telemetry,
    }
}

/// The surfaces beside REST.
fn surfaces(app: &Arc<App>, mcp: McpSettings, draining: watch::Receiver<bool>) -> Surfaces {
    let (graphql, mcp) = (Graphql::new(Arc::clone(app), draining.clone()), Mcp::new(Arc::clone(app), &mcp, draining));
    Surfaces {
        graphql: Arc::new(move |invoker, request| Arc::clone(&graphql).handle(invoker, request).boxed()),
        mcp: Arc::new(move |invoker, request| Arc::clone(&mcp).handle(invoker, request).boxed()),
    }
}

/// Accepts connections until it is dropped. Each connection is a task that the drain waits for.
async fn accept(listener: &TcpListener, router: axum::Router, connections: &GracefulShutdown) {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error.cause = %error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(address));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error.cause = %error, "a connection ended");
            }
        });
    }
}

/// The signals that end the server.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = tokio::signal::ctrl_c() => "SIGINT",
        }
        #[cfg(not(unix))]
        {
            let _ = tokio::signal::ctrl_c().await;
            "interrupt"
        }
    }
}
