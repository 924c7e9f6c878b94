//! Describes the MCP surface. The surface itself describes its tools.

use serde_json::{Value, json};

use crate::openapi::components::{exact_object, schema};
use crate::openapi::operation::{Caller, Operation, Paths, headers, query_parameter};

const PATH: &str = "/api/v1/mcp";

/// Statuses of responses in the form of JSON-RPC, and the reasons for them.
const PROBLEMS: [(u16, &str); 9] = [
    (400, "The message is malformed, or it needs a session and does not name one."),
    (401, "The credential is missing or invalid."),
    (403, "The caller lacks read on `data`, or the host or the origin is not allowed."),
    (404, "The caller has no session with this id."),
    (406, "The client does not accept the content type of the response."),
    (413, "The body is larger than this server allows (`SVC_MAX_BODY_BYTES`)."),
    (415, "The body is not `application/json`."),
    (
        429,
        "The caller or the session has as many open streams as it may have. Too many requests from one address get an error in \
            the form of REST.",
    ),
    (503, "The server has as many streams, running requests or bodies in flight as it allows."),
];

fn problem() -> Value {
    let error = json!({
        "type": "object",
        "properties": {
            "code": { "type": "integer" },
            "message": { "type": "string" },
            "data": { "type": "object", "description": "`{ error, message }` with the same code as in REST." },
        },
        "required": ["code", "message"],
    });
    exact_object(json!({
        "jsonrpc": { "type": "string", "const": "2.0" },
        "id": { "type": ["string", "integer", "null"] },
        "error": error,
    }))
}

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(format!("mcp.{id}"), "mcp", summary).called_by(Caller::Granted)
}

/// Replaces the errors that every operation has by errors in the form of JSON-RPC.
fn with_problems(operation: Operation, statuses: &[u16]) -> Operation {
    PROBLEMS.iter().filter(|(status, _)| statuses.contains(status)).fold(operation, |operation, (status, description)| {
        let extra: &[(&str, &str)] = match *status {
            401 => &[("WWW-Authenticate", "WwwAuthenticate")],
            429 | 503 => &[("Retry-After", "RetryAfter")],
            _ => &[],
        };
        let schema = match *status {
            429 => json!({ "anyOf": [problem(), schema("SvcError")] }),
            _ => problem(),
        };
        let content = json!({ "application/json": { "schema": schema } });
        let response = json!({ "description": description, "headers": headers(extra), "content": content });
        operation.response(*status, response)
    })
}

fn session(is_needed: bool) -> Value {
    json!({
        "name": "Mcp-Session-Id",
        "in": "header",
        "required": is_needed,
        "description": "The id of the session, from the response to `initialize`.",
        "schema": { "type": "string" },
    })
}

pub(crate) fn describe(paths: &mut Paths) {
    let message = json!({
        "type": "object",
        "properties": {
            "jsonrpc": { "type": "string", "const": "2.0" },
            "id": {
                "description": "The id of a request. A notification has no id.",
                "type": ["string", "integer"],
                "maxLength": 1022,
                "minimum": i64::MIN,
                "maximum": i64::MAX,
            },
            "method": { "type": "string" },
            "params": { "type": ["object", "null"] },
        },
        "required": ["jsonrpc", "method"],
        "examples": [{ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }],
    });
    let message = json!({
        "description": "A message of JSON-RPC 2.0. Some versions of the protocol also allow an array of messages.",
        "anyOf": [message, { "type": "array", "items": {}, "minItems": 1, "maxItems": 50 }],
    });
    let without = query_parameter(
        "sessions",
        "With `none`, `initialize` begins no session. Use it for clients whose requests do not all reach the same instance.",
        json!({ "type": "string", "enum": ["none"] }),
    );
    let answers = json!({
        "application/json": { "schema": { "type": ["object", "array"], "items": {}, "description": "The response." } },
        "text/event-stream": { "schema": { "type": "string", "description": "For `subscriptions/listen`: messages." } },
    });
    let send = operation("send", "Send a message to the MCP server")
        .describe(
            "The Streamable HTTP transport of the Model Context Protocol. Its tools work on records and call the actions \
            of blocks, with the caller's permissions. Send `Accept: application/json, text/event-stream`.",
        )
        .parameter(without)
        .parameter(session(false))
        .json_body(message)
        .response(200, json!({ "description": "The answer.", "headers": headers(&[]), "content": answers }))
        .answers_nothing(202, "The notification was accepted, or the request was cancelled in the meantime.");
    // This comes after the body, because `body` adds errors in the form of REST.
    paths.add("post", PATH, with_problems(send, &[400, 401, 403, 404, 406, 413, 415, 429, 503]));

    let frames = json!({ "text/event-stream": { "schema": {
        "type": "string",
        "description": "A frame each time the caller's list of tools changes, and a comment every 15 seconds.",
    } } });
    let listen = operation("listen", "Follow changes of the list of tools")
        .describe("Opens the stream of a session. The stream ends when the session ends or the caller loses the right to it.")
        .parameter(session(true))
        .response(200, json!({ "description": "The stream.", "headers": headers(&[]), "content": frames }));
    paths.add("get", PATH, with_problems(listen, &[400, 401, 403, 404, 406, 429, 503]));

    let end = operation("end", "End a session")
        .describe("The streams of the session end too.")
        .parameter(session(true))
        .answers_nothing(204, "The session has ended.");
    paths.add("delete", PATH, with_problems(end, &[400, 401, 403, 404, 503]));
}
