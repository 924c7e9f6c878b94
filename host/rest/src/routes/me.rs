//! `GET /api/v1/me` and the paths below it, the claim of the account that was made at boot, and the data about this instance that
//! is public.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Error;
use blockbase_app::schema::json::{Members, holds_nul, parse_members};
use blockbase_app::{
    GUEST_PREFERENCES_BYTES_MAX, InstanceAnswer, MeAnswer, OwnPermissions, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN,
    PREFERENCES_BYTES_MAX, PREFERENCES_KEYS_MAX, USER_NAME_CHARS_MAX, run_offloaded,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Caller, Operation, Paths};
use crate::request::admission::{Claiming, Granted, Person};
use crate::request::body::{JsonBody, JsonText};
use crate::request::extract::{Authenticated, Presented};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/instance", instance)
        .get("/api/v1/me", me_answer)
        .get("/api/v1/me/permissions", permissions)
        .get("/api/v1/me/preferences", preferences)
        .patch("/api/v1/me/preferences", change_preferences)
        .post("/api/v1/admin/claim", claim)
}

/// Shows the caller's identity. An invalid credential gets a normal response, not an error.
pub(crate) async fn me_answer(State(state): State<AppState>, Presented(credentials): Presented) -> Result<Response, ApiError> {
    let me_answer = state.app.me(&credentials).await?;
    let json = me_answer.as_deref().unwrap_or(r#"{"authenticated":false}"#);
    Ok(render::json_bytes(StatusCode::OK, json.as_bytes().to_vec()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimBody {
    #[schemars(length(min = 1, max = USER_NAME_CHARS_MAX))]
    name: String,
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_CHARS_MAX))]
    new_password: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct ClaimedAnswer {
    #[schemars(extend("const" = true))]
    claimed: bool,
}

pub(crate) async fn claim(
    State(state): State<AppState>,
    Claiming(credentials): Claiming,
    JsonBody(body): JsonBody<ClaimBody>,
) -> Result<Response, ApiError> {
    state.app.claim(&credentials, body.name, body.new_password).await?;
    Ok(render::data(StatusCode::OK, &ClaimedAnswer { claimed: true }))
}

/// Shows what a client needs to know before somebody signs in. It ignores credentials.
pub(crate) async fn instance(State(state): State<AppState>) -> Result<Response, ApiError> {
    Ok(render::json(StatusCode::OK, &state.app.instance().await?))
}

/// Lists the caller's rights.
pub(crate) async fn permissions(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.own_permissions(&caller)?))
}

/// Shows the user's preferences.
pub(crate) async fn preferences(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Person>,
) -> Result<Response, ApiError> {
    Ok(render::data_bytes(StatusCode::OK, state.app.preferences(&caller).await?.as_bytes()))
}

pub(crate) async fn change_preferences(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Person>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    if holds_nul(&text) {
        return Err(Error::invalid_request("A text in the body contains a NUL character.").into());
    }
    let changes = run_offloaded(text.len(), || parse_members(&text))?;
    Ok(render::data_bytes(StatusCode::OK, state.app.change_preferences(&caller, changes).await?.as_bytes()))
}

/// The public data about this instance. The document has it beside the settings of the service.
pub(crate) fn describe_instance(paths: &mut Paths) {
    let instance = Operation::new("service.instance", "service", "Ask how people sign in here")
        .describe("For clients that show a sign-in form. The operation ignores credentials.")
        .called_by(Caller::Unseen)
        .without(&[401])
        .answers(200, "The ways to sign in and sign up that are open.", of::<InstanceAnswer>());
    paths.add("get", "/api/v1/instance", instance);
}

pub(crate) fn describe(paths: &mut Paths) {
    let me = Operation::new("auth.me", "auth", "Ask who the caller is")
        .called_by(Caller::Anyone)
        .describe("Accepts any kind of credential. An invalid credential gets a normal response, not an error.")
        .without(&[401])
        .answers(
            200,
            "Whether the credential is valid. The other members are present only if `authenticated` is true.",
            of::<MeAnswer>(),
        );
    paths.add("get", "/api/v1/me", me);
    let claim = Operation::new("auth.claim", "auth", "Claim the account that was made at boot")
        .called_by(Caller::Session)
        .describe(
            "Only the session that signed in with the bootstrap password can claim the account. Every other session of \
            the account ends. The response is 409 `no_pending_claim` if there is no account to claim, or if another request \
            claimed it first.",
        )
        .json_body(body_of::<ClaimBody>())
        .problems(&[409])
        .answers_data(200, "The account is claimed.", of::<ClaimedAnswer>());
    paths.add("post", "/api/v1/admin/claim", claim);

    let permissions = Operation::new("auth.permissions", "auth", "List the caller's rights")
        .describe(
            "Shows the grants of all roles of the caller together. A resource can have an entry for all rows, one for own rows, \
            and one for each combination of `where`, `check` and `fields`. An entry that is `broken` gives nothing. The entries \
            of a named resource include the rights of `*`. Look for the resource first, and for `*` only if the resource is not \
            listed. For an API key the grants are limited to the rights of its maker. A condition that names something unknown \
            to the caller is `{ \"_hidden\": true }`.",
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
