//! A block that handles events: it keeps a copy of each record in another object.
//!
//! An event may come twice. So the copy is upserted under the id of its source, and a repeated event changes nothing.

use blockbase_sdk::{Context, Error, Event, RecordChange, block, data, subscription};
use serde::Deserialize;
use serde_json::{Value, json};

/// The `config` of the subscription in `block.json`.
#[derive(Deserialize)]
struct Settings {
    /// The object for the copies: `source` (text, unique) and `copy` (json).
    into: String,
}

#[derive(Deserialize)]
struct Copy {
    id: String,
}

#[subscription]
fn mirror(_context: &Context, event: Event<RecordChange>, settings: Settings) -> Result<(), Error> {
    let Settings { into } = settings;
    let RecordChange { id, after, .. } = event.payload;
    match after {
        Some(record) => {
            data::upsert::<Value>(&into, json!({ "source": id, "copy": record }), &["source"])?;
        }
        None => {
            let filters = json!([{ "field": "source", "value": id }]);
            let copies = data::query::<Copy>(&into, json!({ "filters": filters, "limit": 1 }))?;
            for copy in copies.data {
                data::delete(&into, &copy.id)?;
            }
        }
    }
    Ok(())
}

block!(mirror);
