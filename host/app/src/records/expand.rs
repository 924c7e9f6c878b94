//! Fetches related records, once for each relation and level, and puts them into the records that they belong to.

use std::collections::HashMap;

use blockbase_query::expand::ExpandPlan;
use blockbase_query::limits::EXPAND_RECORDS_MAX;
use blockbase_query::sql::{self, Statement};
use blockbase_schema::{Column, Error, Object, RelationShape, Result, json, system};
use blockbase_store::{Connection, DbError, Record, RecordsMax};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use uuid::Uuid;

/// `id` is the first column of every object.
const ID_COLUMN: usize = 0;

/// The number of bytes that one request may still read and show. If several records refer to a record, it is read once and shown
/// with each of them.
#[derive(Clone)]
pub(crate) struct Budget {
    read: usize,
    shown: usize,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Budget {
        Budget { read: bytes_max, shown: bytes_max }
    }

    /// Reads records within the bytes that are left. Only the first `counted` records count.
    ///
    /// # Errors
    /// `answer_too_large` if the records have more bytes than are left; otherwise the errors of the statement.
    pub(crate) async fn fetch(
        &mut self,
        connection: &mut Connection,
        statement: Statement,
        columns: &[&Column],
        hidden: usize,
        counted: usize,
    ) -> Result<Vec<Record>, DbError> {
        let records = connection.fetch_records(statement, columns, hidden, RecordsMax { bytes: self.read, counted }).await?;
        self.read = self.read.saturating_sub(records.iter().take(counted).map(Record::bytes).sum());
        Ok(records)
    }

    /// # Errors
    /// `answer_too_large` if fewer bytes are left.
    fn show(&mut self, bytes: usize) -> Result<()> {
        self.shown = self.shown.checked_sub(bytes).ok_or_else(Error::answer_too_large)?;
        Ok(())
    }
}

/// The related records of one relation key: their JSON, separated by commas. The key of the map is the id of the expanded record
/// or its foreign key.
type Related = HashMap<Uuid, Vec<u8>>;

/// The JSON of each of `records`, with the related records of `plans`.
///
/// `place_of` returns the index of a column of the expanded object among the cells.
pub(crate) async fn expanded(
    connection: &mut Connection,
    plans: &[ExpandPlan],
    records: Vec<Record>,
    place_of: &(dyn Fn(usize) -> Option<usize> + Sync),
    budget: &mut Budget,
) -> Result<Vec<Vec<u8>>> {
    if plans.is_empty() || records.is_empty() {
        return Ok(records.into_iter().map(Record::into_json).collect());
    }
    let mut related = Vec::with_capacity(plans.len());
    for plan in plans {
        related.push(fetch(connection, plan, &records, place_of, budget).await?);
    }
    let mut texts = Vec::with_capacity(records.len());
    for record in records {
        texts.push({
            let keys: Vec<Option<Uuid>> =
                plans.iter().map(|plan| place_of(key_column(plan)).and_then(|place| record.uuid(place))).collect();
            let mut json = record.into_json();
            json.pop();
            for ((plan, related), key) in plans.iter().zip(&related).zip(keys) {
                json.push(b',');
                json::write_string(&mut json, &plan.key);
                json.push(b':');
                let found = key.and_then(|key| related.get(&key));
                // If several records refer to a record, it is shown with each of them.
                budget.show(found.map_or(0, Vec::len))?;
                match (plan.shape.is_single(), found) {
                    (true, found) => json.extend_from_slice(found.map_or(b"null", Vec::as_slice)),
                    (false, found) => {
                        json.push(b'[');
                        json.extend_from_slice(found.map_or(b"", Vec::as_slice));
                        json.push(b']');
                    }
                }
            }
            json.push(b'}');
            json
        });
    }
    Ok(texts)
}

/// The column of the expanded object by whose value related records are found.
fn key_column(plan: &ExpandPlan) -> usize {
    match plan.shape {
        RelationShape::Forward { column } => column,
        RelationShape::Reverse { .. } | RelationShape::Linked { .. } => ID_COLUMN,
    }
}

fn fetch<'a>(
    connection: &'a mut Connection,
    plan: &'a ExpandPlan,
    records: &'a [Record],
    place_of: &'a (dyn Fn(usize) -> Option<usize> + Sync),
    budget: &'a mut Budget,
) -> BoxFuture<'a, Result<Related>> {
    async move {
        let mut keys: Vec<Uuid> = records.iter().filter_map(|record| record.uuid(place_of(key_column(plan))?)).collect();
        keys.sort_unstable();
        keys.dedup();
        let object: &Object = &plan.object;
        let id = object.column(system::ID).ok_or_else(|| Error::internal("an object without an id"))?;
        let read = || plan.columns.iter().chain(&plan.hidden).copied();
        let place_of = |column| read().position(|index| index == column);
        let mut columns: Vec<&Column> = read().map(|index| &object.columns[index]).collect();
        let is_linked = matches!(plan.shape, RelationShape::Linked { .. });
        // The link's column for the near side comes after the other columns and is not shown.
        columns.extend(is_linked.then_some(id));
        let statement = sql::related(connection.dialect(), plan, keys);
        let hidden = plan.hidden.len() + usize::from(is_linked);
        let found = budget.fetch(connection, statement, &columns, hidden, usize::MAX).await;
        let found = found.map_err(|error| error.on(object))?;
        if found.len() > EXPAND_RECORDS_MAX {
            return Err(Error::invalid_request(format!(
                "`expand={}` would bring more than {EXPAND_RECORDS_MAX} records. Ask for a smaller page, or list `{}` with a filter.",
                plan.key,
                object.name()
            )));
        }
        let owners: Vec<Option<Uuid>> = found
            .iter()
            .map(|record| match plan.shape {
                RelationShape::Forward { .. } => place_of(ID_COLUMN).and_then(|place| record.uuid(place)),
                RelationShape::Reverse { column, .. } => place_of(column).and_then(|place| record.uuid(place)),
                RelationShape::Linked { .. } => record.uuid(columns.len() - 1),
            })
            .collect();
        let texts = expanded(connection, &plan.children, found, &place_of, budget).await?;
        let mut by_key = Related::new();
        for (owner, text) in owners.into_iter().zip(texts) {
            let Some(owner) = owner else { continue };
            let kept = by_key.entry(owner).or_default();
            if !kept.is_empty() {
                kept.push(b',');
            }
            kept.extend_from_slice(&text);
        }
        Ok(by_key)
    }
    .boxed()
}
