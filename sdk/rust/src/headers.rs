//! The headers and bodies that requests and responses share.

use serde::de::DeserializeOwned;

use crate::Error;

/// Headers: names with their values, which may be any bytes.
pub(crate) type Headers = Vec<(String, Vec<u8>)>;

/// The first header with a name, ignoring case.
pub(crate) fn bytes<'a>(headers: &'a Headers, name: &str) -> Option<&'a [u8]> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
}

/// The same header as text. `None` if it is not UTF-8.
pub(crate) fn text<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    std::str::from_utf8(bytes(headers, name)?).ok()
}

pub(crate) fn body_text(body: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(body).map_err(|_| Error::invalid_request("The body is not UTF-8."))
}

pub(crate) fn body_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::invalid_request(format!("The body is not the JSON that was expected: {error}.")))
}

/// Sets a header, and replaces an existing one with the same name.
pub(crate) fn set(headers: &mut Headers, name: &str, value: &[u8]) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    headers.push((name.to_owned(), value.to_vec()));
}
