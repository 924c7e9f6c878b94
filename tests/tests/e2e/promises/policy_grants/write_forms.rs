//! Writes as requests of REST and as inputs of a block.

use serde_json::{Map, Value, json};

use super::Got;
use super::batches::{as_json, smaller};
use super::verbs::{Chosen, Verb, Write};

impl Write {
    /// The method, the path and the body for REST.
    pub(super) fn rest(&self, object: &str) -> (&'static str, String, Option<Value>) {
        let path = format!("/api/v1/data/{object}");
        let many = |chosen: &Chosen| {
            let (name, value) = chosen.member();
            json!({ name: value })
        };
        let bulk = format!("{path}/bulk{}", if self.is_dry { "?dryRun=true" } else { "" });
        match &self.verb {
            Verb::Create(values) => ("POST", path, Some(json!(values))),
            Verb::CreateMany(rows) => ("POST", bulk, Some(json!({ "data": rows }))),
            Verb::Update(id, values) => ("PATCH", format!("{path}/{id}"), Some(json!(values))),
            Verb::Upsert(target, values) => ("POST", format!("{path}?on_conflict={target}"), Some(json!(values))),
            Verb::Delete(id) => ("DELETE", format!("{path}/{id}"), None),
            Verb::UpdateMany(chosen, values) => {
                let mut body = many(chosen);
                body["values"] = json!(values);
                ("PATCH", bulk, Some(body))
            }
            Verb::DeleteMany(chosen) => ("DELETE", bulk, Some(many(chosen))),
            Verb::Link(id, key, ids, is_removal) => {
                let method = if *is_removal { "DELETE" } else { "POST" };
                (method, format!("{path}/{id}/links/{key}"), Some(json!({ "ids": ids })))
            }
            Verb::Batch(operations) => ("POST", "/api/v1/batch".to_owned(), Some(json!({ "operations": as_json(operations) }))),
        }
    }

    /// The input of the block `parity`, which runs the write with the data interface. `None` if the interface does not have it.
    pub(super) fn block(&self, object: &str) -> Option<Value> {
        if self.is_dry {
            return None;
        }
        let text = |values: &Map<String, Value>| json!(values).to_string();
        Some(match &self.verb {
            Verb::Create(values) => json!({ "op": "create", "object": object, "json": text(values) }),
            Verb::CreateMany(rows) => json!({ "op": "create_many", "object": object, "json": json!(rows).to_string() }),
            Verb::Update(id, values) => json!({ "op": "update", "object": object, "id": id, "json": text(values) }),
            Verb::Upsert(target, values) => {
                json!({ "op": "upsert", "object": object, "json": text(values), "on_conflict": [target] })
            }
            Verb::Delete(id) => json!({ "op": "delete", "object": object, "id": id }),
            Verb::DeleteMany(Chosen::Ids(ids)) => json!({ "op": "delete_many", "object": object, "ids": ids }),
            Verb::Link(id, key, ids, is_removal) => {
                let op = if *is_removal { "unlink" } else { "link" };
                json!({ "op": op, "object": object, "id": id, "relation": key, "ids": ids })
            }
            Verb::Batch(operations) => json!({ "op": "batch", "object": "", "json": as_json(operations).to_string() }),
            Verb::UpdateMany(..) | Verb::DeleteMany(Chosen::Where(_)) => return None,
        })
    }

    /// The result of the block as the response of REST.
    pub(super) fn answered_by_block(&self, done: &Value) -> Got {
        let of_many = |status: u16| {
            let count = done.as_array().expect("ids").len();
            Got { status, json: json!({ "count": count, "ids": done }) }
        };
        match &self.verb {
            Verb::Create(_) => Got { status: 201, json: json!({ "data": done }) },
            Verb::Update(..) => Got { status: 200, json: json!({ "data": done }) },
            Verb::Upsert(..) => Got { status: if done["created"] == true { 201 } else { 200 }, json: done.clone() },
            // For a block, a missing record is not an error.
            Verb::Delete(_) if *done == false => Got { status: 404, json: json!({ "error": "not_found" }) },
            Verb::Delete(_) => Got { status: 204, json: Value::Null },
            Verb::CreateMany(_) => of_many(201),
            Verb::DeleteMany(_) => of_many(200),
            Verb::Link(.., is_removal) => {
                let name = if *is_removal { "removed" } else { "added" };
                Got { status: 200, json: json!({ "data": { name: done } }) }
            }
            Verb::Batch(operations) => {
                let results = done.as_array().expect("results").iter().zip(operations);
                let results = results.map(|(result, operation)| operation.result_of_block(result));
                Got { status: 200, json: json!({ "data": results.collect::<Vec<_>>() }) }
            }
            Verb::UpdateMany(..) => unreachable!("blocks have no update of many records"),
        }
    }

    /// Writes that lack one part of this write.
    pub(super) fn smaller(&self) -> Vec<Write> {
        let mut all = Vec::new();
        let mut add = |verb: Verb| all.push(Write { verb, ..self.clone() });
        let without = |values: &Map<String, Value>, name: &String| {
            let mut values = values.clone();
            values.remove(name);
            values
        };
        match &self.verb {
            Verb::Create(values) => values.keys().for_each(|name| add(Verb::Create(without(values, name)))),
            Verb::CreateMany(rows) if rows.len() > 1 => {
                rows.iter().for_each(|row| add(Verb::CreateMany(vec![row.clone()])));
            }
            Verb::Update(id, values) if values.len() > 1 => {
                values.keys().for_each(|name| add(Verb::Update(id.clone(), without(values, name))));
            }
            Verb::Upsert(target, values) => {
                for name in values.keys().filter(|name| name != target) {
                    add(Verb::Upsert(target, without(values, name)));
                }
            }
            Verb::UpdateMany(Chosen::Ids(ids), values) => {
                for id in ids.iter().filter(|_| ids.len() > 1) {
                    add(Verb::UpdateMany(Chosen::Ids(vec![id.clone()]), values.clone()));
                }
                for name in values.keys().filter(|_| values.len() > 1) {
                    add(Verb::UpdateMany(Chosen::Ids(ids.clone()), without(values, name)));
                }
            }
            Verb::DeleteMany(Chosen::Ids(ids)) if ids.len() > 1 => {
                ids.iter().for_each(|id| add(Verb::DeleteMany(Chosen::Ids(vec![id.clone()]))));
            }
            Verb::Link(id, key, ids, is_removal) if ids.len() > 1 => {
                ids.iter().for_each(|other| add(Verb::Link(id.clone(), key.clone(), vec![other.clone()], *is_removal)));
            }
            Verb::Batch(operations) => smaller(operations).into_iter().for_each(|operations| add(Verb::Batch(operations))),
            _ => {}
        }
        all
    }
}
