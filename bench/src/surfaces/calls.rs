//! The same reads and writes by REST, GraphQL and MCP, with the same session and the same fields.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Options;
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::fill::fill;
use crate::load::{MakeRequest, request_with};
use crate::report::Table;
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::{always, get_by_id, pick};

/// All fields of a record, as in REST.
const TASK: &str = "id title done priority code project_id owner_id created_at updated_at created_by updated_by";
const NAMED: &str = "id name created_at updated_at created_by updated_by";
const PAGE: &str = "pagination { page pageSize totalCount totalPages hasNextPage hasPreviousPage }";

pub(super) async fn measure(options: &Options, cluster: Option<&Cluster>) -> (String, Table) {
    let mut subject = Subject::start(&options.shared.binary, cluster, "surfaces", &[]).await;
    prepare(&mut subject.side, options.rows).await;
    subject.settle().await;
    tokio::time::sleep(REST).await;
    let side = &subject.side;
    let mut rows = Vec::new();
    for connections in [1, options.connections] {
        for (name, contenders) in contests(side) {
            eprintln!("{name}, {connections} connections");
            let (surfaces, mut contenders): (Vec<&str>, Vec<Contender>) =
                contenders.into_iter().map(|(surface, make)| (surface, Contender::new(&side.address, make))).unzip();
            take(&mut contenders, connections, options.seconds).await;
            for (surface, contender) in surfaces.iter().zip(&contenders) {
                let mut row = vec![name.to_owned(), connections.to_string(), (*surface).to_owned()];
                row.extend(contender.cells());
                row.push(contender.ratio(&contenders[0]));
                rows.push(row);
            }
        }
    }
    subject.end().await;
    let head = vec!["operation", "connections", "surface", "/s", "p50 µs", "p99 µs", "of REST"];
    ("the same operation by each surface".to_owned(), Table { head, rows })
}

/// Prepares tasks with projects. The newest tasks also have owners.
async fn prepare(side: &mut Side, rows: u32) {
    side.post("/api/v1/objects", &json!({ "name": "person", "fields": [{ "name": "name", "type": "text" }] })).await;
    let owner = json!({ "name": "owner", "kind": "many_to_one", "source": "task", "target": "person" });
    side.post("/api/v1/relationships", &owner).await;
    fill(side, rows).await;
    for (number, id) in side.ids.iter().rev().take(50).enumerate() {
        let person = side.post("/api/v1/data/person", &json!({ "name": format!("person {number}") })).await;
        let body = json!({ "owner_id": person["data"]["id"] }).to_string();
        let path = format!("{}/{id}", side.items);
        side.send(&crate::load::request("PATCH", &path, side.token.as_deref(), Some(&body))).await;
    }
}

type Contest = (&'static str, Vec<(&'static str, MakeRequest)>);

fn contests(side: &Side) -> Vec<Contest> {
    let list = format!("{{ task {{ data {{ {TASK} }} {PAGE} }} }}");
    let expanded = format!("{{ task {{ data {{ {TASK} project {{ {NAMED} }} owner {{ {NAMED} }} }} {PAGE} }} }}");
    let narrow = "{ task { data { id title project { name } owner { name } } } }".to_owned();
    let path = |query: &str| format!("{}{query}", side.items);
    vec![
        (
            "list of 25",
            vec![
                ("REST", always(side, "GET", &path(""), None)),
                ("GraphQL", graphql(side, &list)),
                ("MCP", tool(side, "query_data", json!({ "object_name": "task" }))),
            ],
        ),
        (
            "list of 25 with two relations",
            vec![
                ("REST", always(side, "GET", &path("?expand=project,owner"), None)),
                ("GraphQL", graphql(side, &expanded)),
                ("GraphQL, five fields", graphql(side, &narrow)),
                ("MCP", tool(side, "query_data", json!({ "object_name": "task", "expand": "project,owner" }))),
            ],
        ),
        (
            "by id",
            vec![
                ("REST", get_by_id(side)),
                (
                    "GraphQL",
                    by_id(
                        side,
                        move |id| {
                            let query = format!("query($id: ID!) {{ task_by_id(id: $id) {{ {TASK} }} }}");
                            json!({ "query": query, "variables": { "id": id } })
                        },
                        "/api/v1/graphql",
                    ),
                ),
                ("MCP", by_id(side, |id| call("get_record", &json!({ "object_name": "task", "id": id })), "/api/v1/mcp")),
            ],
        ),
        (
            "update",
            vec![
                ("REST", updates(side, |_, body| body, "")),
                (
                    "GraphQL",
                    updates(
                        side,
                        |id, body| {
                            let query = format!(
                                "mutation($id: ID!, $input: TaskUpdateInput) {{ update_task(id: $id, input: $input) {{ {TASK} }} }}"
                            );
                            json!({ "query": query, "variables": { "id": id, "input": body } })
                        },
                        "/api/v1/graphql",
                    ),
                ),
                (
                    "MCP",
                    updates(
                        side,
                        |id, body| call("update_record", &json!({ "object_name": "task", "id": id, "data": body })),
                        "/api/v1/mcp",
                    ),
                ),
            ],
        ),
    ]
}

fn graphql(side: &Side, query: &str) -> MakeRequest {
    always(side, "POST", "/api/v1/graphql", Some(&json!({ "query": query }).to_string()))
}

/// A call of a tool, from a client without a session.
fn call(name: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
}

fn tool(side: &Side, name: &str, arguments: Value) -> MakeRequest {
    let bytes = sent(side, "POST", "/api/v1/mcp", &call(name, &arguments));
    Arc::new(move |_, _| bytes.clone())
}

fn sent(side: &Side, method: &str, path: &str, body: &Value) -> Vec<u8> {
    let headers = match path {
        "/api/v1/mcp" => format!(
            "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-06-18\r\nhost: {}\r\n",
            side.address
        ),
        _ => "host: 127.0.0.1\r\n".to_owned(),
    };
    request_with(method, path, side.token.as_deref(), &headers, Some(&body.to_string()))
}

fn by_id(side: &Side, body: impl Fn(&str) -> Value + Send + Sync + 'static, path: &'static str) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number, side.ids.len())].to_string();
        sent(&side, "POST", path, &body(&id))
    })
}

/// Sets another priority in one record after the other. If `path` is empty, it uses the record's own path.
fn updates(side: &Side, body: impl Fn(&str, Value) -> Value + Send + Sync + 'static, path: &'static str) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number, side.ids.len())].to_string();
        let changes = json!({ "priority": number % 1000 });
        match path {
            "" => sent(&side, "PATCH", &format!("{}/{id}", side.items), &body(&id, changes)),
            _ => sent(&side, "POST", path, &body(&id, changes)),
        }
    })
}
