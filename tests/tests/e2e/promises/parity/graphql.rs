//! Operations as GraphQL documents.

use super::operation::{Action, Members, Operation, Query, list, plain, quoted};
use super::outcome::Refusal;
use super::schema::{Kind, SYSTEM_COLUMNS, columns, relations};
use super::world::Answer;

pub(super) struct Request {
    pub(super) document: String,
    /// The variables, which still contain the numbers of ids.
    pub(super) variables: Members,
}

/// The selection whose result has the same fields as REST's.
fn selection(object: &str, select: Option<&[String]>, expand: &[Vec<&str>]) -> String {
    let mut fields: Vec<String> = match select {
        Some(select) => ["id".to_owned()].into_iter().chain(select.iter().cloned()).collect(),
        None => {
            let own = columns(object).iter().map(|(name, _)| *name);
            SYSTEM_COLUMNS.into_iter().chain(own).map(str::to_owned).collect()
        }
    };
    for (key, related) in relations(object) {
        let paths: Vec<&Vec<&str>> = expand.iter().filter(|path| path.first() == Some(key)).collect();
        if !paths.is_empty() {
            let below: Vec<Vec<&str>> = paths.iter().map(|path| path[1..].to_vec()).collect();
            fields.push(format!("{key} {{ {} }}", selection(related, None, &below)));
        }
    }
    fields.join(" ")
}

fn record(object: &str, select: Option<&[String]>, expand: &[String]) -> String {
    let paths: Vec<Vec<&str>> = expand.iter().map(|path| path.split('.').collect()).collect();
    selection(object, select, &paths)
}

/// Values of columns in the form of GraphQL. In it, numbers and booleans are not texts.
fn input(object: &str, values: &Members) -> String {
    let mut input = Members::default();
    for (name, json) in &values.0 {
        let kind = columns(object).iter().find(|(known, _)| known == name).map(|(_, kind)| *kind);
        let text = plain(json);
        let is_bare = match kind {
            Some(kind) if kind.is_numeric() => text.parse::<f64>().is_ok(),
            Some(Kind::Boolean) => matches!(text.as_str(), "true" | "false"),
            _ => false,
        };
        input.set(name, if is_bare { text } else { json.clone() });
    }
    input.json()
}

fn pagination(query: &Query) -> &'static str {
    match query.without_count {
        true => "page pageSize hasNextPage hasPreviousPage",
        false => "page pageSize totalCount totalPages hasNextPage hasPreviousPage",
    }
}

pub(super) fn request(operation: &Operation) -> Request {
    let object = operation.object;
    let ty = format!("{}{}", object[..1].to_uppercase(), &object[1..]);
    let selection = format!("$filter: [FilterInput!], $where: {ty}_Where, $search: String");
    let mut variables = Members::default();
    let all = record(object, None, &[]);
    let document = match &operation.action {
        Action::List(query) => {
            variables = query.variables();
            let record = record(object, query.select.as_deref(), &query.expand);
            let pagination = pagination(query);
            format!(
                "query({selection}, $sort: [SortInput!], $page: Int, $pageSize: Int, $limit: Int, $offset: Int) {{ \
                 root: {object}(filter: $filter, where: $where, search: $search, sort: $sort, page: $page, pageSize: $pageSize, \
                 limit: $limit, offset: $offset) {{ data {{ {record} }} pagination {{ {pagination} }} }} }}"
            )
        }
        Action::Get { id, expand } => {
            variables.set_text("id", id);
            let record = record(object, None, expand);
            format!("query($id: ID!) {{ root: {object}_by_id(id: $id) {{ {record} }} }}")
        }
        Action::Aggregate { function, field, query } => {
            variables = query.variables();
            variables.set_text("fn", function);
            if let Some(field) = field {
                variables.set_text("field", field);
            }
            format!(
                "query($fn: AggregateFunction!, $field: String, {selection}) {{ root: {object}_aggregate(fn: $fn, \
                 field: $field, filter: $filter, where: $where, search: $search) {{ fn field value filteredCount }} }}"
            )
        }
        Action::Create(values) => {
            variables.set("input", input(object, values));
            format!("mutation($input: {ty}CreateInput!) {{ root: create_{object}(input: $input) {{ {all} }} }}")
        }
        Action::Update { values, increments, .. } | Action::UpdateMany { values, increments, .. } => {
            let (suffix, name, id_type, shown) = match &operation.action {
                Action::UpdateMany { ids, .. } => {
                    variables.set("ids", list(ids.iter().map(|id| quoted(id))));
                    ("_many", "ids", "[ID!]!", "count ids")
                }
                Action::Update { id, .. } => {
                    variables.set_text("id", id);
                    ("", "id", "ID!", all.as_str())
                }
                _ => unreachable!("an update"),
            };
            variables.set("input", input(object, values));
            if increments.is_empty() {
                format!(
                    "mutation(${name}: {id_type}, $input: {ty}UpdateInput!) {{ \
                     root: update_{object}{suffix}({name}: ${name}, input: $input) {{ {shown} }} }}"
                )
            } else {
                let mut added = Members::default();
                for increment in increments {
                    added.set(&increment.field, increment.added());
                }
                variables.set("increment", input(object, &added));
                format!(
                    "mutation(${name}: {id_type}, $input: {ty}UpdateInput, $increment: {ty}IncrementInput) {{ \
                     root: update_{object}{suffix}({name}: ${name}, input: $input, increment: $increment) {{ {shown} }} }}"
                )
            }
        }
        Action::Upsert { values, target } => {
            variables.set("input", input(object, values));
            variables.set("target", list(target.iter().map(|column| quoted(column))));
            format!(
                "mutation($input: {ty}CreateInput!, $target: [String!]!) {{ root: upsert_{object}(input: $input, \
                 onConflict: $target) {{ created data {{ {all} }} }} }}"
            )
        }
        Action::Delete { id } => {
            variables.set_text("id", id);
            format!("mutation($id: ID!) {{ root: delete_{object}(id: $id) }}")
        }
        Action::Link { id, relation, ids, adds } => {
            variables.set_text("id", id);
            variables.set("ids", list(ids.iter().map(|id| quoted(id))));
            let verb = if *adds { "link" } else { "unlink" };
            format!("mutation($id: ID!, $ids: [ID!]!) {{ root: {verb}_{object}_{relation}(id: $id, ids: $ids) }}")
        }
        Action::DeleteMany { ids } => {
            variables.set("ids", list(ids.iter().map(|id| quoted(id))));
            format!("mutation($ids: [ID!]!) {{ root: delete_{object}_many(ids: $ids) {{ count ids }} }}")
        }
        Action::CreateMany(_) => unreachable!("GraphQL has no such mutation"),
    };
    Request { document, variables }
}

/// Makes REST's document from the value of the root field.
pub(super) fn document(operation: &Operation, value: &str) -> Answer {
    Answer::Done(match &operation.action {
        // In GraphQL, a missing record is not an error.
        Action::Get { .. } if value == "null" => return Answer::Refused(Refusal::missing()),
        Action::Delete { .. } if value == "false" => return Answer::Refused(Refusal::missing()),
        Action::Delete { .. } => "null".to_owned(),
        // If the total is not wanted, it is not selected.
        Action::List(query) if query.without_count => {
            value.replacen("\"pagination\":{", "\"pagination\":{\"totalCount\":null,\"totalPages\":null,", 1)
        }
        Action::Link { adds: true, .. } => format!("{{\"data\":{{\"added\":{value}}}}}"),
        Action::Link { .. } => format!("{{\"data\":{{\"removed\":{value}}}}}"),
        Action::List(_) | Action::Upsert { .. } | Action::UpdateMany { .. } | Action::DeleteMany { .. } => value.to_owned(),
        _ => format!("{{\"data\":{value}}}"),
    })
}
