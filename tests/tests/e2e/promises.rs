//! Promises over all surfaces and both engines: the same bytes, the same rights, the same results as a model.

pub(crate) mod conditions;
pub(crate) mod differential;
pub(crate) mod normalize;
pub(crate) mod parity;
pub(crate) mod policy;
pub(crate) mod same_bytes;
