//! Conditions on rows: one tree, with the same meaning in SQL and in memory.
//!
//! **Grammar.** A condition is a JSON object. Its members are ANDed:
//!
//! ```text
//! { "status": "open" }                              short for eq
//! { "amount": { "gte": 10, "lt": 20 } }             operators, ANDed
//! { "_and": [c, …] }  { "_or": [c, …] }  { "_not": c }
//! { "project": { "owner": { "name": "Ann" } } }     to-one relations nest; "project.owner.name" is short for it
//! { "tasks": { "some": c, "none": c, "every": c } } to-many relations, by their relation keys
//! ```
//!
//! **Meaning.** Each test is true or false, even if a value is null (see [`Condition::left_for`]), so `_not` is the exact
//! complement. If the row of a to-one relation is absent or hidden from the caller, its cells are all null, and its relations
//! lead to no rows. Over no rows, `some` is false, `none` and `every` are true. `{}` and `_and: []` are true, `_or: []` and `in:
//! []` are false.
//!
//! **Form.** [`read_condition`](crate::read_condition) checks a condition against the registry and the caller's rights and
//! returns its normal form. In that form, `_not` only applies to single tests that have no opposite, constants are folded, equal
//! parts occur once, and all conditions on one related row are in one place. The filters of a query string are tests of the same
//! tree. This module does not decide rights: `access` makes the [`Scope`], which says which related rows count.
//!
//! **Bounds** (the table in `docs/filter.md` has the same). [`LEAVES_MAX`] tests, [`LEVELS_MAX`] nested objects, [`STEPS_MAX`]
//! relation keys, [`DEPTH_MAX`] relations inside each other, [`PARTS_MAX`] conditions of one list, and [`OBJECTS_MAX`] objects.

mod memory;
mod named_quantifier;
mod print;
mod scope;
mod variables;

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use blockbase_schema::{Object, RelationShape};

use crate::predicate::Predicate;

pub use memory::{Image, image};
pub use named_quantifier::NamedQuantifier;
pub(crate) use scope::{LinkKey, own_rows};
pub use scope::{Scope, Seen};
pub(crate) use variables::Meaning;
pub use variables::{Audience, Variable, Variables};

/// The maximum number of tests in one condition. Each field with an operator is one test.
pub const LEAVES_MAX: usize = 100;
/// The maximum number of nested JSON objects, including the outermost one.
pub const LEVELS_MAX: usize = 8;
/// The maximum number of JSON objects in one condition, including those of operators and quantifiers. Empty objects contain no
/// tests, so the limit on tests does not limit them.
pub const OBJECTS_MAX: usize = 1000;
/// The maximum number of relation keys in one condition, at all depths together.
pub const STEPS_MAX: usize = 10;
/// The maximum number of tests in the condition of a grant.
pub const POLICY_LEAVES_MAX: usize = 30;
/// The maximum number of relation keys in the condition of a grant.
pub const POLICY_STEPS_MAX: usize = 2;
/// The maximum number of values in the condition of a grant.
pub const POLICY_VALUES_MAX: usize = 200;
/// The maximum number of nested relations.
pub const DEPTH_MAX: usize = 3;
/// The maximum number of conditions in one `_and` or `_or`.
pub const PARTS_MAX: usize = 100;

/// A condition on the rows of one object, in its normal form.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Condition {
    /// A test of one column.
    Test(Predicate),
    /// The complement of a test that has no opposite test.
    Not(Predicate),
    /// All parts are true. Without parts, the condition is true.
    All(Vec<Condition>),
    /// At least one part is true. Without parts, the condition is false.
    Any(Vec<Condition>),
    /// A condition on related rows.
    Related(Box<Related>),
}

/// The related rows that have to meet the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// The row of a to-one relation. If there is no row, all its values count as null.
    One,
    /// At least one row of a to-many relation.
    Some,
    /// No row of a to-many relation.
    None,
}

/// A condition on the rows that a relation leads to.
#[derive(Clone, Debug)]
pub struct Related {
    pub key: String,
    pub shape: RelationShape,
    /// The related object.
    pub object: Arc<Object>,
    /// The related rows that count. All others are treated as absent.
    pub scope: Scope,
    pub quantifier: Quantifier,
    pub condition: Condition,
    /// The requests that have the same condition, by the variables that its text names. Two conditions are compared by their
    /// values, without this.
    pub audience: Audience,
}

impl Related {
    /// Whether both are about the same related rows.
    fn follows(&self, other: &Related) -> bool {
        self.key == other.key && self.object.id == other.object.id && self.scope == other.scope
    }
}

impl PartialEq for Related {
    fn eq(&self, other: &Related) -> bool {
        self.follows(other) && self.quantifier == other.quantifier && self.condition == other.condition
    }
}

impl Hash for Related {
    /// Leaves out the scope, which rarely is the only difference.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.key, self.object.id, self.quantifier).hash(state);
        self.condition.hash(state);
    }
}

impl Condition {
    pub const TRUE: Condition = Condition::All(Vec::new());
    pub const FALSE: Condition = Condition::Any(Vec::new());

    pub fn is_true(&self) -> bool {
        matches!(self, Condition::All(parts) if parts.is_empty())
    }

    pub fn is_false(&self) -> bool {
        matches!(self, Condition::Any(parts) if parts.is_empty())
    }

    /// The conjunction of `parts`.
    pub fn all(parts: Vec<Condition>) -> Condition {
        let mut kept = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Condition::All(inner) => inner.into_iter().for_each(|part| keep(&mut kept, part, true)),
                part => keep(&mut kept, part, true),
            }
        }
        match kept.iter().any(Condition::is_false) {
            true => Condition::FALSE,
            false => alone(kept).unwrap_or_else(Condition::All),
        }
    }

    /// The disjunction of `parts`.
    pub fn any(parts: Vec<Condition>) -> Condition {
        let mut kept = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Condition::Any(inner) => inner.into_iter().for_each(|part| keep(&mut kept, part, false)),
                part => keep(&mut kept, part, false),
            }
        }
        match kept.iter().any(Condition::is_true) {
            true => Condition::TRUE,
            false => alone(kept).unwrap_or_else(Condition::Any),
        }
    }

    /// The condition on the rows of a relation.
    pub fn related(related: Related) -> Condition {
        match related.quantifier {
            Quantifier::One if related.condition.is_true() => Condition::TRUE,
            Quantifier::One | Quantifier::Some if related.condition.is_false() => Condition::FALSE,
            Quantifier::None if related.condition.is_false() => Condition::TRUE,
            Quantifier::One | Quantifier::Some | Quantifier::None => Condition::Related(Box::new(related)),
        }
    }

    /// The exact complement.
    pub fn complement(self) -> Condition {
        match self {
            Condition::Test(predicate) => match predicate.test.opposite() {
                Some(test) => Condition::Test(Predicate { column: predicate.column, test }),
                None => Condition::Not(predicate),
            },
            Condition::Not(predicate) => Condition::Test(predicate),
            Condition::All(parts) => Condition::any(parts.into_iter().map(Condition::complement).collect()),
            Condition::Any(parts) => Condition::all(parts.into_iter().map(Condition::complement).collect()),
            Condition::Related(mut related) => {
                match related.quantifier {
                    Quantifier::One => related.condition = related.condition.complement(),
                    Quantifier::Some => related.quantifier = Quantifier::None,
                    Quantifier::None => related.quantifier = Quantifier::Some,
                }
                Condition::related(*related)
            }
        }
    }

    /// Whether the condition is true for an absent row, whose cells are all null and whose relations lead to no rows.
    pub fn holds_on_nothing(&self) -> bool {
        match self {
            Condition::Test(predicate) => predicate.test.holds_on_null(),
            Condition::Not(predicate) => !predicate.test.holds_on_null(),
            Condition::All(parts) => parts.iter().all(Condition::holds_on_nothing),
            Condition::Any(parts) => parts.iter().any(Condition::holds_on_nothing),
            Condition::Related(related) => match related.quantifier {
                Quantifier::One => related.condition.holds_on_nothing(),
                Quantifier::Some => false,
                Quantifier::None => true,
            },
        }
    }

    /// Whether its test searches through complete texts. The engine's count of steps does not include the length of these texts.
    pub fn reads_texts(&self) -> bool {
        self.predicates().any(|predicate| !predicate.test.contained_texts().is_empty())
            || self.relations().any(|related| related.condition.reads_texts())
    }

    /// The number of values that the condition's tests bind, including those on related rows.
    pub fn values(&self) -> usize {
        let own: usize = self.predicates().map(|predicate| predicate.test.values()).sum();
        own + self.relations().map(|related| related.condition.values()).sum::<usize>()
    }

    /// Adds the objects that the condition's relations lead to.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        for related in self.relations() {
            objects.push(Arc::clone(&related.object));
            related.condition.objects_into(objects);
        }
    }

    /// Adds the indexes of those columns of the row itself that the condition reads: tested columns, and foreign keys that lead
    /// to related rows.
    pub fn columns_into(&self, columns: &mut BTreeSet<usize>) {
        columns.extend(self.predicates().map(|predicate| predicate.column));
        for related in self.relations() {
            if let RelationShape::Forward { column } = related.shape {
                columns.insert(column);
            }
        }
    }

    /// The condition for a row of which only some columns are known. A test of an unknown column counts as false. A condition on
    /// a row counts as false too, if an unknown foreign key leads to that row.
    pub fn decided_by(self, is_known: &impl Fn(usize) -> bool) -> Condition {
        match self {
            // In the normal form, nothing around a test negates it. So a test that counts as false never makes the complete
            // condition true.
            Condition::Test(Predicate { column, .. }) | Condition::Not(Predicate { column, .. }) if !is_known(column) => {
                Condition::FALSE
            }
            Condition::Related(related) if matches!(related.shape, RelationShape::Forward { column } if !is_known(column)) => {
                Condition::FALSE
            }
            Condition::All(parts) => Condition::all(parts.into_iter().map(|part| part.decided_by(is_known)).collect()),
            Condition::Any(parts) => Condition::any(parts.into_iter().map(|part| part.decided_by(is_known)).collect()),
            decided @ (Condition::Test(_) | Condition::Not(_) | Condition::Related(_)) => decided,
        }
    }

    /// The requests that have the same conditions on related rows.
    pub fn audience(&self) -> Audience {
        self.relations().map(|related| related.audience).max().unwrap_or_default()
    }

    /// Whether a condition on related rows is not the same for many callers.
    pub fn is_personal(&self) -> bool {
        self.audience() != Audience::ManyCallers
    }

    /// Splits off the part that is the same for many callers. Returns it with the result that settles the complete condition:
    /// `false` for a part of an AND, `true` for a part of an OR, `None` if the part is the complete condition. Without a common
    /// part, returns `None`.
    pub fn common_part(&self) -> Option<(Condition, Option<bool>)> {
        if !self.is_personal() {
            return Some((self.clone(), None));
        }
        let common = |parts: &[Condition]| parts.iter().filter(|part| !part.is_personal()).cloned().collect::<Vec<Condition>>();
        let (part, decisive) = match self {
            Condition::All(parts) => (Condition::all(common(parts)), false),
            Condition::Any(parts) => (Condition::any(common(parts)), true),
            Condition::Test(_) | Condition::Not(_) | Condition::Related(_) => return None,
        };
        (!part.is_true() && !part.is_false()).then_some((part, Some(decisive)))
    }

    /// The tests of the object's own columns.
    fn predicates(&self) -> Box<dyn Iterator<Item = &Predicate> + '_> {
        match self {
            Condition::Test(predicate) | Condition::Not(predicate) => Box::new(std::iter::once(predicate)),
            Condition::All(parts) | Condition::Any(parts) => Box::new(parts.iter().flat_map(Condition::predicates)),
            Condition::Related(_) => Box::new(std::iter::empty()),
        }
    }

    /// The keys and shapes of the many_to_many relations that the condition follows from the row itself.
    pub fn links(&self) -> impl Iterator<Item = (&str, RelationShape)> {
        let linked = self.relations().filter(|related| matches!(related.shape, RelationShape::Linked { .. }));
        linked.map(|related| (related.key.as_str(), related.shape))
    }

    /// The conditions on relations of the object itself.
    pub(crate) fn relations(&self) -> Box<dyn Iterator<Item = &Related> + '_> {
        match self {
            Condition::Test(_) | Condition::Not(_) => Box::new(std::iter::empty()),
            Condition::All(parts) | Condition::Any(parts) => Box::new(parts.iter().flat_map(Condition::relations)),
            Condition::Related(related) => Box::new(std::iter::once(&**related)),
        }
    }
}

/// Adds a part of an AND (`is_all`) or an OR, unless the part is already there or changes nothing.
fn keep(kept: &mut Vec<Condition>, part: Condition, is_all: bool) {
    let changes_nothing = if is_all { part.is_true() } else { part.is_false() };
    if changes_nothing || kept.contains(&part) {
        return;
    }
    let related = match part {
        // A to-one relation leads to one row, so all conditions on that row become one.
        Condition::Related(related) if related.quantifier == Quantifier::One => related,
        part => return kept.push(part),
    };
    let is_same = |known: &Condition| match known {
        Condition::Related(known) => known.quantifier == Quantifier::One && known.follows(&related),
        _ => false,
    };
    match kept.iter().position(is_same).map(|place| kept.remove(place)) {
        Some(Condition::Related(known)) => {
            let audience = known.audience.max(related.audience);
            let parts = vec![known.condition, related.condition];
            let condition = if is_all { Condition::all(parts) } else { Condition::any(parts) };
            keep(kept, Condition::related(Related { condition, audience, ..*known }), is_all);
        }
        _ => kept.push(Condition::Related(related)),
    }
}

/// The only part. If there is not exactly one, `Err` with all parts.
fn alone(mut parts: Vec<Condition>) -> Result<Condition, Vec<Condition>> {
    match parts.len() {
        1 => parts.pop().ok_or(parts),
        _ => Err(parts),
    }
}

#[cfg(test)]
mod tests;
