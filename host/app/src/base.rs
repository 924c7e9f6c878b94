//! Modules that use no other part of this crate: time, topics, frames of streams, stored documents, and answers that several
//! parts share.

pub(crate) mod answer;
pub(crate) mod at;
pub(crate) mod clock;
pub(crate) mod frames;
pub(crate) mod json_texts;
pub(crate) mod offload;
pub(crate) mod stored;
pub(crate) mod topic;
pub(crate) mod webhook_headers;
