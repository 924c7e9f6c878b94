//! Operations as calls by a block: input for `tests/guests/parity`.

use serde_json::{Value, json};

use super::operation::{Action, Members, Operation, list, quoted};
use super::outcome::{Refusal, member};
use super::world::Answer;

/// The action's input, with ids instead of their numbers.
pub(super) fn input(operation: &Operation, filled: impl Fn(&str) -> String) -> Value {
    let ids = |ids: &[String]| -> Vec<String> { ids.iter().map(|id| filled(id)).collect() };
    let mut input = match &operation.action {
        Action::List(query) => json!({ "op": "query", "json": filled(&query.members("pageSize").json()) }),
        Action::Get { id, expand } if expand.is_empty() => json!({ "op": "get", "id": filled(id) }),
        Action::Get { id, expand } => json!({ "op": "get", "id": filled(id), "expand": expand.join(",") }),
        Action::Aggregate { function, field, query } => {
            let mut members = Members::default();
            members.set_text("fn", function);
            if let Some(field) = field {
                members.set_text("field", field);
            }
            members.0.extend(query.members("pageSize").0);
            json!({ "op": "aggregate", "json": filled(&members.json()) })
        }
        Action::Create(values) => json!({ "op": "create", "json": filled(&values.json()) }),
        Action::CreateMany(records) => {
            json!({ "op": "create_many", "json": filled(&list(records.iter().map(|record| record.json()))) })
        }
        Action::Update { id, values, increments } => {
            let changes = filled(&Operation::changes(values, increments).json());
            json!({ "op": "update", "id": filled(id), "json": changes })
        }
        Action::UpdateMany { .. } => unreachable!("blocks have no update of many records"),
        Action::Upsert { values, target } => {
            json!({ "op": "upsert", "json": filled(&values.json()), "on_conflict": target })
        }
        Action::Delete { id } => json!({ "op": "delete", "id": filled(id) }),
        Action::DeleteMany { ids: all } => json!({ "op": "delete_many", "ids": ids(all) }),
        Action::Link { id, relation, ids: all, adds } => {
            let op = if *adds { "link" } else { "unlink" };
            json!({ "op": op, "id": filled(id), "relation": relation, "ids": ids(all) })
        }
    };
    input["object"] = json!(operation.object);
    input
}

/// Makes REST's document from the result of the data interface.
pub(super) fn document(operation: &Operation, done: &str) -> Answer {
    let ids = || {
        let ids: Vec<Value> = serde_json::from_str(done).unwrap();
        format!("{{\"count\":{},\"ids\":{done}}}", ids.len())
    };
    Answer::Done(match &operation.action {
        // In this interface, a missing record is not an error.
        Action::Get { .. } if done == "null" => return Answer::Refused(Refusal::missing()),
        Action::Delete { .. } if done == "false" => return Answer::Refused(Refusal::missing()),
        Action::Delete { .. } => "null".to_owned(),
        Action::List(_) | Action::Upsert { .. } => done.to_owned(),
        Action::Get { .. } | Action::Create(_) | Action::Update { .. } => format!("{{\"data\":{done}}}"),
        // The SDK's result does not repeat the parameters that the block sent.
        Action::Aggregate { function, field, .. } => {
            let field = field.as_deref().map_or_else(|| "null".to_owned(), quoted);
            let value = |name: &str| member(done, name).unwrap();
            let (value, count) = (value("value"), value("filteredCount"));
            format!("{{\"data\":{{\"fn\":\"{function}\",\"field\":{field},\"value\":{value},\"filteredCount\":{count}}}}}")
        }
        Action::CreateMany(_) | Action::DeleteMany { .. } => ids(),
        Action::UpdateMany { .. } => unreachable!("blocks have no update of many records"),
        Action::Link { adds: true, .. } => format!("{{\"data\":{{\"added\":{done}}}}}"),
        Action::Link { .. } => format!("{{\"data\":{{\"removed\":{done}}}}}"),
    })
}
