//! The service as a whole: what it admits, how it is doing, and what every surface needs of it.

pub(crate) mod admission;
pub(crate) mod status;
pub(crate) mod surface;
