//! The records of a bulk call: those that it names, or those that meet a condition.

use std::sync::Arc;

use blockbase_query::plan::Selection;
use blockbase_query::{Access, Action, Where, sql};
use blockbase_schema::{Error, Object, Registry, Result};
use blockbase_store::{Connection, Read, Row};
use uuid::Uuid;

use super::parse_ids;
use crate::App;
use crate::caller::Caller;
use crate::outbox::record_events::WriteContext;
use crate::records::read::{cost, with_reading};

/// How a bulk call says which records it is for.
#[derive(Clone, Debug)]
pub enum Chosen {
    Ids(Vec<String>),
    /// Those that meet a condition and that the caller may read, `SVC_MAX_BULK` at most.
    Where(Where),
}

/// The records that were found, and what they have to meet still when they are written.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) ids: Vec<Uuid>,
    /// With the object as the caller knows it who chose them.
    selection: Option<Arc<(Arc<Object>, Selection)>>,
}

impl Found {
    /// Those that meet the condition in this transaction, too. They cannot change before it ends. Related records can, unless they
    /// refer to these.
    ///
    /// # Errors
    /// `unavailable` if the look takes too long, because others wait for it.
    pub(super) async fn narrowed(
        self,
        connection: &mut Connection,
        context: &mut WriteContext,
        object: &Arc<Object>,
    ) -> Result<Vec<Uuid>> {
        let Found { ids, selection } = self;
        let Some(chosen) = selection else { return Ok(ids) };
        let (known, selection) = &*chosen;
        for related in selection.related_objects() {
            context.hold(connection, &related).await?;
        }
        let dialect = connection.dialect();
        // A statement sees what was there when it began, so that the look has to begin after the wait for the locks.
        if let Some(lock) = sql::lock(dialect, object, ids.clone()) {
            connection.fetch_rows(lock).await.map_err(|error| error.on(object))?;
        }
        let most = ids.len();
        let rows = connection.look(sql::ids(dialect, known, selection, Some(ids), most)).await;
        ids_of(&rows.map_err(|error| error.on(object))?)
    }
}

fn ids_of(rows: &[Row]) -> Result<Vec<Uuid>> {
    rows.iter().map(|row| row.uuid(0).map_err(Error::from)).collect()
}

impl App {
    /// Finds the records of a bulk call. A condition is looked up before the write, which would make others wait for it.
    ///
    /// # Errors
    /// `invalid_request` for more than `SVC_MAX_BULK` records, or a condition that is wrong or tests nothing; `invalid_value` for an
    /// id that is no uuid; `forbidden` without read, for a condition.
    pub(super) async fn find_chosen(
        &self,
        caller: &Caller,
        registry: &Arc<Registry>,
        object: &Arc<Object>,
        access: &Access,
        chosen: &Chosen,
    ) -> Result<Found> {
        let asked = match chosen {
            Chosen::Ids(ids) => {
                self.check_bulk_size(ids.len())?;
                return Ok(Found { ids: parse_ids(ids)?, selection: None });
            }
            Chosen::Where(asked) => asked,
        };
        let (ground, registry) = (self.ground(registry), self.known_to(caller, registry));
        let (known, reads) = caller.object(&ground, object.name(), Action::Read)?;
        let selection = with_reading(caller, &ground, &registry, asked.bytes(), |reading| {
            Selection::to_write(&known, &reads.within(access, object), std::slice::from_ref(asked), reading)
        })?;
        let chosen = Arc::new((known, selection));
        let most = self.settings.bulk_records_max;
        let read = Read { schema: registry.version, cost: cost(&chosen.1), tables_of_one_moment: None };
        let sought = Arc::clone(&chosen);
        let ids = self
            .read_metered(caller, read, move |connection| {
                let sought = Arc::clone(&sought);
                Box::pin(async move {
                    let (object, selection) = &*sought;
                    let statement = sql::ids(connection.dialect(), object, selection, None, most.saturating_add(1));
                    ids_of(&connection.fetch_rows(statement).await.map_err(|error| error.on(object))?)
                })
            })
            .await?;
        if ids.len() > most {
            return Err(Error::invalid_request(format!(
                "More than {most} records meet the condition, and one call is for {most} at most."
            )));
        }
        Ok(Found { ids, selection: Some(chosen) })
    }
}
