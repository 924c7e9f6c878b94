//! `/api/v1/data`: one verb a file.

pub(crate) mod aggregate;
pub(crate) mod bulk;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod discover;
mod expansion;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod update;
