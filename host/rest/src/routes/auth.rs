//! `/api/auth` in better-auth's wire form.

mod answers;
mod confirm_page;
pub(crate) mod document;
mod mail_links;
mod own_account;
mod profile;
mod request;
mod reset;
mod responses;
mod sessions;
mod sign;
mod verify;

pub use mail_links::mail_links;

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    sign::routes()
        .merge(sessions::routes())
        .merge(profile::routes())
        .merge(verify::routes())
        .merge(reset::routes())
        .merge(own_account::routes())
}
