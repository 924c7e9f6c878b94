//! `http`: complete requests to the granted origins.

use blockbase_app::schema::{Code, Error};
use blockbase_outbound::{Failure, Request, is_reserved};
use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

use super::guest_error;
use crate::engine::limits::{BODY_BYTES_MAX, LimitHit};
use crate::host::bindings::blockbase::block::http::{Host, Request as GuestRequest, Response};
use crate::host::bindings::blockbase::block::types;
use crate::host::call::CallState;
use crate::package::origins::check_granted;

/// The maximum number of bytes of the names and values of a request's headers together.
const HEADERS_BYTES_MAX: usize = 64 * 1024;

fn refused(message: impl Into<String>) -> Error {
    Error::invalid_request(message)
}

/// The request as it will be sent, after all checks.
fn checked(request: GuestRequest, granted: &[String], remaining: Duration) -> Result<Request, Error> {
    let url = Url::parse(&request.url).map_err(|error| refused(format!("`url` is not an absolute URL: {error}.")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("`url` carries a name or password; use the header `authorization`."));
    }
    check_granted(granted, &url)?;
    let method = Method::from_bytes(request.method.as_bytes())
        .ok()
        .filter(|method| *method != Method::CONNECT)
        .ok_or_else(|| refused(format!("The method {:?} cannot be used.", request.method)))?;
    let mut headers = HeaderMap::new();
    let mut bytes = 0;
    let too_many = || refused(format!("The headers of a request have {HEADERS_BYTES_MAX} bytes at most."));
    for (name, value) in request.headers {
        bytes += name.len() + value.len();
        // This check comes before the header is stored, because a map of headers has limited room.
        if bytes > HEADERS_BYTES_MAX {
            return Err(too_many());
        }
        let header =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused(format!("{name:?} is not a valid name of a header.")))?;
        if is_reserved(header.as_str()) {
            return Err(refused(format!("The header `{header}` is set by the service and cannot be given.")));
        }
        let value = HeaderValue::from_bytes(&value)
            .map_err(|_| refused(format!("The value of the header `{header}` holds control characters.")))?;
        headers.try_append(header, value).map_err(|_| too_many())?;
    }
    let timeout = request.timeout_ms.map_or(remaining, |timeout| remaining.min(Duration::from_millis(timeout.into())));
    let body = Bytes::from(request.body.unwrap_or_default());
    Ok(Request { method, url, headers, body, timeout, answer_bytes_max: BODY_BYTES_MAX })
}

fn failed(failure: Failure) -> Error {
    let code = match failure {
        Failure::Refused(_) => Code::Forbidden,
        Failure::Timeout(_) | Failure::Broken(_) => Code::Unavailable,
    };
    Error::new(code, format!("The request was not answered: {failure}."))
}

impl Host for CallState {
    async fn send(&mut self, request: GuestRequest) -> wasmtime::Result<Result<Response, types::Error>> {
        self.count_host_call()?;
        if request.body.as_ref().is_some_and(|body| body.len() > BODY_BYTES_MAX) {
            return Err(LimitHit::RequestBytes.into());
        }
        let Some(service) = &self.service else {
            let message = "There is no network while a block is being installed.";
            return Ok(Err(guest_error(Error::new(Code::Unavailable, message))));
        };
        let request = match checked(request, &service.block.manifest.permissions.http, self.remaining()) {
            Ok(request) => request,
            Err(error) => return Ok(Err(guest_error(error))),
        };
        if let Err(error) = service.recheck(&self.executors).await {
            return Ok(Err(guest_error(error)));
        }
        self.outgoing.count()?;
        let (client, executors) = (self.outgoing.client.clone(), Arc::clone(&self.executors));
        let answer = match executors.serve(async move { client.send(request).await }).await {
            Ok(answer) => answer,
            Err(failure) => return Ok(Err(guest_error(failed(failure)))),
        };
        if answer.is_cut {
            return Err(LimitHit::AnswerBytes.into());
        }
        let headers = answer.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect();
        Ok(Ok(Response { status: answer.status, headers, body: answer.body.to_vec() }))
    }
}
