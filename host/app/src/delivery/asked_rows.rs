//! The reads of related rows that decide about an image of an event.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use blockbase_query::condition::Image;
use blockbase_query::{Condition, sql};
use blockbase_schema::{Error, Object, Result};
use blockbase_store::{Connection, Cost, Read};
use futures_util::FutureExt;

use crate::App;
use crate::access::quota::InTurnOf;
use crate::state::asked_together::Batch;

/// The related rows that a read asks for: those by which an image of the object's record meets the condition.
pub(crate) struct AskedRows {
    /// The image's name in the payload.
    pub(crate) name: &'static str,
    pub(crate) object: Arc<Object>,
    pub(crate) condition: Arc<Condition>,
    pub(crate) image: Arc<Image>,
    /// Whether the stream asks by itself from now on, because a statement with the questions of several streams did not answer.
    pub(crate) is_alone: AtomicBool,
}

impl AskedRows {
    /// Whether the image meets each of these conditions, by the present related rows.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn meet(&self, connection: &mut Connection, conditions: &[Arc<Condition>]) -> Result<Vec<bool>> {
        let (dialect, object, image) = (connection.dialect(), &self.object, &self.image);
        let statement = match conditions {
            [] => return Ok(Vec::new()),
            [one] => sql::image_meets(dialect, object, one, image),
            several => sql::image_meets_each(dialect, object, several, image),
        };
        let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(object))?;
        if conditions.len() == 1 {
            return Ok(vec![!rows.is_empty()]);
        }
        let row = rows.first().ok_or_else(|| Error::internal("a statement with several questions gave no row"))?;
        // The columns after these repeat the last question.
        (0..conditions.len()).map(|place| row.boolean(place).map_err(Error::from)).collect()
    }
}

/// Answers a batch of questions about one image. If the read fails, it answers none of them.
///
/// A read that turns out to be a scan goes on only if the owner of the share has a free place for it. It does not wait for one,
/// because all streams of the batch would wait too.
pub(crate) async fn answer(app: Arc<App>, schema: i64, asked: Arc<AskedRows>, batch: Batch) {
    let owner = batch.owner().clone();
    let place = app.scan_permit_of(owner.clone());
    let place_at_once = async move { place.now_or_never().unwrap_or_else(|| Err(Error::busy("No place for a scan is free."))) };
    let read = Read { schema, cost: Cost::Unknown, tables_of_one_moment: None };
    let batch = Arc::new(batch);
    let of_read = Arc::clone(&batch);
    let met = app.store.read_metered(InTurnOf(owner), read, place_at_once, move |connection| {
        let (asked, batch) = (Arc::clone(&asked), Arc::clone(&of_read));
        Box::pin(async move {
            let conditions = batch.conditions();
            asked.meet(connection, &conditions).await
        })
    });
    match met.await {
        Ok(met) => batch.answer(&met),
        Err(error) => tracing::debug!(error.cause = %error, "one statement did not answer several streams; each asks by itself"),
    }
}
