//! The writes of the test.

use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
pub(super) enum Chosen {
    Ids(Vec<String>),
    Where(Value),
}

impl Chosen {
    /// The member of a request that chooses the records.
    pub(super) fn member(&self) -> (&'static str, Value) {
        match self {
            Chosen::Ids(ids) => ("ids", json!(ids)),
            Chosen::Where(condition) => ("where", condition.clone()),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Verb {
    Create(Map<String, Value>),
    CreateMany(Vec<Map<String, Value>>),
    Update(String, Map<String, Value>),
    /// The unique column, and the values.
    Upsert(&'static str, Map<String, Value>),
    Delete(String),
    UpdateMany(Chosen, Map<String, Value>),
    DeleteMany(Chosen),
    /// The record, the relation key, and the ids. The flag tells whether links are removed.
    Link(String, String, Vec<String>, bool),
    Batch(Vec<Operation>),
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    /// The object. For a batch, that of its first operation.
    pub(super) object: usize,
    pub(super) verb: Verb,
    /// Whether the call only answers which rows it would write. Only calls for many records can be dry.
    pub(super) is_dry: bool,
}

impl Write {
    pub(super) fn new(object: usize, verb: Verb) -> Write {
        Write { object, verb, is_dry: false }
    }
}

/// One operation of a batch. A placeholder stands for the id of the row that an earlier operation makes.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) object: usize,
    /// A write of one record.
    pub(super) verb: Verb,
}

/// Whether a value of a change adds to the value that is there.
pub(super) fn is_sum(value: &Value) -> bool {
    value.is_object()
}
