//! The rights that a role gives in effect: its own grants, those on `*` and those of `public` together, for each resource and
//! action.

use std::borrow::Cow;
use std::collections::BTreeSet;

use blockbase_query::{Action, Decision, Grant, GrantContext, Permissions, Scope};
use blockbase_schema::{Error, Registry, Resource, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::App;
use crate::access::identity::{grants, public_role};
use crate::caller::Caller;

/// An id for any user with the role, so that a grant for own rows has an owner.
const SOMEBODY: &str = "somebody";

impl App {
    /// The rights of a session of a user with this role: `{ roleId, name, resources: [{ resource, create, read, update, delete,
    /// manage }] }`, each `all`, `own`, `condition` (some rows, or some fields) or null. A grant counts only for the
    /// actions that it gives.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn role_permissions(&self, caller: &Caller, id_or_name: &str) -> Result<RolePermissions> {
        caller.require(Resource::Roles, Action::Read)?;
        let key = id_or_name.to_owned();
        let (role, public) = self
            .look_up(caller, move |connection| {
                Box::pin(async move {
                    let role = connection.role(&key).await?.ok_or_else(|| Error::not_found("role"))?;
                    Ok((role, public_role(connection).await?))
                })
            })
            .await?;
        let mut all = grants(&role.permissions)?;
        if let Some(public) = public {
            all.extend(grants(&public.permissions)?);
        }
        let registry = self.registry();
        let grant_context = self.grant_context(&registry);
        let rights = |grants: Vec<Grant>| Permissions::new(grants, Some(SOMEBODY.to_owned()));
        let held = rights(all.iter().filter_map(|grant| given_by(&grant_context, grant)).collect());
        let mut resources = vec!["*".to_owned()];
        resources.extend(Resource::ALL.iter().map(|resource| resource.name().to_owned()));
        resources.extend(self.further_resources(caller, &registry, &rights(all)));
        let resources = resources.into_iter().map(|resource| rights_on(&held, &registry, resource)).collect();
        Ok(RolePermissions { role_id: role.id, name: role.name, resources })
    }

    /// The other resources: objects and resources of blocks that the caller may know of, and those that the grants themselves
    /// name, broken ones included.
    fn further_resources(&self, caller: &Caller, registry: &Registry, stored: &Permissions) -> BTreeSet<String> {
        let mut resources: BTreeSet<String> = stored.named_resources().map(str::to_owned).collect();
        let knows_all = caller.holds(Resource::Objects, Action::Read);
        let objects = registry.objects().map(|object| object.name());
        resources.extend(objects.filter(|name| knows_all || caller.may(name, Action::Read)).map(str::to_owned));
        if caller.holds(Resource::Blocks, Action::Read) {
            let blocks = self.blocks.read();
            let declared = blocks.values().flat_map(|block| &block.manifest.resources);
            resources.extend(declared.map(|resource| resource.name.clone()));
        }
        resources.retain(|name| Resource::named(name).is_none());
        resources
    }
}

/// What a session of a user with this role may do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcRolePermissions", deny_unknown_fields)]
pub struct RolePermissions {
    #[schemars(extend("format" = "uuid"))]
    role_id: String,
    name: String,
    resources: Vec<RightsOn>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct RightsOn {
    resource: String,
    create: Reach,
    read: Reach,
    update: Reach,
    delete: Reach,
    manage: Reach,
}

/// The rows that an action may use. `None` for no rows.
#[derive(Clone, Copy, Debug, Serialize)]
struct Reach(Option<&'static str>);

impl JsonSchema for Reach {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Reach".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], "enum": ["all", "own", "condition", null] })
    }
}

/// What a stored grant gives. `None` for nothing: if one of its conditions is broken, or its lists for all of its actions.
fn given_by(grant_context: &GrantContext<'_>, grant: &Grant) -> Option<Grant> {
    if grant_context.has_broken_condition(grant) { None } else { grant_context.given_by(grant).map(Cow::into_owned) }
}

fn rights_on(held: &Permissions, registry: &Registry, resource: String) -> RightsOn {
    // If a resource belongs neither to the platform nor to a block, it is an object, which may not exist yet.
    let has_rows = match Resource::named(&resource) {
        Some(platform) => platform.has_own_rows(),
        None => registry.object(&resource).is_some() || !resource.contains(':'),
    };
    let right = |action: Action| match held.decide(&resource, action) {
        Some(Decision::Rows(Scope::All)) => Reach(Some("all")),
        // A grant for own rows has no effect on a resource without rows.
        Some(Decision::Rows(Scope::Own(_))) if has_rows => Reach(Some("own")),
        Some(Decision::Rules(_)) if has_rows => Reach(Some("condition")),
        _ => Reach(None),
    };
    RightsOn {
        create: right(Action::Create),
        read: right(Action::Read),
        update: right(Action::Update),
        delete: right(Action::Delete),
        manage: right(Action::Manage),
        resource,
    }
}
