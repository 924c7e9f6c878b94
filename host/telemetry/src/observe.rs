//! Runs a call in its span and records its metrics, no matter how the call ends.

use std::time::{Duration, Instant};

use tracing::{Instrument, Span};

use crate::instruments::{Outcome, action, delivery, hook, is_on};
use crate::spans::{action_span, end_span, event_span, hook_span};

/// The `error.type` of a call whose caller disconnected before the call ended.
const CANCELLED: &str = "cancelled";

/// Runs a call of an action's handler in its span, and counts it. `error_type` returns an error's stable code.
pub async fn observe_action<T, E>(
    block: &str,
    name: &str,
    error_type: impl FnOnce(&E) -> &'static str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    if !is_on() {
        return call.await;
    }
    observe(action_span(block, name), |outcome, took| action(block, name, outcome, took), error_type, call).await
}

/// Runs a call of a hook's handler in its span, and counts it. `error_type` returns an error's stable code.
pub async fn observe_hook<T, E>(
    block: &str,
    name: &str,
    error_type: impl FnOnce(&E) -> &'static str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    if !is_on() {
        return call.await;
    }
    observe(hook_span(block, name), |outcome, took| hook(block, name, outcome, took), error_type, call).await
}

/// Runs an attempt to deliver an event in its span, and counts it. `error_type` returns an error's stable code.
pub async fn observe_delivery<T, E>(
    topic: &str,
    consumer: &str,
    handler: &str,
    error_type: impl FnOnce(&E) -> &'static str,
    attempt: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    if !is_on() {
        return attempt.await;
    }
    let count = |outcome, took| delivery(topic, consumer, handler, outcome, took);
    observe(event_span(topic, consumer, handler), count, error_type, attempt).await
}

async fn observe<T, E>(
    span: Span,
    count: impl Fn(Outcome, Duration),
    error_type: impl FnOnce(&E) -> &'static str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut running = Running { span, count, begun: Instant::now(), outcome: Outcome::Failed, error_type: Some(CANCELLED) };
    let result = call.instrument(running.span.clone()).await;
    (running.outcome, running.error_type) = match &result {
        Ok(_) => (Outcome::Success, None),
        Err(error) => (Outcome::Failed, Some(error_type(error))),
    };
    result
}

/// Counts the call when it is dropped. So a call counts even if its future is dropped before the end.
struct Running<C: Fn(Outcome, Duration)> {
    span: Span,
    count: C,
    begun: Instant,
    outcome: Outcome,
    error_type: Option<&'static str>,
}

impl<C: Fn(Outcome, Duration)> Drop for Running<C> {
    fn drop(&mut self) {
        (self.count)(self.outcome, self.begun.elapsed());
        end_span(&self.span, self.outcome, self.error_type);
    }
}
