//! Roles: named lists of grants.

mod effective;
mod explain;

use blockbase_query::{Action, Grant, Permissions, Variables};
use blockbase_schema::{Code, Error, Registry, Resource, Result, Retry};
use blockbase_store::{Connection, RoleRow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::access::identity::PUBLIC;
use crate::access::identity::grants;
use crate::access::stored_grants::{shown_grants, stored_grants};
use crate::accounts::removal::keys_are_gone;
use crate::accounts::types::{ADMIN, ANONYMOUS};
use crate::base::answer::Timestamp;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
pub use effective::RolePermissions;
pub use explain::{ExplainRequest, Explanation};

/// The maximum length of a role's name, in characters.
const NAME_CHARS_MAX: usize = 64;
/// The maximum length of a description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1000;
/// The maximum length of a grant's resource, in characters.
const RESOURCE_CHARS_MAX: usize = 128;
/// The maximum number of grants of one role.
const GRANTS_MAX: usize = 1000;
/// The member of a body with the grants of a role.
const PERMISSIONS: &str = "permissions";
/// The maximum number of roles, with the seeded ones.
const ROLES_MAX: i64 = 1000;
/// Roles that the service itself refers to by their names.
const SEEDED: [&str; 3] = [ADMIN, PUBLIC, ANONYMOUS];
/// The message if the roles are too large for one list.
const ROLES_TOO_LARGE: &str =
    "The roles together have more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`). Read a role by its name or id.";

/// The members of a new role, or the changes of a role. Members that are left out stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct RoleChanges {
    pub name: Option<String>,
    /// `Some(None)` removes the description.
    pub description: Option<Option<String>>,
    pub permissions: Option<Vec<Grant>>,
}

/// A role: a named list of permissions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcRole", deny_unknown_fields)]
pub struct RoleAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    name: String,
    description: Option<String>,
    permissions: Vec<Grant>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl RoleAnswer {
    /// # Errors
    /// `internal` if the stored grants cannot be read: an answer must not leave any of them out.
    fn of(registry: &Registry, role: &RoleRow) -> Result<RoleAnswer> {
        Ok(RoleAnswer {
            id: role.id.clone(),
            name: role.name.clone(),
            description: role.description.clone(),
            permissions: shown_grants(registry, grants(&role.permissions)?),
            created_at: Timestamp(role.created_at),
            updated_at: Timestamp(role.updated_at),
        })
    }
}

fn invalid(field: &str, message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field(field)
}

fn check_name(name: &str) -> Result<()> {
    let mut characters = name.chars();
    let fits = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | ' ' | '.'))
        && name.len() <= NAME_CHARS_MAX
        && !name.ends_with(' ')
        && name.parse::<uuid::Uuid>().is_err();
    match fits {
        true => Ok(()),
        false => Err(invalid(
            "name",
            format!("`name` begins with a letter and holds letters, digits, spaces, `_`, `-` and `.`: {NAME_CHARS_MAX} at most."),
        )),
    }
}

/// Whether `resource` could be the name of a resource: `*`, an object, a resource of the platform, or a resource of a block
/// (`<block>:<name>`).
fn is_resource(resource: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word
                .chars()
                .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || "_-".contains(character))
    };
    if resource.len() > RESOURCE_CHARS_MAX {
        return false;
    }
    resource == "*" || resource.split_once(':').map_or_else(|| is_word(resource), |(block, name)| is_word(block) && is_word(name))
}

fn check_grants(grants: &[Grant]) -> Result<()> {
    if grants.len() > GRANTS_MAX {
        return Err(invalid("permissions", format!("A role has {GRANTS_MAX} grants at most.")));
    }
    for (index, grant) in grants.iter().enumerate() {
        if !is_resource(&grant.resource) {
            let message = format!(
                "`permissions` at index {index}: {:?} is not a resource. Give an object's name, one of the platform's, `<block>:<name>` or `*`.",
                grant.resource
            );
            return Err(invalid("permissions", message));
        }
        let distinct: std::collections::HashSet<_> = grant.actions.iter().collect();
        if grant.actions.is_empty() || distinct.len() != grant.actions.len() {
            let message = format!("`permissions` at index {index}: `actions` lists at least one action, and each once.");
            return Err(invalid("permissions", message));
        }
    }
    Ok(())
}

/// The error in a list of grants. The operation starts again if this instance does not know the present schema yet, because
/// another instance may have just made what the grants name.
fn of_permissions(mut error: Error) -> Error {
    error.retry = Some(Retry::MayBeNew);
    error.with_field(PERMISSIONS)
}

fn taken(name: &str) -> Error {
    Error::new(Code::UniqueViolation, format!("A role named `{name}` exists already.")).with_field("name")
}

impl App {
    /// All roles, the oldest first.
    ///
    /// # Errors
    /// `forbidden`; `answer_too_large`.
    pub async fn list_roles(&self, caller: &Caller) -> Result<Vec<RoleAnswer>> {
        caller.require(Resource::Roles, Action::Read)?;
        let bytes_max = i64::try_from(self.answer_bytes_left(caller)).unwrap_or(i64::MAX);
        let roles = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    // This comes before any role is read, because one role can have some hundred kilobytes of grants.
                    match connection.roles_length().await? > bytes_max {
                        true => Err(Error::new(Code::AnswerTooLarge, ROLES_TOO_LARGE)),
                        false => Ok(connection.roles().await?),
                    }
                })
            })
            .await?;
        let registry = self.registry();
        roles.iter().map(|role| RoleAnswer::of(&registry, role)).collect()
    }

    /// A role by its id or its name.
    pub async fn role(&self, caller: &Caller, id_or_name: &str) -> Result<RoleAnswer> {
        caller.require(Resource::Roles, Action::Read)?;
        RoleAnswer::of(&self.registry(), &self.find_role(caller, id_or_name).await?)
    }

    async fn find_role(&self, caller: &Caller, id_or_name: &str) -> Result<RoleRow> {
        let key = id_or_name.to_owned();
        let found = self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.role(&key).await?) })).await?;
        found.ok_or_else(|| Error::not_found("role"))
    }

    /// # Errors
    /// `forbidden` if a grant gives a right that the caller lacks; `unique_violation` if the name is taken; `conflict` if the
    /// maximum number of roles exists.
    pub async fn create_role(&self, caller: &Caller, changes: RoleChanges) -> Result<RoleAnswer> {
        caller.require(Resource::Roles, Action::Create)?;
        let name = changes.name.ok_or_else(|| Error::new(Code::NotNullViolation, "`name` is required.").with_field("name"))?;
        let (description, permissions) = (changes.description.flatten(), changes.permissions.unwrap_or_default());
        check_name(&name)?;
        check_description(description.as_deref())?;
        check_grants(&permissions)?;
        let (name, description, permissions) = (&name, &description, &permissions);
        self.on_schema(caller, move |registry| async move {
            let now = self.clock.now();
            let known = self.known_to(caller, &registry);
            let permissions = stored_grants(caller, &self.grant_context(&registry), &known, PERMISSIONS, permissions.clone())
                .map_err(of_permissions)?;
            caller.covers(&self.grant_context(&registry), &permissions)?;
            let role = RoleRow {
                id: self.clock.id(now).to_string(),
                name: name.clone(),
                description: description.clone(),
                permissions: serde_json::to_string(&permissions).map_err(Error::internal)?,
                created_at: now,
                updated_at: now,
            };
            let answer = RoleAnswer::of(&registry, &role)?;
            let (auditor, made) = (self.auditor(caller), answer.clone());
            self.change_accounts_by(caller.basis.clone(), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    check_schema(connection, &permissions, registry.version).await?;
                    if connection.roles_count().await? >= ROLES_MAX {
                        let message = format!("There are {ROLES_MAX} roles, the most that there may be. Delete one first.");
                        return Err(Error::new(Code::Conflict, message));
                    }
                    if !connection.insert_role(&role).await? {
                        return Err(taken(&role.name));
                    }
                    let act = Act::new(AuditAction::Create, Resource::Roles, &role.id).after(&made);
                    auditor.record(connection, act).await
                })
            })
            .await?;
            Ok(answer)
        })
        .await
    }

    /// Changes a role.
    ///
    /// # Errors
    /// `forbidden` if the role, a user with the role, or a new grant has a right that the caller lacks. `conflict` if the service
    /// needs the role unchanged.
    pub async fn update_role(&self, caller: &Caller, id_or_name: &str, changes: RoleChanges) -> Result<RoleAnswer> {
        caller.require(Resource::Roles, Action::Update)?;
        if let Some(name) = &changes.name {
            check_name(name)?;
        }
        check_description(changes.description.as_ref().and_then(Option::as_deref))?;
        check_grants(changes.permissions.as_deref().unwrap_or_default())?;
        let changes = &changes;
        self.on_schema(caller, move |registry| async move {
            let known = self.known_to(caller, &registry);
            let stored =
                |given| stored_grants(caller, &self.grant_context(&registry), &known, PERMISSIONS, given).map_err(of_permissions);
            let permissions = changes.permissions.clone().map(stored).transpose()?;
            let changes = RoleChanges { permissions, ..changes.clone() };
            let (key, caller, now, app) = (id_or_name.to_owned(), caller.clone(), self.clock.now(), self.itself()?);
            let (auditor, version) = (self.auditor(&caller), registry.version);
            let role = self
                .change_accounts_by(caller.basis.clone(), move |connection| {
                    Box::pin(async move {
                        connection.lock_accounts().await?;
                        check_schema(connection, changes.permissions.as_deref().unwrap_or_default(), version).await?;
                        let mut role = connection.held_role(&key).await?.ok_or_else(|| Error::not_found("role"))?;
                        // The configuration can refer to a role by its name, so a new name may give the role to other users.
                        app.require_rights_of_role(connection, &caller, &role).await?;
                        let registry = app.registry_in(connection).await?;
                        let before = RoleAnswer::of(&registry, &role).ok();
                        if let Some(name) = changes.name.filter(|name| *name != role.name) {
                            rename(connection, &mut role, name).await?;
                        }
                        if let Some(permissions) = changes.permissions {
                            set_permissions(&app, connection, &caller, &mut role, &permissions, now).await?;
                        }
                        role.description = changes.description.unwrap_or(role.description);
                        role.updated_at = now;
                        connection.update_role(&role).await.map_err(|error| match error {
                            // Another change took the name in the meantime.
                            blockbase_store::DbError::Unique { .. } => taken(&role.name),
                            other => other.into(),
                        })?;
                        let act = Act::new(AuditAction::Update, Resource::Roles, &role.id).before(&before);
                        auditor.record(connection, act.after(&RoleAnswer::of(&registry, &role).ok())).await?;
                        Ok(role)
                    })
                })
                .await?;
            RoleAnswer::of(&registry, &role)
        })
        .await
    }

    /// Deletes a role, takes it away from all users, and deletes its keys.
    ///
    /// # Errors
    /// `forbidden` if the role, or a user with the role, has rights that the caller lacks; `conflict` for a role that the service
    /// needs.
    pub async fn delete_role(&self, caller: &Caller, id_or_name: &str) -> Result<()> {
        caller.require(Resource::Roles, Action::Delete)?;
        let (announcer, auditor, app) = (self.announcer(caller), self.auditor(caller), self.itself()?);
        let (key, caller, now) = (id_or_name.to_owned(), caller.clone(), self.clock.now());
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let role = connection.held_role(&key).await?.ok_or_else(|| Error::not_found("role"))?;
                app.require_rights_of_role(connection, &caller, &role).await?;
                if SEEDED.contains(&role.name.as_str()) {
                    let message = format!("The service needs the role `{}`; take its grants away instead.", role.name);
                    return Err(Error::new(Code::Conflict, message));
                }
                let keys = connection.api_keys_of_role(&role.id).await?;
                connection.delete_role(&role.id).await?;
                let registry = app.registry_in(connection).await?;
                let act = Act::new(AuditAction::Delete, Resource::Roles, &role.id);
                auditor.record(connection, act.before(&RoleAnswer::of(&registry, &role).ok())).await?;
                keys_are_gone(connection, &announcer, keys, now).await
            })
        })
        .await
    }
}

/// Checks that the schema is still the one in which the names of these grants were looked up. Another instance may have renamed
/// fields, and the grants would then be about other fields than their author named.
async fn check_schema(connection: &mut Connection, grants: &[Grant], version: i64) -> Result<()> {
    match grants.iter().any(Grant::is_conditional) && connection.version("schema").await? != version {
        true => Err(Error::retry(Retry::SchemaMoved, "the schema is another by now")),
        false => Ok(()),
    }
}

/// Gives a role another name.
///
/// # Errors
/// `conflict` if the service needs the name, `unique_violation` if another role has the new one.
async fn rename(connection: &mut Connection, role: &mut RoleRow, name: String) -> Result<()> {
    if SEEDED.contains(&role.name.as_str()) {
        let message = format!("The service needs the role `{}` by this name.", role.name);
        return Err(Error::new(Code::Conflict, message));
    }
    if connection.role_named(&name).await?.is_some() {
        return Err(taken(&name));
    }
    role.name = name;
    Ok(())
}

/// Gives a role other grants.
///
/// # Errors
/// `forbidden` if a new grant has a right that the caller lacks; `conflict` for the role `admin`.
async fn set_permissions(
    app: &App,
    connection: &mut Connection,
    caller: &Caller,
    role: &mut RoleRow,
    permissions: &[Grant],
    now: i64,
) -> Result<()> {
    let registry = app.registry_in(connection).await?;
    let grant_context = app.grant_context(&registry);
    let present = Permissions::of_subject(grants(&role.permissions)?, Variables::of_somebody(now));
    let present = present.with_meaning(&grant_context);
    let is_new = |grant: &&Grant| grant_context.given_by(grant).is_some_and(|given| !present.covers(&given));
    let added: Vec<Grant> = permissions.iter().filter(is_new).cloned().collect();
    caller.covers(&grant_context, &added)?;
    let own = caller.actor_id().unwrap_or_default();
    if connection.has_keys_of_others(&role.id, own).await? {
        // For keys with this role, own rows are those of the keys' users. So the caller needs these grants for all rows, as when
        // such a key is made.
        let for_all: Vec<Grant> = added.into_iter().map(Grant::for_all).collect();
        caller.covers(&grant_context, &for_all)?;
    }
    let text = serde_json::to_string(permissions).map_err(Error::internal)?;
    if role.name == ADMIN && text != role.permissions {
        let message = "The role `admin` may do everything; that does not change. Make another role.";
        return Err(Error::new(Code::Conflict, message));
    }
    role.permissions = text;
    Ok(())
}

fn check_description(description: Option<&str>) -> Result<()> {
    match description.is_none_or(|text| text.chars().count() <= DESCRIPTION_CHARS_MAX && !text.contains('\0')) {
        true => Ok(()),
        false => {
            Err(invalid("description", format!("`description` holds {DESCRIPTION_CHARS_MAX} characters at most, and no NUL.")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_names() {
        for good in ["*", "task", "api_keys", "greeter:greetings", "my-block:x"] {
            assert!(is_resource(good), "{good}");
        }
        for bad in ["", "Task", "task:", ":task", "a:b:c", "ta sk", "**", "1task", "task\0"] {
            assert!(!is_resource(bad), "{bad}");
        }
    }

    #[test]
    fn names_cannot_be_taken_for_ids() {
        assert!(check_name("Support team").is_ok());
        for bad in ["", " x", "1x", "é", "x ", "a0000000-0000-7000-8000-000000000001"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
