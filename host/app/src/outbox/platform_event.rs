//! Writes the platform's own events.

use std::sync::Arc;

use blockbase_auth::Actor;
use blockbase_schema::Result;
use blockbase_store::{Connection, NewEvent};

use crate::App;
use crate::base::clock::Clock;
use crate::base::topic::Topic;
use crate::caller::Caller;
use crate::state::routing::Subscriptions;

/// Writes events of one call. All of them have the actor and the instant of the call.
#[derive(Clone)]
pub(crate) struct Announcer {
    events_enabled: bool,
    actor: Option<Actor>,
    depth: i64,
    occurred_at: i64,
    clock: Clock,
    subscriptions: Arc<Subscriptions>,
}

impl App {
    /// The writer of events for a call that `caller` makes now.
    pub(crate) fn announcer(&self, caller: &Caller) -> Announcer {
        Announcer {
            events_enabled: self.settings.events_enabled,
            actor: caller.principal.actor().cloned(),
            depth: caller.depth,
            occurred_at: self.clock.now(),
            clock: self.clock.clone(),
            subscriptions: self.subscriptions(),
        }
    }
}

impl Announcer {
    /// Writes an event in the transaction of the change that it reports, for the groups that exist in this transaction. If events
    /// are off, it writes nothing.
    pub(crate) async fn emit(&self, connection: &mut Connection, topic: Topic<'_>) -> Result<()> {
        self.write(connection, &topic, None).await.map(|_| ())
    }

    /// Does the same, and also writes a delivery for a group that may not have subscribed to the topic. Returns the event's id,
    /// or `None` if events are off.
    pub(crate) async fn emit_also_to(
        &self,
        connection: &mut Connection,
        topic: Topic<'_>,
        consumer: &str,
    ) -> Result<Option<String>> {
        self.write(connection, &topic, Some(consumer)).await
    }

    async fn write(&self, connection: &mut Connection, topic: &Topic<'_>, also: Option<&str>) -> Result<Option<String>> {
        if !self.events_enabled {
            return Ok(None);
        }
        let mut subscriptions = Arc::clone(&self.subscriptions);
        if connection.version("subscriptions").await? != subscriptions.version {
            subscriptions = Arc::new(Subscriptions::load(connection).await?);
        }
        let (id, payload, topic) =
            (self.clock.id(self.occurred_at), topic.payload(self.actor.as_ref())?, topic.text().into_owned());
        let deliveries = match also {
            Some(consumer) => subscriptions.deliveries_and(&topic, consumer),
            None => subscriptions.deliveries(&topic, self.depth),
        };
        let event = NewEvent {
            id,
            deliveries,
            topic,
            payload,
            object: None,
            record_id: None,
            owner: None,
            depth: self.depth,
            occurred_at: self.occurred_at,
        };
        connection.emit(event).await?;
        Ok(Some(id.to_string()))
    }
}
