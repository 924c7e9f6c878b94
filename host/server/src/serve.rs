//! `blockbase serve`: boots, serves, drains.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use blockbase_app::{App, BootstrapAdmin, Clock, Feed, FeedPump, Settings as AppSettings};
use blockbase_auth::{CookieSigner, EtagKey, SecretBox};
use blockbase_blocks::{CompileLimits, Runtime, RuntimeSettings};
use blockbase_console::Console;
use blockbase_events::{Background, Settings as EventSettings, Wakeups};
use blockbase_graphql::Graphql;
use blockbase_mcp::Mcp;
use blockbase_outbound::{AddressPolicy, Client};
use blockbase_rest::{
    KnownHosts, Metrics, MetricsAccess, Rest, Settings as RestSettings, Stopping, Surfaces, TrustedOrigins, TrustedProxies,
};
use blockbase_store::{BlockLogRow, Commit, Location, Store};
use blockbase_telemetry::Telemetry;
use futures_util::FutureExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

use crate::config::{AdminPair, Config, SetupToken};
use crate::connection::{ACCEPT_PAUSE, Connections, HEAD_TIMEOUT, HeadTimer, Watched};
use crate::data_dir::{DataDir, Unusable};
#[cfg(unix)]
use crate::operator_socket::OperatorSocket;
use crate::output::print_line;
use crate::secret::LoadedSecret;
use crate::{secret, telemetry};

/// The hidden command that compiles one component. The server starts itself with it.
pub(crate) const COMPILE_COMMAND: &str = "compile-component";

/// How long running requests may continue when the server drains.
const DRAIN: Duration = Duration::from_secs(10);

/// The reason why the server did not start or has ended: an exit code, and a line for the operator.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is wrong. The exit code is 2.
    Configuration(String),
    /// Something else is wrong. The exit code is 1.
    Boot(String),
}

/// Runs the server until it gets the signal to stop.
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
    // The exit does not wait for work on blocking threads.
    runtime.shutdown_background();
    outcome
}

/// Raises the process's limit of open files to its maximum. Each stream needs an open file, and the default of a shell is low.
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
    if !config.telemetry && (config.metrics_token.is_some() || config.metrics_listen.is_some()) {
        tracing::warn!("SVC_METRICS_TOKEN or SVC_METRICS_LISTEN is set, but there are no metrics without SVC_TELEMETRY=true");
    }
    if config.public_url.is_none() && config.mail.is_some() {
        tracing::warn!("SVC_PUBLIC_URL is not set, so links in mail lead to the address that this server listens on");
    }
    if config.otlp.is_ignored {
        tracing::warn!("an OTLP endpoint is set, but nothing is exported without SVC_TELEMETRY=true");
    }
}

async fn run(config: Config, telemetry: Option<Telemetry>) -> Result<(), Failure> {
    let mut signals = Signals::new().map_err(|error| Failure::Boot(format!("Signals cannot be handled: {error}.")))?;
    // Variables are dropped in the reverse order of their declaration, so the data directory stays locked until the end.
    let (_data_dir, service) = start(&config, telemetry.clone()).await?;
    let connections = GracefulShutdown::new();
    let served = service.serve_requests(&config, &connections, &mut signals).await;
    let drained = match served {
        Ok(()) => service.close(connections, &mut signals).await,
        Err(SecondSignal) => Err(SecondSignal),
    };
    if let Err(SecondSignal) = drained {
        tracing::warn!("a second signal; leaving at once");
        return Ok(());
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

/// A running service, and the listeners that it accepts connections on.
struct Service {
    app: Arc<App>,
    store: Store,
    background: Background,
    listeners: Listeners,
    #[cfg(unix)]
    operators: OperatorSocket,
    /// Tells the surfaces that the server is about to drain.
    leave: watch::Sender<bool>,
    /// Tells the surfaces that the server drains.
    drain: watch::Sender<bool>,
}

/// The listeners on the network, each with its routes.
struct Listeners {
    requests: (TcpListener, axum::Router),
    metrics: Option<(TcpListener, axum::Router)>,
}

/// The operator sent a second signal, so the server leaves at once.
struct SecondSignal;

/// Starts the service on the database of a configuration. The listeners accept no connections yet.
async fn start(config: &Config, telemetry: Option<Telemetry>) -> Result<(DataDir, Service), Failure> {
    let opened = open(config).await?;
    let setup_token = setup_token(config, &opened).await?;
    let (listener, address) = bind("SVC_LISTEN", config.listen).await?;
    let addresses = Addresses::new(config, address);
    let (app, log_lines) = start_app(config, &opened, &addresses, setup_token.clone()).await?;
    let Opened { data_dir, store, secret, pump, wakeups, .. } = opened;
    let client = Client::new(address_policy(config)).map_err(Failure::Boot)?;
    if let Some(admin) = &config.admin {
        bootstrap(&app, admin).await?;
    }
    let is_fresh = app.is_fresh().await.map_err(unreadable)?;
    if is_fresh {
        tell_who_is_first(config, address, &addresses.public_url, setup_token.as_deref());
    }
    start_blocks(config, &app, &data_dir, secret, client.clone())?;
    let background = blockbase_events::start(&app, event_settings(config, client), wakeups, pump, log_lines);

    let ((leave, leaving), (drain, draining)) = (watch::channel(false), watch::channel(false));
    let metrics = listen_for_scrapes(config, telemetry.clone()).await?;
    let surfaces = surfaces(&app, Console::new().map_err(Failure::Boot)?, draining.clone());
    let settings = rest_settings(config, &addresses, telemetry);
    let rest = Rest::new(Arc::clone(&app), settings, surfaces, Stopping { leaving, draining });
    let listeners = Listeners { requests: (listener, rest.router()), metrics };
    let on_sqlite = config.database_url.is_none();
    #[cfg(unix)]
    let operators = OperatorSocket::bind(on_sqlite.then_some(&data_dir), rest.operator_router());
    tracing::info!(server.address = %address, server.database = if on_sqlite { "sqlite" } else { "postgres" }, "ready");
    print_line(&format!("blockbase listens on http://{address}"));
    print_line(&format!("The console is at {}", addresses.console_url));
    if is_fresh {
        print_line(&first_steps(config, setup_token.as_deref()));
    }
    let service = Service {
        app,
        store,
        background,
        listeners,
        #[cfg(unix)]
        operators,
        leave,
        drain,
    };
    Ok((data_dir, service))
}

/// Makes the runtime of blocks, and gives it to the operations.
fn start_blocks(config: &Config, app: &Arc<App>, data_dir: &DataDir, secret: String, client: Client) -> Result<(), Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::Boot(format!("The program does not find itself: {error}.")))?;
    let settings = RuntimeSettings {
        cache_directory: data_dir.join("blocks"),
        secret: secret.into_bytes(),
        memory_bytes_max: config.block_memory_bytes,
        all_memory_bytes_max: config.blocks_memory_bytes,
        resident_bytes: config.block_resident_bytes,
        client,
        compiler: (program, COMPILE_COMMAND),
        compile_limits: CompileLimits::default(),
    };
    let runtime = Runtime::new(settings, Arc::downgrade(app)).map_err(Failure::Boot)?;
    app.set_runtime(Arc::new(runtime));
    Ok(())
}

fn event_settings(config: &Config, client: Client) -> EventSettings {
    EventSettings {
        poll: config.events_poll,
        webhook_timeout: config.webhook_timeout,
        handler_timeout: config.action_timeout,
        client,
        mailer: config.mail.as_ref().map(|mail| Arc::clone(&mail.mailer)),
    }
}

/// The listener of the metrics, if they have their own.
async fn listen_for_scrapes(
    config: &Config,
    telemetry: Option<Telemetry>,
) -> Result<Option<(TcpListener, axum::Router)>, Failure> {
    let Some((wanted, telemetry)) = config.metrics_listen.filter(|_| config.telemetry).zip(telemetry) else { return Ok(None) };
    let (listener, address) = bind("SVC_METRICS_LISTEN", wanted).await?;
    tracing::info!(server.metrics_address = %address, "metrics have a listener of their own");
    Ok(Some((listener, blockbase_rest::metrics_router(own_metrics(config, address, telemetry)))))
}

impl Service {
    /// Serves requests until a signal. After it, the server still serves requests for some time, in which a load balancer notices
    /// that the server is no longer ready.
    async fn serve_requests(
        &self,
        config: &Config,
        connections: &GracefulShutdown,
        signals: &mut Signals,
    ) -> Result<(), SecondSignal> {
        let (listener, router) = &self.listeners.requests;
        let proxies = TrustedProxies(config.trusted_proxies.clone());
        let limits = Connections::new(config.connections_of_an_address_max, move |address| proxies.trusts(address));
        // The limits are separate, so that many clients cannot block scrapes.
        let scrape_limits = Connections::new(config.connections_of_an_address_max, |_| false);
        let mut scrapes = Box::pin(async {
            match &self.listeners.metrics {
                Some((listener, router)) => accept(listener, router.clone(), &scrape_limits, connections).await,
                None => std::future::pending().await,
            }
        });
        #[cfg(unix)]
        let mut commands = Box::pin(self.operators.accept(connections));
        #[cfg(not(unix))]
        let mut commands = Box::pin(std::future::pending::<()>());
        tokio::select! {
            () = accept(listener, router.clone(), &limits, connections) => {}
            () = &mut scrapes => {}
            () = &mut commands => {}
            name = signals.next() => tracing::info!(server.signal = name, "draining"),
        }
        let _ = self.leave.send(true);
        tokio::select! {
            () = accept(listener, router.clone(), &limits, connections) => {}
            () = &mut scrapes => {}
            () = &mut commands => {}
            () = tokio::time::sleep(config.drain_delay) => {}
            _ = signals.next() => return Err(SecondSignal),
        }
        Ok(())
    }

    /// Closes all listeners, lets running requests and background work end, and closes the database.
    async fn close(self, connections: GracefulShutdown, signals: &mut Signals) -> Result<(), SecondSignal> {
        let Service { app, store, background, listeners, drain, .. } = self;
        drop(listeners);
        // A command that comes now fails at once. If the socket stayed open, the command would wait for the end of the drain.
        #[cfg(unix)]
        drop(self.operators);
        let _ = drain.send(true);
        background.begin_drain();
        tokio::select! {
            () = async {
                tokio::join!(connections.shutdown(), app.drain_tasks(), background.drain());
                store.close().await;
            } => {}
            () = tokio::time::sleep(DRAIN) => tracing::warn!("requests still run; they are cut off"),
            _ = signals.next() => return Err(SecondSignal),
        }
        Ok(())
    }
}

/// The database of a configuration, and the things that belong to it. Commands that open the database themselves need it too.
pub(crate) struct Opened {
    data_dir: DataDir,
    pub(crate) store: Store,
    feed: Feed,
    pump: FeedPump,
    wakeups: Wakeups,
    secret: String,
    secrets: SecretBox,
}

/// Opens the data directory and the database.
pub(crate) async fn open(config: &Config) -> Result<Opened, Failure> {
    if let Some(url) = &config.database_url {
        Location::check_url(url).map_err(Failure::Configuration)?;
    }
    let data_dir = DataDir::open(&config.data_dir, config.database_url.is_none()).map_err(|unusable| match unusable {
        Unusable::OpenToOthers(why) => Failure::Configuration(why),
        Unusable::Other(why) => Failure::Boot(why),
    })?;
    let secret_file = data_dir.join("svc.secret");
    let kept = match &config.secret {
        Some(secret) => LoadedSecret { secret: secret.clone(), is_new: false },
        None => secret::load_or_generate(&secret_file).map_err(Failure::Boot)?,
    };
    let (feed, pump) = Feed::new();
    let wakeups = Wakeups::default();
    let store = open_store(config, &data_dir, &feed, &wakeups).await?;
    let secrets = SecretBox::new(kept.secret.as_bytes()).map_err(Failure::Boot)?;
    if !blockbase_app::secret_opens(&store, &secrets).await.map_err(unreadable)? {
        if kept.is_new {
            // The database was made with another secret. So the generated secret must not take its place.
            let _ = std::fs::remove_file(&secret_file);
        }
        return Err(Failure::Configuration(wrong_secret(config.secret.is_some(), &secret_file)));
    }
    Ok(Opened { data_dir, store, feed, pump, wakeups, secret: kept.secret, secrets })
}

async fn setup_token(config: &Config, opened: &Opened) -> Result<Option<String>, Failure> {
    Ok(match &config.setup_token {
        Some(SetupToken::Auto) => {
            let database_id = blockbase_app::database_id(&opened.store).await.map_err(unreadable)?;
            Some(blockbase_auth::setup_token(opened.secret.as_bytes(), &database_id).map_err(Failure::Boot)?)
        }
        Some(SetupToken::Value(token)) => Some(token.clone()),
        None => None,
    })
}

/// The addresses at which the service can be reached.
struct Addresses {
    /// The address of the listener.
    listener: SocketAddr,
    public_url: String,
    /// The console's URL, for people.
    console_url: String,
}

impl Addresses {
    fn new(config: &Config, listener: SocketAddr) -> Addresses {
        let public_url = config.public_url.as_ref().map_or_else(|| format!("http://{listener}"), |url| url.to_string());
        let console_url = console_address(config, listener, &public_url);
        Addresses { listener, public_url, console_url }
    }
}

/// The operations on an open database, without a runtime for blocks.
async fn start_app(
    config: &Config,
    opened: &Opened,
    addresses: &Addresses,
    setup_token: Option<String>,
) -> Result<(Arc<App>, mpsc::Receiver<BlockLogRow>), Failure> {
    let secret = opened.secret.as_bytes();
    let cookies = CookieSigner::new(secret, addresses.public_url.starts_with("https:")).map_err(Failure::Boot)?;
    let etags = EtagKey::new(secret).map_err(Failure::Boot)?;
    let settings = app_settings(config, addresses, setup_token);
    let (store, secrets, feed) = (opened.store.clone(), opened.secrets.clone(), opened.feed.clone());
    App::new(store, settings, Clock::system(), cookies, secrets, etags, feed)
        .await
        .map_err(|error| Failure::Boot(format!("The catalogue cannot be loaded: {error}")))
}

/// The operations on accounts for a command that has opened the database itself, without a server.
pub(crate) struct Standalone {
    pub(crate) router: axum::Router,
    pub(crate) store: Store,
    /// The locked data directory.
    _data_dir: DataDir,
    /// The senders are kept so that the service does not stop before the command ends.
    _stops: [watch::Sender<bool>; 2],
}

/// Opens the database for a command.
pub(crate) async fn standalone(config: &Config) -> Result<Standalone, Failure> {
    let opened = open(config).await?;
    let addresses = Addresses::new(config, config.listen);
    let (app, _) = start_app(config, &opened, &addresses, None).await?;
    let ((leave, leaving), (drain, draining)) = (watch::channel(false), watch::channel(false));
    let surfaces = surfaces(&app, Console::new().map_err(Failure::Boot)?, draining.clone());
    let rest = Rest::new(app, rest_settings(config, &addresses, None), surfaces, Stopping { leaving, draining });
    let Opened { data_dir, store, .. } = opened;
    Ok(Standalone { router: rest.operator_router(), store, _data_dir: data_dir, _stops: [leave, drain] })
}

async fn open_store(config: &Config, data_dir: &DataDir, feed: &Feed, wakeups: &Wakeups) -> Result<Store, Failure> {
    let location = match &config.database_url {
        Some(url) => Location::Postgres { url: url.clone() },
        None => Location::Sqlite { file: data_dir.join("svc.db") },
    };
    let (feed, wakeups) = (feed.clone(), wakeups.clone());
    let on_commit = move |commit: Commit| {
        // Only commits of SQLite have events here. This code runs on SQLite's writer thread, which may block. On Postgres, every
        // instance reads the events from the outbox.
        if !commit.events.is_empty() {
            feed.publish_blocking(commit.events);
        }
        for topic in &commit.topics {
            blockbase_telemetry::event_published(topic);
        }
        wakeups.committed(commit.consumers);
    };
    Store::open(location, config.database_connections_max, Arc::new(on_commit)).await.map_err(Failure::Boot)
}

/// A listener and its actual address. With port 0, the system chooses a free port.
async fn bind(variable: &str, wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(wanted)
        .await
        .map_err(|error| Failure::Boot(format!("{variable}: {wanted} cannot be listened on: {error}.")))?;
    let address = listener.local_addr().map_err(|error| Failure::Boot(error.to_string()))?;
    Ok((listener, address))
}

fn unreadable(error: blockbase_schema::Error) -> Failure {
    Failure::Boot(format!("The database cannot be read: {error}"))
}

/// The message if the secrets in the database were sealed with another master secret.
fn wrong_secret(is_configured: bool, file: &std::path::Path) -> String {
    let (which, what_to_do) = match is_configured {
        true => ("SVC_SECRET".to_owned(), "Set SVC_SECRET to the one that it was made with".to_owned()),
        false => {
            let what_to_do = format!("Copy the secret that it was made with to {}, or set it as SVC_SECRET", file.display());
            ("This server's secret".to_owned(), what_to_do)
        }
    };
    format!("{which} does not open the secrets that are stored in this database: it was made with another one. {what_to_do}.")
}

/// Reports who may make the first account, which becomes admin. It does so only while no account exists.
fn tell_who_is_first(config: &Config, address: SocketAddr, public_url: &str, setup_token: Option<&str>) {
    let is_local = url::Url::parse(public_url).is_ok_and(|url| blockbase_rest::is_loopback_url(&url));
    match (&config.setup_token, setup_token) {
        (Some(SetupToken::Auto), Some(token)) => {
            tracing::info!("nobody has signed up yet; the first sign-up needs the header `x-setup-token: {token}`");
        }
        (Some(_), _) => tracing::info!("nobody has signed up yet; the first sign-up needs the token of SVC_SETUP_TOKEN"),
        (None, _) if !address.ip().is_loopback() || !is_local => tracing::warn!(
            "NOBODY HAS SIGNED UP YET. The first account becomes admin, and others may reach this server. Sign up now, or set \
             SVC_SETUP_TOKEN=auto or SVC_ADMIN_EMAIL."
        ),
        (None, _) => {}
    }
}

/// The address of the console, for people. A browser cannot open the unspecified address, so `localhost` replaces it.
fn console_address(config: &Config, address: SocketAddr, public_url: &str) -> String {
    let base = match config.public_url {
        None if address.ip().is_unspecified() => format!("http://localhost:{}", address.port()),
        _ => public_url.trim_end_matches('/').to_owned(),
    };
    format!("{base}{}", blockbase_console::PATH)
}

/// The message for people while no account exists.
fn first_steps(config: &Config, setup_token: Option<&str>) -> String {
    let token = match (&config.setup_token, setup_token) {
        (Some(SetupToken::Auto), Some(token)) => format!(" Its sign-up needs this setup token: {token}"),
        (Some(_), _) => " Its sign-up needs the setup token that SVC_SETUP_TOKEN is set to.".to_owned(),
        (None, _) => String::new(),
    };
    format!("Nobody has signed up yet. The first account becomes admin.{token}")
}

/// Makes the first admin if no account exists. If one exists, the email address and the password are ignored.
async fn bootstrap(app: &App, admin: &AdminPair) -> Result<(), Failure> {
    if !app.is_fresh().await.map_err(|error| Failure::Boot(format!("The accounts cannot be read: {error}")))? {
        tracing::info!("there are users already; SVC_ADMIN_EMAIL and its password are ignored");
        return Ok(());
    }
    let password = admin.password().map_err(Failure::Configuration)?;
    let pair = BootstrapAdmin { email: admin.email.clone(), password, password_variable: admin.password_variable() };
    match app.bootstrap(pair).await {
        Ok(true) => tracing::info!("the first admin is made; sign in and claim the account (POST /api/v1/admin/claim)"),
        // Another instance made the account first.
        Ok(false) => {}
        Err(error) if error.cause.is_none() => return Err(Failure::Configuration(error.message)),
        Err(error) => return Err(Failure::Boot(format!("The first admin cannot be made: {error}"))),
    }
    Ok(())
}

fn address_policy(config: &Config) -> AddressPolicy {
    AddressPolicy { allow_private: config.allow_private_network }
}

/// The maximum size of the outbox in bytes, if no setting gives it and the size of the disk is unknown, as with Postgres.
const OUTBOX_BYTES_DEFAULT: i64 = 10 << 30;
/// The outbox may take one fifth of the disk that contains SQLite's file.
const OUTBOX_DISK_SHARE: u64 = 5;

fn outbox_bytes_max(config: &Config) -> i64 {
    #[cfg(unix)]
    if config.database_url.is_none()
        && let Ok(disk) = rustix::fs::statvfs(&config.data_dir)
    {
        let bytes = disk.f_blocks.saturating_mul(disk.f_frsize) / OUTBOX_DISK_SHARE;
        return i64::try_from(bytes).unwrap_or(i64::MAX);
    }
    OUTBOX_BYTES_DEFAULT
}

fn app_settings(config: &Config, addresses: &Addresses, setup_token: Option<String>) -> AppSettings {
    let Addresses { public_url, console_url, .. } = addresses;
    let public_host = url::Url::parse(public_url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let events_bytes_max = config.events_bytes_max.unwrap_or_else(|| outbox_bytes_max(config));
    let effective = [
        ("SVC_PUBLIC_URL", public_url.clone()),
        ("SVC_EVENTS_MAX_BYTES", events_bytes_max.to_string()),
        ("SVC_DISABLE_SIGNUP", config.disable_signup.to_string()),
    ];
    AppSettings {
        listed: config.listed(&effective).into(),
        anonymous_auth: config.anonymous_auth,
        public_host: public_host.unwrap_or_else(|| "localhost".to_owned()),
        set_password_url: format!("{console_url}{}", blockbase_console::SET_PASSWORD),
        mail_link: blockbase_rest::mail_links(
            console_url.strip_suffix(blockbase_console::PATH).unwrap_or(public_url).to_owned(),
            format!("{console_url}{}", blockbase_console::SET_PASSWORD),
        ),
        mail: config.mail.as_ref().map(|mail| Arc::clone(&mail.texts)),
        require_email_verification: config.require_email_verification,
        breached_passwords: config.breached_passwords.clone(),
        mails_of_network_max: config.mails_of_network_max,
        delete_user: config.delete_user,
        events_retention_days: config.events_retention_days,
        audit_retention_days: config.audit_retention_days,
        events_bytes_max,
        require_auth: config.require_auth,
        disable_signup: config.disable_signup,
        setup_token,
        signup_role: config.signup_role.clone(),
        events_enabled: config.events_enabled,
        retry_base_ms: config.retry_base_ms,
        addresses: address_policy(config),
        text_bytes_max: config.text_bytes_max,
        body_bytes_max: config.body_bytes_max,
        answer_bytes_max: config.answer_bytes_max,
        bulk_records_max: config.bulk_records_max,
        streams_of_one_max: config.streams_of_one_max,
        spool_directory: config.data_dir.clone(),
        action_timeout_ms: u64::try_from(config.action_timeout.as_millis()).unwrap_or(u64::MAX),
    }
}

fn rest_settings(config: &Config, addresses: &Addresses, telemetry: Option<Telemetry>) -> RestSettings {
    let (address, public_url) = (addresses.listener, addresses.public_url.as_str());
    let hosts = KnownHosts::new(public_url, address, &config.trusted_origins);
    let access = match &config.metrics_token {
        Some(token) => MetricsAccess::Token(token.clone()),
        None => {
            let public_url_is_local = url::Url::parse(public_url).is_ok_and(|url| blockbase_rest::is_loopback_url(&url));
            MetricsAccess::ThisMachine { public_url_is_local, hosts: hosts.clone() }
        }
    };
    // If the metrics have their own listener, this one does not serve them.
    let telemetry = telemetry.filter(|_| config.metrics_listen.is_none());
    RestSettings {
        body_bytes_max: config.body_bytes_max,
        block_bytes_max: config.block_bytes_max,
        requests_per_minute: config.requests_per_minute,
        auth_requests_per_minute: config.auth_requests_per_minute,
        trusted_proxies: TrustedProxies(config.trusted_proxies.clone()),
        trusted_origins: TrustedOrigins::new(public_url, address, &config.trusted_origins),
        hosts,
        is_https: public_url.starts_with("https:"),
        metrics: telemetry.map(|telemetry| Metrics { telemetry, access }),
        log_requests: config.log_requests,
    }
}

/// The clients that may read the metrics on their own listener. If there is a token, these are the clients that send it. If not,
/// these are all clients of the listener.
fn own_metrics(config: &Config, address: SocketAddr, telemetry: Telemetry) -> Metrics {
    let access = match &config.metrics_token {
        Some(token) => MetricsAccess::Token(token.clone()),
        None if address.ip().is_loopback() => MetricsAccess::ThisMachine {
            public_url_is_local: true,
            hosts: KnownHosts::new(&format!("http://{address}"), address, &[]),
        },
        None => MetricsAccess::Anybody,
    };
    Metrics { telemetry, access }
}

/// The surfaces besides REST.
fn surfaces(app: &Arc<App>, console: Console, draining: watch::Receiver<bool>) -> Surfaces {
    let (graphql, mcp) = (Graphql::new(Arc::clone(app), draining.clone()), Mcp::new(Arc::clone(app), draining));
    Surfaces {
        console: Arc::new(move |path, headers| console.answer(path, headers)),
        graphql: Arc::new(move |invoker, request| Arc::clone(&graphql).handle(invoker, request).boxed()),
        mcp: Arc::new(move |invoker, request| Arc::clone(&mcp).handle(invoker, request).boxed()),
    }
}

/// Accepts connections until it is dropped. Each connection is a task, and the drain waits for these tasks. If an address has too
/// many connections, a new one is closed at once.
async fn accept(listener: &TcpListener, router: axum::Router, limits: &Connections, connections: &GracefulShutdown) {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error.cause = %error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = limits.place(address) else {
            tracing::debug!(client.address = %address, "the address has as many connections as it may have");
            continue;
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(address));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(HeadTimer::default())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(Watched::new(stream)), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            let _place = place;
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
