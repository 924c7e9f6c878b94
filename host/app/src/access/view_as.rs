//! Lets a caller view the service as a role would see it.
//!
//! The caller sees what the rights of the role allow, but never more than without this. So the rights of the role are limited to
//! those of the caller. The limited rights are a part of the [`Caller`], so they apply to every operation and every surface.

use std::sync::Arc;

use blockbase_query::{Action, Permissions};
use blockbase_schema::{Error, Hint, Resource, Result};

use crate::App;
use crate::access::identity::{PUBLIC, public_role};
use crate::caller::{Authority, Caller, variables_of};

impl App {
    /// The caller with the rights of a session that has only one role, as far as the caller has these rights. `role` is the id of
    /// the role. `own` means the rows of the caller.
    ///
    /// # Errors
    /// `invalid_request` without enforcement, because roles then have no effect; `unauthorized` and `forbidden` without read on
    /// `roles`; `not_found` for an unknown id.
    pub(crate) async fn viewed_as(&self, caller: Caller, role: &str) -> Result<Caller> {
        if !self.settings.require_auth {
            let message = "Viewing as a role needs enforcement (SVC_REQUIRE_AUTH): without it everybody may do everything.";
            return Err(Error::invalid_request(message).with_hint(Hint::OwnView));
        }
        caller.require(Resource::Roles, Action::Read)?;
        let rights = match self.identities.view(role, caller.rights(), self.clock.now()) {
            Some(rights) => rights,
            None => self.cut_to_role(&caller, role).await?,
        };
        Ok(Caller { authority: Authority::Own(Arc::clone(&rights)), view: Some(rights), ..caller })
    }

    async fn cut_to_role(&self, caller: &Caller, role: &str) -> Result<Arc<Permissions>> {
        let (now, generation) = (self.clock.now(), self.identities.generation());
        let sought = role.to_owned();
        let (found, public) = self
            .look_up(caller, move |connection| {
                Box::pin(async move { Ok((connection.role(&sought).await?, public_role(connection).await?)) })
            })
            .await?;
        // The store also finds a role by its name. That is not allowed here, because a name can be given to another role.
        let found = found.filter(|found| found.id == role).ok_or_else(|| Error::not_found("role"))?;
        // The caller appears as in a session with only this role: `$user.roles` contains the role, `$key.id` has no value, and
        // all other variables are the caller's own. This holds for the conditions of the role and for those in the request.
        // `public` is not a role of a user.
        let roles = if found.name == PUBLIC { Vec::new() } else { vec![found.name.clone()] };
        let subject = caller.identity().map(|identity| variables_of(&identity.user, roles, None));
        // Every session has the rights of `public`.
        let of_role = self.permissions([&found].into_iter().chain(&public), subject.unwrap_or_default())?;
        let cut = Permissions::clone(&of_role).limited_to(Arc::clone(caller.rights()));
        Ok(self.identities.keep_view(role, caller.rights(), cut, now, generation))
    }
}
