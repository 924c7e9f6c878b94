//! The settings of the server, as they are shown, without secrets.

use schemars::JsonSchema;
use serde::Serialize;

// The source of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SettingSource {
    Default,
    Environment,
    // A file that the server reads or creates.
    File,
}

/// A setting of the server, and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcSetting", deny_unknown_fields)]
pub struct ListedSetting {
    #[schemars(example = &"SVC_LISTEN")]
    pub name: &'static str,
    /// The value in use. Null for a secret, and if there is no value. Addresses are shown without the parts that may be secret.
    pub value: Option<String>,
    pub secret: bool,
    /// Whether the value was set, or comes from a file.
    pub is_set: bool,
    pub source: SettingSource,
    // The description is one line. If the default depends on something else, the line ends with the default in brackets.
    pub description: String,
}
