//! Explains why a user with a role may use a record or not.

use std::sync::Arc;

use blockbase_query::{Action, Condition, Demand, Grant, Permissions, Variables};
use blockbase_schema::{Error, Object, Resource, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::App;
use crate::access::identity::{grants, public_role};
use crate::access::stored_grants::shown_grants;
use crate::caller::{Caller, variables_of};
use crate::outbox::checks::met;
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
    grants: Vec<ExplainedGrant>,
    /// The condition that a record has to meet, with the values of the variables. `$user.roles` has the name of this role alone.
    /// `{}` is met by every record, and `{"_or":[]}` by none. For `create`, the new record has to meet it.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    condition: Box<RawValue>,
    /// Whether the record meets the condition. Null without `id`.
    passes: Option<bool>,
}

/// A grant, and whether the record passes it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcExplainedGrant", deny_unknown_fields)]
struct ExplainedGrant {
    #[serde(flatten)]
    grant: Grant,
    /// Whether the record meets the condition of this grant. For `create`, this is its `check`. Null without `id`. False if the
    /// grant is broken for this action.
    passes: Option<bool>,
    /// The parts of the grant's condition that the record does not meet, with the values of the variables. A part that no record
    /// can meet is as the grant has it, with the names of the variables, because one of them may have no value for the user. Empty
    /// without `id`, if the record passes, and if the grant is broken.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    failing: Vec<Box<RawValue>>,
}

impl ExplainedGrant {
    /// `demands` is `None` if the grant is broken. `met` says of each of the demands whether the record meets it. It is `None` if
    /// there is no record.
    fn of(grant: Grant, demands: Option<Vec<Demand>>, met: Option<&mut impl Iterator<Item = bool>>) -> Result<ExplainedGrant> {
        let (passes, failing) = match (met, demands) {
            (None, _) => (None, Vec::new()),
            (Some(_), None) => (Some(false), Vec::new()),
            (Some(met), Some(demands)) => {
                let failing = demands.into_iter().zip(met).filter(|(_, is_met)| !is_met);
                let failing = failing.map(|(demand, _)| RawValue::from_string(demand.text).map_err(Error::internal));
                let failing = failing.collect::<Result<Vec<_>>>()?;
                (Some(failing.is_empty()), failing)
            }
        };
        Ok(ExplainedGrant { grant, passes, failing })
    }
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
        let (request, given, subject) = (&request, &given, &subject);
        self.on_schema(caller, |registry| {
            let rights = Permissions::of_subject(given.clone(), subject.clone());
            async move {
                let object = registry.object(&request.object).ok_or_else(|| Error::unknown_object(&request.object))?;
                let grant_context = self.grant_context(&registry);
                let access = rights.decide(object.name(), request.action).map(|decision| decision.on(&grant_context, object));
                let checks = access.as_ref().and_then(|access| access.checks());
                // All callers own the records that they create.
                let has_no_check = request.action == Action::Create && checks.is_none();
                let condition = match (&access, checks) {
                    (None, _) => Condition::FALSE,
                    (Some(_), Some(checks)) if request.action == Action::Create => {
                        Condition::any(checks.iter().map(|check| check.leaves.condition(object)).collect())
                    }
                    (Some(_), None) if has_no_check => Condition::TRUE,
                    (Some(access), _) => access.scope().condition(object),
                };
                let allows = |grant: &&Grant| {
                    (grant.resource == "*" || grant.resource == object.name())
                        && grant.actions.iter().any(|action| [Action::Manage, request.action].contains(action))
                };
                let allowing: Vec<Grant> = given.iter().filter(allows).cloned().collect();
                let demands = |grant: &Grant| match has_no_check && !grant.is_conditional() {
                    true => Some(Vec::new()),
                    false => grant_context.demands(grant, request.action, object, subject),
                };
                let demands: Vec<Option<Vec<Demand>>> = allowing.iter().map(demands).collect();
                let mut met = match &request.id {
                    None => None,
                    Some(id) => {
                        let each = demands.iter().flatten().flatten();
                        let each = each.map(|demand| demand.condition.clone().unwrap_or(Condition::FALSE));
                        let conditions = std::iter::once(condition.clone()).chain(each).collect();
                        Some(self.conditions_met(caller, registry.version, object, id, conditions).await?.into_iter())
                    }
                };
                let passes = met.as_mut().and_then(Iterator::next);
                let shown = shown_grants(&registry, allowing).into_iter().zip(demands);
                let explained = shown.map(|(grant, demands)| ExplainedGrant::of(grant, demands, met.as_mut()));
                Ok(Explanation {
                    grants: explained.collect::<Result<_>>()?,
                    condition: RawValue::from_string(condition.to_json(object)).map_err(Error::internal)?,
                    passes,
                })
            }
        })
        .await
    }

    /// Whether a record meets each of the conditions.
    ///
    /// # Errors
    /// `not_found` if there is no such record; an error to retry if the schema has changed.
    async fn conditions_met(
        &self,
        caller: &Caller,
        version: i64,
        object: &Arc<Object>,
        id: &str,
        conditions: Vec<Condition>,
    ) -> Result<Vec<bool>> {
        let missing = || Error::not_found("record");
        let id = record_id(id).ok_or_else(missing)?;
        let object = Arc::clone(object);
        let read = self.store.read_rows(self.by(caller), Some(version), move |connection| {
            Box::pin(async move { met(connection, &object, id, &conditions).await })
        });
        read.await?.ok_or_else(missing)
    }
}
