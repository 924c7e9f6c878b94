//! The reference for events: the parts of an event that a reader sees.

use serde_json::{Map, Value, json};

use super::State;
use super::grants::{Caller, Sight};
use super::worlds::OBJECTS;
use crate::promises::conditions::model::{Place, Row};

/// The number of an object.
pub(super) fn object_named(name: &Value) -> usize {
    OBJECTS.iter().position(|known| *name == *known).unwrap_or_else(|| panic!("an unknown object: {name}"))
}

impl State {
    fn owner(&self, id: &str) -> Option<&str> {
        self.owners.get(id)?.as_deref()
    }

    /// The parts of an event that a caller sees. `event` is the complete event, as the admin sees it.
    pub(super) fn shown(&self, caller: &Caller, event: &Value) -> Option<Value> {
        let payload = &event["payload"];
        let object = object_named(&payload["object"]);
        let mut shown = event.clone();
        if payload["op"] == "linked" || payload["op"] == "unlinked" {
            let id = payload["id"].as_str()?;
            let is_shown = match self.row(object, id) {
                Some(row) => caller.sight(&self.world, object, Place::Row(row)).shows(payload["relationship"].as_str()?),
                None => caller.sees_gone(object, payload["relationship"].as_str(), self.owner(id)),
            };
            if !is_shown {
                return None;
            }
            let target = object_named(&payload["targetObject"]);
            let ids = payload["targetIds"].as_array()?.iter();
            let sees = |id: &&Value| {
                let id = id.as_str().expect("an id");
                match self.row(target, id) {
                    Some(row) => caller.sees(&self.world, target, row),
                    // The creator of a target is no longer known.
                    None => caller.sees_gone(target, None, None),
                }
            };
            let ids: Vec<&Value> = ids.filter(sees).collect();
            shown["payload"]["targetIds"] = json!(ids);
            return (!ids.is_empty()).then_some(shown);
        }
        if !caller.may(object, "read") {
            return None;
        }
        let rows = ["before", "after"].map(|name| {
            let values = payload[name].as_object()?;
            Some(Row { id: values["id"].as_str()?.to_owned(), maker: 0, values: values.clone() })
        });
        let sights = rows.each_ref().map(|row| {
            let sight = caller.sight(&self.world, object, Place::Row(row.as_ref()?));
            sight.sees().then_some(sight)
        });
        if sights.iter().all(Option::is_none) {
            return None;
        }
        let cell = |sight: &Sight<'_>, name: &str, value: &Value| if sight.shows(name) { value.clone() } else { Value::Null };
        for ((name, row), sight) in ["before", "after"].into_iter().zip(&rows).zip(&sights) {
            let image = row.as_ref().zip(sight.as_ref()).map(|(row, sight)| {
                let known = row.values.iter().filter(|(name, _)| caller.knows(object, name));
                known.map(|(name, value)| (name.clone(), cell(sight, name, value))).collect::<Map<_, _>>()
            });
            shown["payload"][name] = json!(image);
        }
        shown["payload"]["diff"] = match (&sights, payload["diff"].as_object()) {
            ([Some(before), Some(after)], Some(diff)) => {
                let known =
                    diff.iter().filter(|(name, _)| caller.knows(object, name) && (before.shows(name) || after.shows(name)));
                let change = |(name, change): (&String, &Value)| {
                    let change = json!({
                        "before": cell(before, name, &change["before"]),
                        "after": cell(after, name, &change["after"]),
                    });
                    (name.clone(), change)
                };
                Value::Object(known.map(change).collect())
            }
            _ => Value::Null,
        };
        Some(shown)
    }
}
