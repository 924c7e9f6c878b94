//! Deletes the records that an erased user created, in transactions that are bounded by rows and bytes.

use blockbase_query::{Action, sql};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::ReadCost;

use crate::App;
use crate::caller::Caller;
use crate::records::deletion::{RECORDS_AT_ONCE, Step, StepSize, delete_some, in_steps};
use crate::records::read::record_id;
use crate::records::writes::Chosen;

impl App {
    /// Deletes the records that the user created, with the caller's rights. Returns their number.
    pub(super) async fn erase_records(&self, caller: &Caller, user_id: &str) -> Result<usize> {
        let mut deleted = 0;
        let mut was_idle = false;
        loop {
            let (mut is_over, mut refused, before) = (true, None, deleted);
            for object in self.registry().objects() {
                let at_once = RECORDS_AT_ONCE.min(self.settings.bulk_records_max);
                let (sql, user_id) = (sql::ids_created_by(self.store.dialect(), object, at_once), user_id.to_owned());
                let ids = self
                    .store
                    .read_as_service(ReadCost::Scan, move |connection| {
                        Box::pin(async move { Ok(connection.ids_created_by(sql, &user_id).await?) })
                    })
                    .await?;
                if ids.is_empty() {
                    continue;
                }
                is_over = false;
                match self.delete_in_parts(caller, object.name(), ids, &mut deleted).await {
                    Ok(()) => {}
                    // Records of another object may have to be deleted first.
                    Err(error) if error.code == Code::ForeignKeyViolation => refused = Some(error),
                    Err(error) => return Err(error),
                }
            }
            // Other callers may have deleted the records that this round found. So the erasure gives up only after a second round
            // without a deletion.
            let is_stuck = was_idle && deleted == before;
            was_idle = deleted == before;
            match refused {
                _ if is_over => return Ok(deleted),
                Some(error) if is_stuck => return Err(error),
                // A row policy hides the remaining records from the caller.
                None if is_stuck => {
                    return Err(Error::new(Code::Forbidden, "You may not delete all records that this user created."));
                }
                _ => {}
            }
        }
    }

    /// Deletes records together, or in halves if they are too large for one transaction. `deleted` counts the deleted records.
    async fn delete_in_parts(&self, caller: &Caller, object: &str, ids: Vec<String>, deleted: &mut usize) -> Result<()> {
        let mut parts = vec![ids];
        while let Some(mut part) = parts.pop() {
            match self.delete_many(caller, object, &Chosen::Ids(part.clone())).await {
                Ok(answer) => *deleted += answer.ids.len(),
                Err(error) if error.code == Code::AnswerTooLarge && part.len() > 1 => {
                    parts.push(part.split_off(part.len() / 2));
                    parts.push(part);
                }
                Err(error) if error.code == Code::AnswerTooLarge => {
                    for id in &part {
                        *deleted += usize::from(self.delete_in_steps(caller, object, id).await?);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Deletes one record whose dependent records are too many for one transaction. Returns whether the record existed.
    async fn delete_in_steps(&self, caller: &Caller, object: &str, id: &str) -> Result<bool> {
        in_steps(false, |size| self.delete_step(caller, object, id, size)).await
    }

    async fn delete_step(&self, caller: &Caller, object: &str, id: &str, size: StepSize) -> Result<Step> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Delete)?;
            let Some(id) = record_id(id) else { return Ok(Step::Done(false)) };
            let mut context = self.write_context(caller, &registry);
            let scope = access.scope().clone();
            self.store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move {
                        context.hold_with(connection, &object, &[&access]).await?;
                        delete_some(connection, &mut context, &object, &scope, id, size).await
                    })
                })
                .await
        })
        .await
    }
}
