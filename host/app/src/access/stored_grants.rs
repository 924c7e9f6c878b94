//! Grants as they are stored and shown. Stored conditions and lists of fields contain numbers of the catalogue instead of names, so a
//! rename does not break them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use blockbase_query::{
    Action, Bounds, Clause, Condition, Grant, GrantContext, Reading, Scope, Seen, Shapes, Variables, read_condition,
};
use blockbase_schema::{Code, Error, Object, Registry, Relation, Result, USERS};

use crate::caller::Caller;

/// The maximum number of grants with conditions or fields on one object, in one list.
const CONDITIONAL_GRANTS_MAX: usize = 20;

/// Makes the stored form of grants. `list` names the list in messages. `known` is the registry without the fields that the caller
/// may not know. A condition must not test these fields, because its author may use the grant, and would then learn something
/// about the values of these fields.
///
/// # Errors
/// The error in a condition or in a list of fields, with its place. `invalid_request`, with the place, for a condition or a list
/// of fields with which a grant cannot give one of its actions ([`Grant::can_give_all`]). `forbidden` for a condition on related
/// records of an object, if the caller may not read every record of that object. `forbidden` also for a condition on records of
/// which the caller may read none.
pub(crate) fn stored_grants(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    known: &Registry,
    list: &str,
    grants: Vec<Grant>,
) -> Result<Vec<Grant>> {
    let stored = |(index, grant): (usize, Grant)| {
        let at = |error: Error, name: &str| error.within(format_args!("`{list}` at index {index}, `{name}`"));
        let clauses = [(&grant.rows, "where"), (&grant.check, "check")];
        let [rows, check] = clauses.map(|(clause, name)| match clause {
            None => Ok(None),
            Some(clause) => {
                stored_clause(caller, grant_context, known, &grant, clause).map(Some).map_err(|error| at(error, name))
            }
        });
        let fields = grant
            .fields
            .as_ref()
            .map(|fields| fields.numbered(grant_context.registry, object_of(grant_context.registry, &grant.resource)?));
        let fields = fields.transpose().map_err(|error| at(error, "fields"))?.filter(|fields| !fields.are_all());
        let grant = Grant { rows: rows?, check: check?, fields, broken: false, ..grant };
        if grant.can_give_all() {
            return Ok(grant);
        }
        let limit = match (&grant.rows, &grant.check) {
            (Some(_), _) => "where",
            (None, Some(_)) => "check",
            (None, None) => "fields",
        };
        let message = format!(
            "On `{USERS}`, `where`, `check` and `fields` limit the action `read` only. Give the actions that they would limit in a \
             grant without them."
        );
        Err(at(Error::invalid_request(message), limit))
    };
    let mut conditional: HashMap<&str, usize> = HashMap::new();
    for grant in grants.iter().filter(|grant| grant.is_conditional()) {
        let number = conditional.entry(&grant.resource).or_default();
        *number += 1;
        if *number > CONDITIONAL_GRANTS_MAX {
            let resource = &grant.resource;
            let message = format!(
                "`{list}` can have at most {CONDITIONAL_GRANTS_MAX} grants with conditions or lists of fields on `{resource}`."
            );
            return Err(Error::invalid_request(message));
        }
    }
    grants.into_iter().enumerate().map(stored).collect()
}

/// The object whose records a condition selects, or whose fields a grant lists.
fn object_of<'r>(registry: &'r Registry, resource: &str) -> Result<&'r Arc<Object>> {
    let missing = || {
        Error::invalid_request(format!(
            "`{resource}` is not an object, so it has no records and no fields that a grant could choose."
        ))
    };
    registry.object(resource).ok_or_else(missing)
}

fn stored_clause(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    known: &Registry,
    grant: &Grant,
    clause: &Clause,
) -> Result<Clause> {
    let resource = grant.resource.as_str();
    let (registry, now) = (grant_context.registry, grant_context.now);
    let object = object_of(registry, resource)?;
    let known_object = object_of(known, resource)?;
    let decide = |relation: &Relation| {
        let access = caller.access_to(grant_context, &relation.related, Action::Read)?;
        match *access.scope() == Scope::All {
            true => Ok(access),
            // The condition is evaluated on related rows without a check of rights.
            false => Err(Error::new(
                Code::Forbidden,
                format!("A condition through `{}` needs the permission to read every record that it leads to.", relation.key),
            )),
        }
    };
    let variables = || Variables::of_somebody(now);
    let reading = Reading { registry: known, decide: &decide, variables: &variables, bounds: Bounds::of_policy() };
    let condition = read_condition(known_object, clause.text(), &reading)?;
    match caller.access_to(grant_context, resource, Action::Read) {
        Ok(reads) => {
            if let Some(name) = reads.seen().and_then(|seen| tested_in_part(&condition, seen)) {
                let message = format!("A condition on `{name}` needs the permission to read it in every record that you reach.");
                return Err(Error::new(Code::Forbidden, message));
            }
        }
        // Whether a change is refused would show whether the record meets the condition. The values of a new record are known.
        Err(_) if grant.actions.iter().any(|action| *action != Action::Create) && depends_on_records(&condition) => {
            let message = format!("A condition on records of `{resource}` needs the permission to read them.");
            return Err(Error::new(Code::Forbidden, message));
        }
        Err(_) => {}
    }
    clause.numbered(registry, object).ok_or_else(|| Error::internal("a condition that was read could not be stored"))
}

fn depends_on_records(condition: &Condition) -> bool {
    !condition.is_true() && !condition.is_false()
}

/// Returns a field or relation that a condition tests, if the condition's author may not read it in every row.
fn tested_in_part(condition: &Condition, seen: &Seen) -> Option<String> {
    let mut columns = BTreeSet::new();
    condition.columns_into(&mut columns);
    let column = columns.into_iter().find(|column| seen.readable(*column).is_some());
    let name = column.map(|column| seen.object.columns[column].name.clone());
    name.or_else(|| condition.links().find(|(_, shape)| seen.readable_links(*shape).is_some()).map(|(key, _)| key.to_owned()))
}

/// Stored grants as answers show them: with names instead of numbers of the catalogue, and marked as broken if they do not fit
/// the schema any more. Grants break if an object is deleted with `cascade`, or if a role comes from an older copy of the
/// database.
pub(crate) fn shown_grants(registry: &Registry, grants: Vec<Grant>) -> Vec<Grant> {
    let shapes = Shapes::default();
    // Whether a grant fits the schema does not depend on the time.
    let grant_context = GrantContext { registry, now: 0, shapes: &shapes };
    let marked = |grant: Grant| Grant { broken: grant_context.is_broken(&grant), ..grant };
    named_grants(registry, grants.into_iter().map(marked).collect())
}

/// Stored grants with names instead of numbers of the catalogue. A condition keeps its stored form if one of its numbers stands
/// for nothing any more. The same applies to the lists of fields of a grant.
pub(crate) fn named_grants(registry: &Registry, grants: Vec<Grant>) -> Vec<Grant> {
    let named = |mut grant: Grant| {
        let object = registry.object(&grant.resource);
        for clause in [&mut grant.rows, &mut grant.check].into_iter().flatten() {
            if let Some(named) = object.and_then(|object| clause.named(registry, object)) {
                *clause = named;
            }
        }
        if let Some(fields) = &mut grant.fields
            && let Some(named) = object.and_then(|object| fields.named(registry, object))
        {
            *fields = named;
        }
        grant
    };
    grants.into_iter().map(named).collect()
}
