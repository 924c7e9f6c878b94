//! The GraphQL surface. Its schema is described by itself.

use serde_json::{Value, json};

use crate::openapi::components::schema;
use crate::openapi::operation::{Caller, Operation, Paths, headers, path_parameter, query_parameter};

const PATH: &str = "/api/v1/graphql";

/// Statuses that are answered in GraphQL's form, and when.
const PROBLEMS: [(u16, &str); 12] = [
    (400, "It is no GraphQL request, or, where `application/graphql-response+json` is accepted, cannot be executed."),
    (401, "The credential does not hold, or is needed and missing."),
    (403, "The caller lacks read on `data`, or may not use what is asked for."),
    (404, "There is no such event stream of the caller's."),
    (405, "A mutation or a subscription by GET, or an operation of a stream that was not named."),
    (406, "The answer has a type that the client does not take."),
    (409, "The stream is open already, or has an operation with this id."),
    (413, "The body, or the text of the document, is larger than this server takes."),
    (415, "The body is not `application/json`."),
    (
        429,
        "The caller has as many streams open as one may have. Too many requests from one address are refused in the form of REST.",
    ),
    (500, "The server could not complete the request."),
    (503, "There are as many streams as this server allows, too many bodies in flight, or the database does not answer."),
];

const JSON: &str = "application/json";
const GRAPHQL: &str = "application/graphql-response+json";
const EVENTS: &str = "text/event-stream";

/// `{ data?, errors? }`.
fn result() -> Value {
    let error = json!({
        "type": "object",
        "properties": {
            "message": { "type": "string" },
            "locations": { "type": "array", "items": { "type": "object", "additionalProperties": true } },
            "path": { "type": "array", "items": { "type": ["string", "integer"] } },
            "extensions": {
                "type": "object",
                "description": "`code` is what REST has as `error`; `field`, `issues` and the like as there.",
                "properties": { "code": { "type": "string" } },
                "required": ["code"],
                "additionalProperties": true,
            },
        },
        "required": ["message", "extensions"],
    });
    json!({
        "type": "object",
        "properties": {
            "data": { "type": ["object", "null"], "additionalProperties": true },
            "errors": { "type": "array", "items": error, "minItems": 1 },
        },
    })
}

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(format!("graphql.{id}"), "graphql", summary).called_by(Caller::Granted)
}

fn with_problems(operation: Operation, statuses: &[u16]) -> Operation {
    PROBLEMS.iter().filter(|(status, _)| statuses.contains(status)).fold(operation, |operation, (status, description)| {
        let extra: &[(&str, &str)] = match *status {
            401 => &[("WWW-Authenticate", "WwwAuthenticate")],
            429 | 503 => &[("Retry-After", "RetryAfter")],
            _ => &[],
        };
        let in_json = match *status {
            429 => json!({ "anyOf": [result(), schema("SvcError")] }),
            _ => result(),
        };
        let content = json!({ JSON: { "schema": in_json }, GRAPHQL: { "schema": result() } });
        operation.response(*status, json!({ "description": description, "headers": headers(extra), "content": content }))
    })
}

fn token() -> Value {
    query_parameter(
        "token",
        "A reserved event stream, also as the header `X-GraphQL-Event-Stream-Token`.",
        json!({ "type": "string" }),
    )
}

pub(crate) fn describe(paths: &mut Paths) {
    let request = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1 },
            "operationName": { "type": ["string", "null"] },
            "variables": { "type": ["object", "null"], "additionalProperties": true },
            "extensions": { "type": ["object", "null"], "additionalProperties": true },
        },
        "required": ["query"],
        "examples": [{ "query": "{ svc_objects }" }],
    });
    let answers = json!({
        JSON: { "schema": result() },
        GRAPHQL: { "schema": result() },
        EVENTS: { "schema": { "type": "string", "description": "Results as `graphql-sse` has them." } },
        "text/html": { "schema": { "type": "string", "description": "The explorer, for browsers." } },
    });
    let answered = |description: &str| json!({ "description": description, "headers": headers(&[]), "content": answers });
    let execute = operation("execute", "Execute a GraphQL operation")
        .describe("The schema is the live one as far as the caller may know of it; introspection describes it. Subscriptions, and any operation that is to be streamed, accept `text/event-stream`.")
        .parameter(token())
        .json_body(request)
        .response(200, answered("The result."))
        .answers(202, "The operation runs; its results come on the stream that was named.", json!({ "type": "null" }));
    paths.add("post", PATH, with_problems(execute, &[400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503]));

    let text = |name: &str, description: &str| query_parameter(name, description, json!({ "type": "string" }));
    let query = operation("query", "Execute a GraphQL query, open a reserved stream, or explore")
        .describe("Queries alone; mutations and subscriptions go by POST. A browser gets the explorer.")
        .parameter(text("query", "The document: a query."))
        .parameter(text("operationName", "Which of the document's operations is meant."))
        .parameter(text("variables", "JSON."))
        .parameter(text("extensions", "JSON."))
        .parameter(token())
        .response(200, answered("The result, a stream or a page."));
    paths.add("get", PATH, with_problems(query, &[400, 401, 403, 404, 405, 406, 409, 413, 429, 500, 503]));

    let reserve = operation("reserve", "Reserve an event stream for several operations")
        .describe("The single connection mode of GraphQL-SSE. The reservation holds for a minute until it is opened, on this instance alone.")
        .called_by(Caller::Known)
        .response(201, json!({
            "description": "The token of the stream.",
            "headers": headers(&[]),
            "content": { "text/plain": { "schema": { "type": "string" } } },
        }));
    paths.add("put", PATH, with_problems(reserve, &[400, 401, 403, 406, 413, 429, 503]));

    let stop = operation("stop", "End an operation of a stream")
        .describe("Nothing more of it comes on the stream; what it has written stays written.")
        .parameter(token())
        .parameter(text("operationId", "The operation."))
        .response(
            200,
            json!({
                "description": "It has ended.",
                "headers": headers(&[]),
                "content": { "text/plain": { "schema": { "type": "string" } } },
            }),
        );
    paths.add("delete", PATH, with_problems(stop, &[400, 401, 403, 404, 405, 406, 413, 503]));

    let name = path_parameter("name", "The file, as the explorer's page names it.", json!({ "type": "string" }));
    let file = |description: &str| json!({ "description": description, "headers": headers(&[]) });
    let asset = operation("asset", "Get a file of the explorer")
        .describe("Scripts, styles and fonts, named by their content, so that they can be kept for ever.")
        .parameter(name)
        .response(200, file("The file, compressed."))
        .response(404, file("There is no such file."));
    paths.add("get", format!("{PATH}/assets/{{name}}"), asset.called_by(Caller::Unseen).without(&[401, 500, 503]));
}
