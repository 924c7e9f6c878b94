//! Users as those see them who look after them: who there is, bans, roles, deletion.

use blockbase_query::{Access, Action, Paging};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, ReadCost, RoleRow, UserRow};
use serde_json::{Value, json};

use crate::App;
use crate::accounts::{ADMIN, ANONYMOUS, check_name, render_user};
use crate::caller::Caller;
use crate::identity::grants;
use crate::records::pagination_json;

const USERS: &str = "users";

/// What changing a user takes; what is left out stays as it is.
#[derive(Clone, Debug, Default)]
pub struct UserChanges {
    pub name: Option<String>,
    pub banned: Option<bool>,
}

/// The user with `banned` and `roles: [{ id, name }]`.
fn render(user: &UserRow, roles: &[RoleRow]) -> Value {
    let mut json = render_user(user);
    json["banned"] = json!(user.banned);
    json["roles"] = roles.iter().map(|role| json!({ "id": role.id, "name": role.name })).collect();
    json
}

/// The user, if the decision reaches them; held until the transaction ends.
async fn within(connection: &mut Connection, access: &Access, id: &str) -> Result<UserRow> {
    let missing = || Error::not_found("user");
    if access.only().is_some_and(|only| only != id) {
        return Err(missing());
    }
    connection.held_user(id).await?.ok_or_else(missing)
}

/// Refuses what would leave nobody who may do everything.
async fn keep_an_admin(connection: &mut Connection, user: &UserRow) -> Result<()> {
    connection.lock_accounts().await?;
    let roles = connection.roles_of(&user.id).await?;
    let Some(admin) = roles.iter().find(|role| role.name == ADMIN) else { return Ok(()) };
    // One who is banned already, or has no password, is not who keeps the service administered.
    let counts = !user.banned && connection.password_hash(&user.id).await?.is_some();
    if counts && connection.others_with_role(&admin.id, &user.id).await? == 0 {
        return Err(Error::new(Code::Conflict, "This is the last admin. Make another one first."));
    }
    Ok(())
}

impl App {
    /// A page of users, the newest first: those whose address or name contains `search`.
    pub async fn list_users(&self, caller: &Caller, search: Option<String>, paging: Paging) -> Result<String> {
        let only = caller.access(USERS, Action::Read)?.only().map(str::to_owned);
        let (limit, offset) = (paging.limit as i64, paging.offset as i64);
        let (users, total) = self
            .store
            .read(ReadCost::Scan, move |connection| {
                Box::pin(async move {
                    let (users, total) = connection.users(search, only, limit, offset).await?;
                    let mut rendered = Vec::with_capacity(users.len());
                    for user in &users {
                        rendered.push(render(user, &connection.roles_of(&user.id).await?));
                    }
                    Ok((rendered, total))
                })
            })
            .await?;
        let total = u64::try_from(total).unwrap_or(0);
        let has_next = paging.offset + (users.len() as u64) < total;
        Ok(format!("{{\"data\":{},\"pagination\":{}}}", Value::Array(users), pagination_json(paging, Some(total), has_next)))
    }

    pub async fn user(&self, caller: &Caller, id: &str) -> Result<Value> {
        let only = caller.access(USERS, Action::Read)?.only().map(str::to_owned);
        let missing = || Error::not_found("user");
        if only.is_some_and(|only| only != id) {
            return Err(missing());
        }
        let id = id.to_owned();
        self.store
            .read(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let user = connection.user(&id).await?.ok_or_else(missing)?;
                    Ok(render(&user, &connection.roles_of(&id).await?))
                })
            })
            .await
    }

    /// Changes a user's name, bans them or lifts the ban. A ban ends their sessions; their keys do not hold while it lasts.
    ///
    /// # Errors
    /// `conflict` where it would ban the last admin.
    pub async fn update_user(&self, caller: &Caller, id: &str, changes: UserChanges) -> Result<Value> {
        let access = caller.access(USERS, Action::Update)?;
        if changes.name.as_deref().is_some_and(|name| check_name(name).is_err()) {
            return Err(Error::new(Code::InvalidValue, "`name` holds 200 characters at most, and no NUL.").with_field("name"));
        }
        let (id, now) = (id.to_owned(), self.clock.now());
        self.change_accounts(move |connection| {
            Box::pin(async move {
                let mut user = within(connection, &access, &id).await?;
                if changes.banned == Some(true) {
                    keep_an_admin(connection, &user).await?;
                    connection.delete_sessions_of(&id, None).await?;
                }
                if changes.name.is_some() || changes.banned.is_some() {
                    user.name = changes.name.unwrap_or(user.name);
                    user.banned = changes.banned.unwrap_or(user.banned);
                    user.updated_at = now;
                    connection.update_user(&user).await?;
                }
                Ok(render(&user, &connection.roles_of(&id).await?))
            })
        })
        .await
    }

    /// Deletes a user with their sessions, roles and keys. Records that they created keep their stamps.
    ///
    /// # Errors
    /// `conflict` where it is the last admin.
    pub async fn delete_user(&self, caller: &Caller, id: &str) -> Result<()> {
        let access = caller.access(USERS, Action::Delete)?;
        let event = self.user_event(caller, "deleted", id, json!({}));
        let id = id.to_owned();
        self.change_accounts(move |connection| {
            Box::pin(async move {
                let user = within(connection, &access, &id).await?;
                keep_an_admin(connection, &user).await?;
                connection.delete_user(&id).await?;
                if let Some(event) = event {
                    event.emit(connection).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// Gives a user a role, none of whose rights the caller lacks: the user with their roles.
    ///
    /// # Errors
    /// `forbidden` where the role gives more than the caller holds.
    pub async fn give_role(&self, caller: &Caller, user_id: &str, role: &str) -> Result<Value> {
        caller.require(USERS, Action::Update)?;
        let (user_id, role, caller) = (user_id.to_owned(), role.to_owned(), caller.clone());
        self.change_accounts(move |connection| {
            Box::pin(async move {
                let user = connection.held_user(&user_id).await?.ok_or_else(|| Error::not_found("user"))?;
                // Held: what the role gives does not change until it is given.
                let role = connection.held_role(&role).await?.ok_or_else(|| unknown_role(&caller))?;
                caller.covers(&grants(&role.permissions)?)?;
                connection.give_role(&user_id, &role.id).await?;
                Ok(render(&user, &connection.roles_of(&user_id).await?))
            })
        })
        .await
    }

    /// Takes a role away from a user.
    ///
    /// # Errors
    /// `not_found` where they do not have it; `conflict` for the last admin, and for the role that makes a guest one.
    pub async fn take_role(&self, caller: &Caller, user_id: &str, role: &str) -> Result<()> {
        caller.require(USERS, Action::Update)?;
        let (user_id, role) = (user_id.to_owned(), role.to_owned());
        self.change_accounts(move |connection| {
            Box::pin(async move {
                let user = connection.held_user(&user_id).await?.ok_or_else(|| Error::not_found("user"))?;
                let role = connection.role(&role).await?.ok_or_else(|| Error::not_found("role"))?;
                if role.name == ADMIN {
                    keep_an_admin(connection, &user).await?;
                }
                if role.name == ANONYMOUS && user.is_anonymous {
                    return Err(Error::new(Code::Conflict, "Every guest has the role `anonymous`."));
                }
                match connection.take_role(&user_id, &role.id).await? {
                    true => Ok(()),
                    false => Err(Error::not_found("role")),
                }
            })
        })
        .await
    }
}

/// A body names a role that there is not. Whoever may not read roles is told what they are told of one that gives too much.
pub(crate) fn unknown_role(caller: &Caller) -> Error {
    match caller.holds("roles", Action::Read) {
        true => Error::new(Code::ForeignKeyViolation, "`roleId`: there is no such role.").with_field("roleId"),
        false => Error::new(Code::Forbidden, "You cannot give what you do not hold."),
    }
}
