//! The results of writes.

use schemars::JsonSchema;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::json;
use uuid::Uuid;

use crate::base::answer::text_of;
use crate::records::links::LinkChange;
use crate::records::versions::RecordAnswer;

/// The result of one write.
#[derive(Debug)]
pub(crate) enum WriteAnswer {
    /// The new record.
    Created(RecordAnswer),
    /// The record as it is now.
    Updated(RecordAnswer),
    Upserted(Upserted),
    Deleted,
    /// The number of links that changed.
    Links(LinkChange, usize),
    /// The caller may not use a record with this id, or there is none.
    Missing,
}

impl WriteAnswer {
    /// The record, and whether it is new.
    pub(super) fn record(&self) -> Option<(&RecordAnswer, bool)> {
        match self {
            WriteAnswer::Created(record) => Some((record, true)),
            WriteAnswer::Updated(record) => Some((record, false)),
            WriteAnswer::Upserted(Upserted { record, created }) => Some((record, *created)),
            WriteAnswer::Deleted | WriteAnswer::Links(..) | WriteAnswer::Missing => None,
        }
    }

    /// The number of bytes of the record.
    pub(super) fn bytes(&self) -> usize {
        self.record().map_or(0, |(record, _)| record.json.len())
    }

    /// The same result with another form of the record.
    pub(super) fn with_record(self, record: RecordAnswer) -> WriteAnswer {
        match self {
            WriteAnswer::Created(_) => WriteAnswer::Created(record),
            WriteAnswer::Updated(_) => WriteAnswer::Updated(record),
            WriteAnswer::Upserted(Upserted { created, .. }) => WriteAnswer::Upserted(Upserted { record, created }),
            other => other,
        }
    }
}

/// The ids that a bulk call wrote, in the caller's order.
#[derive(Debug)]
pub struct BulkAnswer {
    pub ids: Vec<Uuid>,
}

impl BulkAnswer {
    pub fn json(&self) -> String {
        text_of(&WrittenAnswer { count: self.ids.len(), ids: Ids(&self.ids) })
    }

    /// `[uuid]`.
    pub fn ids_json(&self) -> String {
        text_of(&Ids(&self.ids))
    }
}

/// The records that a bulk call wrote.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcWritten", deny_unknown_fields)]
pub struct WrittenAnswer<'a> {
    #[schemars(with = "u32")]
    count: usize,
    #[schemars(with = "Vec<String>", extend("items" = json!({ "type": "string", "format": "uuid" })))]
    ids: Ids<'a>,
}

/// Ids in the form in which answers show them.
#[derive(Debug)]
struct Ids<'a>(&'a [Uuid]);

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for id in self.0 {
            list.serialize_element(&*id.hyphenated().encode_lower(&mut [0; 36]))?;
        }
        list.end()
    }
}

/// The result of an upsert: the record, and whether it is new.
#[derive(Debug)]
pub struct Upserted {
    pub record: RecordAnswer,
    pub created: bool,
}
