//! A caller who looks at the service as a role would see it.
//!
//! It shows what the rights of a role open, and never more than what the caller may see anyway. So the rights of the role are cut to
//! those of the caller. The cut is a part of the [`Caller`], so every operation and every surface has it without knowing of it.

use std::sync::Arc;

use blockbase_query::{Action, Permissions};
use blockbase_schema::{Error, Hint, Resource, Result};

use crate::App;
use crate::access::identity::public_role;
use crate::caller::{Authority, Caller, variables_of};

impl App {
    /// The caller with the rights that a session with the role of the id `role` alone would have, as far as the caller has them. `own` means the
    /// rows of the caller.
    ///
    /// # Errors
    /// `invalid_request` without enforcement, where no role has a meaning; `unauthorized` and `forbidden` without read on `roles`;
    /// `not_found` for an unknown id.
    pub(crate) async fn viewed_as(&self, caller: Caller, role: &str) -> Result<Caller> {
        if !self.settings.require_auth {
            let message = "Looking as a role needs enforcement (SVC_REQUIRE_AUTH): without it everybody may do everything.";
            return Err(Error::invalid_request(message).with_hint(Hint::OwnView));
        }
        caller.require(Resource::Roles, Action::Read)?;
        let rights = match self.identities.view(role, caller.rights(), self.clock.now()) {
            Some(rights) => rights,
            None => self.cut_to_role(&caller, role).await?,
        };
        Ok(Caller { authority: Authority::Own(rights), ..caller })
    }

    async fn cut_to_role(&self, caller: &Caller, role: &str) -> Result<Arc<Permissions>> {
        let (now, generation) = (self.clock.now(), self.identities.generation());
        let sought = role.to_owned();
        let (found, public) = self
            .look_up(caller, move |connection| {
                Box::pin(async move { Ok((connection.role(&sought).await?, public_role(connection).await?)) })
            })
            .await?;
        // The store also finds a role by its name, which is not meant: a name can be given to another role.
        let found = found.filter(|found| found.id == role).ok_or_else(|| Error::not_found("role"))?;
        // A session with the role alone: `$user.roles` names it, and all else is the caller's.
        let subject = caller.identity().map(|identity| variables_of(&identity.user, vec![found.name.clone()], None));
        // Every session has what `public` may do.
        let of_role = self.permissions([&found].into_iter().chain(&public), subject.unwrap_or_default())?;
        let cut = Permissions::clone(&of_role).limited_to(Arc::clone(caller.rights()));
        Ok(self.identities.keep_view(role, caller.rights(), cut, now, generation))
    }
}
