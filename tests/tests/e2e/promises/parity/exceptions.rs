//! Where the surfaces are meant to differ, each with its reason. Nothing else may.

use super::operation::{Action, Members, Operation};
use super::outcome::Refusal;
use super::schema::{OBJECTS, SYSTEM_COLUMNS};
use super::world::Surface;

/// How an operation gets into a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// Through the world's own surface.
    Own,
    /// Through REST, so that the records stay the same.
    StandIn,
    /// Not at all; it changes nothing elsewhere.
    Unsent,
}

/// Which way an operation takes.
pub(super) fn way(surface: Surface, operation: &Operation) -> Way {
    match (surface, &operation.action) {
        // The first version of the block interface has no update of many records.
        (Surface::Block, Action::UpdateMany { .. }) => Way::StandIn,
        (Surface::Rest | Surface::Mcp | Surface::Block, _) => Way::Own,
        // GraphQL creates and deletes records one by one; several mutations in one document would not be all or none.
        (_, Action::CreateMany(_) | Action::DeleteMany { .. }) => Way::StandIn,
        // Its inputs have no system columns, which the other surfaces drop, but for the `id` of an upsert.
        (
            _,
            Action::Create(values)
            | Action::Update { values, .. }
            | Action::UpdateMany { values, .. }
            | Action::Upsert { values, .. },
        ) if has_system_column(values) => Way::StandIn,
        // It has no fields for an object that there is not; reading it is all that is drawn.
        (_, _) if !OBJECTS.contains(&operation.object) => Way::Unsent,
        // A relation key that there is not cannot be selected; the other surfaces ignore it.
        (_, Action::List(query)) if query.expand.iter().any(|key| key == "nothing") => Way::Unsent,
        (_, Action::Get { expand, .. }) if expand.iter().any(|key| key == "nothing") => Way::Unsent,
        // `increment` adds; it has no place for another operator.
        (_, Action::Update { increments, .. } | Action::UpdateMany { increments, .. })
            if increments.iter().any(|increment| increment.operator == "$mul") =>
        {
            Way::Unsent
        }
        // Only links of many_to_many relations have mutations; elsewhere the key is not found.
        (_, Action::Link { relation, .. }) if *relation != "labels" => Way::Unsent,
        _ => Way::Own,
    }
}

fn has_system_column(values: &Members) -> bool {
    SYSTEM_COLUMNS.iter().any(|name| values.names(name))
}

/// Whether answers lack the warnings of REST: a block gets the record itself and the page as its kit has it, where none has a place.
pub(super) fn drops_warnings(surface: Surface) -> bool {
    surface == Surface::Block
}

/// Whether a refusal may differ from that of REST in this way.
pub(super) fn excuses(surface: Surface, operation: &Operation, rest: &Refusal, other: &Refusal) -> bool {
    let same_code = (&rest.code, &rest.field) == (&other.code, &other.field);
    match surface {
        Surface::Rest => false,
        Surface::Mcp => same_code && reads_numbers(operation),
        // A block is somebody, even when nobody calls it: it may not, where nobody would have to say who they are.
        Surface::Block => {
            let of_nobody = (rest.code.as_str(), other.code.as_str()) == ("unauthorized", "forbidden");
            of_nobody || (same_code && reads_numbers(operation))
        }
        Surface::Graphql => {
            // A document is checked before anybody asks what the caller may, or whether the record is there; and what they may do
            // with no record is not in their schema, which is looked at before any value is.
            let is_of_right = |refusal: &Refusal| matches!(refusal.code.as_str(), "forbidden" | "unauthorized" | "not_found");
            let comes_first = other.is_of_document && (is_of_right(rest) || is_of_right(other));
            // Its sentences are about the document.
            let is_worded_alike = same_code && (other.is_of_document || reads_numbers(operation));
            comes_first || is_worded_alike || is_no_operator(operation, rest, other)
        }
    }
}

/// Numbers of the window are text in REST and numbers elsewhere, and the sentence about a wrong one shows it as it came.
fn reads_numbers(operation: &Operation) -> bool {
    matches!(&operation.action, Action::List(query) if query.window.iter().any(|(_, number)| *number < 1))
}

/// In GraphQL an object is no atomic operator but a value of the wrong type, and `IncrementInput` has no field for a column that
/// is no number.
fn is_no_operator(operation: &Operation, rest: &Refusal, other: &Refusal) -> bool {
    matches!(operation.action, Action::Update { .. } | Action::UpdateMany { .. })
        && other.is_of_document
        && rest.code == "INVALID_ATOMIC_OP"
        && matches!(other.code.as_str(), "invalid_value" | "unknown_field")
        && rest.field == other.field
}
