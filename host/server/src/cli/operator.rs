//! The operations on accounts for the operator of this machine. They need no key. A command connects to a running server through
//! the socket in the data directory. If no server runs there, or the database is Postgres, the command opens the database itself,
//! with the settings of the server.

use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{Method, Request, Response};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;
use url::Url;

use super::Problem;
use super::client::{Identity, Reply, runtime};
use crate::config::Config;
use crate::serve::{Standalone, standalone};

/// The maximum number of bytes of a response body that are read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The file of SQLite in the data directory.
const DATABASE_FILE: &str = "svc.db";

/// The settings that these commands share with the server.
pub(super) const SETTINGS_HELP: &str = "\
It works on the server of this machine and needs no key. It reads the server's settings: run it as the server's user, with the same
SVC_DATA_DIR, or with the same SVC_DATABASE_URL and SVC_SECRET. If it opens the database itself, as always on Postgres, it needs
the same SVC_PUBLIC_URL for links, SVC_SIGNUP_ROLE and SVC_BREACHED_PASSWORDS too. The server may run meanwhile.";

/// The connection to the operations.
pub(super) struct Operator {
    runtime: Runtime,
    way: Way,
}

enum Way {
    /// A running server, through its socket.
    #[cfg(unix)]
    Server(std::path::PathBuf),
    Database(Box<Standalone>),
}

impl Operator {
    /// Finds the server, or opens the database. `may_create` tells whether to make a database if there is none.
    fn open(may_create: bool) -> Result<Operator, Problem> {
        let config = Config::from_env().map_err(Problem::Usage)?;
        let runtime = runtime()?;
        if config.database_url.is_none() {
            #[cfg(unix)]
            {
                let socket = config.data_dir.join(crate::operator_socket::FILE);
                if runtime.block_on(tokio::net::UnixStream::connect(&socket)).is_ok() {
                    return Ok(Operator { runtime, way: Way::Server(socket) });
                }
            }
            if !may_create && !config.data_dir.join(DATABASE_FILE).exists() {
                return Err(Problem::Failed(format!(
                    "There is no database in {}. Run this command where the server runs, or set SVC_DATA_DIR to its data directory.",
                    config.data_dir.display()
                )));
            }
        }
        let standalone = runtime.block_on(standalone(&config))?;
        Ok(Operator { runtime, way: Way::Database(Box::new(standalone)) })
    }

    /// Runs a command, and then closes the database.
    pub(super) fn run<T>(may_create: bool, command: impl FnOnce(&Operator) -> Result<T, Problem>) -> Result<T, Problem> {
        let operator = Operator::open(may_create)?;
        let outcome = command(&operator);
        if let Way::Database(standalone) = &operator.way {
            operator.runtime.block_on(standalone.store.close());
        }
        outcome
    }

    pub(super) fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Problem> {
        self.send(Method::GET, path, query, None)?.expect()
    }

    /// Sends a change. The answer is null if the response has no body.
    pub(super) fn change(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        let reply = self.send(method, path, query, body)?;
        match reply.is_success() && reply.body.is_empty() {
            true => Ok(Value::Null),
            false => reply.expect(),
        }
    }

    /// Sends a request to `/api/v1/<path>`.
    fn send(&self, method: Method, path: &[&str], query: &[(&str, &str)], body: Option<&Value>) -> Result<Reply, Problem> {
        let mut url = Url::parse("http://localhost").map_err(|error| error.to_string())?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let content = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder().method(method).uri(target).header(HOST, "localhost");
        let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(content));
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix numbers its users"))]
        let mut request = request.map_err(|error| error.to_string())?;
        #[cfg(unix)]
        request.extensions_mut().insert(blockbase_rest::OperatorUid(rustix::process::getuid().as_raw()));
        let answered = async {
            let response: Response<Body> = match &self.way {
                #[cfg(unix)]
                Way::Server(socket) => through(socket, request).await?,
                Way::Database(standalone) => match standalone.router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                },
            };
            let (head, body) = response.into_parts();
            let body = to_bytes(body, ANSWER_BYTES_MAX).await.map_err(|error| format!("The answer cannot be read: {error}."))?;
            Ok::<_, String>(Reply { status: head.status.as_u16(), body, url, identity: Identity::Operator })
        };
        Ok(self.runtime.block_on(answered)?)
    }
}

/// Sends a request through a server's socket. Each request has its own connection.
#[cfg(unix)]
async fn through(socket: &std::path::Path, request: Request<Body>) -> Result<Response<Body>, String> {
    let lost = |error: &dyn std::error::Error| format!("The server at {} cannot be reached: {error}.", socket.display());
    let stream = tokio::net::UnixStream::connect(socket).await.map_err(|error| lost(&error))?;
    let handshake = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| lost(&error))?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| lost(&error))?;
    Ok(response.map(Body::new))
}
