//! Placeholders for the ids of new rows, which only the response to a write shows.

use serde_json::{Map, Value};

use super::State;
use super::writes::Emitted;

/// The beginning of each placeholder.
const PLACEHOLDER: &str = "ffffffff-ffff-4fff-8fff-";

/// The id of a new row before the response has its id. `number` counts the rows of the call, or the operations of a batch.
pub(super) fn placeholder(number: usize) -> String {
    format!("{PLACEHOLDER}{number:012}")
}

/// The number of a placeholder. `None` for any other text.
pub(super) fn number_of_placeholder(text: &str) -> Option<usize> {
    text.strip_prefix(PLACEHOLDER)?.parse().ok()
}

/// Replaces a placeholder with the id of the new row.
pub(super) fn rename(id: &mut String, names: &[(String, String)]) {
    if let Some((_, name)) = names.iter().find(|(old, _)| old == id) {
        id.clone_from(name);
    }
}

/// Replaces placeholders in references.
pub(super) fn rename_values(values: &mut Map<String, Value>, names: &[(String, String)]) {
    for value in values.values_mut() {
        if let Value::String(text) = value {
            rename(text, names);
        }
    }
}

impl State {
    /// Replaces placeholders with the ids of new rows.
    pub(super) fn rename(&mut self, names: &[(String, String)]) {
        for row in self.world.rows.iter_mut().flatten() {
            rename(&mut row.id, names);
            rename_values(&mut row.values, names);
        }
        let links = std::mem::take(&mut self.world.links).into_iter();
        let renamed = links.map(|(place, mut source, mut target)| {
            rename(&mut source, names);
            rename(&mut target, names);
            (place, source, target)
        });
        self.world.links = renamed.collect();
        let owners = std::mem::take(&mut self.owners).into_iter();
        let renamed = owners.map(|(mut id, owner)| {
            rename(&mut id, names);
            (id, owner)
        });
        self.owners = renamed.collect();
    }
}

impl Emitted {
    /// Replaces placeholders with the ids of new rows.
    pub(super) fn rename(&mut self, names: &[(String, String)]) {
        rename(&mut self.id, names);
        if let Some((_, targets)) = &mut self.links {
            let renamed = std::mem::take(targets).into_iter().map(|mut id| {
                rename(&mut id, names);
                id
            });
            *targets = renamed.collect();
        }
    }
}
