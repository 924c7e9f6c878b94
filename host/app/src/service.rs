//! The service as a whole: admission, its health, and what every surface needs from it.

pub(crate) mod admission;
pub(crate) mod status;
pub(crate) mod surface;
