//! Deletes users, and cleans up after deleted keys. Every operation that deletes a user or a key calls these functions.
//!
//! Erasing a user deletes whole events, because the server does not know which parts of an event are about the person.

use std::sync::Arc;

use blockbase_query::{Scope, sql};
use blockbase_schema::{Code, Error, Registry, RelationshipKind, Result, Retry, USERS};
use blockbase_store::{Connection, KeyHolder, MakerPart};

use crate::App;
use crate::access::makers::settle;
use crate::base::topic::Topic;
use crate::caller::Caller;
use crate::outbox::audit::{forget_user, has_too_many_rows};
use crate::outbox::platform_event::Announcer;
use crate::outbox::record_events::WriteContext;
use crate::records::deletion::{Step, StepSize, delete_records, delete_some, in_steps};
use crate::records::read::record_id;

/// Clears the references to a user who is about to be deleted, or deletes the records that refer to the user, as the
/// relationships say. Removes links with the user. The database would do the same, but without stamps and events.
///
/// # Errors
/// `answer_too_large` if these are more records than one call may change.
pub(crate) async fn detach_user(connection: &mut Connection, context: &mut WriteContext, id: &str) -> Result<()> {
    let registry = Arc::clone(&context.registry);
    if connection.version("schema").await? != registry.version {
        return Err(Error::retry(Retry::SchemaMoved, "the schema is another by now"));
    }
    let (Some(users), Some(id)) = (registry.users().filter(|_| registry.leads_to_users()), record_id(id)) else { return Ok(()) };
    // The user's row that relationships refer to is deleted first. Otherwise it would be deleted with the user.
    delete_records(connection, context, users, &Scope::All, vec![id], None).await.map(drop)
}

impl App {
    /// Runs `remove`, which deletes a user in one transaction with [`remove_person`]. If too many records refer to the user for
    /// one transaction, it first detaches them in several transactions. Others can see the steps in between. If the audit log has
    /// too many rows about the user, it then replaces their texts in several transactions. This comes last, so that the texts
    /// stay if the records cannot be detached.
    pub(crate) async fn removing<T, F>(&self, caller: &Caller, id: &str, remove: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let is_too_large = |error: &Error| error.code == Code::AnswerTooLarge && !has_too_many_rows(error);
        // `remove` checks the caller first. So if it is too large, the caller may delete the user.
        let mut outcome = remove().await;
        if outcome.as_ref().is_err_and(is_too_large) {
            self.detach_user_in_steps(caller, id).await?;
            outcome = remove().await;
        }
        // `remove` has detached the records before it counted these rows. So nothing refuses the deletion any more, unless
        // somebody changes the rights or the records meanwhile.
        if outcome.as_ref().is_err_and(has_too_many_rows) {
            self.forget_user_in_steps(id).await?;
            outcome = remove().await;
        }
        outcome
    }

    /// Detaches the records that refer to a user, in several transactions.
    async fn detach_user_in_steps(&self, caller: &Caller, id: &str) -> Result<()> {
        in_steps(true, |size| self.detach_step(caller, id, size)).await.map(drop)
    }

    async fn detach_step(&self, caller: &Caller, id: &str, size: StepSize) -> Result<Step> {
        self.on_schema(caller, move |registry| async move {
            let users = registry.users().filter(|_| registry.leads_to_users()).cloned();
            let (Some(users), Some(id)) = (users, record_id(id)) else { return Ok(Step::Done(false)) };
            let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
            self.store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move { delete_some(connection, &mut context, &users, &Scope::All, id, size).await })
                })
                .await
        })
        .await
    }
}

/// Changes the references to the user `from` to the user `to`, and the links with `from` to links with `to`, without events. If a
/// unique value forbids this, the reference stays until the user `from` is deleted, and then the rule of its relationship
/// applies.
pub(crate) async fn move_references(connection: &mut Connection, registry: &Registry, from: &str, to: &str) -> Result<()> {
    let (Some(from), Some(to)) = (record_id(from), record_id(to)) else { return Ok(()) };
    let dialect = connection.dialect();
    for (holder, column) in registry.referrers_of(USERS) {
        let moved = connection.execute(sql::move_references(dialect, holder, *column, (from, to))).await;
        moved.map_err(|error| error.on(holder))?;
    }
    for relationship in registry.relationships() {
        let known = &relationship.definition;
        if known.kind == RelationshipKind::ManyToMany
            && known.target == USERS
            && let Some(source) = registry.object(&known.source)
        {
            for statement in sql::move_links(dialect, source, relationship.id, (from, to)) {
                connection.execute(statement).await.map_err(|error| error.on(source))?;
            }
        }
    }
    Ok(())
}

/// Deletes a user for good: detaches their records, replaces what the audit log shows about the person, and removes the user.
/// Returns whether the user existed. This belongs into the `remove` of [`App::removing`], behind all checks.
///
/// # Errors
/// `answer_too_large` if one transaction may not change that much. Those of the relationships that refuse a deletion.
pub(crate) async fn remove_person(
    connection: &mut Connection,
    context: &mut WriteContext,
    announcer: &Announcer,
    id: &str,
    now: i64,
) -> Result<bool> {
    // Other writers have to wait as soon as this transaction has written its events. So the checks come before this function.
    detach_user(connection, context, id).await?;
    // If this refuses the deletion, `removing` replaces the texts in steps. So it comes after everything else that may refuse it.
    forget_user(connection, id).await?;
    remove_user(connection, announcer, id, now).await
}

/// Deletes a user with their sessions, roles and the keys that act as them, and suspends the things that they made.
pub(crate) async fn remove_user(connection: &mut Connection, announcer: &Announcer, id: &str, now: i64) -> Result<bool> {
    let keys = connection.api_keys_of_user(id).await?;
    if !connection.delete_user(id).await? {
        return Ok(false);
    }
    // The user comes before the user's keys, because the reason for the suspension of the things is that the user is gone.
    settle(connection, announcer, MakerPart::User(id.to_owned()), now).await?;
    keys_are_gone(connection, announcer, keys, now).await?;
    Ok(true)
}

/// Emits the events of deleted keys, and suspends the things that were made with them.
pub(crate) async fn keys_are_gone(
    connection: &mut Connection,
    announcer: &Announcer,
    gone: Vec<KeyHolder>,
    now: i64,
) -> Result<()> {
    for KeyHolder { key, .. } in &gone {
        announcer.emit(connection, Topic::KeyDeleted(key.into())).await?;
    }
    // All keys are deleted by now. So one query for each kind finds the things of all keys, instead of one for each key.
    let ids: Vec<String> = gone.into_iter().map(|holder| holder.key.id).collect();
    for some in ids.chunks(MakerPart::KEYS_MAX) {
        settle(connection, announcer, MakerPart::ApiKeys(some.to_vec()), now).await?;
    }
    Ok(())
}
