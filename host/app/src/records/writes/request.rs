//! One write, as a caller requests it.

use blockbase_schema::json::Members;

use crate::records::links::LinkChange;
use crate::records::versions::Condition;

#[derive(Clone, Debug)]
pub(super) enum WriteRequest {
    Create { object: String, values: Members },
    Update { object: String, id: String, changes: Members, condition: Option<Condition> },
    Upsert { object: String, values: Members, target: Vec<String> },
    Delete { object: String, id: String, condition: Option<Condition> },
    Links { object: String, id: String, relation: String, ids: Vec<String>, change: LinkChange },
}

impl WriteRequest {
    pub(super) fn object(&self) -> &str {
        match self {
            WriteRequest::Create { object, .. }
            | WriteRequest::Update { object, .. }
            | WriteRequest::Upsert { object, .. }
            | WriteRequest::Delete { object, .. }
            | WriteRequest::Links { object, .. } => object,
        }
    }

    /// The values that the caller sends for a record.
    pub(super) fn values(&self) -> Option<&Members> {
        match self {
            WriteRequest::Create { values, .. } | WriteRequest::Upsert { values, .. } => Some(values),
            WriteRequest::Update { changes, .. } => Some(changes),
            WriteRequest::Delete { .. } | WriteRequest::Links { .. } => None,
        }
    }

    /// The number of bytes of the values, or of the ids of links.
    pub(super) fn bytes(&self) -> usize {
        match self {
            WriteRequest::Links { ids, .. } => ids.iter().map(String::len).sum(),
            _ => self.values().map_or(0, Members::bytes),
        }
    }
}
