//! Operations on the outbox for the background work: committed events of all instances, hints between instances, and folding of
//! counts.

pub(crate) mod audit;
pub(crate) mod checks;
pub(crate) mod pending;
pub(crate) mod platform_event;
pub(crate) mod record_events;
pub(crate) mod retention;
pub(crate) mod touched;

use blockbase_schema::Result;
use blockbase_store::{EventPage, FeedMark, Hints, ReadCost, Service};

use crate::state::App;

impl App {
    /// The last number that was given to an event, committed or not.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn last_event_seq(&self) -> Result<i64> {
        self.store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.last_event_seq().await?) }))
            .await
    }

    /// A mark for this moment, on Postgres. It uses up a transaction number.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn feed_mark(&self) -> Result<FeedMark> {
        self.store.read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.feed_mark().await?) })).await
    }

    /// The oldest open transaction on Postgres. If no transaction is open, the number of the next one.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn oldest_transaction(&self) -> Result<u64> {
        self.store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.oldest_transaction().await?) }))
            .await
    }

    /// The events numbered in `(after, up_to]`, in their order. At most one page. The rights in memory are then no older than the
    /// events.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn events_between(&self, after: i64, up_to: i64) -> Result<EventPage> {
        let page = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.events_between(after, up_to).await?) })
            })
            .await?;
        self.follow_accounts_of(&page.events);
        Ok(page)
    }

    /// Tells the other instances that this one has committed events for consumer groups.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn hint(&self, instance: String) -> Result<()> {
        self.store
            .read_as_service(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.hint(&instance).await?) }))
            .await
    }

    /// Listens to the hints of the other instances. `None` if no other instance can exist.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn hints(&self) -> Result<Option<Hints>> {
        self.store.listen().await
    }

    /// Folds the differences that transactions added to the kept counts.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn fold_counts(&self) -> Result<()> {
        self.store.write(Service, |connection| Box::pin(async move { Ok(connection.fold_counts().await?) })).await
    }
}
