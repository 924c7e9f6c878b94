//! Requests that were checked against the schema, with columns instead of names, and values instead of text.

mod list;
mod names;
mod selection;
mod write;

use std::sync::Arc;

use blockbase_schema::{Error, Object, Result};

use crate::access::{Access, Scope};

pub use list::ListPlan;
pub use names::{NamePlan, names};
pub(crate) use selection::predicate;
pub use selection::{Comparison, Predicate, SearchBy, Selection, Test};
pub use write::{Assignment, Change, CreatePlan, LinkPlan, Stamp, UpdatePlan, UpsertPlan, search_document, write_record};

/// One record by id, read or deleted.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    pub object: Arc<Object>,
    pub scope: Scope,
    pub id: uuid::Uuid,
}

impl RecordPlan {
    pub fn new(object: &Arc<Object>, access: &Access, id: uuid::Uuid) -> RecordPlan {
        RecordPlan { object: Arc::clone(object), scope: access.scope().clone(), id }
    }
}

pub(crate) fn column_index(object: &Object, name: &str) -> Result<usize> {
    object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))
}
