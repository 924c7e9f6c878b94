//! Telemetry: metrics for Prometheus, metrics and traces by OTLP.
//!
//! The functions here record every measurement. Until [`init`] has run, they do nothing, and each call only checks a `OnceLock`.
//! This crate must not know of any other crate of the workspace, nor of HTTP. It gets only names, numbers and times.
#![forbid(unsafe_code)]

mod call_parts;
mod http;
mod instruments;
mod observe;
mod pipeline;
mod processor_time;
mod spans;

pub use call_parts::{CallClock, CallPart};
pub use http::{RequestStart, request_answered, request_span};
pub use instruments::{
    BlockHandler, BlockInstance, BlockUse, OpenStream, Outcome, action, block_call_part, block_instance, block_used,
    commit_batch, delivery, event_published, hook, is_on, lease_lost, set_queue, stream_opened, topic_family, undecodable,
};
pub use observe::{observe_action, observe_delivery, observe_hook};
pub use pipeline::{Collector, PROMETHEUS_CONTENT_TYPE, Settings, Telemetry, init};
pub use processor_time::processor_time;
pub use spans::{TARGET, action_span, end_span, event_span, hook_span, record_call_part};
