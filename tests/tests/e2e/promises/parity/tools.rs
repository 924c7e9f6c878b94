//! Operations as MCP tools.

use super::operation::{Action, Members, Operation, list, quoted};

/// The tool's name and its arguments, which still contain the numbers of ids.
pub(super) fn call(operation: &Operation) -> (&'static str, Members) {
    let mut arguments = Members::default();
    arguments.set_text("object_name", operation.object);
    let texts = |texts: &[String]| list(texts.iter().map(|text| quoted(text)));
    let tool = match &operation.action {
        Action::List(query) => {
            arguments.0.extend(query.members("page_size").0);
            "query_data"
        }
        Action::Get { id, expand } => {
            arguments.set_text("id", id);
            if !expand.is_empty() {
                arguments.set_text("expand", &expand.join(","));
            }
            "get_record"
        }
        Action::Aggregate { function, field, query } => {
            arguments.set_text("fn", function);
            if let Some(field) = field {
                arguments.set_text("field", field);
            }
            arguments.0.extend(query.members("page_size").0);
            "aggregate_data"
        }
        Action::Create(values) => {
            arguments.set("data", values.json());
            "create_record"
        }
        Action::CreateMany(records) => {
            arguments.set("data", list(records.iter().map(|record| record.json())));
            "bulk_create_records"
        }
        Action::Update { id, values, increments } => {
            arguments.set_text("id", id);
            arguments.set("data", Operation::changes(values, increments).json());
            "update_record"
        }
        Action::UpdateMany { ids, values, increments } => {
            arguments.set("ids", texts(ids));
            arguments.set("data", Operation::changes(values, increments).json());
            "bulk_update_records"
        }
        Action::Upsert { values, target } => {
            arguments.set("data", values.json());
            arguments.set("on_conflict", list(target.iter().map(|column| quoted(column))));
            "upsert_record"
        }
        Action::Delete { id } => {
            arguments.set_text("id", id);
            "delete_record"
        }
        Action::DeleteMany { ids } => {
            arguments.set("ids", texts(ids));
            "bulk_delete_records"
        }
        Action::Link { id, relation, ids, adds } => {
            arguments.set_text("id", id);
            arguments.set_text("relation", relation);
            arguments.set("ids", texts(ids));
            if *adds { "link_records" } else { "unlink_records" }
        }
    };
    (tool, arguments)
}

/// Makes REST's document. For a deletion, REST has no body.
pub(super) fn document(operation: &Operation, text: String) -> String {
    match operation.action {
        Action::Delete { .. } => {
            assert_eq!(text, r#"{"data":{"deleted":true}}"#);
            "null".to_owned()
        }
        _ => text,
    }
}
