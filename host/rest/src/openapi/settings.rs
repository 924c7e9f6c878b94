//! The service itself: what everybody may know, how it is configured, how it is.

use serde_json::{Value, json};

use super::components::{exact_object, instant, schema};
use super::operation::{Caller, Operation, Paths};

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn maybe_count() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0 })
}

fn list_of(item: Value) -> Value {
    json!({ "type": "array", "items": item })
}

pub(super) fn schemas() -> Value {
    let (text, flag) = (json!({ "type": "string" }), json!({ "type": "boolean" }));
    let maybe_instant = json!({ "type": ["string", "null"], "format": "date-time" });
    let minutes = json!({ "type": "array", "items": count(), "minItems": 60, "maxItems": 60 });
    let methods = json!({ "type": "string", "enum": ["password", "anonymous", "passkey", "magic-link", "email-otp"] });
    json!({
        "SvcInstance": exact_object(json!({
            "needsAdmin": { "type": "boolean", "description": "Nobody has signed up yet; the first account becomes admin." },
            "setupToken": { "type": "boolean", "description": "The first sign-up has to send `x-setup-token`." },
            "signUp": { "type": "boolean", "description": "People may sign up." },
            "anonymous": { "type": "boolean", "description": "Guests may sign in." },
            "methods": list_of(methods),
            "providers": list_of(exact_object(json!({ "id": text, "name": text }))),
        })),
        "SvcSetting": exact_object(json!({
            "name": { "type": "string", "examples": ["SVC_LISTEN"] },
            "value": {
                "type": ["string", "null"],
                "description": "What holds. Null for a secret, and where nothing holds. Addresses are without what may be a secret.",
            },
            "secret": flag,
            "isSet": { "type": "boolean", "description": "Whether somebody has set it, or a file holds it." },
            "source": { "type": "string", "enum": ["default", "environment", "file"] },
            "description": text,
        })),
        "SvcStatus": exact_object(json!({
            "version": text,
            "engine": { "type": "string", "enum": ["sqlite", "postgres"] },
            "engineVersion": text,
            "startedAt": instant(),
            "now": instant(),
            "uptimeSeconds": count(),
            "instances": list_of(exact_object(json!({
                "id": { "type": "string", "format": "uuid" },
                "version": text,
                "startedAt": instant(),
                "seenAt": instant(),
                "isThis": { "type": "boolean", "description": "The instance that gave this answer." },
            }))),
            "database": exact_object(json!({
                "sizeBytes": count(),
                "freeBytes": maybe_count(),
                "totalBytes": maybe_count(),
            })),
            "outbox": exact_object(json!({
                "events": count(),
                "sizeBytes": count(),
                "maxBytes": { "type": ["integer", "null"], "minimum": 1, "description": "Null: no bound." },
            })),
            "deliveries": exact_object(json!({
                "pending": { "type": "integer", "minimum": 0, "description": "Counted up to 100,000 for each consumer." },
                "failed": { "type": "integer", "minimum": 0, "description": "To be tried again, of the newest 100,000 that failed." },
                "dead": { "type": "integer", "minimum": 0, "description": "Given up, of the newest 100,000 that failed." },
                "oldestPendingAt": maybe_instant,
            })),
            "streams": exact_object(json!({ "open": count(), "max": count() })),
            "blocks": exact_object(json!({
                "installed": count(),
                "failing": {
                    "type": "array",
                    "description": "Blocks that are suspended, or whose last call on this instance failed. Empty without read on `blocks`.",
                    "items": exact_object(json!({ "name": text, "error": text, "at": instant() })),
                },
            })),
            "activity": {
                "type": "object",
                "description": "Of this instance, a number for each minute of the last hour; the last one is the current minute.",
                "required": ["from", "stepSeconds", "requests", "writes", "errors"],
                "properties": {
                    "from": instant(),
                    "stepSeconds": { "type": "integer", "const": 60 },
                    "requests": minutes,
                    "writes": minutes,
                    "errors": minutes,
                },
                "additionalProperties": false,
            },
            "health": list_of(exact_object(json!({ "check": text, "ok": flag, "detail": text }))),
        })),
    })
}

pub(super) fn describe(paths: &mut Paths) {
    let instance = Operation::new("service.instance", "service", "Ask how people sign in here")
        .describe("For whatever shows a sign-in. It looks at no credential.")
        .called_by(Caller::Unseen)
        .without(&[401])
        .answers(200, "What is open.", schema("SvcInstance"));
    paths.add("get", "/api/v1/instance", instance);

    let settings = Operation::new("service.settings", "service", "List the settings")
        .describe("Every environment variable of the server and what holds. Needs read on `settings`. No secret is shown.")
        .answers_data(200, "The settings.", list_of(schema("SvcSetting")));
    paths.add("get", "/api/v1/settings", settings);

    let status = Operation::new("service.status", "service", "Ask how the server is")
        .describe(
            "Needs read on `settings`. Numbers of the database are a few seconds old, and the size of a Postgres database up to a \
             minute. Requests are those below `/api`; errors are answers of 500 and above.",
        )
        .answers_data(200, "How it is.", schema("SvcStatus"));
    paths.add("get", "/api/v1/status", status);
}
