//! Erases a person: the data that the service itself stores about a user.
//!
//! The task `erase_user` runs the erasure, because it reads the whole outbox. Each step commits by itself, and the erasure can be
//! repeated: a second run does not find the data that the first one erased. Steps for records, stamps and search indexes have a
//! bounded size, so they do not grow with the user's data. Data that is found by the user's address is deleted before the account
//! or together with it, because the address is unknown afterwards.

mod records;

use blockbase_query::{Action, ddl};
use blockbase_schema::{Error, Resource, Result, Retry};
use blockbase_store::{Connection, ReadCost, UserRow};
use serde_json::{Value, json};

use crate::App;
use crate::accounts::removal::remove_person;
use crate::accounts::users::keep_an_admin;
use crate::base::topic::{Topic, UserMembers};
use crate::caller::Caller;
use crate::caller::check_basis::CheckBasis;
use crate::outbox::audit::{Act, AuditAction};
use crate::records::stamps::{Restamped, restamp};
use crate::state::sign_in_tries::account_of;

/// The parameters of an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) user_id: String,
    /// Whether the records that the user created are deleted. Otherwise only the stamps that name the user are cleared.
    pub(crate) deletes_records: bool,
}

/// The data that was deleted together with the account.
#[derive(Clone, Copy, Debug, Default)]
struct ErasedAccount {
    /// Whether the account existed.
    is_deleted: bool,
    log_lines: u64,
    task_runs: u64,
}

/// The maximum number of merges of one search index. Other writes can end a merge before all parts are joined. Then another merge
/// continues.
const MERGES_MAX: usize = 5;
/// The maximum number of records whose stamps one transaction clears.
const STAMPS_AT_ONCE: usize = 2_000;

impl App {
    /// Requires the rights that an erasure needs: to delete all users and events.
    pub(crate) fn require_erasure(&self, caller: &Caller) -> Result<()> {
        caller.require(Resource::Users, Action::Delete)?;
        caller.require(Resource::Events, Action::Delete)
    }

    /// Erases a user. Returns `{ user, recordsDeleted, recordsUnstamped, events, eventsWaiting, logLines, taskRuns }`.
    ///
    /// # Errors
    /// `forbidden` if the user has rights that the caller lacks, `conflict` for the last admin, and any error that refuses the deletion
    /// of a record.
    pub(crate) async fn erase_user(&self, caller: &Caller, erasure: &Erasure) -> Result<Value> {
        self.require_erasure(caller)?;
        let user = &erasure.user_id;
        if let Some(email) = self.address_to_erase(caller, user).await? {
            self.erase_address_from_audit(&email).await?;
        }
        let account = self.removing(caller, user, || self.erase_account(caller, user)).await?;
        // Some records of a guest who became this user may not have been moved to the user yet.
        self.finish_carry_overs_of(Some(&erasure.user_id)).await?;
        let caller = &Caller { basis: self.basis_of_erasure(caller, &erasure.user_id), ..caller.clone() };
        let deleted = match erasure.deletes_records {
            true => self.erase_records(caller, &erasure.user_id).await?,
            false => 0,
        };
        let unstamped = self.erase_stamps(caller, &erasure.user_id).await?;
        let (events, waiting) = self.erase_events(caller, &erasure.user_id).await?;
        let user_id = erasure.user_id.clone();
        let (lines, runs) = self
            .store
            .write_in_reserve(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.forget_schema_author(&user_id).await?;
                    let lines = connection.delete_block_logs_with(&user_id).await?;
                    Ok((lines, connection.clear_task_runs_with(&user_id).await?))
                })
            })
            .await?;
        self.erase_from_search(caller).await?;
        self.store.forget_deleted().await?;
        Ok(json!({
            "user": account.is_deleted,
            "recordsDeleted": deleted,
            "recordsUnstamped": unstamped,
            "events": events,
            "eventsWaiting": waiting,
            "logLines": account.log_lines + lines,
            "taskRuns": account.task_runs + runs,
        }))
    }

    /// The data for checking the caller after the account is deleted. Only the rights that the erasure needs count. Callers who
    /// erase themselves, or the maker of their key, no longer have an account, so the service finishes the erasure for them.
    fn basis_of_erasure(&self, caller: &Caller, user_id: &str) -> CheckBasis {
        let maker = caller.identity().and_then(|identity| identity.api_key()).and_then(|key| key.maker.user_id.as_deref());
        if caller.actor_id() == Some(user_id) || maker == Some(user_id) {
            return CheckBasis::default();
        }
        let mut needs =
            Vec::from([Resource::Users, Resource::Events].map(|resource| (resource.name().to_owned(), Action::Delete)));
        needs.extend(self.registry().objects().map(|object| (object.name().to_owned(), Action::Delete)));
        caller.basis.clone().that_needs(needs)
    }

    /// The address of the account, if it still exists.
    ///
    /// # Errors
    /// Those that refuse the erasure of the account.
    async fn address_to_erase(&self, caller: &Caller, id: &str) -> Result<Option<String>> {
        let (app, id, caller) = (self.itself()?, id.to_owned(), caller.clone());
        self.store
            .write_in_reserve(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    Ok(erasable_user(&app, connection, &caller, &id).await?.map(|user| user.email))
                })
            })
            .await
    }

    /// Deletes the account with its sessions, roles and keys, and all data that contains its address. Suspends the things that the user
    /// made.
    async fn erase_account(&self, caller: &Caller, id: &str) -> Result<ErasedAccount> {
        self.on_schema(caller, move |registry| async move {
            let (announcer, auditor, app) = (self.announcer(caller), self.auditor(caller), self.itself()?);
            let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
            let (id, caller, now) = (id.to_owned(), caller.clone(), self.clock.now());
            self.change_accounts_by(caller.basis.clone(), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    let user = erasable_user(&app, connection, &caller, &id).await?;
                    let Some(user) = user else { return Ok(ErasedAccount::default()) };
                    auditor.record(connection, Act::on_user(AuditAction::Erase, &id)).await?;
                    connection.forget_sign_in_tries_of(&account_of(&user.email)).await?;
                    let log_lines = connection.delete_block_logs_with(&user.email).await?;
                    let task_runs = connection.clear_task_runs_with(&user.email).await?;
                    remove_person(connection, &mut context, &announcer, &id, now).await?;
                    announcer.emit(connection, Topic::UserDeleted(UserMembers { user_id: &id })).await?;
                    Ok(ErasedAccount { is_deleted: true, log_lines, task_runs })
                })
            })
            .await
        })
        .await
    }

    /// Clears the user's id in the stamps of records. Returns the number of records.
    async fn erase_stamps(&self, caller: &Caller, user_id: &str) -> Result<u64> {
        let names: Vec<String> = self.registry().objects().map(|object| object.name().to_owned()).collect();
        let mut changed = 0;
        for name in &names {
            loop {
                let step = self.erase_some_stamps(caller, user_id, name).await?;
                changed += step.changed;
                if !step.has_rest {
                    break;
                }
            }
        }
        Ok(changed)
    }

    /// Merges the search indexes that still contain text of deleted or changed records.
    async fn erase_from_search(&self, caller: &Caller) -> Result<()> {
        let names: Vec<String> = self.registry().objects().map(|object| object.name().to_owned()).collect();
        for name in &names {
            for _ in 0..MERGES_MAX {
                let mut begins = true;
                let mut began = std::time::Instant::now();
                while self.merge_search(caller, name, begins).await? {
                    begins = false;
                    // The loop pauses for as long as it worked, so that others can write.
                    tokio::time::sleep(began.elapsed()).await;
                    began = std::time::Instant::now();
                }
                if begins {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs one step of a merge. Returns whether there is more to do.
    async fn merge_search(&self, caller: &Caller, name: &str, begins: bool) -> Result<bool> {
        self.on_schema(caller, move |registry| async move {
            let object = registry.object(name);
            let Some(merge) = object.and_then(|object| ddl::merge_search_index(self.store.dialect(), object)) else {
                return Ok(false);
            };
            self.store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move {
                        if connection.version("schema").await? != registry.version {
                            return Err(Error::retry(Retry::SchemaMoved, "the schema has changed meanwhile"));
                        }
                        Ok(connection.merge_search(merge, begins).await?)
                    })
                })
                .await
        })
        .await
    }

    /// Clears the stamps of a bounded number of an object's records, so that other writes can run in between.
    async fn erase_some_stamps(&self, caller: &Caller, user_id: &str, name: &str) -> Result<Restamped> {
        self.on_schema(caller, move |registry| async move {
            // If the object was deleted meanwhile, its stamps are gone too.
            let Some(object) = registry.object(name).cloned() else { return Ok(Restamped { changed: 0, has_rest: false }) };
            let user_id = user_id.to_owned();
            self.store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move {
                        if connection.version("schema").await? != registry.version {
                            return Err(Error::retry(Retry::SchemaMoved, "the schema has changed meanwhile"));
                        }
                        restamp(connection, &object, (&user_id, None), STAMPS_AT_ONCE).await
                    })
                })
                .await
        })
        .await
    }

    /// Deletes settled events that belong to the user's records or name the user. Unsettled events stay, because consumers with a
    /// copy of the data need them to delete it. Returns the number of deleted events, and the number of events that remain
    /// because a consumer still has to get them.
    async fn erase_events(&self, caller: &Caller, user_id: &str) -> Result<(u64, u64)> {
        let (mut after, mut deleted, mut waiting) = (0, 0, 0);
        loop {
            let page = self
                .store
                .read_as_service(ReadCost::Scan, move |connection| {
                    Box::pin(async move { Ok(connection.events_between(after, i64::MAX).await?) })
                })
                .await?;
            let Some(last) = page.last else { return Ok((deleted, waiting)) };
            let names_user = |event: &blockbase_store::CommittedEvent| {
                event.owner.as_deref() == Some(user_id) || event.payload().contains(user_id)
            };
            let theirs: Vec<i64> = page.events.iter().filter(|event| names_user(event)).map(|event| event.seq).collect();
            if !theirs.is_empty() {
                let began = std::time::Instant::now();
                let (gone, left) = self
                    .store
                    .write_in_reserve(self.by(caller), move |connection| {
                        Box::pin(async move { Ok(connection.delete_settled_events(&theirs).await?) })
                    })
                    .await?;
                deleted += gone;
                waiting += left;
                // The loop pauses for as long as it worked, so that others can write.
                tokio::time::sleep(began.elapsed()).await;
            }
            after = last;
        }
    }
}

/// The user whom an erasure deletes, locked. `None` if the account is gone. The caller of this function has locked the accounts.
///
/// # Errors
/// `forbidden` if the user has rights that the caller lacks, `conflict` for the last admin.
async fn erasable_user(app: &App, connection: &mut Connection, caller: &Caller, id: &str) -> Result<Option<UserRow>> {
    let Some(user) = connection.held_user(id).await? else { return Ok(None) };
    app.require_rights_of_user(connection, caller, &user).await?;
    keep_an_admin(connection, &user).await?;
    Ok(Some(user))
}
