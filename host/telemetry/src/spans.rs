//! The spans that are exported. They have their own target. So the log does not show them, and no other span is exported.

use std::time::Duration;

use tracing::Span;
use tracing::field::Empty;

use crate::call_parts::CallPart;
use crate::instruments::{Outcome, exports_traces, milliseconds};

/// The target of every exported span.
pub const TARGET: &str = "blockbase.telemetry";

/// The span of a call of an action's handler.
pub fn action_span(block: &str, name: &str) -> Span {
    if !exports_traces() {
        return Span::none();
    }
    tracing::info_span!(
        target: TARGET,
        "action",
        otel.name = %format_args!("action {block}.{name}"),
        otel.status_code = Empty,
        svc.block = block,
        svc.action = name,
        svc.block.part.queue = Empty,
        svc.block.part.instantiate = Empty,
        svc.block.part.guest = Empty,
        svc.block.part.host = Empty,
        svc.block.part.render = Empty,
        svc.outcome = Empty,
        "error.type" = Empty,
    )
}

/// The span of a call of a hook's handler.
pub fn hook_span(block: &str, name: &str) -> Span {
    if !exports_traces() {
        return Span::none();
    }
    tracing::info_span!(
        target: TARGET,
        "hook",
        otel.name = %format_args!("hook {block}.{name}"),
        otel.status_code = Empty,
        svc.block = block,
        svc.hook = name,
        svc.block.part.queue = Empty,
        svc.block.part.instantiate = Empty,
        svc.block.part.guest = Empty,
        svc.block.part.host = Empty,
        svc.block.part.render = Empty,
        svc.outcome = Empty,
        "error.type" = Empty,
    )
}

/// The span of an attempt to deliver an event.
pub fn event_span(topic: &str, consumer: &str, handler: &str) -> Span {
    if !exports_traces() {
        return Span::none();
    }
    tracing::info_span!(
        target: TARGET,
        "event",
        otel.name = %format_args!("event {topic}"),
        otel.kind = "consumer",
        otel.status_code = Empty,
        svc.event.topic = topic,
        svc.event.consumer = consumer,
        svc.event.handler = handler,
        svc.block.part.queue = Empty,
        svc.block.part.instantiate = Empty,
        svc.block.part.guest = Empty,
        svc.block.part.host = Empty,
        svc.block.part.render = Empty,
        svc.outcome = Empty,
        "error.type" = Empty,
    )
}

/// Records the time of a call of a block's handler in one of its parts, in the span of the call, which is the current one. It may
/// end before the part `teardown` does, so it does not have that part.
pub fn record_call_part(part: CallPart, took: Duration) {
    if !exports_traces() {
        return;
    }
    let attribute = match part {
        CallPart::Queue => "svc.block.part.queue",
        CallPart::Instantiate => "svc.block.part.instantiate",
        CallPart::Guest => "svc.block.part.guest",
        CallPart::Host => "svc.block.part.host",
        CallPart::Render => "svc.block.part.render",
        CallPart::Teardown => return,
    };
    Span::current().record(attribute, milliseconds(took));
}

/// Records the outcome in the span of an action, a hook or an event. `error_type` is a stable code.
pub fn end_span(span: &Span, outcome: Outcome, error_type: Option<&str>) {
    span.record("svc.outcome", outcome.as_str());
    if outcome == Outcome::Failed {
        span.record("otel.status_code", "ERROR");
    }
    if let Some(error_type) = error_type {
        span.record("error.type", error_type);
    }
}
