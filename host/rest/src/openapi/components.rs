//! What operations share: the error envelope and its responses, headers, credentials, fixed schemas.
//!
//! Names of fixed schemas begin with `Svc`. Objects' names cannot begin with `svc_`, so theirs never clash with these.

use blockbase_app::NewPermissions;
use serde_json::{Map, Value, json};

use crate::openapi::answers::of;
use crate::openapi::operation::{VIEW_AS_PARAMETER, headers, view_as};

/// The reusable parts of the document.
pub(crate) struct Components {
    pub(crate) schemas: Map<String, Value>,
    pub(crate) parameters: Map<String, Value>,
    responses: Map<String, Value>,
    headers: Value,
    security_schemes: Value,
}

impl Components {
    pub(crate) fn into_value(self) -> Value {
        json!({
            "schemas": self.schemas,
            "parameters": self.parameters,
            "responses": self.responses,
            "headers": self.headers,
            "securitySchemes": self.security_schemes,
        })
    }
}

/// `{ "$ref": "#/components/…" }`.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

pub(crate) fn schema(name: &str) -> Value {
    reference("schemas", name)
}

/// Statuses that are errors everywhere: the component's name, and when they are answered.
const PROBLEMS: [(u16, &str, &str); 15] = [
    (400, "BadRequest", "The request is malformed, names something that does not exist, or breaks a rule."),
    (401, "Unauthorized", "The credential is missing or does not hold."),
    (
        403,
        "Forbidden",
        "The caller lacks the permission, or the request comes from an origin that is not trusted or names a host that is not this server's.",
    ),
    (404, "NotFound", "There is no such thing within the caller's reach."),
    (409, "Conflict", "What is there already stands against the change."),
    (412, "PreconditionFailed", "The record is in another state than the one that `If-Match` names. Read it again."),
    (
        413,
        "PayloadTooLarge",
        "The body is larger than the operation takes: `SVC_MAX_BODY_BYTES` for records and actions, `SVC_MAX_BLOCK_BYTES` for blocks, 256 KiB for the rest.",
    ),
    (415, "UnsupportedMediaType", "The body's content type is another than the one described here."),
    (422, "UserExists", "There is a user with this address already."),
    (
        429,
        "RateLimited",
        "Too many requests from this address, too many wrong passwords for this account, or too many open streams of this caller.",
    ),
    (500, "InternalError", "The server could not complete the request; for actions `action_failed`: the handler failed."),
    (503, "Unavailable", "The server cannot answer at the moment. The same request may succeed shortly."),
    (504, "ActionTimeout", "The handler took longer than it is given."),
    (
        507,
        "StorageFull",
        "Too little room is left where the database lies. Reads go on, and so do deletions of records and objects.",
    ),
    (304, "NotModified", "The answer is the one that `If-None-Match` names."),
];

/// The shared response of a status.
pub(crate) fn response_name(status: u16) -> &'static str {
    PROBLEMS.iter().find(|(known, ..)| *known == status).map_or("InternalError", |(_, name, _)| *name)
}

fn responses() -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, name, description) in PROBLEMS {
        let extra: &[(&str, &str)] = match status {
            304 => &[("ETag", "ETag"), ("Cache-Control", "CacheControl"), ("Vary", "Vary")],
            401 => &[("WWW-Authenticate", "WwwAuthenticate")],
            429 | 503 => &[("Retry-After", "RetryAfter")],
            _ => &[],
        };
        let mut response = json!({ "description": description, "headers": headers(extra) });
        if status >= 400 {
            response["content"] = json!({ "application/json": { "schema": schema("SvcError") } });
        }
        responses.insert(name.to_owned(), response);
    }
    responses
}

/// An object that has nothing but these members, all of them required.
pub(crate) fn exact_object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// An object of these members, `required` of them, and no others.
pub(crate) fn members(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

/// A list of such things.
pub(crate) fn list_of(item: Value) -> Value {
    json!({ "type": "array", "items": item })
}

/// An instant as answers show it.
pub(crate) fn instant() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

/// Text of a number, as filters and bodies take it beside the number itself.
pub(crate) const NUMERIC_TEXT: &str = "^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?$";

/// An amount that is added to a number, or taken off it.
fn change(amount: &Value) -> Value {
    json!({
        "description": "Changes the number by an amount, in the statement itself.",
        "oneOf": [exact_object(json!({ "$inc": amount })), exact_object(json!({ "$dec": amount }))],
    })
}

pub(crate) fn shared(cookie_name: &str) -> Components {
    let schemas = json!({
        "SvcError": {
            "type": "object",
            "description": "Every error has this form.",
            "properties": {
                "error": { "type": "string", "description": "A stable code.", "examples": ["invalid_value"] },
                "message": { "type": "string", "description": "A sentence for people." },
                "field": { "type": "string", "description": "The column at fault, where it is known." },
                "issues": {
                    "type": "array",
                    "description": "Every failure of an action's input. Of a record: every field at fault, where there are several; `error`, `message` and `field` are those of the first.",
                    "items": { "oneOf": [
                        exact_object(json!({
                            "path": { "type": "string", "description": "A JSON Pointer into the input." },
                            "message": { "type": "string" },
                        })),
                        exact_object(json!({
                            "field": { "type": "string", "description": "The column, or the key that is none." },
                            "error": { "type": "string", "description": "The code that it would have alone." },
                            "message": { "type": "string" },
                        })),
                    ] },
                },
                "newPermissions": { "allOf": [of::<NewPermissions>()], "description": "With `new_permissions`." },
                "things": {
                    "type": "array",
                    "description": "With `owns_things`: what the user made, the first hundred.",
                    "items": exact_object(json!({
                        "resource": { "type": "string", "enum": ["api_keys", "webhooks", "subscriptions", "tasks", "blocks"] },
                        "id": { "type": "string" },
                        "name": { "type": ["string", "null"] },
                    })),
                },
                "code": { "type": "string", "description": "Under `/api/auth`, and where an origin is refused: the code once more." },
            },
            "required": ["error", "message"],
            "additionalProperties": false,
        },
        "SvcWarnings": {
            "type": "array",
            "items": { "type": "string" },
            "description": "There where something may not be as it was meant: a topic of an object that does not exist, a relation key that is none.",
        },
        "SvcNumericText": {
            "type": "string",
            "description": "A number as text: read as the number that it shows.",
            "pattern": NUMERIC_TEXT,
        },
        "SvcIntegerChange": change(&json!({ "type": "integer" })),
        "SvcNumberChange": change(&json!({ "type": "number" })),
        "SvcIgnored": { "description": "A system column: whatever is sent for it is ignored." },
    });
    let mut schemas = schemas.as_object().cloned().unwrap_or_default();
    schemas.extend(crate::openapi::answers::schemas());
    Components {
        schemas,
        parameters: Map::from_iter([(VIEW_AS_PARAMETER.to_owned(), view_as())]),
        responses: responses(),
        headers: json!({
            "RequestId": {
                "description": "Names the request in the server's log: the caller's own id where it sent a sane one, else a new one.",
                "schema": { "type": "string" },
            },
            "WwwAuthenticate": { "description": "The scheme of credentials.", "schema": { "type": "string" } },
            "RetryAfter": { "description": "Seconds to wait.", "schema": { "type": "integer", "minimum": 1 } },
            "ETag": { "description": "A strong validator.", "schema": { "type": "string" } },
            "CacheControl": { "description": "How the answer may be kept.", "schema": { "type": "string" } },
            "ContentDisposition": { "description": "`attachment`, and the name of the file.", "schema": { "type": "string" } },
            "Vary": { "description": "What the answer depends on.", "schema": { "type": "string" } },
            "SetCookie": { "description": "The session cookie.", "schema": { "type": "string" } },
            "SetAuthToken": { "description": "The session's token.", "schema": { "type": "string" } },
        }),
        security_schemes: json!({
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A session's token as sign-up and sign-in answer it, or an API key (`svc_…`).",
            },
            "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key (`svc_…`)." },
            "session": {
                "type": "apiKey",
                "in": "cookie",
                "name": cookie_name,
                "description": "The signed cookie that sign-up and sign-in set. A write with it has to come from a trusted origin.",
            },
        }),
    }
}
