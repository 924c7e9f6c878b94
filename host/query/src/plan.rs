//! Requests that were checked against the schema, with columns instead of names, and values instead of text.

mod list;
mod names;
mod parts;
mod selection;
mod write;

use std::sync::Arc;

use blockbase_schema::Object;

use crate::access::{Access, Scope};

pub use list::ListPlan;
pub use names::{NamePlan, names};
pub use selection::{RelatedBy, SearchBy, Selection};
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
