//! Tokens in links that are sent to people, for example to set a password. Only the SHA-256 of a token is stored.

use crate::accounts::mails::MailKind;
use crate::connection::Connection;
use crate::error::DbError;
use crate::makers::Maker;

/// The purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An invited user sets the first password.
    Invitation,
    /// The user sets a new password.
    Reset,
    /// The user proves the account's address.
    Verification,
    /// The user proves another address, which becomes the account's address.
    EmailChange,
    /// The user deletes the account.
    Deletion,
}

impl TokenKind {
    const ALL: [TokenKind; 5] =
        [TokenKind::Invitation, TokenKind::Reset, TokenKind::Verification, TokenKind::EmailChange, TokenKind::Deletion];

    /// The kinds that set a password.
    pub const OF_PASSWORDS: [TokenKind; 2] = [TokenKind::Invitation, TokenKind::Reset];

    /// The kinds that prove an address.
    pub const OF_ADDRESSES: [TokenKind; 2] = [TokenKind::Verification, TokenKind::EmailChange];

    const fn as_str(self) -> &'static str {
        match self {
            TokenKind::Invitation => "invitation",
            TokenKind::Reset => "reset",
            TokenKind::Verification => "verification",
            TokenKind::EmailChange => "email-change",
            TokenKind::Deletion => "deletion",
        }
    }

    fn read(text: &str) -> Result<TokenKind, DbError> {
        let known = TokenKind::ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| DbError::Other(format!("there is no kind of token {text:?}").into()))
    }
}

/// A token as stored.
#[derive(Clone, Debug)]
pub struct AccountTokenRow {
    /// SHA-256 of the token, in hexadecimal.
    pub token_hash: String,
    /// The user whose account the token opens.
    pub user_id: String,
    pub kind: TokenKind,
    /// The maker of the token. No maker means the service itself.
    pub maker: Maker,
    /// Whether the token was mailed to the account's address, so that its use proves the address.
    pub is_mailed: bool,
    /// The new address, if the token is for a change of it.
    pub address: Option<String>,
    pub created_at: i64,
    pub expires_at: i64,
}

impl Connection {
    /// Stores a token. Keeps the newest `kept` of the account's earlier tokens of this kind.
    pub async fn insert_account_token(&mut self, token: AccountTokenRow, kept: i64) -> Result<(), DbError> {
        let ended = "DELETE FROM svc_account_tokens WHERE user_id = $1 AND kind = $2 AND token_hash NOT IN \
                     (SELECT token_hash FROM svc_account_tokens WHERE user_id = $1 AND kind = $2 \
                     ORDER BY created_at DESC, token_hash LIMIT $3)";
        self.run(ended, vec![token.user_id.clone().into(), token.kind.as_str().into(), kept.into()]).await?;
        self.run(
            "INSERT INTO svc_account_tokens (token_hash, user_id, kind, made_by_user, made_by_key, is_mailed, address, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            vec![
                token.token_hash.into(),
                token.user_id.into(),
                token.kind.as_str().into(),
                token.maker.user_id.into(),
                token.maker.api_key_id.into(),
                i64::from(token.is_mailed).into(),
                token.address.into(),
                token.created_at.into(),
                token.expires_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The token with this hash, unless it has expired or is of another kind.
    pub async fn account_token(
        &mut self,
        token_hash: &str,
        kinds: &[TokenKind],
        now: i64,
    ) -> Result<Option<AccountTokenRow>, DbError> {
        let rows = self
            .fetch(
                "SELECT token_hash, user_id, kind, made_by_user, made_by_key, is_mailed, address, created_at, expires_at \
                 FROM svc_account_tokens WHERE token_hash = $1 AND expires_at > $2",
                vec![token_hash.into(), now.into()],
            )
            .await?;
        let token: Option<Result<AccountTokenRow, DbError>> = rows.first().map(|row| {
            Ok(AccountTokenRow {
                token_hash: row.text(0)?,
                user_id: row.text(1)?,
                kind: TokenKind::read(&row.text(2)?)?,
                maker: Maker { user_id: row.optional_text(3)?, api_key_id: row.optional_text(4)? },
                is_mailed: row.integer(5)? != 0,
                address: row.optional_text(6)?,
                created_at: row.integer(7)?,
                expires_at: row.integer(8)?,
            })
        });
        Ok(token.transpose()?.filter(|token| kinds.contains(&token.kind)))
    }

    /// Uses a token up, which ends the account's other tokens of its kind. Returns `true` if this call used it up.
    pub async fn use_account_token(&mut self, token: &AccountTokenRow) -> Result<bool, DbError> {
        let used = "DELETE FROM svc_account_tokens WHERE token_hash = $1";
        if self.run(used, vec![token.token_hash.clone().into()]).await? != 1 {
            return Ok(false);
        }
        let others = "DELETE FROM svc_account_tokens WHERE user_id = $1 AND kind = $2";
        self.run(others, vec![token.user_id.clone().into(), token.kind.as_str().into()]).await?;
        Ok(true)
    }

    /// Ends all tokens of an account, and the mails that would make new ones.
    pub async fn end_account_tokens(&mut self, user_id: &str) -> Result<(), DbError> {
        let waiting = "DELETE FROM svc_mails WHERE kind <> $2 \
                       AND (user_id = $1 OR (user_id IS NULL AND address = (SELECT email FROM svc_users WHERE id = $1)))";
        self.run(waiting, vec![user_id.into(), MailKind::EmailChanged.as_str().into()]).await?;
        self.run("DELETE FROM svc_account_tokens WHERE user_id = $1", vec![user_id.into()]).await.map(|_| ())
    }

    /// Ends the links that a user made for others, and the mails that would make some.
    pub async fn end_links_made_by(&mut self, user_id: &str) -> Result<(), DbError> {
        self.run("DELETE FROM svc_account_tokens WHERE made_by_user = $1", vec![user_id.into()]).await?;
        self.run("DELETE FROM svc_mails WHERE made_by_user = $1", vec![user_id.into()]).await.map(|_| ())
    }

    /// Deletes at most `limit` tokens that expired before `before`.
    pub async fn purge_account_tokens(&mut self, before: i64, limit: i64) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_account_tokens WHERE token_hash IN (SELECT token_hash FROM svc_account_tokens \
             WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
            vec![before.into(), limit.into()],
        )
        .await
    }
}
