//! What runs by itself, or for long: tasks and the erasure of a user.

pub(crate) mod erasure;
pub(crate) mod tasks;
