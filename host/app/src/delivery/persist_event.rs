//! `persist_event`: writes events into an object as records. These writes emit no events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use blockbase_query::Action;
use blockbase_query::plan::{CreatePlan, Stamp};
use blockbase_schema::json::Members;
use blockbase_schema::{Code, ColumnType, Error, Object, Result, time};
use blockbase_store::{ClaimedDelivery, ClaimedEvent, Connection, Service};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::App;
use crate::caller::Caller;
use crate::delivery::delivery_check::DeliveryCheck;
use crate::delivery::ledger::{Attempt, Ended, outcome};
use crate::outbox::record_events::WriteContext;
use crate::records::writes::{create, insert_many};

use crate::state::persist_config::PersistConfig;

impl PersistConfig {
    /// The members of the new record.
    fn values(&self, object: &Object, event: &ClaimedEvent) -> Result<Members> {
        let payload: BTreeMap<&str, &RawValue> = serde_json::from_str(&event.payload).map_err(Error::internal)?;
        let mut members = Vec::with_capacity(self.map.len());
        for (column, token) in &self.map {
            let value = token_value(token, event, &payload)?;
            let is_text = object.column(column).is_some_and(|column| column.ty == ColumnType::Text);
            // A text column gets an object or array as its JSON text.
            let value = match is_text && value.get().starts_with(['{', '[']) {
                true => raw(&value.get())?,
                false => value,
            };
            members.push((column.clone(), value));
        }
        Ok(Members(members))
    }
}

fn raw<T: serde::Serialize>(value: &T) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(value).map_err(Error::internal)
}

fn token_value(token: &str, event: &ClaimedEvent, payload: &BTreeMap<&str, &RawValue>) -> Result<Box<RawValue>> {
    let member = |name: &str| payload.get(name).map(|value| (*value).to_owned());
    let some = |value: Option<Box<RawValue>>| value.filter(|value| value.get() != "null");
    let value = match token {
        "event.id" => Some(raw(&event.id)?),
        "event.topic" => Some(raw(&event.topic)?),
        "event.occurredAt" => Some(raw(&time::format_datetime(event.occurred_at))?),
        "payload.record" => some(member("after")).or_else(|| member("before")),
        "payload.actorId" => {
            let actor: Option<Value> = member("actor").and_then(|actor| serde_json::from_str(actor.get()).ok());
            let id = |actor: &Value| ["userId", "apiKeyId"].iter().find_map(|name| actor[*name].as_str().map(str::to_owned));
            actor.as_ref().and_then(id).map(|id| raw(&id)).transpose()?
        }
        _ => member(token.strip_prefix("payload.").unwrap_or(token)),
    };
    value.map_or_else(|| raw(&Value::Null), Ok)
}

/// A record to write, and its delivery.
#[derive(Clone)]
struct Persisted {
    ended: Ended,
    plan: CreatePlan,
}

impl App {
    /// Writes the events of claimed deliveries as records, and settles the deliveries in the same transaction. So each event is
    /// written once, even if the process ends at any point. The events of deliveries that `check` refuses are not written, but
    /// the deliveries are settled. Returns the outcomes of all attempts whose claim is still valid.
    pub async fn persist_deliveries(
        &self,
        consumer: &str,
        token: &str,
        config: &PersistConfig,
        check: &DeliveryCheck,
        deliveries: &[ClaimedDelivery],
    ) -> Result<Vec<Ended>> {
        let system = Caller::system();
        self.on_schema(&system, |registry| {
            let system = &system;
            async move {
                let object = registry.object(&config.object).filter(|object| !object.is_users()).cloned();
                // These writes emit no events.
                let context = self.context_of(system, &registry, false);
                let (mut unwritten, mut plans) = (Vec::new(), Vec::new());
                for delivery in deliveries {
                    let ended = |attempt| Ended::at_once(delivery, attempt);
                    let Some(event) = &delivery.event else {
                        unwritten.push(ended(Attempt::Dead(UNDECODABLE.to_owned())));
                        continue;
                    };
                    let event = match self.handed_over(check, event).await {
                        Ok(Ok(event)) => event,
                        Ok(Err(why)) => {
                            unwritten.push(ended(Attempt::Skipped(why)));
                            continue;
                        }
                        Err(error) => {
                            let is_certain = error.code != Code::Unavailable;
                            unwritten.push(ended(if is_certain { Attempt::Failed(error.message) } else { Attempt::Released }));
                            continue;
                        }
                    };
                    match self.persist_plan(system, object.as_ref(), config, &event, &context) {
                        Ok(plan) => plans.push(Persisted { ended: ended(Attempt::Delivered), plan }),
                        Err(error) => unwritten.push(ended(Attempt::Failed(error.message))),
                    }
                }
                let policy = self.retry_policy(consumer);
                let (consumer, token) = (consumer.to_owned(), token.to_owned());
                self.store
                    .write(Service, move |connection| {
                        Box::pin(async move {
                            let all = unwritten.iter().chain(plans.iter().map(|plan| &plan.ended));
                            let seqs = all.map(|ended| ended.seq).collect();
                            let began = Instant::now();
                            let held = connection.held_claims(&consumer, &token, seqs).await?;
                            unwritten.retain(|ended| held.contains(&ended.seq));
                            plans.retain(|plan| held.contains(&plan.ended.seq));
                            let mut all = unwritten;
                            all.extend(write_plans(connection, context, plans).await?);
                            // A batch is one transaction, so each of its events took as long as the whole batch.
                            all.iter_mut().for_each(|ended| ended.took = Some(began.elapsed()));
                            let outcomes = all.iter().cloned().map(|ended| outcome(policy, ended)).collect();
                            connection.settle_deliveries(&consumer, &token, outcomes).await?;
                            Ok(all)
                        })
                    })
                    .await
            }
        })
        .await
    }

    fn persist_plan(
        &self,
        system: &Caller,
        object: Option<&Arc<Object>>,
        config: &PersistConfig,
        event: &ClaimedEvent,
        context: &WriteContext,
    ) -> Result<CreatePlan> {
        let object = object.ok_or_else(|| Error::unknown_object(&config.object))?;
        let access = system.access(object.name(), Action::Create)?;
        let stamp = Stamp { actor_id: None, now: context.now, texts: context.texts };
        CreatePlan::new(object, &access, &config.values(object, event)?, self.clock.id(context.now), &stamp)
    }
}

/// The ledger's error for an event that cannot be read.
pub const UNDECODABLE: &str = "the stored event cannot be read";

/// Writes the records together if the database is on a network. Otherwise, or if the writing of one fails, writes each by itself.
async fn write_plans(connection: &mut Connection, mut context: WriteContext, plans: Vec<Persisted>) -> Result<Vec<Ended>> {
    let Some(first) = plans.first() else { return Ok(Vec::new()) };
    let object = Arc::clone(&first.plan.object);
    context.hold(connection, &object).await?;
    if plans.len() > 1 && connection.dialect() == blockbase_query::Dialect::Postgres {
        let savepoint = connection.savepoint().await?;
        let together = plans.iter().map(|persisted| persisted.plan.clone()).collect();
        match insert_many(connection, &context, &object, together).await {
            Ok(_) => return Ok(plans.into_iter().map(|persisted| persisted.ended).collect()),
            Err(error) if error.retry.is_some() => return Err(error),
            Err(_) => connection.back_to_savepoint(&savepoint).await?,
        }
    }
    let mut all = Vec::with_capacity(plans.len());
    let mut savepoint = None;
    for Persisted { mut ended, plan } in plans {
        let savepoint = connection.savepoint_here(&mut savepoint).await?;
        match create(connection, plan, &context).await {
            Ok(_) => {}
            Err(error)
                if error.retry.is_some() || matches!(error.code, Code::Internal | Code::Unavailable | Code::StorageFull) =>
            {
                return Err(error);
            }
            Err(error) => {
                connection.back_to_savepoint(savepoint).await?;
                ended.attempt = Attempt::Failed(error.message);
            }
        }
        all.push(ended);
    }
    Ok(all)
}
