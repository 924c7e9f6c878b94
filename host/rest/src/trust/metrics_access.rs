//! The access to the metrics.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::schema::{Code, Error, Result};
use blockbase_telemetry::{PROMETHEUS_CONTENT_TYPE, Telemetry};
use sha2::{Digest, Sha256};

use crate::trust::host::{KnownHosts, NamedHost};

/// The metrics, and the rule about the clients that may see them.
#[derive(Clone)]
pub struct Metrics {
    pub telemetry: Telemetry,
    pub access: MetricsAccess,
}

/// The rule of one listener.
#[derive(Clone)]
pub enum MetricsAccess {
    /// Clients that send this bearer token.
    Token(String),
    /// Clients on this machine that send no headers of a proxy. If the public URL does not lead to this machine, no client is
    /// admitted, because a proxy on this machine could make all clients look local.
    ThisMachine { public_url_is_local: bool, hosts: KnownHosts },
    /// All clients of the metrics' own listener, which is not on loopback.
    Anybody,
}

impl MetricsAccess {
    fn check(&self, uri: &Uri, peer: SocketAddr, headers: &HeaderMap) -> Result<()> {
        match self {
            MetricsAccess::Anybody => Ok(()),
            MetricsAccess::Token(token) => {
                let sent = headers.get(header::AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
                let sent = sent.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
                // Hashes are compared, so that the time of the comparison reveals nothing about the token.
                match sent.is_some_and(|(_, sent)| Sha256::digest(sent.trim_ascii()) == Sha256::digest(token)) {
                    true => Ok(()),
                    false => {
                        Err(Error::new(Code::Unauthorized, "Send the token of SVC_METRICS_TOKEN as `Authorization: Bearer …`."))
                    }
                }
            }
            MetricsAccess::ThisMachine { public_url_is_local, hosts } => {
                let is_forwarded = headers.keys().any(|name| name == "forwarded" || name.as_str().starts_with("x-forwarded-"));
                let is_here = *public_url_is_local && peer.ip().to_canonical().is_loopback() && !is_forwarded;
                let is_known = NamedHost::of(uri, headers).is_ok_and(|host| hosts.check(&host).is_ok());
                // Scripts of web pages in a browser on this machine also send requests from this machine.
                match is_here && is_known && !headers.contains_key(header::ORIGIN) {
                    true => Ok(()),
                    false => Err(Error::new(
                        Code::Forbidden,
                        "Metrics are shown only to clients on this machine. Set SVC_METRICS_TOKEN or SVC_METRICS_LISTEN to \
                        scrape them from elsewhere.",
                    )),
                }
            }
        }
    }
}

impl Metrics {
    pub(crate) async fn answer(&self, uri: &Uri, peer: SocketAddr, headers: &HeaderMap) -> Result<Response> {
        self.access.check(uri, peer, headers)?;
        let telemetry = self.telemetry.clone();
        // Writing thousands of series takes some time.
        let text = tokio::task::spawn_blocking(move || telemetry.render_prometheus()).await.map_err(Error::internal)?;
        let text = text.map_err(Error::internal)?;
        Ok(([(header::CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE)], text).into_response())
    }
}
