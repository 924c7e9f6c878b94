//! The reads of related rows that decide about an image of an event.

use std::sync::Arc;

use blockbase_query::condition::Image;
use blockbase_query::{Condition, sql};
use blockbase_schema::{Error, Object, Result};
use blockbase_store::{Connection, Cost, Read};

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
        (0..conditions.len()).map(|place| row.boolean(place).map_err(Error::from)).collect()
    }
}

/// Whether the image meets each condition of a batch. The batch belongs to several callers, so none of them is checked on the
/// connection.
///
/// # Errors
/// If the database does not answer, and if the read turns out to be a scan: it gets no place for that.
pub(crate) async fn answers(app: Arc<App>, schema: i64, asked: Arc<AskedRows>, batch: Arc<Batch>) -> Result<Vec<bool>> {
    let owner = InTurnOf(batch.owner.clone());
    let read = Read { schema, cost: Cost::Unknown, tables_of_one_moment: None };
    let no_place = std::future::ready(Err::<(), Error>(Error::busy("A statement for several streams is no scan.")));
    let met = app.store.read_metered(owner, read, no_place, move |connection| {
        let (asked, batch) = (Arc::clone(&asked), Arc::clone(&batch));
        Box::pin(async move { asked.meet(connection, &batch.begin()).await })
    });
    let met = met.await;
    if let Err(error) = &met {
        tracing::debug!(error.cause = %error, "one statement did not answer several streams; each asks by itself");
    }
    met
}
