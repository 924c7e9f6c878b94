//! Writes as tools of MCP and as mutations of GraphQL.

use serde_json::{Map, Value, json};

use super::answers::Answered;
use super::batches::as_json;
use super::grants::Caller;
use super::reads::Standing;
use super::verbs::{Chosen, Verb, Write, is_sum};
use super::worlds::SYSTEM;
use super::writes::Left;
use super::{Got, Refusal, State};
use crate::promises::conditions::{graphql, type_name};

/// The codes of errors about a document. GraphQL checks a document against the caller's schema before it runs the operation. That
/// schema lacks everything that the caller can never write, so these errors replace the refusals of the operation.
const DOCUMENT_CODES: [&str; 3] = ["unknown_field", "forbidden", "invalid_request"];

/// A mutation: the body of its request, and the fields that it selects of the record.
pub(super) struct Mutation {
    pub(super) body: Value,
    pub(super) selected: Option<Vec<String>>,
}

impl Write {
    /// The tool and its arguments for MCP.
    pub(super) fn tool(&self, object: &str) -> (&'static str, Value) {
        if let Verb::Batch(operations) = &self.verb {
            return ("batch_records", json!({ "operations": as_json(operations) }));
        }
        let mut arguments = json!({ "object_name": object });
        let mut set = |name: &str, value: Value| arguments[name] = value;
        if self.is_dry {
            set("dry_run", json!(true));
        }
        let tool = match &self.verb {
            Verb::Create(values) => {
                set("data", json!(values));
                "create_record"
            }
            Verb::CreateMany(rows) => {
                set("data", json!(rows));
                "bulk_create_records"
            }
            Verb::Update(id, values) => {
                set("id", json!(id));
                set("data", json!(values));
                "update_record"
            }
            Verb::Upsert(target, values) => {
                set("data", json!(values));
                set("on_conflict", json!([target]));
                "upsert_record"
            }
            Verb::Delete(id) => {
                set("id", json!(id));
                "delete_record"
            }
            Verb::UpdateMany(chosen, values) => {
                let (name, value) = chosen.member();
                set(name, value);
                set("data", json!(values));
                "bulk_update_records"
            }
            Verb::DeleteMany(chosen) => {
                let (name, value) = chosen.member();
                set(name, value);
                "bulk_delete_records"
            }
            Verb::Link(id, key, ids, is_removal) => {
                set("id", json!(id));
                set("relation", json!(key));
                set("ids", json!(ids));
                if *is_removal { "unlink_records" } else { "link_records" }
            }
            Verb::Batch(_) => unreachable!("a batch has a tool of its own"),
        };
        (tool, arguments)
    }

    /// The result of the tool as the response of REST.
    pub(super) fn answered_by_tool(&self, result: Value) -> Got {
        match &self.verb {
            Verb::Create(_) | Verb::CreateMany(_) => Got { status: 201, json: result },
            Verb::Upsert(..) if result["created"] == true => Got { status: 201, json: result },
            Verb::Delete(_) if result == json!({ "data": { "deleted": true } }) => Got { status: 204, json: Value::Null },
            _ => Got { status: 200, json: result },
        }
    }

    /// The mutation for GraphQL. `None` if it has no form for the write. `left` is what the reference expects of the write, unless
    /// it expects a refusal.
    pub(super) fn mutation(&self, state: &State, caller: &Caller, left: Option<&Left>) -> Option<Mutation> {
        let name = state.world.objects[self.object].name.as_str();
        let ty = type_name(name);
        let record = || state.selected(caller, self.object, left);
        let mut variables = Map::new();
        let mut selected = None;
        let dry = if self.is_dry { ", dryRun: true" } else { "" };
        let query = match &self.verb {
            // GraphQL creates records one by one.
            Verb::CreateMany(_) => return None,
            Verb::Create(values) => {
                variables.insert("input".to_owned(), json!(values));
                let fields = selected.insert(record()).join(" ");
                format!("mutation($input: {ty}CreateInput!) {{ root: create_{name}(input: $input) {{ {fields} }} }}")
            }
            Verb::Update(id, values) => {
                variables.insert("id".to_owned(), json!(id));
                let (declared, given) = changes(&ty, values, &mut variables);
                let fields = selected.insert(record()).join(" ");
                format!("mutation($id: ID!, {declared}) {{ root: update_{name}(id: $id, {given}) {{ {fields} }} }}")
            }
            Verb::Upsert(target, values) => {
                variables.insert("input".to_owned(), json!(values));
                variables.insert("target".to_owned(), json!([target]));
                let fields = selected.insert(record()).join(" ");
                format!(
                    "mutation($input: {ty}CreateInput!, $target: [String!]!) {{ \
                     root: upsert_{name}(input: $input, onConflict: $target) {{ created data {{ {fields} }} }} }}"
                )
            }
            Verb::Delete(id) => {
                variables.insert("id".to_owned(), json!(id));
                format!("mutation($id: ID!) {{ root: delete_{name}(id: $id) }}")
            }
            Verb::UpdateMany(chosen, values) => {
                let (choice, chosen) = self.choice(state, &ty, chosen, &mut variables)?;
                let (declared, given) = changes(&ty, values, &mut variables);
                format!("mutation({choice}, {declared}) {{ root: update_{name}_many({chosen}, {given}{dry}) {{ count ids }} }}")
            }
            Verb::DeleteMany(chosen) => {
                let (choice, chosen) = self.choice(state, &ty, chosen, &mut variables)?;
                format!("mutation({choice}) {{ root: delete_{name}_many({chosen}{dry}) {{ count ids }} }}")
            }
            Verb::Link(id, key, ids, is_removal) => {
                let end = state.end(self.object, key).expect("a relation key");
                // The mutation is part of the schema only if the caller can also read the links.
                if state.standing(caller, self.object, &end) != Standing::Known {
                    return None;
                }
                variables.extend([("id".to_owned(), json!(id)), ("ids".to_owned(), json!(ids))]);
                let verb = if *is_removal { "unlink" } else { "link" };
                format!("mutation($id: ID!, $ids: [ID!]!) {{ root: {verb}_{name}_{key}(id: $id, ids: $ids) }}")
            }
            Verb::Batch(operations) => {
                variables.insert("operations".to_owned(), as_json(operations));
                "mutation($operations: [JSON!]!) { root: batch(operations: $operations) }".to_owned()
            }
        };
        Some(Mutation { body: json!({ "query": query, "variables": variables }), selected })
    }

    /// The declaration of the variable that chooses records, and the argument that uses it.
    fn choice(
        &self,
        state: &State,
        ty: &str,
        chosen: &Chosen,
        variables: &mut Map<String, Value>,
    ) -> Option<(String, &'static str)> {
        match chosen {
            Chosen::Ids(ids) => {
                variables.insert("ids".to_owned(), json!(ids));
                Some(("$ids: [ID!]".to_owned(), "ids: $ids"))
            }
            Chosen::Where(condition) => {
                variables.insert("where".to_owned(), graphql::typed(&state.world, self.object, condition)?);
                Some((format!("$where: {ty}_Where"), "where: $where"))
            }
        }
    }

    /// The result of the mutation as the response of REST. `refusals` are those that the reference expects.
    pub(super) fn answered_by_mutation(&self, result: &Value, selected: Option<&[String]>, refusals: &[Refusal]) -> Got {
        let errors = result["errors"].as_array().map_or(&[][..], Vec::as_slice);
        let path = |error: &Value| error["path"].as_array().cloned().unwrap_or_default();
        if let Some(error) = errors.iter().find(|error| path(error).len() <= 1) {
            let (code, field) = (&error["extensions"]["code"], &error["extensions"]["field"]);
            let is_of_document = path(error).is_empty() && DOCUMENT_CODES.iter().any(|known| code == known);
            return match refusals.first() {
                Some(refusal) if is_of_document => Got {
                    status: refusal.status,
                    json: json!({ "error": refusal.code, "field": refusal.field, "index": refusal.index }),
                },
                _ => {
                    let mut got = Got::refused(code, field, refusals);
                    got.json["index"] = error["extensions"]["index"].clone();
                    got.json["message"] = error["message"].clone();
                    got
                }
            };
        }
        // The errors of single cells. Without them, the record would have these cells.
        let unreadable: Vec<Value> = errors.iter().filter_map(|error| path(error).pop()).collect();
        let record = |value: &Value| -> Value {
            let names = selected.into_iter().flatten().filter(|name| !unreadable.iter().any(|other| other == name.as_str()));
            names.map(|name| (name.clone(), value[name.as_str()].clone())).collect()
        };
        let root = &result["data"]["root"];
        match &self.verb {
            Verb::Create(_) => Got { status: 201, json: json!({ "data": record(root) }) },
            Verb::Update(..) => Got { status: 200, json: json!({ "data": record(root) }) },
            Verb::Upsert(..) => {
                let created = &root["created"];
                let status = if *created == true { 201 } else { 200 };
                Got { status, json: json!({ "data": record(&root["data"]), "created": created }) }
            }
            // In GraphQL, a missing record is not an error.
            Verb::Delete(_) if *root == true => Got { status: 204, json: Value::Null },
            Verb::Delete(_) => Got { status: 404, json: json!({ "error": "not_found" }) },
            Verb::UpdateMany(..) | Verb::DeleteMany(_) => Got { status: 200, json: root.clone() },
            Verb::Batch(_) => Got { status: 200, json: json!({ "data": root }) },
            Verb::Link(.., is_removal) => {
                let name = if *is_removal { "removed" } else { "added" };
                Got { status: 200, json: json!({ "data": { name: root } }) }
            }
            Verb::CreateMany(_) => unreachable!("GraphQL has no such mutation"),
        }
    }
}

impl State {
    /// The fields of a written record that a mutation selects: all that the caller knows. If the caller cannot read the record, a
    /// field that is never null would be an error of the complete record, so it is left out.
    fn selected(&self, caller: &Caller, object: usize, left: Option<&Left>) -> Vec<String> {
        let is_seen = left.is_some_and(|left| match &left.answer {
            Answered::Record { object, id, .. } => {
                left.state.row(*object, id).is_some_and(|row| caller.sees(&left.state.world, *object, row))
            }
            Answered::Ids { .. } | Answered::Nothing | Answered::Number(..) | Answered::Results(_) => false,
        });
        let required = self.required(object);
        let is_never_null =
            |name: &str| SYSTEM.iter().any(|(system, _)| *system == name) || required.iter().any(|other| other == name);
        let known = self.columns(caller, object).filter(|name| *name != "id" && (is_seen || !is_never_null(name)));
        ["id"].into_iter().chain(known).map(str::to_owned).collect()
    }
}

/// The declarations of the variables of a change, and the arguments that use them. GraphQL adds to a value with an argument of its
/// own.
fn changes(ty: &str, values: &Map<String, Value>, variables: &mut Map<String, Value>) -> (String, &'static str) {
    let (sums, plain): (Vec<_>, Vec<_>) = values.iter().partition(|(_, value)| is_sum(value));
    let input: Map<String, Value> = plain.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let increment: Map<String, Value> = sums.into_iter().map(|(name, value)| (name.clone(), value["$inc"].clone())).collect();
    variables.insert("input".to_owned(), Value::Object(input));
    if increment.is_empty() {
        return (format!("$input: {ty}UpdateInput!"), "input: $input");
    }
    variables.insert("increment".to_owned(), Value::Object(increment));
    (format!("$input: {ty}UpdateInput!, $increment: {ty}IncrementInput!"), "input: $input, increment: $increment")
}
