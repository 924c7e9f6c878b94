//! Users, roles and API keys, as an administrator sees them.

pub(crate) mod api_keys;
pub(crate) mod document;
pub(crate) mod roles;
pub(crate) mod users;

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/roles", roles::list)
        .post("/api/v1/roles", roles::create)
        .get("/api/v1/roles/{id}", roles::get)
        .patch("/api/v1/roles/{id}", roles::update)
        .delete("/api/v1/roles/{id}", roles::delete)
        .get("/api/v1/roles/{id}/permissions", roles::permissions)
        .post("/api/v1/roles/{id}/explain", roles::explain)
        .get("/api/v1/users", users::list)
        .post("/api/v1/users", users::create)
        .get("/api/v1/users/{id}", users::get)
        .patch("/api/v1/users/{id}", users::update)
        .delete("/api/v1/users/{id}", users::delete)
        .get("/api/v1/users/{id}/sessions", users::sessions)
        .delete("/api/v1/users/{id}/sessions", users::end_sessions)
        .delete("/api/v1/users/{id}/sessions/{session}", users::end_session)
        .post("/api/v1/users/{id}/password-link", users::password_link)
        .post("/api/v1/users/{id}/roles", users::give_role)
        .delete("/api/v1/users/{id}/roles/{role}", users::take_role)
        .get("/api/v1/api-keys", api_keys::list)
        .post("/api/v1/api-keys", api_keys::create)
        .delete("/api/v1/api-keys/{id}", api_keys::delete)
        .post("/api/v1/api-keys/{id}/adopt", api_keys::adopt)
}

/// The routes for the operator of the server, who may also set passwords.
pub(crate) fn operator_routes() -> Routes {
    routes().put("/api/v1/users/{id}/password", users::set_password)
}
