//! Many new records in one transaction.

use std::sync::Arc;

use blockbase_query::plan::CreatePlan;
use blockbase_query::{Dialect, Param, sql};
use blockbase_schema::{Object, Result};
use blockbase_store::{Connection, DbError};
use uuid::Uuid;

use super::at;
use super::explain::{check_references, explained_new};
use super::steps::created_event;
use crate::record_events::WriteContext;

/// Rows of one statement on Postgres, and what it can bind.
const INSERT_ROWS_MAX: usize = 100;

const INSERT_PARAMS_MAX: usize = 60_000;

pub(crate) async fn insert_many(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Arc<Object>,
    plans: Vec<CreatePlan>,
) -> Result<Vec<Uuid>> {
    let Some(first) = plans.first() else { return Ok(Vec::new()) };
    let dialect = connection.dialect();
    if object.columns.iter().any(|column| column.reference.is_some()) {
        for (index, plan) in plans.iter().enumerate() {
            let checked = check_references(connection, context, object, plan.values.iter().enumerate()).await;
            checked.map_err(|error| at(index, error))?;
        }
    }
    let one = sql::insert(dialect, object, &[first]).sql;
    let inserted = match dialect {
        Dialect::Sqlite => {
            let documents = plans.iter().map(CreatePlan::search_document).collect();
            connection.insert_each(one, sets(&plans), object.id, documents).await
        }
        Dialect::Postgres => insert_in_chunks(connection, object, &plans, one).await,
    };
    if let Err((index, error)) = inserted {
        let error = explained_new(connection, context, &plans[index], None, error).await;
        return Err(at(index, error));
    }
    connection.count_rows(object.id, i64::try_from(plans.len()).unwrap_or(i64::MAX));
    let mut events = Vec::with_capacity(plans.len());
    for plan in &plans {
        events.extend(created_event(context, plan)?);
    }
    connection.emit_all(events).await?;
    Ok(plans.into_iter().map(|plan| plan.id).collect())
}

/// The values of each row.
fn sets(plans: &[CreatePlan]) -> Vec<Vec<Param>> {
    plans.iter().map(|plan| sql::insert_params(plan).collect()).collect()
}

/// Many rows a statement; where one fails, its rows one by one, to learn which it is.
async fn insert_in_chunks(
    connection: &mut Connection,
    object: &Object,
    plans: &[CreatePlan],
    one: String,
) -> Result<(), (usize, DbError)> {
    let rows = (INSERT_PARAMS_MAX / object.columns.len()).clamp(1, INSERT_ROWS_MAX);
    for (number, chunk) in plans.chunks(rows).enumerate() {
        let first = number * rows;
        connection.savepoint().await.map_err(|error| (first, error))?;
        let statement = sql::insert(connection.dialect(), object, &chunk.iter().collect::<Vec<_>>());
        let Err(error) = connection.execute(statement).await else { continue };
        connection.back_to_savepoint().await.map_err(|error| (first, error))?;
        let documents = vec![None; chunk.len()];
        let inserted = connection.insert_each(one.clone(), sets(chunk), object.id, documents).await;
        inserted.map_err(|(index, error)| (first + index, error))?;
        // What failed before does not fail now: another transaction was in the way.
        drop(error);
    }
    Ok(())
}
