//! The client that calls other machines.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Method, redirect};
use url::Url;

use crate::address::{AddressPolicy, Refused};
use crate::resolver::CheckedResolver;
use crate::tls;

/// The maximum number of idle connections that are kept open to one host.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// How long an idle connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// One call.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The time limit for the complete call: name resolution, connection, request and response.
    pub timeout: Duration,
    /// The maximum number of bytes of the response's body that are read.
    pub answer_bytes_max: usize,
}

/// The response to a call.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether the body is longer than the part that was read.
    pub is_cut: bool,
}

/// The reason why a call has no response.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Refused(Refused),
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The innermost cause of an error, without internal addresses.
    #[error("the call failed: {0}")]
    Broken(String),
}

/// Calls other machines. Clones are cheap, and share the open connections.
#[derive(Clone)]
pub struct Client {
    client: reqwest::Client,
    policy: AddressPolicy,
}

impl Client {
    /// # Errors
    /// A sentence for the operator, if TLS cannot be set up.
    pub fn new(policy: AddressPolicy) -> Result<Client, String> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config()?)
            .dns_resolver(Arc::new(CheckedResolver(policy)))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_idle_timeout(IDLE_MAX)
            .user_agent(concat!("Blockbase/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("The client of outbound calls cannot be made: {error}"))?;
        Ok(Client { client, policy })
    }

    pub fn policy(&self) -> AddressPolicy {
        self.policy
    }

    /// Makes a call. A response with any status is a success.
    ///
    /// # Errors
    /// [`Failure`], if the call is refused, too slow, or breaks.
    pub async fn send(&self, request: Request) -> Result<Answer, Failure> {
        // If a host is an address, the resolver does not get it. So the URL is checked first.
        self.policy.check_url(&request.url).map_err(Failure::Refused)?;
        let timeout = request.timeout;
        tokio::time::timeout(timeout, self.exchange(request)).await.map_err(|_| Failure::Timeout(timeout))?
    }

    async fn exchange(&self, request: Request) -> Result<Answer, Failure> {
        let Request { method, url, headers, body, answer_bytes_max, .. } = request;
        let sent = self.client.request(method, url).headers(headers).body(body).send().await;
        let mut response = sent.map_err(|error| failure(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut read = BytesMut::new();
        while read.len() <= answer_bytes_max
            && let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))?
        {
            read.extend_from_slice(&chunk);
        }
        let is_cut = read.len() > answer_bytes_max;
        read.truncate(answer_bytes_max);
        Ok(Answer { status, headers, body: read.freeze(), is_cut })
    }
}

/// The failure that is reported for an error. If this crate refused the call, it is that refusal. If not, it is the innermost
/// cause.
fn failure(error: &reqwest::Error) -> Failure {
    let mut innermost = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Failure::Refused(refused.clone());
        }
        innermost = error.to_string();
        cause = error.source();
    }
    Failure::Broken(if innermost.is_empty() { error.to_string() } else { innermost })
}
