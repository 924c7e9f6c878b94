//! Finds the conditions and the lists of fields of grants that a change of the schema would break.

use blockbase_query::{Action, Clause, Fields, Grant, GrantContext, Shapes};
use blockbase_schema::{Code, Column, Error, Object, Registry, Resource, Result};
use blockbase_store::Connection;

use crate::access::identity::grants;
use crate::caller::Caller;
use crate::state::block_types::manifest_place;
use crate::state::manifest::{DataPermission, Manifest};

/// The columns that have another type after a change.
fn retyped<'a>(before: &'a Registry, after: &Registry) -> Vec<(&'a Object, &'a Column)> {
    let mut found = Vec::new();
    for object in before.objects() {
        let Some(now) = after.object(object.name()).filter(|now| now.id == object.id) else { continue };
        let is_retyped = |column: &&Column| {
            let same = now.columns.iter().find(|known| !known.is_system && known.reference.is_none() && known.key == column.key);
            !column.is_system && column.reference.is_none() && same.is_some_and(|same| same.kind != column.kind)
        };
        found.extend(object.columns.iter().filter(is_retyped).map(|column| (object.as_ref(), column)));
    }
    found
}

/// Checks that the conditions and lists of fields of grants keep their meaning, in roles and in the permissions of installed
/// blocks. Grants on a dropped object do not count.
///
/// # Errors
/// `object_in_use`, which names the role or block to those who may read it.
pub(super) async fn check_policies(
    connection: &mut Connection,
    caller: &Caller,
    before: &Registry,
    after: &Registry,
    now: i64,
) -> Result<()> {
    let shapes = Shapes::default();
    let (was, is) =
        (GrantContext { registry: before, now, shapes: &shapes }, GrantContext { registry: after, now, shapes: &shapes });
    let retyped = retyped(before, after);
    let breaks = |grant: &Grant| {
        let (Some(old), Some(new)) = (before.object(&grant.resource), after.object(&grant.resource)) else { return false };
        let mut clauses = [&grant.rows, &grant.check].into_iter().flatten();
        let tests = |clause: &Clause| retyped.iter().any(|(object, column)| clause.tests(object, column));
        let lists = |fields: &Fields| retyped.iter().any(|(object, column)| object.id == old.id && fields.name(object, column));
        let fields = grant.fields.as_ref().filter(|fields| fields.named(before, old).is_some());
        clauses.any(|clause| was.has_meaning(old, clause) && (tests(clause) || !is.has_meaning(new, clause)))
            || fields.is_some_and(|fields| lists(fields) || fields.named(after, new).is_none())
    };
    for id in connection.roles_with_conditions().await? {
        // Roles are read one at a time, because a role can have some hundred kilobytes of grants.
        let Some(role) = connection.role(&id).await? else { continue };
        let Some(broken) = grants(&role.permissions)?.into_iter().find(breaks) else { continue };
        let named = caller.holds(Resource::Roles, Action::Read).then_some((role.name.as_str(), broken.resource.as_str()));
        return Err(in_use("role", named, "Change the role first."));
    }
    // The blocks are read from the database, because another instance may have just installed one.
    for block in connection.blocks().await? {
        let Some(manifest) = manifest_place(&block.name).found::<Manifest>(&block.manifest) else { continue };
        let Some(broken) = manifest.permissions.data.iter().map(DataPermission::grant).find(breaks) else { continue };
        let named = caller.holds(Resource::Blocks, Action::Read).then_some((block.name.as_str(), broken.resource.as_str()));
        return Err(in_use("block", named, "Upgrade or uninstall the block first."));
    }
    Ok(())
}

/// The error about a role or block. `named` has its name and the resource of the grant, if the caller may read it.
fn in_use(kind: &str, named: Option<(&str, &str)>, advice: &str) -> Error {
    let message = match named {
        Some((name, resource)) => {
            format!("This change would break a condition or a list of fields of the {kind} `{name}` on `{resource}`. {advice}")
        }
        None => format!("This change would break a condition or a list of fields of a {kind}."),
    };
    Error::new(Code::ObjectInUse, message)
}
