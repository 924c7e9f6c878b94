//! Admission: the rights that an operation requires before it reads anything except the credential and the path.
//!
//! Each surface calls these functions before it reads parameters or a body, so that a caller without the right causes no work.
//! The operation checks again, because rights may have changed, and the body may need further rights.

use blockbase_query::Action;
use blockbase_schema::Result;

use crate::App;
use crate::caller::client::AuthProblem;
use crate::caller::{Caller, Credentials};
use crate::records::links::Linkable;

impl App {
    /// Requires rights on the records of an object.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`, and `not_found` if the object does not exist and the caller may know that.
    pub async fn admit_to_object(&self, caller: &Caller, object: &str, actions: &[Action]) -> Result<()> {
        self.on_schema(caller, async |registry| {
            for action in actions {
                caller.admit_to(&registry, object, *action)?;
            }
            Ok(())
        })
        .await
    }

    /// Requires the rights to change the links of one relation.
    ///
    /// # Errors
    /// The errors of [`App::admit_to_object`], and `not_found` for a relation key that is not many_to_many.
    pub async fn admit_to_links(&self, caller: &Caller, object: &str, key: &str) -> Result<()> {
        self.on_schema(caller, async |registry| Linkable::find(caller, &self.grant_context(&registry), object, key).map(drop))
            .await
    }

    /// Requires the right to create, change or delete records of at least one object. The operations of a batch may need further
    /// rights.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`.
    pub async fn admit_to_batch(&self, caller: &Caller) -> Result<()> {
        self.on_schema(caller, async |registry| caller.admit_to_writes(&registry)).await
    }

    /// Requires the right to call an action.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`, and `not_found` if the action does not exist and the caller may know that.
    pub async fn admit_to_action(&self, caller: &Caller, block: &str, action: &str) -> Result<()> {
        self.look_for_action(caller, block, action).await?;
        self.callable(caller, block, action).map(drop)
    }

    /// Requires a session. An API key does not count.
    ///
    /// # Errors
    /// [`AuthProblem::NoSession`].
    pub async fn admit_session(&self, credentials: &Credentials) -> Result<Caller, AuthProblem> {
        let identity = self.session(credentials).await?;
        Ok(Caller::at(identity, credentials.address).with_origin(credentials.origin()))
    }

    /// Requires the session of a claim.
    ///
    /// # Errors
    /// `unauthorized`.
    pub async fn admit_claim(&self, credentials: &Credentials) -> Result<Caller> {
        let identity = self.claiming_session(credentials).await?;
        Ok(Caller::at(identity, credentials.address).with_origin(credentials.origin()))
    }
}
