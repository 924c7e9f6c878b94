//! A message as it was received. Only the parts that routing needs are read, and the values of a tool's arguments stay text.

use std::borrow::Cow;

use blockbase_app::schema::json::{Members, strict_from_str, write_string};
use blockbase_app::schema::{Error, excerpt_of};
use http::{HeaderMap, Uri, header};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::answer::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};

/// The maximum length of a message in bytes, without a tool's arguments. rmcp makes a tree from the message.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// The maximum length of a request's id, in bytes. It is limited because ids are kept in memory and sent back.
const ID_BYTES_MAX: usize = 1024;
/// The first version of the protocol that has no sessions.
const VERSION_WITHOUT_SESSIONS: &str = "2026-07-28";
/// The last version of the protocol that has arrays of messages.
const VERSION_WITH_BATCHES: &str = "2025-03-26";

pub(crate) const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The reason why text is not a message: a JSON-RPC code and a sentence.
pub(crate) struct Malformed {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// The request's id, if it could be read.
    pub(crate) id: Option<Box<RawValue>>,
}

/// One message.
pub(crate) struct Message {
    /// The request's id. `None` for notifications.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) method: String,
    /// The message in the form that rmcp gets. A call of a tool does not contain its arguments.
    pub(crate) text: Vec<u8>,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// The id, as text, of the request that a notification cancels.
    pub(crate) cancels: Option<String>,
}

/// Distinguishes a member that is `null` from a missing one.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Whether an id is text or a whole number of 64 bits, and not too long.
fn is_id(raw: &RawValue) -> bool {
    let text = raw.get();
    text.len() <= ID_BYTES_MAX && (text.starts_with('"') || text.parse::<i64>().is_ok())
}

impl Message {
    /// # Errors
    /// If the text is not a JSON-RPC 2.0 message, or if a call does not name a tool.
    pub(crate) fn parse(text: &str) -> Result<Message, Malformed> {
        let malformed = |code, message: String, id: Option<&RawValue>| Malformed { code, message, id: id.map(ToOwned::to_owned) };
        let envelope: Envelope<'_> = strict_from_str(text).map_err(|error| {
            let code = if error.error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
            malformed(code, format!("The body is not a message of JSON-RPC: {error}."), None)
        })?;
        let id = envelope.id.filter(|id| is_id(id));
        if envelope.id.is_some() && id.is_none() {
            let message = format!("An `id` must be text of at most {ID_BYTES_MAX} bytes, or a whole number of 64 bits.");
            return Err(malformed(INVALID_REQUEST, message, None));
        }
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(malformed(INVALID_REQUEST, "`jsonrpc` has to be \"2.0\".".to_owned(), id));
        }
        let Some(method) = envelope.method else {
            let message = "The message has no `method`. This server sends no requests that a client could answer.";
            return Err(malformed(INVALID_REQUEST, message.to_owned(), id));
        };
        if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(malformed(INVALID_REQUEST, "`params` has to be an object.".to_owned(), id));
        }
        let mut message = Message {
            id: id.map(ToOwned::to_owned),
            method: method.into_owned(),
            text: Vec::new(),
            arguments: None,
            cancels: None,
        };
        match (message.method.as_str(), envelope.params) {
            ("tools/call", params) if id.is_some() => {
                let params = params.map_or("{}", RawValue::get);
                message.take_arguments(params).map_err(|problem| malformed(INVALID_PARAMS, problem, id))?;
            }
            ("notifications/cancelled", Some(params)) => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Cancelled<'a> {
                    #[serde(borrow)]
                    request_id: &'a RawValue,
                }
                let cancelled = strict_from_str::<Cancelled<'_>>(params.get());
                message.cancels = cancelled.ok().map(|cancelled| cancelled.request_id.get().to_owned());
                message.text = text.as_bytes().to_vec();
            }
            _ => message.text = text.as_bytes().to_vec(),
        }
        if message.text.len() > MESSAGE_BYTES_MAX {
            let problem = format!("A message can have at most {MESSAGE_BYTES_MAX} bytes, without the arguments of a tool.");
            return Err(malformed(INVALID_REQUEST, problem, id));
        }
        Ok(message)
    }

    /// Removes the arguments from a call, and writes the rest as a new text.
    fn take_arguments(&mut self, params: &str) -> Result<(), String> {
        let mut params: Members =
            serde_json::from_str(params).map_err(|error| format!("`params` is not an object: {}.", excerpt_of(&error)))?;
        if let Some(place) = params.0.iter().position(|(name, _)| name == "arguments") {
            self.arguments = Some(params.0.remove(place).1);
        }
        if !params.0.iter().any(|(name, value)| name == "name" && value.get().starts_with('"')) {
            return Err("`params.name` has to be the name of a tool.".to_owned());
        }
        let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
        text.extend_from_slice(self.id.as_deref().map_or("null", RawValue::get).as_bytes());
        text.extend_from_slice(br#","method":"tools/call","params":{"#);
        for (place, (name, value)) in params.0.iter().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            write_string(&mut text, name);
            text.push(b':');
            text.extend_from_slice(value.get().as_bytes());
        }
        text.extend_from_slice(b"}}");
        self.text = text;
        Ok(())
    }
}

fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok())
}

/// Whether the request's version of the protocol has no sessions. Versions are dates.
pub(crate) fn is_without_sessions(headers: &HeaderMap) -> bool {
    version(headers).is_some_and(|version| version >= VERSION_WITHOUT_SESSIONS)
}

/// Whether the URL says that the client wants no session.
///
/// # Errors
/// `invalid_request` for an unknown value of `sessions`.
pub(crate) fn wants_no_session(address: &Uri) -> Result<bool, Error> {
    let pairs = address.query().unwrap_or_default().split('&');
    match pairs.filter_map(|pair| pair.strip_prefix("sessions=")).next_back() {
        None => Ok(false),
        Some("none") => Ok(true),
        Some(other) => Err(Error::invalid_request(format!("`sessions` must be `none` or left out. It is {other:?}."))),
    }
}

/// Whether the request's version has arrays of messages. A request without the header for the version counts as a request of the
/// last version that did not require this header.
pub(crate) fn has_batches(headers: &HeaderMap) -> bool {
    version(headers).is_none_or(|version| version <= VERSION_WITH_BATCHES)
}

/// Whether the header says that the body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()?.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether the client accepts `media_type`, by name or by a wildcard.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let kind = media_type.split('/').next().unwrap_or_default();
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(
        |entry| {
            let mut parts = entry.split(';').map(str::trim);
            let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
            let is_excluded = parts.any(|parameter| {
                let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
                weight.and_then(|weight| weight.parse::<f32>().ok()) == Some(0.0)
            });
            !is_excluded && (essence == media_type || essence == "*/*" || essence == format!("{kind}/*"))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<i32> {
        Message::parse(text).err().map(|malformed| malformed.code)
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_code() {
        assert_eq!(code("{"), Some(PARSE_ERROR));
        assert_eq!(code("7"), Some(INVALID_REQUEST));
        for bad in [
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":7}"#,
        ] {
            assert_eq!(code(bad), Some(INVALID_REQUEST), "{bad}");
        }
        let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(ID_BYTES_MAX));
        assert_eq!(code(&long), Some(INVALID_REQUEST));
        for bad in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        ] {
            assert_eq!(code(bad), Some(INVALID_PARAMS), "{bad}");
        }
    }

    #[test]
    fn arguments_stay_text_and_go_their_own_way() {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"n":1.50},"_meta":{}}}"#;
        let message = Message::parse(text).ok().expect("a message");
        assert_eq!(message.arguments.expect("arguments").get(), r#"{"n":1.50}"#);
        let rest = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{}}}"#;
        assert_eq!(String::from_utf8_lossy(&message.text), rest);
    }

    #[test]
    fn a_weight_of_zero_is_a_no() {
        let accepting = |value: &'static str, media_type: &str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, http::HeaderValue::from_static(value))]);
            accepts(&headers, media_type)
        };
        assert!(accepting("application/json, text/event-stream", "text/event-stream"));
        assert!(accepting("*/*", "text/event-stream"));
        assert!(accepting("application/*;q=0.5", "application/json"));
        assert!(!accepting("application/json;q=0, text/html", "application/json"));
    }
}
