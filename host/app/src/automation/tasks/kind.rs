//! The kind of a task's work, read from its type and its configuration.

use blockbase_schema::{Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::automation::erasure::Erasure;

pub(super) const BLOCK_ACTION: &str = "block_action";
const ERASE_USER: &str = "erase_user";
/// The types of tasks that users can create. The others come with the service.
pub const MADE: [&str; 2] = [BLOCK_ACTION, ERASE_USER];
/// All types of tasks.
pub(super) const NAMES: [&str; 5] = [ANONYMOUS_CLEANUP, EVENT_RETENTION, AUDIT_RETENTION, BLOCK_ACTION, ERASE_USER];
pub(super) const ANONYMOUS_CLEANUP: &str = "anonymous_cleanup";
const EVENT_RETENTION: &str = "event_retention";
const AUDIT_RETENTION: &str = "audit_retention";
/// The default number of days after which a guest is deleted.
pub(super) const MAX_AGE_DAYS_DEFAULT: u32 = 30;
const MAX_AGE_DAYS_MAX: u32 = 36_500;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Deletes guests who are older than this.
    AnonymousCleanup { max_age_days: u32 },
    /// Deletes settled events older than `SVC_EVENTS_RETENTION_DAYS`.
    EventRetention,
    /// Deletes rows of the audit log older than `SVC_AUDIT_RETENTION_DAYS`.
    AuditRetention,
    /// Calls a block's action.
    BlockAction { block: String, action: String, input: Value },
    /// Erases the data that the service stores about a user.
    EraseUser(Erasure),
}

/// The treatment of the records that an erased user created.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum ErasedRecords {
    Keep,
    Delete,
}

/// For `block_action`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionConfig {
    block: String,
    action: String,
    /// The input of the action. The default is `{}`.
    #[serde(default = "no_input")]
    input: Value,
}

fn no_input() -> Value {
    json!({})
}

/// For `erase_user`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ErasureConfig {
    #[schemars(extend("format" = "uuid"))]
    user_id: String,
    /// `keep`, the default, removes the user's id from records that they made. `delete` deletes records that they created.
    #[serde(default = "keep")]
    records: ErasedRecords,
}

fn keep() -> ErasedRecords {
    ErasedRecords::Keep
}

fn parsed<T: DeserializeOwned>(config: &Value) -> Result<T> {
    let invalid = |why: String| Error::new(Code::InvalidValue, format!("`config`: {why}.")).with_field("config");
    // This check is needed because serde also accepts an array of the members' values.
    match config.is_object() {
        true => T::deserialize(config).map_err(|error| invalid(error.to_string())),
        false => Err(invalid("it must be an object".to_owned())),
    }
}

impl Kind {
    /// # Errors
    /// `invalid_value` if the configuration is not valid for the type.
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
        match kind {
            ANONYMOUS_CLEANUP => {
                let Cleanup { max_age_days } = parsed(config)?;
                // A maximum age of less than a day would delete guests who have just signed in.
                if !(1..=MAX_AGE_DAYS_MAX).contains(&max_age_days) {
                    let message = format!("`config`: `maxAgeDays` must be from 1 to {MAX_AGE_DAYS_MAX}.");
                    return Err(Error::new(Code::InvalidValue, message).with_field("config"));
                }
                Ok(Kind::AnonymousCleanup { max_age_days })
            }
            EVENT_RETENTION => parsed::<Nothing>(config).map(|Nothing {}| Kind::EventRetention),
            AUDIT_RETENTION => parsed::<Nothing>(config).map(|Nothing {}| Kind::AuditRetention),
            BLOCK_ACTION => {
                let ActionConfig { block, action, input } = parsed(config)?;
                Ok(Kind::BlockAction { block, action, input })
            }
            ERASE_USER => {
                let ErasureConfig { user_id, records } = parsed(config)?;
                let invalid = |_| {
                    let message = "`config`: `userId` must be the id of a user, which is a UUID.";
                    Error::new(Code::InvalidValue, message).with_field("config")
                };
                let user_id: uuid::Uuid = user_id.parse().map_err(invalid)?;
                let deletes_records = matches!(records, ErasedRecords::Delete);
                Ok(Kind::EraseUser(Erasure { user_id: user_id.to_string(), deletes_records }))
            }
            other => Err(Error::internal(format!("a task has the unknown type {other:?}"))),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Kind::AnonymousCleanup { .. } => ANONYMOUS_CLEANUP,
            Kind::EventRetention => EVENT_RETENTION,
            Kind::AuditRetention => AUDIT_RETENTION,
            Kind::BlockAction { .. } => BLOCK_ACTION,
            Kind::EraseUser(_) => ERASE_USER,
        }
    }

    pub(super) fn config(&self) -> Value {
        match self {
            Kind::AnonymousCleanup { max_age_days } => json!({ "maxAgeDays": max_age_days }),
            Kind::EventRetention | Kind::AuditRetention => json!({}),
            Kind::BlockAction { block, action, input } => json!({ "block": block, "action": action, "input": input }),
            Kind::EraseUser(Erasure { user_id, deletes_records }) => {
                json!({ "userId": user_id, "records": if *deletes_records { "delete" } else { "keep" } })
            }
        }
    }
}
