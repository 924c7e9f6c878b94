//! The responses that the reference expects of writes.

use serde_json::{Map, Value, json};

use super::grants::Caller;
use super::placeholders::{rename, rename_values};
use super::verbs::is_sum;
use super::worlds::SYSTEM;
use super::{Expected, Got, State, normal};
use crate::promises::conditions::model::Eyes;

/// The response of a write.
pub(super) enum Answered {
    Record {
        status: u16,
        object: usize,
        id: String,
        sent: Map<String, Value>,
        created: Option<bool>,
    },
    Ids {
        status: u16,
        ids: Vec<String>,
        is_ordered: bool,
    },
    Nothing,
    Number(&'static str, usize),
    /// The results of a batch, each with the state after its operation.
    Results(Vec<(Answered, State)>),
}

/// The moment at which a caller of a batch sees the record of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// After the operation.
    Operation,
    /// After the whole batch, because the grants to read have conditions or lists of fields.
    Batch,
    /// The specification does not say which.
    Either,
}

impl Answered {
    /// Replaces placeholders with the ids of new rows.
    pub(super) fn rename(&mut self, names: &[(String, String)]) {
        match self {
            Answered::Record { id, sent, .. } => {
                rename(id, names);
                rename_values(sent, names);
            }
            Answered::Ids { ids, .. } => ids.iter_mut().for_each(|id| rename(id, names)),
            Answered::Nothing | Answered::Number(..) => {}
            Answered::Results(results) => {
                for (answer, state) in results {
                    answer.rename(names);
                    state.rename(names);
                }
            }
        }
    }

    /// The response to a caller, with the state after the write.
    pub(super) fn expected(&self, state: &State, caller: &Caller) -> Expected {
        match self {
            Answered::Nothing => Expected::fine(204, Value::Null, false),
            Answered::Ids { status, ids, is_ordered } => {
                let mut ids = ids.clone();
                if !is_ordered {
                    ids.sort();
                }
                Expected::fine(*status, json!({ "count": ids.len(), "ids": ids }), false)
            }
            Answered::Record { status, .. } => Expected::fine(*status, self.body(state, caller), false),
            Answered::Number(..) => Expected::fine(200, self.body(state, caller), false),
            Answered::Results(results) => {
                let bodies = results.iter().map(|(answer, _)| answer.body(state, caller));
                Expected::fine(200, json!({ "data": bodies.collect::<Vec<_>>() }), false)
            }
        }
    }

    /// The body of the response, which is also the result in a batch.
    fn body(&self, state: &State, caller: &Caller) -> Value {
        match self {
            Answered::Record { status, object, id, sent, created } => {
                let mut body = json!({ "data": shown(state, caller, (*object, id.as_str()), *status == 201, sent) });
                if let Some(created) = created {
                    body["created"] = json!(created);
                }
                body
            }
            Answered::Number(name, count) => json!({ "data": { *name: count } }),
            Answered::Nothing | Answered::Ids { .. } | Answered::Results(_) => Value::Null,
        }
    }

    /// The difference of the results of a batch from the reference. `state` is the one after the batch.
    pub(super) fn problem_of_results(&self, state: &State, caller: &Caller, got: &Got) -> Option<String> {
        let Answered::Results(results) = self else { return Some("no batch".to_owned()) };
        let found = got.json["data"].as_array().map_or(&[][..], Vec::as_slice);
        if got.status != 200 || found.len() != results.len() {
            return Some(format!("expected {} results\n  got      {} {}", results.len(), got.status, got.json));
        }
        results.iter().zip(found).enumerate().find_map(|(index, ((answer, after), found))| {
            let states = match answer {
                Answered::Record { object, .. } => match caller.moment_of_results(*object) {
                    Moment::Operation => vec![after],
                    Moment::Batch => vec![state],
                    Moment::Either => vec![after, state],
                },
                _ => vec![state],
            };
            let expected: Vec<Value> = states.into_iter().map(|state| with_moments(answer.body(state, caller), found)).collect();
            let is_right = expected.iter().any(|expected| normal(expected) == normal(found));
            (!is_right).then(|| format!("the result {index}: expected {}\n  got      {found}", json!(expected)))
        })
    }
}

/// The part of a written record that its writer sees in a state.
fn shown(state: &State, caller: &Caller, (object, id): (usize, &str), is_new: bool, sent: &Map<String, Value>) -> Value {
    let view = caller.view(&state.world);
    match state.row(object, id) {
        Some(row) if view.sees(object, row) => state.record((caller, &view), object, row, None, &[]),
        // A caller whose rights on the object depend on no condition and no list of fields sees the whole new record.
        Some(row) if is_new && !caller.has_conditions_on(object) => json!(row.values),
        _ => {
            let is_system = |name: &str| SYSTEM.iter().any(|(system, _)| *system == name);
            let mut data: Map<String, Value> = sent
                .iter()
                .filter(|(name, value)| !is_sum(value) && !is_system(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            data.insert("id".to_owned(), json!(id));
            Value::Object(data)
        }
    }
}

/// A result with the moments that the response has. Only the server knows them, and a later operation may have changed them.
fn with_moments(mut expected: Value, found: &Value) -> Value {
    for name in ["created_at", "updated_at"] {
        if let Some(moment) = expected.get_mut("data").and_then(|data| data.get_mut(name))
            && moment.is_string()
            && found["data"][name].is_string()
        {
            *moment = found["data"][name].clone();
        }
    }
    expected
}
