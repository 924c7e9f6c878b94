//! Objects, field types, values and the registry snapshot: the vocabulary of the whole service.
//!
//! This crate does no I/O and must not know of SQL, HTTP, accounts or blocks. Everything that defines what a
//! record *is* lives here: which names are allowed, what each field type accepts and how its values look as JSON.
//! It also holds the one error type that every floor above speaks, because codes are part of the vocabulary.
#![forbid(unsafe_code)]

mod column;
mod error;
mod field;
mod name;
mod object;
mod registry;
mod value;

pub mod json;
pub mod time;

pub use column::{Column, ColumnType, Rules, system};
pub use error::{Code, Error, Issue, Result};
pub use field::{Field, FieldType};
pub use name::{check_field_name, check_object_name, is_name};
pub use object::{Constraints, Object, ObjectDefinition};
pub use registry::Registry;
pub use value::{Value, parse_filter_text};
