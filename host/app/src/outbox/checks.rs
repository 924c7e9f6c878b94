//! Checks that each row that a call wrote meets the `check` of a grant.
//!
//! Several grants may allow to write a row. The row has to meet the check of a grant that included it before the change. So the
//! server looks at rows before it changes them. Every grant includes new rows.
//!
//! Checks are judged at the end of the call, because rows that belong together are written one after the other. But if a later
//! operation writes a row again, the row is judged before that. Otherwise the call could pass through a state that no call may
//! leave: the conditions of grants, events and references to results would take it into account, and the end would not show it.
//! For the same reason, rows are judged before the grant of a later operation looks at rows of their object.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use blockbase_query::plan::LinkPlan;
use blockbase_query::{Access, Condition, Scope, not_readable, not_writable, sql};
use blockbase_schema::{Code, Error, Object, RelationShape, Result};
use blockbase_store::Connection;
use uuid::Uuid;

use crate::base::at::at_operation;
use crate::outbox::pending::{Due, Link, Place, RowKey, Written};
use crate::outbox::record_events::WriteContext;

impl WriteContext {
    /// Locks an object that is about to be written, and the objects whose rows decide whether the write is allowed. All writers
    /// lock in the same order.
    ///
    /// # Errors
    /// The errors of [`WriteContext::hold`].
    pub(crate) async fn hold_with(
        &mut self,
        connection: &mut Connection,
        object: &Arc<Object>,
        access: &[&Access],
    ) -> Result<()> {
        let mut objects = vec![Arc::clone(object)];
        access.iter().for_each(|access| access.objects_into(&mut objects));
        objects.sort_unstable_by_key(|object| object.id);
        for object in objects {
            self.hold(connection, &object).await?;
        }
        Ok(())
    }

    /// Judges the rows that earlier operations of the call have written, before they decide which rows the next operation may
    /// change. Each row is judged once in this way. It also has to meet its check at the end.
    ///
    /// # Errors
    /// `forbidden` if one of them fails its check.
    pub(crate) async fn decides_by(
        &mut self,
        connection: &mut Connection,
        access: &Access,
        targets: Option<&Scope>,
    ) -> Result<()> {
        if self.checks.is_empty() {
            return Ok(());
        }
        let mut objects = Vec::new();
        access.objects_before_into(&mut objects);
        targets.inspect(|scope| scope.objects_into(&mut objects));
        for object in objects {
            let due = self.checks.unjudged_of(object.id);
            self.judge(connection, due).await?;
        }
        Ok(())
    }

    /// Notes that rows are new.
    pub(crate) fn made(&mut self, object: &Arc<Object>, access: &Access, ids: Vec<Uuid>) {
        if self.is_batch {
            self.new_records.extend(ids.iter().map(|id| (object.id, *id)));
        }
        let Some(checks) = access.checks() else { return };
        let leaves = Condition::any(checks.iter().map(|check| check.leaves.condition(object)).collect());
        self.checks.note(Written::New, object, leaves, ids, self.operation);
    }

    /// Notes that rows are about to be changed. Those that an earlier operation of the call has written are judged now.
    ///
    /// # Errors
    /// `forbidden` if one of them fails its check; `forbidden` with `field` if a field may not be written or read in one of them;
    /// the errors of the statements that read the rows.
    pub(crate) async fn changes(
        &mut self,
        connection: &mut Connection,
        object: &Arc<Object>,
        access: &Access,
        ids: &[Uuid],
    ) -> Result<()> {
        let due = self.checks.take(ids.iter().map(|id| (object.id, *id)));
        self.judge(connection, due).await?;
        self.note_changes(connection, object, access, ids).await
    }

    async fn note_changes(
        &mut self,
        connection: &mut Connection,
        object: &Arc<Object>,
        access: &Access,
        ids: &[Uuid],
    ) -> Result<()> {
        check_reads(connection, object, access, ids).await?;
        let Some(checks) = access.checks() else { return Ok(()) };
        // For each row, the checks of the grants that include it.
        let mut grants: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
        for (number, check) in checks.iter().enumerate() {
            let reached = match (checks.len(), access.contested()) {
                // The rows were found within this scope.
                (1, None) => ids.to_vec(),
                _ => within(connection, object, &check.reached, ids.to_vec()).await?.into_iter().collect(),
            };
            reached.into_iter().for_each(|id| grants.entry(id).or_default().push(number));
        }
        if let Some(field) = access.contested().filter(|_| grants.len() < ids.len()) {
            return Err(not_writable(field));
        }
        let mut by_grants: BTreeMap<Vec<usize>, Vec<Uuid>> = BTreeMap::new();
        grants.into_iter().for_each(|(id, numbers)| by_grants.entry(numbers).or_default().push(id));
        for (numbers, ids) in by_grants {
            let leaves = Condition::any(numbers.iter().map(|number| checks[*number].leaves.condition(object)).collect());
            self.checks.note(Written::Changed, object, leaves, ids, self.operation);
        }
        Ok(())
    }

    /// Notes that an operation is about to make or remove links of a row. If an earlier operation changed the row or its links, the
    /// row is judged now. A new row is judged later, because its links are a part of making it.
    ///
    /// If an earlier operation named one of the links on its other side, the row of that side is judged now. It also has to meet
    /// its check at the end, because this change has no check of that row.
    ///
    /// # Errors
    /// Those of [`WriteContext::changes`].
    pub(crate) async fn changes_links(
        &mut self,
        connection: &mut Connection,
        access: &Access,
        plan: &LinkPlan,
        are_made: bool,
    ) -> Result<()> {
        let (object, id) = (&plan.record.object, plan.record.id);
        let row = (object.id, id);
        let due = self.checks.take_changed(row);
        self.judge(connection, due).await?;
        self.note_changes(connection, object, access, &[id]).await?;
        if self.is_batch && !self.checks.is_empty() {
            let links = links_of(plan);
            let due = self.checks.due_changed(self.checks.naming(row, &links).into_iter());
            self.judge(connection, due).await?;
            self.checks.note_links(row, &links, are_made);
        }
        Ok(())
    }

    /// Judges rows that a deletion is about to change: those that it deletes, those of `cleared`, which lose a reference to them,
    /// and those that the call has linked with them. The rows that stay also have to meet their checks at the end, because the
    /// deletion has no check of them.
    ///
    /// # Errors
    /// `forbidden` if one of them fails its check.
    pub(crate) async fn deletes(
        &mut self,
        connection: &mut Connection,
        gone: &HashSet<RowKey>,
        cleared: Vec<RowKey>,
    ) -> Result<()> {
        let mut due = self.checks.due_changed(self.checks.linked_with(gone).into_iter());
        due.extend(self.checks.due(cleared.into_iter().filter(|row| !gone.contains(row))));
        due.extend(self.checks.take(gone.iter().copied()));
        self.judge(connection, due).await
    }

    /// Checks, at the end of a call, that the rows that it wrote meet their conditions.
    ///
    /// # Errors
    /// `forbidden`.
    pub(crate) async fn check_rows(&mut self, connection: &mut Connection) -> Result<()> {
        let due = self.checks.take_all();
        self.judge(connection, due).await
    }

    /// Judges rows. The error is that of the row that was written first.
    async fn judge(&mut self, connection: &mut Connection, due: Vec<Due>) -> Result<()> {
        let mut first: Option<(Place, Arc<Object>)> = None;
        for Due { object, failing, rows } in due {
            let failing = within(connection, &object, &failing, rows.iter().map(|(_, id)| *id).collect()).await?;
            let place = rows.into_iter().find(|(_, id)| failing.contains(id)).map(|(place, _)| place);
            if let Some(place) = place.filter(|place| first.as_ref().is_none_or(|(first, _)| place.number < first.number)) {
                first = Some((place, object));
            }
        }
        let Some((place, object)) = first else { return Ok(()) };
        self.has_failed_check = true;
        let message = format!("Your permissions do not allow a record of `{}` to be like this.", object.name());
        let error = Error::new(Code::Forbidden, message);
        Err(match place.operation {
            Some(index) => at_operation(index, error),
            None => error,
        })
    }
}

/// The links that a plan names, as its record sees them.
fn links_of(plan: &LinkPlan) -> Vec<Link> {
    let RelationShape::Linked { relationship_id, is_source } = plan.relation.shape else { return Vec::new() };
    plan.target_ids.iter().map(|id| Link { relationship_id, is_source, other: (plan.target.id, *id) }).collect()
}

/// Checks that each of the rows is included in a grant that allows all fields that the write names, and that the caller may read
/// the values that the write reads.
///
/// # Errors
/// `forbidden` with `field`.
pub(crate) async fn check_fields(connection: &mut Connection, object: &Object, access: &Access, ids: &[Uuid]) -> Result<()> {
    check_reads(connection, object, access, ids).await?;
    if let (Some(field), Some(checks)) = (access.contested(), access.checks()) {
        let reached = Condition::any(checks.iter().map(|check| check.reached.condition(object)).collect());
        let reached = Scope::Where(Arc::new(reached));
        if within(connection, object, &reached, ids.to_vec()).await?.len() < ids.len() {
            return Err(not_writable(field));
        }
    }
    Ok(())
}

/// Checks, for each of the rows, that the caller may read the values that a write reads.
async fn check_reads(connection: &mut Connection, object: &Object, access: &Access, ids: &[Uuid]) -> Result<()> {
    for (field, readable) in access.reads() {
        if within(connection, object, readable, ids.to_vec()).await?.len() < ids.len() {
            return Err(not_readable(field));
        }
    }
    Ok(())
}

/// Returns those of the rows that exist and are within a scope.
pub(crate) async fn within(connection: &mut Connection, object: &Object, scope: &Scope, ids: Vec<Uuid>) -> Result<HashSet<Uuid>> {
    let statement = sql::visible(connection.dialect(), object, scope, ids);
    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(object))?;
    rows.iter().map(|row| row.uuid(0).map_err(Error::from)).collect()
}
