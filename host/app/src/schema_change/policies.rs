//! The conditions and the lists of fields of grants that a change of the schema would break.

use blockbase_query::{Action, Clause, Fields, Grant, Ground, Shapes};
use blockbase_schema::{Code, Column, Error, Object, Registry, Resource, Result};
use blockbase_store::Connection;

use crate::access::identity::grants;
use crate::caller::Caller;

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

/// Makes sure that each condition and each list of fields of a grant that means something before the change does so after it. Grants on an object that goes
/// altogether go with it.
///
/// # Errors
/// `object_in_use`, which names the role to those who may read roles.
pub(super) async fn check_policies(
    connection: &mut Connection,
    caller: &Caller,
    before: &Registry,
    after: &Registry,
    now: i64,
) -> Result<()> {
    let shapes = Shapes::default();
    let (was, is) = (Ground { registry: before, now, shapes: &shapes }, Ground { registry: after, now, shapes: &shapes });
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
        // One at a time: a role can have some hundred kilobytes of grants.
        let Some(role) = connection.role(&id).await? else { continue };
        let Some(broken) = grants(&role.permissions)?.into_iter().find(breaks) else { continue };
        let message = match caller.holds(Resource::Roles, Action::Read) {
            true => format!(
                "A condition or a list of fields of the role `{}` on `{}` would lose its meaning by this. Change the role first.",
                role.name, broken.resource
            ),
            false => "A condition or a list of fields of a role would lose its meaning by this.".to_owned(),
        };
        return Err(Error::new(Code::ObjectInUse, message));
    }
    Ok(())
}
