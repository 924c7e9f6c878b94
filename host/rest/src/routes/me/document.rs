//! Describes the caller's permissions and preferences.

use blockbase_app::schema::json::Members;
use blockbase_app::{GUEST_PREFERENCES_BYTES_MAX, OwnPermissions, PREFERENCES_BYTES_MAX, PREFERENCES_KEYS_MAX};
use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Caller, Operation, Paths};

pub(crate) fn describe(paths: &mut Paths) {
    let permissions = Operation::new("auth.permissions", "auth", "List the caller's rights")
        .describe(
            "Shows the grants of all roles of the caller together. Each resource can appear twice: for all rows and for own \
            rows. The entry of a named resource includes the rights of `*`. Look for the resource first, and for `*` only if the \
            resource is not listed. For an API key the grants are limited to the rights of its maker.",
        )
        .answers_data(200, "The rights.", of::<OwnPermissions>());
    paths.add("get", "/api/v1/me/permissions", permissions);

    let preferences = || {
        json!({
            "type": "object",
            "additionalProperties": true,
            "description": "Any members. The service does not use them.",
        })
    };
    let read = Operation::new("auth.getPreferences", "auth", "Get the user's preferences")
        .describe("A JSON object that belongs to the user. It is empty at first. The console keeps saved views in it.")
        .called_by(Caller::Session)
        .answers_data(200, "The preferences.", preferences());
    paths.add("get", "/api/v1/me/preferences", read);
    let mut changes = body_of::<Members>();
    changes["description"] = json!("Members to set. Each value replaces the whole member, and null removes it.");
    let change = Operation::new("auth.updatePreferences", "auth", "Change the user's preferences")
        .describe(format!(
            "Replaces the top-level members that the body names. The others stay. All preferences together have at most \
                {PREFERENCES_KEYS_MAX} members and {} KiB as JSON without spaces, or {} KiB for a guest. Beyond that the response \
                is 413, and nothing changes. Preferences are deleted with the user. A guest who signs up keeps them.",
            PREFERENCES_BYTES_MAX / 1024,
            GUEST_PREFERENCES_BYTES_MAX / 1024,
        ))
        .called_by(Caller::Session)
        .json_body(changes)
        .answers_data(200, "All preferences after the change.", preferences());
    paths.add("patch", "/api/v1/me/preferences", change);
}
