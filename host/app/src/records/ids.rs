//! The number and the ids of the records that a bulk call names.

use std::collections::HashSet;

use blockbase_schema::{Code, Error, Result};
use uuid::Uuid;

use crate::App;

impl App {
    /// Refuses more records than one call may write (`SVC_MAX_BULK`).
    pub fn check_bulk_size(&self, records: usize) -> Result<()> {
        check_size(records, self.settings.bulk_records_max)
    }
}

pub(crate) fn check_size(records: usize, most: usize) -> Result<()> {
    match records <= most {
        true => Ok(()),
        false => Err(Error::invalid_request(format!("One call writes {most} records at most; send several calls."))),
    }
}

/// The ids in a body, each once.
///
/// # Errors
/// `invalid_value` for a text that is not a UUID.
pub(crate) fn parse_ids(texts: &[String]) -> Result<Vec<Uuid>> {
    let mut seen = HashSet::with_capacity(texts.len());
    let mut ids = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let id = text.parse().map_err(|_| {
            Error::new(Code::InvalidValue, format!("`ids` at index {index}: {text:?} is not a UUID.")).with_field("ids")
        })?;
        if seen.insert(id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
