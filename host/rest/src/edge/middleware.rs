//! Code that runs around every request: its id, its client's address, rate limits, checks of host and origin, and one log line.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use blockbase_app::schema::{Code, Error};
use blockbase_app::{PrincipalSlot, RenewalSlot, Renewed};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Ready, ready};
use tower::{Layer, Service};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tracing::level_filters::LevelFilter;
use tracing::{Instrument, Level, Span};
use uuid::Uuid;

use crate::AppState;
use crate::answer::auth::{refusal, show_token};
use crate::answer::error::unhandled;
use crate::edge::drain_body::drain_on_drop;
use crate::edge::observe::Observed;
use crate::edge::responses::counted;
use crate::edge::security_headers;
use crate::paths::{is_file, is_health, is_probe};
use crate::request::extract::{RequestInfo, VIEW_AS};
use crate::trust::host::{HostProblem, NamedHost};
use crate::trust::origin::{OriginProblem, TrustedOrigins};

/// Response headers that scripts of other origins may read.
const EXPOSED: [&str; 7] =
    ["set-auth-token", "x-request-id", "retry-after", "x-retry-after", "etag", "mcp-session-id", "content-disposition"];
/// The header with the id of a request, on the request and on its response.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How long a browser may keep the response to a preflight.
const PREFLIGHT_KEPT: Duration = Duration::from_secs(600);

/// The outermost layer: the request's id and client address, the renewed session, and one log line.
///
/// This layer and [`Admit`] are services of their own. `axum::middleware::from_fn` would put what is within it into new boxes for
/// every request.
#[derive(Clone)]
pub(crate) struct Around(pub(crate) AppState);

impl<S> Layer<S> for Around {
    type Service = AroundService<S>;

    fn layer(&self, inner: S) -> AroundService<S> {
        AroundService { state: self.0.clone(), inner }
    }
}

/// The service of [`Around`].
#[derive(Clone)]
pub(crate) struct AroundService<S> {
    state: AppState,
    inner: S,
}

impl<S> Service<Request> for AroundService<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    /// The service inside is ready now, so it is called at once. To call it later, each request would need a clone of it.
    fn call(&mut self, request: Request) -> Self::Future {
        let state = self.state.clone();
        let (arrived, request) = Arrived::begin(&state, request);
        let called = arrived.inside(|| arrived.call(&state, &mut self.inner, request));
        Box::pin(async move {
            let response = arrived.response(called).await;
            Ok(arrived.end(&state, response))
        })
    }
}

/// A request from its arrival to its response.
struct Arrived {
    begun: Instant,
    method: Method,
    path: String,
    route: Option<MatchedPath>,
    info: RequestInfo,
    observed: Observed,
    span: Span,
}

impl Arrived {
    fn begin(state: &AppState, request: Request) -> (Arrived, Request) {
        let begun = Instant::now();
        let mut request = request.map(drain_on_drop);
        let request_id: Arc<str> = sane_request_id(request.headers()).unwrap_or_else(new_request_id);
        let socket = request
            .extensions()
            .get::<ConnectInfo<SocketAddr>>()
            .map_or(SocketAddr::from(([127, 0, 0, 1], 0)), |ConnectInfo(address)| *address);
        let address = state.settings.trusted_proxies.client(socket, request.headers());
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let info = RequestInfo {
            request_id,
            address,
            renewal: RenewalSlot::listening(),
            quota: Arc::default(),
            principal: if may_log(state) { PrincipalSlot::listening() } else { PrincipalSlot::default() },
        };
        let route = request.extensions().get::<MatchedPath>().cloned();
        request.extensions_mut().insert(info.clone());
        let observed = Observed::begin(&request, &info);
        let span = observed.span().in_scope(|| tracing::info_span!("request", request.id = %info.request_id));
        (Arrived { begun, method, path, route, info, observed, span }, request)
    }

    /// Runs a part of the request inside its spans.
    fn inside<T>(&self, part: impl FnOnce() -> T) -> T {
        self.observed.span().in_scope(|| self.span.in_scope(part))
    }

    /// Calls the service inside. Returns its future, or the response if there is none.
    fn call<S: Service<Request>>(&self, state: &AppState, inner: &mut S, request: Request) -> Result<S::Future, Box<Response>> {
        // Preflights are counted here, because another layer answers them before the requests are counted.
        if self.method == Method::OPTIONS {
            state.limits.admit(self.info.address, &self.path)?;
        }
        catch_unwind(AssertUnwindSafe(|| inner.call(request))).map_err(|_| Box::new(self.panicked()))
    }

    /// The response, when the future of the service inside has it.
    async fn response<F>(&self, called: Result<F, Box<Response>>) -> Response
    where
        F: Future<Output = Result<Response, Infallible>>,
    {
        let answered = async {
            let future = match called {
                Ok(future) => future,
                Err(response) => return *response,
            };
            match AssertUnwindSafe(future).catch_unwind().await {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_) => self.panicked(),
            }
        };
        answered.instrument(self.span.clone()).instrument(self.observed.span().clone()).await
    }

    /// A panic in a handler becomes a 500 of that request only.
    fn panicked(&self) -> Response {
        unhandled(&self.path, Error::internal("a handler panicked"))
    }

    /// Completes the response, and logs it.
    fn end(self, state: &AppState, mut response: Response) -> Response {
        let Arrived { begun, method, path, route, info, observed, span } = self;
        if let Some(renewed) = info.renewal.renewed() {
            tell_of_renewal(state, response.headers_mut(), renewed);
        }
        if let Ok(value) = HeaderValue::from_str(&info.request_id) {
            response.headers_mut().insert(&REQUEST_ID, value);
        }
        if *state.leaving.borrow() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        security_headers::add_headers(&path, state.settings.is_https, response.headers_mut());
        if may_log(state) && !is_probe(&path) {
            let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
            let (status, time) = (response.status().as_u16(), begun.elapsed());
            span.in_scope(|| log_request(&method, route, status, time, &info));
        }
        if path.starts_with("/api/") {
            state.app.count_answer(response.status().is_server_error());
        }
        observed.answered(&response, begun.elapsed());
        // The console's files exist only once in memory, no matter how many clients read them. So they need no count.
        match is_file(&path) {
            true => response,
            false => counted(response, state.app.response_bytes(), || info.quota_owner()),
        }
    }
}

/// Whether the log may show a line for each request. It does not if it shows only warnings or errors.
fn may_log(state: &AppState) -> bool {
    state.settings.log_requests && Level::INFO <= LevelFilter::current()
}

/// The route that the log shows if no route matches. The path itself is not logged, because it may contain anything.
const NO_ROUTE: &str = "none";

/// Logs one line for a request. It has the route's pattern, not the path, because paths and queries contain what people wrote.
fn log_request(method: &Method, route: &str, status: u16, time: Duration, info: &RequestInfo) {
    // A client can invent any method.
    let method = if method.as_str().len() > METHOD_CHARS_MAX { "other" } else { method.as_str() };
    tracing::info!(
        http.method = method,
        http.route = route,
        http.status = status,
        http.time_ms = time.as_micros() as f64 / 1000.0,
        principal = info.principal.shown(),
        "answered"
    );
}

/// The maximum length of a method that the log shows, in characters.
const METHOD_CHARS_MAX: usize = 16;

/// Returns a renewed session's token to the client, unless the response already sets a session cookie.
fn tell_of_renewal(state: &AppState, headers: &mut HeaderMap, renewed: &Renewed) {
    if headers.contains_key(header::SET_COOKIE) {
        return;
    }
    if renewed.by_cookie
        && let Ok(cookie) = HeaderValue::from_str(&state.app.cookies().set_cookie(&renewed.token, true))
    {
        headers.insert(header::SET_COOKIE, cookie);
    }
    show_token(headers, &renewed.token);
}

/// The innermost layer: lets the request in, or returns the refusal.
#[derive(Clone)]
pub(crate) struct Admit(pub(crate) AppState);

impl<S> Layer<S> for Admit {
    type Service = AdmitService<S>;

    fn layer(&self, inner: S) -> AdmitService<S> {
        AdmitService { state: self.0.clone(), inner }
    }
}

/// The service of [`Admit`].
#[derive(Clone)]
pub(crate) struct AdmitService<S> {
    state: AppState,
    inner: S,
}

impl<S> Service<Request> for AdmitService<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let info = request.extensions().get::<RequestInfo>();
        let address = info.map_or(IpAddr::from([127, 0, 0, 1]), |info| info.address);
        match check(&self.state, address, &request) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(refused) => Either::Right(ready(Ok(*refused))),
        }
    }
}

/// The CORS rules: what scripts of trusted origins may do.
pub(crate) fn cors(origins: &TrustedOrigins) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    // The layer is cloned for every request. A list of origins would be copied each time, and a predicate is shared.
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| origins.contains(origin)))
        .allow_credentials(true)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED.map(HeaderName::from_static))
        .max_age(PREFLIGHT_KEPT)
}

/// Checks rate limits, host and origin before anything is read or looked up. All surfaces share these checks.
fn check(state: &AppState, address: IpAddr, request: &Request) -> Result<(), Box<Response>> {
    let (path, headers) = (request.uri().path(), request.headers());
    if *request.method() != Method::OPTIONS {
        state.limits.admit(address, path)?;
    }
    // Load balancers request these paths with any host name, or without one, because HTTP/1.0 has no `Host`.
    if is_health(path) {
        return Ok(());
    }
    let hosts = &state.settings.hosts;
    let usual = hosts.usual(request.uri(), headers);
    let host = match usual {
        Some(host) => Cow::Borrowed(host),
        None => Cow::Owned(NamedHost::of(request.uri(), headers).map_err(|problem| refused_host(path, problem))?),
    };
    // Requests for metrics have their own rule.
    if is_probe(path) {
        return Ok(());
    }
    if usual.is_none() {
        hosts.check(&host).map_err(|problem| refused_host(path, problem))?;
    }
    check_view_as(request.method(), path, headers).map_err(|error| Box::new(unhandled(path, error)))?;
    // A hook ignores sessions. So a page of a third party may call it, because it cannot misuse the session of a browser.
    if path.starts_with("/api/v1/hooks/") {
        return Ok(());
    }
    state.settings.trusted_origins.check(request.method(), &host, headers).map_err(|problem| {
        let (code, message) = match problem {
            OriginProblem::Untrusted(origin) => (
                "INVALID_ORIGIN",
                format!(
                    "The request comes from {origin:?}, an origin that is not trusted. SVC_TRUSTED_ORIGINS lists further ones."
                ),
            ),
            OriginProblem::Missing => {
                ("MISSING_OR_NULL_ORIGIN", "A write with a cookie needs an Origin or Referer header.".to_owned())
            }
        };
        Box::new(refusal(StatusCode::FORBIDDEN, code, &message))
    })
}

/// Checks the header for viewing as a role. Only requests that read from the API may have it. Hooks and sign-in ignore it,
/// because requests to hooks belong to blocks.
fn check_view_as(method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Error> {
    let is_known = path.starts_with("/api/v1/") && !path.starts_with("/api/v1/hooks/");
    let mut values = headers.get_all(VIEW_AS).iter().filter(|_| is_known);
    let Some(value) = values.next() else { return Ok(()) };
    // No route has another method, so such a request gets 405 with or without the header.
    if ![Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS].contains(method) {
        return Ok(());
    }
    let is_query = *method == Method::POST && path.starts_with("/api/v1/data/") && path.ends_with("/query");
    if *method != Method::GET && !is_query {
        return Err(Error::invalid_request(
            "`x-svc-view-as` works with GET requests and with POST /api/v1/data/:object/query. Leave it out of requests that \
            change something.",
        ));
    }
    if path == "/api/v1/mcp" {
        return Err(Error::invalid_request("`x-svc-view-as` works with REST and with GraphQL by GET, but not with MCP."));
    }
    let is_role = value.to_str().is_ok_and(|role| !role.trim().is_empty());
    match is_role && values.next().is_none() {
        true => Ok(()),
        false => Err(Error::invalid_request("`x-svc-view-as` needs the id of one role.")),
    }
}

fn refused_host(path: &str, problem: HostProblem) -> Box<Response> {
    let error = match problem {
        HostProblem::Malformed => {
            Error::invalid_request("The request needs one Host header: a name or an address, and the port if the URL has one.")
        }
        HostProblem::Unknown(host) => Error::new(
            Code::Forbidden,
            format!(
                "The header Host is {host:?}, which is not a name of this server. SVC_PUBLIC_URL sets the server's name, and \
                SVC_TRUSTED_ORIGINS lists further names."
            ),
        ),
    };
    Box::new(unhandled(path, error))
}

/// The maximum length of a request id that is taken from a caller, in characters.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// The request id that the caller sent, if it has no characters that could disturb a log.
fn sane_request_id(headers: &HeaderMap) -> Option<Arc<str>> {
    let id = headers.get(&REQUEST_ID)?.to_str().ok()?;
    let sane = !id.is_empty()
        && id.len() <= REQUEST_ID_CHARS_MAX
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'));
    sane.then(|| id.into())
}

fn new_request_id() -> Arc<str> {
    let mut text = Uuid::encode_buffer();
    let id: &str = Uuid::new_v4().hyphenated().encode_lower(&mut text);
    id.into()
}
