//! Events that are not of records.

use std::sync::Arc;

use blockbase_schema::Result;
use blockbase_store::{Connection, NewEvent};
use serde_json::Value;

use crate::App;
use crate::caller::Caller;
use crate::subscriptions::Subscriptions;

/// An event to be written in the transaction of what it tells of.
#[derive(Clone)]
pub(crate) struct PlatformEvent {
    pub(crate) topic: String,
    /// JSON text.
    pub(crate) payload: String,
    pub(crate) depth: i64,
    pub(crate) occurred_at: i64,
    clock: crate::Clock,
    subscriptions: Arc<Subscriptions>,
}

/// Writes any number of events of one request, each with the actor of the request.
#[derive(Clone)]
pub(crate) struct Announcer {
    /// `None` where events are off.
    template: Option<PlatformEvent>,
    actor: Value,
}

impl Announcer {
    /// Writes an event in the transaction of what it tells of; `payload` is an object, and gets the actor.
    pub(crate) async fn emit(&self, connection: &mut Connection, topic: String, mut payload: Value) -> Result<()> {
        let Some(template) = &self.template else { return Ok(()) };
        payload["actor"] = self.actor.clone();
        PlatformEvent { topic, payload: payload.to_string(), ..template.clone() }.emit(connection).await
    }
}

impl App {
    /// For events whose number or topics are known in the transaction only.
    pub(crate) fn announcer(&self, caller: &Caller) -> Announcer {
        let actor = serde_json::from_str(&caller.actor_json()).unwrap_or_default();
        Announcer { template: self.platform_event(caller, String::new(), String::new()), actor }
    }

    /// An event that is not of a record; none where events are off.
    pub(crate) fn platform_event(&self, caller: &Caller, topic: String, payload: String) -> Option<PlatformEvent> {
        self.settings.events_enabled.then(|| PlatformEvent {
            topic,
            payload,
            depth: caller.depth,
            occurred_at: self.clock.now(),
            clock: self.clock.clone(),
            subscriptions: self.subscriptions(),
        })
    }
}

impl PlatformEvent {
    /// Writes the event, for the groups that there are in this transaction.
    pub(crate) async fn emit(self, connection: &mut Connection) -> Result<()> {
        self.write(connection, None).await.map(|_| ())
    }

    /// The same, and also for a group that may not have subscribed to it: the event's id.
    pub(crate) async fn emit_also_to(self, connection: &mut Connection, consumer: &str) -> Result<String> {
        self.write(connection, Some(consumer)).await
    }

    async fn write(mut self, connection: &mut Connection, also: Option<&str>) -> Result<String> {
        if connection.version("subscriptions").await? != self.subscriptions.version {
            self.subscriptions = Arc::new(Subscriptions::load(connection).await?);
        }
        let id = self.clock.id(self.occurred_at);
        let deliveries = match also {
            Some(consumer) => self.subscriptions.deliveries_and(&self.topic, consumer),
            None => self.subscriptions.deliveries(&self.topic, self.depth),
        };
        let event = NewEvent {
            id,
            deliveries,
            topic: self.topic,
            payload: self.payload,
            object: None,
            record_id: None,
            owner: None,
            depth: self.depth,
            occurred_at: self.occurred_at,
        };
        connection.emit(event).await?;
        Ok(id.to_string())
    }
}
