//! Roles, users, API keys.

use blockbase_app::schema::Resource;
use blockbase_app::{
    ApiKeyAnswer, Explanation, InvitationAnswer, KEYS_OF_USER_MAX, ManagedUserAnswer, PasswordLinkAnswer, ROLES_OF_USER_MAX,
    RoleAnswer, RolePermissions, SESSIONS_OF_USER_MAX, UserSessionAnswer,
};
use serde_json::{Value, json};

use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{list_of, schema};
use crate::openapi::operation::{Operation, Paths, path_parameter, query_parameter};
use crate::routes::accounts::{api_keys, roles, users};
use crate::routes::data::filters_document::paging_parameters;

pub(crate) fn schemas() -> Value {
    let changes = body_of::<roles::RoleBody>();
    let mut new = changes.clone();
    new["required"] = json!(["name"]);
    json!({ "SvcNewRole": new, "SvcRoleChanges": changes })
}

pub(crate) fn describe(paths: &mut Paths) {
    roles(paths);
    users(paths);
    api_keys(paths);
}

fn roles(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::Roles, "roles", verb, summary);
    let role = || path_parameter("id", "The role's id, or its name.", json!({ "type": "string" }));
    let base = "/api/v1/roles";
    let list = operation("list", "List the roles").problems(&[400]).answers_data(200, "The roles.", list_of(of::<RoleAnswer>()));
    paths.add("get", base, list);
    let create = operation("create", "Make a role")
        .describe(
            "The response is 403 if `permissions` has a grant for a right that the caller does not have. It is 409 if there are \
            1000 roles already.",
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
                with the values of one user's variables. With `id`, also whether the record meets it. Needs read on `roles`, on `users` \
                and on all records of the object.",
        )
        .parameter(role())
        .json_body(body_of::<roles::ExplainBody>())
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

fn users(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::Users, "users", verb, summary);
    let user = || path_parameter("id", "The user's id.", json!({ "type": "string" }));
    let search = query_parameter(
        "search",
        "Only users whose address or name contains this text. Case is ignored.",
        json!({ "type": "string" }),
    );
    let list = operation("list", "List the users, newest first")
        .describe(
            "If the caller's grants on `users` have conditions or fields, the list has only the users and the members that these \
            grants allow, and `role` is refused with 403.",
        )
        .parameter(search)
        .parameter(query_parameter("role", "Only users who have the role with this id or name.", json!({ "type": "string" })))
        .parameters(paging_parameters())
        .problems(&[400])
        .answers_page("A page of users.", of::<ManagedUserAnswer>());
    paths.add("get", "/api/v1/users", list);
    let create = operation("create", "Create an account for a user")
        .describe(
            "The account has no password until the user sets one on the page of `link`. Only this response shows the link. It is \
            valid for seven days and can be used once. This works while sign-up is closed. Needs create on `users`, and every \
            right that the roles give. The response is 409 if the address is taken, and 403 `setup_required` while nobody has \
            signed up.",
        )
        .json_body(body_of::<users::NewUserBody>())
        .problems(&[409])
        .answers(201, "The user, and the link to set the password.", of::<InvitationAnswer>());
    paths.add("post", "/api/v1/users", create);
    let base = "/api/v1/users/{id}";
    let get = operation("get", "Get a user").parameter(user()).problems(&[400, 404]);
    paths.add("get", base, get.answers_data(200, "The user.", of::<ManagedUserAnswer>()));
    let update = operation("update", "Change or ban a user")
        .describe(
            "The response is 403 if the user has a right that the caller does not have. API keys that act as the user count too. \
            Things that a banned user made are suspended.",
        )
        .parameter(user())
        .json_body(body_of::<users::UserBody>())
        .problems(&[404, 409])
        .answers_data(200, "The user as they are now.", of::<ManagedUserAnswer>());
    paths.add("patch", base, update);
    let delete = operation("delete", "Delete a user")
        .describe(
            "Also deletes the user's sessions, role assignments and the API keys that act as the user. Records keep their \
            stamps. The last admin cannot be deleted: the response is 409. It is 409 `owns_things`, with the list in `things`, \
            if the user made API keys, webhooks, subscriptions, tasks or blocks and no parameter says what happens to them. It \
            is 403 if the user has a right that the caller does not have.",
        )
        .parameter(user())
        .parameter(query_parameter(
            "handOverTo",
            "The id of the user who becomes the maker of the things that the deleted user made. That user and the caller must \
            have the rights that these things need. A caller who names another user needs `update` on `users`, and every right \
            that the named user has.",
            json!({ "type": "string" }),
        ))
        .parameter(query_parameter(
            "suspend",
            "Suspends the things that the deleted user made until another user adopts them. Cannot be combined with \
                `handOverTo`.",
            json!({ "type": "boolean", "default": false }),
        ))
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The user is deleted.");
    paths.add("delete", base, delete);
    let password_link = operation("createPasswordLink", "Make a link to set a user's password")
        .describe(
            "Somebody who has the link can set the password once. Only this response shows the link. It is valid for an hour, or \
            for seven days if the user has no password yet. An earlier link of the user no longer works. Needs update on \
            `users`, and every right that the user has, now and when the link is used. The response is 409 for a guest and for a \
            banned user.",
        )
        .parameter(user())
        .problems(&[400, 404, 409])
        .answers_data(201, "The link.", of::<PasswordLinkAnswer>());
    paths.add("post", "/api/v1/users/{id}/password-link", password_link);
    let sessions = "/api/v1/users/{id}/sessions";
    let list = operation("listSessions", "List a user's sessions, newest first")
        .parameter(user())
        .parameters(paging_parameters())
        .problems(&[400, 404])
        .answers_page(
            &format!("A page of the sessions that have not expired. A user has at most {SESSIONS_OF_USER_MAX} sessions."),
            of::<UserSessionAnswer>(),
        );
    paths.add("get", sessions, list);
    let end_all = operation("endSessions", "End all sessions of a user")
        .describe(
            "This includes the caller's own session if it belongs to this user. Open streams of the sessions end too. Needs \
            update on `users`. The response is 403 if the user has a right that the caller does not have.",
        )
        .parameter(user())
        .problems(&[400, 404])
        .answers_data(200, "The number of sessions that ended.", of::<users::EndedAnswer>());
    paths.add("delete", sessions, end_all);
    let end = operation("endSession", "End a session of a user")
        .describe(
            "Open streams of the session end too. Needs update on `users`. The response is 403 if the user has a right that the \
            caller does not have.",
        )
        .parameters([user(), path_parameter("session", "The session's id.", json!({ "type": "string" }))])
        .problems(&[400, 404])
        .answers_nothing(204, "The session has ended.");
    paths.add("delete", "/api/v1/users/{id}/sessions/{session}", end);
    let give = operation("giveRole", "Give a user a role")
        .describe(format!(
            "Needs update on `users`, every right that the role gives, and every right that the user has. The response is 409 if \
            the user has {ROLES_OF_USER_MAX} roles already.",
        ))
        .parameter(user())
        .json_body(body_of::<users::RoleBody>())
        .problems(&[404, 409])
        .answers_data(200, "The user with their roles.", of::<ManagedUserAnswer>());
    paths.add("post", "/api/v1/users/{id}/roles", give);
    let role = path_parameter("role", "The role's id, or its name.", json!({ "type": "string" }));
    let take = operation("takeRole", "Take a role away from a user")
        .describe("Needs update on `users`, and every right that the user has.")
        .parameters([user(), role])
        .problems(&[400, 404, 409])
        .answers_nothing(204, "The user no longer has the role.");
    paths.add("delete", "/api/v1/users/{id}/roles/{role}", take);
}

fn api_keys(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str| Operation::gated(Resource::ApiKeys, "apiKeys", verb, summary);
    let base = "/api/v1/api-keys";
    let list = operation("list", "List the API keys, newest first").problems(&[400]);
    paths.add("get", base, list.answers_data(200, "The keys.", list_of(of::<ApiKeyAnswer>())));
    let create = operation("create", "Make an API key")
        .describe(format!(
            "The key acts as its user with the rights of its role alone. At each use these rights are limited to those of its \
            maker, the caller. The response is 403 if the role gives a right that the caller does not have. A key for another \
            user needs update on `users`, and every right that the user has. The response is 409 if the user has \
            {KEYS_OF_USER_MAX} keys already.",
        ))
        .json_body(body_of::<api_keys::KeyBody>())
        .problems(&[409])
        .answers(201, "The new key.", of::<api_keys::KeyMadeAnswer<'_>>());
    paths.add("post", base, create);
    let key = || path_parameter("id", "The key's id.", json!({ "type": "string" }));
    let adopt = operation("adopt", "Become the maker of an API key")
        .describe(
            "From then on the key's rights are limited to those of the caller, and the key is no longer suspended. Needs update \
            on `api_keys` and every right that the key has. Otherwise the response is 403, and nothing changes. To adopt a key \
            that acts as another user, the caller needs the same rights as for making it.",
        )
        .parameter(key())
        .problems(&[400, 404, 409])
        .answers_data(200, "The key as it is now.", of::<ApiKeyAnswer>());
    paths.add("post", "/api/v1/api-keys/{id}/adopt", adopt);
    let delete = operation("delete", "Delete an API key")
        .describe("The response is 403 if the key has a right that the caller does not have, unless the key acts as the caller.")
        .parameter(key())
        .problems(&[400, 404])
        .answers_nothing(204, "The key is deleted and no longer valid.");
    paths.add("delete", "/api/v1/api-keys/{id}", delete);
}
