//! Requests of third parties, and a hook's responses to them.
//!
//! A hook checks by itself who is calling. It verifies the signature over [`Request::body`] with the module `signature` and a secret of
//! [`secrets`](crate::secrets).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::exports::blockbase::block::hooks as wit;
use crate::headers::{self, Headers};

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method in upper case.
    pub method: String,
    /// The path.
    pub path: String,
    /// The text after the `?`, still encoded.
    pub query: String,
    /// The headers in their order.
    pub headers: Headers,
    /// The body, byte for byte as it was sent. Signatures are computed from these bytes.
    pub body: Vec<u8>,
    /// The caller's IP address.
    pub remote_address: String,
}

impl Request {
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
        headers::body_text(&self.body)
    }

    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        headers::body_json(&self.body)
    }

    /// The decoded pairs of the query, in their order.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(name, value)| (decode(name), decode(value))).collect()
    }

    /// The first value of a name in the query.
    pub fn query_value(&self, name: &str) -> Option<String> {
        self.query_pairs().into_iter().find_map(|(known, value)| (known == name).then_some(value))
    }
}

/// Decodes the text of a form. `+` is a space, `%` begins a byte in hexadecimal, and any other character stays.
fn decode(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).map(|digit| digit as u8);
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        place += 1;
        decoded.push(match (byte, digit(bytes.get(place)), digit(bytes.get(place + 1))) {
            (b'%', Some(high), Some(low)) => {
                place += 2;
                high << 4 | low
            }
            (b'+', ..) => b' ',
            (byte, ..) => *byte,
        });
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The response of a hook.
///
/// ```
/// # use blockbase_sdk::hooks::Response;
/// let accepted = Response::text("Thank you.").with_status(202).with_header("retry-after", "60");
/// # assert_eq!(accepted.status, 202);
/// ```
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
    /// A response with a status and without a body.
    pub fn status(status: u16) -> Response {
        Response { status, headers: Headers::new(), body: Vec::new() }
    }

    /// A response with status 200 and text.
    pub fn text(text: impl Into<String>) -> Response {
        Response::status(200).with_header("content-type", "text/plain; charset=utf-8").with_body(text.into())
    }

    /// A response with status 200 and JSON.
    pub fn json(value: &impl Serialize) -> Result<Response, Error> {
        Ok(Response::status(200).with_header("content-type", "application/json").with_body(serde_json::to_vec(value)?))
    }

    /// Sets another status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Response {
        self.status = status;
        self
    }

    /// Sets a header, and replaces an existing one with the same name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Response {
        headers::set(&mut self.headers, name, value.as_ref());
        self
    }

    /// Sets another body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Response {
        self.body = body.into();
        self
    }
}

/// The values that a hook may return. `None` and `()` send 200 with `{ "received": true }`.
#[diagnostic::on_unimplemented(
    message = "a hook does not answer with `{Self}`",
    note = "a hook returns `Result` of `Option<Response>`, `Response` or `()`"
)]
pub trait Answer {
    /// The response, if there is one.
    fn into_response(self) -> Option<Response>;
}

impl Answer for () {
    fn into_response(self) -> Option<Response> {
        None
    }
}

impl Answer for Response {
    fn into_response(self) -> Option<Response> {
        Some(self)
    }
}

impl Answer for Option<Response> {
    fn into_response(self) -> Option<Response> {
        self
    }
}

impl From<wit::Request> for Request {
    fn from(request: wit::Request) -> Self {
        let wit::Request { method, path, query, headers, body, remote_address } = request;
        Request { method, path, query, headers, body, remote_address }
    }
}

impl From<Response> for wit::Response {
    fn from(response: Response) -> Self {
        wit::Response { status: response.status, headers: response.headers, body: response.body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str) -> Request {
        Request {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            query: query.to_owned(),
            headers: vec![("X-Signature".to_owned(), b"abc".to_vec()), ("x-raw".to_owned(), vec![255])],
            body: br#"{"a":1}"#.to_vec(),
            remote_address: "127.0.0.1".to_owned(),
        }
    }

    #[test]
    fn a_query_is_decoded_as_forms_are() {
        let pairs = request("a=1&b=x+y%20z&&c&d=%C3%B6&e=50%").query_pairs();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "x y z"), ("c", ""), ("d", "ö"), ("e", "50%")]);
        assert_eq!(request("a=1&a=2").query_value("a").as_deref(), Some("1"));
    }

    #[test]
    fn headers_are_found_whatever_their_case() {
        let request = request("");
        assert_eq!(request.header("x-signature"), Some("abc"));
        assert_eq!((request.header("x-raw"), request.header_bytes("X-Raw")), (None, Some(&[255_u8][..])));
        assert_eq!(request.json::<serde_json::Value>().expect("JSON")["a"], 1);
        assert_eq!(request.json::<String>().expect_err("no string").code, "invalid_request");
    }
}
