//! Records. Every call is checked against `permissions.data` of `block.json`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::blockbase::block::data;

/// A page of records.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Page<T> {
    /// The records of the page.
    pub data: Vec<T>,
    /// The position of the page in the list.
    pub pagination: Pagination,
}

/// The position of a page in the list.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// The number of the page, from 1. `None` if the query has `after` or `before`.
    #[serde(default)]
    pub page: Option<u64>,
    /// The maximum number of records on a page.
    pub page_size: u64,
    /// `None` if the query has `"count": "none"`, which is the default with `after` and `before`.
    pub total_count: Option<u64>,
    /// `None` like `total_count`, and if the query has `after` or `before`.
    #[serde(default)]
    pub total_pages: Option<u64>,
    /// Whether there is a page after this one.
    pub has_next_page: bool,
    /// Whether there is a page before this one.
    pub has_previous_page: bool,
    /// The cursor of the first record, which is `before` of the page in front. `None` without `after` and `before`.
    #[serde(default)]
    pub start_cursor: Option<String>,
    /// The cursor of the last record, which is `after` of the next page. `None` without `after` and `before`.
    #[serde(default)]
    pub end_cursor: Option<String>,
}

/// Lists records: `{ search?, filters?: [{ field, operator?, value? }], where?, sort?, page?, pageSize?, limit?, offset?, after?,
/// before?, select?, expand?, count? }`. `where` is a condition, with and, or, not and relations. `after` and `before` are cursors,
/// instead of `page` and `offset`. `"after": ""` reads the first page.
pub fn query<T: DeserializeOwned>(object: &str, query: impl Serialize) -> Result<Page<T>, Error> {
    Ok(serde_json::from_str(&data::query(object, &serde_json::to_string(&query)?).map_err(Error::of_host)?)?)
}

/// One record, if the block may see it.
pub fn get<T: DeserializeOwned>(object: &str, id: &str) -> Result<Option<T>, Error> {
    Ok(data::get(object, id, None).map_err(Error::of_host)?.map(|record| serde_json::from_str(&record)).transpose()?)
}

/// One record with its related records. `expand` has relation keys separated by commas, as in a list.
pub fn get_expanded<T: DeserializeOwned>(object: &str, id: &str, expand: &str) -> Result<Option<T>, Error> {
    let options = serde_json::json!({ "expand": expand }).to_string();
    Ok(data::get(object, id, Some(&options)).map_err(Error::of_host)?.map(|record| serde_json::from_str(&record)).transpose()?)
}

/// The result of an aggregate without groups.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aggregate {
    /// Null if no record matches. Digits beyond 2^53 need `serde_json`'s `arbitrary_precision`.
    pub value: serde_json::Value,
    /// The number of matching records.
    pub filtered_count: u64,
}

/// Computes `{ fn: "count" | "sum" | "avg" | "min" | "max", field?, search?, filters?, where? }` over the records that a list would
/// count. [`groups`] computes several functions.
pub fn aggregate(object: &str, query: impl Serialize) -> Result<Aggregate, Error> {
    Ok(serde_json::from_str(&data::aggregate(object, &serde_json::to_string(&query)?).map_err(Error::of_host)?)?)
}

/// A group of records, with the results of the functions.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Group {
    /// The values of the fields of `groupBy`, by their texts: `status`, `created_at:month`.
    pub group: serde_json::Map<String, serde_json::Value>,
    /// The results, by their keys: `count`, `sum_amount`.
    #[serde(flatten)]
    pub values: serde_json::Map<String, serde_json::Value>,
}

/// Computes several functions for groups of records: `{ functions: ["count", "sum:amount"], groupBy?: ["status", "created_at:month"],
/// having?, tz?, search?, filters?, where?, sort?, page?, pageSize?, limit?, offset?, count? }`. `having` is a condition on the groups.
///
/// Numbers of more than 64 bits become doubles.
pub fn groups(object: &str, query: impl Serialize) -> Result<Page<Group>, Error> {
    Ok(serde_json::from_str(&data::aggregate(object, &serde_json::to_string(&query)?).map_err(Error::of_host)?)?)
}

/// Creates a record and returns it.
pub fn create<T: DeserializeOwned>(object: &str, values: impl Serialize) -> Result<T, Error> {
    Ok(serde_json::from_str(&data::create(object, &serde_json::to_string(&values)?).map_err(Error::of_host)?)?)
}

/// Creates several records. Either all or none of them are created. Returns their ids in order.
pub fn create_many(object: &str, values: impl Serialize) -> Result<Vec<String>, Error> {
    #[derive(serde::Deserialize)]
    struct Created {
        ids: Vec<String>,
    }
    let created: Created =
        serde_json::from_str(&data::create_many(object, &serde_json::to_string(&values)?).map_err(Error::of_host)?)?;
    Ok(created.ids)
}

/// Changes a record and returns it. A numeric field also accepts `{ "$inc": n }` and `{ "$dec": n }`.
pub fn update<T: DeserializeOwned>(object: &str, id: &str, changes: impl Serialize) -> Result<T, Error> {
    Ok(serde_json::from_str(&data::update(object, id, &serde_json::to_string(&changes)?).map_err(Error::of_host)?)?)
}

/// The result of an upsert.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Upserted<T> {
    /// Whether the record is new.
    pub created: bool,
    /// The record as it is now.
    pub data: T,
}

/// Inserts a record, or updates the record with the same values in the unique columns `on_conflict`.
pub fn upsert<T: DeserializeOwned>(object: &str, values: impl Serialize, on_conflict: &[&str]) -> Result<Upserted<T>, Error> {
    let target: Vec<String> = on_conflict.iter().map(|name| (*name).to_owned()).collect();
    Ok(serde_json::from_str(&data::upsert(object, &serde_json::to_string(&values)?, &target).map_err(Error::of_host)?)?)
}

/// Links a record with other records, by the key of a many_to_many relation. Returns the number of new links.
pub fn link(object: &str, id: &str, relation: &str, ids: &[String]) -> Result<u32, Error> {
    data::link(object, id, relation, ids).map_err(Error::of_host)
}

/// Removes links. Returns the number of removed links.
pub fn unlink(object: &str, id: &str, relation: &str, ids: &[String]) -> Result<u32, Error> {
    data::unlink(object, id, relation, ids).map_err(Error::of_host)
}

/// Deletes a record. Returns whether it existed.
pub fn delete(object: &str, id: &str) -> Result<bool, Error> {
    data::delete(object, id).map_err(Error::of_host)
}

/// Deletes records. Returns the ids of the deleted ones.
pub fn delete_many(object: &str, ids: &[String]) -> Result<Vec<String>, Error> {
    data::delete_many(object, ids).map_err(Error::of_host)
}

/// Makes several writes. Either all or none of them take effect. The form is `[{ op: "create" | "update" | "upsert" | "delete" |
/// "link" | "unlink", object, id?, values?, onConflict?, relation?, ids? }]`. Instead of an id or a value, [`reference`] takes a
/// field of an earlier result.
///
/// Returns the results in order: a record, `{ created, data }` for an upsert, the number of links, `true` for a deleted record,
/// null for a missing one.
pub fn batch(operations: impl Serialize) -> Result<Vec<serde_json::Value>, Error> {
    Ok(serde_json::from_str(&data::batch(&serde_json::to_string(&operations)?).map_err(Error::of_host)?)?)
}

/// A field of the result of an earlier operation of the same [`batch`]: `reference(0, "id")`.
pub fn reference(operation: usize, field: &str) -> serde_json::Value {
    serde_json::json!({ "$ref": format!("{operation}.{field}") })
}
