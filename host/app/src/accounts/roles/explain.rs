//! Explains why a user with a role may use a record or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockbase_query::{Action, Condition, Demand, Grant, Permissions, Variables, sql};
use blockbase_schema::{Error, Object, Resource, Result};
use blockbase_store::{Connection, Cost, Read};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::App;
use crate::access::identity::{grants, public_role};
use crate::access::stored_grants::shown_grants;
use crate::caller::{Caller, variables_of};
use crate::records::read::record_id;

/// The maximum number of conditions that one statement tests.
const CONDITIONS_MAX: usize = 40;

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

/// A grant, and whether it allows the action on the record.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcExplainedGrant", deny_unknown_fields)]
struct ExplainedGrant {
    #[serde(flatten)]
    grant: Grant,
    /// Whether the record meets the condition of this grant. For `create`: whether it meets the `check`. A new record belongs to
    /// its maker, so `own` is then met. Null without `id`. False if the grant does not give the action: if it is broken for it, or
    /// if it has a condition or fields on `users`, where these work for `read` only.
    passes: Option<bool>,
    /// The parts of the grant's condition that the record does not meet, in normal form and with the values of the variables,
    /// like `condition`. A part that no record can meet is shown as it is in the grant, with the names of the variables, because
    /// one of them may have no value for the user. Other parts that lead to records of an object are left out if the caller may
    /// not read all records of that object. Empty without `id`, if the record passes, and if the grant does not give the action.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    failing: Vec<Box<RawValue>>,
}

/// What a grant demands of a record.
struct Demands {
    /// The demands that the answer names if the record does not meet them.
    named: Vec<Demand>,
    /// The conjunction of the other demands. It is tested only as a whole.
    unnamed: Condition,
}

impl Demands {
    fn of(demands: Vec<Demand>, is_unnamed: impl Fn(&Condition) -> bool) -> Demands {
        let (unnamed, named): (Vec<Demand>, Vec<Demand>) =
            demands.into_iter().partition(|demand| demand.condition.as_ref().is_some_and(&is_unnamed));
        let unnamed = Condition::all(unnamed.into_iter().filter_map(|demand| demand.condition).collect());
        Demands { named, unnamed }
    }

    fn conditions(&self) -> impl Iterator<Item = Condition> {
        self.named.iter().filter_map(|demand| demand.condition.clone()).chain([self.unnamed.clone()])
    }
}

/// Which conditions a record meets.
struct Met<'o> {
    object: &'o Arc<Object>,
    /// The results of the tests, by the texts of the conditions.
    tested: BTreeMap<String, bool>,
}

impl Met<'_> {
    fn has(&self, condition: &Condition) -> bool {
        condition.is_true() || self.tested.get(&condition.to_json(self.object)).is_some_and(|is_met| *is_met)
    }
}

impl ExplainedGrant {
    /// `demands` is `None` if the grant does not give the action, and `met` if there is no record.
    fn of(grant: Grant, demands: Option<Demands>, met: Option<&Met<'_>>) -> Result<ExplainedGrant> {
        let (passes, failing) = match (met, demands) {
            (None, _) => (None, Vec::new()),
            (Some(_), None) => (Some(false), Vec::new()),
            (Some(met), Some(Demands { named, unnamed })) => {
                let is_met = |demand: &Demand| demand.condition.as_ref().is_some_and(|condition| met.has(condition));
                let failing = named.into_iter().filter(|demand| !is_met(demand));
                let failing = failing.map(|demand| RawValue::from_string(demand.text).map_err(Error::internal));
                let failing = failing.collect::<Result<Vec<_>>>()?;
                (Some(failing.is_empty() && met.has(&unnamed)), failing)
            }
        };
        Ok(ExplainedGrant { grant, passes, failing })
    }
}

/// The condition of a grant with these demands. `None` if a variable has no value.
fn conjunction(demands: &[Demand]) -> Option<Condition> {
    demands.iter().map(|demand| demand.condition.clone()).collect::<Option<Vec<_>>>().map(Condition::all)
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
                // If no grant with a condition or fields decides, every new record is allowed, because it belongs to its maker.
                let has_no_check =
                    request.action == Action::Create && access.as_ref().is_some_and(|access| access.checks().is_none());
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
                let condition = match &access {
                    None => Condition::FALSE,
                    Some(_) if request.action == Action::Create => {
                        Condition::any(demands.iter().flatten().filter_map(|demands| conjunction(demands)).collect())
                    }
                    Some(access) => access.scope().condition(object),
                };
                let reads_in_part = |object: &Arc<Object>| !caller.holds(object.name(), Action::Read);
                let is_unnamed = |condition: &Condition| {
                    let mut objects = Vec::new();
                    condition.objects_into(&mut objects);
                    objects.iter().any(reads_in_part)
                };
                let demands: Vec<Option<Demands>> =
                    demands.into_iter().map(|demands| demands.map(|demands| Demands::of(demands, is_unnamed))).collect();
                let met = match &request.id {
                    None => None,
                    Some(id) => {
                        let mut conditions = vec![condition.clone()];
                        conditions.extend(demands.iter().flatten().flat_map(Demands::conditions));
                        Some(self.met_by(caller, registry.version, object, id, conditions).await?)
                    }
                };
                let shown = shown_grants(&registry, allowing).into_iter().zip(demands);
                let explained = shown.map(|(grant, demands)| ExplainedGrant::of(grant, demands, met.as_ref()));
                Ok(Explanation {
                    grants: explained.collect::<Result<_>>()?,
                    condition: RawValue::from_string(condition.to_json(object)).map_err(Error::internal)?,
                    passes: met.as_ref().map(|met| met.has(&condition)),
                })
            }
        })
        .await
    }

    /// The conditions that a record meets. All of them are tested at one moment, each once.
    ///
    /// # Errors
    /// `not_found` if there is no such record; an error to retry if the schema has changed; the errors of a scan.
    async fn met_by<'o>(
        &self,
        caller: &Caller,
        version: i64,
        object: &'o Arc<Object>,
        id: &str,
        conditions: Vec<Condition>,
    ) -> Result<Met<'o>> {
        let missing = || Error::not_found("record");
        let id = record_id(id).ok_or_else(missing)?;
        // A condition that is always true or always false needs no test.
        let tested = conditions.into_iter().filter(|condition| !condition.is_true() && !condition.is_false());
        let tested: BTreeMap<String, Condition> = tested.map(|condition| (condition.to_json(object), condition)).collect();
        let (texts, conditions): (Vec<String>, Vec<Condition>) = tested.into_iter().unzip();
        let read = Read {
            schema: version,
            cost: if conditions.iter().any(Condition::reads_texts) { Cost::Scan } else { Cost::Unknown },
            tables_of_one_moment: (conditions.len() > CONDITIONS_MAX).then(|| tables(object, &conditions)),
        };
        let asked = Arc::new((Arc::clone(object), conditions));
        let results = self.read_metered(caller, read, move |connection| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { met(connection, &asked.0, id, &asked.1).await })
        });
        let results = results.await?.ok_or_else(missing)?;
        Ok(Met { object, tested: texts.into_iter().zip(results).collect() })
    }
}

/// The tables that the conditions on records of an object read.
fn tables(object: &Arc<Object>, conditions: &[Condition]) -> Vec<String> {
    let mut objects = vec![Arc::clone(object)];
    conditions.iter().for_each(|condition| condition.objects_into(&mut objects));
    objects.iter().map(|object| object.name().to_owned()).collect()
}

/// Returns, for each of the conditions, whether a record meets it. `None` if the record does not exist. With more than
/// [`CONDITIONS_MAX`] conditions, it runs several statements.
async fn met(connection: &mut Connection, object: &Object, id: Uuid, conditions: &[Condition]) -> Result<Option<Vec<bool>>> {
    let mut met = Vec::with_capacity(conditions.len());
    let mut rest = conditions;
    // Without conditions, one statement finds out whether the record exists.
    loop {
        let (some, others) = rest.split_at(rest.len().min(CONDITIONS_MAX));
        let statement = sql::met(connection.dialect(), object, id, some);
        let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(object))?;
        let Some(row) = rows.first() else { return Ok(None) };
        for index in 0..some.len() {
            met.push(row.boolean(index + 1)?);
        }
        if others.is_empty() {
            return Ok(Some(met));
        }
        rest = others;
    }
}
