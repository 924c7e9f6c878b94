//! Null and the text "null" in simple filters, on every surface.

use blockbase_tests::{Admin, on_both_engines, test_block};
use serde_json::{Value, json};

use crate::mcp::Client;

/// Stands for the error `invalid_value` about the field of the filter.
const REFUSED: &str = "refused";

/// The names of the notes on a page.
fn names(page: &Value) -> String {
    let rows = page["data"].as_array().unwrap_or_else(|| panic!("{page}"));
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

/// The code and the field of an error.
fn refusal(code: &Value, field: &Value) -> String {
    format!("{} {}", code.as_str().unwrap_or_default(), field.as_str().unwrap_or_default())
}

/// What a filter finds on each surface where it is JSON: the names of the notes, or the code and the field of the error.
async fn found_in_json(admin: &Admin<'_>, mcp: &Client<'_>, filter: &Value) -> [(&'static str, String); 4] {
    let query = json!({ "filters": [filter], "sort": "name" });
    let names_or_error = |document: &Value| match document.get("error") {
        None => names(document),
        Some(code) => refusal(code, &document["field"]),
    };
    let rest = names_or_error(&admin.post("/api/v1/data/note/query", query.clone()).await.json());

    let mut arguments = query.clone();
    arguments["object_name"] = json!("note");
    let called = mcp.call("query_data", arguments).await;
    let tool = names_or_error(&serde_json::from_str(&called.text).unwrap_or_else(|_| panic!("{}", called.text)));

    let input = json!({ "op": "query", "object": "note", "json": query.to_string() });
    let ran = admin.post("/api/v1/blocks/parity/actions/run", input).await.data();
    let block = match ran.get("refused") {
        None => names(&ran["done"]),
        Some(error) => refusal(&error["code"], &error["details"]["field"]),
    };

    let document = "query($filter: [FilterInput!]) { note(filter: $filter, sort: [{ field: \"name\" }]) { data { name } } }";
    let asked = json!({ "query": document, "variables": { "filter": [filter] } });
    let answer = admin.post("/api/v1/graphql", asked).await.json();
    let graphql = match answer["errors"].get(0) {
        None => names(&answer["data"]["note"]),
        Some(error) => refusal(&error["extensions"]["code"], &error["extensions"]["field"]),
    };
    [("REST", rest), ("MCP", tool), ("a block", block), ("GraphQL", graphql)]
}

on_both_engines! {
    async fn a_filter_in_json_tells_null_from_text(server: Server) {
        let admin = server.admin().await;
        let fields = json!([
            { "name": "name", "type": "text" }, { "name": "text", "type": "text" }, { "name": "number", "type": "integer" },
            { "name": "done", "type": "boolean" }, { "name": "kinds", "type": "multi_enum", "options": ["null", "x"] },
        ]);
        admin.define("note", fields).await;
        for note in [
            json!({ "name": "a", "text": "null", "number": 7, "done": true, "kinds": ["x", "null"] }),
            json!({ "name": "b" }),
            json!({ "name": "c", "text": "x", "number": 0, "done": false, "kinds": ["x"] }),
        ] {
            admin.make("note", note).await;
        }
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let mcp = Client::of(&admin).begin().await;
        let mut wrong = Vec::new();
        // `None` leaves the value out.
        for (field, operator, value, expected) in [
            // Null is no text to search for.
            ("text", "like", Some(Value::Null), REFUSED),
            ("text", "ilike", Some(Value::Null), REFUSED),
            ("kinds", "like", Some(Value::Null), REFUSED),
            ("text", "like", None, REFUSED),
            ("text", "ilike", None, REFUSED),
            ("text", "like", Some(json!("null")), "a"),
            ("text", "ilike", Some(json!("NULL")), "a"),
            ("kinds", "ilike", Some(json!("NULL")), "a"),
            // A string is text, also if it is a list.
            ("text", "in", Some(json!("null")), "a"),
            ("text", "in", Some(json!("x,null")), "ac"),
            ("text", "in", Some(json!("\"null\",\"x\"")), "ac"),
            ("text", "in", Some(json!(["null"])), "a"),
            ("text", "in", Some(json!(["null", null])), "ab"),
            ("text", "in", Some(json!([null])), "b"),
            ("text", "in", Some(Value::Null), "b"),
            ("text", "in", None, "b"),
            ("text", "nin", Some(json!("null")), "bc"),
            ("text", "nin", Some(json!("x,null")), "b"),
            ("text", "nin", Some(json!(["x", null])), "a"),
            ("text", "nin", Some(Value::Null), "ac"),
            ("kinds", "in", Some(json!("null")), "a"),
            ("kinds", "nin", Some(json!("null")), "bc"),
            // Strings are read as numbers and booleans, but no string is null.
            ("number", "in", Some(json!("7,0")), "ac"),
            ("number", "in", Some(json!("7,null")), REFUSED),
            ("number", "in", Some(json!([7, null])), "ab"),
            ("number", "nin", Some(json!("7")), "bc"),
            ("number", "eq", Some(json!("7")), "a"),
            ("number", "eq", Some(json!("null")), REFUSED),
            ("done", "in", Some(json!("true,false")), "ac"),
            ("done", "nin", Some(json!("null")), REFUSED),
            ("done", "neq", Some(json!("true")), "bc"),
            // The other operators.
            ("text", "eq", None, "b"),
            ("text", "eq", Some(json!("null")), "a"),
            ("text", "neq", Some(Value::Null), "ac"),
            ("text", "neq", Some(json!("null")), "bc"),
            ("done", "neq", Some(Value::Null), "ac"),
            ("text", "gt", Some(Value::Null), REFUSED),
            ("text", "lte", None, REFUSED),
            ("text", "gt", Some(json!("null")), "c"),
            ("text", "lte", Some(json!("null")), "a"),
            ("number", "gte", Some(Value::Null), REFUSED),
            ("text", "is_null", Some(Value::Null), "b"),
            ("text", "is_not_null", None, "ac"),
        ] {
            let mut filter = json!({ "field": field, "operator": operator });
            if let Some(value) = value {
                filter["value"] = value;
            }
            let expected = if expected == REFUSED { format!("invalid_value {field}") } else { expected.to_owned() };
            for (surface, found) in found_in_json(&admin, &mcp, &filter).await {
                if found != expected {
                    wrong.push(format!("\n  {filter} over {surface}: {expected:?} expected, not {found:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.concat());
        // A condition refuses the same.
        for operator in ["like", "ilike"] {
            let condition = json!({ "where": { "text": { operator: null } } });
            let error = admin.post("/api/v1/data/note/query", condition).await.expect_error(400, "invalid_value");
            assert_eq!(error["field"], "text", "{error}");
        }
        // In a query string there is only text, so `null` means null. But a search is always for a text.
        for (query, expected) in [
            ("text[in]=null", "b"),
            ("text[in]=x,null", "bc"),
            ("text[in]=%22null%22", "b"),
            ("text[nin]=null", "ac"),
            ("text[neq]=null", "ac"),
            ("text[like]=null", "a"),
            ("text[ilike]=NULL", "a"),
            ("number[in]=7,null", "ab"),
            ("done[nin]=true,null", "c"),
            ("kinds[in]=null", "b"),
        ] {
            let page = admin.get(&format!("/api/v1/data/note?sort=name&{query}")).await.json();
            assert_eq!(names(&page), expected, "{query}");
        }
    }
}
