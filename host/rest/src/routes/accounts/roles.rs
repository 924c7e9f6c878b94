//! `/api/v1/roles`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Resource;
use blockbase_app::{Action, ExplainRequest, Explanation, Grant, RoleAnswer, RoleChanges, RolePermissions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{list_of, schema};
use crate::openapi::operation::{Operation, Paths, path_parameter};
use crate::request::admission::{Create, Delete, Granted, Read, Roles, Update};
use crate::request::body::{JsonBody, given, present};
use crate::request::extract::PathParts;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/roles", list)
        .post("/api/v1/roles", create)
        .get("/api/v1/roles/{id}", get)
        .patch("/api/v1/roles/{id}", update)
        .delete("/api/v1/roles/{id}", delete)
        .get("/api/v1/roles/{id}/permissions", permissions)
        .post("/api/v1/roles/{id}/explain", explain)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", length(max = 64), extend("pattern" = "^[A-Za-z]([A-Za-z0-9_. \\-]*[A-Za-z0-9_.\\-])?$"))]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(max = 1000))]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<Grant>", length(max = 1000))]
    permissions: Option<Vec<Grant>>,
}

impl From<RoleBody> for RoleChanges {
    fn from(body: RoleBody) -> Self {
        RoleChanges { name: body.name, description: body.description, permissions: body.permissions }
    }
}

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.list_roles(&caller).await?))
}

pub(crate) async fn create(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Create)>,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::CREATED, &state.app.create_role(&caller, body.into()).await?))
}

pub(crate) async fn get(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.role(&caller, &id).await?))
}

pub(crate) async fn permissions(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
    PathParts(id): PathParts<String>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.role_permissions(&caller, &id).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExplainBody {
    /// The id of a user. Conditions are explained with this user's values of the variables. Without a user the variables have no
    /// values.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    user_id: Option<String>,
    object: String,
    action: Action,
    /// The id of a record.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: Option<String>,
}

pub(crate) async fn explain(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Read)>,
    PathParts(role): PathParts<String>,
    JsonBody(body): JsonBody<ExplainBody>,
) -> Result<Response, ApiError> {
    let ExplainBody { user_id, object, action, id } = body;
    let request = ExplainRequest { user_id, object, action, id };
    Ok(render::data(StatusCode::OK, &state.app.explain_role(&caller, &role, request).await?))
}

pub(crate) async fn update(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Update)>,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<RoleBody>,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::OK, &state.app.update_role(&caller, &id, body.into()).await?))
}

pub(crate) async fn delete(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Roles, Delete)>,
    PathParts(id): PathParts<String>,
) -> Result<StatusCode, ApiError> {
    state.app.delete_role(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn schemas() -> Value {
    let changes = body_of::<RoleBody>();
    let mut new = changes.clone();
    new["required"] = json!(["name"]);
    json!({ "SvcNewRole": new, "SvcRoleChanges": changes })
}

pub(crate) fn describe(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::Roles, "roles", verb, summary);
    let role = || path_parameter("id", "The role's id, or its name.", json!({ "type": "string" }));
    let base = "/api/v1/roles";
    let list = operation("list", "List the roles").problems(&[400]).answers_data(200, "The roles.", list_of(of::<RoleAnswer>()));
    paths.add("get", base, list);
    let create = operation("create", "Make a role")
        .describe(
            "The response is 403 if `permissions` has a grant for a right that the caller does not have. It is 409 if there are \
            1000 roles already. On `users`, conditions and fields may limit the action `read` only: otherwise the response is 400.",
        )
        .json_body(schema("SvcNewRole"))
        .problems(&[409])
        .answers_data(201, "The new role.", of::<RoleAnswer>());
    paths.add("post", base, create);
    let base = "/api/v1/roles/{id}";
    let get = operation("get", "Get a role").parameter(role()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The role.", of::<RoleAnswer>()));
    let permissions = operation("getPermissions", "Get the effective permissions of a role")
        .describe(
            "Shows what a session of a user with this role may do: the role's own grants, its grants on `*`, and the grants of \
                the role `public`. Objects that the caller may not know of are left out. Needs read on `roles`.",
        )
        .parameter(role())
        .problems(&[400, 404])
        .answers_data(200, "The rights by resource and action.", of::<RolePermissions>());
    paths.add("get", "/api/v1/roles/{id}/permissions", permissions);
    let explain = operation("explain", "Explain what a role allows on records")
        .describe(
            "Shows the grants of the role and of `public` that allow the action on the object, and the condition that they come to \
                with the values of one user's variables. With `id`, also whether the record meets it, and which parts of each grant's \
                condition it does not meet. Needs read on `roles`, on `users` and on all records of the object.",
        )
        .parameter(role())
        .json_body(body_of::<ExplainBody>())
        .problems(&[404])
        .answers_data(200, "The explanation.", of::<Explanation>());
    paths.add("post", "/api/v1/roles/{id}/explain", explain);
    let update = operation("update", "Change a role")
        .describe(
            "`permissions` replaces the whole list. The caller must have every right that the role gives before and after the \
            change, and every right of the users who have the role. Otherwise the response is 403.",
        )
        .parameter(role())
        .json_body(schema("SvcRoleChanges"))
        .problems(&[404, 409])
        .answers_data(200, "The role as it is now.", of::<RoleAnswer>());
    paths.add("patch", base, update);
    let delete = operation("delete", "Delete a role")
        .describe(
            "Users lose the role, and its API keys are deleted. Roles that come with the service cannot be deleted: the response \
            is 409. It is 403 if the role gives a right that the caller does not have, or if a user with the role has such a \
            right.",
        )
        .parameter(role())
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The role is deleted.");
    paths.add("delete", base, delete);
}
