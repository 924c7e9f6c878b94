//! What belongs to the caller: permissions, preferences.

use blockbase_app::Grant;
use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::components::exact_object;
use crate::openapi::operation::{Caller, Operation, Paths};

pub(crate) fn describe(paths: &mut Paths) {
    let permissions = Operation::new("auth.permissions", "auth", "List what the caller may do")
        .describe(
            "The grants of all roles together, each resource once for all rows and once for own rows. A named resource has the rights of \
             `*` in it, so look for the resource, and for `*` only where it is not listed. Of an API key it shows what its maker's \
             rights leave.",
        )
        .answers_data(
            200,
            "The rights.",
            exact_object(json!({
                "enforced": { "type": "boolean", "description": "Whether permissions are enforced at all." },
                "permissions": { "type": "array", "items": of::<Grant>() },
            })),
        );
    paths.add("get", "/api/v1/me/permissions", permissions);

    let preferences = || {
        json!({
            "type": "object",
            "additionalProperties": true,
            "description": "Any members; the service does not look at them.",
        })
    };
    let read = Operation::new("auth.getPreferences", "auth", "Get what the user keeps")
        .describe("A JSON object of the user's own, an empty one at first. The console keeps saved views in it.")
        .called_by(Caller::Session)
        .answers_data(200, "The preferences.", preferences());
    paths.add("get", "/api/v1/me/preferences", read);
    let changes = json!({
        "type": "object",
        "maxProperties": 1000,
        "additionalProperties": true,
        "description": "Members to set, whole; null removes one.",
    });
    let change = Operation::new("auth.updatePreferences", "auth", "Change what the user keeps")
        .describe(
            "Members at the top are replaced one by one; the others stay. All of them together have 64 KiB at most as JSON without \
             spaces, those of a guest 4 KiB, and 1,000 members; past that 413, and nothing is changed. They are deleted with the \
             user. A guest who signs up takes them along.",
        )
        .called_by(Caller::Session)
        .json_body(changes)
        .answers_data(200, "All preferences after the change.", preferences());
    paths.add("patch", "/api/v1/me/preferences", change);
}
