//! Mails that wait to be sent.

use crate::connection::Connection;
use crate::error::DbError;
use crate::makers::Maker;

/// The purpose of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailKind {
    /// The user was invited, and sets the first password with a link.
    Invite,
    /// The user sets a new password with a link.
    Reset,
    /// The user proves the account's address.
    Verify,
    /// The user proves another address, which becomes the account's address.
    ChangeEmail,
    /// Tells the earlier address that the account has another address now. This mail has no link.
    EmailChanged,
    /// The user deletes the account with a link.
    DeleteUser,
}

impl MailKind {
    pub const ALL: [MailKind; 6] = [
        MailKind::Invite,
        MailKind::Reset,
        MailKind::Verify,
        MailKind::ChangeEmail,
        MailKind::EmailChanged,
        MailKind::DeleteUser,
    ];

    /// The name in the database, in events and in the names of template files.
    pub const fn as_str(self) -> &'static str {
        match self {
            MailKind::Invite => "invite",
            MailKind::Reset => "reset",
            MailKind::Verify => "verify",
            MailKind::ChangeEmail => "change-email",
            MailKind::EmailChanged => "email-changed",
            MailKind::DeleteUser => "delete-user",
        }
    }
}

/// A requested mail.
#[derive(Clone, Debug)]
pub struct MailRow {
    pub id: String,
    pub kind: MailKind,
    pub address: String,
    /// The account that requested it. `None` means the account that has the address when the mail is sent.
    pub user_id: Option<String>,
    /// The first language that the browser named.
    pub language: Option<String>,
    /// The page where the link ends, if the request named one.
    pub page: Option<String>,
    /// The maker with whose rights the mail was requested. No maker means the service itself.
    pub maker: Maker,
    pub created_at: i64,
}

impl Connection {
    pub async fn insert_mail(&mut self, mail: MailRow) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_mails (id, kind, address, user_id, language, page, made_by_user, made_by_key, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            vec![
                mail.id.into(),
                mail.kind.as_str().into(),
                mail.address.into(),
                mail.user_id.into(),
                mail.language.into(),
                mail.page.into(),
                mail.maker.user_id.into(),
                mail.maker.api_key_id.into(),
                mail.created_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// A mail that waits to be sent.
    pub async fn mail(&mut self, id: &str) -> Result<Option<MailRow>, DbError> {
        let rows = self
            .fetch(
                "SELECT id, kind, address, user_id, language, page, made_by_user, made_by_key, created_at FROM svc_mails WHERE id = $1",
                vec![id.into()],
            )
            .await?;
        let mail = rows.first().map(|row| {
            let kind = row.text(1)?;
            let known = MailKind::ALL.into_iter().find(|known| known.as_str() == kind);
            Ok(MailRow {
                id: row.text(0)?,
                kind: known.ok_or_else(|| DbError::Other(format!("there is no kind of mail {kind:?}").into()))?,
                address: row.text(2)?,
                user_id: row.optional_text(3)?,
                language: row.optional_text(4)?,
                page: row.optional_text(5)?,
                maker: Maker { user_id: row.optional_text(6)?, api_key_id: row.optional_text(7)? },
                created_at: row.integer(8)?,
            })
        });
        mail.transpose()
    }

    pub async fn delete_mail(&mut self, id: &str) -> Result<(), DbError> {
        self.run("DELETE FROM svc_mails WHERE id = $1", vec![id.into()]).await.map(|_| ())
    }

    /// Deletes at most `limit` mails that were requested before `before`.
    pub async fn purge_mails(&mut self, before: i64, limit: i64) -> Result<u64, DbError> {
        let sql =
            "DELETE FROM svc_mails WHERE id IN (SELECT id FROM svc_mails WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
        self.run(sql, vec![before.into(), limit.into()]).await
    }
}
