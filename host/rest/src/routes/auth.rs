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
pub(crate) use own_account::{change_email, delete_user, delete_user_callback, verify_password};
pub(crate) use profile::{change_password, delete_guest, update_user};
pub(crate) use reset::{request_reset, reset_callback, reset_password};
pub(crate) use sessions::{get, list, revoke, revoke_all, revoke_others};
pub(crate) use sign::{guest, sign_in, sign_out, sign_up};
pub(crate) use verify::{send_verification, verify_email};

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/sign-up/email", sign_up)
        .post("/api/auth/sign-in/email", sign_in)
        .post("/api/auth/sign-in/anonymous", guest)
        .post("/api/auth/sign-out", sign_out)
        .get("/api/auth/get-session", get)
        .get("/api/auth/list-sessions", list)
        .post("/api/auth/revoke-session", revoke)
        .post("/api/auth/revoke-sessions", revoke_all)
        .post("/api/auth/revoke-other-sessions", revoke_others)
        .post("/api/auth/change-password", change_password)
        .post("/api/auth/send-verification-email", send_verification)
        .get("/api/auth/verify-email", verify_email)
        .post("/api/auth/verify-email", verify_email)
        .post("/api/auth/request-password-reset", request_reset)
        .get("/api/auth/reset-password/{token}", reset_callback)
        .post("/api/auth/reset-password", reset_password)
        .post("/api/auth/change-email", change_email)
        .post("/api/auth/verify-password", verify_password)
        .post("/api/auth/delete-user", delete_user)
        .get("/api/auth/delete-user/callback", delete_user_callback)
        .post("/api/auth/update-user", update_user)
        .post("/api/auth/delete-anonymous-user", delete_guest)
}
