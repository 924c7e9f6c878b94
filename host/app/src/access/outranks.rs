//! Nobody may act on a user, a role or an API key that has more rights than they have. A caller who changes, bans or deletes it,
//! or takes something away from it, needs every right that it has.
//!
//! These checks run in the transaction of the change, on the accounts that this transaction sees and locks.

use std::collections::HashSet;
use std::sync::Arc;

use blockbase_query::{Action, Grant, GrantContext, Permissions, Variables};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Connection, KeyHolder, RoleRow, UserRow};

use crate::App;
use crate::access::identity::grants;
use crate::caller::Caller;
use crate::caller::maker_rights::MakerRights;

/// The rights of any user with these grants. The id is not that of a real user, so the rights include no own rows.
fn of_somebody(grants: Vec<Grant>) -> Permissions {
    Permissions::of_subject(grants, Variables::of_somebody(0))
}

impl Caller {
    /// Requires every right in `rights`, which are those of a user, a role or a key.
    ///
    /// # Errors
    /// `forbidden`.
    fn require_rights(&self, grant_context: &GrantContext<'_>, as_what: &str, rights: &Permissions) -> Result<()> {
        let (held, rights) = (self.rights().with_meaning(grant_context), rights.with_meaning(grant_context));
        let Some(missing) = held.first_not_held(&rights) else { return Ok(()) };
        let message = match self.holds(Resource::Roles, Action::Read) {
            true => {
                let action = missing.actions.first().map_or("", |action| action.name());
                format!("{as_what} has a right that you do not have: {action} on `{}`.", missing.resource)
            }
            // Only callers who may read roles may know which rights another account has.
            false => format!("{as_what} has rights that you do not have."),
        };
        Err(Error::new(Code::Forbidden, message))
    }

    /// Whether no check of this file can refuse the caller, because the caller has every right.
    fn has_all_rights(&self) -> bool {
        self.holds("*", Action::Manage)
    }

    /// Whether this is a session of that user. The user's keys do not count: they have only the rights of their role.
    pub(crate) fn is_session_of(&self, user_id: &str) -> bool {
        let actor = self.principal.actor().filter(|actor| actor.api_key_id.is_none());
        actor.is_some_and(|actor| actor.user_id.as_deref() == Some(user_id))
    }
}

impl App {
    /// Requires the rights that a user has by their roles, and by the API keys that act as the user. Users may always act on
    /// themselves.
    pub(crate) async fn require_rights_of_user(
        &self,
        connection: &mut Connection,
        caller: &Caller,
        user: &UserRow,
    ) -> Result<()> {
        if caller.has_all_rights() || caller.is_session_of(&user.id) {
            return Ok(());
        }
        let registry = self.registry_in(connection).await?;
        let grant_context = self.grant_context(&registry);
        let mut held = Vec::new();
        for role in connection.roles_of(&user.id).await? {
            held.extend(grants(&role.permissions)?);
        }
        caller.require_rights(&grant_context, "This user", &Permissions::new(held, Some(user.id.clone())))?;
        let mut seen = HashSet::new();
        for holder in connection.api_keys_of_user(&user.id).await? {
            if seen.insert((holder.role.id.clone(), holder.key.maker.clone())) {
                let rights = self.rights_of_key(connection, &holder).await?;
                caller.require_rights(&grant_context, "An API key of this user", &rights)?;
            }
        }
        Ok(())
    }

    /// Requires the rights that a role gives, and the other rights of the users who have the role, because a change of the role
    /// changes their rights.
    pub(crate) async fn require_rights_of_role(
        &self,
        connection: &mut Connection,
        caller: &Caller,
        role: &RoleRow,
    ) -> Result<()> {
        if caller.has_all_rights() {
            return Ok(());
        }
        let registry = self.registry_in(connection).await?;
        let grant_context = self.grant_context(&registry);
        caller.require_rights(&grant_context, "This role", &of_somebody(grants(&role.permissions)?))?;
        let themselves = caller.actor_id().filter(|id| caller.is_session_of(id)).unwrap_or_default();
        let mut held = Vec::new();
        for role in connection.roles_beside(&role.id, themselves).await? {
            held.extend(grants(&role.permissions)?);
        }
        caller.require_rights(&grant_context, "A user who has this role", &of_somebody(held))
    }

    /// Requires the present rights of a key. A user's session may always act on a key that acts as that user.
    pub(crate) async fn require_rights_of_key(
        &self,
        connection: &mut Connection,
        caller: &Caller,
        holder: &KeyHolder,
    ) -> Result<()> {
        if caller.has_all_rights() || caller.is_session_of(&holder.user.id) {
            return Ok(());
        }
        let rights = self.rights_of_key(connection, holder).await?;
        let registry = self.registry_in(connection).await?;
        caller.require_rights(&self.grant_context(&registry), "This API key", &rights)
    }

    /// The present rights of a key. For a suspended key, these are the rights that it can have after somebody has adopted it.
    async fn rights_of_key(&self, connection: &mut Connection, holder: &KeyHolder) -> Result<Permissions> {
        let role = Permissions::new(grants(&holder.role.permissions)?, Some(holder.user.id.clone()));
        Ok(match self.rights_of_maker_in(connection, &holder.key.maker).await? {
            MakerRights::Held(maker) => role.limited_to(Arc::clone(maker.rights())),
            MakerRights::Unlimited | MakerRights::Suspended(_) => role,
        })
    }
}
