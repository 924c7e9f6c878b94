//! The configuration of `persist_event`: the object that takes the events, and the values of its columns.

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
    /// The object that takes the events.
    pub object: String,
    pub(crate) map: BTreeMap<String, String>,
}

fn refused(message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field("config")
}

impl PersistConfig {
    /// # Errors
    /// `invalid_value` if it has another form, or names an unknown token.
    pub(crate) fn read(config: &Value) -> Result<PersistConfig> {
        let config: PersistConfig = strict_from_value(config.clone())
            .map_err(|misfit| refused(format!("`config` is {{ object, map: {{ <column>: <token> }} }}: {misfit}.")))?;
        if config.map.is_empty() {
            return Err(refused("`config.map` is empty: it names at least one column with its token.".to_owned()));
        }
        match config.map.values().find(|token| !TOKENS.contains(&token.as_str())) {
            None => Ok(config),
            Some(token) => Err(refused(format!("There is no token `{token}`. There are {}.", TOKENS.join(", ")))),
        }
    }

    /// Checks that records of the object can be made with it.
    ///
    /// # Errors
    /// `invalid_value`, which names the object or the column.
    pub(crate) fn check(&self, registry: &Registry) -> Result<()> {
        let object = registry.object(&self.object).filter(|object| !object.is_users());
        let object = object.ok_or_else(|| refused(format!("There is no object `{}`.", self.object)))?;
        let names = |column: &str| object.column(column).is_some_and(|column| !column.is_system);
        if let Some(unknown) = self.map.keys().find(|column| !names(column)) {
            return Err(refused(format!("`{}` has no field `{unknown}` that could be written.", self.object)));
        }
        let mut needed = object.columns.iter().filter(|column| column.required && !column.is_system && column.default.is_none());
        match needed.find(|column| !self.map.contains_key(&column.name)) {
            None => Ok(()),
            Some(column) => Err(refused(format!("`{}` needs a value of `{}`, and `map` gives none.", self.object, column.name))),
        }
    }

    /// Whether it sets a column.
    pub(crate) fn fills(&self, column: &str) -> bool {
        self.map.contains_key(column)
    }
}
