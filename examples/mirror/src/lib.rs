//! A block that handles events: it keeps a copy of each record in another object.
//!
//! An event may come twice, so the copy is upserted under the id of its source: whatever comes again changes nothing.

use blockbase_sdk::{Context, Error, Event, block, data};
use serde::Deserialize;
use serde_json::{Value, json};

/// The subscription's own configuration.
#[derive(Deserialize)]
struct Settings {
    /// The object that holds the copies: `source` (text, unique) and `copy` (json).
    into: String,
}

fn mirror(_context: &Context, event: Event, settings: Value) -> Result<(), Error> {
    let Settings { into } = serde_json::from_value(settings)?;
    let payload: Value = serde_json::from_str(&event.payload)?;
    let source = &payload["id"];
    match &payload["after"] {
        Value::Null => {
            let filters = json!([{ "field": "source", "value": source }]);
            let copies = data::query::<Value>(&into, json!({ "filters": filters, "limit": 1 }))?;
            for copy in copies.data {
                data::delete(&into, copy["id"].as_str().unwrap_or_default())?;
            }
        }
        record => {
            data::upsert::<Value>(&into, json!({ "source": source, "copy": record }), &["source"])?;
        }
    }
    Ok(())
}

block! { subscriptions: { mirror } }
