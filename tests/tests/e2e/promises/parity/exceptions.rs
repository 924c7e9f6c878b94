//! The intended differences between the surfaces, with their reasons. No other differences are allowed.

use super::operation::{Action, Members, Operation};
use super::outcome::Refusal;
use super::schema::{OBJECTS, SYSTEM_COLUMNS};
use super::world::Surface;

/// The way in which an operation runs in a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// The operation runs with the world's own surface.
    Own,
    /// The operation runs with REST, so that the records stay the same in all worlds.
    StandIn,
    /// The operation does not run here. It changes nothing in the other worlds either.
    Unsent,
}

/// The way of an operation.
pub(super) fn way(surface: Surface, operation: &Operation) -> Way {
    match (surface, &operation.action) {
        // The first version of the block interface cannot update many records in one call.
        (Surface::Block, Action::UpdateMany { .. }) => Way::StandIn,
        (Surface::Rest | Surface::Mcp | Surface::Block, _) => Way::Own,
        // GraphQL creates records one by one. Several mutations in one document are not one transaction.
        (_, Action::CreateMany(_)) => Way::StandIn,
        // GraphQL's inputs have no system columns, except for the `id` of an upsert. The other surfaces ignore these columns.
        (
            _,
            Action::Create(values)
            | Action::Update { values, .. }
            | Action::UpdateMany { values, .. }
            | Action::Upsert { values, .. },
        ) if has_system_column(values) => Way::StandIn,
        // GraphQL has no fields for an unknown object. Such an object only occurs in reads.
        (_, _) if !OBJECTS.contains(&operation.object) => Way::Unsent,
        // GraphQL cannot select an unknown relation key. The other surfaces ignore it.
        (_, Action::List(query)) if query.expand.iter().any(|key| key == "nothing") => Way::Unsent,
        (_, Action::Get { expand, .. }) if expand.iter().any(|key| key == "nothing") => Way::Unsent,
        // `increment` can only add. It cannot express other operators.
        (_, Action::Update { increments, .. } | Action::UpdateMany { increments, .. })
            if increments.iter().any(|increment| increment.operator == "$mul") =>
        {
            Way::Unsent
        }
        // Only links of many_to_many relations have mutations. For other keys, the mutation does not exist.
        (_, Action::Link { relation, .. }) if *relation != "labels" => Way::Unsent,
        _ => Way::Own,
    }
}

fn has_system_column(values: &Members) -> bool {
    SYSTEM_COLUMNS.iter().any(|name| values.names(name))
}

/// Whether responses lack the warnings of REST. A block gets only the record, or the page in the form of its SDK, without a place for
/// warnings.
pub(super) fn drops_warnings(surface: Surface) -> bool {
    surface == Surface::Block
}

/// Whether the surface's refusal may differ from REST's in this way.
pub(super) fn excuses(surface: Surface, operation: &Operation, rest: &Refusal, other: &Refusal) -> bool {
    let same_code = (&rest.code, &rest.field) == (&other.code, &other.field);
    match surface {
        Surface::Rest => false,
        Surface::Mcp => same_code && reads_numbers(operation),
        // For the server, a block is a known caller, even if an anonymous user calls it. So it gets `forbidden` instead of
        // `unauthorized`.
        Surface::Block => {
            let of_nobody = (rest.code.as_str(), other.code.as_str()) == ("unauthorized", "forbidden");
            of_nobody || (same_code && reads_numbers(operation))
        }
        Surface::Graphql => {
            // GraphQL checks a document before the caller's rights and the record's existence. The caller's schema lacks
            // operations that they may never run, and the schema is checked before any value.
            let is_of_right = |refusal: &Refusal| matches!(refusal.code.as_str(), "forbidden" | "unauthorized" | "not_found");
            let comes_first = other.is_of_document && (is_of_right(rest) || is_of_right(other));
            // GraphQL's messages are about the document, so they differ from REST's.
            let is_worded_alike = same_code && (other.is_of_document || reads_numbers(operation));
            comes_first || is_worded_alike || is_no_operator(operation, rest, other)
        }
    }
}

/// REST gets paging numbers as text, the other surfaces as numbers. The message about an invalid number quotes it in the form in
/// which it was sent.
fn reads_numbers(operation: &Operation) -> bool {
    matches!(&operation.action, Action::List(query) if query.window.iter().any(|(_, number)| *number < 1))
}

/// In GraphQL, an object is not an atomic operator, but a value of the wrong type. And `IncrementInput` has only fields for numeric
/// columns.
fn is_no_operator(operation: &Operation, rest: &Refusal, other: &Refusal) -> bool {
    matches!(operation.action, Action::Update { .. } | Action::UpdateMany { .. })
        && other.is_of_document
        && rest.code == "INVALID_ATOMIC_OP"
        && matches!(other.code.as_str(), "invalid_value" | "unknown_field")
        && rest.field == other.field
}
