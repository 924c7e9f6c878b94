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
