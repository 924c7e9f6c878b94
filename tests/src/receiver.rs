//! A receiver of webhooks. Tests let the service deliver to it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::free_port;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub at: Instant,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().expect("text")
    }

    /// The event's id.
    pub fn id(&self) -> String {
        self.header("x-svc-event-id").to_owned()
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    Status(u16),
    /// A status with a body.
    Text(u16, String),
    Redirect(String),
    /// 200 after this time.
    After(Duration),
    /// No answer.
    Hang,
}

type Script = Arc<dyn Fn(usize, &Received) -> Reply + Send + Sync>;

struct Shared {
    received: Mutex<Vec<Received>>,
    script: Mutex<Script>,
}

/// An HTTP server that keeps the requests that arrive. It ends when this is dropped.
pub struct Receiver {
    pub url: String,
    port: u16,
    shared: Arc<Shared>,
    /// The receiver has its own threads, so its open connections end with it.
    runtime: Option<Runtime>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Listens on a port.
async fn listen(port: u16, shared: Arc<Shared>) -> Runtime {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime for the receiver");
    let router = axum::Router::new().fallback(take).with_state(shared);
    let (bound, is_bound) = tokio::sync::oneshot::channel();
    runtime.spawn(async move {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let _ = bound.send(());
        axum::serve(listener, router).await.expect("a server");
    });
    is_bound.await.expect("the port is free");
    runtime
}

impl Receiver {
    /// Starts a receiver that answers 200.
    pub async fn start() -> Receiver {
        // The kernel gives this port to no other process, so the receiver can listen on it again.
        Receiver::on_port(free_port()).await
    }

    async fn on_port(port: u16) -> Receiver {
        let script: Script = Arc::new(|_, _| Reply::Status(200));
        let shared = Arc::new(Shared { received: Mutex::default(), script: Mutex::new(script) });
        let runtime = listen(port, Arc::clone(&shared)).await;
        Receiver { url: format!("http://127.0.0.1:{port}/hook"), port, shared, runtime: Some(runtime) }
    }

    /// Sets how requests are answered from now on. `script` gets the number of the request, from 0, and the request.
    pub fn answer(&self, script: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static) {
        *self.shared.script.lock().expect("no poison") = Arc::new(script);
    }

    /// Ends the receiver, like a machine that is switched off: nothing listens any more, and open connections break.
    pub async fn stop(mut self) -> u16 {
        self.go_away().await;
        self.port
    }

    /// Listens on the port of a receiver that was stopped.
    pub async fn start_again(port: u16) -> Receiver {
        Receiver::on_port(port).await
    }

    /// Does the same as `stop`, but the receiver keeps its requests and can start again.
    pub async fn go_away(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Listens again on the same port.
    pub async fn come_back(&mut self) {
        self.runtime = Some(listen(self.port, Arc::clone(&self.shared)).await);
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().expect("no poison").clone()
    }

    pub fn count(&self) -> usize {
        self.shared.received.lock().expect("no poison").len()
    }

    /// Waits until this many requests have arrived, and returns all of them.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> impl Future<Output = Vec<Received>> {
        let caller = std::panic::Location::caller();
        async move {
            let deadline = Instant::now() + crate::WAIT_MAX;
            while self.count() < count {
                assert!(Instant::now() < deadline, "{caller}: {} of {count} requests arrived", self.count());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.received()
        }
    }
}

async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let received = Received { at: Instant::now(), headers, body };
    let script = Arc::clone(&*shared.script.lock().expect("no poison"));
    let number = {
        let mut all = shared.received.lock().expect("no poison");
        all.push(received.clone());
        all.len() - 1
    };
    let status = |status: u16| StatusCode::from_u16(status).expect("a status");
    match script(number, &received) {
        Reply::Status(code) => status(code).into_response(),
        Reply::Text(code, text) => (status(code), text).into_response(),
        Reply::Redirect(to) => {
            (StatusCode::FOUND, [(header::LOCATION, HeaderValue::from_str(&to).expect("a header"))]).into_response()
        }
        Reply::After(pause) => {
            tokio::time::sleep(pause).await;
            StatusCode::OK.into_response()
        }
        Reply::Hang => std::future::pending().await,
    }
}
