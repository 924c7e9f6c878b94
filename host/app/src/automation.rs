//! Work that runs by itself or takes long: tasks, and the erasure of a user.

pub(crate) mod erasure;
pub(crate) mod tasks;
