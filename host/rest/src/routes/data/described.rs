//! The parts of the document that the operations on one object's records share.

use blockbase_app::schema::Object;
use serde_json::{Value, json};

use crate::openapi::components::{exact_object, schema};
use crate::openapi::operation::{Caller, Operation, header_parameter, path_parameter};

/// One object whose operations are described, with the parts that all of them have.
pub(super) struct Described<'a> {
    pub(super) object: &'a Object,
    pub(super) tag: String,
    pub(super) type_name: String,
    /// The path of the object's records.
    pub(super) base: String,
    /// The relations that `expand` can name.
    pub(super) keys: Vec<&'a str>,
    pub(super) bulk_records_max: usize,
}

impl Described<'_> {
    pub(super) fn operation(&self, verb: &str, summary: String) -> Operation {
        let id = format!("data.{}.{verb}", self.object.name());
        Operation::new(id, &self.tag, summary).called_by(Caller::Granted).problems(&[400, 404])
    }

    pub(super) fn ids(&self) -> Value {
        let ids = json!({ "type": "array", "items": { "type": "string", "format": "uuid" }, "maxItems": self.bulk_records_max });
        exact_object(json!({ "ids": ids }))
    }

    pub(super) fn record(&self) -> Value {
        schema(&self.type_name)
    }

    pub(super) fn updates(&self) -> Value {
        schema(&format!("{}UpdateInput", self.type_name))
    }
}

/// The id of a record in the path, in every usual spelling of a UUID. Other texts cannot be the id of a record.
pub(super) fn id_parameter() -> Value {
    path_parameter("id", "The record's id.", json!({ "type": "string", "format": "uuid" }))
}

/// The condition of a change.
pub(super) fn if_match() -> Value {
    let text = "One `ETag` of a response with this record, including its quotes, or `*`. If the record is in another state, \
        nothing is written and the response is 412.";
    header_parameter(
        "If-Match",
        text,
        json!({ "type": "string", "pattern": IF_MATCH, "examples": ["\"hZ3bUxVfKq0p1yQm7dEw2A\"", "*"] }),
    )
}

/// One strong ETag, or `*`.
pub(super) const IF_MATCH: &str = "^(\\*|\"[^\"\\s]+\")$";
