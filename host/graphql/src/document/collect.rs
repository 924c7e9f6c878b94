//! Collects the fields to execute: expands fragments, drops fields that `@skip` and `@include` leave out, and merges fields with
//! the same key.

use std::collections::HashMap;

use async_graphql::parser::types::{ExecutableDocument, Field, Selection, SelectionSet};
use async_graphql::{Pos, Positioned};

use crate::document::coerce::Variables;

/// A selected field. Each key of the answer has one.
pub(crate) struct Selected<'d> {
    pub(crate) key: &'d str,
    pub(crate) field: &'d Field,
    pub(crate) position: Pos,
    /// Its selection sets, from all places that select the field.
    pub(crate) sets: Vec<&'d SelectionSet>,
}

/// The context that is needed to read a selection.
#[derive(Clone, Copy)]
pub(crate) struct Context<'d> {
    pub(crate) document: &'d ExecutableDocument,
    pub(crate) variables: &'d Variables,
}

impl<'d> Context<'d> {
    /// The fields that `sets` select of a type. Validation has checked that fields with the same key are the same field.
    pub(crate) fn collect(&self, sets: &[&'d SelectionSet], type_name: &str) -> Vec<Selected<'d>> {
        let mut fields = Vec::new();
        for set in sets {
            self.collect_into(set, type_name, &mut fields);
        }
        fields
    }

    fn collect_into(&self, set: &'d SelectionSet, type_name: &str, fields: &mut Vec<Selected<'d>>) {
        for item in &set.items {
            if !self.is_included(&item.node) {
                continue;
            }
            match &item.node {
                Selection::Field(field) => add(field, fields),
                Selection::InlineFragment(fragment) => {
                    let fits = fragment.node.type_condition.as_ref().is_none_or(|on| on.node.on.node.as_str() == type_name);
                    if fits {
                        self.collect_into(&fragment.node.selection_set.node, type_name, fields);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let Some(fragment) = self.document.fragments.get(&spread.node.fragment_name.node) else { continue };
                    if fragment.node.type_condition.node.on.node.as_str() == type_name {
                        self.collect_into(&fragment.node.selection_set.node, type_name, fields);
                    }
                }
            }
        }
    }

    fn is_included(&self, selection: &Selection) -> bool {
        selection.directives().iter().all(|directive| {
            let condition = || directive.node.get_argument("if").is_some_and(|value| self.variables.is_true(&value.node));
            match directive.node.name.node.as_str() {
                "skip" => !condition(),
                "include" => condition(),
                _ => true,
            }
        })
    }
}

/// Finds the first field whose key in the answer is also the key of a different field.
///
/// async-graphql compares only the fields of one selection. This check also compares fields that come together when selections
/// are merged. Every type is concrete, so all fragments that apply are merged. Validation has refused all other fragments.
pub(crate) fn conflict<'d>(document: &'d ExecutableDocument, sets: &[&'d SelectionSet]) -> Option<&'d Positioned<Field>> {
    let mut fields: HashMap<&str, Vec<&'d Positioned<Field>>> = HashMap::new();
    for set in sets {
        gather(document, set, &mut fields);
    }
    fields.values().find_map(|same| {
        let (first, others) = same.split_first()?;
        let is_other = |field: &&&Positioned<Field>| {
            field.node.name.node != first.node.name.node || !same_arguments(&field.node, &first.node)
        };
        let sets: Vec<&SelectionSet> = same.iter().map(|field| &field.node.selection_set.node).collect();
        others.iter().find(is_other).copied().or_else(|| conflict(document, &sets))
    })
}

fn same_arguments(one: &Field, two: &Field) -> bool {
    let has = |(name, value): &(Positioned<async_graphql::Name>, Positioned<async_graphql_value::Value>)| {
        two.get_argument(&name.node).is_some_and(|other| other.node == value.node)
    };
    one.arguments.len() == two.arguments.len() && one.arguments.iter().all(has)
}

fn gather<'d>(
    document: &'d ExecutableDocument,
    set: &'d SelectionSet,
    fields: &mut HashMap<&'d str, Vec<&'d Positioned<Field>>>,
) {
    for item in &set.items {
        match &item.node {
            Selection::Field(field) => {
                fields.entry(field.node.response_key().node.as_str()).or_default().push(field);
            }
            Selection::InlineFragment(fragment) => gather(document, &fragment.node.selection_set.node, fields),
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) {
                    gather(document, &fragment.node.selection_set.node, fields);
                }
            }
        }
    }
}

fn add<'d>(field: &'d Positioned<Field>, fields: &mut Vec<Selected<'d>>) {
    let key = field.node.response_key().node.as_str();
    match fields.iter_mut().find(|selected| selected.key == key) {
        Some(selected) => selected.sets.push(&field.node.selection_set.node),
        None => {
            fields.push(Selected { key, field: &field.node, position: field.pos, sets: vec![&field.node.selection_set.node] })
        }
    }
}
