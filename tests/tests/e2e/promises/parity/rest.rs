//! Operations as REST requests.

use super::operation::{Action, Operation, Query, list, quoted};

pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    /// The body, which still contains the numbers of ids.
    pub(super) body: Option<String>,
}

/// The decoded parameters of a list.
fn parameters(query: &Query) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut push = |name: &str, value: String| pairs.push((name.to_owned(), value));
    for filter in &query.filters {
        let (field, operator) = (&filter.field, filter.operator.1);
        push(&format!("{field}[{operator}]"), filter.value.parameter());
    }
    if let Some(search) = &query.search {
        push("search", search.clone());
    }
    if let Some(condition) = query.condition {
        push("where", condition.to_owned());
    }
    if !query.sort.is_empty() {
        push("sort", query.sort_text());
    }
    for (name, number) in &query.window {
        push(name, number.to_string());
    }
    if let Some(select) = &query.select {
        push("select", select.join(","));
    }
    if !query.expand.is_empty() {
        push("expand", query.expand.join(","));
    }
    if query.without_count {
        push("count", "none".to_owned());
    }
    pairs
}

fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// The request, whose path has ids instead of their numbers.
pub(super) fn request(operation: &Operation, filled: impl Fn(&str) -> String) -> Request {
    let path = format!("/api/v1/data/{}", operation.object);
    let text = |pairs: &[(String, String)]| -> String {
        let pairs = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(&filled(value))));
        pairs.collect::<Vec<_>>().join("&")
    };
    let record = |id: &str| format!("{path}/{}", encoded(&filled(id)));
    let ids = |ids: &[String]| format!("{{\"ids\":{}}}", list(ids.iter().map(|id| quoted(id))));
    let (method, path, body) = match &operation.action {
        Action::List(query) => ("GET", format!("{path}?{}", text(&parameters(query))), None),
        Action::Get { id, expand } if expand.is_empty() => ("GET", record(id), None),
        Action::Get { id, expand } => ("GET", format!("{}?expand={}", record(id), encoded(&expand.join(","))), None),
        Action::Aggregate { function, field, query } => {
            let mut pairs = vec![("fn".to_owned(), (*function).to_owned())];
            pairs.extend(field.iter().map(|field| ("field".to_owned(), field.clone())));
            pairs.extend(parameters(query));
            ("GET", format!("{path}/aggregate?{}", text(&pairs)), None)
        }
        Action::Create(values) => ("POST", path, Some(values.json())),
        Action::CreateMany(records) => {
            let records = list(records.iter().map(|record| record.json()));
            ("POST", format!("{path}/bulk"), Some(format!("{{\"data\":{records}}}")))
        }
        Action::Update { id, values, increments } => ("PATCH", record(id), Some(Operation::changes(values, increments).json())),
        Action::UpdateMany { ids, values, increments } => {
            let (ids, values) = (list(ids.iter().map(|id| quoted(id))), Operation::changes(values, increments).json());
            ("PATCH", format!("{path}/bulk"), Some(format!("{{\"ids\":{ids},\"values\":{values}}}")))
        }
        Action::Upsert { values, target } => ("POST", format!("{path}?on_conflict={}", target.join(",")), Some(values.json())),
        Action::Delete { id } => ("DELETE", record(id), None),
        Action::DeleteMany { ids: all } => ("DELETE", format!("{path}/bulk"), Some(ids(all))),
        Action::Link { id, relation, ids: all, adds } => {
            (if *adds { "POST" } else { "DELETE" }, format!("{}/links/{relation}", record(id)), Some(ids(all)))
        }
    };
    Request { method, path, body }
}
