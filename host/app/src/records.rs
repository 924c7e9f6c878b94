//! Records: reading, writing, deleting and exporting them.

pub(crate) mod change;
pub(crate) mod cursors;
pub(crate) mod deletion;
pub(crate) mod expand;
pub(crate) mod export;
pub(crate) mod ids;
pub(crate) mod links;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod stamps;
pub(crate) mod versions;
pub(crate) mod writes;
