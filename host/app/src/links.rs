//! Links: pairs of records of a many_to_many relationship, made and removed.

use std::collections::HashSet;

use blockbase_query::plan::{LinkPlan, RecordPlan};
use blockbase_query::{Action, sql};
use blockbase_schema::{Code, Error, RelationShape, Result, json};
use blockbase_store::{Connection, DbError};
use uuid::Uuid;

use crate::App;
use crate::caller::Caller;
use crate::record_events::{WriteContext, owner};
use crate::records::record_id;
use crate::writes::parse_ids;

/// What becomes of the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    Add,
    Remove,
}

impl App {
    /// Links a record with others, or unlinks it: how many links changed; `None` where there is no such record.
    ///
    /// Needs update on the object and read on the other side's, whose hidden rows count as not there.
    ///
    /// # Errors
    /// `not_found` for a relation key that is not many_to_many, `foreign_key_violation` for an id to link that is not there:
    /// then nothing is linked.
    pub async fn change_links(
        &self,
        caller: &Caller,
        object: &str,
        id: &str,
        key: &str,
        ids: &[String],
        change: LinkChange,
    ) -> Result<Option<usize>> {
        self.check_bulk_size(ids.len())?;
        let targets = &parse_ids(ids)?;
        self.on_schema(move |registry| async move {
            let (object, access) = caller.object(&registry, object, Action::Update)?;
            let relation = registry
                .relation(object.name(), key)
                .filter(|relation| matches!(relation.shape, RelationShape::Linked { .. }))
                .ok_or_else(|| {
                    Error::new(Code::NotFound, format!("`{}` has no many_to_many relation `{key}`.", object.name()))
                })?;
            let target_access = caller.access(&relation.related, Action::Read)?;
            let target = registry.object(&relation.related).ok_or_else(|| Error::unknown_object(&relation.related))?;
            let Some(id) = record_id(id) else { return Ok(None) };
            let plan = LinkPlan {
                record: RecordPlan::new(&object, &access, id),
                relation: relation.clone(),
                target: target.clone(),
                target_scope: target_access.scope().clone(),
                target_ids: targets.clone(),
            };
            let mut context = self.write_context(caller, &registry);
            self.store.write(move |connection| Box::pin(async move { run(connection, plan, &mut context, change).await })).await
        })
        .await
    }
}

async fn run(
    connection: &mut Connection,
    plan: LinkPlan,
    context: &mut WriteContext,
    change: LinkChange,
) -> Result<Option<usize>> {
    let object = &plan.record.object;
    context.hold(connection, object).await?;
    context.hold(connection, &plan.target).await?;
    let dialect = connection.dialect();
    let record = connection.fetch_record(sql::get(dialect, &plan.record, false), &object.columns).await;
    let Some(record) = record.map_err(|error| error.on(object))? else { return Ok(None) };
    let missing = |id: &Uuid| {
        Error::new(Code::ForeignKeyViolation, format!("There is no record of `{}` with the id {id}.", plan.target.name()))
            .with_field("ids")
    };
    let visible = sql::visible(dialect, &plan.target, &plan.target_scope, plan.target_ids.clone());
    let visible = ids(connection.fetch_rows(visible).await.map_err(|error| error.on(&plan.target))?)?;
    let mut plan = plan.clone();
    match change {
        LinkChange::Add => {
            if let Some(id) = plan.target_ids.iter().find(|id| !visible.contains(id)) {
                return Err(missing(id));
            }
        }
        // A link to a row that the caller does not see is none of theirs.
        LinkChange::Remove => plan.target_ids.retain(|id| visible.contains(id)),
    }
    let statement = sql::change_links(dialect, &plan, change == LinkChange::Add)
        .ok_or_else(|| Error::internal("a link of a relation that has none"))?;
    let changed = match connection.fetch_rows(statement).await {
        Ok(rows) => ids(rows)?,
        // One of the records went between the look at it and the link.
        Err(DbError::ForeignKey { .. }) => {
            return Err(Error::new(Code::ForeignKeyViolation, "One of the records was deleted meanwhile."));
        }
        Err(error) => return Err(error.on(object)),
    };
    if changed.is_empty() {
        return Ok(Some(0));
    }
    let mut body = b"\"relationship\":".to_vec();
    json::write_string(&mut body, &plan.relation.key);
    body.extend_from_slice(b",\"targetObject\":");
    json::write_string(&mut body, plan.target.name());
    body.extend_from_slice(b",\"targetIds\":[");
    for (place, id) in plan.target_ids.iter().filter(|id| changed.contains(id)).enumerate() {
        body.extend_from_slice(if place > 0 { b",\"" } else { b"\"" });
        body.extend_from_slice(id.hyphenated().to_string().as_bytes());
        body.push(b'"');
    }
    body.push(b']');
    let op = if change == LinkChange::Add { "linked" } else { "unlinked" };
    if let Some(event) = context.event_of(object, plan.record.id, op, &body, owner(object, &record))? {
        connection.emit(event).await?;
    }
    Ok(Some(changed.len()))
}

fn ids(rows: Vec<blockbase_store::Row>) -> Result<HashSet<Uuid>> {
    rows.iter().map(|row| row.uuid(0).map_err(Error::from)).collect()
}
