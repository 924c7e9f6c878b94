//! Components that operations share: the error envelope and its responses, headers, credentials, fixed schemas.
//!
//! Names of fixed schemas begin with `Svc`. Objects' names cannot begin with `svc_`, so theirs never clash with these.

use blockbase_app::{NewPermissions, OwnedThing};
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

/// For each status that means the same error in every operation: the component's name, and the reasons for the error.
const PROBLEMS: [(u16, &str, &str); 15] = [
    (400, "BadRequest", "The request is malformed, names something that does not exist, or breaks a rule."),
    (401, "Unauthorized", "The credential is missing or invalid."),
    (
        403,
        "Forbidden",
        "The caller lacks the permission, the origin of the request is not trusted, or the request names a host that is not \
            this server's.",
    ),
    (404, "NotFound", "It does not exist, or the caller may not access it."),
    (409, "Conflict", "The change conflicts with the current state."),
    (412, "PreconditionFailed", "The record is no longer in the state that `If-Match` or `ifVersion` names. Read it again."),
    (
        413,
        "PayloadTooLarge",
        "The body is larger than the operation allows: `SVC_MAX_BODY_BYTES` for records and actions, `SVC_MAX_BLOCK_BYTES` for \
            blocks, 256 KiB for the rest.",
    ),
    (415, "UnsupportedMediaType", "The content type of the body is not the one described here."),
    (422, "UserExists", "A user with this address already exists."),
    (
        429,
        "RateLimited",
        "Too many requests from this address, too many wrong passwords for this account, or too many open streams of this caller.",
    ),
    (
        500,
        "InternalError",
        "The server could not complete the request. For actions, `action_failed` means that the handler \
        failed.",
    ),
    (503, "Unavailable", "The server cannot answer at the moment. The same request may succeed shortly."),
    (504, "ActionTimeout", "The handler exceeded its time limit."),
    (
        507,
        "StorageFull",
        "The disk of the database has too little free space. Reads still work, and so do deletions of records and objects.",
    ),
    (304, "NotModified", "The response would be the one that `If-None-Match` names."),
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

/// An object with exactly these members, all of them required.
pub(crate) fn exact_object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// An object that can have only these members. Those in `required` must be present.
pub(crate) fn members(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

/// A list of `item`.
pub(crate) fn list_of(item: Value) -> Value {
    json!({ "type": "array", "items": item })
}

/// An instant as answers show it.
pub(crate) fn instant() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

/// The pattern of a number as text. Filters and bodies accept it besides the number itself.
pub(crate) const NUMERIC_TEXT: &str = "^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?$";

/// An amount that is added to a number or subtracted from it.
fn change(amount: &Value) -> Value {
    json!({
        "description": "Changes the stored number by an amount, atomically.",
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
                "field": { "type": "string", "description": "The column at fault, if it is known." },
                "issues": {
                    "type": "array",
                    "description": "For an action: every failure of its input. For a record: every field at fault, if there are \
                        several. `error`, `message` and `field` are then those of the first.",
                    "items": { "oneOf": [
                        exact_object(json!({
                            "path": { "type": "string", "description": "A JSON Pointer into the input." },
                            "message": { "type": "string" },
                        })),
                        exact_object(json!({
                            "field": { "type": "string", "description": "The column, or the key that is not a column." },
                            "error": { "type": "string", "description": "The code that this error would have if it were the only \
                                one." },
                            "message": { "type": "string" },
                        })),
                    ] },
                },
                "index": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "The operation at fault, for a batch.",
                },
                "newPermissions": { "allOf": [of::<NewPermissions>()], "description": "With `new_permissions`." },
                "things": {
                    "type": "array",
                    "description": "With `owns_things`: the first hundred things that the user made.",
                    "items": of::<OwnedThing<'_>>(),
                },
                "code": { "type": "string", "description": "The same code as in `error`. It is present under `/api/auth`, and if \
                    an origin is refused." },
            },
            "required": ["error", "message"],
            "additionalProperties": false,
        },
        "SvcWarnings": {
            "type": "array",
            "items": { "type": "string" },
            "description": "Present if something may be a mistake, such as a topic of an object that does not exist or an \
                unknown relation key.",
        },
        "SvcNumericText": {
            "type": "string",
            "description": "A number as text. It is read as that number.",
            "pattern": NUMERIC_TEXT,
        },
        "SvcIntegerChange": change(&json!({ "type": "integer" })),
        "SvcNumberChange": change(&json!({ "type": "number" })),
        "SvcIgnored": { "description": "A system column. A value for it is ignored." },
    });
    let schemas = schemas.as_object().cloned().unwrap_or_default();
    Components {
        schemas,
        parameters: Map::from_iter([(VIEW_AS_PARAMETER.to_owned(), view_as())]),
        responses: responses(),
        headers: json!({
            "RequestId": {
                "description": "The id of the request in the server's log. It is the id that the caller sent in `x-request-id` \
                    if that id is valid, otherwise a new one.",
                "schema": { "type": "string" },
            },
            "WwwAuthenticate": { "description": "The authentication scheme.", "schema": { "type": "string" } },
            "RetryAfter": { "description": "Seconds to wait.", "schema": { "type": "integer", "minimum": 1 } },
            "ETag": { "description": "A strong validator.", "schema": { "type": "string" } },
            "CacheControl": { "description": "How the response may be cached.", "schema": { "type": "string" } },
            "ContentDisposition": { "description": "`attachment`, and the name of the file.", "schema": { "type": "string" } },
            "Vary": { "description": "The request headers that the response depends on.", "schema": { "type": "string" } },
            "Location": { "description": "The page to go to.", "schema": { "type": "string" } },
            "SetCookie": { "description": "The session cookie.", "schema": { "type": "string" } },
            "SetAuthToken": { "description": "The session's token.", "schema": { "type": "string" } },
        }),
        security_schemes: json!({
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A session token from sign-up or sign-in, or an API key (`svc_…`).",
            },
            "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key (`svc_…`)." },
            "session": {
                "type": "apiKey",
                "in": "cookie",
                "name": cookie_name,
                "description": "The signed cookie that sign-up and sign-in set. A write with it has to come from a trusted origin.",
            },
            "ticket": {
                "type": "apiKey",
                "in": "query",
                "name": "ticket",
                "description": "A ticket from `POST /api/v1/events/ticket`. It opens one event stream.",
            },
        }),
    }
}
