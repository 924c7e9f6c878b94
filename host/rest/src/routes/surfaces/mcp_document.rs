//! The MCP surface. Its tools are described by itself.

use serde_json::{Value, json};

use crate::openapi::components::{exact_object, schema};
use crate::openapi::operation::{Caller, Operation, Paths, headers, query_parameter};

const PATH: &str = "/api/v1/mcp";

/// Statuses that are answered in the form of JSON-RPC, and when.
const PROBLEMS: [(u16, &str); 9] = [
    (400, "The message is malformed, or names no session where it has to."),
    (401, "The credential is missing or does not hold."),
    (403, "The caller lacks read on `data`, or the host or the origin is none that is let in."),
    (404, "There is no such session of the caller's."),
    (406, "The answer has a type that the client does not take."),
    (413, "The body is larger than this server takes (`SVC_MAX_BODY_BYTES`)."),
    (415, "The body is not `application/json`."),
    (
        429,
        "The caller or the session has as many streams open as it may have. Too many requests from one address are refused in the form of REST.",
    ),
    (503, "There are as many streams, running requests or bodies in flight as this server allows."),
];

fn problem() -> Value {
    let error = json!({
        "type": "object",
        "properties": {
            "code": { "type": "integer" },
            "message": { "type": "string" },
            "data": { "type": "object", "description": "`{ error, message }` with the code that REST has for it." },
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

/// Adds problems in the form that they have here, in place of those that every operation has.
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
        "description": "The session, as `initialize` answered with it.",
        "schema": { "type": "string" },
    })
}

pub(crate) fn describe(paths: &mut Paths) {
    let message = json!({
        "type": "object",
        "properties": {
            "jsonrpc": { "type": "string", "const": "2.0" },
            "id": {
                "description": "Of requests; a notification has none.",
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
        "description": "A message of JSON-RPC 2.0, or in versions of the protocol that have them an array of messages.",
        "anyOf": [message, { "type": "array", "items": {}, "minItems": 1, "maxItems": 50 }],
    });
    let without = query_parameter(
        "sessions",
        "`none`: `initialize` begins no session, for clients that cannot come back to the same instance.",
        json!({ "type": "string", "enum": ["none"] }),
    );
    let answers = json!({
        "application/json": { "schema": { "type": ["object", "array"], "items": {}, "description": "The message's answer." } },
        "text/event-stream": { "schema": { "type": "string", "description": "Of `subscriptions/listen`: messages." } },
    });
    let send = operation("send", "Send a message to the MCP server")
        .describe("Streamable HTTP of the Model Context Protocol: its tools are records and the actions of blocks, under the caller's permissions. Send `Accept: application/json, text/event-stream`.")
        .parameter(without)
        .parameter(session(false))
        .json_body(message)
        .response(200, json!({ "description": "The answer.", "headers": headers(&[]), "content": answers }))
        .answers_nothing(202, "A notification was taken, or the request was cancelled meanwhile.");
    // After the body, which brings problems of its own.
    paths.add("post", PATH, with_problems(send, &[400, 401, 403, 404, 406, 413, 415, 429, 503]));

    let frames = json!({ "text/event-stream": { "schema": {
        "type": "string",
        "description": "A frame each time the caller's list of tools is another one, and a comment every 15 seconds.",
    } } });
    let listen = operation("listen", "Be told when the list of tools changes")
        .describe("The stream of a session. It ends with the session, and with the caller's rights.")
        .parameter(session(true))
        .response(200, json!({ "description": "The stream.", "headers": headers(&[]), "content": frames }));
    paths.add("get", PATH, with_problems(listen, &[400, 401, 403, 404, 406, 429, 503]));

    let end = operation("end", "End a session")
        .describe("Its streams end with it.")
        .parameter(session(true))
        .answers_nothing(204, "The session is gone.");
    paths.add("delete", PATH, with_problems(end, &[400, 401, 403, 404, 503]));
}
