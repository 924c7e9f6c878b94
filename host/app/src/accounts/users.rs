//! The management of users by others: invitations, lists, bans, roles, deletion.

mod invite;
mod seen;
mod sessions;

use blockbase_query::{Access, Action, Paging};
use blockbase_schema::{Code, Error, Hint, Resource, Result};
use blockbase_store::{Connection, Maker, MakerPart, RoleRow, Thing, ThingKind, UserRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::App;
use crate::access::identity::grants;
use crate::access::makers::{owns_things, raise_versions_of, settle};
use crate::accounts::removal::remove_person;
use crate::accounts::types::{ADMIN, ANONYMOUS, UserAnswer, check_name};
use crate::base::topic::{Topic, UserMembers};
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::outbox::platform_event::Announcer;
use crate::records::read::page_json;

pub use invite::{InvitationAnswer, NewUser};
pub use seen::SeenUserAnswer;
pub(crate) use seen::access_to_whole;
pub use sessions::UserSessionAnswer;

/// The operation that needs a right. It stands before the message if the caller lacks the right.
const HANDING_OVER: &str = "Handing over what the user made";
/// The maximum number of roles of one user.
pub const ROLES_OF_USER_MAX: i64 = 100;

/// Changes of a user. A member that is left out stays as it is.
#[derive(Clone, Debug, Default)]
pub struct UserChanges {
    pub name: Option<String>,
    pub banned: Option<bool>,
}

impl UserChanges {
    /// The names of the members that are given.
    fn given(&self) -> Vec<&'static str> {
        let members = [("name", self.name.is_some()), ("banned", self.banned.is_some())];
        members.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
    }
}

/// The users that a list shows. If no member is given, all users.
#[derive(Clone, Debug, Default)]
pub struct UserSearch {
    /// A text that their address or name contains. Case does not matter.
    pub text: Option<String>,
    /// The id or the name of a role that they have.
    pub role: Option<String>,
}

/// What happens to the things that a user made when the user is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnDeletion {
    /// The user is not deleted while such things exist.
    #[default]
    Refuse,
    /// The user with this id becomes the maker of these things.
    HandOver(String),
    /// The things stay suspended until somebody adopts them.
    Suspend,
}

/// A user, as administrators see one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcManagedUser", deny_unknown_fields)]
pub struct ManagedUserAnswer {
    #[serde(flatten)]
    user: UserAnswer,
    banned: bool,
    roles: Vec<HeldRole>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct HeldRole {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    name: String,
}

impl HeldRole {
    fn of(role: &RoleRow) -> HeldRole {
        HeldRole { id: role.id.clone(), name: role.name.clone() }
    }
}

impl ManagedUserAnswer {
    fn of(user: &UserRow, roles: Vec<RoleRow>) -> ManagedUserAnswer {
        let roles = roles.iter().map(HeldRole::of).collect();
        ManagedUserAnswer { user: UserAnswer::from(user), banned: user.banned, roles }
    }
}

/// Returns the user if the decision includes them, and locks the user until the transaction ends.
async fn within(connection: &mut Connection, access: &Access, id: &str) -> Result<UserRow> {
    let missing = || Error::not_found("user");
    if access.only().is_some_and(|only| only != id) {
        return Err(missing());
    }
    connection.held_user(id).await?.ok_or_else(missing)
}

/// # Errors
/// `invalid_value` for a name that a user may not have.
fn checked_name(name: String) -> Result<String> {
    match check_name(&name) {
        Ok(()) => Ok(name),
        Err(_) => Err(Error::new(Code::InvalidValue, "`name` holds 200 characters at most, and no NUL.").with_field("name")),
    }
}

/// Gives a user a role, if the caller has all rights of the role. Returns the role, or `None` if the user already had it. The
/// caller of this function has locked the accounts.
async fn give(app: &App, connection: &mut Connection, caller: &Caller, user_id: &str, role: &str) -> Result<Option<RoleRow>> {
    // Held: what the role gives does not change until it is given.
    let role = connection.held_role(role).await?.ok_or_else(|| unknown_role(caller, role))?;
    let registry = app.registry_in(connection).await?;
    caller.covers(&app.grant_context(&registry), &grants(&role.permissions)?)?;
    if connection.roles_count_beside(user_id, &role.id).await? >= ROLES_OF_USER_MAX {
        let message = format!("A user has {ROLES_OF_USER_MAX} roles at most. Take one away from them first.");
        return Err(Error::new(Code::Conflict, message));
    }
    let is_new = connection.give_role(user_id, &role.id).await?;
    Ok(is_new.then_some(role))
}

/// Refuses a change after which no user would have all rights.
pub(crate) async fn keep_an_admin(connection: &mut Connection, user: &UserRow) -> Result<()> {
    connection.lock_accounts().await?;
    let roles = connection.roles_of(&user.id).await?;
    let Some(admin) = roles.iter().find(|role| role.name == ADMIN) else { return Ok(()) };
    // A user who is already banned, or has no password, does not count as an admin who can still manage the service.
    let counts = !user.banned && connection.password_hash(&user.id).await?.is_some();
    if counts && connection.others_with_role(&admin.id, &user.id).await? == 0 {
        return Err(Error::new(Code::Conflict, "This is the last admin. Make another one first."));
    }
    Ok(())
}

impl App {
    /// A page of the users that match the search, the newest first.
    pub async fn list_users(&self, caller: &Caller, search: UserSearch, paging: Paging) -> Result<String> {
        let Some(access) = access_to_whole(caller)? else { return self.list_some_users(caller, search, paging).await };
        let only = access.only().map(str::to_owned);
        let (limit, offset) = (paging.limit as i64, paging.offset as i64);
        let (users, total) = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    let UserSearch { text, role } = search;
                    let (users, total) = connection.users(text, role, only, limit, offset).await?;
                    let mut answers = Vec::with_capacity(users.len());
                    for user in &users {
                        answers.push(ManagedUserAnswer::of(user, connection.roles_of(&user.id).await?));
                    }
                    Ok((answers, total))
                })
            })
            .await?;
        Ok(page_json(&users, paging, total))
    }

    /// One user.
    pub async fn user(&self, caller: &Caller, id: &str) -> Result<SeenUserAnswer> {
        let Some(access) = access_to_whole(caller)? else { return self.some_user(caller, id).await };
        let only = access.only().map(str::to_owned);
        let missing = || Error::not_found("user");
        if only.is_some_and(|only| only != id) {
            return Err(missing());
        }
        let id = id.to_owned();
        self.look_up(caller, move |connection| {
            Box::pin(async move {
                let user = connection.user(&id).await?.ok_or_else(missing)?;
                Ok(SeenUserAnswer::Whole(Box::new(ManagedUserAnswer::of(&user, connection.roles_of(&id).await?))))
            })
        })
        .await
    }

    /// Changes a user's name, bans them or lifts the ban. A ban ends their sessions and links; while it lasts, their keys are
    /// invalid, and the things that they made are suspended. Returns what the caller may read of the user, or the `id` and what
    /// they sent.
    ///
    /// # Errors
    /// `forbidden` if the user has rights that the caller lacks; `conflict` if it would ban the last admin.
    pub async fn update_user(&self, caller: &Caller, id: &str, changes: UserChanges) -> Result<SeenUserAnswer> {
        let sent = changes.given();
        let changed = self.write_changes(caller, id, changes).await?;
        self.seen_after(caller, changed, &sent).await
    }

    /// Writes the changes of a user. Returns all members of the user, also those that the caller may not read.
    async fn write_changes(&self, caller: &Caller, id: &str, changes: UserChanges) -> Result<ManagedUserAnswer> {
        let access = caller.access(Resource::Users, Action::Update)?;
        let name = changes.name.map(checked_name).transpose()?;
        let (announcer, auditor, app) = (self.announcer(caller), self.auditor(caller), self.itself()?);
        let (id, caller, now) = (id.to_owned(), caller.clone(), self.clock.now());
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let mut user = within(connection, &access, &id).await?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                let before = ManagedUserAnswer::of(&user, connection.roles_of(&id).await?);
                if changes.banned == Some(true) {
                    keep_an_admin(connection, &user).await?;
                    connection.delete_sessions_of(&id, None).await?;
                    connection.end_account_tokens(&id).await?;
                }
                let is_change = name.is_some() || changes.banned.is_some();
                if is_change {
                    user.name = name.unwrap_or(user.name);
                    user.banned = changes.banned.unwrap_or(user.banned);
                    user.updated_at = now;
                    connection.update_user(&user).await?;
                    settle(connection, &announcer, MakerPart::User(id.clone()), now).await?;
                }
                let after = ManagedUserAnswer::of(&user, connection.roles_of(&id).await?);
                let action = match (before.banned, after.banned) {
                    (false, true) => AuditAction::Ban,
                    (true, false) => AuditAction::Unban,
                    _ => AuditAction::Update,
                };
                if is_change {
                    auditor.record(connection, Act::on_user(action, &id).before(&before).after(&after)).await?;
                }
                Ok(after)
            })
        })
        .await
    }

    /// Deletes a user with their sessions, roles and keys. Records that they created keep their stamps.
    ///
    /// # Errors
    /// `forbidden` if the user, or a thing to be handed over, has rights that the caller or the heir lacks. Also if the caller
    /// may not update the heir, or lacks rights that the heir has. `owns_things` if the user made something and `on_deletion`
    /// does not say what happens to it. `conflict` if the user is the last admin.
    pub async fn delete_user(&self, caller: &Caller, id: &str, on_deletion: OnDeletion) -> Result<()> {
        let access = caller.access(Resource::Users, Action::Delete)?;
        if on_deletion == OnDeletion::HandOver(id.to_owned()) {
            let message = "The things of a user cannot be handed over to this same user.";
            return Err(Error::invalid_request(message).with_hint(Hint::AnotherHeir));
        }
        let hands_over = matches!(on_deletion, OnDeletion::HandOver(_));
        self.removing(caller, id, || self.delete_user_at_once(caller, id, &access, &on_deletion)).await?;
        // The copies in memory still have the deleted user as the maker.
        if hands_over { self.refresh().await } else { Ok(()) }
    }

    async fn delete_user_at_once(&self, caller: &Caller, id: &str, access: &Access, on_deletion: &OnDeletion) -> Result<()> {
        self.on_schema(caller, move |registry| async move {
            let (announcer, auditor, app) = (self.announcer(caller), self.auditor(caller), self.itself()?);
            let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
            let (id, caller, now) = (id.to_owned(), caller.clone(), self.clock.now());
            let (access, on_deletion) = (access.clone(), on_deletion.clone());
            self.change_accounts_by(caller.basis.clone(), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    let user = within(connection, &access, &id).await?;
                    app.require_rights_of_user(connection, &caller, &user).await?;
                    keep_an_admin(connection, &user).await?;
                    let things = connection.things_made_by(&id).await?;
                    // The deletion then replaces the name and the address in this row too.
                    let before = ManagedUserAnswer::of(&user, connection.roles_of(&id).await?);
                    let act = Act::on_user(AuditAction::Delete, &id).before(&before);
                    let act = match &on_deletion {
                        OnDeletion::HandOver(heir) => act.after(&json!({ "handedOverTo": heir })),
                        OnDeletion::Refuse | OnDeletion::Suspend => act,
                    };
                    auditor.record(connection, act).await?;
                    match on_deletion {
                        OnDeletion::Refuse if !things.is_empty() => return Err(owns_things(&things)),
                        OnDeletion::Refuse | OnDeletion::Suspend => {}
                        OnDeletion::HandOver(heir) => {
                            app.hand_over(connection, &announcer, &caller, (&user, heir.as_str()), things, now).await?;
                        }
                    }
                    remove_person(connection, &mut context, &announcer, &id, now).await?;
                    announcer.emit(connection, Topic::UserDeleted(UserMembers { user_id: &id })).await
                })
            })
            .await
        })
        .await
    }

    /// Makes `heir` the maker of the things that `user` made. Keys that act as the user are left out, because they are deleted
    /// with the user.
    ///
    /// Things that are handed over act with the rights of the heir. So a caller who is not the heir has to be allowed to act on
    /// them.
    async fn hand_over(
        &self,
        connection: &mut Connection,
        announcer: &Announcer,
        caller: &Caller,
        (user, heir): (&UserRow, &str),
        things: Vec<Thing>,
        now: i64,
    ) -> Result<()> {
        let is_to_oneself = caller.is_session_of(heir);
        if !is_to_oneself {
            caller.require(Resource::Users, Action::Update).map_err(|error| error.within(HANDING_OVER))?;
        }
        let refused = |code: Code, message: &str| Error::new(code, message).with_hint(Hint::AnotherHeir);
        let unknown = || refused(Code::ForeignKeyViolation, "The user to hand over to does not exist.");
        if !connection.keep_user(heir).await? {
            return Err(unknown());
        }
        if !is_to_oneself {
            let row = connection.user(heir).await?.ok_or_else(unknown)?;
            self.require_rights_of_user(connection, caller, &row).await.map_err(|error| error.within(HANDING_OVER))?;
        }
        let maker = Maker { user_id: Some(heir.to_owned()), api_key_id: None };
        let heir = self.rights_of_maker_in(connection, &maker).await?.caller();
        let heir = heir.ok_or_else(|| refused(Code::Forbidden, "The user to hand over to is banned."))?;
        raise_versions_of(connection, &things).await?;
        let ending: Vec<String> = connection.api_keys_of_user(&user.id).await?.into_iter().map(|holder| holder.key.id).collect();
        for thing in things {
            if thing.kind == ThingKind::ApiKey && ending.contains(&thing.id) {
                continue;
            }
            let what = || format!("`{}` of {}", thing.id, thing.kind.name());
            self.require_carried(connection, caller, &thing).await.map_err(|error| error.within(what()))?;
            self.require_carried(connection, &heir, &thing).await.map_err(|error| match error.code {
                // Not every caller may know the rights of the heir.
                Code::Forbidden => {
                    refused(Code::Forbidden, &format!("The user to hand over to lacks a right that {} needs.", what()))
                }
                _ => error,
            })?;
            connection.set_maker(thing.kind, &thing.id, &maker).await?;
            if thing.kind == ThingKind::ApiKey {
                settle(connection, announcer, MakerPart::ApiKey(thing.id), now).await?;
            }
        }
        Ok(())
    }

    /// Gives a user a role, if the caller has all rights of the role. Returns what the caller may read of the user, or the `id`.
    ///
    /// # Errors
    /// `forbidden` if the role or the user has rights that the caller lacks. `conflict` if the user has 100 roles.
    pub async fn give_role(&self, caller: &Caller, user_id: &str, role: &str) -> Result<SeenUserAnswer> {
        let changed = self.write_given_role(caller, user_id, role).await?;
        self.seen_after(caller, changed, &[]).await
    }

    /// Writes that a user has a role. Returns all members of the user, also those that the caller may not read.
    async fn write_given_role(&self, caller: &Caller, user_id: &str, role: &str) -> Result<ManagedUserAnswer> {
        caller.require(Resource::Users, Action::Update)?;
        let (auditor, app) = (self.auditor(caller), self.itself()?);
        let (user_id, role, caller) = (user_id.to_owned(), role.to_owned(), caller.clone());
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = connection.held_user(&user_id).await?.ok_or_else(|| Error::not_found("user"))?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                if let Some(role) = give(&app, connection, &caller, &user_id, &role).await? {
                    let act = Act::new(AuditAction::GiveRole, Resource::Users, &user_id).after(&HeldRole::of(&role));
                    auditor.record(connection, act).await?;
                }
                Ok(ManagedUserAnswer::of(&user, connection.roles_of(&user_id).await?))
            })
        })
        .await
    }

    /// Takes a role away from a user.
    ///
    /// # Errors
    /// `forbidden` if the user has rights that the caller lacks. `not_found` if the user does not have the role. `conflict` for
    /// the last admin, and for the role `anonymous` of a guest.
    pub async fn take_role(&self, caller: &Caller, user_id: &str, role: &str) -> Result<()> {
        caller.require(Resource::Users, Action::Update)?;
        let (auditor, app) = (self.auditor(caller), self.itself()?);
        let (user_id, role, caller) = (user_id.to_owned(), role.to_owned(), caller.clone());
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = connection.held_user(&user_id).await?.ok_or_else(|| Error::not_found("user"))?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                let role = connection.role(&role).await?.ok_or_else(|| Error::not_found("role"))?;
                if role.name == ADMIN {
                    keep_an_admin(connection, &user).await?;
                }
                if role.name == ANONYMOUS && user.is_anonymous {
                    return Err(Error::new(Code::Conflict, "Every guest has the role `anonymous`."));
                }
                if !connection.take_role(&user_id, &role.id).await? {
                    return Err(Error::not_found("role"));
                }
                let act = Act::new(AuditAction::TakeRole, Resource::Users, &user_id).before(&HeldRole::of(&role));
                auditor.record(connection, act).await
            })
        })
        .await
    }
}

/// The error for a body that names an unknown role. Callers who may not read roles get the same error as for a role that gives
/// more than they have.
pub(crate) fn unknown_role(caller: &Caller, named: &str) -> Error {
    match caller.holds(Resource::Roles, Action::Read) {
        true => Error::new(Code::ForeignKeyViolation, format!("`roleId`: there is no role `{named}`.")).with_field("roleId"),
        false => Error::new(Code::Forbidden, "You cannot grant permissions that you do not have."),
    }
}
