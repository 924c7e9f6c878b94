//! Explains why a user with a role may use a record or not.

use std::sync::Arc;

use blockbase_query::{Action, Condition, Grant, Permissions, Scope, Variables};
use blockbase_schema::{Error, Resource, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::App;
use crate::access::identity::{grants, public_role};
use crate::access::stored_grants::shown_grants;
use crate::caller::{Caller, variables_of};
use crate::outbox::checks::within;
use crate::records::read::record_id;

/// The parameters of an explanation.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The user whose variables the conditions use. Without a user, the variables are those of a caller without a credential.
    pub user_id: Option<String>,
    pub object: String,
    pub action: Action,
    /// The id of a record.
    pub id: Option<String>,
}

/// The grants of a role that decide about an action on an object, and what they come to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcExplanation", deny_unknown_fields)]
pub struct Explanation {
    /// The grants of the role and of `public` that allow the action on the object.
    grants: Vec<Grant>,
    /// The condition that a record has to meet, with the values of the variables. `$user.roles` has the name of this role alone.
    /// `{}` is met by every record, and `{"_or":[]}` by none. For `create`, the new record has to meet it.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    condition: Box<RawValue>,
    /// Whether the record meets the condition. Null without `id`.
    passes: Option<bool>,
}

impl App {
    /// What a role allows a user on the records of an object.
    ///
    /// # Errors
    /// `forbidden` without read on `roles`, `users` and all records of the object. `not_found` for an unknown role, user, object or
    /// record.
    pub async fn explain_role(&self, caller: &Caller, id_or_name: &str, request: ExplainRequest) -> Result<Explanation> {
        caller.require(Resource::Roles, Action::Read)?;
        caller.require(Resource::Users, Action::Read)?;
        caller.require(&request.object, Action::Read)?;
        let (key, user_id) = (id_or_name.to_owned(), request.user_id.clone());
        let (role, public, user) = self
            .look_up(caller, move |connection| {
                Box::pin(async move {
                    let role = connection.role(&key).await?.ok_or_else(|| Error::not_found("role"))?;
                    let user = match user_id {
                        Some(id) => Some(connection.user(&id).await?.ok_or_else(|| Error::not_found("user"))?),
                        None => None,
                    };
                    Ok((role, public_role(connection).await?, user))
                })
            })
            .await?;
        let mut given = grants(&role.permissions)?;
        if let Some(public) = public.filter(|public| public.id != role.id) {
            given.extend(grants(&public.permissions)?);
        }
        let subject = user.map_or_else(Variables::default, |user| variables_of(&user, vec![role.name], None));
        let request = &request;
        let given = &given;
        self.on_schema(caller, |registry| {
            let rights = Permissions::of_subject(given.clone(), subject.clone());
            async move {
                let object = registry.object(&request.object).ok_or_else(|| Error::unknown_object(&request.object))?;
                let decision = rights.decide(object.name(), request.action);
                let access = decision.map(|decision| decision.on(&self.grant_context(&registry), object));
                let checks = access.as_ref().and_then(|access| access.checks());
                let condition = match (&access, checks) {
                    (None, _) => Condition::FALSE,
                    (Some(_), Some(checks)) if request.action == Action::Create => {
                        Condition::any(checks.iter().map(|check| check.leaves.condition(object)).collect())
                    }
                    // All callers own the records that they create.
                    (Some(_), None) if request.action == Action::Create => Condition::TRUE,
                    (Some(access), _) => access.scope().condition(object),
                };
                let passes = match &request.id {
                    None => None,
                    Some(id) => {
                        let missing = || Error::not_found("record");
                        let id = record_id(id).ok_or_else(missing)?;
                        let (sought, scope) = (Arc::clone(object), Scope::Where(Arc::new(condition.clone())));
                        let read = self.store.read_rows(self.by(caller), Some(registry.version), move |connection| {
                            Box::pin(async move {
                                let is_there = !within(connection, &sought, &Scope::All, vec![id]).await?.is_empty();
                                Ok((is_there, !within(connection, &sought, &scope, vec![id]).await?.is_empty()))
                            })
                        });
                        match read.await? {
                            (true, passes) => Some(passes),
                            (false, _) => return Err(missing()),
                        }
                    }
                };
                let allows = |grant: &Grant| {
                    (grant.resource == "*" || grant.resource == object.name())
                        && grant.actions.iter().any(|action| [Action::Manage, request.action].contains(action))
                };
                Ok(Explanation {
                    grants: shown_grants(&registry, given.iter().filter(|grant| allows(grant)).cloned().collect()),
                    condition: RawValue::from_string(condition.to_json(object)).map_err(Error::internal)?,
                    passes,
                })
            }
        })
        .await
    }
}
