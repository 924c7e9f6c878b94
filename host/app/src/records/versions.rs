//! Versions of records: what an ETag is made of, and writes that name the state which they are meant for.

use blockbase_auth::{EtagKey, RecordVersion};
use blockbase_schema::{Code, Error, Object, Result};
use blockbase_store::Record;
use uuid::Uuid;

use crate::App;

/// One record as JSON, and which state of it that is.
#[derive(Debug)]
pub struct RecordAnswer {
    pub json: Vec<u8>,
    pub version: RecordVersion,
}

/// The state that a record has to be in for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Any at all.
    Exists,
    /// The one that this ETag is of, with its quotes.
    Etag(String),
}

impl App {
    /// The strong ETag of a state of a record, with its quotes.
    pub fn etag(&self, version: &RecordVersion) -> String {
        self.etags.etag(version)
    }
}

impl RecordAnswer {
    /// A record as a statement answered with it.
    pub(crate) fn new(object: &Object, id: Uuid, record: Record) -> Result<RecordAnswer> {
        let version = version_of(object, id, record.version()?);
        Ok(RecordAnswer { json: record.into_json(), version })
    }
}

pub(crate) fn version_of(object: &Object, id: Uuid, version: i64) -> RecordVersion {
    RecordVersion { object: (object.id, object.revision), id: id.into_bytes(), version }
}

/// Makes sure that a record is in the state which a write is meant for. The transaction holds the record. Answers the version
/// for the statement to compare once more, where there is a condition.
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
    Error::new(
        Code::PreconditionFailed,
        "The record is no longer what the ETag says: it was changed meanwhile. Read it again, and send its new ETag with your change.",
    )
}
