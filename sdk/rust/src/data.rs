//! Records. Every call is checked against what the manifest asks for; `data` has to stand in its `requires.plugins`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::blockbase::block::data;

/// A page of records.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub pagination: Pagination,
}

/// Where the page lies in the list.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    pub page: u64,
    pub page_size: u64,
    /// `None` where the query said `"count": "none"`.
    pub total_count: Option<u64>,
    pub total_pages: Option<u64>,
    pub has_next_page: bool,
    pub has_previous_page: bool,
}

/// Lists records: `{ search?, filters?: [{ field, operator?, value? }], sort?, page?, pageSize?, limit?, offset?, select?, count? }`.
pub fn query<T: DeserializeOwned>(object: &str, query: impl Serialize) -> Result<Page<T>, Error> {
    Ok(serde_json::from_str(&data::query(object, &serde_json::to_string(&query)?)?)?)
}

/// One record, if the block may see it.
pub fn get<T: DeserializeOwned>(object: &str, id: &str) -> Result<Option<T>, Error> {
    Ok(data::get(object, id, None)?.map(|record| serde_json::from_str(&record)).transpose()?)
}

/// The new record.
pub fn create<T: DeserializeOwned>(object: &str, values: impl Serialize) -> Result<T, Error> {
    Ok(serde_json::from_str(&data::create(object, &serde_json::to_string(&values)?)?)?)
}

/// Several new records, all or none; their ids in order.
pub fn create_many(object: &str, values: impl Serialize) -> Result<Vec<String>, Error> {
    #[derive(serde::Deserialize)]
    struct Created {
        ids: Vec<String>,
    }
    let created: Created = serde_json::from_str(&data::create_many(object, &serde_json::to_string(&values)?)?)?;
    Ok(created.ids)
}

/// The record as it is afterwards. A numeric field takes `{ "$inc": n }` and `{ "$dec": n }`.
pub fn update<T: DeserializeOwned>(object: &str, id: &str, changes: impl Serialize) -> Result<T, Error> {
    Ok(serde_json::from_str(&data::update(object, id, &serde_json::to_string(&changes)?)?)?)
}

/// Whether there was one to delete.
pub fn delete(object: &str, id: &str) -> Result<bool, Error> {
    Ok(data::delete(object, id)?)
}

/// The ids of those that were deleted.
pub fn delete_many(object: &str, ids: &[String]) -> Result<Vec<String>, Error> {
    Ok(data::delete_many(object, ids)?)
}

/// Several writes, all or none: `[{ op, object, id?, values? }]` to their results in order.
pub fn batch(operations: impl Serialize) -> Result<Vec<serde_json::Value>, Error> {
    Ok(serde_json::from_str(&data::batch(&serde_json::to_string(&operations)?)?)?)
}
