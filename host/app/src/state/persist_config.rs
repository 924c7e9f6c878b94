//! The configuration of `persist_event`: the object in which events are stored, and the values of its columns.

use std::collections::BTreeMap;

use blockbase_schema::json::strict_from_value;
use blockbase_schema::{Code, Error, Registry, Result};
use serde::Deserialize;
use serde_json::Value;

/// The handler's name.
pub(crate) const PERSIST_EVENT: &str = "persist_event";

/// The values that a column can get.
const TOKENS: [&str; 12] = [
    "event.id",
    "event.topic",
    "event.occurredAt",
    "payload.object",
    "payload.id",
    "payload.op",
    "payload.before",
    "payload.after",
    "payload.diff",
    "payload.record",
    "payload.actor",
    "payload.actorId",
];

/// `{ object, map: { <column>: <token> } }`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersistConfig {
    /// The object in which the events are stored.
    pub object: String,
    pub(crate) map: BTreeMap<String, String>,
}

fn refused(message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field("config")
}

impl PersistConfig {
    /// # Errors
    /// `invalid_value` if the configuration has another form, or names an unknown token.
    pub(crate) fn read(config: &Value) -> Result<PersistConfig> {
        let config: PersistConfig = strict_from_value(config.clone()).map_err(|misfit| {
            refused(format!("`config` must have the form {{ object, map: {{ <column>: <token> }} }}: {misfit}."))
        })?;
        if config.map.is_empty() {
            return Err(refused("`config.map` is empty. It must name at least one column with a token.".to_owned()));
        }
        match config.map.values().find(|token| !TOKENS.contains(&token.as_str())) {
            None => Ok(config),
            Some(token) => Err(refused(format!("There is no token `{token}`. The tokens are {}.", TOKENS.join(", ")))),
        }
    }

    /// Checks that records of the object can be created with this configuration.
    ///
    /// # Errors
    /// `invalid_value`, which names the object or the column.
    pub(crate) fn check(&self, registry: &Registry) -> Result<()> {
        let object = registry.object(&self.object).filter(|object| !object.is_users());
        let object = object.ok_or_else(|| refused(format!("There is no object `{}`.", self.object)))?;
        let names = |column: &str| object.column(column).is_some_and(|column| !column.is_system);
        if let Some(unknown) = self.map.keys().find(|column| !names(column)) {
            return Err(refused(format!("`{}` has no field `{unknown}` that can be written.", self.object)));
        }
        let mut needed = object.columns.iter().filter(|column| column.required && !column.is_system && column.default.is_none());
        match needed.find(|column| !self.map.contains_key(&column.name)) {
            None => Ok(()),
            Some(column) => {
                Err(refused(format!("`{}` needs a value for `{}`, but `map` does not set it.", self.object, column.name)))
            }
        }
    }

    /// The names of the columns that the configuration sets.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.map.keys().map(String::as_str)
    }

    /// Whether the configuration sets a column.
    pub(crate) fn fills(&self, column: &str) -> bool {
        self.map.contains_key(column)
    }
}
