//! Requests to other servers, at the origins in `permissions.http` of `block.json`.
//!
//! ```no_run
//! # use blockbase_sdk::{Error, http};
//! # fn rate() -> Result<f64, Error> {
//! #[derive(serde::Deserialize)]
//! struct Rate {
//!     rate: f64,
//! }
//! let rate: Rate = http::get("https://rates.example.com/eur").timeout_ms(2000).send()?.success()?.json()?;
//! # Ok(rate.rate)
//! # }
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::blockbase::block::http as wit;
use crate::headers::{self, Headers};

/// A request to send.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method in upper case.
    pub method: String,
    /// The absolute URL.
    pub url: String,
    /// The headers in their order.
    pub headers: Headers,
    /// The body, which may be any bytes.
    pub body: Option<Vec<u8>>,
    /// The time limit of the complete exchange. Without it, the limit is the rest of the call's time.
    pub timeout_ms: Option<u32>,
}

/// A GET request.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// A POST request.
pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

/// Sends a request. A response is returned even if its status is an error: see [`Response::success`].
pub fn send(request: Request) -> Result<Response, Error> {
    let Request { method, url, headers, body, timeout_ms } = request;
    let response = wit::send(&wit::Request { method, url, headers, body, timeout_ms }).map_err(Error::of_host)?;
    Ok(Response { status: response.status, headers: response.headers, body: response.body })
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &str, url: impl Into<String>) -> Request {
        Request { method: method.to_owned(), url: url.into(), headers: Headers::new(), body: None, timeout_ms: None }
    }

    /// Sets a header, and replaces an existing one with the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        headers::set(&mut self.headers, name, value.as_ref());
        self
    }

    /// Sets a token in `authorization`.
    #[must_use]
    pub fn bearer(self, token: &str) -> Request {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Sets a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// Sets a JSON body.
    pub fn json(self, value: &impl Serialize) -> Result<Request, Error> {
        Ok(self.header("content-type", "application/json").body(serde_json::to_vec(value)?))
    }

    /// Sets a time limit for the complete exchange.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Request {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Sends the request.
    pub fn send(self) -> Result<Response, Error> {
        send(self)
    }
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers in their order.
    pub headers: Headers,
    /// The body, which may be any bytes.
    pub body: Vec<u8>,
}

impl Response {
    /// Whether the status is between 200 and 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the response if its status is a success. Otherwise, returns the error `unavailable` with the status.
    pub fn success(self) -> Result<Response, Error> {
        match self.is_success() {
            true => Ok(self),
            false => Err(Error::unavailable(format!("The other server answered with the status {}.", self.status))),
        }
    }

    /// The first header with a name, ignoring case. `None` if it is not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        headers::text(&self.headers, name)
    }

    /// The first header with a name, ignoring case, byte for byte.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        headers::bytes(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> Result<&str, Error> {
        headers::body_text(&self.body).map_err(foreign)
    }

    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        headers::body_json(&self.body).map_err(foreign)
    }
}

/// An invalid body from another server is not the caller's mistake.
fn foreign(error: Error) -> Error {
    Error::failed(error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_put_together() {
        let request = post("https://a.example").header("X-A", "1").header("x-a", "2").json(&[1]).expect("JSON");
        assert_eq!((request.method.as_str(), request.body.as_deref()), ("POST", Some(&b"[1]"[..])));
        assert_eq!(
            request.headers,
            [("x-a".to_owned(), b"2".to_vec()), ("content-type".to_owned(), b"application/json".to_vec())]
        );
    }

    #[test]
    fn a_foreign_answer_that_does_not_fit_is_not_the_callers_mistake() {
        let response = Response { status: 404, headers: Headers::new(), body: b"no".to_vec() };
        assert_eq!(response.json::<u8>().expect_err("no JSON").code, "action_failed");
        assert_eq!(response.success().expect_err("no success").code, "unavailable");
    }
}
