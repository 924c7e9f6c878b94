//! Describes the GraphQL surface. GraphQL's introspection describes the schema.

use serde_json::{Value, json};

use crate::openapi::components::schema;
use crate::openapi::operation::{Caller, Operation, Paths, headers, path_parameter, query_parameter};

const PATH: &str = "/api/v1/graphql";

/// Statuses of responses in GraphQL's form, and the reasons for them.
const PROBLEMS: [(u16, &str); 12] = [
    (
        400,
        "The request is not a GraphQL request. If the client accepts `application/graphql-response+json`, also a request that \
        cannot be executed.",
    ),
    (401, "The credential is invalid, or it is needed and missing."),
    (403, "The caller lacks read on `data`, or may not use what the request asks for."),
    (404, "The caller has no event stream with this token."),
    (405, "A mutation or a subscription by GET, or an operation on a stream that the request does not name."),
    (406, "The client does not accept the content type of the response."),
    (409, "The stream is already open, or it already has an operation with this id."),
    (413, "The body, or the text of the document, is larger than this server allows."),
    (415, "The body is not `application/json`."),
    (
        429,
        "The caller has as many open streams as one caller may have. Too many requests from one address get an error in the \
            form of REST.",
    ),
    (500, "The server could not complete the request."),
    (503, "The server has as many streams as it allows, it has too many bodies in flight, or the database does not answer."),
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
                "description": "`code` is the same as `error` in REST. `field`, `issues` and the other members are as in REST.",
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
        "The token of a reserved event stream. The header `X-GraphQL-Event-Stream-Token` can contain it instead.",
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
        EVENTS: { "schema": { "type": "string", "description": "Results in the format of `graphql-sse`." } },
        "text/html": { "schema": { "type": "string", "description": "The explorer, for browsers." } },
    });
    let answered = |description: &str| json!({ "description": description, "headers": headers(&[]), "content": answers });
    let execute = operation("execute", "Execute a GraphQL operation")
        .describe(
            "The schema is the live one, limited to what the caller may know of. Introspection describes it. Accept \
            `text/event-stream` for subscriptions and for any other operation to stream.",
        )
        .parameter(token())
        .json_body(request)
        .response(200, answered("The result."))
        .answers(202, "The operation runs. Its results come on the named stream.", json!({ "type": "null" }));
    paths.add("post", PATH, with_problems(execute, &[400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503]));

    let text = |name: &str, description: &str| query_parameter(name, description, json!({ "type": "string" }));
    let query = operation("query", "Execute a GraphQL query, open a reserved stream, or open the explorer")
        .describe("Only queries are allowed. Send mutations and subscriptions by POST. A browser gets the explorer.")
        .parameter(text("query", "The document with the query."))
        .parameter(text("operationName", "The name of the operation in the document to execute."))
        .parameter(text("variables", "JSON."))
        .parameter(text("extensions", "JSON."))
        .parameter(token())
        .response(200, answered("The result, a stream, or the explorer's page."));
    paths.add("get", PATH, with_problems(query, &[400, 401, 403, 404, 405, 406, 409, 413, 429, 500, 503]));

    let reserve = operation("reserve", "Reserve an event stream for several operations")
        .describe(
            "Uses the single connection mode of GraphQL-SSE. The reservation is valid on this instance alone. It expires \
            if the stream is not opened within a minute.",
        )
        .called_by(Caller::Known)
        .response(
            201,
            json!({
                "description": "The token of the stream.",
                "headers": headers(&[]),
                "content": { "text/plain": { "schema": { "type": "string" } } },
            }),
        );
    paths.add("put", PATH, with_problems(reserve, &[400, 401, 403, 406, 413, 429, 503]));

    let stop = operation("stop", "End an operation of a stream")
        .describe("The stream sends no more results of the operation. Data that the operation has written stays written.")
        .parameter(token())
        .parameter(text("operationId", "The id of the operation."))
        .response(
            200,
            json!({
                "description": "The operation has ended.",
                "headers": headers(&[]),
                "content": { "text/plain": { "schema": { "type": "string" } } },
            }),
        );
    paths.add("delete", PATH, with_problems(stop, &[400, 401, 403, 404, 405, 406, 413, 503]));

    let name = path_parameter("name", "The file, as the explorer's page names it.", json!({ "type": "string" }));
    let file = |description: &str| json!({ "description": description, "headers": headers(&[]) });
    let asset = operation("asset", "Get a file of the explorer")
        .describe("Scripts, styles and fonts. Their names depend on their content, so clients can keep them forever.")
        .parameter(name)
        .response(200, file("The file, compressed."))
        .response(404, file("There is no such file."));
    paths.add("get", format!("{PATH}/assets/{{name}}"), asset.called_by(Caller::Unseen).without(&[401, 500, 503]));
}
