//! Promises about all surfaces and both engines: equal bytes, equal rights, and the results of a model.

pub(crate) mod conditions;
pub(crate) mod differential;
pub(crate) mod normalize;
pub(crate) mod parity;
pub(crate) mod policy;
pub(crate) mod policy_grants;
pub(crate) mod same_bytes;
