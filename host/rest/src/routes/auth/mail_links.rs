//! The links in mails, and the parameters of the routes that they lead to.

use std::sync::Arc;

use blockbase_app::{MailKind, MailLink};
use serde_json::{Value, json};

use crate::openapi::operation::query_parameter;

/// The page where a link ends if nothing names one.
const HOME: &str = "/";

/// Makes the links of mails. They lead to the authentication routes below `base`, which is the public URL, or to the console's
/// page `set_password`.
pub fn mail_links(base: String, set_password: String) -> MailLink {
    Arc::new(move |kind, token, page| {
        let end = |page: Option<&str>| form_urlencoded::byte_serialize(page.unwrap_or(HOME).as_bytes()).collect::<String>();
        match (kind, page) {
            (MailKind::Invite, _) | (MailKind::Reset, None) => format!("{set_password}#token={token}"),
            (MailKind::Reset, page) => format!("{base}/api/auth/reset-password/{token}?callbackURL={}", end(page)),
            (MailKind::Verify | MailKind::ChangeEmail | MailKind::EmailChanged, page) => {
                format!("{base}/api/auth/verify-email?token={token}&callbackURL={}", end(page))
            }
            (MailKind::DeleteUser, page) => {
                format!("{base}/api/auth/delete-user/callback?token={token}&callbackURL={}", end(page))
            }
        }
    })
}

/// The parameters of a route that a mailed link leads to.
pub(super) fn link_parameters() -> [Value; 2] {
    let token = json!({
        "name": "token",
        "in": "query",
        "required": true,
        "description": "The token of the link.",
        "schema": { "type": "string" },
    });
    let page = "The page to go to: a path of this server, or a URL of a trusted origin.";
    [token, query_parameter("callbackURL", page, json!({ "type": "string" }))]
}
