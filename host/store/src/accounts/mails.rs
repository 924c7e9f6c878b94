//! Mails that wait to be sent, and counts within a window of time.

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
    /// The user confirms the account's address.
    Verify,
    /// The user confirms another address, which becomes the account's address.
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
    /// Counts an event under a key, such as a mail to an address or a wrong password for an account. Returns the count in the
    /// current window, which begins with the first event, and the time when the window began. The row stays locked, so that
    /// concurrent requests are all counted.
    pub async fn count_in_window(&mut self, key: &str, window_ms: i64, now: i64) -> Result<(i64, i64), DbError> {
        let rows = self
            .fetch(
                "INSERT INTO svc_window_counts (counted, since, times) VALUES ($1, $2, 1) \
                 ON CONFLICT (counted) DO UPDATE SET \
                 times = CASE WHEN svc_window_counts.since <= $3 THEN 1 ELSE svc_window_counts.times + 1 END, \
                 since = CASE WHEN svc_window_counts.since <= $3 THEN excluded.since ELSE svc_window_counts.since END \
                 RETURNING times, since",
                vec![key.into(), now.into(), (now - window_ms).into()],
            )
            .await?;
        rows.first().map_or(Ok((0, now)), |row| Ok((row.integer(0)?, row.integer(1)?)))
    }

    /// Takes back one count of a key, because the counted event did not happen.
    pub async fn uncount(&mut self, key: &str) -> Result<(), DbError> {
        let sql = "UPDATE svc_window_counts SET times = times - 1 WHERE counted = $1 AND times > 0";
        self.run(sql, vec![key.into()]).await.map(|_| ())
    }

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

    /// Deletes at most `limit` mails that were requested before `before`, and as many counts that no longer matter.
    pub async fn purge_mails(&mut self, before: i64, counts_before: i64, limit: i64) -> Result<u64, DbError> {
        let mails =
            "DELETE FROM svc_mails WHERE id IN (SELECT id FROM svc_mails WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
        let counts = "DELETE FROM svc_window_counts WHERE counted IN \
                      (SELECT counted FROM svc_window_counts WHERE since < $1 ORDER BY since LIMIT $2)";
        Ok(self.run(mails, vec![before.into(), limit.into()]).await?
            + self.run(counts, vec![counts_before.into(), limit.into()]).await?)
    }
}
