//! `/api/auth` in better-auth's wire form.

mod answers;
mod confirm_page;
mod mail_links;
mod own_account;
mod profile;
mod request;
mod reset;
mod responses;
mod sessions;
pub(crate) mod sign;
mod verify;

pub use mail_links::mail_links;

use crate::openapi::operation::Paths;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    sign::routes()
        .merge(sessions::routes())
        .merge(profile::routes())
        .merge(verify::routes())
        .merge(reset::routes())
        .merge(own_account::routes())
}

pub(crate) fn describe(paths: &mut Paths) {
    sign::describe(paths);
    sessions::describe(paths);
    profile::describe_password(paths);
    reset::describe(paths);
    profile::describe(paths);
    own_account::describe(paths);
    reset::describe_request(paths);
    verify::describe(paths);
}
