//! A block that puts labels on tasks. A label is created when it is first used, and its uses are counted.

use blockbase_sdk::{Context, Error, JsonSchema, action, block, data, schemars};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Labels {
    /// The task's id.
    task: String,
    /// Names of labels.
    #[schemars(length(max = 20))]
    labels: Vec<String>,
}

#[derive(Deserialize)]
struct Label {
    id: String,
}

#[derive(Serialize)]
struct Labelled {
    /// The task with its labels.
    task: Value,
    /// Links that were added or removed.
    changed: u32,
    /// Uses of all labels.
    uses: Value,
}

/// The ids of the labels. New labels are created.
fn ids(labels: &[String]) -> Result<Vec<String>, Error> {
    labels.iter().map(|name| Ok(data::upsert::<Label>("label", json!({ "name": name }), &["name"])?.data.id)).collect()
}

fn answer(task: &str, changed: u32) -> Result<Labelled, Error> {
    let task = data::get_expanded("task", task, "labels")?.ok_or_else(|| Error::not_found("task"))?;
    let uses = data::aggregate("label", json!({ "fn": "sum", "field": "uses" }))?.value;
    Ok(Labelled { task, changed, uses })
}

/// Puts labels on a task.
#[action]
fn add(_context: &Context, input: Labels) -> Result<Labelled, Error> {
    let ids = ids(&input.labels)?;
    let added = data::link("task", &input.task, "labels", &ids)?;
    for id in ids {
        data::update::<Value>("label", &id, json!({ "uses": { "$inc": 1 } }))?;
    }
    answer(&input.task, added)
}

/// Takes labels off a task.
#[action]
fn remove(_context: &Context, input: Labels) -> Result<Labelled, Error> {
    let removed = data::unlink("task", &input.task, "labels", &ids(&input.labels)?)?;
    answer(&input.task, removed)
}

block!(add, remove);
