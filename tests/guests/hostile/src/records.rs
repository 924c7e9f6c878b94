//! Actions that write records without end, read secrets, and read their configuration twice.

use blockbase_sdk::{Context, Error, JsonSchema, action, config, data, schemars, secrets};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct KeepWriting {
    object: String,
    /// Records of one batch.
    batch: usize,
}

/// Writes one batch after the other, and never ends.
#[action]
pub(crate) fn keep_writing(_context: &Context, input: KeepWriting) -> Result<(), Error> {
    let one = json!({ "op": "create", "object": input.object, "values": { "title": "of a batch" } });
    let operations = vec![one; input.batch];
    loop {
        data::batch(&operations)?;
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Secret {
    name: String,
}

/// Tells how long a secret is, and its first letter, and logs nothing of it.
#[action]
pub(crate) fn secret(_context: &Context, input: Secret) -> Result<Value, Error> {
    let value = secrets::get(&input.name)?;
    Ok(json!({ "length": value.len(), "first": value.chars().next() }))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Between {
    ms: u64,
}

/// Its configuration before a nap and after it.
#[action]
pub(crate) fn two_configs(_context: &Context, input: Between) -> Result<[Value; 2], Error> {
    let before = config::get()?;
    crate::bombs::sleep(input.ms);
    Ok([before, config::get()?])
}
