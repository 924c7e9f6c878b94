//! The links in mails.

use std::sync::Arc;

use blockbase_app::{MailKind, MailLink};

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
