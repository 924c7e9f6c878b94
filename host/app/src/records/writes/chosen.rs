//! The records of a bulk call: those that the call names, or those that meet a condition.

use std::sync::Arc;

use blockbase_query::plan::Selection;
use blockbase_query::{Access, Action, ListParameter, Scope, Where, sql};
use blockbase_schema::{Error, Object, Registry, Result};
use blockbase_store::{Connection, Read, Row};
use uuid::Uuid;

use crate::App;
use crate::caller::Caller;
use crate::outbox::record_events::WriteContext;
use crate::records::ids::parse_ids;
use crate::records::read::{cost, with_reading};

/// The choice of records in a bulk call.
#[derive(Clone, Debug)]
pub enum Chosen {
    Ids(Vec<String>),
    /// At most `SVC_MAX_BULK` records that meet a condition and that the caller may read.
    Where(Where),
}

impl Chosen {
    /// The choice by ids or by one condition.
    ///
    /// # Errors
    /// `invalid_request` with `field` if there are both or neither, or several conditions.
    pub fn of(ids: Option<Vec<String>>, mut conditions: Vec<Where>) -> Result<Chosen> {
        match (ids, conditions.pop()) {
            (Some(ids), None) => Ok(Chosen::Ids(ids)),
            (None, Some(condition)) if conditions.is_empty() => Ok(Chosen::Where(condition)),
            _ => {
                let name = ListParameter::Where.name();
                let message = format!("Name the records either with `ids` or with one `{name}`.");
                Err(Error::invalid_request(message).with_field(name))
            }
        }
    }
}

/// The found records, and the condition that they still have to meet when they are written.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) ids: Vec<Uuid>,
    /// The object as the caller knows it, and the condition on its records. `None` if the call names the records.
    selection: Option<Arc<(Arc<Object>, Selection)>>,
}

impl Found {
    /// Returns the ids of those records that still meet the condition in this transaction. These records cannot change before the
    /// transaction ends. Related records can change, unless they refer to these records.
    ///
    /// # Errors
    /// `unavailable` if the check takes too long, because other writes wait for it.
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
        // A statement sees the state at its beginning, so the check has to begin after the wait for the locks.
        if let Some(lock) = sql::lock(dialect, object, vec![(&Scope::All, ids.clone())]) {
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
    /// Finds the records of a bulk call. It runs before the write, because other writes would have to wait during the search.
    ///
    /// # Errors
    /// `invalid_request` for more than `SVC_MAX_BULK` records, or for a condition that is invalid or tests nothing;
    /// `invalid_value` for an id that is not a UUID; `forbidden` for a condition of a caller without the right to read.
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
        let (grant_context, registry) = (self.grant_context(registry), self.known_to(caller, registry));
        let (known, reads) = caller.object(&grant_context, object.name(), Action::Read)?;
        let selection = with_reading(caller, &grant_context, &registry, asked.bytes(), |reading| {
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
                "More than {most} records meet the condition. One call is for {most} records at most."
            )));
        }
        Ok(Found { ids, selection: Some(chosen) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_its_records_by_ids_or_by_one_condition() {
        let condition = || Where::Parameter(r#"{"size":1}"#.to_owned());
        let ids = || Some(vec!["a".to_owned()]);
        assert!(matches!(Chosen::of(ids(), Vec::new()), Ok(Chosen::Ids(ids)) if ids == ["a"]));
        assert!(matches!(Chosen::of(Some(Vec::new()), Vec::new()), Ok(Chosen::Ids(ids)) if ids.is_empty()));
        assert!(matches!(Chosen::of(None, vec![condition()]), Ok(Chosen::Where(_))));
        for (ids, conditions) in [
            (None, Vec::new()),
            (ids(), vec![condition()]),
            (ids(), vec![condition(), condition()]),
            (None, vec![condition(), condition()]),
        ] {
            let refused = Chosen::of(ids, conditions).err();
            assert_eq!(refused.and_then(|error| error.field).as_deref(), Some("where"));
        }
    }
}
