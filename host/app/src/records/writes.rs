//! Writes records: create, update, upsert and delete, one record or many, all or none.
//!
//! A write is validated and rendered before it waits for its turn. The transaction only runs the statements. Only operations of a
//! batch that refer to earlier results are planned in the transaction, and their size is limited.

mod answer;
mod batch;
mod bulk;
mod chosen;
mod explain;
mod operations;
mod plan;
mod references;
mod request;
mod shown;
mod steps;
mod together;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use blockbase_query::plan::{Change, CreatePlan};
use blockbase_query::{Access, Action, sql};
use blockbase_schema::json::Members;
use blockbase_schema::{Error, Object, Registry, Result};
use uuid::Uuid;

use crate::App;
use crate::base::at::at;
use crate::base::offload::run_offloaded;
use crate::caller::Caller;
use crate::outbox::checks::check_fields;
use crate::records::deletion::delete_records;
use crate::records::links::LinkChange;
use crate::records::versions::{Condition, RecordAnswer};
use answer::WriteAnswer;
pub use answer::{BulkAnswer, Upserted, WrittenAnswer};
pub use batch::{Batch, BatchAnswer};
use bulk::change_many;
pub(crate) use bulk::insert_many;
pub use chosen::Chosen;
use chosen::Found;
use plan::{names, plan, stamp, to_change, without_unknown};
use request::WriteRequest;
pub(crate) use steps::create;
use steps::{Step, run_step};

impl App {
    /// The new record.
    pub async fn create(&self, caller: &Caller, object: &str, values: Members) -> Result<RecordAnswer> {
        match self.write_one(caller, &WriteRequest::Create { object: object.to_owned(), values }).await? {
            WriteAnswer::Created(record) => Ok(record),
            _ => Err(Error::internal("a create answered something else")),
        }
    }

    /// Changes a record and returns it as it is afterwards. `None` if no record was written.
    ///
    /// # Errors
    /// `precondition_failed` if the record is not in the state that `condition` requires; otherwise the errors of
    /// [`App::create`].
    pub async fn update(
        &self,
        caller: &Caller,
        object: &str,
        id: &str,
        changes: Members,
        condition: Option<Condition>,
    ) -> Result<Option<RecordAnswer>> {
        let request = WriteRequest::Update { object: object.to_owned(), id: id.to_owned(), changes, condition };
        match self.write_one(caller, &request).await? {
            WriteAnswer::Updated(record) => Ok(Some(record)),
            _ => Ok(None),
        }
    }

    /// Deletes a record. Returns whether there was a record to delete.
    ///
    /// # Errors
    /// `precondition_failed` if the record is not in the state that `condition` requires; `foreign_key_violation` if a record
    /// that stays refers to it; `answer_too_large` if too many records or links would be deleted or changed with it.
    pub async fn delete(&self, caller: &Caller, object: &str, id: &str, condition: Option<Condition>) -> Result<bool> {
        let request = WriteRequest::Delete { object: object.to_owned(), id: id.to_owned(), condition };
        Ok(matches!(self.write_one(caller, &request).await?, WriteAnswer::Deleted))
    }

    /// Inserts a record, or updates the record with the same values in the unique columns `target`.
    ///
    /// # Errors
    /// `invalid_upsert_target`; `forbidden` if the caller may not change the existing record; otherwise the errors of
    /// [`App::create`].
    pub async fn upsert(&self, caller: &Caller, object: &str, values: Members, target: &[String]) -> Result<Upserted> {
        let request = WriteRequest::Upsert { object: object.to_owned(), values, target: target.to_vec() };
        match self.write_one(caller, &request).await? {
            WriteAnswer::Upserted(upserted) => Ok(upserted),
            _ => Err(Error::internal("an upsert answered something else")),
        }
    }

    /// Links a record with others, or unlinks it. Returns how many links changed. `None` if the record does not exist.
    ///
    /// The caller needs update on the object, and read on the object of the other side. Rows of the other side that the caller
    /// may not read count as missing.
    ///
    /// # Errors
    /// `not_found` for a relation key that is not many_to_many, `foreign_key_violation` for an id to link that does not exist.
    /// Then nothing is linked.
    pub async fn change_links(
        &self,
        caller: &Caller,
        object: &str,
        id: &str,
        key: &str,
        ids: &[String],
        change: LinkChange,
    ) -> Result<Option<usize>> {
        let (object, id, relation) = (object.to_owned(), id.to_owned(), key.to_owned());
        match self.write_one(caller, &WriteRequest::Links { object, id, relation, ids: ids.to_vec(), change }).await? {
            WriteAnswer::Links(_, changed) => Ok(Some(changed)),
            _ => Ok(None),
        }
    }

    async fn write_one(&self, caller: &Caller, request: &WriteRequest) -> Result<WriteAnswer> {
        self.on_schema(caller, move |registry| async move {
            let mut context = self.write_context(caller, &registry);
            let step = run_offloaded(request.bytes(), || plan(&context, request))?;
            if matches!(step, Step::Missing) {
                return Ok(WriteAnswer::Missing);
            }
            // Deletions continue even if the disk is nearly full.
            if !step.frees_room() {
                self.store.check_room()?;
            }
            let answer = self
                .store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move {
                        let answer = run_step(connection, step, &mut context).await?;
                        context.check_rows(connection).await?;
                        Ok(answer)
                    })
                })
                .await?;
            let shown = self.shown(caller, &registry, vec![(request, answer)], self.settings.answer_bytes_max).await?;
            shown.into_iter().next().ok_or_else(|| Error::internal("a write gave no answer"))
        })
        .await
    }

    /// Creates several records of one object. Either all or none of them are created. Returns their ids, in order.
    ///
    /// # Errors
    /// The first failure, with the place of the failing record in its message.
    pub async fn create_many(&self, caller: &Caller, object: &str, records: Vec<Members>) -> Result<BulkAnswer> {
        let records = &records;
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Create)?;
            self.check_bulk_size(records.len())?;
            let mut context = self.write_context(caller, &registry);
            let stamp = stamp(&context);
            let plans = run_offloaded(records.iter().map(Members::bytes).sum(), || {
                let records = records.iter().enumerate();
                let plan = |values: &Members| {
                    let access = access.naming(&object, names(values))?;
                    let plan = CreatePlan::new(&object, &access, values, context.new_id(), &stamp)
                        .map_err(|error| without_unknown(caller, &context.grant_context(), &object, error))?;
                    Ok((plan, access))
                };
                records.map(|(index, values)| plan(values).map_err(|error| at(index, error))).collect::<Result<Vec<_>>>()
            })?;
            self.store
                .write(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        let (plans, accesses): (Vec<CreatePlan>, Vec<Access>) = plans.into_iter().unzip();
                        let ids = insert_many(connection, &context, &object, plans).await?;
                        // Records that the same grants allow are checked together.
                        let mut made: BTreeMap<Option<&[usize]>, (&Access, Vec<Uuid>)> = BTreeMap::new();
                        for (id, access) in ids.iter().zip(&accesses) {
                            made.entry(access.allowed_by()).or_insert((access, Vec::new())).1.push(*id);
                        }
                        made.into_values().for_each(|(access, ids)| context.made(&object, access, ids));
                        context.check_rows(connection).await?;
                        Ok(BulkAnswer { ids })
                    })
                })
                .await
        })
        .await
    }

    /// Deletes those of the chosen records that exist and that the caller may delete. Returns their ids, in the caller's order.
    ///
    /// # Errors
    /// The errors of [`App::find_chosen`]; `foreign_key_violation` if one is still referenced; `answer_too_large` if the records
    /// are too large, together with the records that are deleted or changed with them. After an error, no record is deleted.
    pub async fn delete_many(&self, caller: &Caller, object: &str, chosen: &Chosen) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Delete)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            let mut context = self.write_context(caller, &registry);
            let scope = access.scope().clone();
            self.store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        let ids = found.narrowed(connection, &mut context, &object).await?;
                        let gone = delete_records(connection, &mut context, &object, &scope, ids.clone(), None).await?;
                        Ok(BulkAnswer { ids: ids.into_iter().filter(|id| gone.contains(id)).collect() })
                    })
                })
                .await
        })
        .await
    }

    /// Makes the same change to those of the chosen records that exist and that the caller may change. Returns their ids, in the
    /// caller's order.
    ///
    /// # Errors
    /// The errors of [`App::find_chosen`]; `answer_too_large` if the records are too large together; otherwise the error of the
    /// change of one of them. After an error, no record is changed.
    pub async fn update_many(&self, caller: &Caller, object: &str, chosen: &Chosen, changes: &Members) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Update)?;
            let access = to_change(caller, &self.grant_context(&registry), &object, access, changes)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            let mut context = self.write_context(caller, &registry);
            let bytes = changes.bytes();
            let change = run_offloaded(bytes, || Change::new(&object, &access, changes, stamp(&context)))?;
            self.store
                .write(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        let ids = found.narrowed(connection, &mut context, &object).await?;
                        let ids = change_many(connection, &mut context, &object, &access, (&change, bytes), ids).await?;
                        context.check_rows(connection).await?;
                        Ok(BulkAnswer { ids })
                    })
                })
                .await
        })
        .await
    }

    /// Returns the ids of the records that [`App::update_many`] would change, without changing them. Values are checked against
    /// their fields, but not against other records.
    ///
    /// # Errors
    /// The errors of [`App::update_many`], except those that only the change itself can find.
    pub async fn update_many_dry(&self, caller: &Caller, object: &str, chosen: &Chosen, changes: &Members) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Update)?;
            let access = to_change(caller, &self.grant_context(&registry), &object, access, changes)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            // This call writes nothing, so it does not count as a write.
            let stamp = stamp(&self.context_of(caller, &registry, false));
            run_offloaded(changes.bytes(), || Change::new(&object, &access, changes, stamp))?;
            self.reached(caller, &registry, object, access, found).await
        })
        .await
    }

    /// Returns the ids of the chosen records that [`App::delete_many`] would delete, without deleting them. Dependent records are
    /// not listed.
    ///
    /// # Errors
    /// The errors of [`App::delete_many`], except those that only the deletion itself can find.
    pub async fn delete_many_dry(&self, caller: &Caller, object: &str, chosen: &Chosen) -> Result<BulkAnswer> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Delete)?;
            let found = self.find_chosen(caller, &registry, &object, &access, chosen).await?;
            self.reached(caller, &registry, object, access, found).await
        })
        .await
    }

    /// Returns those of the found records that exist and are within the access of the caller.
    async fn reached(
        &self,
        caller: &Caller,
        registry: &Registry,
        object: Arc<Object>,
        access: Access,
        Found { ids, .. }: Found,
    ) -> Result<BulkAnswer> {
        self.store
            .read_rows(self.by(caller), Some(registry.version), move |connection| {
                Box::pin(async move {
                    let statement = sql::visible(connection.dialect(), &object, access.scope(), ids.clone());
                    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(&object))?;
                    let found = rows.iter().map(|row| row.uuid(0)).collect::<Result<HashSet<Uuid>, _>>()?;
                    let ids: Vec<Uuid> = ids.into_iter().filter(|id| found.contains(id)).collect();
                    check_fields(connection, &object, &access, &ids).await?;
                    Ok(BulkAnswer { ids })
                })
            })
            .await
    }
}
