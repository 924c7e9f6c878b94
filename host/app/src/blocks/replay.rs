//! Gives a stored event to a block's handler once more, at a caller's request.
//!
//! The call has the same rights, limits, causation depth and log as any other call: the rights are those of the block, limited to
//! those of its maker. Only the ledger does not record it. The handler gets only events that a delivery would bring to it, and the
//! same parts of them. The caller needs to see the event, or a part of it.

use std::sync::Arc;
use std::time::Instant;

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::ClaimedEvent;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::logs::LogLine;
use crate::App;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::block_types::InstalledBlock;
use crate::state::routing::{Subscription, Target, is_built_in};

/// The event to replay, and its handler.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    pub event_id: String,
    /// The consumer group whose configuration is used, if the handler has several.
    pub consumer: Option<String>,
}

/// The result of a replay, in which a handler got an event once more.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcReplayed", deny_unknown_fields)]
pub struct Replayed {
    ok: bool,
    /// Why the handler failed.
    #[schemars(with = "Option<Failure>")]
    error: Option<Value>,
    duration_ms: f64,
    call_id: String,
    /// The consumer group whose configuration the handler got.
    consumer: String,
    /// The log lines of the call; null if the caller may not read `blocks`.
    logs: Option<Vec<LogLine>>,
}

/// The members that every error has. The error of a handler can have more.
#[derive(JsonSchema)]
#[schemars(inline)]
struct Failure {
    #[expect(dead_code, reason = "it describes the envelope, which `schema` writes")]
    error: String,
    #[expect(dead_code, reason = "as above")]
    message: String,
}

fn conflict(message: impl Into<String>) -> Error {
    Error::new(Code::Conflict, message)
}

impl App {
    /// Checks the permissions that a replay needs, in addition to the right to see the event.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`.
    pub fn may_replay(&self, caller: &Caller) -> Result<()> {
        caller.require(Resource::Blocks, Action::Update)?;
        caller.require(Resource::Events, Action::Read)
    }

    /// Gives an event of the outbox to a handler of a block, and reports the result. The handler's effects are real.
    ///
    /// # Errors
    /// `not_found` if the block, the handler or the event does not exist or the caller may not see it. `conflict` if a delivery would
    /// not bring this event to the handler.
    pub async fn replay_event(
        self: &Arc<Self>,
        caller: &Caller,
        block: &str,
        handler: &str,
        request: ReplayRequest,
    ) -> Result<Replayed> {
        self.recheck(caller).await?;
        self.may_replay(caller)?;
        if self.installed(block).is_err() {
            self.looked_for_blocks().await?;
        }
        let block = self.installed(block)?;
        let subscriptions = self.served_by(&block, handler, request.consumer.as_deref())?;
        let event = self.event_seen_in_part(caller, &request.event_id).await?.ok_or_else(|| {
            let message = "The outbox does not hold this event, or you may not see it.";
            Error::new(Code::NotFound, message)
        })?;
        let event = ClaimedEvent {
            seq: event.seq,
            payload: event.payload().to_owned(),
            id: event.id.clone(),
            topic: event.topic.clone(),
            occurred_at: event.occurred_at,
            depth: event.depth,
            object: event.object.clone(),
            owner: event.owner.clone(),
            schema: event.schema,
        };
        let subscription = subscriptions.into_iter().find(|subscription| subscription.matches(&event.topic));
        let subscription = subscription.ok_or_else(|| {
            conflict(format!("No subscription of the block with the handler `{handler}` gets events of `{}`.", event.topic))
        })?;
        if subscription.is_too_deep(event.depth) {
            return Err(conflict("So many handlers' writes led to this event that blocks do not get it (causation depth)."));
        }
        let check = self.delivery_check(&subscription).await?;
        if let Some(why) = check.why_stopped() {
            return Err(conflict(why));
        }
        let event = self.handed_over(&check, &event).await?.map_err(conflict)?.into_owned();
        let config = match &subscription.target {
            Target::Block { config, .. } => config,
            Target::Broken(problem) => return Err(conflict(problem.clone())),
            _ => return Err(Error::internal("a block's own handler is served by another target")),
        };
        let (topic, name) = (event.topic.clone(), block.name().to_owned());
        let call = self.event_call(block, handler, config, event, 1).await.map_err(|error| match error.code {
            Code::Forbidden => conflict(error.message),
            _ => error,
        })?;
        let asked = json!({ "handler": handler, "eventId": request.event_id, "consumer": subscription.consumer });
        let auditor = self.auditor(caller);
        // The call is no transaction, so the row is written before it. The handler's effects are real, also if it fails.
        self.store
            .write_in_reserve(self.by(caller), move |connection| {
                Box::pin(async move {
                    auditor.record(connection, Act::new(AuditAction::Replay, Resource::Blocks, name).after(&asked)).await
                })
            })
            .await?;
        let watched = self.watch_call(&call.call_id);
        let (call_id, began) = (call.call_id.clone(), Instant::now());
        let code = |error: &Error| error.code.as_str();
        let run = self.run_event_call(call);
        let ended = blockbase_telemetry::observe_delivery(&topic, &subscription.consumer, &subscription.handler, code, run).await;
        let took = began.elapsed();
        self.recheck(caller).await?;
        let error = match ended {
            Ok(()) => None,
            Err(error) if error.code == Code::Internal => return Err(error),
            // The error belongs to the handler's call, and no surface made that call. So it has no hint.
            Err(error) => Some(error.envelope(|_| None)),
        };
        // Only callers who may read blocks see a block's log lines.
        let logs = caller.holds(Resource::Blocks, Action::Read).then(|| watched.lines());
        Ok(Replayed {
            ok: error.is_none(),
            error,
            duration_ms: (took.as_secs_f64() * 1_000_000.0).round() / 1000.0,
            call_id,
            consumer: subscription.consumer.clone(),
            logs,
        })
    }

    /// The subscriptions that bring events to a handler of the block at this moment.
    fn served_by(&self, block: &InstalledBlock, handler: &str, consumer: Option<&str>) -> Result<Vec<Arc<Subscription>>> {
        let of_handler = block.manifest.subscriptions.iter().filter(|declared| declared.handler == handler);
        let declared: Vec<_> = of_handler.filter(|declared| !is_built_in(&declared.handler)).collect();
        if declared.is_empty() {
            let message = format!("The block `{}` declares no handler `{handler}` of events.", block.name());
            return Err(Error::new(Code::NotFound, message));
        }
        let asked: Vec<_> =
            declared.into_iter().filter(|declared| consumer.is_none_or(|name| declared.consumer == name)).collect();
        if asked.is_empty() {
            let message = format!("The handler `{handler}` serves no consumer group of this name.");
            return Err(Error::new(Code::InvalidValue, message).with_field("consumer"));
        }
        if !block.enabled {
            return Err(conflict(format!("The block `{}` is disabled. Enable it first.", block.name())));
        }
        Ok(asked.into_iter().filter_map(|declared| self.subscription(&declared.consumer)).collect())
    }
}
