//! Objects, field types, values and the registry snapshot: the vocabulary of the complete service.
//!
//! This crate does no I/O and must not know SQL, HTTP, accounts or blocks. It contains everything that defines a record: the
//! allowed names, the values that each field type accepts, and the JSON form of values. It also has the only error type, which
//! all crates above use, because error codes are part of the vocabulary.
#![forbid(unsafe_code)]

mod action;
mod code;
mod coerce;
mod column;
mod error;
mod field;
mod fold;
mod hint;
mod kept_texts;
mod listed;
mod name;
mod names_since;
mod number;
mod object;
mod optional;
mod quote;
mod registry;
mod relationship;
mod resource;
mod value;

pub mod json;
pub mod system;
pub mod time;

pub use action::Action;
pub use code::Code;
pub use coerce::{is_email, is_url, parse_filter_text};
pub use column::{Column, ColumnIndexes, ColumnType, Rules};
pub use error::{BUSY_RETRY_AFTER_S, Error, Issue, Result, Retry};
pub use field::{Field, FieldType};
pub use fold::{fold, fold_into};
pub use hint::{Hint, HintWords};
pub use kept_texts::{KeptTexts, TEXTS_MAX};
pub use listed::{enumerated, table_rows};
pub use name::{NAME_PATTERN, USERS, check_field_name, check_object_name, is_name, pascal_case};
pub use names_since::NamesSince;
pub use number::{ExactJson, ExactNumber, is_double};
pub use object::{Constraints, Object, ObjectDefinition, StoredObject};
pub use quote::{excerpt, excerpt_of, quoted};
pub use registry::Registry;
pub use relationship::{OnDelete, Reference, Relation, RelationShape, Relationship, RelationshipDefinition, RelationshipKind};
pub use resource::Resource;
pub use value::{TextBounds, Value};
