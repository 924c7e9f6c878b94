//! The limits of a document. They are checked with expanded fragments, as the document would be executed.

use std::collections::{HashMap, HashSet};

use async_graphql::Positioned;
use async_graphql::parser::types::{ExecutableDocument, Field, FragmentDefinition, Selection, SelectionSet};
use async_graphql::{Name, Pos};

use crate::error::GraphqlError;

/// The maximum length of a document's text, in bytes.
pub(crate) const QUERY_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of levels of fields. Introspection's fields do not count.
const LEVELS_MAX: usize = 12;
/// The maximum number of root fields in an operation.
const ROOT_FIELDS_MAX: usize = 100;
/// The maximum number of fields in an operation.
const FIELDS_MAX: usize = 1000;
/// The maximum number of directives in an operation.
const DIRECTIVES_MAX: usize = 500;
/// The maximum number of levels of selection sets, with fragments expanded.
const NESTED_MAX: usize = 100;
/// The maximum number of selections in all operations of a document together. A fragment's selections count at each spread.
const SELECTIONS_MAX: usize = 10_000;
/// The maximum number of operations in one document.
const OPERATIONS_MAX: usize = 50;
/// The maximum number of nested lists in introspection. Each level multiplies the size of the answer.
const INTROSPECTED_LISTS_MAX: usize = 3;
/// The lists of introspection that lead to further types.
const INTROSPECTED_LISTS: [&str; 4] = ["fields", "interfaces", "possibleTypes", "inputFields"];

/// Checks every operation of a document.
///
/// # Errors
/// The first limit that an operation exceeds.
pub(crate) fn check(document: &ExecutableDocument) -> Result<(), GraphqlError> {
    if document.operations.iter().count() > OPERATIONS_MAX {
        return Err(refuse(format!("A document can have at most {OPERATIONS_MAX} operations."), Pos::default()));
    }
    let mut counter = Counter::of(&document.fragments);
    for (_, operation) in document.operations.iter() {
        counter.root_fields = 0;
        counter.fields = 0;
        counter.directives = operation.node.directives.len();
        counter.selection_set(&operation.node.selection_set, Place { level: 1, nested: 1, introspected: None })?;
    }
    match document.fragments.iter().find(|(name, _)| !counter.reached.contains(name.as_str())) {
        Some((name, fragment)) => Err(refuse(format!("No operation uses the fragment `{name}`."), fragment.pos)),
        None => Ok(()),
    }
}

fn is_introspection(field: &Field) -> bool {
    matches!(field.name.node.as_str(), "__schema" | "__type")
}

#[derive(Clone, Copy)]
struct Place {
    level: usize,
    nested: usize,
    /// The number of lists on the path from `__schema` or `__type`. `None` outside of introspection.
    introspected: Option<usize>,
}

struct Counter<'d> {
    fragments: &'d HashMap<Name, Positioned<FragmentDefinition>>,
    /// The fragments that the operation uses.
    reached: HashSet<&'d str>,
    /// The fragments that are being expanded. Validation refuses a fragment that contains itself.
    open: Vec<&'d str>,
    root_fields: usize,
    fields: usize,
    directives: usize,
    selections: usize,
}

impl<'d> Counter<'d> {
    fn of(fragments: &'d HashMap<Name, Positioned<FragmentDefinition>>) -> Counter<'d> {
        Counter { fragments, reached: HashSet::new(), open: Vec::new(), root_fields: 0, fields: 0, directives: 0, selections: 0 }
    }

    fn selection_set(&mut self, set: &'d Positioned<SelectionSet>, place: Place) -> Result<(), GraphqlError> {
        let inner = Place { nested: place.nested + 1, ..place };
        if place.nested > NESTED_MAX {
            return Err(refuse(format!("Selections can nest at most {NESTED_MAX} levels deep."), set.pos));
        }
        for item in &set.node.items {
            self.selections += 1;
            if self.selections > SELECTIONS_MAX {
                let message = format!("A document can have at most {SELECTIONS_MAX} selections, with its fragments expanded.");
                return Err(refuse(message, item.pos));
            }
            self.directives += item.node.directives().len();
            if self.directives > DIRECTIVES_MAX {
                return Err(refuse(format!("An operation can have at most {DIRECTIVES_MAX} directives."), item.pos));
            }
            match &item.node {
                Selection::Field(field) => self.field(field, inner)?,
                Selection::InlineFragment(fragment) => self.selection_set(&fragment.node.selection_set, inner)?,
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    let Some((name, fragment)) = self.fragments.get_key_value(name) else { continue };
                    self.reached.insert(name);
                    if self.open.contains(&name.as_str()) {
                        continue;
                    }
                    self.open.push(name);
                    self.selection_set(&fragment.node.selection_set, inner)?;
                    self.open.pop();
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &'d Positioned<Field>, place: Place) -> Result<(), GraphqlError> {
        self.fields += 1;
        if self.fields > FIELDS_MAX {
            let message = format!("An operation can have at most {FIELDS_MAX} fields, with its fragments expanded.");
            return Err(refuse(message, field.pos));
        }
        if place.level == 1 {
            self.root_fields += 1;
            if self.root_fields > ROOT_FIELDS_MAX {
                return Err(refuse(format!("An operation can have at most {ROOT_FIELDS_MAX} root fields."), field.pos));
            }
        }
        let name = field.node.name.node.as_str();
        let introspected = match place.introspected {
            Some(lists) => Some(lists + usize::from(INTROSPECTED_LISTS.contains(&name))),
            None => (place.level == 1 && is_introspection(&field.node)).then_some(0),
        };
        // An alias would return the same field once more.
        if introspected.is_some() && place.introspected.is_some() && field.node.alias.is_some() {
            return Err(refuse("Introspection allows no aliases below its root.", field.pos));
        }
        if introspected.is_some_and(|lists| lists > INTROSPECTED_LISTS_MAX) {
            return Err(refuse("The introspection nests too deep.", field.pos));
        }
        if introspected.is_none() && place.level > LEVELS_MAX {
            return Err(refuse(format!("A query can have at most {LEVELS_MAX} levels of fields. This one has more."), field.pos));
        }
        self.selection_set(&field.node.selection_set, Place { level: place.level + 1, introspected, ..place })
    }
}

fn refuse(message: impl Into<String>, position: Pos) -> GraphqlError {
    GraphqlError::invalid(message, vec![position])
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn outcome(query: &str) -> Result<(), String> {
        let document = parse_query(query).map_err(|error| error.to_string())?;
        check(&document).map_err(|error| error.error.message)
    }

    fn nested(levels: usize) -> String {
        format!("{}a{}", "{a".repeat(levels - 1) + "{", "}".repeat(levels))
    }

    #[test]
    fn levels_count_whatever_they_are_made_of() {
        assert_eq!(outcome(&nested(12)), Ok(()));
        assert!(outcome(&nested(13)).is_err());
        // There are seven levels in a fragment, below six others.
        let deep = format!("query {}...F{} fragment F on X {}", "{a".repeat(6) + "{", "}".repeat(7), nested(7));
        assert!(outcome(&deep).is_err(), "{deep}");
        assert_eq!(
            outcome("{__schema{types{fields{type{ofType{ofType{ofType{ofType{ofType{ofType{ofType{name}}}}}}}}}}}}"),
            Ok(())
        );
        assert!(outcome("{__schema{types{fields{type{fields{type{fields{type{fields{name}}}}}}}}}}").is_err());
    }

    #[test]
    fn floods_are_refused_before_they_cost() {
        let bomb: String = (0..40).map(|number| format!("fragment F{number} on X{{...F{0} ...F{0}}}", number + 1)).collect();
        let bomb = format!("{{...F0}} {bomb} fragment F40 on X{{a b c d e}}");
        assert!(outcome(&bomb).is_err());
        let aliases: String = (0..101).map(|number| format!("a{number}:a ")).collect();
        assert!(outcome(&format!("{{{aliases}}}")).is_err());
        let fields: String = (0..1001).map(|number| format!("a{number}:a ")).collect();
        assert!(outcome(&format!("{{x{{{fields}}}}}")).is_err());
        assert!(outcome(&format!("{{a {}}}", "@skip(if:false)".repeat(501))).is_err());
        assert!(outcome("{a} fragment F on X{a}").is_err());
        assert!(outcome("{__schema{types{a:name b:name}}}").is_err());
        let operations: String = (0..51).map(|number| format!("query Q{number}{{a}} ")).collect();
        assert!(outcome(&operations).is_err());
        assert_eq!(outcome("{...F} fragment F on X{a ...G} fragment G on X{...F}"), Ok(()));
        // The parser itself allows 64 levels of braces. With fragments, a document can have more.
        let chain: String = (0..101).map(|number| format!(" fragment F{number} on X{{...F{}}}", number + 1)).collect();
        let chain = format!("{{...F0}}{chain} fragment F101 on X{{a}}");
        assert_eq!(outcome(&chain), Err(format!("Selections can nest at most {NESTED_MAX} levels deep.")));
    }
}
