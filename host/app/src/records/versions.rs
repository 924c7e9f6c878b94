//! Versions of records, from which ETags are made, and the conditions of writes on the state of a record.

use blockbase_auth::{EtagKey, RecordVersion};
use blockbase_schema::{Code, Error, Hint, Object, Result};
use blockbase_store::Record;
use uuid::Uuid;

use crate::App;

/// One record as JSON, and its version.
#[derive(Debug)]
pub struct RecordAnswer {
    pub json: Vec<u8>,
    pub version: RecordVersion,
}

/// The state in which a record has to be before a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The record may be in any state.
    Exists,
    /// The record has to be in the state with this ETag, which includes its quotes.
    Etag(String),
}

impl Condition {
    /// Reads one strong ETag with its quotes, or `*`.
    ///
    /// # Errors
    /// The reason, in words that complete a sentence, for example "it is empty".
    pub fn parse(value: &str) -> Result<Condition, &'static str> {
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match quoted {
            _ if value == "*" => Ok(Condition::Exists),
            _ if value.is_empty() => Err("it is empty"),
            _ if value.starts_with("W/") => Err("it is a weak ETag, but a change needs a strong one"),
            Some("") => Err("its ETag is empty"),
            Some(inner) if !inner.contains(['"', ' ', '\t']) => Ok(Condition::Etag(value.to_owned())),
            _ if value.contains(',') => Err("it is a list"),
            _ => Err("it is not an ETag in quotes"),
        }
    }
}

impl App {
    /// The strong ETag of a state of a record, with its quotes.
    pub fn etag(&self, version: &RecordVersion) -> String {
        self.etags.etag(version)
    }
}

impl RecordAnswer {
    /// The answer with a record that a statement returned.
    pub(crate) fn new(object: &Object, id: Uuid, record: Record) -> Result<RecordAnswer> {
        let version = version_of(object, id, record.version()?);
        Ok(RecordAnswer { json: record.into_json(), version })
    }
}

pub(crate) fn version_of(object: &Object, id: Uuid, version: i64) -> RecordVersion {
    RecordVersion { object: (object.id, object.revision), id: id.into_bytes(), version }
}

/// Checks that a record is in the state that a write requires. The transaction has locked the record. If the condition is an
/// ETag, returns the version, which the statement compares once more.
///
/// # Errors
/// `precondition_failed`.
pub(crate) fn check_condition(
    etags: &EtagKey,
    condition: Option<&Condition>,
    object: &Object,
    id: Uuid,
    record: &Record,
) -> Result<Option<i64>> {
    let Some(Condition::Etag(expected)) = condition else { return Ok(None) };
    let version = record.version()?;
    match etags.etag(&version_of(object, id, version)) == *expected {
        true => Ok(Some(version)),
        false => Err(precondition_failed()),
    }
}

pub(crate) fn precondition_failed() -> Error {
    Error::new(Code::PreconditionFailed, "The record was changed meanwhile.").with_hint(Hint::ReadAgain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_strong_etag_or_a_star_is_taken() {
        assert_eq!(Condition::parse("*"), Ok(Condition::Exists));
        for good in ["\"a\"", "\"Wm_-0\"", "\"a,b\""] {
            assert_eq!(Condition::parse(good), Ok(Condition::Etag(good.to_owned())), "{good}");
        }
        for bad in [
            "",
            "a",
            "\"",
            "\"\"",
            "\"a",
            "a\"",
            "W/\"a\"",
            "\"a\", \"b\"",
            "\"a\",\"b\"",
            "*, *",
            "\"a\" \"b\"",
            "\"a b\"",
            "**",
        ] {
            assert!(Condition::parse(bad).is_err(), "{bad}");
        }
    }
}
