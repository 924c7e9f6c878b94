//! Users, roles and API keys, as an administrator sees them.

pub(crate) mod api_keys;
pub(crate) mod roles;
pub(crate) mod users;

use crate::openapi::operation::Paths;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    roles::routes().merge(users::routes()).merge(api_keys::routes())
}

/// The routes for the operator of the server, who may also set passwords.
pub(crate) fn operator_routes() -> Routes {
    routes().merge(users::operator_routes())
}

pub(crate) fn describe(paths: &mut Paths) {
    roles::describe(paths);
    users::describe(paths);
    api_keys::describe(paths);
}
