//! The socket in the data directory, through which commands of the operator connect to this server. A client of the socket has
//! all rights on accounts. So only the user of this process and root can connect.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use axum::body::Body;
use blockbase_rest::OperatorUid;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::UnixListener;
use tower::ServiceExt;

use crate::connection::{ACCEPT_PAUSE, HEAD_TIMEOUT};
use crate::data_dir::DataDir;

/// The name of the socket in the data directory.
pub(crate) const FILE: &str = "svc.sock";

/// The socket of a server, and the routes behind it.
pub(crate) struct OperatorSocket {
    listener: Option<UnixListener>,
    router: axum::Router,
}

impl OperatorSocket {
    /// Makes the socket. The directory is locked, so no other process uses an older socket in it.
    ///
    /// If the socket cannot be made, the server runs without it. For example, the path of a socket can have only about 100 bytes.
    pub(crate) fn bind(data_dir: Option<&DataDir>, router: axum::Router) -> OperatorSocket {
        let bind = |path: &Path| {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        let listener = data_dir.map(|data_dir| data_dir.join(FILE)).and_then(|path| match bind(&path) {
            Ok(listener) => Some(listener),
            Err(error) => {
                let path = path.display();
                tracing::warn!(error.cause = %error, "commands like `blockbase user` cannot reach this server: {path} cannot be made");
                None
            }
        });
        OperatorSocket { listener, router }
    }

    /// Accepts the connections of this process's user and of root, until it is dropped.
    pub(crate) async fn accept(&self, connections: &GracefulShutdown) {
        let Some(listener) = &self.listener else { return std::future::pending().await };
        let own = rustix::process::geteuid().as_raw();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(error.cause = %error, "a connection to the operator's socket could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let uid = match stream.peer_cred().map(|peer| peer.uid()) {
                Ok(uid) if uid == own || uid == 0 => uid,
                peer => {
                    tracing::warn!(?peer, "a connection to the operator's socket is not from this user");
                    continue;
                }
            };
            let router = self.router.clone();
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(OperatorUid(uid));
                router.clone().oneshot(request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connections.watch(connection));
        }
    }
}
