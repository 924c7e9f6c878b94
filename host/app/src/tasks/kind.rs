//! What a task does, read from its type and its configuration.

use blockbase_schema::{Code, Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) const BLOCK_ACTION: &str = "block_action";
const ANONYMOUS_CLEANUP: &str = "anonymous_cleanup";
const EVENT_RETENTION: &str = "event_retention";
/// Days after which a guest is deleted.
pub(super) const MAX_AGE_DAYS_DEFAULT: u32 = 30;
const MAX_AGE_DAYS_MAX: u32 = 36_500;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Deletes guests who are older.
    AnonymousCleanup { max_age_days: u32 },
    /// Deletes settled events older than `SVC_EVENTS_RETENTION_DAYS`.
    EventRetention,
    /// Calls a block's action.
    BlockAction { block: String, action: String, input: Value },
}

fn parsed<T: DeserializeOwned>(config: &Value) -> Result<T> {
    let invalid = |why: String| Error::new(Code::InvalidValue, format!("`config`: {why}.")).with_field("config");
    // serde would take an array of the members' values too.
    match config.is_object() {
        true => T::deserialize(config).map_err(|error| invalid(error.to_string())),
        false => Err(invalid("it is an object".to_owned())),
    }
}

impl Kind {
    /// # Errors
    /// `invalid_value` for a configuration that does not fit.
    pub(super) fn read(kind: &str, config: &Value) -> Result<Kind> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct Cleanup {
            #[serde(default = "default_age")]
            max_age_days: u32,
        }
        fn default_age() -> u32 {
            MAX_AGE_DAYS_DEFAULT
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Call {
            block: String,
            action: String,
            #[serde(default = "no_input")]
            input: Value,
        }
        fn no_input() -> Value {
            json!({})
        }
        match kind {
            ANONYMOUS_CLEANUP => {
                let Cleanup { max_age_days } = parsed(config)?;
                if max_age_days > MAX_AGE_DAYS_MAX {
                    let message = format!("`config`: `maxAgeDays` is {MAX_AGE_DAYS_MAX} at most.");
                    return Err(Error::new(Code::InvalidValue, message).with_field("config"));
                }
                Ok(Kind::AnonymousCleanup { max_age_days })
            }
            EVENT_RETENTION => parsed::<Nothing>(config).map(|Nothing {}| Kind::EventRetention),
            BLOCK_ACTION => {
                let Call { block, action, input } = parsed(config)?;
                Ok(Kind::BlockAction { block, action, input })
            }
            other => Err(Error::internal(format!("a task of the unknown type {other:?}"))),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Kind::AnonymousCleanup { .. } => ANONYMOUS_CLEANUP,
            Kind::EventRetention => EVENT_RETENTION,
            Kind::BlockAction { .. } => BLOCK_ACTION,
        }
    }

    pub(super) fn config(&self) -> Value {
        match self {
            Kind::AnonymousCleanup { max_age_days } => json!({ "maxAgeDays": max_age_days }),
            Kind::EventRetention => json!({}),
            Kind::BlockAction { block, action, input } => json!({ "block": block, "action": action, "input": input }),
        }
    }
}
