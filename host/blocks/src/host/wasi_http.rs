//! `wasi:http`, which the standard libraries of guests use. Its requests go only to granted origins, through the same client as those of
//! `http`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use blockbase_outbound::{Client, Failure, Request, is_reserved};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use url::Url;
use wasmtime_wasi_http::{Error, RequestOptions, Result, WasiBody, WasiHttpHooks};

use crate::engine::executors::Executors;
use crate::engine::limits::{BODY_BYTES_MAX, LimitHit, REQUESTS_MAX, Tripped};
use crate::host::service::Service;
use crate::package::origins::check_granted;

/// The requests that a call may send, and how many it has sent.
pub(crate) struct Outgoing {
    pub(crate) client: Client,
    executors: Arc<Executors>,
    /// The service that the call acts for. `None` while a block is being installed.
    service: Option<Arc<Service>>,
    deadline: Instant,
    sent: AtomicU32,
    tripped: Tripped,
}

impl Outgoing {
    pub(crate) fn new(
        client: Client,
        executors: Arc<Executors>,
        service: Option<Arc<Service>>,
        deadline: Instant,
        tripped: Tripped,
    ) -> Outgoing {
        Outgoing { client, executors, service, deadline, sent: AtomicU32::new(0), tripped }
    }

    /// Forgets the service, because the call has ended.
    pub(crate) fn end(&mut self) {
        self.service = None;
    }

    /// Counts a request.
    pub(crate) fn count(&self) -> std::result::Result<(), LimitHit> {
        match self.sent.fetch_add(1, Ordering::Relaxed) < REQUESTS_MAX {
            true => Ok(()),
            false => Err(LimitHit::Requests),
        }
    }

    fn request(&self, parts: &http::request::Parts) -> Result<Request> {
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| Error::HttpRequestUriInvalid)?;
        if parts.method == http::Method::CONNECT || !url.username().is_empty() || url.password().is_some() {
            return Err(Error::HttpRequestDenied);
        }
        check_granted(self.service.as_ref().map_or(&[][..], |service| &service.block.manifest.permissions.http), &url)
            .map_err(|_| Error::HttpRequestDenied)?;
        let headers = parts.headers.iter().filter(|(name, _)| !is_reserved(name.as_str()));
        Ok(Request {
            method: parts.method.clone(),
            url,
            headers: headers.map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: Bytes::new(),
            // A guest may set timeouts for parts of an exchange. This timeout is for the complete exchange.
            timeout: self.deadline.saturating_duration_since(Instant::now()),
            answer_bytes_max: BODY_BYTES_MAX,
        })
    }
}

/// The response of an exchange, and the work that continues after it. There is no such work, because bodies are exchanged
/// completely.
type Sent = (http::Response<WasiBody>, Box<dyn Future<Output = Result<()>> + Send>);

impl WasiHttpHooks for Outgoing {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<()>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent>> + Send> {
        let tripped = self.tripped.clone();
        let (parts, body) = request.into_parts();
        let request = self.request(&parts).and_then(|request| match self.count() {
            Ok(()) => Ok(request),
            Err(limit) => {
                tripped.trip(limit);
                Err(Error::HttpRequestDenied)
            }
        });
        let (client, executors, service) = (self.client.clone(), Arc::clone(&self.executors), self.service.clone());
        Box::new(async move {
            let mut request = request?;
            request.body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                    tripped.trip(LimitHit::RequestBytes);
                    return Err(Error::HttpRequestBodySize(None));
                }
                Err(_) => return Err(Error::HttpProtocolError),
            };
            // The check comes after the body, because the guest may have sent the body slowly.
            if let Some(service) = service {
                service.recheck(&executors).await.map_err(|_| Error::HttpRequestDenied)?;
            }
            let sent = executors.serve(async move { client.send(request).await });
            let answer = sent.await.map_err(|failure| match failure {
                Failure::Refused(_) => Error::DestinationIpProhibited,
                Failure::Timeout(_) => Error::HttpResponseTimeout,
                Failure::Broken(why) => Error::InternalError(Some(why)),
            })?;
            if answer.is_cut {
                tripped.trip(LimitHit::AnswerBytes);
                return Err(Error::HttpResponseBodySize(None));
            }
            let body = Full::new(answer.body).map_err(Error::from).boxed_unsync();
            let mut response = http::Response::new(body);
            *response.status_mut() = http::StatusCode::from_u16(answer.status).map_err(|_| Error::HttpProtocolError)?;
            *response.headers_mut() = answer.headers;
            let nothing: Box<dyn Future<Output = Result<()>> + Send> = Box::new(async { Ok(()) });
            Ok((response, nothing))
        })
    }
}
