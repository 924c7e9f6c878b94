//! The service as a whole: admission, its state, and the types and functions that every surface needs.

pub(crate) mod admission;
pub(crate) mod audit;
pub(crate) mod instance;
pub(crate) mod listed_settings;
pub(crate) mod status;
pub(crate) mod surface;
