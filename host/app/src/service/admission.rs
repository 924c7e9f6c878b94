//! What an operation demands of its caller before it looks at anything except the credential and the path.
//!
//! Each surface asks here before it reads parameters or a body, so that nobody gets work or memory for an operation that they may
//! not have. The operation itself checks again: it may see a later moment, and what its body says.

use blockbase_query::Action;
use blockbase_schema::Result;

use crate::App;
use crate::caller::client::AuthProblem;
use crate::caller::{Caller, Credentials};

impl App {
    /// Demands rights on the records of an object.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`, and `not_found` for an object that does not exist, where the caller may know that.
    pub async fn admit_to_object(&self, caller: &Caller, object: &str, actions: &[Action]) -> Result<()> {
        self.on_schema(caller, async |registry| {
            for action in actions {
                caller.admit_to(&registry, object, *action)?;
            }
            Ok(())
        })
        .await
    }

    /// Demands the rights to change the links of one relation.
    ///
    /// # Errors
    /// As [`App::admit_to_object`], and `not_found` for a relation key that is not many_to_many.
    pub async fn admit_to_links(&self, caller: &Caller, object: &str, key: &str) -> Result<()> {
        self.on_schema(caller, async |registry| self.linkable(caller, &registry, object, key).map(drop)).await
    }

    /// Demands the right to call an action.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`, and `not_found` if the caller may know that there is no such action.
    pub async fn admit_to_action(&self, caller: &Caller, block: &str, action: &str) -> Result<()> {
        self.look_for_action(caller, block, action).await?;
        self.callable(caller, block, action).map(drop)
    }

    /// Demands a session, which an API key is not.
    ///
    /// # Errors
    /// [`AuthProblem::NoSession`].
    pub async fn admit_session(&self, credentials: &Credentials) -> Result<Caller, AuthProblem> {
        self.session(credentials).await.map(|identity| Caller::at(identity, credentials.address))
    }

    /// Demands the session of a claim.
    ///
    /// # Errors
    /// `unauthorized`.
    pub async fn admit_claim(&self, credentials: &Credentials) -> Result<Caller> {
        self.claiming_session(credentials).await.map(|identity| Caller::at(identity, credentials.address))
    }
}
