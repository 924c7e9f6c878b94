//! The custom headers of a webhook. They are checked, stored encrypted, and shown without their values.
//!
//! A value is often a credential of the receiver, so it is treated like a secret. Nobody can read it back, and it is not sent to another
//! URL.

use std::collections::HashSet;

use blockbase_auth::{Sealed, SecretBox, Unsealed};
use blockbase_outbound::is_reserved_of_messages;
use blockbase_schema::{Code, Error, Result};
use serde_json::{Map, Value, json};

/// Replaces stored values in answers.
pub(crate) const HIDDEN: &str = "***";
const HEADERS_MAX: usize = 50;
/// The maximum number of bytes of the names and values of all headers together.
const HEADERS_BYTES_MAX: usize = 8 * 1024;
/// The number of bytes that sealing adds to a value: the nonce and the tag.
const SEAL_BYTES: usize = 40;
/// The prefix of the service's own headers.
const HEADER_PREFIX: &str = "x-svc-";

/// A stored value.
#[derive(Clone, Debug, PartialEq)]
enum Stored {
    Sealed(Sealed),
    /// An earlier version of the server stored the value unsealed. The next start seals it.
    Plain(String),
}

impl Stored {
    fn bytes(&self) -> usize {
        match self {
            Stored::Sealed(sealed) => (sealed.ciphertext.len() / 2).saturating_sub(SEAL_BYTES),
            Stored::Plain(value) => value.len(),
        }
    }
}

/// A webhook's headers as they are stored, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Headers(Vec<(String, Stored)>);

fn refused(message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field("headers")
}

/// The purpose for which a value is encrypted. It does not contain the webhook's id, because an upgrade of a block gives the declared
/// headers to the existing webhook.
fn purpose(name: &str) -> String {
    format!("webhook-header:{}", name.to_ascii_lowercase())
}

fn sealed(secrets: &SecretBox, name: &str, value: &str) -> Result<Stored> {
    secrets.seal(&purpose(name), value).map(Stored::Sealed).map_err(Error::internal)
}

impl Headers {
    /// Checks the headers of a body, and seals their values. [`HIDDEN`] keeps the value that is stored under the name.
    ///
    /// # Errors
    /// `invalid_value`, which names the header.
    pub(crate) fn seal(secrets: &SecretBox, given: &Map<String, Value>, stored: &Headers) -> Result<Headers> {
        check(given)?;
        let mut headers = Vec::with_capacity(given.len());
        for (name, value) in given {
            let value = match value.as_str().unwrap_or_default() {
                HIDDEN => stored.get(name).ok_or_else(|| {
                    refused(format!(
                        "The header `{name}` is `{HIDDEN}`, which keeps a stored value, but no value is stored. Send the value."
                    ))
                })?,
                value => sealed(secrets, name, value)?,
            };
            headers.push((name.clone(), value));
        }
        let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.bytes()).sum();
        match headers.len() <= HEADERS_MAX && bytes <= HEADERS_BYTES_MAX {
            true => Ok(Headers(headers)),
            false => Err(refused(format!("There can be at most {HEADERS_MAX} headers with {HEADERS_BYTES_MAX} bytes in total."))),
        }
    }

    /// The stored value of a header. The case of the name does not matter.
    fn get(&self, name: &str) -> Option<Stored> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the stored JSON text.
    pub(crate) fn read(text: &str) -> Result<Headers> {
        let stored: Map<String, Value> = serde_json::from_str(text).map_err(Error::internal)?;
        let headers = stored.into_iter().map(|(name, value)| {
            let text = |key: &str| value[key].as_str().map(str::to_owned);
            let value = match (value.as_str(), text("keyId"), text("ciphertext")) {
                (Some(plain), _, _) => Stored::Plain(plain.to_owned()),
                (None, Some(key_id), Some(ciphertext)) => Stored::Sealed(Sealed { key_id, ciphertext }),
                _ => return Err(Error::internal("a stored header of a webhook is neither text nor an encrypted value")),
            };
            Ok((name, value))
        });
        headers.collect::<Result<_>>().map(Headers)
    }

    /// The JSON text for the database: `{ <name>: { keyId, ciphertext } }`.
    pub(crate) fn text(&self) -> String {
        let stored = self.0.iter().map(|(name, value)| {
            let value = match value {
                Stored::Sealed(sealed) => json!({ "keyId": sealed.key_id, "ciphertext": sealed.ciphertext }),
                Stored::Plain(value) => json!(value),
            };
            (name.clone(), value)
        });
        Value::Object(stored.collect()).to_string()
    }

    /// Whether a value is stored unsealed.
    pub(crate) fn has_plain(&self) -> bool {
        self.0.iter().any(|(_, value)| matches!(value, Stored::Plain(_)))
    }

    /// The same headers with every value sealed. `None` if all were already sealed.
    pub(crate) fn sealed_anew(&self, secrets: &SecretBox) -> Result<Option<Headers>> {
        if !self.has_plain() {
            return Ok(None);
        }
        let headers = self.0.iter().map(|(name, value)| match value {
            Stored::Plain(value) => Ok((name.clone(), sealed(secrets, name, value)?)),
            Stored::Sealed(_) => Ok((name.clone(), value.clone())),
        });
        headers.collect::<Result<_>>().map(Headers).map(Some)
    }

    /// The names of the headers, each with [`HIDDEN`] as its value.
    pub(crate) fn shown(&self) -> Value {
        Value::Object(self.0.iter().map(|(name, _)| (name.clone(), json!(HIDDEN))).collect())
    }

    /// The names and values of the headers, for sending.
    ///
    /// # Errors
    /// A sentence for readers of the ledger, if a value was stored under another master secret.
    pub(crate) fn open(&self, secrets: &SecretBox) -> std::result::Result<Vec<(String, String)>, String> {
        let open = |(name, value): &(String, Stored)| {
            let value = match value {
                Stored::Plain(value) => value.clone(),
                Stored::Sealed(sealed) => secrets.open(&purpose(name), sealed).map_err(|problem| match problem {
                    Unsealed::OtherKey => {
                        format!("the header `{name}` was stored under another SVC_SECRET; send `headers` again")
                    }
                    Unsealed::Broken => format!("the stored header `{name}` cannot be read; send `headers` again"),
                })?,
            };
            Ok((name.clone(), value))
        };
        self.0.iter().map(open).collect()
    }
}

fn check(headers: &Map<String, Value>) -> Result<()> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let mut seen = HashSet::new();
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(refused(format!("{name:?} is not a valid name of a header.")));
        }
        if is_reserved_of_messages(&lower) || lower.starts_with(HEADER_PREFIX) {
            return Err(refused(format!("The header `{name}` is set by the service and cannot be given.")));
        }
        if !seen.insert(lower) {
            return Err(refused(format!("The header `{name}` occurs twice. Names that differ only in case are the same.")));
        }
        let is_value = |text: &str| text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 127));
        if !value.as_str().is_some_and(is_value) {
            return Err(refused(format!("The value of the header `{name}` must be text without control characters.")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(headers: Value) -> Map<String, Value> {
        headers.as_object().cloned().expect("an object")
    }

    #[test]
    fn values_are_sealed_hidden_and_kept() {
        let secrets = SecretBox::new(b"a master secret of some length").expect("a box");
        let body = given(json!({ "Authorization": "Bearer secret-value", "X-A": "b" }));
        let stored = Headers::seal(&secrets, &body, &Headers::default()).expect("headers");
        assert!(!stored.text().contains("secret-value"), "{}", stored.text());
        assert_eq!(stored.shown(), json!({ "Authorization": "***", "X-A": "***" }));
        let read = Headers::read(&stored.text()).expect("headers");
        assert_eq!(read.open(&secrets).expect("values")[0].1, "Bearer secret-value");
        let kept = Headers::seal(&secrets, &given(json!({ "authorization": "***", "X-C": "d" })), &read).expect("headers");
        let opened = kept.open(&secrets).expect("values");
        let expected = [("authorization", "Bearer secret-value"), ("X-C", "d")];
        assert_eq!(opened, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let unknown = Headers::seal(&secrets, &given(json!({ "X-New": "***" })), &read).expect_err("a refusal");
        assert!(unknown.message.contains("X-New"), "{}", unknown.message);
        // The limit also counts stored values that the change keeps.
        let large = given(json!({ "A": "x".repeat(5000) }));
        let large = Headers::seal(&secrets, &large, &Headers::default()).expect("headers");
        assert!(Headers::seal(&secrets, &given(json!({ "A": "***", "B": "y".repeat(5000) })), &large).is_err());
    }

    #[test]
    fn plain_values_are_sealed_once() {
        let secrets = SecretBox::new(b"a master secret of some length").expect("a box");
        let old = Headers::read(r#"{"X-A":"plain"}"#).expect("headers");
        assert_eq!(old.open(&secrets).expect("values"), [("X-A".to_owned(), "plain".to_owned())]);
        let sealed = old.sealed_anew(&secrets).expect("a seal").expect("something to seal");
        assert!(!sealed.text().contains("plain"));
        assert_eq!(sealed.open(&secrets).expect("values")[0].1, "plain");
        assert_eq!(sealed.sealed_anew(&secrets).expect("a seal"), None);
        let other = SecretBox::new(b"another master secret of length").expect("a box");
        assert!(sealed.open(&other).expect_err("a refusal").contains("SVC_SECRET"));
    }
}
